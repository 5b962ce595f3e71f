package vector

import "math/bits"

// Bitmap is a bit set of a length known to its user; bit i is bit i%64 of word
// i/64. Bits past the length are zero.
type Bitmap []uint64

// Words returns the number of words that hold n bits.
func Words(n int) int { return (n + 63) / 64 }

// NewBitmap returns a bitmap of n zero bits.
func NewBitmap(n int) Bitmap { return make(Bitmap, Words(n)) }

// Grow returns b with room for n bits, reusing its memory where possible. All bits
// of the result are zero.
func (b Bitmap) Grow(n int) Bitmap {
	w := Words(n)
	if cap(b) < w {
		return make(Bitmap, w)
	}
	b = b[:w]
	clear(b)
	return b
}

// Get reports bit i.
func (b Bitmap) Get(i int) bool { return b[i>>6]>>(uint(i)&63)&1 != 0 }

// Set sets bit i.
func (b Bitmap) Set(i int) { b[i>>6] |= 1 << (uint(i) & 63) }

// Clear clears bit i.
func (b Bitmap) Clear(i int) { b[i>>6] &^= 1 << (uint(i) & 63) }

// Put sets or clears bit i.
func (b Bitmap) Put(i int, v bool) {
	if v {
		b.Set(i)
	} else {
		b.Clear(i)
	}
}

// SetRange sets bits [from, to).
func (b Bitmap) SetRange(from, to int) {
	if from >= to {
		return
	}
	first, last := from>>6, (to-1)>>6
	lo := ^uint64(0) << (uint(from) & 63)
	hi := ^uint64(0) >> (63 - uint(to-1)&63)
	if first == last {
		b[first] |= lo & hi
		return
	}
	b[first] |= lo
	for i := first + 1; i < last; i++ {
		b[i] = ^uint64(0)
	}
	b[last] |= hi
}

// ClearRange clears bits [from, to).
func (b Bitmap) ClearRange(from, to int) {
	if from >= to {
		return
	}
	first, last := from>>6, (to-1)>>6
	lo := ^uint64(0) << (uint(from) & 63)
	hi := ^uint64(0) >> (63 - uint(to-1)&63)
	if first == last {
		b[first] &^= lo & hi
		return
	}
	b[first] &^= lo
	for i := first + 1; i < last; i++ {
		b[i] = 0
	}
	b[last] &^= hi
}

// Count returns the number of set bits.
func (b Bitmap) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// CountRange returns the number of set bits in [from, to).
func (b Bitmap) CountRange(from, to int) int {
	if from >= to {
		return 0
	}
	first, last := from>>6, (to-1)>>6
	lo := ^uint64(0) << (uint(from) & 63)
	hi := ^uint64(0) >> (63 - uint(to-1)&63)
	if first == last {
		return bits.OnesCount64(b[first] & lo & hi)
	}
	n := bits.OnesCount64(b[first]&lo) + bits.OnesCount64(b[last]&hi)
	for i := first + 1; i < last; i++ {
		n += bits.OnesCount64(b[i])
	}
	return n
}

// Any reports whether a bit is set.
func (b Bitmap) Any() bool {
	for _, w := range b {
		if w != 0 {
			return true
		}
	}
	return false
}

// And intersects b with c, which has at least as many words.
func (b Bitmap) And(c Bitmap) {
	c = c[:len(b)]
	for i := range b {
		b[i] &= c[i]
	}
}

// AndNot removes the bits of c, which has at least as many words, from b.
func (b Bitmap) AndNot(c Bitmap) {
	c = c[:len(b)]
	for i := range b {
		b[i] &^= c[i]
	}
}

// Or adds the bits of c, which has at least as many words, to b.
func (b Bitmap) Or(c Bitmap) {
	c = c[:len(b)]
	for i := range b {
		b[i] |= c[i]
	}
}

// Next returns the first set bit at or after i, -1 when there is none.
func (b Bitmap) Next(i int) int {
	if i >= len(b)*64 {
		return -1
	}
	w := i >> 6
	if v := b[w] >> (uint(i) & 63); v != 0 {
		return i + bits.TrailingZeros64(v)
	}
	for w++; w < len(b); w++ {
		if b[w] != 0 {
			return w<<6 + bits.TrailingZeros64(b[w])
		}
	}
	return -1
}

// AppendIndexes appends the positions of the set bits to dst.
func (b Bitmap) AppendIndexes(dst []int32) []int32 {
	for w, v := range b {
		for ; v != 0; v &= v - 1 {
			dst = append(dst, int32(w<<6+bits.TrailingZeros64(v)))
		}
	}
	return dst
}

// CopyRange replaces bits [at, at+n) of b with bits [from, from+n) of src.
func (b Bitmap) CopyRange(at int, src Bitmap, from, n int) {
	for n > 0 {
		k := min(n, 64-at&63)
		mask := ^uint64(0) >> (64 - uint(k)) << (uint(at) & 63)
		b[at>>6] = b[at>>6]&^mask | src.extract(from)<<(uint(at)&63)&mask
		at, from, n = at+k, from+k, n-k
	}
}

// extract returns 64 bits from position i on, with zeroes past the end.
func (b Bitmap) extract(i int) uint64 {
	w, s := i>>6, uint(i)&63
	v := b[w] >> s
	if s != 0 && w+1 < len(b) {
		v |= b[w+1] << (64 - s)
	}
	return v
}
