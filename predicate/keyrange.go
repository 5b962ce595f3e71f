package predicate

import (
	"bytes"
	"strings"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/schema"
)

// KeyRange returns the encoded key bounds [lower, upper) outside which no row
// qualifies, nil where open; empty is true when no key can qualify.
func (b *Bound) KeyRange() (lower, upper []byte, empty bool) {
	return b.root.keyRange(b.schema)
}

func (n *node) keyRange(s *schema.Schema) (lower, upper []byte, empty bool) {
	switch n.op {
	case constOp:
		return nil, nil, n == never
	case orOp:
		return n.keyUnion(s)
	}
	hulls := keyHulls(n.conjuncts(), s.NumKey())
	lower, upper = lowerKey(hulls, s), upperKey(hulls, s)
	for _, p := range n.parts {
		if p.op != leafOp {
			lo, hi, none := p.keyRange(s)
			if none {
				return nil, nil, true
			}
			lower, upper = tighter(lower, upper, lo, hi)
		}
	}
	return lower, upper, upper != nil && bytes.Compare(lower, upper) >= 0
}

func tighter(lower, upper, lo, hi []byte) (l, u []byte) {
	if bytes.Compare(lo, lower) > 0 {
		lower = lo
	}
	if upper == nil || hi != nil && bytes.Compare(hi, upper) < 0 {
		upper = hi
	}
	return lower, upper
}

// keyUnion returns the smallest range that holds those of all parts.
func (n *node) keyUnion(s *schema.Schema) (lower, upper []byte, empty bool) {
	empty = true
	for _, p := range n.parts {
		lo, hi, none := p.keyRange(s)
		switch {
		case none:
		case empty:
			lower, upper, empty = lo, hi, false
		default:
			if bytes.Compare(lo, lower) < 0 {
				lower = lo
			}
			if hi == nil || upper != nil && bytes.Compare(hi, upper) > 0 {
				upper = hi
			}
		}
	}
	return lower, upper, empty
}

// keyHulls returns for each key column what the leaves say of it.
func keyHulls(leaves []*leaf, numKey int) []*span {
	hulls := make([]*span, numKey)
	for _, l := range leaves {
		if l.col >= numKey {
			continue
		}
		h := l.hull()
		if hulls[l.col] != nil {
			h = h.intersect(*hulls[l.col])
		}
		hulls[l.col] = &h
	}
	return hulls
}

// lowerKey encodes the lower bounds of the leading key columns that have one.
func lowerKey(hulls []*span, s *schema.Schema) []byte {
	var key []byte
	for i, h := range hulls {
		kind := s.Column(i).Kind()
		if h == nil || h.lo.end || h.lo.cmp(before(minKey(kind))) <= 0 {
			break
		}
		key = encoding.AppendKeyCell(key, h.lo.value(kind), i == len(hulls)-1)
	}
	return key
}

// upperKey encodes the upper bounds of the leading key columns. As long as the
// largest value of a column is known the next column narrows the bound further;
// after the last one the bound is the successor of what was collected.
func upperKey(hulls []*span, s *schema.Schema) []byte {
	var key []byte
	for i, h := range hulls {
		kind, last := s.Column(i).Kind(), i == len(hulls)-1
		if h == nil || h.hi.end && (kind == schema.KindBytes || h.lo.cmp(before(minKey(kind))) <= 0) {
			break
		}
		top, ok := h.top(kind)
		if !ok { // no largest text: exclusive, and no further column can help
			return encoding.AppendKeyCell(key, h.hi.value(kind), last)
		}
		key = encoding.AppendKeyCell(key, top.value(kind), last)
		if last && kind == schema.KindBytes {
			return append(key, 0)
		}
	}
	return successor(key)
}

// top returns the largest cell of a span that is bounded above, if there is one.
func (s span) top(kind schema.Kind) (key, bool) {
	if kind == schema.KindBytes {
		t, ok := strings.CutSuffix(s.hi.s, "\x00")
		return key{s: t}, ok
	}
	return s.hi.last(kind), true
}

// successor returns the smallest string above everything that starts with prefix,
// nil when there is none.
func successor(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			prefix[i]++
			return prefix[:i+1]
		}
	}
	return nil
}
