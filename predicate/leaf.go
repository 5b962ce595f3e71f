package predicate

import (
	"slices"
	"sort"

	"github.com/minikudu/minikudu/schema"
)

// test is what a leaf asks of a cell.
type test uint8

const (
	isNull  test = iota // the cell is null
	inSpan              // the cell lies between two cuts
	inSet               // the cell is one of a list
	isLike              // the cell matches a pattern
	notNull             // the cell is not null
)

// leaf is a test of one column. Null cells pass isNull only. With not set, the
// cells that are not null and fail the test pass, NaN among them: so NOT(x < 10)
// holds for NaN, while x >= 10 does not.
type leaf struct {
	col  int
	kind schema.Kind
	test test
	not  bool
	span span     // inSpan
	set  []key    // inSet: ascending, distinct, never NaN; -0 and +0 only together
	like *pattern // isLike
	run  prepared // made at the end of Bind
}

// accepts reports whether a cell that is neither null nor NaN passes.
func (l *leaf) accepts(k key) bool {
	var ok bool
	switch l.test {
	case inSpan:
		ok = l.span.has(k)
	case inSet:
		_, ok = slices.BinarySearchFunc(l.set, k, key.cmp)
	case isLike:
		ok = l.like.match([]byte(k.s))
	case notNull:
		ok = true
	}
	return ok != l.not
}

// hull returns the smallest span known to hold every number or text that passes.
func (l *leaf) hull() span {
	switch {
	case l.not || l.test == notNull:
		return fullSpan(l.kind)
	case l.test == inSpan:
		return l.span
	case l.test == inSet:
		return span{before(l.set[0]), after(l.set[len(l.set)-1], l.kind)}
	}
	prefix, _ := l.like.prefix()
	return prefixSpan(prefix)
}

// points returns the cells that pass when they are a short list.
func (l *leaf) points() []key {
	if l.not {
		return nil
	}
	if l.test == inSet {
		return l.set
	}
	if l.test == inSpan {
		if k, ok := l.span.point(l.kind); ok {
			return []key{k}
		}
	}
	return nil
}

// rank orders the leaves of a conjunction: the cheap and selective first.
func (l *leaf) rank() int {
	switch {
	case l.test == isNull:
		return 0
	case l.test == notNull:
		return 6
	case l.not:
		return 5
	case l.test == inSpan && l.points() != nil:
		return 1
	case l.test == inSet:
		return 2
	case l.test == inSpan:
		return 3
	}
	return 4
}

// width is the cost of a cell.
func (l *leaf) width() int {
	if l.kind == schema.KindBytes {
		return 32
	}
	return l.kind.Width()
}

// column makes leaves for one column, folded to constants where they can be.
type column struct {
	at       int
	kind     schema.Kind
	nullable bool
}

func (c column) leaf(t test) *leaf { return &leaf{col: c.at, kind: c.kind, test: t} }

func (c column) null() *node {
	if !c.nullable {
		return never
	}
	return leafNode(c.leaf(isNull))
}

func (c column) notNull() *node {
	if !c.nullable {
		return always
	}
	return leafNode(c.leaf(notNull))
}

// inSpan returns the test of lying in s, or with not set of lying outside it.
func (c column) inSpan(s span, not bool) *node {
	float := c.kind.IsFloat()
	full := fullSpan(c.kind)
	if not && !float && !s.empty() { // no NaN: the complement of an open side is a span
		if s.lo.cmp(full.lo) <= 0 {
			s, not = span{s.hi, full.hi}, false
		} else if s.hi.end {
			s, not = span{full.lo, s.lo}, false
		}
	}
	switch {
	case s.empty() && not, s.isFull(c.kind) && !not && !float:
		return c.notNull()
	case s.empty():
		return never
	}
	l := c.leaf(inSpan)
	l.span, l.not = s, not
	return leafNode(l)
}

// inSet returns the test of being one of the keys, which may repeat.
func (c column) inSet(keys []key, not bool) *node {
	slices.SortFunc(keys, key.cmp)
	keys = slices.CompactFunc(keys, func(a, b key) bool { return a.cmp(b) == 0 })
	switch {
	case len(keys) == 0:
		return c.inSpan(span{}, not)
	case c.contiguous(keys):
		return c.inSpan(span{before(keys[0]), after(keys[len(keys)-1], c.kind)}, not)
	}
	l := c.leaf(inSet)
	l.set, l.not = keys, not
	return leafNode(l)
}

// contiguous reports whether no cell lies between the keys.
func (c column) contiguous(keys []key) bool {
	for i := 1; i < len(keys); i++ {
		if after(keys[i-1], c.kind).cmp(before(keys[i])) != 0 {
			return false
		}
	}
	return true
}

// matches returns the test of matching p.
func (c column) matches(p *pattern, not bool) *node {
	if s, ok := p.exact(); ok {
		return c.inSpan(exactly(key{s: s}, c.kind).equal(), not)
	}
	if prefix, ok := p.prefix(); ok {
		return c.inSpan(prefixSpan(prefix), not)
	}
	l := c.leaf(isLike)
	l.like, l.not = p, not
	return leafNode(l)
}

// both merges leaves of one column that must all hold.
func (c column) both(leaves []*leaf) *node {
	var nulls, tests []*leaf
	for _, l := range leaves {
		switch l.test {
		case isNull:
			nulls = append(nulls, l)
		case notNull:
		default:
			tests = append(tests, l)
		}
	}
	switch {
	case len(nulls) == len(leaves):
		return leafNode(leaves[0])
	case len(nulls) > 0:
		return never
	case len(tests) == 0:
		return c.notNull()
	}
	for _, l := range tests {
		if p := l.points(); p != nil {
			return c.inSet(acceptedBy(p, tests), false)
		}
	}
	return c.narrow(tests)
}

func acceptedBy(keys []key, tests []*leaf) []key {
	var out []key
	for _, k := range keys {
		if !slices.ContainsFunc(tests, func(l *leaf) bool { return !l.accepts(k) }) {
			out = append(out, k)
		}
	}
	return out
}

// narrow intersects the spans among the tests and cuts away the excluded ends.
func (c column) narrow(tests []*leaf) *node {
	s, spans, rest := fullSpan(c.kind), 0, []*leaf(nil)
	for _, l := range tests {
		if l.test == inSpan && !l.not {
			s, spans = s.intersect(l.span), spans+1
		} else {
			rest = append(rest, l)
		}
	}
	if spans == 0 {
		return andNode(rest)
	}
	// Ascending, so that an end cut away exposes the next excluded span.
	sort.SliceStable(rest, func(i, j int) bool { return rest[i].span.lo.cmp(rest[j].span.lo) < 0 })
	s = cutEnds(s, rest)
	rest = slices.DeleteFunc(rest, func(l *leaf) bool {
		return l.test == inSpan && l.span.intersect(s).empty()
	})
	n := c.inSpan(s, false)
	if n.op != leafOp || len(rest) == 0 {
		return n
	}
	if p := n.leaf.points(); p != nil {
		return c.inSet(acceptedBy(p, rest), false)
	}
	return andNode(append(rest, n.leaf))
}

// cutEnds removes from s the excluded spans that reach one of its ends.
func cutEnds(s span, excluded []*leaf) span {
	for _, l := range excluded {
		if l.test == inSpan && l.span.lo.cmp(s.lo) <= 0 && l.span.hi.cmp(s.lo) > 0 {
			s.lo = l.span.hi
		}
	}
	for i := len(excluded) - 1; i >= 0; i-- {
		l := excluded[i]
		if l.test == inSpan && l.span.hi.cmp(s.hi) >= 0 && l.span.lo.cmp(s.hi) < 0 {
			s.hi = l.span.lo
		}
	}
	return s
}

// either merges leaves of one column of which one must hold: equalities and lists
// become one list.
func (c column) either(leaves []*leaf) []*node {
	var out []*node
	var keys []key
	for _, l := range leaves {
		if p := l.points(); p != nil {
			keys = append(keys, p...)
		} else {
			out = append(out, leafNode(l))
		}
	}
	if len(keys) > 0 {
		out = append(out, c.inSet(keys, false))
	}
	return out
}
