package schema

import "fmt"

// Type is the logical type of a column. The numbers are those of Kudu's column
// files, so that a type can be written to a file footer as it is.
type Type uint8

// The column types.
const (
	Int8           Type = 1  // signed 8-bit integer
	Int16          Type = 3  // signed 16-bit integer
	Int32          Type = 5  // signed 32-bit integer
	Int64          Type = 7  // signed 64-bit integer
	String         Type = 8  // UTF-8 text
	Bool           Type = 9  // false or true; not allowed in keys
	Float          Type = 10 // IEEE 754 binary32; not allowed in keys
	Double         Type = 11 // IEEE 754 binary64; not allowed in keys
	Binary         Type = 12 // arbitrary bytes
	UnixtimeMicros Type = 13 // microseconds since 1970-01-01T00:00:00Z, 64 bits
	Decimal32      Type = 15 // unscaled decimal of precision 1..9
	Decimal64      Type = 16 // unscaled decimal of precision 10..18
	Decimal128     Type = 17 // unscaled decimal of precision 19..38
	Varchar        Type = 19 // UTF-8 text of at most Column.Length characters
	Date           Type = 20 // days since 1970-01-01, 32 bits, years 1..9999
)

// DecimalType returns the decimal type that holds the given precision
// (1..38 digits), and false for any other precision.
func DecimalType(precision int) (Type, bool) {
	switch {
	case precision < 1 || precision > 38:
		return 0, false
	case precision <= 9:
		return Decimal32, true
	case precision <= 18:
		return Decimal64, true
	}
	return Decimal128, true
}

// Kind is the physical representation of a cell in memory and in files.
type Kind uint8

// The physical kinds.
const (
	KindBool    Kind = iota + 1 // one bit
	KindInt8                    // 1 byte
	KindInt16                   // 2 bytes
	KindInt32                   // 4 bytes
	KindInt64                   // 8 bytes
	KindInt128                  // 16 bytes, see [Int128]
	KindFloat32                 // 4 bytes
	KindFloat64                 // 8 bytes
	KindBytes                   // variable length
)

// Width returns the bytes of one value of a fixed-width kind, 0 for KindBool
// (which is packed into bits) and for KindBytes.
func (k Kind) Width() int {
	switch k {
	case KindInt8:
		return 1
	case KindInt16:
		return 2
	case KindInt32, KindFloat32:
		return 4
	case KindInt64, KindFloat64:
		return 8
	case KindInt128:
		return 16
	}
	return 0
}

// IsInteger reports whether values of the kind are signed integers.
func (k Kind) IsInteger() bool { return k >= KindInt8 && k <= KindInt128 }

// IsFloat reports whether values of the kind are IEEE 754 numbers.
func (k Kind) IsFloat() bool { return k == KindFloat32 || k == KindFloat64 }

var kindNames = [...]string{KindBool: "bool", KindInt8: "int8", KindInt16: "int16", KindInt32: "int32",
	KindInt64: "int64", KindInt128: "int128", KindFloat32: "float32", KindFloat64: "float64", KindBytes: "bytes"}

// String returns the kind's name.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

var typeInfos = [...]struct {
	name string
	kind Kind
}{
	Int8: {"int8", KindInt8}, Int16: {"int16", KindInt16}, Int32: {"int32", KindInt32}, Int64: {"int64", KindInt64},
	String: {"string", KindBytes}, Bool: {"bool", KindBool}, Float: {"float", KindFloat32}, Double: {"double", KindFloat64},
	Binary: {"binary", KindBytes}, UnixtimeMicros: {"unixtime_micros", KindInt64}, Decimal32: {"decimal", KindInt32},
	Decimal64: {"decimal", KindInt64}, Decimal128: {"decimal", KindInt128}, Varchar: {"varchar", KindBytes}, Date: {"date", KindInt32},
}

// Kind returns the physical kind of the type, 0 for an unknown type.
func (t Type) Kind() Kind {
	if int(t) < len(typeInfos) {
		return typeInfos[t].kind
	}
	return 0
}

// Valid reports whether t is one of the types of this package.
func (t Type) Valid() bool { return t.Kind() != 0 }

// IsDecimal reports whether t is one of the three decimal widths.
func (t Type) IsDecimal() bool { return t >= Decimal32 && t <= Decimal128 }

// IsText reports whether values of the type are UTF-8 text.
func (t Type) IsText() bool { return t == String || t == Varchar }

// KeyCapable reports whether a column of the type may be part of a primary key.
func (t Type) KeyCapable() bool { return t.Valid() && t != Bool && t != Float && t != Double }

// String returns the type's name as it is written in a column definition,
// without parameters: "int64", "decimal", "varchar".
func (t Type) String() string {
	if t.Valid() {
		return typeInfos[t].name
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// Encoding is the data encoding of a column's pages. The numbers are those of
// Kudu's column files.
type Encoding uint8

// The encodings. EncodingAuto picks the type's default when a file is written.
const (
	EncodingAuto       Encoding = 0
	EncodingPlain      Encoding = 1 // every type
	EncodingPrefix     Encoding = 2 // string, binary, varchar
	EncodingRLE        Encoding = 4 // bool and integers up to 64 bits
	EncodingDict       Encoding = 5 // string, binary, varchar
	EncodingBitShuffle Encoding = 6 // numbers
)

// Encodings that Kudu does not have. A file is PAGED, and each of its pages says which of
// the others, or of PLAIN, PREFIX and RLE, it has; they cannot be chosen for a column.
const (
	EncodingPaged    Encoding = 100
	EncodingDelta    Encoding = 101 // integers and floats of up to 64 bits: differences, packed
	EncodingFrame    Encoding = 102 // the same: distances from the least, packed
	EncodingShuffle  Encoding = 103 // numbers: bits transposed, for a codec
	EncodingDistinct Encoding = 104 // numbers: the distinct ones and which of them, packed
	EncodingDecimal  Encoding = 105 // floats: as integers and a power of ten
	EncodingCodes    Encoding = 106 // bytes: words of the file's dictionary, packed
	EncodingText     Encoding = 107 // bytes: lengths, packed, and the bytes
)

var pageEncodingNames = map[Encoding]string{EncodingPaged: "paged", EncodingDelta: "delta", EncodingFrame: "frame",
	EncodingShuffle: "shuffle", EncodingDistinct: "distinct", EncodingDecimal: "decimal", EncodingCodes: "codes", EncodingText: "text"}

var encodingNames = map[Encoding]string{EncodingAuto: "auto", EncodingPlain: "plain", EncodingPrefix: "prefix",
	EncodingRLE: "rle", EncodingDict: "dict", EncodingBitShuffle: "bitshuffle"}

// String returns the encoding's name as it is written in a column definition.
func (e Encoding) String() string {
	if s, ok := encodingNames[e]; ok {
		return s
	}
	if s, ok := pageEncodingNames[e]; ok {
		return s
	}
	return fmt.Sprintf("encoding(%d)", uint8(e))
}

// Supports reports whether a column of kind k may use the encoding.
func (e Encoding) Supports(k Kind) bool {
	switch e {
	case EncodingAuto, EncodingPlain:
		return true
	case EncodingPrefix, EncodingDict:
		return k == KindBytes
	case EncodingRLE:
		return k == KindBool || k >= KindInt8 && k <= KindInt64
	case EncodingBitShuffle:
		return k.Width() > 0
	}
	return false
}

// Resolve returns the concrete encoding that EncodingAuto stands for in a column
// of kind k, and any other encoding unchanged.
func (e Encoding) Resolve(k Kind) Encoding {
	switch {
	case e != EncodingAuto:
		return e
	case k == KindBool:
		return EncodingRLE
	case k == KindBytes:
		return EncodingDict
	}
	return EncodingBitShuffle
}

// Compression is the codec of a column's blocks. The numbers are those of Kudu's
// column files, and 100 upwards minikudu's own.
type Compression uint8

// The codecs. CompressionDefault is resolved when a file is written.
const (
	CompressionDefault Compression = 0
	CompressionNone    Compression = 1
	CompressionSnappy  Compression = 2
	CompressionLZ4     Compression = 3
	CompressionZlib    Compression = 4
	CompressionZstd    Compression = 100 // not readable by Kudu
)

var compressionNames = map[Compression]string{CompressionDefault: "default", CompressionNone: "none",
	CompressionSnappy: "snappy", CompressionLZ4: "lz4", CompressionZlib: "zlib", CompressionZstd: "zstd"}

// String returns the codec's name as it is written in a column definition.
func (c Compression) String() string {
	if s, ok := compressionNames[c]; ok {
		return s
	}
	return fmt.Sprintf("compression(%d)", uint8(c))
}

// Resolve returns the codec that CompressionDefault stands for beside the given
// concrete encoding: none for bitshuffle, whose payload is LZ4 already, and LZ4
// for the others. Any other codec is returned unchanged.
func (c Compression) Resolve(e Encoding) Compression {
	switch {
	case c != CompressionDefault:
		return c
	case e == EncodingBitShuffle:
		return CompressionNone
	}
	return CompressionLZ4
}

// ParseEncoding returns the encoding of the given name.
func ParseEncoding(name string) (Encoding, bool) {
	for e, s := range encodingNames {
		if s == name {
			return e, true
		}
	}
	return 0, false
}

// ParseCompression returns the codec of the given name.
func ParseCompression(name string) (Compression, bool) {
	for c, s := range compressionNames {
		if s == name {
			return c, true
		}
	}
	return 0, false
}
