package vector

import (
	"math"

	"github.com/minikudu/minikudu/schema"
)

// AppendRange appends values [from, to) of src, of the same kind, to v. A source in
// dictionary form is flattened.
func (v *Vector) AppendRange(src *Vector, from, to int) error {
	n := to - from
	if n <= 0 {
		return nil
	}
	v.appendValid(src, from, n)
	switch {
	case v.kind == schema.KindBool:
		v.words = growBits(v.words, v.length+n)
		v.words.CopyRange(v.length, src.words, from, n)
	case src.dict != nil:
		for i := from; i < to; i++ {
			if err := v.rawBytes(src, i); err != nil {
				return err
			}
		}
	case v.kind == schema.KindBytes:
		lo, hi := src.offsets[from], src.offsets[to]
		if int(hi-lo) > math.MaxInt32-len(v.data) {
			return ErrTooLarge
		}
		shift := int32(len(v.data)) - lo
		v.data = append(v.data, src.data[lo:hi]...)
		for _, o := range src.offsets[from+1 : to+1] {
			v.offsets = append(v.offsets, o+shift)
		}
	default:
		w := v.kind.Width()
		v.data = append(reserve(v.data, n*w), src.data[from*w:to*w]...)
	}
	v.length += n
	return nil
}

func (v *Vector) rawBytes(src *Vector, i int) error {
	if !src.IsNull(i) {
		b := src.BytesAt(i)
		if len(b) > math.MaxInt32-len(v.data) {
			return ErrTooLarge
		}
		v.data = append(v.data, b...)
	}
	v.offsets = append(v.offsets, int32(len(v.data)))
	return nil
}

func (v *Vector) appendValid(src *Vector, from, n int) {
	if src.valid == nil && v.valid == nil {
		return
	}
	if v.valid == nil {
		v.valid = NewBitmap(v.length)
		v.valid.SetRange(0, v.length)
	}
	v.valid = growBits(v.valid, v.length+n)
	if src.valid == nil {
		v.valid.SetRange(v.length, v.length+n)
	} else {
		v.valid.CopyRange(v.length, src.valid, from, n)
	}
}

func growBits(b Bitmap, n int) Bitmap {
	for len(b) < Words(n) {
		b = append(b, 0)
	}
	return b
}

// AppendRows appends the values of src at the given rows, in their order, to v. A
// source in dictionary form is flattened.
func (v *Vector) AppendRows(src *Vector, rows []int32) error {
	n := len(rows)
	if src.valid != nil || v.valid != nil {
		if v.valid == nil {
			v.valid = NewBitmap(v.length)
			v.valid.SetRange(0, v.length)
		}
		v.valid = growBits(v.valid, v.length+n)
		for k, r := range rows {
			if src.valid == nil || src.valid.Get(int(r)) {
				v.valid.Set(v.length + k)
			}
		}
	}
	switch v.kind {
	case schema.KindBool:
		v.words = growBits(v.words, v.length+n)
		for k, r := range rows {
			if src.words.Get(int(r)) {
				v.words.Set(v.length + k)
			}
		}
	case schema.KindBytes:
		for _, r := range rows {
			if err := v.rawBytes(src, int(r)); err != nil {
				return err
			}
		}
	case schema.KindInt8:
		v.data = gather[uint8](v.data, src, rows)
	case schema.KindInt16:
		v.data = gather[uint16](v.data, src, rows)
	case schema.KindInt32, schema.KindFloat32:
		v.data = gather[uint32](v.data, src, rows)
	case schema.KindInt64, schema.KindFloat64:
		v.data = gather[uint64](v.data, src, rows)
	case schema.KindInt128:
		v.data = gather[schema.Int128](v.data, src, rows)
	}
	v.length += n
	return nil
}

func gather[T Fixed](dst []byte, src *Vector, rows []int32) []byte {
	w := src.kind.Width()
	dst = reserve(dst, len(rows)*w)
	at := len(dst)
	dst = dst[:at+len(rows)*w]
	out := view[T](dst[at:], len(rows))
	in := view[T](src.data, src.length)
	for k, r := range rows {
		out[k] = in[r]
	}
	return dst
}

// AppendConst appends n copies of x, a value of the vector's kind or null.
func (v *Vector) AppendConst(x schema.Value, n int) error {
	v.Reserve(n)
	for range n {
		if err := v.Append(x); err != nil {
			return err
		}
	}
	return nil
}

// Flatten returns a vector that is not in dictionary form: v itself, or a copy.
func (v *Vector) Flatten() (*Vector, error) {
	if v.dict == nil {
		return v, nil
	}
	out := New(v.kind, v.length)
	return out, out.AppendRange(v, 0, v.length)
}
