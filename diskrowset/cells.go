package diskrowset

import (
	"context"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Snapshot is the rows of a rowset as they are at a time, addressed by row, for a merge
// that rewrites them. It reads best when rows ascend and columns come one after the
// other, and puts no pages into the cache. It is used by one goroutine at a time.
type Snapshot struct {
	set     *RowSet
	at      mvcc.Timestamp
	horizon mvcc.Timestamp
	deltas  *deltas
	stores  []delta.Reader // changes that the snapshot sees, oldest first
	closed  bool

	keys   []*scanColumn
	views  []*vector.Vector // cells of keys
	times  *scanColumn      // nil: every row has the same insert time
	column *scanColumn      // asked for last
	col    int              // its index in the schema
}

// At returns the rows as they are at a time, not before any insert, and their history
// after the horizon. The rowset stays open until the snapshot is closed.
func (s *RowSet) At(at, horizon mvcc.Timestamp) (*Snapshot, error) {
	if !s.Acquire() {
		return nil, ErrClosed
	}
	d := s.deltas.Load()
	n := &Snapshot{set: s, at: at, horizon: horizon, deltas: d, stores: d.visible(at)}
	n.begin()
	return n, nil
}

// begin sets what reading changes.
func (n *Snapshot) begin() {
	n.col = -1
	for i := range n.set.keys {
		n.keys = append(n.keys, n.newColumn(i))
	}
	if n.set.times != nil {
		n.times = &scanColumn{cursor: cursor{col: n.set.times, once: true}}
	}
}

// Fork returns the same rows for another goroutine, until this snapshot is closed.
func (n *Snapshot) Fork() rowset.MergeInput { return n.fork() }

func (n *Snapshot) fork() *Snapshot {
	f := &Snapshot{set: n.set, at: n.at, horizon: n.horizon, deltas: n.deltas, stores: n.stores, closed: true}
	f.begin()
	return f
}

// Close ends the snapshot. It may be called twice.
func (n *Snapshot) Close() {
	if !n.closed {
		n.closed = true
		n.set.Release()
	}
}

// String names the rowset and its file.
func (n *Snapshot) String() string {
	return fmt.Sprintf("rowset %d (file %s)", n.set.meta.ID, FileName(n.set.meta.Sections[0].File))
}

// Rows returns the number of stored rows, deleted ones included.
func (n *Snapshot) Rows() int64 { return n.set.meta.Rows }

func (n *Snapshot) newColumn(col int) *scanColumn {
	s := n.set
	def := s.env.Schema.Column(col)
	return &scanColumn{cursor: cursor{col: s.columns[col], once: true}, constant: readDefault(def), kind: def.Kind(),
		patches: newPatcher(n.stores, n.at, col, 0, 0)}
}

// view returns the cells of rows [from, to) of a column.
func (n *Snapshot) view(ctx context.Context, c *scanColumn, from, to int) (*vector.Vector, error) {
	if c.data == nil {
		if err := c.open(ctx); err != nil {
			return nil, err
		}
	}
	c.batch = nil
	return c.view(ctx, from, to)
}

// Keys appends the encoded keys of rows [from, to) to dst, a vector of bytes.
func (n *Snapshot) Keys(ctx context.Context, from, to int, dst *vector.Vector) error {
	n.views = n.views[:0]
	for _, c := range n.keys {
		v, err := n.view(ctx, c, from, to)
		if err != nil {
			return err
		}
		n.views = append(n.views, v)
	}
	return encoding.AppendKeys(dst, n.views, 0, to-from)
}

// Live clears from live the rows of [from, to) that are not kept: those that were deleted
// at or before the horizon; bit i is row from+i.
func (n *Snapshot) Live(ctx context.Context, from, to int, live vector.Bitmap) error {
	for _, d := range n.deltas.stores {
		if d.MinTime() <= n.horizon && d.HasLife() {
			if err := d.ApplyLife(ctx, n.horizon, from, to, live); err != nil {
				return err
			}
		}
	}
	return nil
}

// Cells returns the cells of rows [from, to) of a schema column. They must not be
// changed and are valid until the next call for the same column.
func (n *Snapshot) Cells(ctx context.Context, col, from, to int) (*vector.Vector, error) {
	if n.col != col { // what the column before holds goes
		n.column, n.col = n.newColumn(col), col
	}
	return n.view(ctx, n.column, from, to)
}

// Measure returns about how many bytes rows [from, to) take in the rowset's files: their
// part of the pages of cells of variable length, and an even share of everything else. What
// a file takes without rows does not count.
func (n *Snapshot) Measure(ctx context.Context, from, to int) (float64, error) {
	sum, even := 0.0, 0.0
	for _, c := range slices.Concat(n.set.columns, []*column{n.set.times, n.set.index}) {
		if c == nil {
			continue
		}
		even += float64(max(c.section.Length+c.zoneSec.Length-columnOverhead, 0))
		if c.typ.Kind() != schema.KindBytes || c == n.set.index {
			continue
		}
		d, err := c.open(ctx)
		if err != nil {
			return 0, err
		}
		sum += d.position(to) - d.position(from)
		even -= d.position(n.set.rows) - d.position(0)
	}
	if n.set.filters != nil {
		even += float64(n.set.filters.section.Length)
	}
	return sum + max(even, 0)*float64(to-from)/float64(n.set.rows), nil
}

// position returns where a row lies among the bytes of the pages.
func (d *columnData) position(row int) float64 {
	x := d.index
	if row >= int(x.Rows()) {
		last := x.Pages() - 1
		return float64(x.Offsets[last]) + float64(x.Sizes[last])
	}
	p := x.PageOf(int64(row))
	start, end := x.PageRows(p)
	return float64(x.Offsets[p]) + float64(x.Sizes[p])*float64(int64(row)-start)/float64(end-start)
}

// InsertTimes appends the insert timestamps of rows [from, to) to dst.
func (n *Snapshot) InsertTimes(ctx context.Context, from, to int, dst []mvcc.Timestamp) ([]mvcc.Timestamp, error) {
	if n.times == nil {
		for range to - from {
			dst = append(dst, n.set.meta.MinInsert)
		}
		return dst, nil
	}
	v, err := n.view(ctx, n.times, from, to)
	if err != nil {
		return dst, err
	}
	for _, t := range vector.Values[int64](v) {
		dst = append(dst, mvcc.Timestamp(t))
	}
	return dst, nil
}
