package sqltext

import (
	"strconv"

	"github.com/minikudu/minikudu/predicate"
)

// maxDepth bounds parentheses and NOTs within each other.
const maxDepth = 200

// ParseWhere parses a filter expression; the grammar is in the package comment.
func ParseWhere(in string) (predicate.Expr, error) {
	p := newParser(in)
	e := p.or()
	if p.err == nil && p.tok.kind != end {
		p.expected("and, or, or the end")
	}
	if p.err != nil {
		return nil, p.err
	}
	return e, nil
}

func (p *parser) or() predicate.Expr {
	parts := []predicate.Expr{p.and()}
	for p.accept("or") {
		parts = append(parts, p.and())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return predicate.Or(parts...)
}

func (p *parser) and() predicate.Expr {
	parts := []predicate.Expr{p.not()}
	for p.accept("and") {
		parts = append(parts, p.not())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return predicate.And(parts...)
}

func (p *parser) not() predicate.Expr {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		p.failAt(p.tok.pos, "nested more than %d deep", maxDepth)
	}
	switch {
	case p.accept("not"):
		return predicate.Not(p.not())
	case p.accept("("):
		e := p.or()
		p.require(")")
		return e
	}
	return p.test()
}

// test reads a comparison or a constant.
func (p *parser) test() predicate.Expr {
	if p.atName() {
		return p.columnTest(p.columnName())
	}
	truth := p.tok
	constant := p.is("true") || p.is("false")
	v := p.literal("a column name, a literal, not, or (")
	op, ok := p.comparison()
	if !ok {
		if constant && p.err == nil {
			return constantExpr(truth)
		}
		p.expected("a comparison")
		return nil
	}
	pos := p.tok.pos
	if p.err == nil && !p.atName() {
		p.failAt(pos, "expected a column name: a literal is compared with a column")
	}
	return &predicate.Compare{Column: p.columnName(), Op: swapped(op), Args: []any{v}}
}

func constantExpr(t token) predicate.Expr {
	if t.text[0]|0x20 == 't' {
		return predicate.And()
	}
	return predicate.Or()
}

func (p *parser) columnTest(column string) predicate.Expr {
	if p.accept("is") {
		negated := p.accept("not")
		p.require("null")
		return negate(predicate.IsNull(column), negated)
	}
	negated := p.accept("not")
	switch {
	case p.accept("in"):
		return negate(predicate.In(column, p.literals()...), negated)
	case p.accept("between"):
		lo := p.literal("a literal")
		p.require("and")
		return negate(predicate.Between(column, lo, p.literal("a literal")), negated)
	case p.accept("like"):
		if p.tok.kind != text {
			p.expected("a pattern in single quotes")
		}
		pattern := p.tok.text
		p.next()
		return negate(predicate.Like(column, pattern), negated)
	case negated:
		p.expected("in, between or like")
		return nil
	}
	op, ok := p.comparison()
	if !ok {
		p.expected("a comparison, is, in, between or like")
		return nil
	}
	return &predicate.Compare{Column: column, Op: op, Args: []any{p.literal("a literal")}}
}

func negate(e predicate.Expr, negated bool) predicate.Expr {
	if negated {
		return predicate.Not(e)
	}
	return e
}

var comparisons = map[string]predicate.Op{"=": predicate.OpEq, "==": predicate.OpEq, "!=": predicate.OpNe, "<>": predicate.OpNe,
	"<": predicate.OpLt, "<=": predicate.OpLe, ">": predicate.OpGt, ">=": predicate.OpGe}

// comparison reads a comparison operator, if there is one.
func (p *parser) comparison() (predicate.Op, bool) {
	if p.tok.kind != punct {
		return 0, false
	}
	op, ok := comparisons[p.tok.text]
	if ok {
		p.next()
	}
	return op, ok
}

// swapped returns the comparison with its sides exchanged.
func swapped(op predicate.Op) predicate.Op {
	switch op {
	case predicate.OpLt:
		return predicate.OpGt
	case predicate.OpLe:
		return predicate.OpGe
	case predicate.OpGt:
		return predicate.OpLt
	case predicate.OpGe:
		return predicate.OpLe
	}
	return op
}

// literals reads a list in parentheses.
func (p *parser) literals() []any {
	p.require("(")
	var list []any
	for {
		list = append(list, p.literal("a literal"))
		if !p.accept(",") {
			break
		}
	}
	p.require(")")
	return list
}

// literal reads a literal: nil, a bool, an int64, or a string.
func (p *parser) literal(what string) any {
	var v any
	switch {
	case p.tok.kind == text:
		v = p.tok.text
	case p.is("null"):
	case p.is("true"):
		v = true
	case p.is("false"):
		v = false
	case p.tok.kind == number, p.is("-"), p.is("+"):
		return p.signed()
	case p.atName():
		p.failAt(p.tok.pos, "expected %s, found the name %s: text is written in single quotes", what, quoteName(shorten(p.tok.text)))
	default:
		p.expected(what)
	}
	p.next()
	return v
}

// signed reads a number with an optional sign.
func (p *parser) signed() any {
	sign := ""
	if p.is("-") {
		sign = "-"
	}
	if p.is("-") || p.is("+") {
		p.next()
	}
	if p.tok.kind != number {
		p.expected("a number")
		return nil
	}
	s := sign + p.tok.text
	p.next()
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	return s
}
