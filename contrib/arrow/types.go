package arrow

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// A converter turns an array into a vector of the column's kind. valid is the array's
// validity, nil when no cell is null.
type converter func(a arrow.Array, valid vector.Bitmap) (*vector.Vector, error)

// Columns returns the columns that the fields of an Arrow schema stand for.
func Columns(s *arrow.Schema) ([]schema.Column, error) {
	columns, _, err := columnsOf(s)
	return columns, err
}

func columnsOf(s *arrow.Schema) ([]schema.Column, []converter, error) {
	columns := make([]schema.Column, s.NumFields())
	converters := make([]converter, s.NumFields())
	for i := range columns {
		f := s.Field(i)
		columns[i] = schema.Column{Name: f.Name, Nullable: f.Nullable}
		if converters[i] = converterOf(&columns[i], f.Type); converters[i] == nil {
			return nil, nil, &UnsupportedError{Column: f.Name, Type: f.Type.String()}
		}
	}
	return columns, converters, nil
}

// converterOf sets the type of c and returns the converter of its arrays, nil when
// there is none.
func converterOf(c *schema.Column, t arrow.DataType) converter {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return dictionaryConverter(c, t)
	case arrow.ExtensionType:
		return extensionConverter(c, t)
	case *arrow.TimestampType:
		c.Type = schema.UnixtimeMicros
		return timestampConverter(t.Unit)
	case arrow.DecimalType:
		return decimalConverter(c, t)
	}
	simple, ok := simpleTypes[t.ID()]
	if !ok {
		return nil
	}
	c.Type = simple.typ
	return simple.convert
}

// simpleTypes are the types without parameters that matter.
var simpleTypes = map[arrow.Type]struct {
	typ     schema.Type
	convert converter
}{
	arrow.NULL:              {schema.String, convertNull},
	arrow.BOOL:              {schema.Bool, convertBool},
	arrow.INT8:              {schema.Int8, share[int8](schema.KindInt8)},
	arrow.INT16:             {schema.Int16, share[int16](schema.KindInt16)},
	arrow.INT32:             {schema.Int32, share[int32](schema.KindInt32)},
	arrow.INT64:             {schema.Int64, share[int64](schema.KindInt64)},
	arrow.UINT8:             {schema.Int16, convert(schema.KindInt16, func(x uint8) (int16, bool) { return int16(x), true })},
	arrow.UINT16:            {schema.Int32, convert(schema.KindInt32, func(x uint16) (int32, bool) { return int32(x), true })},
	arrow.UINT32:            {schema.Int64, convert(schema.KindInt64, func(x uint32) (int64, bool) { return int64(x), true })},
	arrow.UINT64:            {schema.Int64, convert(schema.KindInt64, func(x uint64) (int64, bool) { return int64(x), x <= 1<<63-1 })},
	arrow.FLOAT16:           {schema.Float, convert(schema.KindFloat32, func(x uint16) (float32, bool) { return float16.FromBits(x).Float32(), true })},
	arrow.FLOAT32:           {schema.Float, share[float32](schema.KindFloat32)},
	arrow.FLOAT64:           {schema.Double, share[float64](schema.KindFloat64)},
	arrow.DATE32:            {schema.Date, share[int32](schema.KindInt32)},
	arrow.DATE64:            {schema.Date, convert(schema.KindInt32, dayOfMillis)},
	arrow.TIME32:            {schema.Int32, share[int32](schema.KindInt32)},
	arrow.TIME64:            {schema.Int64, share[int64](schema.KindInt64)},
	arrow.DURATION:          {schema.Int64, share[int64](schema.KindInt64)},
	arrow.STRING:            {schema.String, convertBytes},
	arrow.BINARY:            {schema.Binary, convertBytes},
	arrow.LARGE_STRING:      {schema.String, convertLargeBytes},
	arrow.LARGE_BINARY:      {schema.Binary, convertLargeBytes},
	arrow.FIXED_SIZE_BINARY: {schema.Binary, convertFixedBytes},
	arrow.STRING_VIEW:       {schema.String, convertViews},
	arrow.BINARY_VIEW:       {schema.Binary, convertViews},
}

func dayOfMillis(x int64) (int32, bool) {
	day := floorDiv(x, (24 * time.Hour).Milliseconds())
	return int32(day), int64(int32(day)) == day
}

// floorDiv returns a/b rounded towards minus infinity; b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func timestampConverter(u arrow.TimeUnit) converter {
	switch u {
	case arrow.Second:
		return convert(schema.KindInt64, func(x int64) (int64, bool) { y := x * 1_000_000; return y, y/1_000_000 == x })
	case arrow.Millisecond:
		return convert(schema.KindInt64, func(x int64) (int64, bool) { y := x * 1000; return y, y/1000 == x })
	case arrow.Nanosecond:
		return convert(schema.KindInt64, func(x int64) (int64, bool) { return floorDiv(x, 1000), true })
	}
	return share[int64](schema.KindInt64)
}

// decimalConverter maps decimals by their precision, which may want another width than
// the array's.
func decimalConverter(c *schema.Column, t arrow.DecimalType) converter {
	precision, scale := t.GetPrecision(), t.GetScale()
	typ, ok := schema.DecimalType(int(precision))
	if !ok || scale < 0 || scale > precision {
		return nil
	}
	c.Type, c.Precision, c.Scale = typ, uint8(precision), uint8(scale)
	switch t.ID() {
	case arrow.DECIMAL32:
		return decimals(c.Kind(), schema.KindInt32, func(x int32) schema.Int128 { return schema.Int128From(int64(x)) })
	case arrow.DECIMAL64:
		return decimals(c.Kind(), schema.KindInt64, schema.Int128From)
	case arrow.DECIMAL128:
		return decimals(c.Kind(), schema.KindInt128, func(x schema.Int128) schema.Int128 { return x })
	}
	return nil
}

// decimals returns the converter of decimals whose array holds values of kind from.
func decimals[S vector.Fixed](to, from schema.Kind, widen func(S) schema.Int128) converter {
	switch {
	case to == from:
		return share[S](to)
	case to == schema.KindInt32:
		return convert(to, func(x S) (int32, bool) {
			n, ok := widen(x).Int64()
			return int32(n), ok && int64(int32(n)) == n
		})
	case to == schema.KindInt64:
		return convert(to, func(x S) (int64, bool) { return widen(x).Int64() })
	}
	return convert(to, func(x S) (schema.Int128, bool) { return widen(x), true })
}

func extensionConverter(c *schema.Column, t arrow.ExtensionType) converter {
	storage := converterOf(c, t.StorageType())
	if storage == nil {
		return nil
	}
	return func(a arrow.Array, valid vector.Bitmap) (*vector.Vector, error) {
		return storage(a.(array.ExtensionArray).Storage(), valid)
	}
}
