package predicate

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/minikudu/minikudu/schema"
)

// literal is a constant placed in the order of a column: the cells below it end at
// below, those above it start at above, and what lies between equals it. A number
// that is no cell of the column (fractional, out of range) has nothing between.
type literal struct {
	below, above cut
	null, nan    bool
}

// equal returns the cells that equal the literal.
func (l literal) equal() span { return span{l.below, l.above} }

func exactly(k key, kind schema.Kind) literal {
	l := literal{below: before(k), above: after(k, kind)}
	if kind.IsFloat() && (k == intKey(0) || k == intKey(-1)) { // +0 and -0
		l.below, l.above = before(intKey(-1)), before(intKey(1))
	}
	return l
}

func between(c cut) literal { return literal{below: c, above: c} }

// literalError reports a literal that the column's type does not admit.
func literalError(c *schema.Column, v any, reason string) error {
	text := fmt.Sprintf("%T", v)
	if s, ok := v.(string); ok {
		text = "text " + strconv.Quote(shorten(s))
	}
	return &schema.ValueError{Row: -1, Column: c.Name, Want: c.TypeString(), Given: text, Reason: reason}
}

func shorten(s string) string {
	const most = 37
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// literalOf places a Go value in the order of column c.
func literalOf(c *schema.Column, v any) (literal, error) {
	switch x := v.(type) {
	case nil:
		return literal{null: true}, nil
	case schema.Value:
		return valueLiteral(c, x)
	case time.Time:
		if n := timeNumber(c, x); n != nil {
			return integerLiteral(c, new(big.Rat).SetInt(n)), nil
		}
	default:
		return plainLiteral(c, reflect.ValueOf(v), v)
	}
	return literal{}, mismatch(c, v)
}

func mismatch(c *schema.Column, v any) error {
	return literalError(c, v, "does not compare with this type")
}

// plainLiteral places a value of a basic type, of a named type of one, or a pointer
// to one.
func plainLiteral(c *schema.Column, r reflect.Value, given any) (literal, error) {
	kind := c.Kind()
	switch k := r.Kind(); {
	case k == reflect.Pointer && r.IsNil(), k == reflect.Slice && r.IsNil():
		return literal{null: true}, nil
	case k == reflect.Pointer:
		return literalOf(c, r.Elem().Interface())
	case k == reflect.String:
		return textLiteral(c, r.String())
	case k == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8 && kind == schema.KindBytes:
		return exactly(key{s: string(r.Bytes())}, kind), nil
	case k == reflect.Bool && kind == schema.KindBool:
		return valueLiteral(c, schema.BoolValue(r.Bool()))
	case r.CanInt() && isNumeric(c):
		return exactNumber(c, new(big.Rat).SetInt64(r.Int())), nil
	case r.CanUint() && isNumeric(c):
		return exactNumber(c, new(big.Rat).SetUint64(r.Uint())), nil
	case r.CanFloat() && isNumeric(c):
		return floatLiteral(c, r.Float(), r.Type().Bits(), given)
	}
	return literal{}, mismatch(c, given)
}

func isNumeric(c *schema.Column) bool { return c.Kind().IsInteger() || c.Kind().IsFloat() }

// valueLiteral places a cell: its kind must be the column's, and the number of a
// decimal is unscaled.
func valueLiteral(c *schema.Column, v schema.Value) (literal, error) {
	switch {
	case v.IsNull():
		return literal{null: true}, nil
	case v.Kind() != c.Kind():
		return literal{}, literalError(c, v, "is a value of kind "+v.Kind().String())
	case v.IsNaN():
		return literal{nan: true}, nil
	}
	return exactly(keyOf(v), c.Kind()), nil
}

// textLiteral parses text as the column's type. Numbers may have a fraction or lie
// out of range, as Go numbers may.
func textLiteral(c *schema.Column, s string) (literal, error) {
	if c.Kind() == schema.KindBytes && c.Type != schema.Binary { // no length limit: longer text is just unequal
		return exactly(key{s: s}, schema.KindBytes), nil
	}
	if !isNumeric(c) || c.Type == schema.Date || c.Type == schema.UnixtimeMicros {
		v, err := c.Parse(s)
		if err != nil {
			return literal{}, err
		}
		return valueLiteral(c, v)
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil && !isRangeError(err) {
		return literal{}, literalError(c, s, "is not a number")
	}
	n, ok := decimalText(strings.TrimSpace(s))
	switch {
	case c.Kind().IsFloat() && err == nil:
		return floatLiteral(c, f, 64, s)
	case ok:
		return exactNumber(c, n), nil
	}
	return floatLiteral(c, f, 64, s)
}

func isRangeError(err error) bool {
	e, ok := err.(*strconv.NumError)
	return ok && e.Err == strconv.ErrRange
}

// decimalText reads a plain decimal number exactly. A number beyond every column
// type's range or resolution is replaced by one that compares the same, so that an
// exponent costs no memory.
func decimalText(s string) (*big.Rat, bool) {
	if len(s) > 1000 || strings.Trim(s, "0123456789+-.eE") != "" {
		return nil, false
	}
	mantissa := strings.FieldsFunc(s, func(r rune) bool { return r == 'e' || r == 'E' })
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case len(mantissa) == 0 || err != nil && !isRangeError(err):
		return nil, false
	case math.Abs(f) > 1e300:
		n := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 1100))
		if f < 0 {
			n.Neg(n)
		}
		return n, true
	case math.Abs(f) < 1e-300:
		n := new(big.Rat)
		if strings.Trim(mantissa[0], "+-0.") != "" { // not zero: 2**-200 is finer than 38 digits
			n.SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), 200))
		}
		if s[0] == '-' {
			n.Neg(n)
		}
		return n, true
	}
	return new(big.Rat).SetString(s)
}

// exactNumber places an exact number in the order of a numeric column.
func exactNumber(c *schema.Column, n *big.Rat) literal {
	if c.Kind().IsFloat() {
		return exactFloat(c.Kind(), n)
	}
	if c.Type.IsDecimal() {
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Scale)), nil)
		n = new(big.Rat).Mul(n, new(big.Rat).SetInt(scale))
	}
	return integerLiteral(c, n)
}

// integerLiteral places a number among the integers of the column's kind.
func integerLiteral(c *schema.Column, n *big.Rat) literal {
	kind := c.Kind()
	floor := new(big.Int).Div(n.Num(), n.Denom()) // Euclidean, and the divisor is positive
	switch {
	case floor.Cmp(bigFrom128(minKey(kind).n)) < 0:
		return between(before(minKey(kind)))
	case floor.Cmp(bigFrom128(maxKey(kind).n)) > 0:
		return between(cut{end: true})
	}
	k := key{n: bigTo128(floor)}
	if n.IsInt() {
		return exactly(k, kind)
	}
	return between(after(k, kind))
}

// floatLiteral places a floating-point number of the given size. In a float or double
// column it is rounded to the column's type, as storing it would round it.
func floatLiteral(c *schema.Column, f float64, bits int, given any) (literal, error) {
	kind := c.Kind()
	switch {
	case f != f:
		return literal{nan: true}, nil
	case kind == schema.KindFloat64:
		return exactly(intKey(float64Key(f)), kind), nil
	case math.IsInf(f, 0) && kind == schema.KindFloat32:
		return exactly(intKey(float32Key(float32(f))), kind), nil
	case math.IsInf(f, 1):
		return between(cut{end: true}), nil
	case math.IsInf(f, -1):
		return between(before(minKey(kind))), nil
	case kind == schema.KindFloat32 && !math.IsInf(float64(float32(f)), 0):
		return exactly(intKey(float32Key(float32(f))), kind), nil
	}
	n, ok := decimalText(strconv.FormatFloat(f, 'g', -1, bits)) // 0.1 means one tenth of a decimal
	if !ok {
		return literal{}, literalError(c, given, "is not a number")
	}
	return exactNumber(c, n), nil
}

// exactFloat places an exact number among the floats of a kind.
func exactFloat(kind schema.Kind, n *big.Rat) literal {
	var k key
	var exact bool
	var got float64
	if kind == schema.KindFloat32 {
		f, ok := n.Float32()
		k, exact, got = intKey(float32Key(f)), ok, float64(f)
	} else {
		f, ok := n.Float64()
		k, exact, got = intKey(float64Key(f)), ok, f
	}
	switch {
	case exact:
		return exactly(k, kind)
	case math.IsInf(got, 0):
		if got < 0 {
			return between(after(k, kind)) // above -Inf, below every finite number
		}
		return between(before(k))
	case new(big.Rat).SetFloat64(got).Cmp(n) > 0:
		return between(before(k))
	}
	return between(after(k, kind))
}

// timeNumber returns an instant in the column's unit, floored as storing it floors
// it, but without a limit; nil for a column that holds no time.
func timeNumber(c *schema.Column, t time.Time) *big.Int {
	n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9))
	n.Add(n, big.NewInt(int64(t.Nanosecond())))
	switch c.Type {
	case schema.UnixtimeMicros:
		return n.Div(n, big.NewInt(1000))
	case schema.Date:
		return n.Div(n, big.NewInt(24*3600*1e9))
	}
	return nil
}
