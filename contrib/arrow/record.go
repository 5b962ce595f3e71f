package arrow

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/endian"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Schema returns the Arrow schema of the columns.
func Schema(columns []schema.Column) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i := range columns {
		fields[i] = arrow.Field{Name: columns[i].Name, Type: typeOf(&columns[i]), Nullable: columns[i].Nullable}
	}
	return arrow.NewSchema(fields, nil)
}

// typeOf returns the Arrow type of a column.
func typeOf(c *schema.Column) arrow.DataType {
	switch c.Type {
	case schema.Bool:
		return arrow.FixedWidthTypes.Boolean
	case schema.Int8:
		return arrow.PrimitiveTypes.Int8
	case schema.Int16:
		return arrow.PrimitiveTypes.Int16
	case schema.Int32:
		return arrow.PrimitiveTypes.Int32
	case schema.Int64:
		return arrow.PrimitiveTypes.Int64
	case schema.Float:
		return arrow.PrimitiveTypes.Float32
	case schema.Double:
		return arrow.PrimitiveTypes.Float64
	case schema.UnixtimeMicros:
		return arrow.FixedWidthTypes.Timestamp_us
	case schema.Date:
		return arrow.FixedWidthTypes.Date32
	case schema.Decimal32:
		return &arrow.Decimal32Type{Precision: int32(c.Precision), Scale: int32(c.Scale)}
	case schema.Decimal64:
		return &arrow.Decimal64Type{Precision: int32(c.Precision), Scale: int32(c.Scale)}
	case schema.Decimal128:
		return &arrow.Decimal128Type{Precision: int32(c.Precision), Scale: int32(c.Scale)}
	case schema.String, schema.Varchar:
		return arrow.BinaryTypes.String
	}
	return arrow.BinaryTypes.Binary
}

// Record returns the rows of the batch as a record that shares its memory; see the
// package comment for how long it lives. Strings in dictionary form become dictionary
// arrays, so that the schema may differ from one batch of a scan to the next.
func Record(b *vector.Batch) (arrow.RecordBatch, error) {
	columns := b.Schema()
	s := Schema(columns)
	fields, changed := s.Fields(), false
	for i := range columns {
		if v := b.Column(i); v.Dict() != nil {
			fields[i].Type, changed = &arrow.DictionaryType{IndexType: indexType(v), ValueType: fields[i].Type}, true
		}
	}
	if changed {
		s = arrow.NewSchema(fields, nil)
	}
	return record(s, b)
}

// plainRecord returns the rows of the batch as a record of the given schema, strings in
// dictionary form written out.
func plainRecord(s *arrow.Schema, b *vector.Batch) (arrow.RecordBatch, error) {
	vectors := make([]*vector.Vector, b.NumColumns())
	for i := range vectors {
		v, err := b.Column(i).Flatten()
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", b.Schema()[i].Name, err)
		}
		vectors[i] = v
	}
	return record(s, vector.NewBatch(b.Schema(), vectors, b.Len()))
}

func record(s *arrow.Schema, b *vector.Batch) (arrow.RecordBatch, error) {
	arrays := make([]arrow.Array, b.NumColumns())
	for i := range arrays {
		c, v := &b.Schema()[i], b.Column(i)
		if v.Kind() != c.Kind() {
			return nil, &schema.ValueError{Row: -1, Column: c.Name, Want: c.TypeString(), Given: "vector of " + v.Kind().String(), Reason: "wrong kind"}
		}
		if !c.Nullable && v.NullCount() > 0 {
			return nil, &schema.ValueError{Row: -1, Column: c.Name, Want: c.TypeString() + " not null", Given: "null", Reason: "not nullable"}
		}
		data := dataOf(s.Field(i).Type, v)
		arrays[i] = array.MakeFromData(data)
		data.Release()
		defer arrays[i].Release()
	}
	return array.NewRecordBatch(s, arrays, int64(b.Len())), nil
}

// dataOf returns the cells of v as Arrow's buffers.
func dataOf(t arrow.DataType, v *vector.Vector) *array.Data {
	valid := (*memory.Buffer)(nil)
	nulls := v.NullCount()
	if nulls > 0 {
		valid = bitBuffer(v.Valid())
	}
	n := v.Len()
	switch {
	case v.Dict() != nil:
		words := dataOf(t.(*arrow.DictionaryType).ValueType, v.Dict())
		defer words.Release()
		codes := memory.NewBufferBytes(codeBytes(v))
		return array.NewDataWithDictionary(t, n, []*memory.Buffer{valid, codes}, nulls, 0, words)
	case v.Kind() == schema.KindBool:
		return array.NewData(t, n, []*memory.Buffer{valid, bitBuffer(v.Bits())}, nil, nulls, 0)
	case v.Kind() == schema.KindBytes:
		offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(v.Offsets()))
		return array.NewData(t, n, []*memory.Buffer{valid, offsets, memory.NewBufferBytes(v.Data())}, nil, nulls, 0)
	}
	values := memory.NewBufferBytes(v.Data()[:n*v.Kind().Width()])
	return array.NewData(t, n, []*memory.Buffer{valid, values}, nil, nulls, 0)
}

// bitBuffer returns the bits as bytes, the first in the lowest bit.
func bitBuffer(words vector.Bitmap) *memory.Buffer {
	if !endian.IsBigEndian {
		return memory.NewBufferBytes(arrow.Uint64Traits.CastToBytes(words))
	}
	var out []byte
	for _, w := range words {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return memory.NewBufferBytes(out)
}

func indexType(v *vector.Vector) arrow.DataType {
	switch v.CodeWidth() {
	case 1:
		return arrow.PrimitiveTypes.Uint8
	case 2:
		return arrow.PrimitiveTypes.Uint16
	}
	return arrow.PrimitiveTypes.Uint32
}

func codeBytes(v *vector.Vector) []byte {
	switch v.CodeWidth() {
	case 1:
		return vector.Codes[uint8](v)
	case 2:
		return arrow.Uint16Traits.CastToBytes(vector.Codes[uint16](v))
	}
	return arrow.Uint32Traits.CastToBytes(vector.Codes[uint32](v))
}
