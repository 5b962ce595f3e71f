package compress

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/minikudu/minikudu/schema"
)

// A block may begin with a head that is stored as it is and that nothing after it refers to,
// so that it can be replaced without compressing the rest again. It is an ordinary block of
// its codec: zstd has the head in an uncompressed block of the frame, LZ4 among the first
// literals.

// WithHead is Compress of head and src as one block with a head, by the encoder for texts if
// text is set. With a codec other than zstd and LZ4 the block has none.
func WithHead(dst, head, src []byte, codec schema.Compression, text bool) ([]byte, error) {
	if len(head)+len(src) > MaxPlain {
		return dst, fmt.Errorf("compressing %d bytes: at most %d: %w", len(head)+len(src), MaxPlain, schema.ErrInvalidArgument)
	}
	switch {
	case codec == schema.CompressionLZ4:
		return appendLZ4WithHead(dst, head, src), nil
	case codec == schema.CompressionZstd && text:
		return appendZstdWithHead(zstdFastest, dst, head, src), nil
	case codec == schema.CompressionZstd:
		return appendZstdWithHead(zstdEncoder, dst, head, src), nil
	}
	return Compress(dst, slices.Concat(head, src), codec)
}

// Verbatim returns the bytes at the beginning of what a block decompresses to that are in it
// as they are, of which a head may be the first ones; nil when that is not known.
func Verbatim(block []byte, codec schema.Compression) []byte {
	switch codec {
	case schema.CompressionZstd:
		if f, ok := cutZstd(block); ok && f.raw {
			return f.first
		}
	case schema.CompressionLZ4:
		if s, ok := cutSequence(block); ok {
			return s.literals
		}
	}
	return nil
}

// ReplaceHead appends a block to dst with another head than its first n bytes, and reports
// false when those are not a head. Of a zstd frame whose first block is uncompressed and of n bytes
// that is taken for granted: only WithHead ends one there. A block of LZ4 is looked through.
func ReplaceHead(dst, block []byte, codec schema.Compression, n int, head []byte) ([]byte, bool) {
	switch codec {
	case schema.CompressionZstd:
		f, ok := cutZstd(block)
		if !ok || !f.raw || len(f.first) != n || f.plain < uint64(n) {
			return dst, false
		}
		dst = appendZstdStart(dst, f.plain-uint64(n)+uint64(len(head)))
		return append(appendZstdRaw(dst, head, f.last), f.rest...), true
	case schema.CompressionLZ4:
		if !lz4HasHead(block, n) {
			return dst, false
		}
		s, _ := cutSequence(block)
		return appendSequence(dst, s.match, head, s.literals[n:], s.rest), true
	}
	return dst, false
}

const zstdMagic = 0xfd2fb528

// zstdFrame is a frame cut after its first block.
type zstdFrame struct {
	plain  uint64 // size when decompressed
	blocks int    // where the first block begins
	raw    bool   // the first block is uncompressed
	last   bool   // and the last one
	first  []byte // content of the first block when it is uncompressed
	rest   []byte // blocks after it
}

// cutZstd cuts a frame that states its size and has no checksum and no dictionary.
func cutZstd(frame []byte) (f zstdFrame, ok bool) {
	if len(frame) < 5 || binary.LittleEndian.Uint32(frame) != zstdMagic || frame[4]&0x0f != 0 {
		return f, false
	}
	single := frame[4] >> 5 & 1
	f.blocks = 5 + int(1-single)
	size := 1 << (frame[4] >> 6) // of the stated size; the least is only there in a single segment
	if size == 1 {
		size = int(single)
	}
	var stated [8]byte
	if len(frame) < f.blocks+size+3 {
		return f, false
	}
	copy(stated[:], frame[f.blocks:f.blocks+size])
	f.plain = binary.LittleEndian.Uint64(stated[:])
	if size == 2 {
		f.plain += 256
	}
	f.blocks += size
	h := uint32(frame[f.blocks]) | uint32(frame[f.blocks+1])<<8 | uint32(frame[f.blocks+2])<<16
	f.last, f.raw = h&1 != 0, h>>1&3 == 0
	if !f.raw {
		return f, true
	}
	at, end := f.blocks+3, f.blocks+3+int(h>>3)
	if end > len(frame) {
		return f, false
	}
	f.first, f.rest = frame[at:end], frame[end:]
	return f, true
}

func appendZstdWithHead(e *zstd.Encoder, dst, head, src []byte) []byte {
	dst = appendZstdStart(dst, uint64(len(head)+len(src)))
	dst = appendZstdRaw(dst, head, len(src) == 0)
	if len(src) == 0 {
		return dst
	}
	at := len(dst)
	dst = e.EncodeAll(src, slices.Grow(dst, len(src)/2))
	f, _ := cutZstd(dst[at:])
	return append(dst[:at], dst[at+f.blocks:]...)
}

// appendZstdStart appends what precedes the blocks of a frame of a single segment.
func appendZstdStart(dst []byte, plain uint64) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, zstdMagic)
	switch {
	case plain < 256:
		return append(dst, 0x20, byte(plain))
	case plain < 256+1<<16:
		return binary.LittleEndian.AppendUint16(append(dst, 0x60), uint16(plain-256))
	}
	return binary.LittleEndian.AppendUint32(append(dst, 0xa0), uint32(plain))
}

// appendZstdRaw appends an uncompressed block.
func appendZstdRaw(dst, b []byte, last bool) []byte {
	h := uint32(len(b)) << 3
	if last {
		h |= 1
	}
	return append(append(dst, byte(h), byte(h>>8), byte(h>>16)), b...)
}

// sequence is the first sequence of an LZ4 block, cut after its literals.
type sequence struct {
	match    byte // low half of the token
	literals []byte
	rest     []byte // the match and what follows
}

func cutSequence(block []byte) (s sequence, ok bool) {
	if len(block) == 0 {
		return s, false
	}
	s.match = block[0] & 15
	n, at := lz4Length(block, 1, int(block[0]>>4))
	if n > len(block)-at {
		return s, false
	}
	s.literals, s.rest = block[at:at+n], block[at+n:]
	return s, true
}

// lz4Length returns a length whose first part is n, and where what follows it begins.
func lz4Length(block []byte, at, n int) (int, int) {
	if n < 15 {
		return n, at
	}
	for at < len(block) {
		b := block[at]
		n, at = n+int(b), at+1
		if b < 255 {
			break
		}
	}
	return n, at
}

// lz4HasHead reports whether the first n bytes are literals that no match refers to.
func lz4HasHead(block []byte, n int) bool {
	for pos := 0; ; {
		s, ok := cutSequence(block)
		if !ok || pos == 0 && len(s.literals) < n {
			return false
		}
		pos += len(s.literals)
		if len(s.rest) == 0 {
			return true
		}
		if len(s.rest) < 2 || pos-int(binary.LittleEndian.Uint16(s.rest)) < n {
			return false
		}
		length, at := lz4Length(s.rest, 2, int(s.match))
		pos += length + 4
		block = s.rest[at:]
	}
}

// appendSequence appends a sequence with literals a and b, and what follows them.
func appendSequence(dst []byte, match byte, a, b, rest []byte) []byte {
	n := len(a) + len(b)
	if n < 15 {
		dst = append(dst, byte(n)<<4|match)
	} else {
		dst = append(dst, 0xf0|match)
		for n -= 15; n >= 255; n -= 255 {
			dst = append(dst, 255)
		}
		dst = append(dst, byte(n))
	}
	return append(append(append(dst, a...), b...), rest...)
}

func appendLZ4WithHead(dst, head, src []byte) []byte {
	at := len(dst)
	room := len(head) + len(head)/255 + 2 // by which the block may grow
	dst = AppendLZ4(slices.Grow(dst, room)[:at+room], src)
	s, _ := cutSequence(dst[at+room:])
	// Everything moves towards the front, literals first, over bytes that were moved before.
	return appendSequence(dst[:at], s.match, head, s.literals, s.rest)
}
