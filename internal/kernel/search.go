package kernel

import (
	"bytes"
	"math/bits"
)

// FilterContains clears the bits of the texts that do not contain the text s, which is not empty. Text i
// is data[offsets[i]:offsets[i+1]].
func FilterContains(sel []uint64, offsets []int32, data []byte, s string) {
	if n := fastContains(sel, offsets, data, s); n < len(sel) {
		filterContains(sel[n:], offsets[64*n:], data, s)
	}
}

func filterContains(sel []uint64, offsets []int32, data []byte, s string) {
	text := []byte(s)
	for i, w := range sel {
		for m := w; m != 0; m &= m - 1 {
			row := i<<6 + bits.TrailingZeros64(m)
			if !bytes.Contains(data[offsets[row]:offsets[row+1]], text) {
				w &^= m & -m
			}
		}
		sel[i] = w
	}
}
