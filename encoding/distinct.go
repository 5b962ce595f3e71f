package encoding

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// maxDistinct is the most words of a DISTINCT block.
const maxDistinct = 4096

// distinctWriter finds the distinct values of a page.
type distinctWriter struct {
	slots [4 * maxDistinct]uint16 // of words, by hash: the number plus one
	words []byte
	codes []int64
	used  []int // how often each word is
	order []int // words by place
	place []int64
	ints  []int64
}

// find sets words and codes and reports false when there are too many words.
func (w *distinctWriter) find(raw []byte, width int) bool {
	clear(w.slots[:])
	w.words, w.codes, w.used = w.words[:0], w.codes[:0], w.used[:0]
	most := min(maxDistinct, len(raw)/width/4+1)
	for at := 0; at < len(raw); at += width {
		v := raw[at : at+width]
		i := hashFixed(v) % uint64(len(w.slots))
		for ; w.slots[i] != 0; i = (i + 1) % uint64(len(w.slots)) {
			if k := int(w.slots[i]-1) * width; string(w.words[k:k+width]) == string(v) {
				break
			}
		}
		if w.slots[i] == 0 {
			n := len(w.used)
			if n == most {
				return false
			}
			w.slots[i] = uint16(n + 1)
			w.words, w.used = append(w.words, v...), append(w.used, 0)
		}
		w.codes = append(w.codes, int64(w.slots[i]-1))
		w.used[w.slots[i]-1]++
	}
	return true
}

// hashFixed spreads a value of up to 16 bytes over its high bits.
func hashFixed(v []byte) uint64 {
	const odd = 0x9e3779b97f4a7c15
	var b [16]byte
	copy(b[:], v)
	h := binary.LittleEndian.Uint64(b[:])*odd ^ binary.LittleEndian.Uint64(b[8:])
	return h * odd >> 40
}

// append appends a DISTINCT block of the values that find was given. Words ascend where
// which is packed, so that their differences are small; where a codec follows, common ones
// come first, so that it sees few different bytes.
func (w *distinctWriter) append(dst []byte, n *numberWriter, width int, ordinal uint32, planes bool) []byte {
	w.arrange(width, planes)
	dst = appendShortHeader(dst, len(w.codes), ordinal)
	dst = binary.AppendUvarint(dst, uint64(len(w.order)))
	if width > 8 {
		for _, k := range w.order {
			dst = append(dst, w.words[k*width:(k+1)*width]...)
		}
	} else {
		dst = n.appendDifferences(dst, w.ints, false)
	}
	w.ints = w.ints[:0]
	for _, c := range w.codes {
		w.ints = append(w.ints, w.place[c])
	}
	return n.append(dst, w.ints, planes)
}

// arrange sets order and place, and for words of up to 64 bits ints to the words in order.
func (w *distinctWriter) arrange(width int, byUse bool) {
	w.order, w.ints = w.order[:0], w.ints[:0]
	if width <= 8 {
		w.ints = appendInts(w.ints, w.words, width)
	}
	for k := range w.used {
		w.order = append(w.order, k)
	}
	ints := w.ints
	slices.SortFunc(w.order, func(a, b int) int {
		switch {
		case byUse && w.used[a] != w.used[b]:
			return cmp.Compare(w.used[b], w.used[a])
		case width > 8:
			return cmp.Compare(a, b)
		}
		return cmp.Compare(ints[a], ints[b])
	})
	w.place = append(w.place[:0], make([]int64, len(w.order))...)
	for at, k := range w.order {
		w.place[k] = int64(at)
	}
	if width <= 8 {
		w.ints = w.ints[:0]
		for _, k := range w.order {
			w.ints = appendInts(w.ints, w.words[k*width:(k+1)*width], width)
		}
	}
}

// distinct decodes a DISTINCT block.
func (d *decoder) distinct(dst *vector.Vector, block []byte) (Header, error) {
	n, ordinal, rest, err := shortHeader(block)
	if err != nil {
		return Header{}, err
	}
	w := d.Kind.Width()
	if err := d.check(n, n*uint64(w)); err != nil {
		return Header{}, err
	}
	s := pageScratches.Get().(*pageScratch)
	defer s.put()
	rest, err = d.distinctWords(&s.table, rest)
	if err != nil {
		return Header{}, err
	}
	dst.ExtendFixed(int(n))
	switch w {
	case 1:
		err = choose[uint8](dst, s, rest)
	case 2:
		err = choose[uint16](dst, s, rest)
	case 4:
		err = choose[uint32](dst, s, rest)
	case 8:
		err = choose[uint64](dst, s, rest)
	default:
		err = choose[schema.Int128](dst, s, rest)
	}
	return Header{ordinal, int(n)}, err
}

// distinctWords fills table, which it resets, and returns what follows the words.
func (d *decoder) distinctWords(table *vector.Vector, src []byte) (rest []byte, err error) {
	words, k := binary.Uvarint(src)
	if k <= 0 || words > maxDistinct {
		return nil, vfs.Corruptf("%d distinct values, at most %d expected", words, maxDistinct)
	}
	src = src[k:]
	table.Reset(d.Kind)
	raw := table.ExtendFixed(int(words))
	switch d.Kind.Width() {
	case 1:
		return decodeDifferences(vector.Values[uint8](table), src)
	case 2:
		return decodeDifferences(vector.Values[uint16](table), src)
	case 4:
		return decodeDifferences(vector.Values[uint32](table), src)
	case 8:
		return decodeDifferences(vector.Values[uint64](table), src)
	}
	if len(raw) > len(src) {
		return nil, vfs.Corruptf("distinct values that end early")
	}
	src = src[copy(raw, src):]
	vector.HostOrder(raw, 16)
	return src, nil
}

// choose fills dst with the words that the numbers in src name.
func choose[T vector.Fixed](dst *vector.Vector, s *pageScratch, src []byte) error {
	out, words := vector.Values[T](dst), vector.Values[T](&s.table)
	s.codes = slices.Grow(s.codes[:0], len(out))[:len(out)]
	if err := decodeAll(s.codes, src); err != nil {
		return err
	}
	if i := kernel.Gather(out, words, s.codes); i < len(out) {
		return vfs.Corruptf("value %d is word %d of %d", i, s.codes[i], len(words))
	}
	return nil
}
