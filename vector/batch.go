package vector

import (
	"bytes"
	"fmt"

	"github.com/minikudu/minikudu/schema"
)

// Batch is a set of columns of one length, with their names and types. A batch
// that a scan hands out lives until the scan's next step; [Batch.Detach] makes a
// copy that stays.
type Batch struct {
	columns []schema.Column
	vectors []*Vector
	length  int
}

// NewBatch returns a batch of the given columns and their cells, n of them in each
// vector. It takes both slices over.
func NewBatch(columns []schema.Column, vectors []*Vector, n int) *Batch {
	b := &Batch{columns: columns}
	b.Reset(vectors, n)
	return b
}

// Reset replaces the cells of the batch and keeps its columns.
func (b *Batch) Reset(vectors []*Vector, n int) {
	if len(vectors) != len(b.columns) {
		panic(fmt.Sprintf("vector: batch of %d columns given %d vectors", len(b.columns), len(vectors)))
	}
	b.vectors, b.length = vectors, n
}

// Len returns the number of rows.
func (b *Batch) Len() int { return b.length }

// NumColumns returns the number of columns.
func (b *Batch) NumColumns() int { return len(b.columns) }

// Schema returns the columns' names and types. The caller must not change them.
func (b *Batch) Schema() []schema.Column { return b.columns }

// Column returns the cells of column i.
func (b *Batch) Column(i int) *Vector { return b.vectors[i] }

// Find returns the index of the named column, -1 when there is none.
func (b *Batch) Find(name string) int {
	for i := range b.columns {
		if b.columns[i].Name == name {
			return i
		}
	}
	return -1
}

// ColumnByName returns the cells of the named column, nil when there is none.
func (b *Batch) ColumnByName(name string) *Vector {
	if i := b.Find(name); i >= 0 {
		return b.vectors[i]
	}
	return nil
}

// Row returns row i as Go values, see [schema.Column.Go].
func (b *Batch) Row(i int) []any { return b.AppendRow(make([]any, 0, len(b.columns)), i) }

// AppendRow appends the Go values of row i to dst.
func (b *Batch) AppendRow(dst []any, i int) []any {
	for k, v := range b.vectors {
		dst = append(dst, b.columns[k].Go(v.Value(i)))
	}
	return dst
}

// Detach returns a copy that shares no memory with b.
func (b *Batch) Detach() *Batch {
	out := &Batch{columns: append([]schema.Column(nil), b.columns...), length: b.length}
	for _, v := range b.vectors {
		out.vectors = append(out.vectors, v.Clone())
	}
	return out
}

// Clone returns a copy of v that shares no memory with it, in the same form.
func (v *Vector) Clone() *Vector {
	return &Vector{kind: v.kind, codeLen: v.codeLen, length: v.length, valid: cloneBits(v.valid),
		words: cloneBits(v.words), data: v.cloneData(), offsets: v.cloneOffsets(), dict: v.cloneDict()}
}

func cloneBits(b Bitmap) Bitmap {
	if b == nil {
		return nil
	}
	return append(make(Bitmap, 0, len(b)), b...)
}

// cloneData copies the bytes in use: those between the first and the last offset of
// a plain vector of bytes, all of any other.
func (v *Vector) cloneData() []byte {
	src := v.data
	if v.kind == schema.KindBytes && v.dict == nil {
		src = src[v.offsets[0]:v.offsets[v.length]]
	}
	return append(alignedBytes(len(src))[:0], src...)
}

func (v *Vector) cloneOffsets() []int32 {
	if v.kind != schema.KindBytes || v.dict != nil {
		return nil
	}
	out := make([]int32, len(v.offsets))
	for i, o := range v.offsets {
		out[i] = o - v.offsets[0]
	}
	return out
}

func (v *Vector) cloneDict() *Vector {
	if v.dict == nil {
		return nil
	}
	return v.dict.Clone()
}

// Int8s returns the values of KindInt8; a null's is 0. As with all of these
// accessors the slice shares the vector's memory and another kind panics.
func (v *Vector) Int8s() []int8 { return typed[int8](v, schema.KindInt8) }

// Int16s returns the values of KindInt16; a null's is 0.
func (v *Vector) Int16s() []int16 { return typed[int16](v, schema.KindInt16) }

// Int32s returns the values of KindInt32; a null's is 0.
func (v *Vector) Int32s() []int32 { return typed[int32](v, schema.KindInt32) }

// Int64s returns the values of KindInt64; a null's is 0.
func (v *Vector) Int64s() []int64 { return typed[int64](v, schema.KindInt64) }

// Int128s returns the values of KindInt128; a null's is 0.
func (v *Vector) Int128s() []schema.Int128 { return typed[schema.Int128](v, schema.KindInt128) }

// Float32s returns the values of KindFloat32; a null's is 0.
func (v *Vector) Float32s() []float32 { return typed[float32](v, schema.KindFloat32) }

// Float64s returns the values of KindFloat64; a null's is 0.
func (v *Vector) Float64s() []float64 { return typed[float64](v, schema.KindFloat64) }

func typed[T Fixed](v *Vector, kind schema.Kind) []T {
	if v.kind != kind {
		panic(fmt.Sprintf("vector: of kind %s, not %s", v.kind, kind))
	}
	return view[T](v.data, v.length)
}

// BoolAt returns value i of KindBool; a null's is false.
func (v *Vector) BoolAt(i int) bool { return v.words.Get(i) }

// StringAt returns a copy of value i of KindBytes; a null's is "".
func (v *Vector) StringAt(i int) string {
	if v.IsNull(i) {
		return ""
	}
	return string(v.BytesAt(i))
}

// Equal reports whether a and b hold the same cells, bit for bit: a NaN equals
// itself, -0 and +0 differ. The form, dictionary or plain, does not matter.
func Equal(a, b *Vector) bool {
	if a.kind != b.kind || a.length != b.length || a.NullCount() != b.NullCount() {
		return false
	}
	if a.kind == schema.KindBytes || a.valid != nil || b.valid != nil {
		return equalCells(a, b)
	}
	if a.kind == schema.KindBool {
		return equalBits(a.words, b.words, a.length)
	}
	n := a.length * a.kind.Width()
	return bytes.Equal(a.data[:n], b.data[:n])
}

func equalBits(a, b Bitmap, n int) bool {
	for w := range Words(n) {
		if a[w] != b[w] {
			return false
		}
	}
	return true
}

func equalCells(a, b *Vector) bool {
	for i := range a.length {
		if a.IsNull(i) != b.IsNull(i) {
			return false
		}
		if !a.IsNull(i) && !equalCell(a, b, i) {
			return false
		}
	}
	return true
}

func equalCell(a, b *Vector, i int) bool {
	switch a.kind {
	case schema.KindBytes:
		return bytes.Equal(a.BytesAt(i), b.BytesAt(i))
	case schema.KindBool:
		return a.words.Get(i) == b.words.Get(i)
	}
	w := a.kind.Width()
	return bytes.Equal(a.data[i*w:i*w+w], b.data[i*w:i*w+w])
}
