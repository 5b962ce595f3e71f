package encoding

import (
	"encoding/binary"
	"math/bits"
)

// A bit transposition turns E elements of w bytes into 8w planes of E/8 bytes: plane b
// holds bit b of every element. 64 elements are 8w words of 64 bits and are done in two
// passes over groups of eight words held in registers: the bytes of eight words are
// transposed, so that word (k, i) has byte k of the elements i, 8+i, 16+i, ...; then the bits
// of eight such words are transposed, which gives eight planes of 64 elements.
// The passes are the radix-8 steps of the recursive transposition of a bit matrix
// (Warren, Hacker's Delight, 7-3), with the swaps between words instead of within.

// shuffler holds the kernels that process whole groups of 64 elements of width w: n
// bytes from src, plane b of dst starting at b*stride.
type shuffler struct {
	shuffle   func(dst, src []byte, width, stride int)
	unshuffle func(dst, src []byte, width, stride int)
}

// portable is the kernel for every machine. A faster one takes its place in kernel.
var portable = shuffler{shuffle64, unshuffle64}

// kernel is chosen when the program starts and never changed.
var kernel = portable

// shuffle transposes src into dst, of the same length, a multiple of 8 elements.
func shuffle(dst, src []byte, width int) { kernel.do(dst, src, width) }

// unshuffle is the inverse of shuffle.
func unshuffle(dst, src []byte, width int) { kernel.undo(dst, src, width) }

func (s *shuffler) do(dst, src []byte, width int) {
	stride := len(src) / width / 8
	whole := len(src) / (64 * width) * (64 * width)
	if whole > 0 {
		s.shuffle(dst, src[:whole], width, stride)
	}
	if whole == len(src) {
		return
	}
	var in, out [64 * 16]byte
	copy(in[:], src[whole:])
	shuffle64(out[:], in[:64*width], width, 8)
	at := whole / width / 8
	for b := range 8 * width {
		copy(dst[b*stride+at:(b+1)*stride], out[8*b:])
	}
}

func (s *shuffler) undo(dst, src []byte, width int) {
	stride := len(src) / width / 8
	whole := len(src) / (64 * width) * (64 * width)
	if whole > 0 {
		s.unshuffle(dst[:whole], src, width, stride)
	}
	if whole == len(src) {
		return
	}
	var in, out [64 * 16]byte
	at := whole / width / 8
	for b := range 8 * width {
		copy(in[8*b:8*b+8], src[b*stride+at:(b+1)*stride])
	}
	unshuffle64(out[:64*width], in[:], width, 8)
	copy(dst[whole:], out[:])
}

// places[log2(w)][8q+m] is where byte m of the words q, w+q, 2w+q, ... of 64 elements
// goes: 8k+i, for byte k of element i of each eight.
var places = func() (t [5][128]uint8) {
	for lg := range t {
		w := 1 << lg
		for p := range 8 * w {
			t[lg][p] = uint8(p%w*8 + p/w)
		}
	}
	return t
}()

// shuffle64 is the portable kernel.
func shuffle64(dst, src []byte, width, stride int) {
	le := binary.LittleEndian
	var t [128]uint64
	place := &places[bits.TrailingZeros8(uint8(width))]
	step := 8 * width
	for col := 0; len(src) >= 64*width; col, src = col+8, src[64*width:] {
		for q := range width {
			s := src[8*q:]
			a, b, c, d, e, f, g, h := transposeBytes(le.Uint64(s), le.Uint64(s[step:]), le.Uint64(s[2*step:]), le.Uint64(s[3*step:]),
				le.Uint64(s[4*step:]), le.Uint64(s[5*step:]), le.Uint64(s[6*step:]), le.Uint64(s[7*step:]))
			p := place[8*q&127:][:8]
			t[p[0]&127], t[p[1]&127], t[p[2]&127], t[p[3]&127] = a, b, c, d
			t[p[4]&127], t[p[5]&127], t[p[6]&127], t[p[7]&127] = e, f, g, h
		}
		for k := range width {
			x := t[8*k&127:][:8]
			a, b, c, d, e, f, g, h := transposeBits(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7])
			o := dst[8*k*stride+col:]
			le.PutUint64(o, a)
			le.PutUint64(o[stride:], b)
			le.PutUint64(o[2*stride:], c)
			le.PutUint64(o[3*stride:], d)
			le.PutUint64(o[4*stride:], e)
			le.PutUint64(o[5*stride:], f)
			le.PutUint64(o[6*stride:], g)
			le.PutUint64(o[7*stride:], h)
		}
	}
}

// unshuffle64 is the inverse of shuffle64. Both transpositions are their own inverse.
func unshuffle64(dst, src []byte, width, stride int) {
	le := binary.LittleEndian
	var t [128]uint64
	place := &places[bits.TrailingZeros8(uint8(width))]
	step := 8 * width
	for col := 0; len(dst) >= 64*width; col, dst = col+8, dst[64*width:] {
		for k := range width {
			s := src[8*k*stride+col:]
			x := t[8*k&127:][:8]
			x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7] = transposeBits(le.Uint64(s), le.Uint64(s[stride:]),
				le.Uint64(s[2*stride:]), le.Uint64(s[3*stride:]), le.Uint64(s[4*stride:]), le.Uint64(s[5*stride:]),
				le.Uint64(s[6*stride:]), le.Uint64(s[7*stride:]))
		}
		for q := range width {
			p := place[8*q&127:][:8]
			a, b, c, d, e, f, g, h := transposeBytes(t[p[0]&127], t[p[1]&127], t[p[2]&127], t[p[3]&127],
				t[p[4]&127], t[p[5]&127], t[p[6]&127], t[p[7]&127])
			o := dst[8*q:]
			le.PutUint64(o, a)
			le.PutUint64(o[step:], b)
			le.PutUint64(o[2*step:], c)
			le.PutUint64(o[3*step:], d)
			le.PutUint64(o[4*step:], e)
			le.PutUint64(o[5*step:], f)
			le.PutUint64(o[6*step:], g)
			le.PutUint64(o[7*step:], h)
		}
	}
}

// transposeBytes transposes an 8x8 matrix of bytes, one row a word.
func transposeBytes(a, b, c, d, e, f, g, h uint64) (_, _, _, _, _, _, _, _ uint64) {
	a, e = swap(a, e, 32, 0x00000000ffffffff)
	b, f = swap(b, f, 32, 0x00000000ffffffff)
	c, g = swap(c, g, 32, 0x00000000ffffffff)
	d, h = swap(d, h, 32, 0x00000000ffffffff)
	a, c = swap(a, c, 16, 0x0000ffff0000ffff)
	b, d = swap(b, d, 16, 0x0000ffff0000ffff)
	e, g = swap(e, g, 16, 0x0000ffff0000ffff)
	f, h = swap(f, h, 16, 0x0000ffff0000ffff)
	a, b = swap(a, b, 8, 0x00ff00ff00ff00ff)
	c, d = swap(c, d, 8, 0x00ff00ff00ff00ff)
	e, f = swap(e, f, 8, 0x00ff00ff00ff00ff)
	g, h = swap(g, h, 8, 0x00ff00ff00ff00ff)
	return a, b, c, d, e, f, g, h
}

// transposeBits transposes, for each of the eight byte positions, the 8x8 matrix of
// bits that the words have there.
func transposeBits(a, b, c, d, e, f, g, h uint64) (_, _, _, _, _, _, _, _ uint64) {
	a, e = swap(a, e, 4, 0x0f0f0f0f0f0f0f0f)
	b, f = swap(b, f, 4, 0x0f0f0f0f0f0f0f0f)
	c, g = swap(c, g, 4, 0x0f0f0f0f0f0f0f0f)
	d, h = swap(d, h, 4, 0x0f0f0f0f0f0f0f0f)
	a, c = swap(a, c, 2, 0x3333333333333333)
	b, d = swap(b, d, 2, 0x3333333333333333)
	e, g = swap(e, g, 2, 0x3333333333333333)
	f, h = swap(f, h, 2, 0x3333333333333333)
	a, b = swap(a, b, 1, 0x5555555555555555)
	c, d = swap(c, d, 1, 0x5555555555555555)
	e, f = swap(e, f, 1, 0x5555555555555555)
	g, h = swap(g, h, 1, 0x5555555555555555)
	return a, b, c, d, e, f, g, h
}

// swap exchanges the bits of a above each masked field with the masked bits of b.
func swap(a, b uint64, shift uint, mask uint64) (uint64, uint64) {
	t := (a>>shift ^ b) & mask
	return a ^ t<<shift, b ^ t
}
