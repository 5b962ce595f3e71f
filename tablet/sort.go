package tablet

import (
	"bytes"

	"github.com/minikudu/minikudu/vector"
)

// keyRef is a row and the first 16 bytes of its key.
type keyRef struct {
	a, b uint64
	row  int32
}

// sortedRows returns the rows in order of key, equal keys in order of row.
//
// It is a natural merge sort (Knuth, "The Art of Computer Programming", vol. 3,
// 5.2.4): batches in time order over several series are a few ascending runs, which
// it finds and merges.
func sortedRows(encoded *vector.Vector) []int32 {
	refs := make([]keyRef, 2*encoded.Len())
	src, dst := refs[:encoded.Len()], refs[encoded.Len():]
	for i := range src {
		k := encoded.BytesAt(i)
		src[i] = keyRef{a: head(k), row: int32(i)}
		if len(k) > 8 {
			src[i].b = head(k[8:])
		}
	}
	for runs := ascendingRuns(encoded, src); len(runs) > 2; src, dst = dst, src {
		runs = mergeRuns(encoded, dst, src, runs)
	}
	order := make([]int32, len(src))
	for i := range src {
		order[i] = src[i].row
	}
	return order
}

// ascendingRuns returns where ascending runs begin, and the end.
func ascendingRuns(encoded *vector.Vector, refs []keyRef) []int {
	runs := []int{0}
	for i := 1; i < len(refs); i++ {
		if refBefore(encoded, &refs[i], &refs[i-1]) {
			runs = append(runs, i)
		}
	}
	return append(runs, len(refs))
}

// mergeRuns merges neighbouring runs of src pairwise into dst and returns the runs there.
func mergeRuns(encoded *vector.Vector, dst, src []keyRef, runs []int) []int {
	out := runs[:1]
	for i := 0; i+1 < len(runs); i += 2 {
		if i+2 >= len(runs) {
			copy(dst[runs[i]:], src[runs[i]:runs[i+1]])
			return append(out, runs[i+1])
		}
		lo, mid, hi := runs[i], runs[i+1], runs[i+2]
		mergePair(encoded, dst[lo:hi], src[lo:mid], src[mid:hi])
		out = append(out, hi)
	}
	return out
}

// mergePair merges two runs; of equal keys those of x come first.
func mergePair(encoded *vector.Vector, dst, x, y []keyRef) {
	for len(x) > 0 && len(y) > 0 {
		if refBefore(encoded, &y[0], &x[0]) {
			dst[0], y = y[0], y[1:]
		} else {
			dst[0], x = x[0], x[1:]
		}
		dst = dst[1:]
	}
	copy(dst[copy(dst, x):], y)
}

// refBefore reports whether the key of x is below that of y.
func refBefore(encoded *vector.Vector, x, y *keyRef) bool {
	if x.a != y.a {
		return x.a < y.a
	}
	if x.b != y.b {
		return x.b < y.b
	}
	return bytes.Compare(encoded.BytesAt(int(x.row)), encoded.BytesAt(int(y.row))) < 0
}
