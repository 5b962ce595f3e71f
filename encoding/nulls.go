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
	h, err := d.values(dst, rest)
	if err != nil {
		return Header{}, err
	}
	if h.Rows != set {
		return Header{}, vfs.Corruptf("%d values, but %d of %d rows are not null", h.Rows, set, rows)
	}
	if err := d.check(uint64(rows), d.spreadSize(dst, rows)); err != nil {
		return Header{}, err
	}
	dst.Spread(valid, rows)
	return Header{h.Ordinal, rows}, nil
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

// spreadSize returns the memory of dst once it has that many rows.
func (d *decoder) spreadSize(dst *vector.Vector, rows int) uint64 {
	n := uint64(rows)
	switch {
	case d.Kind == schema.KindBool:
		return n / 8
	case dst.Dict() != nil:
		return n * uint64(dst.CodeWidth())
	case d.Kind.Width() > 0:
		return n * uint64(d.Kind.Width())
	}
	return 4*n + uint64(len(dst.Data()))
}
