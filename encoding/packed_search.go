package encoding

import (
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// Int returns cell i of a page of integers of up to 64 bits; a null's is 0.
func (p *Packed) Int(i int) (int64, error) {
	i, ok := p.place(i)
	switch {
	case !ok:
		return 0, nil
	case p.Encoding == schema.EncodingDistinct:
		c := int(uint16(p.numbers.at(i)))
		if c >= p.table.Len() {
			return 0, p.beyond(i, c)
		}
		return intAt(p.table, c), nil
	case p.Encoding == schema.EncodingDelta:
		return p.signed(p.upTo(i)), nil
	}
	return p.signed(p.numbers.at(i)), nil
}

// Bytes returns cell i of a page of bytes; a null's is empty. The result shares memory with
// the words of the file.
func (p *Packed) Bytes(i int) ([]byte, error) {
	i, ok := p.place(i)
	if !ok {
		return nil, nil
	}
	return p.word(i)
}

// SearchInt returns the first of the cells [from, to), ascending integers of up to 64 bits
// without nulls, that is not below x, to when there is none.
func (p *Packed) SearchInt(from, to int, x int64) (int, error) {
	if p.Encoding == schema.EncodingDelta {
		return p.searchSums(from, to, x), nil
	}
	for from < to {
		mid := int(uint(from+to) >> 1)
		v, err := p.Int(mid)
		switch {
		case err != nil:
			return 0, err
		case v >= x:
			to = mid
		default:
			from = mid + 1
		}
	}
	return from, nil
}

// searchSums is SearchInt for DELTA: by marks first and then in a stride between two, from whose
// begin no difference is added more than once or twice.
func (p *Packed) searchSums(from, to int, x int64) int {
	if from >= to {
		return to
	}
	lo, hi := from/markEvery, (to-1)/markEvery // strides; the end of lo-1 is below x or before from, that of hi is not
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); p.signed(p.marks[mid+1]) >= x {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	at := lo * markEvery
	from, to = max(from, at), min(to, at+markEvery)
	before := p.marks[lo] // the value before from
	if at < from {
		before += p.numbers.sum(at, from)
	}
	for from < to {
		mid := int(uint(from+to) >> 1)
		v := before + p.numbers.sum(from, mid+1)
		if p.signed(v) >= x {
			to = mid
		} else {
			from, before = mid+1, v
		}
	}
	return from
}

// upTo returns value i of DELTA.
func (p *Packed) upTo(i int) uint64 {
	k := i / markEvery
	if i%markEvery == markEvery-1 && k+1 < len(p.marks) {
		return p.marks[k+1]
	}
	return p.marks[k] + p.numbers.sum(k*markEvery, i+1)
}

// place returns which value cell i is, false for a null.
func (p *Packed) place(i int) (int, bool) {
	if p.valid.bits == nil {
		return i, true
	}
	if !p.valid.bits.Get(i) {
		return 0, false
	}
	return p.valid.rank(i), true
}

// signed returns an integer of the page's width.
func (p *Packed) signed(x uint64) int64 {
	unused := 64 - 8*p.Kind.Width()
	return int64(x<<unused) >> unused
}

// intAt returns integer i of a vector without nulls.
func intAt(v *vector.Vector, i int) int64 {
	switch v.Kind().Width() {
	case 1:
		return int64(vector.Values[int8](v)[i])
	case 2:
		return int64(vector.Values[int16](v)[i])
	case 4:
		return int64(vector.Values[int32](v)[i])
	}
	return vector.Values[int64](v)[i]
}

// word returns the word of the file's dictionary that value i is.
func (p *Packed) word(i int) ([]byte, error) {
	c := p.numbers.at(i) << (64 - 8*p.codeWidth) >> (64 - 8*p.codeWidth)
	if c >= uint64(p.dict.Len()) {
		return nil, vfs.Corruptf("code word beyond the %d words of the dictionary", p.dict.Len())
	}
	return p.dict.BytesAt(int(c)), nil
}

// beyond says that value i is a word that the page does not have.
func (p *Packed) beyond(i, c int) error {
	return vfs.Corruptf("value %d is word %d of %d", i, c, p.table.Len())
}
