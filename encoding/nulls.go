package encoding

import (
	"encoding/binary"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// appendNulls appends what precedes the values of a nullable block: the rows and
// which of them are not null.
func appendNulls(dst []byte, rows int, valid *bitRuns) []byte {
	bits := valid.finish()
	dst = binary.AppendUvarint(dst, uint64(rows))
	dst = binary.AppendUvarint(dst, uint64(len(bits)))
	return append(dst, bits...)
}

func (d *decoder) nullable(dst *vector.Vector, block []byte) (Header, error) {
	valid, rows, set, rest, err := d.nulls(block)
	if err != nil {
		return Header{}, err
	}
	if err := d.check(uint64(rows), uint64(rows)*d.leastWidth()); err != nil {
		return Header{}, err
	}
	d.room = rows
	h, err := d.values(dst, rest)
	if err != nil {
		return Header{}, err
	}
	if h.Rows != set {
		return Header{}, vfs.Corruptf("%d values, but %d of %d rows are not null", h.Rows, set, rows)
	}
	if err := d.check(uint64(rows), spreadSize(dst, rows)); err != nil {
		return Header{}, err
	}
	dst.Spread(valid, rows)
	return Header{h.Ordinal, rows}, nil
}

// leastWidth returns the bytes that a row takes at least, 0 for less than one.
func (d *decoder) leastWidth() uint64 {
	switch {
	case d.Encoding == schema.EncodingDict || d.Encoding == schema.EncodingCodes:
		return 1
	case d.Kind == schema.KindBytes:
		return 4
	}
	return uint64(d.Kind.Width())
}

// nulls reads the validity of the rows of a nullable block: how many there are, how
// many of them are not null, and the block of those.
func (d *decoder) nulls(block []byte) (valid vector.Bitmap, rows, set int, rest []byte, err error) {
	r, n := uvarint32(block)
	size, m := uvarint32(block[n:])
	if n == 0 || m == 0 {
		return nil, 0, 0, nil, vfs.Corruptf("damaged null header")
	}
	rest = block[n+m:]
	if size > uint64(len(rest)) {
		return nil, 0, 0, nil, vfs.Corruptf("null bitmap of %d bytes in a block with %d left", size, len(rest))
	}
	if err := d.check(r, (r+7)/8); err != nil {
		return nil, 0, 0, nil, err
	}
	rows = int(r)
	valid = vector.NewBitmap(rows)
	if err := decodeBits(valid, rows, rest[:size]); err != nil {
		return nil, 0, 0, nil, err
	}
	return valid, rows, valid.Count(), rest[size:], nil
}

// spreadSize returns the memory that plain values of variable length take as that many
// rows; that of others has been checked.
func spreadSize(dst *vector.Vector, rows int) uint64 {
	if dst.Kind() != schema.KindBytes || dst.Dict() != nil {
		return 0
	}
	return 4*uint64(rows) + uint64(len(dst.Data()))
}
