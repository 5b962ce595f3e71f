package tablet

import (
	"bytes"
	"container/heap"
	"context"
	"sort"

	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// mergeRows and mergeBytes bound a batch that was put together from several rowsets:
// its rows, and about its variable-length cells.
const (
	mergeRows  = 4096
	mergeBytes = 4 << 20
)

// merge delivers the rows of several rowsets in key order, ascending or descending.
// A rowset whose range the merge has not reached stays closed. Where one rowset has
// the next rows to itself, whole batches pass through without a copy.
//
// In a scan for changes a key may be deleted in one rowset and live in another: the
// live row is delivered.
type merge struct {
	spec    rowset.ScanSpec // of the children
	keys    bool            // the caller wants keys
	diff    bool            // a scan for changes
	last    []byte          // of a diff: the key delivered last
	reverse bool
	max     int
	heap    []*cursor
	pending *cursor // its batch was handed out whole; advance before going on
	out     rowset.Batch
	deleted vector.Bitmap // memory of out.Deleted
	room    int           // bytes of cells that out may still take
	done    func()
}

// cursor stands at a row of one rowset.
type cursor struct {
	rs    rowset.RowSet
	it    rowset.Iterator // nil: not yet opened, key is the rowset's bound
	batch *rowset.Batch
	rows  []int32 // selected rows of the batch
	pos   int     // in rows
	width int     // bytes of variable-length cells of a row, on average
	key   []byte  // of the present row, or the bound of a rowset not yet opened
	bound bool    // key is a bound
	blind bool    // no bound is known: open before anything else
}

// newMerge returns the merge of the sets under spec, whose Order is not Unordered.
func newMerge(spec *rowset.ScanSpec, sets []rowset.RowSet, done func()) *merge {
	m := &merge{spec: *spec, keys: spec.WithKeys, diff: spec.Time.Lo > 0, reverse: spec.Order == rowset.KeyReverse, max: mergeRows, done: done}
	if spec.MaxRows > 0 {
		m.max = min(m.max, spec.MaxRows)
	}
	m.spec.WithKeys = true
	for _, col := range spec.Columns {
		m.out.Columns = append(m.out.Columns, vector.New(spec.Schema.Column(col).Kind(), 0))
	}
	if m.keys {
		m.out.Keys = vector.New(schema.KindBytes, 0)
	}
	for _, rs := range sets {
		lo, hi, ok := rs.Bounds()
		c := &cursor{rs: rs, key: lo, bound: true, blind: !ok}
		if m.reverse {
			c.key = hi
		}
		m.heap = append(m.heap, c)
	}
	heap.Init(m)
	return m
}

// Len, Less, Swap, Push and Pop are heap.Interface over the cursors.
func (m *merge) Len() int      { return len(m.heap) }
func (m *merge) Swap(i, j int) { m.heap[i], m.heap[j] = m.heap[j], m.heap[i] }

// Less puts bounds before rows of the same key, so that a rowset is opened in time, and
// live rows before deleted ones.
func (m *merge) Less(i, j int) bool { return m.before(m.heap[i], m.heap[j]) }

func (m *merge) before(a, b *cursor) bool {
	if a.blind || b.blind {
		return a.blind && !b.blind
	}
	c := bytes.Compare(a.key, b.key)
	if m.reverse {
		c = -c
	}
	if c != 0 || a.bound || b.bound {
		return c < 0 || c == 0 && a.bound && !b.bound
	}
	return !a.deleted() && b.deleted()
}

// deleted reports whether the present row is shown as deleted.
func (c *cursor) deleted() bool {
	return c.batch.Deleted != nil && c.batch.Deleted.Get(int(c.rows[c.pos]))
}

// Push is part of heap.Interface.
func (m *merge) Push(x any) { m.heap = append(m.heap, x.(*cursor)) }

// Pop is part of heap.Interface.
func (m *merge) Pop() any {
	c := m.heap[len(m.heap)-1]
	m.heap = m.heap[:len(m.heap)-1]
	return c
}

// Next returns the next batch in key order, nil after the last.
func (m *merge) Next(ctx context.Context) (*rowset.Batch, error) {
	if c := m.pending; c != nil {
		m.pending = nil
		if err := m.advance(ctx, c); err != nil {
			return nil, err
		}
	}
	m.clear()
	for len(m.heap) > 0 && m.out.Rows < m.max && m.room > 0 {
		c := m.heap[0]
		if c.it == nil {
			if err := m.open(ctx, c); err != nil {
				return nil, err
			}
			continue
		}
		if m.diff && m.last != nil && bytes.Equal(c.key, m.last) {
			if err := m.skip(ctx, c, 1); err != nil {
				return nil, err
			}
			continue
		}
		n := m.runLength(c)
		if n == len(c.rows) && m.out.Rows == 0 {
			m.pending = c
			m.remember(c, n)
			return c.batch, nil
		}
		if c.width > 0 {
			n = min(n, m.room/c.width+1)
		}
		if err := m.take(ctx, c, min(n, m.max-m.out.Rows)); err != nil {
			return nil, err
		}
	}
	if m.out.Rows == 0 {
		return nil, nil
	}
	m.out.Selected = m.out.Rows
	return &m.out, nil
}

// clear empties the batch that the merge puts together, and keeps its memory.
func (m *merge) clear() {
	m.room, m.out.Rows, m.out.Deleted = mergeBytes, 0, nil
	for i, v := range m.out.Columns {
		v.Reset(m.spec.Schema.Column(m.spec.Columns[i]).Kind())
	}
	if m.keys {
		m.out.Keys.Reset(schema.KindBytes)
	}
}

// open starts the scan of a rowset whose range was reached.
func (m *merge) open(ctx context.Context, c *cursor) error {
	it, err := c.rs.Scan(ctx, &m.spec)
	if err != nil {
		return err
	}
	c.it, c.bound, c.blind = it, false, false
	return m.advance(ctx, c)
}

// advance loads the next batch of the cursor at the top and puts it in its place.
func (m *merge) advance(ctx context.Context, c *cursor) error {
	b, err := c.it.Next(ctx)
	if err != nil {
		return err
	}
	if b == nil {
		c.it.Close()
		heap.Pop(m) // c is at the top
		return nil
	}
	c.batch, c.pos, c.width = b, 0, width(b)
	c.rows = b.AppendSelected(c.rows[:0])
	c.key = b.Keys.BytesAt(int(c.rows[0]))
	heap.Fix(m, 0)
	return nil
}

// width returns the bytes of variable-length cells of a row of b, on average.
func width(b *rowset.Batch) (n int) {
	for _, v := range b.Columns {
		if v.Dict() != nil {
			v = v.Dict()
		}
		if v.Kind() == schema.KindBytes && v.Len() > 0 {
			offsets := v.Offsets()
			n += int(offsets[v.Len()]-offsets[0]) / v.Len()
		}
	}
	return n
}

// runLength returns how many rows of the top cursor come before every other cursor.
func (m *merge) runLength(c *cursor) int {
	next := m.second()
	if next == nil {
		return len(c.rows) - c.pos
	}
	rest := c.rows[c.pos:]
	before := func(i int) bool {
		cmp := bytes.Compare(c.batch.Keys.BytesAt(int(rest[i])), next.key)
		if m.reverse {
			cmp = -cmp
		}
		return cmp < 0
	}
	if before(len(rest) - 1) {
		return len(rest)
	}
	return max(1, sort.Search(len(rest), func(i int) bool { return !before(i) }))
}

// second returns the cursor that comes after the top one, nil when there is none.
func (m *merge) second() *cursor {
	switch {
	case len(m.heap) < 2:
		return nil
	case len(m.heap) == 2 || m.before(m.heap[1], m.heap[2]):
		return m.heap[1]
	}
	return m.heap[2]
}

// take copies n rows of the top cursor to the output and moves it on.
func (m *merge) take(ctx context.Context, c *cursor, n int) error {
	rows := c.rows[c.pos : c.pos+n]
	for i, v := range c.batch.Columns {
		if err := m.out.Columns[i].AppendRows(v, rows); err != nil {
			return err
		}
	}
	if m.keys {
		if err := m.out.Keys.AppendRows(c.batch.Keys, rows); err != nil {
			return err
		}
	}
	m.mark(c.batch, rows)
	m.remember(c, n)
	m.out.Rows += n
	m.room -= n * c.width
	return m.skip(ctx, c, n)
}

// remember notes the key of the last of the top cursor's next n rows.
func (m *merge) remember(c *cursor, n int) {
	if m.diff {
		m.last = append(m.last[:0], c.batch.Keys.BytesAt(int(c.rows[c.pos+n-1]))...)
	}
}

// mark notes which of the rows that are added to the output are deleted.
func (m *merge) mark(b *rowset.Batch, rows []int32) {
	if b.Deleted == nil {
		return
	}
	if m.out.Deleted == nil {
		m.out.Deleted = m.deleted.Grow(m.max)
		m.deleted = m.out.Deleted
	}
	for i, r := range rows {
		m.out.Deleted.Put(m.out.Rows+i, b.Deleted.Get(int(r)))
	}
}

// skip moves the top cursor on by n rows.
func (m *merge) skip(ctx context.Context, c *cursor, n int) error {
	if c.pos += n; c.pos == len(c.rows) {
		return m.advance(ctx, c)
	}
	c.key = c.batch.Keys.BytesAt(int(c.rows[c.pos]))
	heap.Fix(m, 0)
	return nil
}

// Close ends the scan.
func (m *merge) Close() {
	for _, c := range m.heap {
		if c.it != nil {
			c.it.Close()
		}
	}
	m.heap, m.pending = nil, nil
	if m.done != nil {
		m.done()
		m.done = nil
	}
}
