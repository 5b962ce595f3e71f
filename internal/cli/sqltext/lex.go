package sqltext

import (
	"fmt"
	"strings"

	"github.com/minikudu/minikudu/schema"
)

// SyntaxError says where a text is wrong and what was expected there. It answers
// errors.Is(err, schema.ErrInvalidArgument).
type SyntaxError struct {
	Pos    int    // byte position, from 1
	Reason string // e.g. `expected a literal, found "and"`
}

// Error returns the message.
func (e *SyntaxError) Error() string { return fmt.Sprintf("at position %d: %s", e.Pos, e.Reason) }

// Unwrap returns schema.ErrInvalidArgument.
func (e *SyntaxError) Unwrap() error { return schema.ErrInvalidArgument }

type kind uint8

const (
	end    kind = iota
	word        // bare: a name or a keyword
	name        // "…", unescaped
	text        // '…', unescaped
	number      // without sign
	punct       // an operator or a mark
)

type token struct {
	kind kind
	text string
	pos  int
}

// parser reads tokens and keeps the first error; after one it sees only the end.
type parser struct {
	in    string
	at    int // start of what is not read yet
	tok   token
	depth int
	err   error
}

func newParser(in string) *parser {
	p := &parser{in: in}
	p.next()
	return p
}

func (p *parser) failAt(pos int, format string, args ...any) {
	if p.err == nil {
		p.err = &SyntaxError{Pos: pos + 1, Reason: fmt.Sprintf(format, args...)}
	}
	p.at = len(p.in)
	p.tok = token{kind: end, pos: p.at}
}

// expected fails at the current token.
func (p *parser) expected(what string) {
	found := "the end"
	if p.tok.kind != end {
		found = fmt.Sprintf("%q", shorten(p.in[p.tok.pos:p.at]))
	}
	p.failAt(p.tok.pos, "expected %s, found %s", what, found)
}

func shorten(s string) string {
	if len(s) > 30 {
		return s[:30] + "…"
	}
	return s
}

const space = " \t\r\n"

// next reads the next token.
func (p *parser) next() {
	rest := strings.TrimLeft(p.in[p.at:], space)
	pos := len(p.in) - len(rest)
	if rest == "" {
		p.at, p.tok = len(p.in), token{kind: end, pos: len(p.in)}
		return
	}
	switch b := rest[0]; {
	case b == '"':
		p.quoted(name, pos)
	case b == '\'':
		p.quoted(text, pos)
	case isLetter(b):
		p.take(word, pos, span(rest, func(b byte) bool { return isLetter(b) || isDigit(b) }))
	case isDigit(b), b == '.' && len(rest) > 1 && isDigit(rest[1]):
		p.number(pos, rest)
	default:
		n := 1
		if len(rest) > 1 && (b == '<' || b == '>' || b == '!' || b == '=') && (rest[1] == '=' || rest[:2] == "<>") {
			n = 2
		}
		p.take(punct, pos, n)
	}
}

func (p *parser) take(k kind, pos, n int) {
	p.at = pos + n
	p.tok = token{kind: k, text: p.in[pos:p.at], pos: pos}
}

func isLetter(b byte) bool { return b == '_' || b|0x20 >= 'a' && b|0x20 <= 'z' }
func isDigit(b byte) bool  { return b >= '0' && b <= '9' }

// span returns how many bytes at the start of s satisfy the test.
func span(s string, ok func(byte) bool) int {
	n := 0
	for n < len(s) && ok(s[n]) {
		n++
	}
	return n
}

// number reads digits with an optional fraction and exponent, or 0x and digits.
func (p *parser) number(pos int, rest string) {
	n := 0
	if strings.HasPrefix(rest, "0x") || strings.HasPrefix(rest, "0X") {
		n = 2 + span(rest[2:], func(b byte) bool { return isDigit(b) || b|0x20 >= 'a' && b|0x20 <= 'f' })
	} else {
		n = span(rest, isDigit)
		if n < len(rest) && rest[n] == '.' {
			n += 1 + span(rest[n+1:], isDigit)
		}
		n += exponent(rest[n:])
	}
	if n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n]) || rest[n] == '.') {
		p.failAt(pos, "malformed number %q", shorten(rest[:n+1]))
		return
	}
	p.take(number, pos, n)
}

// exponent returns the length of an exponent at the start of s.
func exponent(s string) int {
	if s == "" || s[0]|0x20 != 'e' {
		return 0
	}
	n := 1
	if n < len(s) && (s[n] == '+' || s[n] == '-') {
		n++
	}
	digits := span(s[n:], isDigit)
	if digits == 0 {
		return 0
	}
	return n + digits
}

// quoted reads to the closing quote; a doubled one stands for itself.
func (p *parser) quoted(k kind, pos int) {
	quote := p.in[pos]
	var b strings.Builder
	for i := pos + 1; i < len(p.in); i++ {
		if p.in[i] != quote {
			b.WriteByte(p.in[i])
			continue
		}
		if i+1 == len(p.in) || p.in[i+1] != quote {
			p.at, p.tok = i+1, token{kind: k, text: b.String(), pos: pos}
			return
		}
		b.WriteByte(quote)
		i++
	}
	p.failAt(pos, "quote %c is not closed", quote)
}

// is reports whether the current token is the given mark or keyword.
func (p *parser) is(what string) bool {
	return p.tok.kind == punct && p.tok.text == what || p.tok.kind == word && strings.EqualFold(p.tok.text, what)
}

// accept reads the given mark or keyword if it is the current token.
func (p *parser) accept(what string) bool {
	if !p.is(what) {
		return false
	}
	p.next()
	return true
}

// require reads the given mark or keyword.
func (p *parser) require(what string) {
	if !p.accept(what) {
		p.expected(what)
	}
}

var keywords = []string{"and", "or", "not", "in", "between", "like", "is", "null", "true", "false"}

func isKeyword(s string) bool {
	for _, k := range keywords {
		if strings.EqualFold(s, k) {
			return true
		}
	}
	return false
}

// atName reports whether the current token is a column name.
func (p *parser) atName() bool {
	return p.tok.kind == name || p.tok.kind == word && !isKeyword(p.tok.text)
}

// columnName reads a column name.
func (p *parser) columnName() string {
	if !p.atName() {
		p.expected("a column name")
		return ""
	}
	s := p.tok.text
	p.next()
	return s
}

// list reads one or more items separated by commas to the end.
func (p *parser) list(item func()) error {
	for {
		item()
		if p.tok.kind == end {
			return p.err
		}
		p.require(",")
	}
}

// quoteName is schema.QuoteName for expressions, where keywords need quotes too.
func quoteName(s string) string {
	if isKeyword(s) {
		return `"` + s + `"`
	}
	return schema.QuoteName(s)
}
