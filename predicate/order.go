package predicate

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
	"strings"

	"github.com/minikudu/minikudu/schema"
)

// key is a cell in the order of its column: n for fixed-width kinds, s for bytes.
// Integers and booleans are themselves; a float is its bits, turned so that signed
// integer order is numeric order, with -0 just below +0 and NaN outside
// [-Inf, +Inf].
type key struct {
	n schema.Int128
	s string
}

func (k key) cmp(l key) int {
	if c := k.n.Cmp(l.n); c != 0 {
		return c
	}
	return strings.Compare(k.s, l.s)
}

func intKey(n int64) key { return key{n: schema.Int128From(n)} }

func float64Key(f float64) int64 {
	i := int64(math.Float64bits(f))
	return i ^ (i>>63)&math.MaxInt64
}

func float32Key(f float32) int64 {
	i := int32(math.Float32bits(f))
	return int64(i ^ (i>>31)&math.MaxInt32)
}

// keyOf returns the key of a value that is neither null nor NaN.
func keyOf(v schema.Value) key {
	switch v.Kind() {
	case schema.KindBytes:
		return key{s: v.Str()}
	case schema.KindFloat32:
		return intKey(float32Key(v.Float32()))
	case schema.KindFloat64:
		return intKey(float64Key(v.Float()))
	}
	return key{n: v.Int128()}
}

// value is the inverse of keyOf for a kind that may stand in a table key.
func (k key) value(kind schema.Kind) schema.Value {
	switch kind {
	case schema.KindBytes:
		return schema.StringValue(k.s)
	case schema.KindInt128:
		return schema.Int128Value(k.n)
	case schema.KindFloat32:
		i := int32(k.n.Lo)
		return schema.Float32Value(math.Float32frombits(uint32(i ^ (i>>31)&math.MaxInt32)))
	case schema.KindFloat64:
		i := int64(k.n.Lo)
		return schema.Float64Value(math.Float64frombits(uint64(i ^ (i>>63)&math.MaxInt64)))
	case schema.KindBool:
		return schema.BoolValue(k.n.Lo != 0)
	}
	return schema.IntValue(kind, int64(k.n.Lo))
}

// minKey is the smallest key of a kind.
func minKey(kind schema.Kind) key {
	switch kind {
	case schema.KindInt8:
		return intKey(math.MinInt8)
	case schema.KindInt16:
		return intKey(math.MinInt16)
	case schema.KindInt32:
		return intKey(math.MinInt32)
	case schema.KindInt64:
		return intKey(math.MinInt64)
	case schema.KindInt128:
		return key{n: schema.Int128{Hi: math.MinInt64}}
	case schema.KindFloat32:
		return intKey(float32Key(float32(math.Inf(-1))))
	case schema.KindFloat64:
		return intKey(float64Key(math.Inf(-1)))
	}
	return key{} // false, ""
}

// maxKey is the largest key of a fixed-width kind.
func maxKey(kind schema.Kind) key {
	switch kind {
	case schema.KindBool:
		return intKey(1)
	case schema.KindInt8:
		return intKey(math.MaxInt8)
	case schema.KindInt16:
		return intKey(math.MaxInt16)
	case schema.KindInt32:
		return intKey(math.MaxInt32)
	case schema.KindInt128:
		return key{n: schema.Int128{Lo: math.MaxUint64, Hi: math.MaxInt64}}
	case schema.KindFloat32:
		return intKey(float32Key(float32(math.Inf(1))))
	case schema.KindFloat64:
		return intKey(float64Key(math.Inf(1)))
	}
	return intKey(math.MaxInt64)
}

// cut is a place between two neighbouring keys: before key, or after all of them.
type cut struct {
	key
	end bool
}

func (c cut) cmp(d cut) int {
	if c.end || d.end {
		return cmp.Compare(b2i(c.end), b2i(d.end))
	}
	return c.key.cmp(d.key)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func before(k key) cut { return cut{key: k} }

// after returns the cut behind k.
func after(k key, kind schema.Kind) cut {
	if kind == schema.KindBytes {
		return cut{key: key{s: k.s + "\x00"}}
	}
	if k.cmp(maxKey(kind)) >= 0 {
		return cut{end: true}
	}
	lo, carry := bits.Add64(k.n.Lo, 1, 0)
	return cut{key: key{n: schema.Int128{Lo: lo, Hi: k.n.Hi + int64(carry)}}}
}

// last returns the largest key below the cut, for a fixed-width kind whose minimum
// is below it.
func (c cut) last(kind schema.Kind) key {
	if c.end {
		return maxKey(kind)
	}
	lo, borrow := bits.Sub64(c.n.Lo, 1, 0)
	return key{n: schema.Int128{Lo: lo, Hi: c.n.Hi - int64(borrow)}}
}

// span is the set of keys between two cuts.
type span struct{ lo, hi cut }

func fullSpan(kind schema.Kind) span { return span{before(minKey(kind)), cut{end: true}} }

func (s span) empty() bool { return s.lo.cmp(s.hi) >= 0 }

func (s span) isFull(kind schema.Kind) bool {
	return s.hi.end && s.lo.cmp(before(minKey(kind))) <= 0
}

// point returns the only key of the span.
func (s span) point(kind schema.Kind) (key, bool) {
	if s.lo.end || after(s.lo.key, kind).cmp(s.hi) != 0 {
		return key{}, false
	}
	return s.lo.key, true
}

func (s span) has(k key) bool {
	c := before(k)
	return s.lo.cmp(c) <= 0 && c.cmp(s.hi) < 0
}

// covers reports whether t, not empty, lies within s.
func (s span) covers(t span) bool { return s.lo.cmp(t.lo) <= 0 && t.hi.cmp(s.hi) <= 0 }

func (s span) intersect(t span) span {
	if t.lo.cmp(s.lo) > 0 {
		s.lo = t.lo
	}
	if t.hi.cmp(s.hi) < 0 {
		s.hi = t.hi
	}
	return s
}

// prefixSpan returns the strings that start with prefix.
func prefixSpan(prefix string) span {
	s := span{lo: before(key{s: prefix}), hi: cut{end: true}}
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			s.hi = before(key{s: prefix[:i] + string([]byte{prefix[i] + 1})})
			break
		}
	}
	return s
}

func bigFrom128(n schema.Int128) *big.Int {
	b := new(big.Int).Lsh(big.NewInt(n.Hi), 64)
	return b.Add(b, new(big.Int).SetUint64(n.Lo))
}

// bigTo128 returns the low 128 bits of b in two's complement.
func bigTo128(b *big.Int) schema.Int128 {
	hi := new(big.Int).Rsh(b, 64)
	lo := new(big.Int).Sub(b, new(big.Int).Lsh(hi, 64))
	return schema.Int128{Lo: lo.Uint64(), Hi: hi.Int64()}
}
