package cfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// ZoneMap holds the summaries of the pages of a file and of the whole file.
type ZoneMap struct {
	Kind  schema.Kind // of the column
	Pages []vector.Zone
	File  vector.Zone
}

// MetadataZone is the key of the footer pair that holds the summary of the file.
const MetadataZone = "minikudu.zone"

const (
	zoneMagic   = "mkzonem1"
	zoneHeader  = len(zoneMagic) + 8
	zoneMinSize = 3  // bytes of the smallest zone
	maxBound    = 32 // bytes of a bound of bytes
)

// Flags of a zone.
const (
	zoneMin = 1 << iota
	zoneMax
	zoneNaN
	zoneExact
)

// Size returns the bytes of memory the zone map holds.
func (z *ZoneMap) Size() int {
	n := int(unsafe.Sizeof(*z)) + cap(z.Pages)*int(unsafe.Sizeof(vector.Zone{}))
	for i := range z.Pages {
		n += len(z.Pages[i].Min.Str()) + len(z.Pages[i].Max.Str())
	}
	return n
}

// AppendTo appends the zone map as a checksummed section:
//
//	magic "mkzonem1", kind u32, pages u32, zone of the file, zone of each page, crc u32
func (z *ZoneMap) AppendTo(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, zoneMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(z.Kind))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(z.Pages)))
	dst = appendZone(dst, &z.File)
	for i := range z.Pages {
		dst = appendZone(dst, &z.Pages[i])
	}
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[start:]))
}

// DecodeZoneMap reads what AppendTo wrote for a column of the given kind. src must
// hold nothing else. Errors are CorruptionErrors without a place.
func DecodeZoneMap(src []byte, kind schema.Kind) (*ZoneMap, error) {
	if len(src) < zoneHeader+zoneMinSize+checksumSize || string(src[:len(zoneMagic)]) != zoneMagic {
		return nil, vfs.Corruptf("no zone map in %d bytes", len(src))
	}
	body := src[:len(src)-checksumSize]
	want := binary.LittleEndian.Uint32(src[len(body):])
	if got := checksum(body); got != want {
		return nil, &vfs.CorruptionError{Want: want, Got: got}
	}
	return decodeZones(body, kind)
}

// decodeZones reads a zone map whose checksum has been split off.
func decodeZones(body []byte, kind schema.Kind) (*ZoneMap, error) {
	if k := binary.LittleEndian.Uint32(body[len(zoneMagic):]); k != uint32(kind) {
		return nil, vfs.Corruptf("zone map of kind %d, want %s", k, kind)
	}
	n := binary.LittleEndian.Uint32(body[len(zoneMagic)+4:])
	rest := body[zoneHeader:]
	if uint64(n)*zoneMinSize > uint64(len(rest)) {
		return nil, vfs.Corruptf("%d zones in %d bytes", n, len(rest))
	}
	z := &ZoneMap{Kind: kind, Pages: make([]vector.Zone, n)}
	rest, err := decodeZone(rest, &z.File, kind)
	for i := 0; i < len(z.Pages) && err == nil; i++ {
		if rest, err = decodeZone(rest, &z.Pages[i], kind); err != nil {
			err = fmt.Errorf("zone %d: %w", i, err)
		}
	}
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%d bytes after the last zone", len(rest))
	}
	if err == nil {
		err = z.checkSum()
	}
	if err != nil {
		return nil, &vfs.CorruptionError{Err: err}
	}
	return z, nil
}

// checkSum checks that the pages add up to the file.
func (z *ZoneMap) checkSum() error {
	var rows, nulls int64
	for i := range z.Pages {
		rows += z.Pages[i].Rows
		nulls += z.Pages[i].Nulls
	}
	if rows != z.File.Rows || nulls != z.File.Nulls {
		return fmt.Errorf("pages of %d rows and %d nulls in a file of %d and %d", rows, nulls, z.File.Rows, z.File.Nulls)
	}
	return nil
}

// appendZone appends a zone: rows, nulls (varints), flags, then the bounds present.
func appendZone(dst []byte, z *vector.Zone) []byte {
	dst = binary.AppendUvarint(dst, uint64(z.Rows))
	dst = binary.AppendUvarint(dst, uint64(z.Nulls))
	flags := byte(0)
	set := func(bit byte, on bool) {
		if on {
			flags |= bit
		}
	}
	set(zoneMin, !z.Min.IsNull())
	set(zoneMax, !z.Max.IsNull())
	set(zoneNaN, z.HasNaN)
	set(zoneExact, z.Exact)
	dst = append(dst, flags)
	return appendBound(appendBound(dst, z.Min), z.Max)
}

// appendBound appends a value little-endian in its width, or bytes after their length.
func appendBound(dst []byte, v schema.Value) []byte {
	switch k := v.Kind(); k {
	case 0:
		return dst
	case schema.KindBool:
		return append(dst, byte(v.Int()))
	case schema.KindInt128:
		n := v.Int128()
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, n.Lo), uint64(n.Hi))
	case schema.KindFloat32:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(v.Float32()))
	case schema.KindFloat64:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Float()))
	case schema.KindBytes:
		return append(append(dst, byte(len(v.Str()))), v.Str()...)
	default:
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(v.Int()))
		return append(dst, b[:k.Width()]...)
	}
}

func decodeZone(b []byte, z *vector.Zone, kind schema.Kind) (rest []byte, err error) {
	if z.Rows, b, err = zoneCount(b); err != nil {
		return nil, err
	}
	if z.Nulls, b, err = zoneCount(b); err != nil {
		return nil, err
	}
	if len(b) == 0 {
		return nil, errTruncated
	}
	flags := b[0]
	b = b[1:]
	z.HasNaN, z.Exact = flags&zoneNaN != 0, flags&zoneExact != 0
	if flags&zoneMin != 0 {
		if z.Min, b, err = decodeBound(b, kind); err != nil {
			return nil, err
		}
	}
	if flags&zoneMax != 0 {
		if z.Max, b, err = decodeBound(b, kind); err != nil {
			return nil, err
		}
	}
	return b, checkZone(z, flags, kind)
}

func zoneCount(b []byte) (int64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > math.MaxUint32 {
		return 0, nil, errRange
	}
	return int64(v), b[n:], nil
}

// checkZone refuses what no column can have.
func checkZone(z *vector.Zone, flags byte, kind schema.Kind) error {
	known := !z.Min.IsNull() && !z.Max.IsNull()
	switch {
	case flags >= zoneExact<<1:
		return fmt.Errorf("unknown flags %#x", flags)
	case z.Nulls > z.Rows:
		return fmt.Errorf("%d nulls in %d rows", z.Nulls, z.Rows)
	case z.Nulls == z.Rows && flags&^zoneExact != 0:
		return errors.New("bounds without values")
	case z.HasNaN && !kind.IsFloat():
		return fmt.Errorf("NaN in a column of %s", kind)
	case known && z.Min.Compare(z.Max) > 0:
		return errors.New("lower bound above the upper")
	}
	return nil
}

func decodeBound(b []byte, kind schema.Kind) (v schema.Value, rest []byte, err error) {
	size := kind.Width()
	switch kind {
	case schema.KindBool:
		size = 1
	case schema.KindBytes:
		if len(b) == 0 {
			return v, nil, errTruncated
		}
		size, b = int(b[0]), b[1:]
		if size > maxBound {
			return v, nil, fmt.Errorf("bound of %d bytes, at most %d", size, maxBound)
		}
	}
	if size > len(b) {
		return v, nil, errTruncated
	}
	v, err = boundValue(b[:size], kind)
	return v, b[size:], err
}

func boundValue(b []byte, kind schema.Kind) (schema.Value, error) {
	switch kind {
	case schema.KindBool:
		if b[0] > 1 {
			return schema.Null, fmt.Errorf("bool bound %d", b[0])
		}
		return schema.BoolValue(b[0] == 1), nil
	case schema.KindInt128:
		n := schema.Int128{Lo: binary.LittleEndian.Uint64(b), Hi: int64(binary.LittleEndian.Uint64(b[8:]))}
		return schema.Int128Value(n), nil
	case schema.KindFloat32:
		f := math.Float32frombits(binary.LittleEndian.Uint32(b))
		return schema.Float32Value(f), checkFloat(float64(f))
	case schema.KindFloat64:
		f := math.Float64frombits(binary.LittleEndian.Uint64(b))
		return schema.Float64Value(f), checkFloat(f)
	case schema.KindBytes:
		return schema.BytesValue(b), nil
	case schema.KindInt8, schema.KindInt16, schema.KindInt32, schema.KindInt64:
		var w [8]byte
		copy(w[:], b)
		shift := uint(64 - 8*len(b))
		return schema.IntValue(kind, int64(binary.LittleEndian.Uint64(w[:]))<<shift>>shift), nil
	}
	return schema.Null, fmt.Errorf("unknown kind %d", kind)
}

// checkFloat refuses the floats that no bound is: NaN and -0.
func checkFloat(f float64) error {
	if f != f || f == 0 && math.Signbit(f) {
		return errors.New("NaN or negative zero as a bound")
	}
	return nil
}

// FileZone returns the summary of the file that its writer left in the footer; ok is
// false when there is none.
func (r *Reader) FileZone() (z vector.Zone, ok bool, err error) {
	b, ok := r.Metadata(MetadataZone)
	if !ok {
		return z, false, nil
	}
	rest, err := decodeZone(b, &z, r.footer.Type.Kind())
	if err == nil && (len(rest) != 0 || z.Rows != r.footer.Rows) {
		err = fmt.Errorf("zone of %d rows in a file of %d, %d bytes left", z.Rows, r.footer.Rows, len(rest))
	}
	return z, err == nil, r.damaged(partFooter, r.dataEnd, r.length-r.dataEnd, err)
}
