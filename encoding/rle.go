package encoding

import (
	"encoding/binary"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

func newRLEBuilder(kind schema.Kind, limit int) builder {
	switch kind {
	case schema.KindBool:
		return &rleBitsBuilder{limit: limit}
	case schema.KindInt8:
		return &rleBuilder[uint8]{limit: limit}
	case schema.KindInt16:
		return &rleBuilder[uint16]{limit: limit}
	case schema.KindInt32:
		return &rleBuilder[uint32]{limit: limit}
	}
	return &rleBuilder[uint64]{limit: limit}
}

// rleBuilder builds RLE blocks of integers. It forms runs as bitRuns does.
type rleBuilder[T uint8 | uint16 | uint32 | uint64] struct {
	limit   int
	ordinal uint32
	n       int
	out     []byte
	literal int // place of the open literal run's header, -1 when none is open
	cur     T
	run     int // length of the open repeated run: 0 or at least 8
	group   [8]T
	pending int // values of a group begun
}

func (b *rleBuilder[T]) reset(ordinal uint32) {
	*b = rleBuilder[T]{limit: b.limit, ordinal: ordinal, out: b.out[:0], literal: -1}
}

func (b *rleBuilder[T]) full() bool { return 8+len(b.out) > b.limit }
func (b *rleBuilder[T]) count() int { return b.n }
func (b *rleBuilder[T]) size() int  { return 8 + len(b.out) + 13 }

func (b *rleBuilder[T]) add(v *vector.Vector, from, to int) int {
	vals := vector.Values[T](v)[from:to]
	b.n += len(vals)
	for len(vals) > 0 {
		if b.run > 0 {
			if vals = b.extend(vals); len(vals) == 0 {
				break
			}
			b.endRun()
		}
		if b.pending == 0 && len(vals) >= 8 {
			b.addGroup((*[8]T)(vals))
			vals = vals[8:]
			continue
		}
		k := copy(b.group[b.pending:], vals)
		vals = vals[k:]
		if b.pending += k; b.pending == 8 {
			b.pending = 0
			b.addGroup(&b.group)
		}
	}
	return to - from
}

// extend adds the leading values that continue the open run to it.
func (b *rleBuilder[T]) extend(vals []T) []T {
	k := 0
	for k < len(vals) && vals[k] == b.cur {
		k++
	}
	b.run += k
	return vals[k:]
}

// addGroup appends 8 values; no run is open.
func (b *rleBuilder[T]) addGroup(g *[8]T) {
	if allEqual(g[:]) {
		b.literal, b.cur, b.run = -1, g[0], 8
		return
	}
	b.out, b.literal = openLiteral(b.out, b.literal)
	b.appendLiterals(g[:])
}

func allEqual[T comparable](vals []T) bool {
	for _, v := range vals[1:] {
		if v != vals[0] {
			return false
		}
	}
	return true
}

func (b *rleBuilder[T]) appendLiterals(vals []T) {
	for _, v := range vals {
		b.out = appendInt(b.out, v)
	}
}

func appendInt[T uint8 | uint16 | uint32 | uint64](dst []byte, v T) []byte {
	switch v := any(v).(type) {
	case uint8:
		return append(dst, v)
	case uint16:
		return binary.LittleEndian.AppendUint16(dst, v)
	case uint32:
		return binary.LittleEndian.AppendUint32(dst, v)
	case uint64:
		return binary.LittleEndian.AppendUint64(dst, v)
	}
	return dst
}

func (b *rleBuilder[T]) endRun() {
	b.out = binary.AppendUvarint(b.out, uint64(b.run)<<1)
	b.out = appendInt(b.out, b.cur)
	b.run = 0
}

func (b *rleBuilder[T]) finish(dst []byte) []byte {
	rest := b.group[:b.pending]
	closed := b.literal < 0 || b.out[b.literal]>>1 == maxLiteralGroups
	switch {
	case b.run > 0:
		b.endRun()
	case len(rest) > 0 && closed && allEqual(rest):
		b.cur, b.run = rest[0], len(rest)
		b.endRun()
	case len(rest) > 0:
		b.out, b.literal = openLiteral(b.out, b.literal)
		b.appendLiterals(rest)
	}
	b.pending, b.literal = 0, -1
	return append(appendShortHeader(dst, b.n, b.ordinal), b.out...)
}

func (d *decoder) rle(dst *vector.Vector, block []byte) (Header, error) {
	n, ordinal, rest, err := shortHeader(block)
	if err != nil {
		return Header{}, err
	}
	w := d.Kind.Width()
	if err := d.check(n, n*uint64(w)); err != nil {
		return Header{}, err
	}
	out := dst.ExtendFixed(int(n))
	if err := decodeRuns(out, w, rest); err != nil {
		return Header{}, err
	}
	vector.HostOrder(out, w)
	return Header{ordinal, int(n)}, nil
}

// decodeRuns fills out with little-endian values of w bytes from an RLE stream, which
// may stand for more.
func decodeRuns(out []byte, w int, src []byte) error {
	for len(out) > 0 {
		repeated, length, m, err := runHeader(src)
		if err != nil {
			return err
		}
		src = src[m:]
		size := int(min(length*uint64(w), uint64(len(out))))
		if repeated {
			if len(src) < w {
				return vfs.Corruptf("repeated run without a value")
			}
			fill(out[:size], src[:w])
			src = src[w:]
		} else {
			if size > len(src) {
				return vfs.Corruptf("literal run of %d bytes in the last %d", size, len(src))
			}
			copy(out[:size], src)
			src = src[min(length*uint64(w), uint64(len(src))):]
		}
		out = out[size:]
	}
	return nil
}

// fill repeats pattern over dst, whose length is a multiple of it.
func fill(dst, pattern []byte) {
	for n := copy(dst, pattern); n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}
