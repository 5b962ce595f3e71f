package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseColumns parses a comma-separated list of column definitions:
//
//	name type [null | not null] [default V] [immutable]
//	          [encoding E] [compression C] [page BYTES]
//
// The attributes may stand in any order, each once; a column is not null unless it
// says null. Types are int8, int16, int32, int64, string, bool, float, double,
// binary, unixtime_micros, date, decimal(P,S) and varchar(N). A name that is not
// [A-Za-z_][A-Za-z0-9_]* is double-quoted, with "" for a quote in it. A default is a
// number, true, false, null, or a quoted literal 'it”s' that is parsed as the
// column's type. Words are not case-sensitive, names are. An error is a
// [SchemaError] that says where and what was expected.
func ParseColumns(text string) ([]Column, error) {
	p := &columnParser{text: text}
	p.next()
	var cols []Column
	for {
		c := p.column()
		if p.err != nil {
			return nil, p.err
		}
		cols = append(cols, c)
		if p.tok == "" && p.kind == tokEnd {
			return cols, nil
		}
		p.expect(",")
	}
}

type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokWord             // letters, digits and anything else that is not one of the others
	tokName             // "…", its text unescaped
	tokString           // '…', its text unescaped
	tokPunct            // one of , ( )
)

// columnParser reads tokens and keeps the first error; after one it sees the end.
type columnParser struct {
	text  string
	at    int // end of the token
	start int // start of the token
	kind  tokenKind
	tok   string
	name  string // of the column that is being read
	err   error
}

func (p *columnParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &SchemaError{Column: p.name, Reason: fmt.Sprintf(format, args...) + fmt.Sprintf(" at position %d", p.start+1)}
	}
	p.kind, p.tok, p.at = tokEnd, "", len(p.text)
}

// found describes the current token.
func (p *columnParser) found() string {
	if p.kind == tokEnd {
		return "found the end"
	}
	return "found " + shorten(p.tok)
}

// next reads the next token.
func (p *columnParser) next() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	p.start = p.at
	if p.at == len(p.text) {
		p.kind, p.tok = tokEnd, ""
		return
	}
	switch b := p.text[p.at]; b {
	case ',', '(', ')':
		p.at++
		p.kind, p.tok = tokPunct, p.text[p.start:p.at]
	case '"':
		p.kind = tokName
		p.quoted(b)
	case '\'':
		p.kind = tokString
		p.quoted(b)
	default:
		n := strings.IndexAny(p.text[p.at:], " \t\r\n,()\"'")
		if n < 0 {
			n = len(p.text) - p.at
		}
		p.at += n
		p.kind, p.tok = tokWord, p.text[p.start:p.at]
	}
}

// quoted reads to the closing quote; a doubled one stands for itself.
func (p *columnParser) quoted(quote byte) {
	var b strings.Builder
	for i := p.at + 1; i < len(p.text); i++ {
		if p.text[i] != quote {
			b.WriteByte(p.text[i])
			continue
		}
		if i+1 == len(p.text) || p.text[i+1] != quote {
			p.at, p.tok = i+1, b.String()
			return
		}
		b.WriteByte(quote)
		i++
	}
	p.fail("quote %c is not closed", quote)
}

// expect reads a punctuation mark.
func (p *columnParser) expect(mark string) {
	if p.kind != tokPunct || p.tok != mark {
		p.fail("expected %q, %s", mark, p.found())
		return
	}
	p.next()
}

// accept reads the given word if it is the current token.
func (p *columnParser) accept(word string) bool {
	if p.kind != tokWord || !strings.EqualFold(p.tok, word) {
		return false
	}
	p.next()
	return true
}

// word reads any word, in lower case.
func (p *columnParser) word(what string) string {
	if p.kind != tokWord {
		p.fail("expected %s, %s", what, p.found())
		return ""
	}
	w := strings.ToLower(p.tok)
	p.next()
	return w
}

func (p *columnParser) column() Column {
	p.name = ""
	var c Column
	switch {
	case p.kind == tokName, p.kind == tokWord && IsBareName(p.tok):
		c.Name = p.tok
	case p.kind == tokWord:
		p.fail("expected a column name, found %s, which needs double quotes", shorten(p.tok))
	default:
		p.fail("expected a column name, %s", p.found())
	}
	p.name = c.Name
	p.next()
	p.columnType(&c)
	for seen := map[string]bool{}; p.kind == tokWord; {
		p.attribute(&c, seen)
	}
	if c.Default.IsNull() {
		return c
	}
	c.ReadDefault = c.Default
	return c
}

func (p *columnParser) columnType(c *Column) {
	start := p.start
	name := p.word("a type")
	switch name {
	case "decimal":
		c.Type = Decimal32
		p.decimalType(c)
	case "varchar":
		c.Type = Varchar
		p.expect("(")
		c.Length = uint16(p.number("a length", 1, 65535))
		p.expect(")")
	default:
		for t := range typeInfos {
			if typeInfos[t].name == name {
				c.Type = Type(t)
			}
		}
		if c.Type == 0 && p.err == nil {
			p.start = start
			p.fail("unknown type %s", shorten(name))
		}
	}
}

// decimalType reads (P) or (P,S).
func (p *columnParser) decimalType(c *Column) {
	p.expect("(")
	c.Precision = uint8(p.number("a precision", 1, maxPrecision))
	if p.kind == tokPunct && p.tok == "," {
		p.next()
		c.Scale = uint8(p.number("a scale", 0, int(c.Precision)))
	}
	p.expect(")")
	if p.err == nil {
		c.Type, _ = DecimalType(int(c.Precision))
	}
}

func (p *columnParser) number(what string, lo, hi int) int {
	n, err := strconv.ParseUint(p.tok, 10, 31)
	if p.kind != tokWord || err != nil || int(n) < lo || int(n) > hi {
		p.fail("expected %s from %d to %d, %s", what, lo, hi, p.found())
		return lo
	}
	p.next()
	return int(n)
}

func (p *columnParser) attribute(c *Column, seen map[string]bool) {
	start := p.start
	word := p.word("an attribute")
	key := word
	if word == "not" {
		key = "null"
	}
	if seen[key] {
		p.start = start
		p.fail("%s is given twice", key)
		return
	}
	seen[key] = true
	switch word {
	case "null":
		c.Nullable = true
	case "not":
		if !p.accept("null") {
			p.fail("expected null after not, %s", p.found())
		}
	case "immutable":
		c.Immutable = true
	case "default":
		p.defaultValue(c)
	case "encoding":
		p.encoding(c)
	case "compression":
		p.compression(c)
	case "page":
		c.BlockSize = p.number("a number of bytes", 1, 1<<30)
	default:
		p.start = start
		p.fail("expected null, not null, default, immutable, encoding, compression or page, found %s", shorten(word))
	}
}

// defaultValue reads a quoted literal or a bare word. Bare text is refused for text
// columns, where a forgotten quote would pass for a value.
func (p *columnParser) defaultValue(c *Column) {
	quoted := p.kind == tokString
	switch {
	case p.accept("null"):
		return
	case p.kind != tokWord && !quoted:
		p.fail("expected a default value, %s", p.found())
		return
	case !quoted && c.Type.IsText():
		p.fail("expected a default in single quotes, %s", p.found())
		return
	}
	v, err := c.Parse(p.tok)
	if err != nil {
		p.fail("default %s: %s", shorten(p.tok), err.(*ValueError).Reason)
		return
	}
	c.Default = v
	p.next()
}

func (p *columnParser) encoding(c *Column) {
	start := p.start
	name := p.word("an encoding")
	e, ok := ParseEncoding(name)
	if !ok && p.err == nil {
		p.start = start
		p.fail("unknown encoding %s", shorten(name))
	}
	c.Encoding = e
}

func (p *columnParser) compression(c *Column) {
	start := p.start
	name := p.word("a compression")
	z, ok := ParseCompression(name)
	if !ok && p.err == nil {
		p.start = start
		p.fail("unknown compression %s", shorten(name))
	}
	c.Compression = z
}

// IsBareName reports whether a name needs no quotes: [A-Za-z_][A-Za-z0-9_]*.
func IsBareName(s string) bool {
	for i := 0; i < len(s); i++ {
		b := s[i]
		letter := b == '_' || b|0x20 >= 'a' && b|0x20 <= 'z'
		if !letter && (i == 0 || b < '0' || b > '9') {
			return false
		}
	}
	return s != ""
}

// QuoteName returns a name as an expression or a column definition spells it: as it
// is, or in double quotes.
func QuoteName(s string) string {
	if IsBareName(s) {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// String returns the column's definition in the grammar of [ParseColumns], which
// knows no ids and no read default of its own.
func (c *Column) String() string {
	b := []byte(QuoteName(c.Name) + " " + c.TypeString())
	if c.Nullable {
		b = append(b, " null"...)
	}
	if !c.Default.IsNull() {
		b = c.appendDefault(append(b, " default "...))
	}
	if c.Immutable {
		b = append(b, " immutable"...)
	}
	if c.Encoding != EncodingAuto {
		b = append(append(b, " encoding "...), c.Encoding.String()...)
	}
	if c.Compression != CompressionDefault {
		b = append(append(b, " compression "...), c.Compression.String()...)
	}
	if c.BlockSize != 0 {
		b = strconv.AppendInt(append(b, " page "...), int64(c.BlockSize), 10)
	}
	return string(b)
}

func (c *Column) appendDefault(dst []byte) []byte {
	if !c.Type.IsText() && c.Type != UnixtimeMicros && c.Type != Date {
		return c.Format(dst, c.Default)
	}
	text := string(c.Format(nil, c.Default))
	return append(append(append(dst, '\''), strings.ReplaceAll(text, "'", "''")...), '\'')
}
