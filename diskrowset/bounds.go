package diskrowset

import (
	"bytes"

	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// keyBound holds the smallest and largest cell of a key column.
type keyBound struct {
	col      int // position in the key
	kind     schema.Kind
	lo, hi   int64 // integers up to 64 bits
	min, max schema.Value
}

// keyBounds returns the known bounds.
func keyBounds(s *schema.Schema, all []rowset.Bounds) []keyBound {
	var out []keyBound
	for i, b := range all {
		if i >= s.NumKey() || b.Min.IsNull() || b.Max.IsNull() {
			continue
		}
		out = append(out, keyBound{col: i, kind: s.Column(i).Kind(), lo: b.Min.Int(), hi: b.Max.Int(), min: b.Min, max: b.Max})
	}
	return out
}

// keep returns which without the keys whose cell of the column lies outside.
func (b *keyBound) keep(keys *rowset.Keys, which []int32) []int32 {
	v := keys.Columns[b.col]
	switch b.kind {
	case schema.KindInt8:
		return keepInts[int8](b, keys, v, which)
	case schema.KindInt16:
		return keepInts[int16](b, keys, v, which)
	case schema.KindInt32:
		return keepInts[int32](b, keys, v, which)
	case schema.KindInt64:
		return keepInts[int64](b, keys, v, which)
	case schema.KindInt128:
		return keepInt128(b, keys, v, which)
	}
	return keepBytes(b, keys, v, which)
}

func keepInts[T int8 | int16 | int32 | int64](b *keyBound, keys *rowset.Keys, v *vector.Vector, which []int32) []int32 {
	vals, lo, hi := vector.Values[T](v), T(b.lo), T(b.hi)
	n := 0
	for _, k := range which {
		if x := vals[keys.ColumnRow(int(k))]; x >= lo && x <= hi {
			which[n] = k
			n++
		}
	}
	return which[:n]
}

func keepInt128(b *keyBound, keys *rowset.Keys, v *vector.Vector, which []int32) []int32 {
	vals, lo, hi := vector.Values[schema.Int128](v), b.min.Int128(), b.max.Int128()
	n := 0
	for _, k := range which {
		if x := vals[keys.ColumnRow(int(k))]; x.Cmp(lo) >= 0 && x.Cmp(hi) <= 0 {
			which[n] = k
			n++
		}
	}
	return which[:n]
}

func keepBytes(b *keyBound, keys *rowset.Keys, v *vector.Vector, which []int32) []int32 {
	lo, hi := b.min.Str(), b.max.Str()
	n := 0
	for _, k := range which {
		if x := v.BytesAt(keys.ColumnRow(int(k))); string(x) >= lo && string(x) <= hi {
			which[n] = k
			n++
		}
	}
	return which[:n]
}

// narrow returns the rows of [from, to) in a page, ascending there, whose cell equals
// cell k of want.
func narrow(page *vector.Vector, from, to int, want *vector.Vector, k int) (int, int) {
	switch page.Kind() {
	case schema.KindInt8:
		return narrowInts(vector.Values[int8](page), from, to, vector.Values[int8](want)[k])
	case schema.KindInt16:
		return narrowInts(vector.Values[int16](page), from, to, vector.Values[int16](want)[k])
	case schema.KindInt32:
		return narrowInts(vector.Values[int32](page), from, to, vector.Values[int32](want)[k])
	case schema.KindInt64:
		return narrowInts(vector.Values[int64](page), from, to, vector.Values[int64](want)[k])
	case schema.KindInt128:
		vals, x := vector.Values[schema.Int128](page), vector.Values[schema.Int128](want)[k]
		from = search(from, to, func(i int) bool { return vals[i].Cmp(x) >= 0 })
		return from, search(from, to, func(i int) bool { return vals[i].Cmp(x) > 0 })
	}
	x := want.BytesAt(k)
	if from < to && bytes.Equal(page.BytesAt(from), x) && bytes.Equal(page.BytesAt(to-1), x) { // as leading columns go
		return from, to
	}
	from = search(from, to, func(i int) bool { return bytes.Compare(page.BytesAt(i), x) >= 0 })
	return from, search(from, to, func(i int) bool { return bytes.Compare(page.BytesAt(i), x) > 0 })
}

func narrowInts[T int8 | int16 | int32 | int64](vals []T, from, to int, x T) (int, int) {
	if from < to && vals[from] == x && vals[to-1] == x { // as leading columns go
		return from, to
	}
	lo, hi := around(vals, from, to, x)
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); vals[m] < x {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == to || vals[lo] != x {
		return lo, lo
	}
	if lo+1 == to || vals[lo+1] != x { // the usual end of the last key column
		return lo, lo + 1
	}
	return lo, search(lo+1, to, func(i int) bool { return vals[i] > x })
}

// around returns bounds of where x belongs among the ascending vals [from, to): those
// before lo are below it, those from hi on are not. It guesses by the first and the last one
// and doubles the distance from there, so that evenly spaced values, as times and ids often
// are, cost one look into memory and not one for every halving (interpolation search,
// Peterson, "Addressing for random-access storage", 1957).
func around[T int8 | int16 | int32 | int64](vals []T, from, to int, x T) (lo, hi int) {
	if to-from < minGuess || x <= vals[from] || x >= vals[to-1] {
		return from, to
	}
	first, last := float64(vals[from]), float64(vals[to-1])
	guess := min(max(from+int((float64(x)-first)/(last-first)*float64(to-1-from)), from), to-1)
	if vals[guess] < x {
		lo = guess + 1
		for step := 1; lo+step <= to; step *= 2 {
			if vals[lo+step-1] >= x {
				return lo, lo + step - 1
			}
			lo += step
		}
		return lo, to
	}
	hi = guess
	for step := 1; hi-step >= from; step *= 2 {
		if vals[hi-step] < x {
			return hi - step + 1, hi
		}
		hi -= step
	}
	return from, hi
}

// minGuess is the number of values from which on a guess is worth it.
const minGuess = 16

// search returns the first i of [from, to) for which f holds, to when there is none;
// once f holds it holds for all that follow.
func search(from, to int, f func(int) bool) int {
	for from < to {
		if m := int(uint(from+to) >> 1); f(m) {
			to = m
		} else {
			from = m + 1
		}
	}
	return from
}
