package predicate

import (
	"math/bits"
	"unsafe"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// The kernels clear bits of a selection, 64 rows to a word. Words without a
// selected row are skipped; in any other all 64 rows are tested without a branch: a
// cell x lies in [lo, lo+width] if and only if x-lo, unsigned, is at most width,
// and the borrow of width-(x-lo) is shifted into the result by an add with carry,
// last row first, so that the first ends in bit 0. A kernel is given what to keep:
// all ones for the cells that pass, zero for the others.

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

// block returns values [64*i, 64*i+64), filled up with zeroes at the end. The
// buffer is used for an incomplete block.
func block[T any](vals []T, i int, buf *[64]T) *[64]T {
	if rest := vals[i*64:]; len(rest) >= 64 {
		return (*[64]T)(rest)
	}
	n := copy(buf[:], vals[i*64:])
	clear(buf[n:])
	return buf
}

// filterSpan handles the values in [lo, lo+width].
func filterSpan[T unsigned](sel vector.Bitmap, vals []T, lo, width T, keep uint64) {
	var buf [64]T
	for i, w := range sel {
		if w != 0 {
			sel[i] = w & (outsideWord(block(vals, i, &buf), lo, width) ^ keep)
		}
	}
}

// outsideWord has a bit set for each value outside [lo, lo+width].
func outsideWord[T unsigned](p *[64]T, lo, width T) uint64 {
	var w, c uint64
	for i := 56; i >= 0; i -= 8 {
		q := (*[8]T)(p[i : i+8])
		_, c = bits.Sub64(uint64(width), uint64(q[7]-lo), 0)
		w, _ = bits.Add64(w, w, c)
		_, c = bits.Sub64(uint64(width), uint64(q[6]-lo), 0)
		w, _ = bits.Add64(w, w, c)
		_, c = bits.Sub64(uint64(width), uint64(q[5]-lo), 0)
		w, _ = bits.Add64(w, w, c)
		_, c = bits.Sub64(uint64(width), uint64(q[4]-lo), 0)
		w, _ = bits.Add64(w, w, c)
		_, c = bits.Sub64(uint64(width), uint64(q[3]-lo), 0)
		w, _ = bits.Add64(w, w, c)
		_, c = bits.Sub64(uint64(width), uint64(q[2]-lo), 0)
		w, _ = bits.Add64(w, w, c)
		_, c = bits.Sub64(uint64(width), uint64(q[1]-lo), 0)
		w, _ = bits.Add64(w, w, c)
		_, c = bits.Sub64(uint64(width), uint64(q[0]-lo), 0)
		w, _ = bits.Add64(w, w, c)
	}
	return w
}

// filterFloatSpan is filterSpan over the bits of floats, by key.
func filterFloatSpan[T int32 | int64](sel vector.Bitmap, vals []T, lo T, width uint64, keep uint64) {
	var buf [64]T
	for i, w := range sel {
		if w != 0 {
			sel[i] = w & (floatOutsideWord(block(vals, i, &buf), lo, width) ^ keep)
		}
	}
}

// floatOutsideWord has a bit set for each float whose key lies outside [lo, lo+width].
func floatOutsideWord[T int32 | int64](p *[64]T, lo T, width uint64) uint64 {
	var w, c uint64
	for i := 60; i >= 0; i -= 4 {
		q := (*[4]T)(p[i : i+4])
		_, c = bits.Sub64(width, keyDistance(q[3], lo), 0)
		w, _ = bits.Add64(w, w, c)
		_, c = bits.Sub64(width, keyDistance(q[2], lo), 0)
		w, _ = bits.Add64(w, w, c)
		_, c = bits.Sub64(width, keyDistance(q[1], lo), 0)
		w, _ = bits.Add64(w, w, c)
		_, c = bits.Sub64(width, keyDistance(q[0], lo), 0)
		w, _ = bits.Add64(w, w, c)
	}
	return w
}

// floatBits turns the bits of a float into its key.
func floatBits[T int32 | int64](x T) T {
	if unsafe.Sizeof(x) == 4 {
		return x ^ T(uint32(x>>31)>>1)
	}
	return x ^ T(uint64(int64(x)>>63)>>1)
}

// keyDistance returns the unsigned distance of a float's key from lo.
func keyDistance[T int32 | int64](x, lo T) uint64 {
	d := floatBits(x) - lo
	if unsafe.Sizeof(x) == 4 {
		return uint64(uint32(d))
	}
	return uint64(d)
}

// filterWideSpan is filterSpan for 128-bit values.
func filterWideSpan(sel vector.Bitmap, vals []schema.Int128, lo, width schema.Int128, keep uint64) {
	var buf [64]schema.Int128
	for i, w := range sel {
		if w != 0 {
			sel[i] = w & (wideOutsideWord(block(vals, i, &buf), lo, width) ^ keep)
		}
	}
}

func wideOutsideWord(p *[64]schema.Int128, lo, width schema.Int128) uint64 {
	var w uint64
	for i := 63; i >= 0; i-- {
		dl, b := bits.Sub64(p[i].Lo, lo.Lo, 0)
		dh, _ := bits.Sub64(uint64(p[i].Hi), uint64(lo.Hi), b)
		_, b = bits.Sub64(width.Lo, dl, 0)
		_, b = bits.Sub64(uint64(width.Hi), dh, b)
		w, _ = bits.Add64(w, w, b)
	}
	return w
}

// filterBool handles the cells that equal want.
func filterBool(sel, vals vector.Bitmap, want bool, keep uint64) {
	flip := ^keep
	if !want {
		flip = keep
	}
	vals = vals[:len(sel)]
	for i := range sel {
		sel[i] &= vals[i] ^ flip
	}
}

// filterTable handles the rows whose code has 1 in the table.
func filterTable[T unsigned](sel vector.Bitmap, codes []T, table []uint8) {
	var buf [64]T
	for i, w := range sel {
		if w != 0 {
			sel[i] = w & tableWord(block(codes, i, &buf), table)
		}
	}
}

// tableWord has a bit set for each code with 1 in the table.
func tableWord[T unsigned](p *[64]T, table []uint8) uint64 {
	var w uint64
	for i := 56; i >= 0; i -= 8 {
		q := (*[8]T)(p[i : i+8])
		w = w<<1 | uint64(table[q[7]])
		w = w<<1 | uint64(table[q[6]])
		w = w<<1 | uint64(table[q[5]])
		w = w<<1 | uint64(table[q[4]])
		w = w<<1 | uint64(table[q[3]])
		w = w<<1 | uint64(table[q[2]])
		w = w<<1 | uint64(table[q[1]])
		w = w<<1 | uint64(table[q[0]])
	}
	return w
}

// filterList handles the values in a short list.
func filterList[T unsigned](sel vector.Bitmap, vals []T, list []int64, keep uint64) {
	var buf [64]T
	for i, w := range sel {
		if w != 0 {
			p, miss := block(vals, i, &buf), ^uint64(0)
			for _, x := range list {
				miss &= outsideWord(p, T(x), 0)
			}
			sel[i] = w & (miss ^ keep)
		}
	}
}

// filterFloatList is filterList over the bits of floats, by key.
func filterFloatList[T int32 | int64](sel vector.Bitmap, vals []T, list []int64, keep uint64) {
	var buf [64]T
	for i, w := range sel {
		if w != 0 {
			p, miss := block(vals, i, &buf), ^uint64(0)
			for _, x := range list {
				miss &= floatOutsideWord(p, T(x), 0)
			}
			sel[i] = w & (miss ^ keep)
		}
	}
}

// filterDense handles the values whose distance from lo has 1 in the table, of
// which the last entry, 0, stands for every greater distance.
func filterDense[T unsigned](sel vector.Bitmap, vals []T, lo T, table []uint8, keep uint64) {
	var buf [64]T
	end := uint64(len(table) - 1)
	for i, w := range sel {
		if w == 0 {
			continue
		}
		var hit uint64
		p := block(vals, i, &buf)
		for j := 63; j >= 0; j-- {
			hit = hit<<1 | uint64(table[min(uint64(p[j]-lo), end)])
		}
		sel[i] = w & (hit ^ ^keep)
	}
}
