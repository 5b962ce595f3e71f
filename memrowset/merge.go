package memrowset

import (
	"github.com/minikudu/minikudu/internal/rowset"
)

// runSlice is the number of rows of a run that a cursor prepares at a time.
const runSlice = 256

// cursor walks the visible rows of the active tree or of one run in key order.
type cursor struct {
	buf  []item // prepared rows; buf[i] is the current one
	i    int
	tree *tree // nil for a run
	last item  // where the tree's walk ended
	on   bool  // last is set
	run  *run
	lo   int // rows [lo, hi) of the run are not prepared yet
	hi   int
}

// walker delivers visible rows: in key order of all, or run by run.
type walker struct {
	keys     *bytesStore
	prefix   prefix // of all items: the active tree's
	bounds   bounds
	from, to rowset.RowID // visible rows
	reverse  bool
	merged   bool
	cursors  []*cursor // merged: a heap by current row; else in any order
}

// newWalker walks the rows [from, to) that lie within the key bounds.
func newWalker(m *MemRowSet, b bounds, from, to int, order rowset.Order) *walker {
	w := &walker{keys: m.keys, bounds: b, from: rowset.RowID(from), to: rowset.RowID(to),
		reverse: order == rowset.KeyReverse, merged: order != rowset.Unordered}
	x := m.index.Load()
	w.prefix = x.active.prefix
	for _, runs := range [][]*run{x.runs, x.recent} {
		for _, r := range runs {
			lo, hi := r.within(b)
			w.add(&cursor{run: r, lo: lo, hi: hi})
		}
	}
	w.add(&cursor{tree: x.active})
	if w.merged {
		for i := len(w.cursors)/2 - 1; i >= 0; i-- {
			w.sink(i)
		}
	}
	return w
}

func (w *walker) add(c *cursor) {
	if w.fill(c) {
		w.cursors = append(w.cursors, c)
	}
}

// fill prepares the next rows of a cursor; false at its end.
func (w *walker) fill(c *cursor) bool {
	for {
		c.buf, c.i = c.buf[:0], 0
		more := false
		if c.tree != nil {
			more = w.fillTree(c)
		} else {
			more = w.fillRun(c)
		}
		if len(c.buf) > 0 || !more {
			return len(c.buf) > 0
		}
	}
}

func (w *walker) fillTree(c *cursor) (more bool) {
	var last *item
	if c.on {
		last = &c.last
	}
	c.buf = c.tree.walk(c.buf, last, w.bounds, w.reverse)
	n := len(c.buf)
	if n == 0 {
		return false
	}
	c.last, c.on = c.buf[n-1], true
	keep := c.buf[:0]
	for _, it := range c.buf {
		if w.visible(it.row) {
			keep = append(keep, it)
		}
	}
	c.buf = keep
	return true
}

func (w *walker) fillRun(c *cursor) (more bool) {
	n := min(runSlice, c.hi-c.lo)
	chunks := *w.keys.chunks.Load()
	for i := range n {
		at := c.lo + i
		if w.reverse {
			at = c.hi - 1 - i
		}
		if row := c.run.rows[at]; w.visible(row) {
			c.buf = append(c.buf, w.prefix.item(valueAt(chunks, row), row))
		}
	}
	if w.reverse {
		c.hi -= n
	} else {
		c.lo += n
	}
	return n > 0
}

func (w *walker) visible(row rowset.RowID) bool { return row >= w.from && row < w.to }

// next appends up to n rows to dst; none at the end.
func (w *walker) next(dst []rowset.RowID, n int) []rowset.RowID {
	for n > 0 && len(w.cursors) > 0 {
		c := w.cursors[0]
		k := min(n, len(c.buf)-c.i)
		if w.merged && len(w.cursors) > 1 {
			k = 1
		}
		for _, it := range c.buf[c.i : c.i+k] {
			dst = append(dst, it.row)
		}
		n -= k
		c.i += k
		w.settle(c)
	}
	return dst
}

// settle brings the first cursor, which has moved, to its place.
func (w *walker) settle(c *cursor) {
	if c.i == len(c.buf) && !w.fill(c) {
		last := len(w.cursors) - 1
		w.cursors[0], w.cursors[last] = w.cursors[last], nil
		w.cursors = w.cursors[:last]
	}
	if w.merged && len(w.cursors) > 1 {
		w.sink(0)
	}
}

// sink restores the heap below i.
func (w *walker) sink(i int) {
	h := w.cursors
	for {
		least := 2*i + 1
		if least >= len(h) {
			return
		}
		if r := least + 1; r < len(h) && w.before(h[r], h[least]) {
			least = r
		}
		if !w.before(h[least], h[i]) {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// before reports whether the current row of a comes before that of b.
func (w *walker) before(a, b *cursor) bool {
	return itemBefore(w.keys, &a.buf[a.i], &b.buf[b.i]) != w.reverse
}
