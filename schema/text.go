package schema

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
)

// Parse parses a literal as the column's type: decimal integers; floats in decimal,
// NaN and Infinity; true and false; decimals without exponent; RFC 3339 times or
// dates with an optional time of day, UTC where no zone is given; dates 2006-01-02;
// 0x… for binary; text as it is. Nothing stands for null. It reads back whatever
// [Column.Format] writes. An error is a [ValueError] with Row -1.
func (c *Column) Parse(text string) (Value, error) {
	x, reason := c.parse(text)
	if reason == "" {
		reason = c.check(x, 0)
	}
	if reason != "" {
		return Null, c.refuse(text, reason)
	}
	return x, nil
}

func (c *Column) parse(text string) (x Value, reason string) {
	switch c.Type {
	case String, Varchar:
		return StringValue(text), ""
	case Int8, Int16, Int32, Int64:
		return c.parseInt(text)
	case Float, Double:
		return c.parseFloat(text)
	case Bool:
		return parseBool(text)
	case Decimal32, Decimal64, Decimal128:
		return c.fromString(text)
	case UnixtimeMicros:
		if us, ok := ParseTimestamp(text); ok {
			return IntValue(KindInt64, us), ""
		}
		return Null, "not a time such as 2006-01-02T15:04:05Z"
	case Date:
		if day, ok := ParseDate(text); ok {
			return IntValue(KindInt32, int64(day)), ""
		}
		return Null, "not a date such as 2006-01-02 of the years 1 to 9999"
	case Binary:
		return parseBinary(text)
	}
	return Null, wrongType
}

func (c *Column) parseInt(text string) (Value, string) {
	n, err := strconv.ParseInt(text, 10, 8*c.Kind().Width())
	switch {
	case err == nil:
		return IntValue(c.Kind(), n), ""
	case isRange(err):
		return Null, outOfRange
	}
	return Null, "not an integer"
}

func isRange(err error) bool { return err.(*strconv.NumError).Err == strconv.ErrRange }

func (c *Column) parseFloat(text string) (Value, string) {
	if strings.ContainsAny(text, "xX_pP") {
		return Null, "not a number" // hexadecimal, and digits with underscores
	}
	f, err := strconv.ParseFloat(text, 8*c.Kind().Width())
	switch {
	case err == nil && c.Type == Float:
		return Float32Value(float32(f)), ""
	case err == nil:
		return Float64Value(f), ""
	case isRange(err):
		return Null, outOfRange
	}
	return Null, "not a number"
}

func parseBool(text string) (Value, string) {
	switch {
	case strings.EqualFold(text, "true"):
		return BoolValue(true), ""
	case strings.EqualFold(text, "false"):
		return BoolValue(false), ""
	}
	return Null, "neither true nor false"
}

func parseBinary(text string) (Value, string) {
	digits, ok := strings.CutPrefix(text, "0x")
	b, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return Null, "not hexadecimal such as 0x00ff"
	}
	return BytesValue(b), ""
}

// Format appends a value of the column, not null, as text: integers and decimals
// in decimal; floats as the shortest text that reads back the same; times in RFC
// 3339 with Z and a fraction only when not zero; dates as 2006-01-02; binary as
// 0x…; text as it is. Null appends nothing.
func (c *Column) Format(dst []byte, v Value) []byte {
	if v.kind == KindBytes {
		return c.FormatBytes(dst, v.str)
	}
	switch {
	case v.IsNull():
		return dst
	case c.Type.IsDecimal():
		return AppendDecimal(dst, v.Int128(), int(c.Scale))
	case c.Type == UnixtimeMicros:
		return AppendTimestamp(dst, v.Int())
	case c.Type == Date:
		return AppendDate(dst, v.Int())
	}
	switch v.kind {
	case KindBool:
		return strconv.AppendBool(dst, v.Bool())
	case KindFloat32:
		return AppendFloat(dst, v.Float(), 32)
	case KindFloat64:
		return AppendFloat(dst, v.Float(), 64)
	case KindInt128:
		return AppendDecimal(dst, v.Int128(), 0)
	}
	return strconv.AppendInt(dst, v.Int(), 10)
}

// FormatBytes is [Column.Format] for the bytes of one cell, so that a caller who
// holds a vector need not make a [Value].
func (c *Column) FormatBytes(dst []byte, cell string) []byte {
	if c.Type != Binary {
		return append(dst, cell...)
	}
	const digits = "0123456789abcdef"
	dst = append(dst, "0x"...)
	for i := 0; i < len(cell); i++ {
		dst = append(dst, digits[cell[i]>>4], digits[cell[i]&15])
	}
	return dst
}

// AppendFloat appends the shortest decimal text that reads back as f in the given
// number of bits, without exponent from 1e-6 up to 1e21, or NaN, Infinity, -Infinity.
func AppendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case f != f:
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	if a := math.Abs(f); a == 0 || a >= smallest(bits) && a < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, bits)
	}
	return strconv.AppendFloat(dst, f, 'e', -1, bits)
}

// smallest returns 1e-6 as the nearest number of that width, so that 1e-6 itself is
// printed alike in both.
func smallest(bits int) float64 {
	if bits == 32 {
		return float64(float32(1e-6))
	}
	return 1e-6
}
