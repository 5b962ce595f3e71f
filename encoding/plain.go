package encoding

import (
	"encoding/binary"

	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// plainBuilder builds PLAIN blocks of fixed-width values.
type plainBuilder struct {
	width, limit int
	ordinal      uint32
	buf          []byte
}

func (b *plainBuilder) reset(ordinal uint32) { b.ordinal, b.buf = ordinal, b.buf[:0] }
func (b *plainBuilder) full() bool           { return b.size() > b.limit }
func (b *plainBuilder) count() int           { return len(b.buf) / b.width }
func (b *plainBuilder) size() int            { return 8 + len(b.buf) }

func (b *plainBuilder) add(v *vector.Vector, from, to int) int {
	b.buf = appendRaw(b.buf, v, from, to)
	return to - from
}

// appendRaw appends fixed-width values, little-endian.
func appendRaw(dst []byte, v *vector.Vector, from, to int) []byte {
	w, at := v.Kind().Width(), len(dst)
	dst = append(dst, v.Data()[from*w:to*w]...)
	vector.HostOrder(dst[at:], w)
	return dst
}

func (b *plainBuilder) finish(dst []byte) []byte {
	return append(appendShortHeader(dst, b.count(), b.ordinal), b.buf...)
}

func (d *decoder) plain(dst *vector.Vector, block []byte) (Header, error) {
	n, ordinal, rest, err := shortHeader(block)
	if err != nil {
		return Header{}, err
	}
	w := d.Kind.Width()
	if uint64(len(rest)) != n*uint64(w) {
		return Header{}, vfs.Corruptf("%d values of %d bytes in %d bytes", n, w, len(rest))
	}
	if err := d.check(n, uint64(len(rest))); err != nil {
		return Header{}, err
	}
	out := dst.ExtendFixed(int(n))
	copy(out, rest)
	vector.HostOrder(out, w)
	return Header{ordinal, int(n)}, nil
}

// plainBitsBuilder builds PLAIN blocks of booleans.
type plainBitsBuilder struct {
	limit   int
	ordinal uint32
	n       int
	bits    vector.Bitmap
}

func (b *plainBitsBuilder) reset(ordinal uint32) { b.ordinal, b.n, b.bits = ordinal, 0, b.bits[:0] }
func (b *plainBitsBuilder) full() bool           { return b.size() > b.limit }
func (b *plainBitsBuilder) count() int           { return b.n }
func (b *plainBitsBuilder) size() int            { return 8 + (b.n+7)/8 }

func (b *plainBitsBuilder) add(v *vector.Vector, from, to int) int {
	n := to - from
	for len(b.bits) < vector.Words(b.n+n) {
		b.bits = append(b.bits, 0)
	}
	b.bits.CopyRange(b.n, v.Bits(), from, n)
	b.n += n
	return n
}

func (b *plainBitsBuilder) finish(dst []byte) []byte {
	dst = appendShortHeader(dst, b.n, b.ordinal)
	end := len(dst) + (b.n+7)/8
	for _, w := range b.bits {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst[:end]
}

func (d *decoder) plainBits(dst *vector.Vector, block []byte) (Header, error) {
	n, ordinal, rest, err := shortHeader(block)
	if err != nil {
		return Header{}, err
	}
	if uint64(len(rest)) != (n+7)/8 {
		return Header{}, vfs.Corruptf("%d bits in %d bytes", n, len(rest))
	}
	if err := d.check(n, uint64(len(rest))); err != nil {
		return Header{}, err
	}
	orBits(dst.ExtendBits(int(n)), 0, rest, int(n))
	return Header{ordinal, int(n)}, nil
}

// orBits sets those of the bits [at, at+n) of dst, all clear, that are set in the
// first n bits of src.
func orBits(dst vector.Bitmap, at int, src []byte, n int) {
	for n > 0 {
		word, k := loadBits(src, n)
		s := uint(at) & 63
		dst[at>>6] |= word << s
		if s != 0 && int(s)+k > 64 {
			dst[at>>6+1] |= word >> (64 - s)
		}
		at, n, src = at+k, n-k, src[(k+7)/8:]
	}
}

// loadBits returns the first k = min(n, 64) bits of src, the others zero.
func loadBits(src []byte, n int) (word uint64, k int) {
	if n >= 64 {
		return binary.LittleEndian.Uint64(src), 64
	}
	for i, b := range src[:(n+7)/8] {
		word |= uint64(b) << (8 * i)
	}
	return word & (1<<n - 1), n
}
