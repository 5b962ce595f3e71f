package predicate

import (
	"sync"

	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/vector"
)

// scratch is the working memory of one Eval.
type scratch struct {
	column func(col int) (*vector.Vector, error)
	n      int
	free   []vector.Bitmap // bitmaps to reuse
	table  []uint8         // verdict per dictionary code
	words  vector.Bitmap   // verdict per dictionary word
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// Eval clears from sel the rows for which the predicate is not true. column returns
// the cells of a schema column for all rows (n of them, possibly in dictionary
// form); it is called only for columns whose value is still needed, so that pages
// nobody needs are not decoded, and may fail; it may be called more than once for a
// column. Part by part, the cheapest first, it stops as soon as no row is left.
func (b *Bound) Eval(n int, sel vector.Bitmap, column func(col int) (*vector.Vector, error)) error {
	s := scratches.Get().(*scratch)
	s.column, s.n = column, n
	err := s.eval(b.root, sel[:vector.Words(n)])
	s.column = nil
	scratches.Put(s)
	return err
}

func (s *scratch) eval(n *node, sel vector.Bitmap) error {
	switch n.op {
	case leafOp:
		v, err := s.column(n.leaf.col)
		if err != nil {
			return err
		}
		s.filter(n.leaf, v, sel)
	case andOp:
		return s.evalAnd(n, sel)
	case orOp:
		return s.evalOr(n, sel)
	default:
		if n == never {
			clear(sel)
		}
	}
	return nil
}

func (s *scratch) evalAnd(n *node, sel vector.Bitmap) error {
	for _, p := range n.parts {
		if !sel.Any() {
			return nil
		}
		if err := s.eval(p, sel); err != nil {
			return err
		}
	}
	return nil
}

// evalOr asks each part only for the rows no earlier part has accepted.
func (s *scratch) evalOr(n *node, sel vector.Bitmap) error {
	rest, hits := s.bitmap(len(sel)), s.bitmap(len(sel))
	defer s.release(rest, hits)
	copy(rest, sel)
	for _, p := range n.parts {
		if !rest.Any() {
			break
		}
		copy(hits, rest)
		if err := s.eval(p, hits); err != nil {
			return err
		}
		rest.AndNot(hits)
	}
	sel.AndNot(rest)
	return nil
}

// bitmap returns a bitmap of the given number of words with any content.
func (s *scratch) bitmap(words int) vector.Bitmap {
	if last := len(s.free) - 1; last >= 0 {
		b := s.free[last]
		s.free = s.free[:last]
		if cap(b) >= words {
			return b[:words]
		}
	}
	return make(vector.Bitmap, words)
}

func (s *scratch) release(b ...vector.Bitmap) { s.free = append(s.free, b...) }

// filter clears from sel the rows whose cell of v does not pass l.
func (s *scratch) filter(l *leaf, v *vector.Vector, sel vector.Bitmap) {
	valid := v.Valid()
	switch {
	case l.test == isNull && valid == nil:
		clear(sel)
		return
	case l.test == isNull:
		sel.AndNot(valid)
		return
	case valid != nil:
		sel.And(valid)
	}
	switch {
	case l.test == notNull:
	case v.Dict() != nil:
		s.filterCodes(l, v, sel)
	default:
		l.run.filter(l, v, sel)
	}
}

// filterCodes evaluates the test once per word of the dictionary and then looks
// codes up; or per row, when fewer rows are left than the dictionary has words.
func (s *scratch) filterCodes(l *leaf, v *vector.Vector, sel vector.Bitmap) {
	dict := v.Dict()
	words := dict.Len()
	if words > 64 && words > sel.Count() {
		filterBytes(l, v, sel)
		return
	}
	s.words = s.words.Grow(words)
	s.words.SetRange(0, words)
	filterBytes(l, dict, s.words)
	first := s.words.Next(0)
	if first < 0 {
		clear(sel)
		return
	}
	count := s.words.Count()
	if s.words.CountRange(first, first+count) == count { // one run of codes
		filterCodeRun(v, sel, uint32(first), uint32(count-1))
		return
	}
	if cap(s.table) < words {
		s.table = make([]uint8, words)
	}
	s.table = s.table[:words]
	for i := range s.table {
		s.table[i] = uint8(s.words[i>>6] >> (uint(i) & 63) & 1)
	}
	filterCodeTable(v, sel, s.table)
}

func filterCodeRun(v *vector.Vector, sel vector.Bitmap, first, width uint32) {
	switch v.CodeWidth() {
	case 1:
		kernel.FilterSpan(sel, vector.Codes[uint8](v), uint8(first), uint8(width), ^uint64(0))
	case 2:
		kernel.FilterSpan(sel, vector.Codes[uint16](v), uint16(first), uint16(width), ^uint64(0))
	default:
		kernel.FilterSpan(sel, vector.Codes[uint32](v), first, width, ^uint64(0))
	}
}

func filterCodeTable(v *vector.Vector, sel vector.Bitmap, table []uint8) {
	switch v.CodeWidth() {
	case 1:
		kernel.FilterTable(sel, vector.Codes[uint8](v), table)
	case 2:
		kernel.FilterTable(sel, vector.Codes[uint16](v), table)
	default:
		kernel.FilterTable(sel, vector.Codes[uint32](v), table)
	}
}
