package encoding

import (
	"encoding/binary"
	"math/bits"
)

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
