package parquet

import (
	"fmt"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/minikudu/minikudu/schema"
)

// columnOf returns the column that a leaf of the file's schema stands for and the
// decoder of its values.
func columnOf(e *format.SchemaElement) (schema.Column, decoder, error) {
	c := schema.Column{Name: e.Name, Nullable: e.RepetitionType.V == format.Optional}
	unsupported := func(typ string) (schema.Column, decoder, error) {
		return c, nil, &UnsupportedError{Column: e.Name, Type: typ}
	}
	switch {
	case e.NumChildren.V > 0 || !e.Type.Valid:
		return unsupported("group")
	case e.RepetitionType.V == format.Repeated:
		return unsupported("repeated " + e.Type.V.String())
	}
	d := decoderOf(&c, e, annotationOf(e))
	if d == nil {
		return unsupported(typeName(e))
	}
	return c, d, nil
}

func typeName(e *format.SchemaElement) string {
	name := e.Type.V.String()
	if s := e.LogicalType.String(); s != "" {
		return name + " " + s
	}
	if e.ConvertedType.Valid {
		return fmt.Sprintf("%s, converted type %d", name, e.ConvertedType.V)
	}
	return name
}

// annotation is what a leaf says about its type beyond the physical one.
type annotation struct {
	kind      annotationKind
	bits      int // integers
	scale     int32
	precision int32
	nanos     int64 // of a unit of time
}

type annotationKind uint8

const (
	plain annotationKind = iota
	signed
	unsigned
	decimal
	text
	date
	timestamp
	timeOfDay
	unknown // an annotation that changes what the bytes mean, in a way not supported
)

const (
	nanosOfMilli = 1_000_000
	nanosOfMicro = 1_000
)

// annotationOf returns the annotation of a leaf: the logical type, or the converted
// type of older files.
func annotationOf(e *format.SchemaElement) annotation {
	switch t := e.LogicalType.Value.(type) {
	case nil:
		return convertedOf(e)
	case *format.IntType:
		return annotation{kind: signedness(t.IsSigned), bits: int(t.BitWidth)}
	case *format.DecimalType:
		return annotation{kind: decimal, scale: t.Scale, precision: t.Precision}
	case *format.StringType, *format.EnumType, *format.JsonType:
		return annotation{kind: text}
	case *format.DateType:
		return annotation{kind: date}
	case *format.TimestampType:
		return annotation{kind: timestamp, nanos: nanosOf(t.Unit)}
	case *format.TimeType:
		return annotation{kind: timeOfDay, nanos: nanosOf(t.Unit)}
	case *format.UUIDType, *format.BsonType, *format.GeometryType, *format.GeographyType:
		return annotation{}
	}
	return annotation{kind: unknown}
}

func signedness(is bool) annotationKind {
	if is {
		return signed
	}
	return unsigned
}

func nanosOf(u format.TimeUnit) int64 {
	switch u.Value.(type) {
	case *format.MilliSeconds:
		return nanosOfMilli
	case *format.MicroSeconds:
		return nanosOfMicro
	case *format.NanoSeconds:
		return 1
	}
	return 0
}

func convertedOf(e *format.SchemaElement) annotation {
	if !e.ConvertedType.Valid {
		return annotation{}
	}
	switch t := e.ConvertedType.V; t {
	case deprecated.UTF8, deprecated.Enum, deprecated.Json:
		return annotation{kind: text}
	case deprecated.Decimal:
		return annotation{kind: decimal, scale: e.Scale.V, precision: e.Precision.V}
	case deprecated.Date:
		return annotation{kind: date}
	case deprecated.TimeMillis:
		return annotation{kind: timeOfDay, nanos: nanosOfMilli}
	case deprecated.TimeMicros:
		return annotation{kind: timeOfDay, nanos: nanosOfMicro}
	case deprecated.TimestampMillis:
		return annotation{kind: timestamp, nanos: nanosOfMilli}
	case deprecated.TimestampMicros:
		return annotation{kind: timestamp, nanos: nanosOfMicro}
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		return annotation{kind: signed, bits: 8 << (t - deprecated.Int8)}
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		return annotation{kind: unsigned, bits: 8 << (t - deprecated.Uint8)}
	case deprecated.Bson, deprecated.Interval:
		return annotation{}
	}
	return annotation{kind: unknown}
}

// decoderOf sets the type of c and returns the decoder of its values, nil when there
// is none.
func decoderOf(c *schema.Column, e *format.SchemaElement, a annotation) decoder {
	switch e.Type.V {
	case format.Boolean:
		if a.kind == plain {
			c.Type = schema.Bool
			return decodeBools
		}
	case format.Int32:
		return int32Decoder(c, a)
	case format.Int64:
		return int64Decoder(c, a)
	case format.Int96:
		c.Type = schema.UnixtimeMicros
		return decodeInt96
	case format.Float:
		if a.kind == plain {
			c.Type = schema.Float
			return copyOf(valuesFloat)
		}
	case format.Double:
		if a.kind == plain {
			c.Type = schema.Double
			return copyOf(valuesDouble)
		}
	case format.ByteArray:
		return bytesDecoder(c, a)
	case format.FixedLenByteArray:
		return fixedDecoder(c, e, a)
	}
	return nil
}

func int32Decoder(c *schema.Column, a annotation) decoder {
	switch {
	case a.kind == plain, a.kind == signed && a.bits == 32, a.kind == timeOfDay:
		c.Type = schema.Int32
		return copyOf(valuesInt32)
	case a.kind == date:
		c.Type = schema.Date
		return copyOf(valuesInt32)
	case a.kind == signed && a.bits == 8:
		c.Type = schema.Int8
		return convert(valuesInt32, narrow[int32, int8])
	case a.kind == signed && a.bits == 16:
		c.Type = schema.Int16
		return convert(valuesInt32, narrow[int32, int16])
	case a.kind == unsigned && a.bits == 8:
		c.Type = schema.Int16
		return convert(valuesInt32, narrow[int32, int16])
	case a.kind == unsigned && a.bits == 16:
		c.Type = schema.Int32
		return copyOf(valuesInt32)
	case a.kind == unsigned && a.bits == 32:
		c.Type = schema.Int64
		return convert(valuesInt32, func(x int32) (int64, bool) { return int64(uint32(x)), true })
	case a.kind == decimal && setDecimal(c, a):
		return decimalOf(c, valuesInt32)
	}
	return nil
}

func int64Decoder(c *schema.Column, a annotation) decoder {
	switch {
	case a.kind == plain, a.kind == signed && a.bits == 64, a.kind == timeOfDay:
		c.Type = schema.Int64
		return copyOf(valuesInt64)
	case a.kind == unsigned && a.bits == 64:
		c.Type = schema.Int64
		return convert(valuesInt64, func(x int64) (int64, bool) { return x, x >= 0 })
	case a.kind == timestamp && a.nanos != 0:
		c.Type = schema.UnixtimeMicros
		return timestampDecoder(a.nanos)
	case a.kind == decimal && setDecimal(c, a):
		return decimalOf(c, valuesInt64)
	}
	return nil
}

func bytesDecoder(c *schema.Column, a annotation) decoder {
	switch {
	case a.kind == plain:
		c.Type = schema.Binary
		return decodeBytes
	case a.kind == text:
		c.Type = schema.String
		return decodeBytes
	case a.kind == decimal && setDecimal(c, a):
		return bigEndianDecimals(c.Kind())
	}
	return nil
}

func fixedDecoder(c *schema.Column, e *format.SchemaElement, a annotation) decoder {
	switch {
	case e.TypeLength.V <= 0:
		return nil
	case a.kind == plain:
		c.Type = schema.Binary
		return decodeBytes
	case a.kind == decimal && setDecimal(c, a):
		return bigEndianDecimals(c.Kind())
	}
	return nil
}

// setDecimal sets the type of a decimal column and reports whether there is one.
func setDecimal(c *schema.Column, a annotation) bool {
	t, ok := schema.DecimalType(int(a.precision))
	if !ok || a.scale < 0 || a.scale > a.precision {
		return false
	}
	c.Type, c.Precision, c.Scale = t, uint8(a.precision), uint8(a.scale)
	return true
}

// valueError says that a value of the file does not fit the column's type.
func valueError(row int, want schema.Kind) error {
	return fmt.Errorf("value %d of its page does not fit %s", row, want)
}
