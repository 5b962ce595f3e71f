package tablet

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/minikudu/minikudu/vector"
)

const (
	radixRows  = 64 // keys from which counting bytes is faster than comparing keys
	insertRows = 24 // keys up to which inserting one after the other is faster than merging
	radixBytes = 4  // bytes that are counted; they leave few keys together
)

// keyRef is a row and 16 bytes of its key as big-endian numbers, those after the bytes
// that all keys begin with.
type keyRef struct {
	key [2]uint64
	row int32
}

// sorter sorts encoded keys. It is memory that is used again.
type sorter struct {
	refs  []keyRef
	order []int32
}

// sort returns the rows in order of key, equal keys in order of row. The result is valid
// until the next call.
//
// It is a radix sort by the first few bytes in which the keys differ, least significant
// first (Knuth, "The Art of Computer Programming", vol. 3, 5.2.5): whatever the order in
// which the keys arrive, a byte costs two passes without a branch to guess. Keys that
// agree in those bytes are compared.
func (s *sorter) sort(encoded *vector.Vector) []int32 {
	n := encoded.Len()
	s.refs = slices.Grow(s.refs[:0], 2*n)[:2*n]
	src, dst := s.refs[:n], s.refs[n:]
	counted := firstBytes(loadRefs(src, encoded))
	if n < radixRows {
		counted = [2]uint64{}
	}
	for word := 1; word >= 0; word-- {
		for shift := uint(0); shift < 64; shift += 8 {
			if byte(counted[word]>>shift) != 0 {
				radixPass(dst, src, word, shift)
				src, dst = dst, src
			}
		}
	}
	sortTies(src, counted, encoded)
	s.order = s.order[:0]
	for i := range src {
		s.order = append(s.order, src[i].row)
	}
	return s.order
}

// firstBytes returns a mask of the first radixBytes bytes that are not zero.
func firstBytes(vary [2]uint64) (mask [2]uint64) {
	left := radixBytes
	for word := range vary {
		for shift := 56; shift >= 0 && left > 0; shift -= 8 {
			if byte(vary[word]>>shift) != 0 {
				mask[word] |= 0xff << shift
				left--
			}
		}
	}
	return mask
}

// loadRefs fills refs and returns the bits in which their keys are not all the same.
func loadRefs(refs []keyRef, encoded *vector.Vector) (vary [2]uint64) {
	skip := commonLength(encoded)
	for i := range refs {
		k := encoded.BytesAt(i)[skip:]
		refs[i] = keyRef{key: [2]uint64{head(k), head(k[min(8, len(k)):])}, row: int32(i)}
		vary[0] |= refs[i].key[0] ^ refs[0].key[0]
		vary[1] |= refs[i].key[1] ^ refs[0].key[1]
	}
	return vary
}

// commonLength returns the number of bytes that all keys begin with.
func commonLength(encoded *vector.Vector) int {
	var common []byte
	for i := range encoded.Len() {
		k := encoded.BytesAt(i)
		if i == 0 {
			common = k
		}
		for !bytes.HasPrefix(k, common) {
			common = common[:len(common)-1]
		}
	}
	return len(common)
}

// radixPass puts src into dst in order of one byte, equal ones in the order they had.
func radixPass(dst, src []keyRef, word int, shift uint) {
	var next [256]int32 // where the next ref with a byte goes
	for i := range src {
		next[byte(src[i].key[word]>>shift)]++
	}
	sum := int32(0)
	for i, n := range next {
		next[i], sum = sum, sum+n
	}
	for i := range src {
		b := byte(src[i].key[word] >> shift)
		dst[next[b]] = src[i]
		next[b]++
	}
}

// sortTies orders the refs that agree in the bytes of the mask, which stand together.
func sortTies(refs []keyRef, mask [2]uint64, encoded *vector.Vector) {
	for from := 0; from < len(refs); {
		to := from + 1
		for to < len(refs) && agree(&refs[from], &refs[to], mask) {
			to++
		}
		switch n := to - from; {
		case n > insertRows:
			slices.SortStableFunc(refs[from:to], func(a, b keyRef) int { return compareRefs(&a, &b, encoded) })
		case n > 1:
			insertRefs(refs[from:to], encoded)
		}
		from = to
	}
}

// insertRefs sorts a few refs by insertion.
func insertRefs(refs []keyRef, encoded *vector.Vector) {
	for i := 1; i < len(refs); i++ {
		r := refs[i]
		k := i
		for ; k > 0 && compareRefs(&r, &refs[k-1], encoded) < 0; k-- {
			refs[k] = refs[k-1]
		}
		refs[k] = r
	}
}

func compareRefs(a, b *keyRef, encoded *vector.Vector) int {
	switch {
	case a.key[0] != b.key[0]:
		return cmp.Compare(a.key[0], b.key[0])
	case a.key[1] != b.key[1]:
		return cmp.Compare(a.key[1], b.key[1])
	}
	return bytes.Compare(encoded.BytesAt(int(a.row)), encoded.BytesAt(int(b.row)))
}

func agree(a, b *keyRef, mask [2]uint64) bool {
	return (a.key[0]^b.key[0])&mask[0]|(a.key[1]^b.key[1])&mask[1] == 0
}
