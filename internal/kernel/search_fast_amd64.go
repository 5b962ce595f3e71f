//go:build amd64 && !purego

package kernel

import "math/bits"

// bytesPerText is how many bytes are searched in the time that one text is, more or less.
const bytesPerText = 128

// fastContains does whole words and returns how many.
func fastContains(sel []uint64, offsets []int32, data []byte, s string) int {
	start, end := int(offsets[0]), int(offsets[len(offsets)-1])
	if !hasAVX2 || ones(sel)*bytesPerText < end-start {
		return 0
	}
	f := finder{sel: sel, offsets: offsets, data: data[:end:end], s: s, at: start}
	if f.find(data) || f.at >= end {
		f.flush(len(sel))
		return len(sel)
	}
	f.seek(int32(f.at))
	f.flush(f.row / 64)
	return f.word
}

// finder searches the texts of a vector as one and assigns what it finds to the text it lies in,
// so the time depends on the bytes and hardly on how many texts they are, or how many
// are selected. It visits the places where s may begin in ascending order.
type finder struct {
	sel     []uint64
	offsets []int32
	data    []byte
	s       string
	at      int    // no place below it is of interest any more
	row     int    // the text that the last place found lies in, or one before
	count   int    // of texts that contain s
	word    int    // of sel; those before are done
	hits    uint64 // its texts that contain s
}

// find goes on for as long as 64 places can be read at once, also after the last text, and few
// texts contain s, as each that does takes as long as to look at it alone. It reports whether it
// came to the end.
func (f *finder) find(data []byte) bool {
	var places [64]uint64
	gap, end := len(f.s)-1, len(f.data)
	for base := f.at; base < end; {
		words := min(len(places), (len(data)-gap-base)/64, (end-base+63)/64)
		if words <= 0 {
			return false
		}
		candidates64(&data[base], words, gap, uint64(f.s[0]), uint64(f.s[gap]), &places[0])
		f.visitAll(base, places[:words])
		base += 64 * words
		f.at = max(f.at, base)
		if f.at < end && f.common() {
			return false
		}
	}
	return true
}

// common reports whether nearly all texts so far contain s.
func (f *finder) common() bool {
	f.seek(int32(f.at))
	return f.row >= 8 && 4*f.count > 3*f.row
}

// found notes that s stands at a place, if one text holds all of it.
func (f *finder) found(at int) {
	f.seek(int32(at))
	f.at = at + 1
	if end := int(f.offsets[f.row+1]); at+len(f.s) <= end {
		f.at = end
		f.flush(f.row / 64)
		f.hits |= 1 << (f.row % 64)
		f.count++
	}
}

// seek moves row on to the text that a byte of data lies in, by steps of one, then by steps that
// double.
func (f *finder) seek(at int32) {
	for range 4 {
		if f.offsets[f.row+1] > at {
			return
		}
		f.row++
	}
	lo, hi := f.row, f.row+1
	for f.offsets[hi] <= at {
		lo, hi = hi, min(hi+2*(hi-lo), len(f.offsets)-1)
	}
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; f.offsets[mid] <= at {
			lo = mid
		} else {
			hi = mid
		}
	}
	f.row = lo
}

// flush brings sel up to date for all words before the given one.
func (f *finder) flush(word int) {
	for ; f.word < word; f.word++ {
		f.sel[f.word] &= f.hits
		f.hits = 0
	}
}

// visitAll looks at the places of set bits, the first of which is base: there the first and the last
// byte of s stand.
func (f *finder) visitAll(base int, places []uint64) {
	n := len(f.s)
	for i := f.at - base; i < 64*len(places); i = f.at - base {
		w := places[i>>6] >> (i & 63)
		if w == 0 {
			f.at = base + i&^63 + 64
			continue
		}
		at := base + i + bits.TrailingZeros64(w)
		if at+n > len(f.data) {
			return
		}
		f.at = at + 1
		if n <= 2 || string(f.data[at+1:at+n-1]) == f.s[1:n-1] {
			f.found(at)
		}
	}
}
