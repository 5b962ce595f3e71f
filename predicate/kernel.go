package predicate

import (
	"math/bits"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// filterWideSpan is [kernel.FilterSpan] for 128-bit values.
func filterWideSpan(sel vector.Bitmap, vals []schema.Int128, lo, width schema.Int128, keep uint64) {
	for i, w := range sel {
		if w != 0 {
			sel[i] = w & (wideOutsideWord(vals[i*64:min(i*64+64, len(vals))], lo, width) ^ keep)
		}
	}
}

// wideOutsideWord has a bit set for each of up to 64 values outside [lo, lo+width].
func wideOutsideWord(p []schema.Int128, lo, width schema.Int128) uint64 {
	var w uint64
	for i := len(p) - 1; i >= 0; i-- {
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
