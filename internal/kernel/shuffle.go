package kernel

import (
	"encoding/binary"
	"unsafe"
)

// A bit transposition turns E elements of w bytes into 8w planes of E/8 bytes: plane b
// holds bit b of every element. 64 elements are 8w words of 64 bits and are done in two
// passes over groups of eight words held in registers: the bytes of eight words are
// transposed, so that word (k, i) has byte k of the elements i, 8+i, 16+i, ...; then the bits
// of eight such words are transposed, which gives eight planes of 64 elements.
// The passes are the radix-8 steps of the recursive transposition of a bit matrix
// (Warren, Hacker's Delight, 7-3), with the swaps between words instead of within.

// Shuffle transposes the bits of src, elements of width 1, 2, 4, 8 or 16 bytes and a multiple of eight of
// them, into dst, which has room for as much and does not overlap src.
func Shuffle(dst, src []byte, width int) {
	dst = dst[:len(src)]
	shuffleRest(dst, src, width, fastShuffle(dst, src, width, len(src)/width/8))
}

// Unshuffle is the inverse of [Shuffle].
func Unshuffle(dst, src []byte, width int) {
	dst = dst[:len(src)]
	unshuffleRest(dst, src, width, fastUnshuffle(dst, src, width, len(src)/width/8))
}

// shuffleRest does the elements from done on, a multiple of 64.
func shuffleRest(dst, src []byte, width, done int) {
	n := len(src) / width
	stride, whole := n/8, n&^63
	if done < whole {
		shuffle64(dst[done/8:], src[done*width:whole*width], width, stride)
	}
	if whole == n {
		return
	}
	var in, out [64 * 16]byte
	copy(in[:], src[whole*width:])
	shuffle64(out[:], in[:64*width], width, 8)
	for b := range 8 * width {
		copy(dst[b*stride+whole/8:(b+1)*stride], out[8*b:])
	}
}

// unshuffleRest does the elements from done on, a multiple of 64.
func unshuffleRest(dst, src []byte, width, done int) {
	n := len(src) / width
	stride, whole := n/8, n&^63
	if done < whole {
		unshuffle64(dst[done*width:whole*width], src[done/8:], width, stride)
	}
	if whole == n {
		return
	}
	var in, out [64 * 16]byte
	for b := range 8 * width {
		copy(in[8*b:8*b+8], src[b*stride+whole/8:(b+1)*stride])
	}
	unshuffle64(out[:64*width], in[:], width, 8)
	copy(dst[whole*width:], out[:])
}

// shuffle64 transposes whole groups of 64 elements, plane b of dst starting at b*stride. Between the passes, word 8q+m of t has byte m of the
// words q, w+q, 2w+q, ... of the 64 elements, which is byte k of the elements i, 8+i, 16+i, ...
// for 8q+m = i*w+k.
func shuffle64(dst, src []byte, width, stride int) {
	if len(src) == 0 {
		return
	}
	_ = dst[(8*width-1)*stride+len(src)/(8*width)-1] // the last byte written
	var t [8 * 128]byte
	tp, out, in, step := unsafe.Pointer(&t), unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), 8*width
	for n := len(src) / (64 * width); n > 0; n-- {
		for q := 0; q < step; q += 8 {
			p := unsafe.Add(in, q)
			a, b, c, d, e, f, g, h := transposeBytes(load(p, 0), load(p, step), load(p, 2*step), load(p, 3*step),
				load(p, 4*step), load(p, 5*step), load(p, 6*step), load(p, 7*step))
			o := unsafe.Add(tp, 8*q)
			store4(o, 8, a, b, c, d)
			store4(unsafe.Add(o, 4*8), 8, e, f, g, h)
		}
		for k := range width {
			p := unsafe.Add(tp, 8*k)
			a, b, c, d, e, f, g, h := transposeBits(load(p, 0), load(p, step), load(p, 2*step), load(p, 3*step),
				load(p, 4*step), load(p, 5*step), load(p, 6*step), load(p, 7*step))
			o := unsafe.Add(out, 8*k*stride)
			store4(o, stride, a, b, c, d)
			store4(unsafe.Add(o, 4*stride), stride, e, f, g, h)
		}
		if n > 1 {
			in, out = unsafe.Add(in, 64*width), unsafe.Add(out, 8)
		}
	}
}

// unshuffle64 is the inverse of shuffle64. Both transpositions are their own inverse.
func unshuffle64(dst, src []byte, width, stride int) {
	if len(dst) == 0 {
		return
	}
	_ = src[(8*width-1)*stride+len(dst)/(8*width)-1] // the last byte read
	var t [8 * 128]byte
	tp, out, in, step := unsafe.Pointer(&t), unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), 8*width
	for n := len(dst) / (64 * width); n > 0; n-- {
		for k := range width {
			p := unsafe.Add(in, 8*k*stride)
			a, b, c, d, e, f, g, h := transposeBits(load(p, 0), load(p, stride), load(p, 2*stride), load(p, 3*stride),
				load(p, 4*stride), load(p, 5*stride), load(p, 6*stride), load(p, 7*stride))
			o := unsafe.Add(tp, 8*k)
			store4(o, step, a, b, c, d)
			store4(unsafe.Add(o, 4*step), step, e, f, g, h)
		}
		for q := 0; q < step; q += 8 {
			p := unsafe.Add(tp, 8*q)
			a, b, c, d, e, f, g, h := transposeBytes(load(p, 0), load(p, 8), load(p, 16), load(p, 24),
				load(p, 32), load(p, 40), load(p, 48), load(p, 56))
			o := unsafe.Add(out, q)
			store4(o, step, a, b, c, d)
			store4(unsafe.Add(o, 4*step), step, e, f, g, h)
		}
		if n > 1 {
			in, out = unsafe.Add(in, 8), unsafe.Add(out, 64*width)
		}
	}
}

// load reads a little-endian word. The kernels check their bounds once, at the start.
func load(p unsafe.Pointer, offset int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, offset))[:])
}

func store(p unsafe.Pointer, offset int, v uint64) {
	binary.LittleEndian.PutUint64((*[8]byte)(unsafe.Add(p, offset))[:], v)
}

// store4 writes four words that lie step bytes apart.
func store4(p unsafe.Pointer, step int, a, b, c, d uint64) {
	store(p, 0, a)
	store(p, step, b)
	store(p, 2*step, c)
	store(p, 3*step, d)
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
