package arrow

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

var (
	errShort = errors.New("a buffer is shorter than the array needs")
	errNull  = errors.New("null in a column that is not nullable")
)

// FromRecord returns the rows of the record as a batch that shares its memory where the
// layouts agree; see the package comment for how long it lives.
func FromRecord(rec arrow.RecordBatch) (*vector.Batch, error) {
	columns, converters, err := columnsOf(rec.Schema())
	if err != nil {
		return nil, err
	}
	return fromRecord(rec, columns, converters)
}

func fromRecord(rec arrow.RecordBatch, columns []schema.Column, converters []converter) (_ *vector.Batch, err error) {
	defer recovered(&err)
	rows := int(rec.NumRows())
	vectors := make([]*vector.Vector, len(columns))
	for i := range columns {
		if vectors[i], err = fromArray(rec.Column(i), columns[i].Nullable, rows, converters[i]); err != nil {
			return nil, fmt.Errorf("column %q: %w", columns[i].Name, err)
		}
	}
	return vector.NewBatch(columns, vectors, rows), nil
}

func fromArray(a arrow.Array, nullable bool, rows int, f converter) (*vector.Vector, error) {
	if a.Len() < rows {
		return nil, errShort
	}
	valid, err := validityOf(a)
	if err != nil {
		return nil, err
	}
	v, err := f(a, valid)
	if err != nil {
		return nil, err
	}
	if v = v.Slice(0, rows); !nullable && v.NullCount() > 0 {
		return nil, errNull
	}
	return v, nil
}

// validityOf copies the validity of an array, nil when no cell is null.
func validityOf(a arrow.Array) (vector.Bitmap, error) {
	d := a.Data()
	if a.DataType().ID() == arrow.NULL || a.Len() == 0 || len(d.Buffers()) == 0 || d.Buffers()[0] == nil || d.Buffers()[0].Len() == 0 {
		return nil, nil
	}
	bits, err := bitsOf(d, 0)
	if err != nil || bits.Count() == a.Len() {
		return nil, err
	}
	return bits, nil
}

// bitsOf copies a buffer of bits.
func bitsOf(d arrow.ArrayData, buffer int) (vector.Bitmap, error) {
	b, err := bufferOf(d, buffer)
	off, n := d.Offset(), d.Len()
	if err != nil || off > 8*len(b)-n {
		return nil, errors.Join(err, errShort)
	}
	out := vector.NewBitmap(n)
	if off&7 == 0 {
		for i, x := range b[off>>3 : off>>3+(n+7)>>3] {
			out[i>>3] |= uint64(x) << (8 * (uint(i) & 7))
		}
		if n&63 != 0 {
			out[n>>6] &= 1<<(uint(n)&63) - 1
		}
		return out, nil
	}
	for i := range n {
		if k := off + i; b[k>>3]>>(uint(k)&7)&1 != 0 {
			out.Set(i)
		}
	}
	return out, nil
}

func bufferOf(d arrow.ArrayData, i int) ([]byte, error) {
	if i >= len(d.Buffers()) {
		return nil, errShort
	}
	if d.Buffers()[i] == nil {
		return nil, nil
	}
	return d.Buffers()[i].Bytes(), nil
}

// cells returns n values from value at on of buffer i, which share its memory unless
// that is not aligned.
func cells[T any](d arrow.ArrayData, i, at, n int) ([]T, error) {
	b, err := bufferOf(d, i)
	var zero T
	width := int(unsafe.Sizeof(zero))
	if err != nil || at > len(b)/width-n {
		return nil, errors.Join(err, errShort)
	}
	if n == 0 {
		return nil, nil
	}
	b = b[at*width : (at+n)*width]
	if uintptr(unsafe.Pointer(&b[0]))%unsafe.Alignof(zero) == 0 {
		return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n), nil
	}
	out := make([]T, n)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), len(b)), b)
	return out, nil
}

// share returns the converter of values that are laid out as in a vector.
func share[T vector.Fixed](kind schema.Kind) converter {
	return func(a arrow.Array, valid vector.Bitmap) (*vector.Vector, error) {
		vals, err := cells[T](a.Data(), 1, a.Data().Offset(), a.Len())
		if err != nil {
			return nil, err
		}
		return vector.FromFixed(kind, zeroNulls(vals, valid), valid), nil
	}
}

// zeroNulls returns vals, or a copy, with zero in place of nulls.
func zeroNulls[T vector.Fixed](vals []T, valid vector.Bitmap) []T {
	var zero T
	for i := range vals {
		if valid == nil || valid.Get(i) || vals[i] == zero {
			continue
		}
		vals = append([]T(nil), vals...)
		for k := i; k < len(vals); k++ {
			if !valid.Get(k) {
				vals[k] = zero
			}
		}
		break
	}
	return vals
}

// convert returns the converter of values that f turns into what the vector holds; f
// reports whether the value fits.
func convert[S any, T vector.Fixed](kind schema.Kind, f func(S) (T, bool)) converter {
	return func(a arrow.Array, valid vector.Bitmap) (*vector.Vector, error) {
		vals, err := cells[S](a.Data(), 1, a.Data().Offset(), a.Len())
		if err != nil {
			return nil, err
		}
		out := make([]T, len(vals))
		for i, x := range vals {
			if valid != nil && !valid.Get(i) {
				continue
			}
			y, ok := f(x)
			if !ok {
				return nil, &schema.ValueError{Row: i, Want: kind.String(), Given: a.DataType().String(), Reason: "out of range"}
			}
			out[i] = y
		}
		return vector.FromFixed(kind, out, valid), nil
	}
}

func convertNull(a arrow.Array, _ vector.Bitmap) (*vector.Vector, error) {
	v := vector.New(schema.KindBytes, 0)
	return v, v.AppendConst(schema.Value{}, a.Len())
}

func convertBool(a arrow.Array, valid vector.Bitmap) (*vector.Vector, error) {
	bits, err := bitsOf(a.Data(), 1)
	if err != nil {
		return nil, err
	}
	if valid != nil {
		bits.And(valid)
	}
	return vector.FromBits(bits, a.Len(), valid), nil
}

func convertBytes(a arrow.Array, valid vector.Bitmap) (*vector.Vector, error) {
	d, n := a.Data(), a.Len()
	if n == 0 {
		return vector.New(schema.KindBytes, 0), nil
	}
	offsets, err := cells[int32](d, 1, d.Offset(), n+1)
	if err != nil {
		return nil, err
	}
	data, err := bufferOf(d, 2)
	if err != nil {
		return nil, err
	}
	plain, err := checkOffsets(offsets, len(data), valid)
	if err != nil {
		return nil, err
	}
	if !plain {
		return copyBytes(offsets, data, valid)
	}
	return vector.FromBytes(offsets, data[:offsets[n]:offsets[n]], valid), nil
}

// checkOffsets checks that offsets ascend within size bytes and reports whether all
// nulls are of width 0.
func checkOffsets[T int32 | int64](offsets []T, size int, valid vector.Bitmap) (plain bool, err error) {
	plain = true
	prev := offsets[0]
	for i, o := range offsets[1:] {
		if o < prev {
			return false, fmt.Errorf("offset %d after %d", o, prev)
		}
		if o != prev && valid != nil && !valid.Get(i) {
			plain = false
		}
		prev = o
	}
	if offsets[0] < 0 || int64(prev) > int64(size) {
		return false, fmt.Errorf("offsets %d to %d in %d bytes", offsets[0], prev, size)
	}
	return plain, nil
}

func copyBytes[T int32 | int64](offsets []T, data []byte, valid vector.Bitmap) (*vector.Vector, error) {
	v := vector.New(schema.KindBytes, len(offsets)-1)
	for i := range len(offsets) - 1 {
		if valid != nil && !valid.Get(i) {
			v.AppendNull()
		} else if err := v.AppendBytes(data[offsets[i]:offsets[i+1]]); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func convertLargeBytes(a arrow.Array, valid vector.Bitmap) (*vector.Vector, error) {
	d, n := a.Data(), a.Len()
	if n == 0 {
		return vector.New(schema.KindBytes, 0), nil
	}
	offsets, err := cells[int64](d, 1, d.Offset(), n+1)
	if err != nil {
		return nil, err
	}
	data, err := bufferOf(d, 2)
	if err != nil {
		return nil, err
	}
	plain, err := checkOffsets(offsets, len(data), valid)
	if err != nil {
		return nil, err
	}
	first, last := offsets[0], offsets[n]
	if !plain || last-first > math.MaxInt32 {
		return copyBytes(offsets, data, valid)
	}
	out := make([]int32, n+1)
	for i, o := range offsets {
		out[i] = int32(o - first)
	}
	return vector.FromBytes(out, data[first:last:last], valid), nil
}

func convertFixedBytes(a arrow.Array, valid vector.Bitmap) (*vector.Vector, error) {
	d, n := a.Data(), a.Len()
	width := a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth
	data, err := bufferOf(d, 1)
	if err != nil || width < 0 || int64(d.Offset()+n)*int64(width) > int64(len(data)) {
		return nil, errors.Join(err, errShort)
	}
	v := vector.New(schema.KindBytes, n)
	for i := range n {
		at := (d.Offset() + i) * width
		if valid != nil && !valid.Get(i) {
			v.AppendNull()
		} else if err := v.AppendBytes(data[at : at+width]); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func convertViews(a arrow.Array, valid vector.Bitmap) (*vector.Vector, error) {
	v := vector.New(schema.KindBytes, a.Len())
	for i := range a.Len() {
		if valid != nil && !valid.Get(i) {
			v.AppendNull()
			continue
		}
		if err := v.AppendBytes(viewAt(a, i)); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func viewAt(a arrow.Array, i int) []byte {
	if s, ok := a.(*array.StringView); ok {
		return []byte(s.Value(i))
	}
	return a.(*array.BinaryView).Value(i)
}
