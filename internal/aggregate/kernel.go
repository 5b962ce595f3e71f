package aggregate

import (
	"math/bits"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// The kernels run over the words of a selection: 64 values at once where all are
// selected, else one by one by trailing zeroes. The selection holds no null.

const fullWord = ^uint64(0)

type smallInt interface{ int8 | int16 | int32 }

// sumSmall cannot overflow: a vector has less than 2**31 values of 32 bits.
func sumSmall[T smallInt](vals []T, sel vector.Bitmap) int64 {
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

// sumInt64 adds up in 128 bits.
func sumInt64(vals []int64, sel vector.Bitmap) schema.Int128 {
	var lo, hi, c uint64
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
	return schema.Int128{Lo: lo, Hi: int64(hi)}
}

// sumFloat adds up in four lanes.
func sumFloat[T float32 | float64](vals []T, sel vector.Bitmap) float64 {
	var a, b, c, d float64
	for i, w := range sel {
		if w == fullWord {
			p := (*[64]T)(vals[i*64:])
			for j := 0; j < 64; j += 4 {
				q := (*[4]T)(p[j : j+4])
				a += float64(q[0])
				b += float64(q[1])
				c += float64(q[2])
				d += float64(q[3])
			}
			continue
		}
		for ; w != 0; w &= w - 1 {
			a, b = b, a+float64(vals[i<<6+bits.TrailingZeros64(w)])
		}
	}
	return (a + b) + (c + d)
}

type ordered interface {
	int8 | int16 | int32 | int64 | float32 | float64
}

// minValue returns the least of best and the selected values. A NaN is passed over.
func minValue[T ordered](best T, vals []T, sel vector.Bitmap) T {
	for i, w := range sel {
		if w == fullWord {
			for _, x := range (*[64]T)(vals[i*64:]) {
				if x < best {
					best = x
				}
			}
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

// maxValue returns the greatest of best and the selected values. A NaN is passed over.
func maxValue[T ordered](best T, vals []T, sel vector.Bitmap) T {
	for i, w := range sel {
		if w == fullWord {
			for _, x := range (*[64]T)(vals[i*64:]) {
				if x > best {
					best = x
				}
			}
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

// firstNumber returns the first selected value that is not NaN.
func firstNumber[T ordered](vals []T, sel vector.Bitmap) (T, bool) {
	for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
		if x := vals[i]; x == x {
			return x, true
		}
	}
	return 0, false
}

// eachRow calls f for every selected row. It is for paths whose work per row is
// larger than a call.
func eachRow(sel vector.Bitmap, f func(row int)) {
	for i, w := range sel {
		for ; w != 0; w &= w - 1 {
			f(i<<6 + bits.TrailingZeros64(w))
		}
	}
}
