package parquet

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// A decoder appends values [from, to) of a page, none of them null, to a vector of
// the column's kind.
type decoder func(dst *vector.Vector, src *encoding.Values, from, to int) error

func valuesInt32(v *encoding.Values) []int32            { return v.Int32() }
func valuesInt64(v *encoding.Values) []int64            { return v.Int64() }
func valuesInt96(v *encoding.Values) []deprecated.Int96 { return v.Int96() }
func valuesFloat(v *encoding.Values) []float32          { return v.Float() }
func valuesDouble(v *encoding.Values) []float64         { return v.Double() }

// part returns values [from, to), or an error when the page does not hold them.
func part[S any](vals []S, from, to int) ([]S, error) {
	if to > len(vals) {
		return nil, errShort
	}
	return vals[from:to], nil
}

// copyOf returns the decoder of values that are stored as the vector holds them.
func copyOf[T vector.Fixed](values func(*encoding.Values) []T) decoder {
	return func(dst *vector.Vector, src *encoding.Values, from, to int) error {
		vals, err := part(values(src), from, to)
		copy(vector.Extend[T](dst, len(vals)), vals)
		return err
	}
}

// convert returns the decoder of values that f turns into what the vector holds; f
// reports whether the value fits.
func convert[S any, T vector.Fixed](values func(*encoding.Values) []S, f func(S) (T, bool)) decoder {
	return func(dst *vector.Vector, src *encoding.Values, from, to int) error {
		vals, err := part(values(src), from, to)
		if err != nil {
			return err
		}
		out := vector.Extend[T](dst, len(vals))
		for i, x := range vals {
			y, ok := f(x)
			if !ok {
				return valueError(from+i, dst.Kind())
			}
			out[i] = y
		}
		return nil
	}
}

func narrow[S, T int8 | int16 | int32 | int64](x S) (T, bool) { return T(x), S(T(x)) == x }

// decimalOf returns the decoder of decimals stored as integers of their own.
func decimalOf[S int32 | int64](c *schema.Column, values func(*encoding.Values) []S) decoder {
	switch c.Kind() {
	case schema.KindInt32:
		return convert(values, narrow[S, int32])
	case schema.KindInt64:
		return convert(values, narrow[S, int64])
	}
	return convert(values, func(x S) (schema.Int128, bool) { return schema.Int128From(int64(x)), true })
}

func timestampDecoder(nanos int64) decoder {
	switch nanos {
	case nanosOfMicro:
		return copyOf(valuesInt64)
	case nanosOfMilli:
		return convert(valuesInt64, func(x int64) (int64, bool) { y := x * 1000; return y, y/1000 == x })
	}
	return convert(valuesInt64, func(x int64) (int64, bool) { return floorDiv(x, 1000), true })
}

// floorDiv returns a/b rounded towards minus infinity; b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// decodeInt96 decodes the old timestamps: nanoseconds of the day, then the Julian day.
var decodeInt96 = convert(valuesInt96, func(x deprecated.Int96) (int64, bool) {
	const (
		epoch       = 2440588 // Julian day of 1970-01-01
		dayMicros   = 24 * 60 * 60 * 1_000_000
		maxDistance = 1<<63/dayMicros - 1
	)
	days := int64(x[2]) - epoch
	micros := floorDiv(int64(uint64(x[1])<<32|uint64(x[0])), 1000)
	return days*dayMicros + micros, days > -maxDistance && days < maxDistance && micros >= 0 && micros <= dayMicros
})

func decodeBools(dst *vector.Vector, src *encoding.Values, from, to int) error {
	packed := src.Boolean()
	if to > 8*len(packed) {
		return errShort
	}
	at := dst.Len()
	words := dst.ExtendBits(to - from)
	for i := from; i < to; i++ {
		if packed[i>>3]>>(uint(i)&7)&1 != 0 {
			words.Set(at + i - from)
		}
	}
	return nil
}

func decodeBytes(dst *vector.Vector, src *encoding.Values, from, to int) error {
	if src.Kind() == encoding.FixedLenByteArray {
		return decodeFixed(dst, src, from, to)
	}
	data, offsets := src.ByteArray()
	if to >= len(offsets) {
		return errShort
	}
	if from == to {
		return nil
	}
	offsets = offsets[from : to+1]
	start, end := offsets[0], offsets[to-from]
	if start > end || int64(end) > int64(len(data)) {
		return fmt.Errorf("offsets %d to %d in a page of %d bytes", start, end, len(data))
	}
	ends, out, base, err := dst.ExtendBytes(to-from, int(end-start))
	if err != nil {
		return err
	}
	copy(out, data[start:end])
	prev := start
	for i, o := range offsets[1:] {
		if o < prev {
			return fmt.Errorf("offset %d after %d", o, prev)
		}
		prev = o
		ends[i] = base + int32(o-start)
	}
	return nil
}

func decodeFixed(dst *vector.Vector, src *encoding.Values, from, to int) error {
	data, size := src.FixedLenByteArray()
	vals, err := part(data, from*size, to*size)
	if err != nil {
		return err
	}
	ends, out, base, err := dst.ExtendBytes(to-from, len(vals))
	if err != nil {
		return err
	}
	copy(out, vals)
	for i := range ends {
		ends[i] = base + int32((i+1)*size)
	}
	return nil
}

// bigEndianDecimals returns the decoder of decimals stored as big-endian bytes.
func bigEndianDecimals(kind schema.Kind) decoder {
	return func(dst *vector.Vector, src *encoding.Values, from, to int) error {
		for i := from; i < to; i++ {
			b, err := bytesAt(src, i)
			if err != nil {
				return err
			}
			n, ok := int128Of(b)
			if !ok || !appendInt128(dst, kind, n) {
				return valueError(i, kind)
			}
		}
		return nil
	}
}

func bytesAt(src *encoding.Values, i int) ([]byte, error) {
	if src.Kind() == encoding.FixedLenByteArray {
		data, size := src.FixedLenByteArray()
		return part(data, i*size, (i+1)*size)
	}
	data, offsets := src.ByteArray()
	if i+1 >= len(offsets) || offsets[i] > offsets[i+1] || int64(offsets[i+1]) > int64(len(data)) {
		return nil, errShort
	}
	return data[offsets[i]:offsets[i+1]], nil
}

// int128Of returns a big-endian number in two's complement of any length and whether
// it fits 128 bits. No bytes are zero.
func int128Of(b []byte) (schema.Int128, bool) {
	var full [16]byte
	if len(b) > 0 && b[0]&0x80 != 0 {
		for i := range full {
			full[i] = 0xff
		}
	}
	sign := full[0]
	for ; len(b) > 16; b = b[1:] {
		if b[0] != sign || b[1]&0x80 != sign&0x80 {
			return schema.Int128{}, false
		}
	}
	copy(full[16-len(b):], b)
	return schema.Int128{Hi: int64(binary.BigEndian.Uint64(full[:])), Lo: binary.BigEndian.Uint64(full[8:])}, true
}

// appendInt128 appends n to a vector of the kind and reports whether it fits.
func appendInt128(dst *vector.Vector, kind schema.Kind, n schema.Int128) bool {
	if kind == schema.KindInt128 {
		vector.AppendFixed(dst, n)
		return true
	}
	x, ok := n.Int64()
	if kind == schema.KindInt64 {
		vector.AppendFixed(dst, x)
		return ok
	}
	vector.AppendFixed(dst, int32(x))
	return ok && int64(int32(x)) == x
}
