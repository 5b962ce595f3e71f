package memrowset

import (
	"bytes"
	"math"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// zone is the smallest and largest cell of a key column. Integers of 128 bits are
// clamped to 64, which keeps their order.
type zone struct {
	used        bool   // there is a cell
	first, last []byte // of a column of variable length
	lo, hi      int64  // of an integer column
}

// zoneOf returns the zone of the picked cells, whose bytes it refers to. sorted says
// that the cells ascend, as those of the first key column do. ints is scratch memory.
func zoneOf(v *vector.Vector, p pick, sorted bool, ints *[]int64) zone {
	if sorted && p.n > 2 {
		ends := [2]int32{int32(p.row(0)), int32(p.row(p.n - 1))}
		p = pick{rows: ends[:], n: 2}
	}
	z := zone{used: p.n > 0}
	if v.Kind() == schema.KindBytes {
		z.first, z.last = bytesRange(v, p)
		return z
	}
	*ints = appendInts((*ints)[:0], v, p)
	z.lo, z.hi = intRange(*ints)
	return z
}

func bytesRange(v *vector.Vector, p pick) (first, last []byte) {
	for i := range p.n {
		b := v.BytesAt(p.row(i))
		if i == 0 || bytes.Compare(b, first) < 0 {
			first = b
		}
		if i == 0 || bytes.Compare(b, last) > 0 {
			last = b
		}
	}
	return first, last
}

func intRange(cells []int64) (lo, hi int64) {
	lo, hi = math.MaxInt64, math.MinInt64
	for _, c := range cells {
		lo, hi = min(lo, c), max(hi, c)
	}
	return lo, hi
}

// widen makes z include y, of which it keeps copies.
func (z *zone) widen(y *zone) {
	switch {
	case !y.used:
		return
	case !z.used:
		z.lo, z.hi = y.lo, y.hi
	}
	if !z.used || bytes.Compare(y.first, z.first) < 0 {
		z.first = append(z.first[:0], y.first...)
	}
	if !z.used || bytes.Compare(y.last, z.last) > 0 {
		z.last = append(z.last[:0], y.last...)
	}
	z.lo, z.hi = min(z.lo, y.lo), max(z.hi, y.hi)
	z.used = true
}

// meets reports whether the zones of one column have a value in common.
func (z *zone) meets(y *zone) bool {
	return z.used && y.used && z.lo <= y.hi && y.lo <= z.hi &&
		bytes.Compare(z.first, y.last) <= 0 && bytes.Compare(y.first, z.last) <= 0
}

// hasInt reports whether an integer lies in the zone.
func (z *zone) hasInt(c int64) bool { return z.used && z.lo <= c && c <= z.hi }

// hasBytes reports whether b lies in the zone.
func (z *zone) hasBytes(b []byte) bool {
	return z.used && bytes.Compare(z.first, b) <= 0 && bytes.Compare(b, z.last) <= 0
}

// appendInts appends the picked cells of an integer column to dst.
func appendInts(dst []int64, v *vector.Vector, p pick) []int64 {
	switch v.Kind() {
	case schema.KindInt8:
		return appendCells(dst, vector.Values[int8](v), p)
	case schema.KindInt16:
		return appendCells(dst, vector.Values[int16](v), p)
	case schema.KindInt32:
		return appendCells(dst, vector.Values[int32](v), p)
	case schema.KindInt64:
		return appendCells(dst, vector.Values[int64](v), p)
	}
	vals := vector.Values[schema.Int128](v)
	for i := range p.n {
		dst = append(dst, clamp(vals[p.row(i)]))
	}
	return dst
}

func appendCells[T int8 | int16 | int32 | int64](dst []int64, vals []T, p pick) []int64 {
	if p.rows == nil {
		for _, x := range vals[p.from : p.from+p.n] {
			dst = append(dst, int64(x))
		}
		return dst
	}
	for _, r := range p.rows {
		dst = append(dst, int64(vals[r]))
	}
	return dst
}

// clamp returns x, or the nearest 64-bit integer.
func clamp(x schema.Int128) int64 {
	v, ok := x.Int64()
	switch {
	case ok:
		return v
	case x.Hi < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}
