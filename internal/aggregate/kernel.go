package aggregate

import (
	"math/bits"

	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/vector"
)

// firstNumber returns the first selected value that is not NaN.
func firstNumber[T kernel.Number](vals []T, sel vector.Bitmap) (T, bool) {
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
