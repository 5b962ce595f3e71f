package encoding

import (
	"encoding/binary"
	"sync"

	"github.com/minikudu/minikudu/internal/compress"
	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

const (
	shuffleHeader   = 20
	subBlockBytes   = 8192 // plain bytes of a sub-block
	maxLZ4Expansion = 255
)

// shuffleBuilder builds BIT_SHUFFLE blocks of values of their own width.
type shuffleBuilder struct {
	width, limit int // limit in values
	ordinal      uint32
	buf          []byte // little-endian values
	planes       [subBlockBytes]byte
}

func (b *shuffleBuilder) reset(ordinal uint32) { b.ordinal, b.buf = ordinal, b.buf[:0] }
func (b *shuffleBuilder) full() bool           { return b.count() >= b.limit }
func (b *shuffleBuilder) count() int           { return len(b.buf) / b.width }
func (b *shuffleBuilder) size() int            { return shuffleHeader + len(b.buf) }

func (b *shuffleBuilder) add(v *vector.Vector, from, to int) int {
	to = min(to, from+b.limit-b.count())
	b.buf = appendRaw(b.buf, v, from, to)
	return to - from
}

func (b *shuffleBuilder) finish(dst []byte) []byte {
	n := b.count()
	for len(b.buf)%(8*b.width) != 0 {
		b.buf = append(b.buf, 0)
	}
	dst = appendShuffled(dst, b.buf, b.width, n, b.ordinal, &b.planes)
	b.buf = b.buf[:n*b.width]
	return dst
}

// codesBuilder builds BIT_SHUFFLE blocks of 32-bit numbers, stored as narrow as the
// largest of them allows.
type codesBuilder struct {
	limit   int // in values
	ordinal uint32
	vals    []uint32
	buf     []byte
	planes  [subBlockBytes]byte
}

func (b *codesBuilder) reset(ordinal uint32) { b.ordinal, b.vals = ordinal, b.vals[:0] }
func (b *codesBuilder) full() bool           { return len(b.vals) >= b.limit }
func (b *codesBuilder) size() int            { return shuffleHeader + 2*len(b.vals) }

func (b *codesBuilder) finish(dst []byte) []byte {
	w := b.narrow()
	for len(b.buf)%(8*w) != 0 {
		b.buf = append(b.buf, 0)
	}
	return appendShuffled(dst, b.buf, w, len(b.vals), b.ordinal, &b.planes)
}

// narrow writes the values to buf and returns their width.
func (b *codesBuilder) narrow() int {
	var any uint32
	for _, v := range b.vals {
		any |= v
	}
	b.buf = b.buf[:0]
	switch {
	case any <= 0xff:
		for _, v := range b.vals {
			b.buf = append(b.buf, byte(v))
		}
		return 1
	case any <= 0xffff:
		for _, v := range b.vals {
			b.buf = binary.LittleEndian.AppendUint16(b.buf, uint16(v))
		}
		return 2
	}
	for _, v := range b.vals {
		b.buf = binary.LittleEndian.AppendUint32(b.buf, v)
	}
	return 4
}

// appendShuffled appends a block of n values; raw holds them padded to a multiple of 8.
func appendShuffled(dst, raw []byte, width, n int, ordinal uint32, planes *[subBlockBytes]byte) []byte {
	le, at := binary.LittleEndian, len(dst)
	dst = le.AppendUint32(dst, ordinal)
	dst = le.AppendUint32(dst, uint32(n))
	dst = le.AppendUint32(dst, 0) // total, below
	dst = le.AppendUint32(dst, uint32(len(raw)/width))
	dst = le.AppendUint32(dst, uint32(width))
	for len(raw) > 0 {
		k := min(len(raw), subBlockBytes)
		kernel.Shuffle(planes[:k], raw[:k], width)
		raw = raw[k:]
		length := len(dst)
		dst = compress.AppendLZ4(append(dst, 0, 0, 0, 0), planes[:k])
		binary.BigEndian.PutUint32(dst[length:], uint32(len(dst)-length-4))
	}
	le.PutUint32(dst[at+8:], uint32(len(dst)-at))
	return dst
}

// shuffleBlock is a BIT_SHUFFLE block whose header has been checked.
type shuffleBlock struct {
	ordinal       uint32
	count, padded uint64
	width         int
	payload       []byte
}

func (d *decoder) cutShuffle(block []byte) (h shuffleBlock, err error) {
	if len(block) < shuffleHeader {
		return h, vfs.Corruptf("block of %d bytes is shorter than its header", len(block))
	}
	le := binary.LittleEndian
	h = shuffleBlock{ordinal: le.Uint32(block), count: uint64(le.Uint32(block[4:])), padded: uint64(le.Uint32(block[12:])),
		payload: block[shuffleHeader:]}
	if total := le.Uint32(block[8:]); uint64(total) != uint64(len(block)) {
		return h, vfs.Corruptf("block of %d bytes says it has %d", len(block), total)
	}
	if h.padded != (h.count+7)&^7 {
		return h, vfs.Corruptf("%d values padded to %d", h.count, h.padded)
	}
	switch w := le.Uint32(block[16:]); w {
	case 1, 2, 4, 8, 16:
		h.width = int(w)
	default:
		return h, vfs.Corruptf("values of %d bytes", w)
	}
	plain := h.padded * uint64(h.width)
	blocks := (plain + subBlockBytes - 1) / subBlockBytes
	if blocks*5 > uint64(len(h.payload)) || plain > maxLZ4Expansion*uint64(len(h.payload)) {
		return h, vfs.Corruptf("%d values of %d bytes in a payload of %d", h.count, h.width, len(h.payload))
	}
	return h, nil
}

// shuffleScratch is the memory of a decoder: a sub-block as planes, and the last one
// with its padding.
type shuffleScratch struct{ planes, padded [subBlockBytes]byte }

var shuffleScratches = sync.Pool{New: func() any { return new(shuffleScratch) }}

// decode fills out, which has room for exactly count values, little-endian.
func (h *shuffleBlock) decode(out []byte) error {
	scratch := shuffleScratches.Get().(*shuffleScratch)
	defer shuffleScratches.Put(scratch)
	planes, padded, src := &scratch.planes, &scratch.padded, h.payload
	for left := int(h.padded) * h.width; left > 0; left -= subBlockBytes {
		k := min(left, subBlockBytes)
		if len(src) < 4 {
			return vfs.Corruptf("sub-block without a length")
		}
		n := uint64(binary.BigEndian.Uint32(src))
		if src = src[4:]; n > uint64(len(src)) {
			return vfs.Corruptf("sub-block of %d bytes, %d left", n, len(src))
		}
		if err := compress.DecodeLZ4(planes[:k], src[:n]); err != nil {
			return vfs.Corruptf("sub-block: %w", err)
		}
		src = src[n:]
		if k <= len(out) {
			kernel.Unshuffle(out[:k], planes[:k], h.width)
			out = out[k:]
		} else {
			kernel.Unshuffle(padded[:k], planes[:k], h.width)
			copy(out, padded[:k])
		}
	}
	if len(src) != 0 {
		return vfs.Corruptf("%d bytes after the last sub-block", len(src))
	}
	return nil
}

func (d *decoder) bitShuffle(dst *vector.Vector, block []byte) (Header, error) {
	h, err := d.cutShuffle(block)
	if err != nil {
		return Header{}, err
	}
	if h.width != d.Kind.Width() {
		return Header{}, vfs.Corruptf("values of %d bytes in a column of %d", h.width, d.Kind.Width())
	}
	if err := d.check(h.count, h.count*uint64(h.width)); err != nil {
		return Header{}, err
	}
	out := dst.ExtendFixed(int(h.count))
	if err := h.decode(out); err != nil {
		return Header{}, err
	}
	vector.HostOrder(out, h.width)
	return Header{h.ordinal, int(h.count)}, nil
}
