package vector

import (
	"fmt"
	"unsafe"

	"github.com/minikudu/minikudu/schema"
)

// Extend appends n values to a fixed-width vector and returns their memory, of
// undefined content, for the caller to fill. T must have the width of the kind. A
// validity bitmap is not extended: see [Vector.ExtendValid].
func Extend[T Fixed](v *Vector, n int) []T {
	if n <= 0 {
		return nil
	}
	at := v.length
	v.ExtendFixed(n)
	return Values[T](v)[at:]
}

// ExtendValid makes the last n values, appended by one of the Extend functions, not
// null and returns the validity bitmap, made where there was none, for the caller to
// clear the bits of nulls. The cells of nulls must hold the zero value.
func (v *Vector) ExtendValid(n int) Bitmap {
	if v.valid == nil {
		n = v.length
	}
	v.valid = growBits(v.valid, v.length)
	v.valid.SetRange(v.length-n, v.length)
	return v.valid
}

// Refer makes v a vector of the given kind over vals, with the given validity (nil for
// no nulls), as [FromFixed] does but without an allocation. v must not be appended to.
func Refer[T Fixed](v *Vector, kind schema.Kind, vals []T, valid Bitmap) {
	if kind.Width() != int(unsafe.Sizeof(*new(T))) {
		panic(fmt.Sprintf("vector: %T does not hold %s", *new(T), kind))
	}
	*v = Vector{kind: kind, length: len(vals), valid: valid, data: bytesOf(vals)}
}
