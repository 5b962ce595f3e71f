package filter

import (
	"encoding/binary"
	"math/bits"
)

// hash64 returns XXH64 (Yann Collet's, seed 0) of b, the same on every machine.
func hash64(b []byte) uint64 {
	n := uint64(len(b))
	var h uint64
	if len(b) >= 32 {
		h, b = stripes(b)
	} else {
		h = prime5
	}
	h += n
	for ; len(b) >= 8; b = b[8:] {
		h ^= round(0, binary.LittleEndian.Uint64(b))
		h = bits.RotateLeft64(h, 27)*prime1 + prime4
	}
	if len(b) >= 4 {
		h ^= uint64(binary.LittleEndian.Uint32(b)) * prime1
		h = bits.RotateLeft64(h, 23)*prime2 + prime3
		b = b[4:]
	}
	for _, c := range b {
		h ^= uint64(c) * prime5
		h = bits.RotateLeft64(h, 11) * prime1
	}
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}

// The constants of XXH64.
const (
	prime1 uint64 = 0x9e3779b185ebca87
	prime2 uint64 = 0xc2b2ae3d27d4eb4f
	prime3 uint64 = 0x165667b19e3779f9
	prime4 uint64 = 0x85ebca77c2b2ae63
	prime5 uint64 = 0x27d4eb2f165667c5
)

func round(acc, word uint64) uint64 { return bits.RotateLeft64(acc+word*prime2, 31) * prime1 }

// stripes hashes the whole 32-byte stripes of b and returns the rest of b.
func stripes(b []byte) (uint64, []byte) {
	p1 := prime1
	v1, v2, v3, v4 := p1+prime2, prime2, uint64(0), -p1
	for ; len(b) >= 32; b = b[32:] {
		v1 = round(v1, binary.LittleEndian.Uint64(b))
		v2 = round(v2, binary.LittleEndian.Uint64(b[8:]))
		v3 = round(v3, binary.LittleEndian.Uint64(b[16:]))
		v4 = round(v4, binary.LittleEndian.Uint64(b[24:]))
	}
	h := bits.RotateLeft64(v1, 1) + bits.RotateLeft64(v2, 7) + bits.RotateLeft64(v3, 12) + bits.RotateLeft64(v4, 18)
	for _, v := range [...]uint64{v1, v2, v3, v4} {
		h = (h^round(0, v))*prime1 + prime4
	}
	return h, b
}
