package vector

import (
	"encoding/binary"

	"github.com/minikudu/minikudu/schema"
)

// littleEndian is the byte order of this machine.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// AppendLE appends the values of a fixed-width vector to dst, little-endian whatever
// the machine's byte order.
func AppendLE(dst []byte, v *Vector) []byte {
	at := len(dst)
	dst = append(dst, v.data[:v.length*v.kind.Width()]...)
	toHost(dst[at:], v.kind)
	return dst
}

// FromLE returns a fixed-width vector of a copy of raw, little-endian values back to
// back, with the given validity (nil for no nulls).
func FromLE(kind schema.Kind, raw []byte, valid Bitmap) *Vector {
	v := &Vector{kind: kind, length: len(raw) / kind.Width(), valid: valid}
	v.data = append(reserve(nil, len(raw)), raw...)
	toHost(v.data, kind)
	return v
}

// toHost turns little-endian values into the machine's byte order, or back.
func toHost(b []byte, kind schema.Kind) {
	if littleEndian {
		return
	}
	swapWords(b, min(kind.Width(), 8)) // 128 bits are two words, the low one first on every machine
}

// swapWords reverses the bytes of every w bytes.
func swapWords(b []byte, w int) {
	for ; len(b) >= w; b = b[w:] {
		for i, j := 0, w-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
}
