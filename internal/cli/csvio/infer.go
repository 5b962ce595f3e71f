package csvio

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"unsafe"

	"github.com/minikudu/minikudu/schema"
)

// Infer reads a whole file and returns its columns, all nullable, with the types that
// every value of each column has, and the number of rows. In this order:
//
//   - int64: decimal digits with an optional minus
//   - double: the same with a fraction or an exponent; beside such numbers also
//     integers up to 2^53, NaN, Infinity and -Infinity
//   - bool: true and false in any case
//   - date: 2006-01-02
//   - unixtime_micros: what [schema.ParseTimestamp] reads, dates among them
//   - string: everything else
//
// A number with a leading zero, an integer that does not fit, or a quoted empty field
// makes its column a string, so that nothing is lost; so do NA, None and null, which
// are text. Null fields say nothing, and a column of nothing else is a string. Rows
// with too few or too many fields, which a [Reader] rejects, are not looked at.
func Infer(r io.Reader) (cols []schema.Column, rows int64, err error) {
	s := NewScanner(r)
	header, err := readHeader(s)
	if err != nil {
		return nil, 0, err
	}
	guesses := make([]guess, len(header))
	for i := range guesses {
		guesses[i].can = asInt | asDouble | asBool | asDate | asTime
	}
	for {
		fields, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		if isBlank(fields, len(header)) {
			continue
		}
		rows++
		if len(fields) != len(header) {
			continue
		}
		for i, f := range fields {
			guesses[i].add(f)
		}
	}
	for i, name := range header {
		cols = append(cols, schema.Column{Name: name, Type: guesses[i].columnType(), Nullable: true})
	}
	return cols, rows, nil
}

// isBlank reports whether a record is a blank line that is no row.
func isBlank(fields []Field, columns int) bool {
	return columns > 1 && len(fields) == 1 && fields[0].IsNull()
}

// class is a set of types that a value could have.
type class uint8

const (
	asInt class = 1 << iota
	asDouble
	asBool
	asDate
	asTime
)

// guess is what the values of a column have in common so far.
type guess struct {
	can    class
	seen   bool // a value that is not null
	number bool // a value that is a finite number
}

func (g *guess) add(f Field) {
	if g.can == 0 && g.seen || f.IsNull() {
		return
	}
	g.seen = true
	s := view(f.Text)
	n := numberClass(s)
	g.number = g.number || n != 0
	if n == 0 {
		n = otherClass(s)
	}
	g.can &= n
}

// view returns b as a string that shares its memory.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// maxExactInt is the largest integer up to which a double holds every one.
const maxExactInt = 1 << 53

func numberClass(s string) class {
	body := strings.TrimPrefix(s, "-")
	whole := digits(body)
	switch {
	case whole > 1 && body[0] == '0', len(s) > 1000:
		return 0
	case whole == len(body) && whole > 0:
		return integerClass(s)
	}
	n := whole
	if strings.HasPrefix(body[n:], ".") {
		n += 1 + digits(body[n+1:])
	}
	if n == 0 || n == 1 && whole == 0 || n < len(body) && body[n]|0x20 != 'e' {
		return 0
	}
	if strings.ContainsRune(body[n:], '_') {
		return 0
	}
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return 0
	}
	return asDouble
}

func integerClass(s string) class {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil:
		return 0
	case n == 0 && s[0] == '-':
		return asDouble
	case n < -maxExactInt || n > maxExactInt:
		return asInt
	}
	return asInt | asDouble
}

// digits returns how many digits s starts with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func otherClass(s string) class {
	switch {
	case s == "NaN", s == "Infinity", s == "-Infinity":
		return asDouble
	case strings.EqualFold(s, "true"), strings.EqualFold(s, "false"):
		return asBool
	}
	if _, ok := schema.ParseDate(s); ok {
		return asDate | asTime
	}
	if _, ok := schema.ParseTimestamp(s); ok {
		return asTime
	}
	return 0
}

func (g *guess) columnType() schema.Type {
	switch {
	case !g.seen:
		return schema.String
	case g.can&asInt != 0:
		return schema.Int64
	case g.can&asDouble != 0 && g.number:
		return schema.Double
	case g.can&asBool != 0:
		return schema.Bool
	case g.can&asDate != 0:
		return schema.Date
	case g.can&asTime != 0:
		return schema.UnixtimeMicros
	}
	return schema.String
}
