package encoding

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Group varint packs four numbers: a selector byte holds their lengths less one, two
// bits each, the first in the top bits; the numbers follow in 1 to 4 bytes each.

// groupLen is the number of bytes of a group with the given selector.
var groupLen = func() (t [256]uint8) {
	for s := range t {
		t[s] = uint8(5 + s>>6 + s>>4&3 + s>>2&3 + s&3)
	}
	return t
}()

// varLen is the number of bytes a number takes in a group.
func varLen(v uint32) int { return (bits.Len32(v|1) + 7) / 8 }

// maxGroup is the length of the longest group.
const maxGroup = 17

func appendGroup(dst []byte, g [4]uint32) []byte {
	at := len(dst)
	dst = slices.Grow(dst, maxGroup)[:at+maxGroup]
	out, n, le := dst[at:], 1, binary.LittleEndian
	sel := 0
	for _, v := range g {
		le.PutUint32(out[n:], v) // the bytes past its length are overwritten or cut off
		k := varLen(v)
		n, sel = n+k, sel<<2|(k-1)
	}
	out[0] = byte(sel)
	return dst[:at+n]
}

// appendGroups appends vals, the last group filled with zeros.
func appendGroups(dst []byte, vals []uint32) []byte {
	dst = slices.Grow(dst, len(vals)/4*9+maxGroup) // offsets of a block take two or three bytes
	for ; len(vals) >= 4; vals = vals[4:] {
		dst = appendGroup(dst, [4]uint32(vals))
	}
	if len(vals) > 0 {
		var g [4]uint32
		copy(g[:], vals)
		dst = appendGroup(dst, g)
	}
	return dst
}

// readGroup returns the first group of src and its length, 0 when src is too short.
func readGroup(src []byte) (g [4]uint32, n int) {
	if len(src) == 0 || len(src) < int(groupLen[src[0]]) {
		return g, 0
	}
	sel := src[0]
	if len(src) >= maxGroup {
		return readGroupFast(src, sel)
	}
	n = 1
	for i := range g {
		k := int(sel>>6) + 1
		for j := range k {
			g[i] |= uint32(src[n+j]) << (8 * j)
		}
		n, sel = n+k, sel<<2
	}
	return g, n
}

// readGroupFast reads four bytes for each number; src has at least maxGroup.
func readGroupFast(src []byte, sel byte) (g [4]uint32, n int) {
	le := binary.LittleEndian
	a := 1 + int(sel>>6) + 1
	b := a + int(sel>>4&3) + 1
	c := b + int(sel>>2&3) + 1
	src = src[:maxGroup]
	g[0] = le.Uint32(src[1:]) & groupMask[sel>>6]
	g[1] = le.Uint32(src[a:]) & groupMask[sel>>4&3]
	g[2] = le.Uint32(src[b:]) & groupMask[sel>>2&3]
	g[3] = le.Uint32(src[c:]) & groupMask[sel&3]
	return g, c + int(sel&3) + 1
}

var groupMask = [4]uint32{0xff, 0xffff, 0xffffff, 0xffffffff}
