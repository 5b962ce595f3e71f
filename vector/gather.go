package vector

import (
	"slices"

	"github.com/minikudu/minikudu/schema"
)

// AppendRange appends values [from, to) of src, of the same kind, to v, which must be
// plain. A source in dictionary form is flattened. It fails, and changes nothing,
// only when a vector of bytes would exceed 2 GiB.
func (v *Vector) AppendRange(src *Vector, from, to int) error {
	n := to - from
	if n <= 0 {
		return nil
	}
	switch {
	case v.kind == schema.KindBool:
		v.words = growBits(v.words, v.length+n)
		v.words.CopyRange(v.length, src.words, from, n)
	case v.kind == schema.KindBytes && src.dict != nil:
		for i := from; i < to; i++ {
			if err := v.rawBytes(src, i); err != nil {
				return err
			}
		}
	case v.kind == schema.KindBytes:
		if err := v.rawRange(src, from, to); err != nil {
			return err
		}
	default:
		w := v.kind.Width()
		v.data = append(reserve(v.data, n*w), src.data[from*w:to*w]...)
	}
	v.appendValid(src, from, n)
	v.length += n
	return nil
}

// rawRange appends bytes and offsets of a plain source.
func (v *Vector) rawRange(src *Vector, from, to int) error {
	lo, hi := src.offsets[from], src.offsets[to]
	if int(hi-lo) > maxData-len(v.data) {
		return ErrTooLarge
	}
	shift := int32(len(v.data)) - lo
	v.data = append(v.data, src.data[lo:hi]...)
	for _, o := range src.offsets[from+1 : to+1] {
		v.offsets = append(v.offsets, o+shift)
	}
	return nil
}

// rawBytes appends the bytes and the offset of one cell, or takes all cells since
// the vector's length back when there is no room.
func (v *Vector) rawBytes(src *Vector, i int) error {
	if !src.IsNull(i) {
		b := src.BytesAt(i)
		if len(b) > maxData-len(v.data) {
			v.offsets = v.offsets[:v.length+1]
			v.data = v.data[:v.offsets[v.length]]
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
	v.needValid()
	v.valid = growBits(v.valid, v.length+n)
	if src.valid == nil {
		v.valid.SetRange(v.length, v.length+n)
	} else {
		v.valid.CopyRange(v.length, src.valid, from, n)
	}
}

// growBits returns b with room for n bits; the new ones are zero.
func growBits(b Bitmap, n int) Bitmap {
	old, need := len(b), Words(n)
	if need <= old {
		return b
	}
	b = slices.Grow(b, need-old)[:need]
	clear(b[old:])
	return b
}

// AppendFrom appends value i of src, of the same kind, to v. A source in dictionary
// form is flattened.
func (v *Vector) AppendFrom(src *Vector, i int) error {
	if src.IsNull(i) {
		v.AppendNull()
		return nil
	}
	switch v.kind {
	case schema.KindInt64, schema.KindFloat64:
		AppendFixed(v, view[uint64](src.data, src.length)[i])
	case schema.KindInt32, schema.KindFloat32:
		AppendFixed(v, view[uint32](src.data, src.length)[i])
	case schema.KindInt16:
		AppendFixed(v, view[uint16](src.data, src.length)[i])
	case schema.KindInt8:
		AppendFixed(v, src.data[i])
	case schema.KindInt128:
		AppendFixed(v, view[schema.Int128](src.data, src.length)[i])
	case schema.KindBool:
		v.AppendBool(src.words.Get(i))
	default:
		return v.AppendBytes(src.BytesAt(i))
	}
	return nil
}

// AppendRows appends the values of src at the given rows, in their order, to v, which
// must be plain. A source in dictionary form is flattened. It fails, and changes
// nothing, only when a vector of bytes would exceed 2 GiB.
func (v *Vector) AppendRows(src *Vector, rows []int32) error {
	n := len(rows)
	switch v.kind {
	case schema.KindBool:
		v.words = growBits(v.words, v.length+n)
		gatherBits(v.words, v.length, src.words, rows)
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
	switch {
	case src.valid != nil:
		v.needValid()
		v.valid = growBits(v.valid, v.length+n)
		gatherBits(v.valid, v.length, src.valid, rows)
	case v.valid != nil:
		v.valid = growBits(v.valid, v.length+n)
		v.valid.SetRange(v.length, v.length+n)
	}
	v.length += n
	return nil
}

// gatherBits sets bits at, at+1, … of dst, which are zero, to the given bits of src.
func gatherBits(dst Bitmap, at int, src Bitmap, rows []int32) {
	for k, r := range rows {
		dst[(at+k)>>6] |= src[r>>6] >> (uint(r) & 63) & 1 << (uint(at+k) & 63)
	}
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

// AppendConst appends n copies of x, a value of the vector's kind or null. It fails,
// and changes nothing, only when a vector of bytes would exceed 2 GiB.
func (v *Vector) AppendConst(x schema.Value, n int) error {
	start := v.length
	v.Reserve(n)
	for range n {
		if err := v.Append(x); err != nil {
			v.Truncate(start)
			return err
		}
	}
	return nil
}

// Flatten returns a vector that is not in dictionary form: v itself, or a copy. It
// fails only when the copy would exceed 2 GiB.
func (v *Vector) Flatten() (*Vector, error) {
	if v.dict == nil {
		return v, nil
	}
	out := New(v.kind, v.length)
	return out, out.AppendRange(v, 0, v.length)
}
