package vector

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/minikudu/minikudu/schema"
)

// Fixed is the set of Go types that hold fixed-width values: KindInt8 is int8,
// KindInt16 int16, KindInt32 int32, KindInt64 int64, KindInt128 schema.Int128,
// KindFloat32 float32, KindFloat64 float64. The unsigned ones view dictionary
// codes and raw words.
type Fixed interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | schema.Int128
}

// Vector is a column of Len values of one kind. See the package comment for its
// layout and invariants.
type Vector struct {
	kind    schema.Kind
	codeLen uint8 // bytes of a dictionary code: 0 when not in dictionary form, else 1, 2 or 4
	length  int
	valid   Bitmap  // nil when no value is null
	words   Bitmap  // KindBool
	data    []byte  // fixed width: length values; bytes: the byte buffer; dictionary form: the codes
	offsets []int32 // bytes, not in dictionary form
	dict    *Vector // dictionary form: the words, plain and without nulls
}

// New returns an empty vector of the given kind with room for n values.
func New(kind schema.Kind, n int) *Vector {
	v := &Vector{}
	v.Reset(kind)
	v.Reserve(n)
	return v
}

// Reset makes v an empty vector of the given kind and keeps its memory, which must
// be v's alone: not that of a slice or of a vector handed out.
func (v *Vector) Reset(kind schema.Kind) {
	if v.kind == schema.KindBytes && kind != v.kind {
		v.data = nil // a byte buffer need not be aligned
	}
	v.kind, v.length, v.valid, v.dict, v.codeLen = kind, 0, nil, nil, 0
	v.words, v.data = v.words[:0], v.data[:0]
	if kind == schema.KindBytes {
		v.offsets = append(v.offsets[:0], 0)
	}
}

// Reserve makes room for n more values.
func (v *Vector) Reserve(n int) {
	switch {
	case v.kind == schema.KindBool:
		if need := Words(v.length + n); cap(v.words) < need {
			v.words = append(make(Bitmap, 0, need), v.words...)
		}
	case v.kind == schema.KindBytes:
		if need := len(v.offsets) + n; cap(v.offsets) < need {
			v.offsets = append(make([]int32, 0, need), v.offsets...)
		}
	default:
		v.data = reserve(v.data, n*v.kind.Width())
	}
}

// reserve returns b with capacity for n more bytes, 8-byte aligned.
func reserve(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	return append(alignedBytes(max(len(b)+n, 2*cap(b)))[:0], b...)
}

// alignedBytes returns n zero bytes that start at a multiple of 8.
func alignedBytes(n int) []byte {
	if n == 0 {
		return nil
	}
	w := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), len(w)*8)[:n]
}

// FromFixed returns a vector of the given kind over vals, which it takes over, with
// the given validity (nil for no nulls).
func FromFixed[T Fixed](kind schema.Kind, vals []T, valid Bitmap) *Vector {
	v := &Vector{kind: kind, length: len(vals), valid: valid}
	if kind.Width() != int(unsafe.Sizeof(*new(T))) {
		panic(fmt.Sprintf("vector: %T does not hold %s", *new(T), kind))
	}
	v.data = bytesOf(vals)
	return v
}

// FromBits returns a vector of KindBool over words, which it takes over.
func FromBits(words Bitmap, n int, valid Bitmap) *Vector {
	return &Vector{kind: schema.KindBool, length: n, words: words, valid: valid}
}

// FromBytes returns a vector of KindBytes over the buffers, which it takes over.
// offsets has one entry more than there are values.
func FromBytes(offsets []int32, data []byte, valid Bitmap) *Vector {
	return &Vector{kind: schema.KindBytes, length: len(offsets) - 1, offsets: offsets, data: data, valid: valid}
}

// FromCodes returns a vector in dictionary form over codes and words, which it
// takes over. Every code is below dict.Len().
func FromCodes[T uint8 | uint16 | uint32](codes []T, dict *Vector, valid Bitmap) *Vector {
	return &Vector{kind: schema.KindBytes, length: len(codes), codeLen: uint8(unsafe.Sizeof(*new(T))),
		data: bytesOf(codes), dict: dict, valid: valid}
}

func bytesOf[T Fixed](vals []T) []byte {
	if len(vals) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&vals[0])), len(vals)*int(unsafe.Sizeof(vals[0])))
}

// Values returns the values of a fixed-width vector as a slice that shares its
// memory. T must have the width of the kind.
func Values[T Fixed](v *Vector) []T {
	var zero T
	if v.kind.Width() != int(unsafe.Sizeof(zero)) {
		panic(fmt.Sprintf("vector: %T does not view %s", zero, v.kind))
	}
	return view[T](v.data, v.length)
}

// Codes returns the codes of a vector in dictionary form. T must have CodeWidth bytes.
func Codes[T uint8 | uint16 | uint32](v *Vector) []T {
	var zero T
	if int(v.codeLen) != int(unsafe.Sizeof(zero)) {
		panic(fmt.Sprintf("vector: %T does not view codes of %d bytes", zero, v.codeLen))
	}
	return view[T](v.data, v.length)
}

func view[T Fixed](data []byte, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&data[0])), n)
}

// Kind returns the physical kind of the values.
func (v *Vector) Kind() schema.Kind { return v.kind }

// Len returns the number of values.
func (v *Vector) Len() int { return v.length }

// Valid returns the validity bitmap, nil when no value is null.
func (v *Vector) Valid() Bitmap { return v.valid }

// Dict returns the words of a vector in dictionary form, nil for any other.
func (v *Vector) Dict() *Vector { return v.dict }

// CodeWidth returns the bytes of a dictionary code: 1, 2 or 4, and 0 for a vector
// that is not in dictionary form.
func (v *Vector) CodeWidth() int { return int(v.codeLen) }

// Bits returns the values of KindBool.
func (v *Vector) Bits() Bitmap { return v.words }

// Offsets returns the offsets of a plain vector of bytes, Len+1 of them.
func (v *Vector) Offsets() []int32 { return v.offsets }

// Data returns the byte buffer of a plain vector of bytes, or the raw memory of a
// fixed-width one.
func (v *Vector) Data() []byte { return v.data }

// IsNull reports whether value i is null.
func (v *Vector) IsNull(i int) bool { return v.valid != nil && !v.valid.Get(i) }

// NullCount returns the number of nulls.
func (v *Vector) NullCount() int {
	if v.valid == nil {
		return 0
	}
	return v.length - v.valid.Count()
}

// Size returns the bytes of memory the vector holds, a shared dictionary not counted.
func (v *Vector) Size() int {
	return 8*cap(v.valid) + 8*cap(v.words) + cap(v.data) + 4*cap(v.offsets) + int(unsafe.Sizeof(*v))
}

// Code returns the dictionary code of value i.
func (v *Vector) Code(i int) int {
	switch v.codeLen {
	case 1:
		return int(v.data[i])
	case 2:
		return int(view[uint16](v.data, v.length)[i])
	}
	return int(view[uint32](v.data, v.length)[i])
}

// BytesAt returns value i of KindBytes; a null's is empty. The result shares the
// vector's memory.
func (v *Vector) BytesAt(i int) []byte {
	if v.dict != nil {
		if v.IsNull(i) {
			return nil // a dictionary of nulls alone has no words
		}
		v, i = v.dict, v.Code(i)
	}
	return v.data[v.offsets[i]:v.offsets[i+1]:v.offsets[i+1]]
}

// Value returns value i; [schema.Null] when it is null.
func (v *Vector) Value(i int) schema.Value {
	if v.IsNull(i) {
		return schema.Null
	}
	switch v.kind {
	case schema.KindBool:
		return schema.BoolValue(v.words.Get(i))
	case schema.KindInt8:
		return schema.IntValue(v.kind, int64(Values[int8](v)[i]))
	case schema.KindInt16:
		return schema.IntValue(v.kind, int64(Values[int16](v)[i]))
	case schema.KindInt32:
		return schema.IntValue(v.kind, int64(Values[int32](v)[i]))
	case schema.KindInt64:
		return schema.IntValue(v.kind, Values[int64](v)[i])
	case schema.KindInt128:
		return schema.Int128Value(Values[schema.Int128](v)[i])
	case schema.KindFloat32:
		return schema.Float32Value(Values[float32](v)[i])
	case schema.KindFloat64:
		return schema.Float64Value(Values[float64](v)[i])
	}
	return schema.BytesValue(v.BytesAt(i))
}

// Append appends a value of the vector's kind, or null. The vector must not be in
// dictionary form. It fails only when a vector of bytes would exceed 2 GiB.
func (v *Vector) Append(x schema.Value) error {
	if x.IsNull() {
		v.AppendNull()
		return nil
	}
	switch v.kind {
	case schema.KindBool:
		v.AppendBool(x.Bool())
	case schema.KindInt8:
		AppendFixed(v, int8(x.Int()))
	case schema.KindInt16:
		AppendFixed(v, int16(x.Int()))
	case schema.KindInt32:
		AppendFixed(v, int32(x.Int()))
	case schema.KindInt64:
		AppendFixed(v, x.Int())
	case schema.KindInt128:
		AppendFixed(v, x.Int128())
	case schema.KindFloat32:
		AppendFixed(v, x.Float32())
	case schema.KindFloat64:
		AppendFixed(v, x.Float())
	default:
		s := x.Str()
		return v.AppendBytes(unsafe.Slice(unsafe.StringData(s), len(s)))
	}
	return nil
}

// AppendFixed appends one value to a fixed-width vector of the same width.
func AppendFixed[T Fixed](v *Vector, x T) {
	w := int(unsafe.Sizeof(x))
	if cap(v.data)-len(v.data) < w {
		v.data = reserve(v.data, w)
	}
	n := len(v.data)
	v.data = v.data[:n+w]
	*(*T)(unsafe.Pointer(&v.data[n])) = x
	v.grown()
}

// AppendBool appends a value of KindBool.
func (v *Vector) AppendBool(b bool) {
	if v.length&63 == 0 {
		v.words = append(v.words, 0)
	}
	if b {
		v.words.Set(v.length)
	}
	v.grown()
}

// maxData is the most bytes of a vector of bytes, bounded by its 32-bit offsets; a
// variable so that tests need not fill it.
var maxData = math.MaxInt32

// ErrTooLarge is returned when a vector of bytes would hold more than 2 GiB.
var ErrTooLarge = fmt.Errorf("vector of bytes would exceed %d bytes", math.MaxInt32)

// AppendBytes appends a copy of b to a plain vector of bytes. It fails only when the
// vector would exceed 2 GiB.
func (v *Vector) AppendBytes(b []byte) error {
	if len(b) > maxData-len(v.data) {
		return ErrTooLarge
	}
	v.data = append(v.data, b...)
	v.offsets = append(v.offsets, int32(len(v.data)))
	v.grown()
	return nil
}

// AppendNull appends a null.
func (v *Vector) AppendNull() {
	v.needValid()
	switch v.kind {
	case schema.KindBool:
		if v.length&63 == 0 {
			v.words = append(v.words, 0)
		}
	case schema.KindBytes:
		v.offsets = append(v.offsets, int32(len(v.data)))
	default:
		w := v.kind.Width()
		v.data = reserve(v.data, w)
		n := len(v.data)
		v.data = v.data[:n+w]
		clear(v.data[n:])
	}
	if v.length&63 == 0 {
		v.valid = append(v.valid, 0)
	}
	v.length++
}

// needValid makes a validity bitmap, if there is none, that says "not null" of all.
func (v *Vector) needValid() {
	if v.valid == nil {
		v.valid = NewBitmap(v.length)
		v.valid.SetRange(0, v.length)
	}
}

// Truncate drops the values at n and above. The vector must be plain.
func (v *Vector) Truncate(n int) {
	if n >= v.length {
		return
	}
	v.length = n
	v.valid = truncateBits(v.valid, n)
	switch v.kind {
	case schema.KindBool:
		v.words = truncateBits(v.words, n)
	case schema.KindBytes:
		v.offsets = v.offsets[:n+1]
		v.data = v.data[:v.offsets[n]]
	default:
		v.data = v.data[:n*v.kind.Width()]
	}
}

func truncateBits(b Bitmap, n int) Bitmap {
	if b == nil {
		return nil
	}
	b = b[:Words(n)]
	if n&63 != 0 {
		b[n>>6] &= 1<<(uint(n)&63) - 1
	}
	return b
}

// grown counts one appended non-null value.
func (v *Vector) grown() {
	if v.valid != nil {
		if v.length&63 == 0 {
			v.valid = append(v.valid, 0)
		}
		v.valid.Set(v.length)
	}
	v.length++
}

// Slice returns values [from, to) of v. Fixed-width values, bytes and codes share
// memory with v; booleans and validity are copied unless from is a multiple of 64
// and to is the end.
func (v *Vector) Slice(from, to int) *Vector {
	s := &Vector{kind: v.kind, codeLen: v.codeLen, length: to - from, dict: v.dict}
	s.valid = sliceBits(v.valid, from, to, v.length)
	switch {
	case v.kind == schema.KindBool:
		s.words = sliceBits(v.words, from, to, v.length)
	case v.dict != nil:
		w := int(v.codeLen)
		s.data = v.data[from*w : to*w : to*w]
	case v.kind == schema.KindBytes:
		s.offsets = v.offsets[from : to+1 : to+1]
		s.data = v.data[:s.offsets[to-from]:s.offsets[to-from]]
	default:
		w := v.kind.Width()
		s.data = v.data[from*w : to*w : to*w]
	}
	return s
}

func sliceBits(b Bitmap, from, to, n int) Bitmap {
	if b == nil {
		return nil
	}
	if from&63 == 0 && to == n {
		return b[from>>6 : Words(to) : Words(to)]
	}
	out := NewBitmap(to - from)
	out.CopyRange(0, b, from, to-from)
	return out
}
