package kernel

import "math/bits"

// The aggregates run over the words of a selection: 64 values at once where all are
// selected, else one by one by their bits. There are as many values as the selection has bits.

const fullWord = ^uint64(0)

// Signed is the set of integer types that sums are taken of.
type Signed interface{ int8 | int16 | int32 }

// SumSmall adds up the selected values. It cannot overflow: a vector has less than 2**31
// values of 32 bits.
func SumSmall[T Signed](vals []T, sel []uint64) int64 {
	sum, n := fastSumSmall(vals, sel)
	return sum + sumSmall(vals[64*n:], sel[n:])
}

func sumSmall[T Signed](vals []T, sel []uint64) int64 {
	var a, b int64
	for i, w := range sel {
		if w == fullWord {
			p := (*[64]T)(vals[i*64:])
			for j := 0; j < 64; j += 4 {
				q := (*[4]T)(p[j : j+4])
				a += int64(q[0]) + int64(q[1])
				b += int64(q[2]) + int64(q[3])
			}
			continue
		}
		for ; w != 0; w &= w - 1 {
			a += int64(vals[i<<6+bits.TrailingZeros64(w)])
		}
	}
	return a + b
}

// SumInt64 adds up the selected values in 128 bits.
func SumInt64(vals []int64, sel []uint64) (hi int64, lo uint64) {
	fastHi, fastLo, n := fastSumInt64(vals, sel)
	hi, lo = sumInt64(vals[64*n:], sel[n:])
	lo, c := bits.Add64(lo, fastLo, 0)
	return hi + fastHi + int64(c), lo
}

func sumInt64(vals []int64, sel []uint64) (sum int64, lo uint64) {
	var hi, c uint64
	for i, w := range sel {
		if w == fullWord {
			p := (*[64]int64)(vals[i*64:])
			for j := 0; j < 64; j += 4 {
				q := (*[4]int64)(p[j : j+4])
				lo, c = bits.Add64(lo, uint64(q[0]), 0)
				hi, _ = bits.Add64(hi, uint64(q[0]>>63), c)
				lo, c = bits.Add64(lo, uint64(q[1]), 0)
				hi, _ = bits.Add64(hi, uint64(q[1]>>63), c)
				lo, c = bits.Add64(lo, uint64(q[2]), 0)
				hi, _ = bits.Add64(hi, uint64(q[2]>>63), c)
				lo, c = bits.Add64(lo, uint64(q[3]), 0)
				hi, _ = bits.Add64(hi, uint64(q[3]>>63), c)
			}
			continue
		}
		for ; w != 0; w &= w - 1 {
			x := vals[i<<6+bits.TrailingZeros64(w)]
			lo, c = bits.Add64(lo, uint64(x), 0)
			hi, _ = bits.Add64(hi, uint64(x>>63), c)
		}
	}
	return int64(hi), lo
}

// floatLanes are sums of floats by their position modulo 16, of each word of a selection the
// last first. Every way to add up uses them, so that all give the same sum.
type floatLanes [16]float64

func (l *floatLanes) sum() float64 {
	var four [4]float64
	for i := range four {
		four[i] = (l[i] + l[i+4]) + (l[i+8] + l[i+12])
	}
	return (four[0] + four[1]) + (four[2] + four[3])
}

// SumFloat adds up the selected values in double precision.
func SumFloat[T float32 | float64](vals []T, sel []uint64) float64 {
	var l floatLanes
	n := fastSumFloat(&l, vals, sel)
	sumFloat(&l, vals[64*n:], sel[n:])
	return l.sum()
}

func sumFloat[T float32 | float64](l *floatLanes, vals []T, sel []uint64) {
	for i, w := range sel {
		if w == fullWord {
			p := (*[64]T)(vals[i*64:])
			for lane := range l {
				l[lane] = l[lane] + float64(p[lane+48]) + float64(p[lane+32]) + float64(p[lane+16]) + float64(p[lane])
			}
			continue
		}
		for w != 0 {
			j := bits.Len64(w) - 1
			w &^= 1 << j
			l[j&15] += float64(vals[i<<6+j])
		}
	}
}

// Number is the set of types that have a least and a greatest value.
type Number interface {
	int8 | int16 | int32 | int64 | float32 | float64
}

// allSelected is a selection of partRows rows.
var allSelected = func() (sel [partRows / 64]uint64) {
	for i := range sel {
		sel[i] = fullWord
	}
	return sel
}()

// partRows is how many rows are taken at a time where they are looked at more than once, so that
// they stay in the cache.
const partRows = 4096

// Min returns the least of best, which is not NaN, and the selected values, or all if sel is nil. A NaN is
// passed over; which zero is taken is undefined.
func Min[T Number](best T, vals []T, sel []uint64) T {
	if sel != nil {
		best, n := fastExtreme(best, vals, sel, false)
		return minValue(best, vals[64*n:], sel[n:])
	}
	for len(vals) >= 64 {
		n := min(len(vals), partRows) &^ 63
		best, vals = Min(best, vals[:n], allSelected[:n/64]), vals[n:]
	}
	for _, x := range vals {
		if x < best {
			best = x
		}
	}
	return best
}

func minValue[T Number](best T, vals []T, sel []uint64) T {
	for i, w := range sel {
		if w == fullWord {
			best = minValueOf64(best, (*[64]T)(vals[i*64:]))
			continue
		}
		for ; w != 0; w &= w - 1 {
			if x := vals[i<<6+bits.TrailingZeros64(w)]; x < best {
				best = x
			}
		}
	}
	return best
}

// minValueOf64 keeps four bests, so that four values are compared at once.
func minValueOf64[T Number](best T, p *[64]T) T {
	a, b, c, d := best, best, best, best
	for j := 0; j < 64; j += 4 {
		q := (*[4]T)(p[j : j+4])
		if q[0] < a {
			a = q[0]
		}
		if q[1] < b {
			b = q[1]
		}
		if q[2] < c {
			c = q[2]
		}
		if q[3] < d {
			d = q[3]
		}
	}
	for _, x := range [...]T{b, c, d} {
		if x < a {
			a = x
		}
	}
	return a
}

// Max returns the greatest of best, which is not NaN, and the selected values, or all if sel is nil. A NaN is
// passed over; which zero is taken is undefined.
func Max[T Number](best T, vals []T, sel []uint64) T {
	if sel != nil {
		best, n := fastExtreme(best, vals, sel, true)
		return maxValue(best, vals[64*n:], sel[n:])
	}
	for len(vals) >= 64 {
		n := min(len(vals), partRows) &^ 63
		best, vals = Max(best, vals[:n], allSelected[:n/64]), vals[n:]
	}
	for _, x := range vals {
		if x > best {
			best = x
		}
	}
	return best
}

func maxValue[T Number](best T, vals []T, sel []uint64) T {
	for i, w := range sel {
		if w == fullWord {
			best = maxValueOf64(best, (*[64]T)(vals[i*64:]))
			continue
		}
		for ; w != 0; w &= w - 1 {
			if x := vals[i<<6+bits.TrailingZeros64(w)]; x > best {
				best = x
			}
		}
	}
	return best
}

// maxValueOf64 keeps four bests, so that four values are compared at once.
func maxValueOf64[T Number](best T, p *[64]T) T {
	a, b, c, d := best, best, best, best
	for j := 0; j < 64; j += 4 {
		q := (*[4]T)(p[j : j+4])
		if q[0] > a {
			a = q[0]
		}
		if q[1] > b {
			b = q[1]
		}
		if q[2] > c {
			c = q[2]
		}
		if q[3] > d {
			d = q[3]
		}
	}
	for _, x := range [...]T{b, c, d} {
		if x > a {
			a = x
		}
	}
	return a
}
