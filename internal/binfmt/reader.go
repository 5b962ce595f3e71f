package binfmt

import (
	"encoding/binary"
	"fmt"

	"github.com/minikudu/minikudu/vfs"
)

// Reader reads fields from untrusted bytes. Its error sticks: after a failure every
// method returns zero values, and Err the first failure.
type Reader struct {
	buf []byte
	off int
	err error
}

// NewReader returns a reader of b. Slices the reader returns alias b.
func NewReader(b []byte) *Reader { return &Reader{buf: b} }

// Err returns the first failure.
func (r *Reader) Err() error { return r.err }

// Len returns the number of bytes left, 0 after a failure.
func (r *Reader) Len() int { return len(r.buf) - r.off }

// Offset returns the number of bytes consumed.
func (r *Reader) Offset() int { return r.off }

// Fail records a failure at the current offset, unless there is one already, and
// makes the reader empty.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = &vfs.CorruptionError{Offset: int64(r.off), Err: fmt.Errorf(format, args...)}
		r.buf = r.buf[:r.off]
	}
}

// Take returns the next n bytes.
func (r *Reader) Take(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(r.Len()) {
		r.Fail("%d bytes wanted, %d left", n, r.Len())
		return nil
	}
	b := r.buf[r.off : r.off+int(n) : r.off+int(n)]
	r.off += int(n)
	return b
}

// Rest returns all bytes left.
func (r *Reader) Rest() []byte { return r.Take(uint64(r.Len())) }

// U8 reads one byte.
func (r *Reader) U8() uint8 {
	if b := r.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// U16 reads 2 bytes.
func (r *Reader) U16() uint16 {
	if b := r.Take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// U32 reads 4 bytes.
func (r *Reader) U32() uint32 {
	if b := r.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// U64 reads 8 bytes.
func (r *Reader) U64() uint64 {
	if b := r.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Uvarint reads an unsigned variable-length number.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.buf[r.off:])
	if n <= 0 {
		r.Fail("bad variable-length number")
		return 0
	}
	r.off += n
	return v
}

// Varint reads a signed (zigzag) variable-length number.
func (r *Reader) Varint() int64 {
	u := r.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// UvarintMax reads a Uvarint of at most max.
func (r *Reader) UvarintMax(max uint64) uint64 {
	v := r.Uvarint()
	if v > max {
		r.Fail("number %d above the bound %d", v, max)
		return 0
	}
	return v
}

// Bytes reads a Uvarint length of at most limit and that many bytes.
func (r *Reader) Bytes(limit int) []byte {
	n := r.Uvarint()
	if n > uint64(limit) {
		r.Fail("length %d above the bound %d", n, limit)
		return nil
	}
	return r.Take(n)
}

// String reads what Bytes reads, as a string of its own.
func (r *Reader) String(limit int) string { return string(r.Bytes(limit)) }

// Count reads a Uvarint number of elements of at least size bytes each; it fails
// when the bytes left cannot hold them, so the caller may allocate that many.
func (r *Reader) Count(size int) int {
	n := r.Uvarint()
	if n > uint64(r.Len())/uint64(size) {
		r.Fail("%d elements of at least %d bytes in %d bytes", n, size, r.Len())
		return 0
	}
	return int(n)
}

// Bool reads one byte that must be 0 or 1.
func (r *Reader) Bool() bool {
	b := r.U8()
	if b > 1 {
		r.Fail("byte %d where 0 or 1 must stand", b)
	}
	return b == 1
}

// Field reads the next tagged field. More is false at the end of the input.
func (r *Reader) Field() (tag uint64, payload *Reader, more bool) {
	if r.err != nil || r.Len() == 0 {
		return 0, nil, false
	}
	tag = r.Uvarint()
	payload = NewReader(r.Take(r.Uvarint()))
	return tag, payload, r.err == nil
}

// Skip accepts an unknown field whose tag is even, and refuses one whose tag is
// odd: the file was written by a newer program.
func (r *Reader) Skip(tag uint64) {
	if r.err == nil && tag&1 != 0 {
		r.err = fmt.Errorf("field %d is of a newer format: %w", tag, vfs.ErrNotSupported)
		r.buf = r.buf[:r.off]
	}
}

// Merge takes over the failure of a nested reader that started at the given offset
// of r, so that a decoder of nested fields may check r alone.
func (r *Reader) Merge(nested *Reader, at int) {
	if r.err != nil || nested.err == nil {
		return
	}
	if c, ok := nested.err.(*vfs.CorruptionError); ok {
		c.Offset += int64(at)
	}
	r.err = nested.err
	r.buf = r.buf[:r.off]
}
