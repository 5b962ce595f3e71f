package encoding

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// number is the set of types that numbers decode to, arithmetic in them being modulo
// their range.
type number interface {
	uint8 | uint16 | uint32 | uint64
}

// packWidth returns the width in bits at which numbers up to top are packed: above 56
// bits a number need not lie in eight bytes, so that those take 64.
func packWidth(top uint64) int {
	if n := bits.Len64(top); n <= 56 {
		return n
	}
	return 64
}

// packedSize returns the bytes of n packed numbers.
func packedSize(n, width int) int { return (n*width + 7) / 8 }

// appendPacked appends numbers below 1<<width, lowest bit first.
func appendPacked(dst []byte, vals []uint64, width int) []byte {
	if width == 0 {
		return dst
	}
	end := len(dst) + packedSize(len(vals), width)
	var word uint64
	fill := uint(0)
	for _, v := range vals {
		word |= v << fill
		if fill += uint(width); fill < 64 {
			continue
		}
		dst = binary.LittleEndian.AppendUint64(dst, word)
		fill -= 64
		word = v >> (uint(width) - fill)
	}
	return binary.LittleEndian.AppendUint64(dst, word)[:end]
}

// unpack fills dst from src, which has packedSize bytes; width is at most 56, or 64.
// Eight numbers take width bytes, so within each eight they lie at the same places.
func unpack[T number](dst []T, src []byte, width int) {
	if width == 0 {
		clear(dst)
		return
	}
	groups := 0 // of eight that can be read with loads of eight bytes each
	if past := 7*width/8 + 8; len(src) >= past {
		groups = min(len(dst)/8, (len(src)-past)/width+1)
	}
	if groups > 0 {
		unpackGroups(dst[:8*groups], src, width)
		dst, src = dst[8*groups:], src[groups*width:]
	}
	mask := ^uint64(0) >> (64 - width)
	for i := range dst {
		bit := i * width
		var word [8]byte
		copy(word[:], src[bit>>3:])
		dst[i] = T(binary.LittleEndian.Uint64(word[:]) >> (bit & 7) & mask)
	}
}

// unpackGroups fills dst, whose length is a multiple of eight. The caller has checked
// that eight bytes can be read from the start of every number.
func unpackGroups[T number](dst []T, src []byte, width int) {
	var at, by [8]int
	for i := range at {
		at[i], by[i] = i*width>>3, i*width&7
	}
	mask := ^uint64(0) >> (64 - width)
	p, last := unsafe.Pointer(&src[0]), (len(dst)/8-1)*width
	for off := 0; off <= last; off += width {
		q, d := unsafe.Add(p, off), (*[8]T)(dst)
		d[0] = T(load(q, 0) & mask)
		d[1] = T(load(q, at[1]) >> (by[1] & 7) & mask)
		d[2] = T(load(q, at[2]) >> (by[2] & 7) & mask)
		d[3] = T(load(q, at[3]) >> (by[3] & 7) & mask)
		d[4] = T(load(q, at[4]) >> (by[4] & 7) & mask)
		d[5] = T(load(q, at[5]) >> (by[5] & 7) & mask)
		d[6] = T(load(q, at[6]) >> (by[6] & 7) & mask)
		d[7] = T(load(q, at[7]) >> (by[7] & 7) & mask)
		dst = dst[8:]
	}
}

// load reads a little-endian word.
func load(p unsafe.Pointer, offset int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, offset))[:])
}
