package filter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"

	"github.com/bits-and-blooms/bloom/v3"
)

const (
	// KeysPerFilter is the largest number of keys of a filter.
	KeysPerFilter = 1 << 16

	hashes     = 7
	bitsPerKey = 10
	maxBits    = KeysPerFilter * bitsPerKey // a multiple of 64 even when halved maxShift times
	maxShift   = 10
	headerSize = 16
	version    = 1
)

var magic = [4]byte{'m', 'k', 'b', 'f'}

// Locations are the bits of a key, for filters of every size.
type Locations [hashes]uint64

// Locate returns the locations of an encoded key.
func Locate(key []byte) Locations {
	var l Locations
	h := hash64(key)
	step := bits.RotateLeft64(h, 32) | 1
	for i := range l {
		l[i], _ = bits.Mul64(h, maxBits)
		h += step
	}
	return l
}

// Filter is a set of keys that may answer true for a key it does not hold.
type Filter struct {
	shift uint8
	keys  uint32
	bloom *bloom.BloomFilter // over words
	words []uint64
}

// New returns an empty filter for the given number of keys, at most KeysPerFilter.
// More keys than that may be added; the filter only becomes less sharp.
func New(keys int) *Filter {
	shift := uint8(0)
	for shift < maxShift && keys <= KeysPerFilter>>(shift+1) {
		shift++
	}
	return over(make([]uint64, words(shift)), shift)
}

func over(w []uint64, shift uint8) *Filter {
	return &Filter{shift: shift, bloom: bloom.FromWithM(w, maxBits>>shift, hashes), words: w}
}

// words returns the words of a filter of the given shift.
func words(shift uint8) int { return maxBits >> shift / 64 }

// Add puts a key into the set.
func (f *Filter) Add(l *Locations) {
	f.keys++
	m := uint64(maxBits >> f.shift)
	for _, p := range l {
		if p >= m { // never in a full filter, which saves the division
			p %= m
		}
		f.words[p>>6] |= 1 << (p & 63)
	}
}

// Test reports whether the key may be in the set; false is certain.
func (f *Filter) Test(l *Locations) bool { return f.First(l) != 0 && f.bloom.TestLocations(l[:]) }

// First is 0 when one of three bits proves that the key is not in the set, as it does for
// seven of eight absent keys, and 1 when they do not. It does not branch: who asks for many
// keys in a row waits for the memory of several at a time.
func (f *Filter) First(l *Locations) uint64 {
	a, b, c := l[0], l[1], l[2]
	if f.shift > 0 {
		m := uint64(maxBits >> f.shift)
		a, b, c = a%m, b%m, c%m
	}
	return f.words[a>>6] >> (a & 63) & (f.words[b>>6] >> (b & 63)) & (f.words[c>>6] >> (c & 63)) & 1
}

// Touch loads the memory that Test will look at, for a later reader, who then waits for all of it at a time.
//
//go:noinline
func (f *Filter) Touch(l *Locations) (x uint64) {
	m := uint64(maxBits >> f.shift)
	for _, p := range l {
		if p >= m {
			p %= m
		}
		x |= f.words[p>>6]
	}
	return x
}

// Keys returns the number of keys added.
func (f *Filter) Keys() int { return int(f.keys) }

// Size returns the bytes of memory the filter holds.
func (f *Filter) Size() int { return 8*len(f.words) + 128 }

// EncodedSize returns the number of bytes AppendTo appends.
func (f *Filter) EncodedSize() int { return headerSize + 8*len(f.words) }

// AppendTo appends the encoded filter to dst.
func (f *Filter) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, magic[:]...)
	dst = append(dst, version, hashes, f.shift, 0)
	dst = binary.LittleEndian.AppendUint32(dst, f.keys)
	dst = append(dst, 0, 0, 0, 0)
	for _, w := range f.words {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	binary.LittleEndian.PutUint32(dst[at+12:], checksum(dst[at:]))
	return dst
}

// checksum covers an encoded filter but for the checksum itself.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[headerSize:])
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Decode reads a filter from the start of src and returns what follows it. It
// allocates no more than src holds.
func Decode(src []byte) (f *Filter, rest []byte, err error) {
	if len(src) < headerSize {
		return nil, nil, fmt.Errorf("key filter of %d bytes is shorter than its header", len(src))
	}
	shift := src[6]
	switch {
	case [4]byte(src) != magic:
		return nil, nil, errors.New("key filter has wrong magic")
	case src[4] != version || src[5] != hashes || src[7] != 0:
		return nil, nil, fmt.Errorf("key filter of unknown version %d with %d hashes", src[4], src[5])
	case shift > maxShift || len(src)-headerSize < 8*words(shift):
		return nil, nil, fmt.Errorf("key filter of shift %d does not fit %d bytes", shift, len(src))
	}
	body, rest := src[headerSize:headerSize+8*words(shift)], src[headerSize+8*words(shift):]
	if want, got := binary.LittleEndian.Uint32(src[12:]), checksum(src[:headerSize+len(body)]); want != got {
		return nil, nil, fmt.Errorf("key filter checksum %08x, want %08x", got, want)
	}
	w := make([]uint64, words(shift))
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(body[8*i:])
	}
	f = over(w, shift)
	f.keys = binary.LittleEndian.Uint32(src[8:])
	return f, rest, nil
}
