//go:build amd64 && !purego

package kernel

import (
	"math/bits"
	"slices"
)

// What it takes to look at one text alone, in bytes that are searched meanwhile: so many for each
// text, and so many for each of its bytes.
const (
	bytesPerText = 128
	bytesPerByte = 4
)

// fastContains does whole words and returns how many.
func fastContains(sel []uint64, offsets []int32, data []byte, s string) int {
	start, end := int(offsets[0]), int(offsets[len(offsets)-1])
	if alone := ones(sel) * (bytesPerText + bytesPerByte*(end-start)/max(len(offsets)-1, 1)); !hasAVX2 || alone < end-start {
		return 0
	}
	f := finder{sel: sel, offsets: offsets, data: data[:end:end], s: s, at: start}
	f.probe = rarest(data[start:end], s)
	if f.find(data) || f.at >= end {
		f.flush(len(sel))
		return len(sel)
	}
	f.seek(int32(f.at))
	f.flush(f.row / 64)
	return f.word
}

// rarest returns the places, ascending, of the three bytes of s that a piece of the data has
// least of: of digits between separators the ends of s would stand everywhere.
func rarest(data []byte, s string) (places [3]int) {
	var seen [256]int
	for _, b := range data[:min(len(data), 512)] {
		seen[b]++
	}
	order := make([]int, 0, 64)
	for i := range min(len(s), cap(order)) {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(i, j int) int { return seen[s[i]] - seen[s[j]] })
	for i := range places {
		places[i] = order[min(i, len(order)-1)]
	}
	slices.Sort(places[:])
	return places
}

// finder searches the texts of a vector as one and assigns what it finds to the text it lies in,
// so the time depends on the bytes and hardly on how many texts they are, or how many
// are selected. It visits the places where s may begin in ascending order.
type finder struct {
	sel     []uint64
	offsets []int32
	data    []byte
	s       string
	probe   [3]int // places in s of the bytes that are looked for first
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
	p, end := f.probe, len(f.data)
	x, y, z := uint64(f.s[p[0]]), uint64(f.s[p[1]]), uint64(f.s[p[2]])
	for base := f.at; base < end; {
		words := min(len(places), (len(data)-p[2]-base)/64, (end-base+63)/64)
		if words <= 0 {
			return false
		}
		candidates64(&data[base+p[0]], words, p[1]-p[0], p[2]-p[0], x, y, z, &places[0])
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

// visitAll looks at the places of set bits, the first of which is base: from there on three bytes of
// s stand where they should.
func (f *finder) visitAll(base int, places []uint64) {
	n := len(f.s)
	for _, w := range places {
		if skip := f.at - base; skip > 0 {
			w = w >> skip << skip
		}
		for ; w != 0; w &= w - 1 {
			at := base + bits.TrailingZeros64(w)
			if at+n > len(f.data) {
				return
			}
			if at >= f.at && string(f.data[at:at+n]) == f.s {
				f.found(at)
			}
		}
		base += 64
	}
}
