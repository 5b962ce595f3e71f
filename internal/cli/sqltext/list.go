package sqltext

import "strings"

// Aggregate is a function over a column, or over all rows.
type Aggregate struct {
	Func   string // count, sum, min, max or avg
	Column string // "" for count(*)
}

// String returns the aggregate as it names its output column: count(*), sum(delay).
func (a Aggregate) String() string {
	if a.Column == "" {
		return a.Func + "(*)"
	}
	return a.Func + "(" + quoteName(a.Column) + ")"
}

// ParseAggregates parses a list such as `count(*), sum(delay), min("Cost Total $")`.
func ParseAggregates(in string) ([]Aggregate, error) {
	p := newParser(in)
	var list []Aggregate
	err := p.list(func() {
		if !p.atName() {
			p.expected(aggregateNames)
			return
		}
		list = append(list, p.aggregate())
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

const aggregateNames = "count, sum, min, max or avg"

// aggregate reads a function and its argument.
func (p *parser) aggregate() Aggregate {
	a := Aggregate{Func: strings.ToLower(p.tok.text)}
	switch a.Func {
	case "count", "sum", "min", "max", "avg":
	default:
		p.expected(aggregateNames)
	}
	p.next()
	p.require("(")
	if a.Func == "count" && p.accept("*") {
		p.require(")")
		return a
	}
	a.Column = p.columnName()
	p.require(")")
	return a
}

// Assignment sets a column to a literal: nil, a bool, an int64, or text that is parsed
// as the column's type.
type Assignment struct {
	Column string
	Value  any
}

// ParseSet parses a list such as `a=1, b=null`. No column may stand in it twice.
func ParseSet(in string) ([]Assignment, error) {
	p := newParser(in)
	var list []Assignment
	seen := map[string]bool{}
	err := p.list(func() {
		pos := p.tok.pos
		a := Assignment{Column: p.columnName()}
		if p.err == nil && seen[a.Column] {
			p.failAt(pos, "column %s is set twice", quoteName(shorten(a.Column)))
		}
		seen[a.Column] = true
		p.require("=")
		a.Value = p.literal("a literal")
		list = append(list, a)
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Order is a column of a result to sort by.
type Order struct {
	Column string // the name of an output column: a column's, or an aggregate's text
	Desc   bool
}

// ParseOrderBy parses a list such as `a desc, count(*)`.
func ParseOrderBy(in string) ([]Order, error) {
	p := newParser(in)
	var list []Order
	err := p.list(func() {
		o := Order{Column: p.outputColumn()}
		if !p.accept("asc") {
			o.Desc = p.accept("desc")
		}
		list = append(list, o)
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// outputColumn reads a column name or an aggregate: a bare word before a parenthesis.
func (p *parser) outputColumn() string {
	if p.tok.kind == word && strings.HasPrefix(strings.TrimLeft(p.in[p.at:], space), "(") {
		return p.aggregate().String()
	}
	return p.columnName()
}

// ParseNames parses a list of names such as `host,Cost Total $,"a,b"`. A bare name
// runs to the next comma and is trimmed; double quotes are needed only where a name
// holds a comma or a quote. No name may be empty or stand in the list twice.
func ParseNames(in string) ([]string, error) {
	p := &parser{in: in}
	var list []string
	seen := map[string]bool{}
	for {
		pos := p.at
		name := p.listedName()
		switch {
		case p.err != nil:
		case name == "":
			p.failAt(pos, "expected a name")
		case seen[name]:
			p.failAt(pos, "name %q stands in the list twice", shorten(name))
		}
		if p.err != nil {
			return nil, p.err
		}
		seen[name] = true
		list = append(list, name)
		if p.at == len(in) {
			return list, nil
		}
		p.at++ // the comma
	}
}

// listedName reads a name up to the next comma or the end.
func (p *parser) listedName() string {
	rest := strings.TrimLeft(p.in[p.at:], space)
	pos := len(p.in) - len(rest)
	if !strings.HasPrefix(rest, `"`) {
		bare, _, _ := strings.Cut(rest, ",")
		p.at = pos + len(bare)
		if at := strings.IndexByte(bare, '"'); at >= 0 {
			p.failAt(pos+at, "a name that holds a quote is written in double quotes")
		}
		return strings.TrimRight(bare, space)
	}
	p.quoted(name, pos)
	quoted := p.tok.text
	p.at = len(p.in) - len(strings.TrimLeft(p.in[p.at:], space))
	if p.err == nil && p.at < len(p.in) && p.in[p.at] != ',' {
		p.failAt(p.at, "expected a comma after the quoted name")
	}
	return quoted
}

// FormatNames returns the names as [ParseNames] reads them.
func FormatNames(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		if strings.ContainsAny(n, `,"`) || strings.Trim(n, space) != n {
			n = `"` + strings.ReplaceAll(n, `"`, `""`) + `"`
		}
		b.WriteString(n)
	}
	return b.String()
}
