package encoding

import (
	"cmp"
	"sort"
	"unsafe"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Search returns the position of the first value of v that is at or after x, v.Len()
// when there is none, and whether it equals x. v holds the ascending values of a key column, so
// it has no nulls and is neither of booleans nor of floats; x is of its kind.
func Search(v *vector.Vector, x schema.Value) (pos int, exact bool) {
	switch v.Kind() {
	case schema.KindInt8:
		return searchInts(vector.Values[int8](v), int8(x.Int()))
	case schema.KindInt16:
		return searchInts(vector.Values[int16](v), int16(x.Int()))
	case schema.KindInt32:
		return searchInts(vector.Values[int32](v), int32(x.Int()))
	case schema.KindInt64:
		return searchInts(vector.Values[int64](v), x.Int())
	case schema.KindInt128:
		vals, want := vector.Values[schema.Int128](v), x.Int128()
		return sort.Find(len(vals), func(i int) int { return want.Cmp(vals[i]) })
	}
	return searchBytes(v, x.Str())
}

func searchInts[T int8 | int16 | int32 | int64](vals []T, x T) (pos int, exact bool) {
	return sort.Find(len(vals), func(i int) int { return cmp.Compare(x, vals[i]) })
}

func searchBytes(v *vector.Vector, x string) (pos int, exact bool) {
	return sort.Find(v.Len(), func(i int) int {
		b := v.BytesAt(i)
		return cmp.Compare(x, unsafe.String(unsafe.SliceData(b), len(b)))
	})
}
