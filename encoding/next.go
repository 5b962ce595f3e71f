package encoding

import (
	"math"
	"strings"

	"github.com/minikudu/minikudu/schema"
)

// NextValue returns the least value of the kind above v, and false when there is none:
// v is the largest, null or not a number. The next of a string is the string and a zero byte.
func NextValue(kind schema.Kind, v schema.Value) (schema.Value, bool) {
	switch {
	case v.Kind() != kind:
		return schema.Null, false
	case kind == schema.KindBytes:
		return schema.StringValue(v.Str() + "\x00"), true
	case kind == schema.KindBool:
		return schema.BoolValue(true), !v.Bool()
	case kind == schema.KindInt128:
		n, ok := v.Int128().Add(schema.Int128From(1))
		return schema.Int128Value(n), ok
	case kind == schema.KindFloat32:
		return schema.Float32Value(math.Nextafter32(v.Float32(), float32(math.Inf(1)))), v.Float() < math.Inf(1)
	case kind == schema.KindFloat64:
		return schema.Float64Value(math.Nextafter(v.Float(), math.Inf(1))), v.Float() < math.Inf(1)
	}
	_, last := intRange(kind)
	if v.Int() == last {
		return schema.Null, false
	}
	return schema.IntValue(kind, v.Int()+1), true
}

// PrevValue returns the greatest value of the kind below v, and false when there is
// none. A string has one only if it ends in a zero byte.
func PrevValue(kind schema.Kind, v schema.Value) (schema.Value, bool) {
	switch {
	case v.Kind() != kind:
		return schema.Null, false
	case kind == schema.KindBytes:
		s, ok := strings.CutSuffix(v.Str(), "\x00")
		return schema.StringValue(s), ok
	case kind == schema.KindBool:
		return schema.BoolValue(false), v.Bool()
	case kind == schema.KindInt128:
		n, ok := v.Int128().Add(schema.Int128From(-1))
		return schema.Int128Value(n), ok
	case kind == schema.KindFloat32:
		return schema.Float32Value(math.Nextafter32(v.Float32(), float32(math.Inf(-1)))), v.Float() > math.Inf(-1)
	case kind == schema.KindFloat64:
		return schema.Float64Value(math.Nextafter(v.Float(), math.Inf(-1))), v.Float() > math.Inf(-1)
	}
	first, _ := intRange(kind)
	if v.Int() == first {
		return schema.Null, false
	}
	return schema.IntValue(kind, v.Int()-1), true
}

// intRange returns the least and the greatest value of an integer kind up to 64 bits.
func intRange(kind schema.Kind) (first, last int64) {
	unused := 64 - 8*kind.Width()
	return math.MinInt64 >> unused, math.MaxInt64 >> unused
}

// IncrementKeyValues replaces a key, or a prefix of one, by the least above it: the last
// column is incremented, and where it is the largest of its kind it becomes the least and the
// column before is incremented. It reports false when every column is the largest, and
// then leaves vals as they were.
func IncrementKeyValues(vals []schema.Value) bool {
	for i := len(vals) - 1; i >= 0; i-- {
		next, ok := NextValue(vals[i].Kind(), vals[i])
		if !ok {
			continue
		}
		vals[i] = next
		for j := i + 1; j < len(vals); j++ {
			vals[j] = leastValue(vals[j].Kind())
		}
		return true
	}
	return false
}

// leastValue returns the least value of a kind that keys may have.
func leastValue(kind schema.Kind) schema.Value {
	switch kind {
	case schema.KindBytes:
		return schema.StringValue("")
	case schema.KindInt128:
		return schema.Int128Value(schema.Int128{Hi: math.MinInt64})
	}
	first, _ := intRange(kind)
	return schema.IntValue(kind, first)
}
