package kernel

import (
	"math/bits"
	"unsafe"
)

// The filters clear bits of a selection, 64 rows to a word. Words without a
// selected row are skipped; in any other all 64 rows are tested without a branch: a
// cell x lies in [lo, lo+width] if and only if x-lo, unsigned, is at most width. The portable
// code shifts the borrow of width-(x-lo) into the result by an add with carry,
// last row first, so that the first ends in bit 0. A filter is given what to keep:
// all ones for the cells that pass, zero for the others.

// Unsigned is the set of types that a range of 8 to 64 bits is tested in; signed
// integers are viewed as unsigned ones.
type Unsigned interface {
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

// FilterSpan handles the values in [lo, lo+width].
func FilterSpan[T Unsigned](sel []uint64, vals []T, lo, width T, keep uint64) {
	n := fastSpan(sel, vals, lo, width, keep)
	filterSpan(sel[n:], vals[64*n:], lo, width, keep)
}

func filterSpan[T Unsigned](sel []uint64, vals []T, lo, width T, keep uint64) {
	var buf [64]T
	for i, w := range sel {
		if w != 0 {
			sel[i] = w & (outsideWord(block(vals, i, &buf), lo, width) ^ keep)
		}
	}
}

// outsideWord has a bit set for each value outside [lo, lo+width].
func outsideWord[T Unsigned](p *[64]T, lo, width T) uint64 {
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

// FilterFloatSpan is [FilterSpan] over the bits of floats, by key, see [FloatKey].
func FilterFloatSpan[T int32 | int64](sel []uint64, vals []T, lo T, width, keep uint64) {
	n := fastFloatSpan(sel, vals, lo, width, keep)
	filterFloatSpan(sel[n:], vals[64*n:], lo, width, keep)
}

func filterFloatSpan[T int32 | int64](sel []uint64, vals []T, lo T, width, keep uint64) {
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

// FloatKey turns the bits of a float into its key: keys sort as the numbers do, -0 just
// below +0 and NaN outside of the infinities.
func FloatKey[T int32 | int64](x T) T {
	if unsafe.Sizeof(x) == 4 {
		return x ^ T(uint32(x>>31)>>1)
	}
	return x ^ T(uint64(int64(x)>>63)>>1)
}

// keyDistance returns the Unsigned distance of a float's key from lo.
func keyDistance[T int32 | int64](x, lo T) uint64 {
	d := FloatKey(x) - lo
	if unsafe.Sizeof(x) == 4 {
		return uint64(uint32(d))
	}
	return uint64(d)
}

// FilterTable handles the rows whose code has 1 in the table, which is 0 for the others. Every
// code is below its length.
func FilterTable[T Unsigned](sel []uint64, codes []T, table []uint8) {
	n := fastTable(sel, codes, table)
	filterTable(sel[n:], codes[64*n:], table)
}

func filterTable[T Unsigned](sel []uint64, codes []T, table []uint8) {
	var buf [64]T
	for i, w := range sel {
		if w != 0 {
			sel[i] = w & tableWord(block(codes, i, &buf), table)
		}
	}
}

// tableWord has a bit set for each code with 1 in the table.
func tableWord[T Unsigned](p *[64]T, table []uint8) uint64 {
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

// FilterList handles the values in a short list.
func FilterList[T Unsigned](sel []uint64, vals []T, list []int64, keep uint64) {
	var buf [partRows / 64]uint64
	for len(sel) > 0 {
		miss := buf[:copy(buf[:], sel)]
		for _, x := range list {
			FilterSpan(miss, vals, T(x), 0, 0)
		}
		andFlipped(sel, miss, keep)
		sel, vals = sel[len(miss):], vals[min(partRows, len(vals)):]
	}
}

// FilterFloatList is [FilterList] over the bits of floats, by key.
func FilterFloatList[T int32 | int64](sel []uint64, vals []T, list []int64, keep uint64) {
	var buf [partRows / 64]uint64
	for len(sel) > 0 {
		miss := buf[:copy(buf[:], sel)]
		for _, x := range list {
			FilterFloatSpan(miss, vals, T(x), 0, 0)
		}
		andFlipped(sel, miss, keep)
		sel, vals = sel[len(miss):], vals[min(partRows, len(vals)):]
	}
}

// andFlipped intersects the first words of sel with those of miss, each flipped by keep.
func andFlipped(sel, miss []uint64, keep uint64) {
	for i, m := range miss {
		sel[i] &= m ^ keep
	}
}

// FilterDense handles the values whose distance from lo has 1 in the table, of
// which the last entry, 0, stands for every greater distance.
func FilterDense[T Unsigned](sel []uint64, vals []T, lo T, table []uint8, keep uint64) {
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
