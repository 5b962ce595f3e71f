package memrowset

import (
	"bytes"
	"sort"
	"sync"

	"github.com/minikudu/minikudu/internal/rowset"
)

// run is a list of rows in key order that does not change.
type run struct {
	keys *bytesStore
	rows []rowset.RowID
}

// runOf returns the run of rows [at, at+n), which stand in key order.
func runOf(keys *bytesStore, at, n int) *run {
	r := &run{keys: keys, rows: make([]rowset.RowID, n)}
	for i := range r.rows {
		r.rows[i] = rowset.RowID(at + i)
	}
	return r
}

// seal turns a tree that nobody changes any more into a run.
func (t *tree) seal() *run {
	r := &run{keys: t.keys, rows: make([]rowset.RowID, 0, t.items.Len())}
	t.items.Ascend(func(it item) bool {
		r.rows = append(r.rows, it.row)
		return true
	})
	return r
}

// first and last return the keys at the ends of the run.
func (r *run) first() []byte { return r.keys.at(r.rows[0]) }
func (r *run) last() []byte  { return r.keys.at(r.rows[len(r.rows)-1]) }

// search returns the position of the first row whose key is not below key.
func (r *run) search(key []byte) int {
	chunks := *r.keys.chunks.Load()
	return sort.Search(len(r.rows), func(i int) bool {
		return bytes.Compare(valueAt(chunks, r.rows[i]), key) >= 0
	})
}

// within returns the positions [lo, hi) of the run's rows within the bounds.
func (r *run) within(b bounds) (lo, hi int) {
	hi = len(r.rows)
	if b.upper != nil {
		hi = r.search(b.upper)
	}
	if b.lower != nil {
		lo = min(r.search(b.lower), hi)
	}
	return lo, hi
}

// merger merges runs into one by passes that merge neighbours (Knuth, "The Art of
// Computer Programming", vol. 3, 5.2.4). It is memory that is used again.
type merger struct {
	src, dst []item
	ends     []int // of the runs in src
}

var mergers = sync.Pool{New: func() any { return new(merger) }}

// mergeRuns returns one run of all rows of the given ones.
func mergeRuns(runs []*run) *run {
	m := mergers.Get().(*merger)
	defer mergers.Put(m)
	m.load(runs)
	for len(m.ends) > 1 {
		m.pass(runs[0].keys)
	}
	out := &run{keys: runs[0].keys, rows: make([]rowset.RowID, len(m.src))}
	for i := range m.src {
		out.rows[i] = m.src[i].row
	}
	return out
}

// load makes items of the rows, one run after the other.
func (m *merger) load(runs []*run) {
	first, last := runs[0].first(), runs[0].last()
	for _, r := range runs[1:] {
		if k := r.first(); bytes.Compare(k, first) < 0 {
			first = k
		}
		if k := r.last(); bytes.Compare(k, last) > 0 {
			last = k
		}
	}
	p, chunks := newPrefix(first, last), *runs[0].keys.chunks.Load()
	m.src, m.ends = m.src[:0], m.ends[:0]
	for _, r := range runs {
		for _, row := range r.rows {
			m.src = append(m.src, p.item(valueAt(chunks, row), row))
		}
		m.ends = append(m.ends, len(m.src))
	}
}

// pass merges each run of src with its neighbour.
func (m *merger) pass(keys *bytesStore) {
	if cap(m.dst) < len(m.src) {
		m.dst = make([]item, len(m.src), cap(m.src))
	}
	m.dst = m.dst[:len(m.src)]
	from, ends := 0, m.ends[:0]
	for i := 0; i < len(m.ends); i += 2 {
		mid, to := m.ends[i], m.ends[min(i+1, len(m.ends)-1)]
		mergePair(keys, m.dst[from:to], m.src[from:mid], m.src[mid:to])
		from, ends = to, append(ends, to)
	}
	m.src, m.dst, m.ends = m.dst, m.src, ends
}

// mergePair merges two runs into dst.
func mergePair(keys *bytesStore, dst, x, y []item) {
	for len(x) > 0 && len(y) > 0 {
		if itemBefore(keys, &y[0], &x[0]) {
			dst[0], y = y[0], y[1:]
		} else {
			dst[0], x = x[0], x[1:]
		}
		dst = dst[1:]
	}
	copy(dst[copy(dst, x):], y)
}

// itemBefore reports whether x comes before y, an item of another row, in key order.
func itemBefore(keys *bytesStore, x, y *item) bool {
	if x.hi != y.hi {
		return x.hi < y.hi
	}
	if x.lo != y.lo {
		return x.lo < y.lo
	}
	return bytes.Compare(keys.at(x.row), keys.at(y.row)) < 0
}
