package predicate

import (
	"slices"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Verdict is what a zone says of a predicate.
type Verdict uint8

// The verdicts.
const (
	Some Verdict = iota // must be evaluated
	None                // no row of the zone qualifies
	All                 // every row of the zone qualifies
)

// Prune judges the predicate by the zones of its columns; zone returns false where
// none is known.
func (b *Bound) Prune(zone func(col int) (vector.Zone, bool)) Verdict { return b.root.prune(zone) }

func (n *node) prune(zone func(col int) (vector.Zone, bool)) Verdict {
	switch n.op {
	case leafOp:
		z, ok := zone(n.leaf.col)
		if !ok {
			return Some
		}
		return n.leaf.prune(z)
	case constOp:
		if n == always {
			return All
		}
		return None
	}
	decisive, neutral := None, All // of AND: one None decides, All changes nothing
	if n.op == orOp {
		decisive, neutral = All, None
	}
	out := neutral
	for _, p := range n.parts {
		switch p.prune(zone) {
		case decisive:
			return decisive
		case Some:
			out = Some
		}
	}
	return out
}

// prune judges one test by the zone of its column.
func (l *leaf) prune(z vector.Zone) Verdict {
	switch {
	case l.test == isNull && z.Nulls == 0, l.test != isNull && z.Nulls >= z.Rows:
		return None
	case l.test == isNull && z.Nulls >= z.Rows:
		return All
	case l.test == isNull:
		return Some
	}
	v := l.pruneCells(z)
	if v == All && z.Nulls != 0 {
		return Some
	}
	return v
}

// pruneCells judges the test for the cells that are not null, of which there are some.
func (l *leaf) pruneCells(z vector.Zone) Verdict {
	if l.test == notNull {
		return All
	}
	cells, ok := zoneSpan(z, l.kind)
	if !ok {
		return Some
	}
	v := l.judge(cells)
	if l.not {
		v = v.negate()
	}
	if z.HasNaN && (v == All) != l.not { // NaN passes exactly the negated tests
		return Some
	}
	return v
}

func (v Verdict) negate() Verdict {
	switch v {
	case None:
		return All
	case All:
		return None
	}
	return Some
}

// zoneSpan returns a span that holds every number or text of the zone; ok is false
// when the zone says nothing of them. Either side may be unknown. A bound that is
// NaN or of another kind is unknown.
func zoneSpan(z vector.Zone, kind schema.Kind) (s span, ok bool) {
	s = fullSpan(kind)
	lo, hi := z.Min.Kind() == kind && !z.Min.IsNaN(), z.Max.Kind() == kind && !z.Max.IsNaN()
	if lo {
		s.lo = exactly(keyOf(z.Min), kind).below
	}
	if hi {
		s.hi = exactly(keyOf(z.Max), kind).above
	}
	return s, (lo || hi) && !s.empty()
}

// judge says how many of the cells of s pass the test, before negation.
func (l *leaf) judge(s span) Verdict {
	switch l.test {
	case inSpan:
		if l.span.intersect(s).empty() {
			return None
		}
		if l.span.covers(s) {
			return All
		}
	case inSet:
		return l.judgeSet(s)
	case isLike:
		prefix, _ := l.like.prefix()
		if prefixSpan(prefix).intersect(s).empty() {
			return None
		}
		if k, ok := s.point(l.kind); ok && l.like.match([]byte(k.s)) {
			return All
		}
	}
	return Some
}

func (l *leaf) judgeSet(s span) Verdict {
	from, _ := slices.BinarySearchFunc(l.set, s.lo, func(k key, c cut) int { return before(k).cmp(c) })
	at := s.lo
	for i := from; i < len(l.set) && before(l.set[i]).cmp(at) == 0 && at.cmp(s.hi) < 0; i++ {
		at = after(l.set[i], l.kind)
	}
	switch {
	case from == len(l.set) || before(l.set[from]).cmp(s.hi) >= 0:
		return None
	case at.cmp(s.hi) == 0:
		return All
	}
	return Some
}
