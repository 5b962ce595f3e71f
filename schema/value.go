package schema

import (
	"cmp"
	"math"
	"math/bits"
	"strings"
)

// Int128 is a signed 128-bit integer in two's complement. In a vector it is laid
// out as Arrow's decimal128: the low word first.
type Int128 struct {
	Lo uint64
	Hi int64
}

// Int128From returns v sign-extended to 128 bits.
func Int128From(v int64) Int128 { return Int128{Lo: uint64(v), Hi: v >> 63} }

// Cmp returns -1, 0 or 1 as a is less than, equal to or greater than b.
func (a Int128) Cmp(b Int128) int {
	if a.Hi != b.Hi {
		return cmp.Compare(a.Hi, b.Hi)
	}
	return cmp.Compare(a.Lo, b.Lo)
}

// Add returns a+b and whether the sum fits 128 bits.
func (a Int128) Add(b Int128) (Int128, bool) {
	lo, carry := bits.Add64(a.Lo, b.Lo, 0)
	hi, _ := bits.Add64(uint64(a.Hi), uint64(b.Hi), carry)
	sum := Int128{Lo: lo, Hi: int64(hi)}
	overflow := (a.Hi < 0) == (b.Hi < 0) && (sum.Hi < 0) != (a.Hi < 0)
	return sum, !overflow
}

// Int64 returns the value as an int64 and whether it fits one.
func (a Int128) Int64() (int64, bool) {
	v := int64(a.Lo)
	return v, a.Hi == v>>63
}

// Value is one cell: null, or a value of a physical kind. The zero Value is null.
// Values are immutable and may be compared with == only for identity of bits; use
// [Value.Compare] for order.
type Value struct {
	kind Kind
	num  uint64 // bool 0/1, integers sign-extended (low word of Int128), float bits
	hi   int64  // high word of Int128
	str  string // KindBytes
}

// Null is the null value.
var Null = Value{}

// BoolValue returns a value of KindBool.
func BoolValue(b bool) Value {
	v := Value{kind: KindBool}
	if b {
		v.num = 1
	}
	return v
}

// IntValue returns a value of an integer kind up to 64 bits. The number must fit
// the kind; see [Column.Convert] for a checked conversion.
func IntValue(k Kind, n int64) Value { return Value{kind: k, num: uint64(n)} }

// Int128Value returns a value of KindInt128.
func Int128Value(n Int128) Value { return Value{kind: KindInt128, num: n.Lo, hi: n.Hi} }

// Float32Value returns a value of KindFloat32.
func Float32Value(f float32) Value {
	return Value{kind: KindFloat32, num: uint64(math.Float32bits(f))}
}

// Float64Value returns a value of KindFloat64.
func Float64Value(f float64) Value { return Value{kind: KindFloat64, num: math.Float64bits(f)} }

// BytesValue returns a value of KindBytes that holds a copy of b.
func BytesValue(b []byte) Value { return Value{kind: KindBytes, str: string(b)} }

// StringValue returns a value of KindBytes.
func StringValue(s string) Value { return Value{kind: KindBytes, str: s} }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.kind == 0 }

// Kind returns the physical kind, 0 for null.
func (v Value) Kind() Kind { return v.kind }

// Bool returns the value of KindBool.
func (v Value) Bool() bool { return v.num != 0 }

// Int returns the value of an integer kind up to 64 bits, or of KindBool as 0 or 1.
func (v Value) Int() int64 { return int64(v.num) }

// Int128 returns the value of any integer kind.
func (v Value) Int128() Int128 {
	if v.kind == KindInt128 {
		return Int128{Lo: v.num, Hi: v.hi}
	}
	return Int128From(int64(v.num))
}

// Float returns the value of KindFloat32 or KindFloat64.
func (v Value) Float() float64 {
	if v.kind == KindFloat32 {
		return float64(math.Float32frombits(uint32(v.num)))
	}
	return math.Float64frombits(v.num)
}

// Float32 returns the value of KindFloat32.
func (v Value) Float32() float32 { return math.Float32frombits(uint32(v.num)) }

// Str returns the bytes of KindBytes as a string.
func (v Value) Str() string { return v.str }

// IsNaN reports whether the value is a float or double that is not a number.
func (v Value) IsNaN() bool { return v.kind.IsFloat() && v.Float() != v.Float() }

// Compare orders two values of the same kind: -1, 0 or 1. Null sorts before every
// value and, for the sake of a total order, NaN after every number; -0 equals +0.
// Predicates do not use this order for NaN, see the package comment.
func (v Value) Compare(w Value) int {
	if v.kind == 0 || w.kind == 0 {
		return cmp.Compare(v.kind, w.kind)
	}
	switch {
	case v.kind == KindBytes:
		return strings.Compare(v.str, w.str)
	case v.kind.IsFloat():
		return compareFloat(v.Float(), w.Float())
	case v.kind == KindInt128:
		return v.Int128().Cmp(w.Int128())
	}
	return cmp.Compare(int64(v.num), int64(w.num))
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	case a == a:
		return -1 // b is NaN
	case b == b:
		return 1
	}
	return 0
}
