package schema

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
)

// Reasons shared by several conversions.
const (
	wrongType  = "wrong type"
	outOfRange = "out of range"
	inexact    = "not exactly representable"
	isNull     = "the column is not null"
)

// Convert returns v as a value of the column's type. It accepts, strictly:
//
//   - nil, a nil pointer or a nil []byte: null
//   - bool for bool
//   - any integer for int8 to int64 within their range, for decimals, for float and
//     double where exact, for unixtime_micros (microseconds) and date (days)
//   - float32 and float64 for double, and for float, rounded to the nearest
//   - string for string, varchar and binary as it is, and for decimals as a number
//   - []byte for string, varchar and binary
//   - time.Time for unixtime_micros and date; what is finer than a microsecond or a
//     UTC day is floored, also before 1970
//   - a [Value] of the column's kind
//   - a pointer to, and a named type of, each of these
//
// Nothing is parsed except decimals (see [Column.Parse]), cut or wrapped round. An
// error is a [ValueError] with Row -1.
func (c *Column) Convert(v any) (Value, error) { return c.ConvertLimit(v, 0) }

// ConvertLimit is Convert that also refuses cells of more than maxCell bytes; 0
// means no limit.
func (c *Column) ConvertLimit(v any, maxCell int) (Value, error) {
	switch v := v.(type) { // the commonest cells, which need neither conversion nor check
	case int64:
		if c.Type == Int64 {
			return IntValue(KindInt64, v), nil
		}
	case float64:
		if c.Type == Double {
			return Float64Value(v), nil
		}
	}
	x, reason := c.convert(v)
	if reason == "" {
		reason = c.check(x, maxCell)
	}
	if reason != "" {
		return Null, c.refuse(v, reason)
	}
	return x, nil
}

func (c *Column) convert(v any) (x Value, reason string) {
	switch v := v.(type) {
	case nil:
		return Null, ""
	case Value:
		return v, ""
	case string:
		return c.fromString(v)
	case []byte:
		return c.fromBytes(v)
	case int64:
		return c.fromInt(Int128From(v))
	case int:
		return c.fromInt(Int128From(int64(v)))
	case int32:
		return c.fromInt(Int128From(int64(v)))
	case float64:
		return c.fromFloat(v)
	case float32:
		return c.fromFloat(float64(v))
	case bool:
		return c.fromBool(v)
	case time.Time:
		return c.fromTime(v)
	}
	return c.convertReflect(reflect.ValueOf(v))
}

// convertReflect converts the less common types: pointers, the other integers and
// named types.
func (c *Column) convertReflect(v reflect.Value) (x Value, reason string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return Null, ""
		}
		if v.Elem().Kind() != reflect.Pointer {
			return c.convert(v.Elem().Interface())
		}
	case reflect.Bool:
		return c.fromBool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return c.fromInt(Int128From(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return c.fromInt(Int128{Lo: v.Uint()})
	case reflect.Float32, reflect.Float64:
		return c.fromFloat(v.Float())
	case reflect.String:
		return c.fromString(v.String())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return c.fromBytes(v.Bytes())
		}
	case reflect.Struct:
		if v.Type().ConvertibleTo(timeType) {
			return c.fromTime(v.Convert(timeType).Interface().(time.Time))
		}
	}
	return Null, wrongType
}

func (c *Column) fromBool(b bool) (Value, string) {
	if c.Type != Bool {
		return Null, wrongType
	}
	return BoolValue(b), ""
}

func (c *Column) fromInt(n Int128) (Value, string) {
	switch {
	case c.Type.IsDecimal():
		scaled, ok := n.scaleUp(int(c.Scale))
		if !ok {
			return Null, outOfRange
		}
		return c.decimal(scaled)
	case c.Kind().IsFloat():
		return c.exactFloat(n)
	case !c.Kind().IsInteger():
		return Null, wrongType
	}
	i, ok := n.Int64()
	if !ok || !fitsKind(i, c.Kind()) {
		return Null, outOfRange
	}
	return IntValue(c.Kind(), i), ""
}

// fitsKind reports whether n fits an integer kind of at most 64 bits.
func fitsKind(n int64, k Kind) bool {
	shift := 64 - 8*uint(k.Width())
	return n<<shift>>shift == n
}

func (c *Column) exactFloat(n Int128) (Value, string) {
	f := float64(n.Lo)
	if n.Hi < 0 {
		f = float64(int64(n.Lo))
	}
	if c.Type == Float {
		f = float64(float32(f))
	}
	// Converted back only where the conversion is defined: below 2^64.
	if f >= 1<<64 || n.Hi < 0 && int64(f) != int64(n.Lo) || n.Hi == 0 && uint64(f) != n.Lo {
		return Null, inexact
	}
	return c.fromFloat(f)
}

// decimal returns an unscaled number as a value of a decimal column.
func (c *Column) decimal(n Int128) (Value, string) {
	if !n.fits(int(c.Precision)) {
		return Null, outOfRange
	}
	if c.Type == Decimal128 {
		return Int128Value(n), ""
	}
	return IntValue(c.Kind(), int64(n.Lo)), ""
}

func (c *Column) fromFloat(f float64) (Value, string) {
	switch {
	case c.Type == Double:
		return Float64Value(f), ""
	case c.Type != Float:
		return Null, wrongType
	case math.IsInf(float64(float32(f)), 0) && !math.IsInf(f, 0):
		return Null, outOfRange
	}
	return Float32Value(float32(f)), ""
}

func (c *Column) fromString(s string) (Value, string) {
	switch {
	case c.Kind() == KindBytes:
		return StringValue(s), ""
	case c.Type.IsDecimal():
		n, reason := ParseDecimal(s, int(c.Scale))
		if reason != "" {
			return Null, reason
		}
		return c.decimal(n)
	}
	return Null, wrongType
}

func (c *Column) fromBytes(b []byte) (Value, string) {
	switch {
	case b == nil:
		return Null, ""
	case c.Kind() == KindBytes:
		return BytesValue(b), ""
	}
	return Null, wrongType
}

func (c *Column) fromTime(t time.Time) (Value, string) {
	switch c.Type {
	case UnixtimeMicros:
		if us, ok := TimeMicros(t); ok {
			return IntValue(KindInt64, us), ""
		}
		return Null, outOfRange
	case Date:
		if day, _ := floorDiv(t.Unix(), secondsPerDay); day >= MinDate && day <= MaxDate {
			return IntValue(KindInt32, day), ""
		}
		return Null, outOfRange
	}
	return Null, wrongType
}

// check says why the column cannot hold x, "" when it can.
func (c *Column) check(x Value, maxCell int) string {
	switch {
	case x.IsNull():
		if !c.Nullable {
			return isNull
		}
	case x.Kind() != c.Kind():
		return wrongType
	case x.kind == KindBytes:
		return c.checkBytes(x.str, maxCell)
	case c.Type.IsDecimal():
		if !x.Int128().fits(int(c.Precision)) {
			return outOfRange
		}
	case c.Type == Date && (x.Int() < MinDate || x.Int() > MaxDate),
		x.kind.IsInteger() && !fitsKind(x.Int(), x.kind):
		return outOfRange
	}
	return ""
}

func (c *Column) checkBytes(s string, maxCell int) string {
	if c.Type == Varchar && len(s) > int(c.Length) {
		if n := utf8.RuneCountInString(s); n > int(c.Length) {
			return fmt.Sprintf("%d characters, at most %d", n, c.Length)
		}
	}
	if maxCell > 0 && len(s) > maxCell {
		return fmt.Sprintf("%d bytes, at most %d", len(s), maxCell)
	}
	return ""
}

// refuse returns the error for a Go value that the column does not take.
func (c *Column) refuse(given any, reason string) error {
	e := &ValueError{Row: -1, Column: c.Name, Want: c.TypeString(), Given: describe(given), Reason: reason}
	if !c.Nullable {
		e.Want += " not null"
	}
	return e
}

// describe returns the type and at most 40 characters of a Go value. Only the head
// of a long one is looked at.
func describe(given any) string {
	switch v := given.(type) {
	case nil:
		return "null"
	case Value:
		if v.IsNull() {
			return "null"
		}
		return v.kind.String()
	case string:
		return "string " + shorten(v)
	case []byte:
		return "[]byte " + shorten(string(v[:min(len(v), maxShown+1)]))
	case time.Time:
		return "time.Time " + v.Format(time.RFC3339Nano)
	}
	v := reflect.ValueOf(given)
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "null"
		}
		if v.Elem().Kind() != reflect.Pointer {
			return "*" + describe(v.Elem().Interface())
		}
	case reflect.String:
		return v.Type().String() + " " + shorten(v.String())
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64:
		return fmt.Sprintf("%T %v", given, v)
	}
	return v.Type().String()
}

// maxShown is how many bytes of a value an error message shows at most.
const maxShown = 30

// shorten returns s quoted, cut to maxShown bytes.
func shorten(s string) string {
	if len(s) <= maxShown {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:maxShown]) + "…"
}

var timeType = reflect.TypeFor[time.Time]()

// Go returns a value of the column as a Go value: nil for null, bool, int64 for the
// integer types, float32, float64, string, []byte for binary, a time.Time in UTC for
// unixtime_micros and date, and a decimal as string. [Column.Convert] takes each of
// them back.
func (c *Column) Go(v Value) any {
	switch {
	case v.IsNull():
		return nil
	case c.Type.IsDecimal():
		return string(AppendDecimal(nil, v.Int128(), int(c.Scale)))
	case c.Type == UnixtimeMicros:
		return time.UnixMicro(v.Int()).UTC()
	case c.Type == Date:
		return time.Unix(v.Int()*secondsPerDay, 0).UTC()
	case c.Type == Binary:
		return []byte(v.str)
	}
	switch v.kind {
	case KindBool:
		return v.Bool()
	case KindFloat32:
		return v.Float32()
	case KindFloat64:
		return v.Float()
	case KindBytes:
		return v.str
	case KindInt128:
		return v.Int128().String()
	}
	return v.Int()
}
