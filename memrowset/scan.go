package memrowset

import (
	"bytes"
	"context"
	"fmt"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// gatherRows is the number of rows of a batch that is gathered in key order.
const gatherRows = 4096

// Scan starts a scan.
//
// Unordered scans hand out the vectors themselves, chunk by chunk. Ordered ones, and
// unordered ones whose key bounds leave few rows, gather the rows that the index names.
func (m *MemRowSet) Scan(_ context.Context, spec *rowset.ScanSpec) (rowset.Iterator, error) {
	to := m.visible(spec.Time.Hi)
	s := &scan{m: m, spec: spec, bounds: bounds{spec.Lower, spec.Upper}, to: to, diff: spec.Time.Lo > 0}
	if s.diff {
		s.old = m.visible(spec.Time.Lo)
		if !m.deltas.Within(spec.Time) {
			s.from = s.old // older rows did not change
		}
	}
	s.slots = make([]slot, m.schema.Len())
	s.batch.Columns = make([]*vector.Vector, len(spec.Columns))
	switch {
	case s.from == to:
	case spec.Order != rowset.Unordered || s.bounded() && m.few(s.bounds):
		s.walker = newWalker(m, s.bounds, s.from, to, spec.Order)
		s.rows = make([]rowset.RowID, 0, s.size(gatherRows))
	default:
		s.test = s.bounded()
	}
	return s, nil
}

// few reports whether the bounds leave so few rows that gathering them is cheaper than
// testing every key, judged by the runs.
func (m *MemRowSet) few(b bounds) bool {
	in, all, x := 0, 0, m.index.Load()
	for _, runs := range [][]*run{x.runs, x.recent} {
		for _, r := range runs {
			lo, hi := r.within(b)
			in, all = in+hi-lo, all+len(r.rows)
		}
	}
	return in <= all/4
}

// scan is an Iterator.
type scan struct {
	m      *MemRowSet
	spec   *rowset.ScanSpec
	bounds bounds
	from   int     // next row of a scan in storage order
	to     int     // first row not visible
	diff   bool    // only rows that changed in the interval
	old    int     // of a diff: first row inserted in the interval
	test   bool    // test keys against the bounds
	walker *walker // of a scan that gathers, else nil

	rows  []rowset.RowID // of the batch, when gathering
	start int            // first row of the batch, otherwise
	slots []slot         // by schema column
	key   slot
	ones  vector.Bitmap
	dead  vector.Bitmap  // of a diff: rows deleted in the interval
	twice []rowset.Event // those of them that lived again, with their first deaths
	batch rowset.Batch
}

func (s *scan) bounded() bool { return s.bounds.lower != nil || s.bounds.upper != nil }

// size returns the rows of a batch, at most limit.
func (s *scan) size(limit int) int {
	if s.spec.MaxRows > 0 {
		return min(limit, s.spec.MaxRows)
	}
	return limit
}

// Next returns the next batch, nil after the last.
func (s *scan) Next(ctx context.Context) (*rowset.Batch, error) {
	for s.m != nil {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !s.advance() {
			s.Close()
			break
		}
		if err := s.choose(); err != nil {
			return nil, fmt.Errorf("scan memrowset: %w", err)
		}
		s.spec.Stats.RowsSelected.Add(int64(s.batch.Selected))
		if s.batch.Selected > 0 {
			return s.deliver()
		}
	}
	return nil, nil
}

// Close ends the scan.
func (s *scan) Close() { *s = scan{} }

// advance finds the rows of the next batch.
func (s *scan) advance() bool {
	for i := range s.slots {
		s.slots[i].ready = false
	}
	s.key.ready = false
	if s.walker != nil {
		s.rows = s.walker.next(s.rows[:0], cap(s.rows))
		s.batch.Rows = len(s.rows)
		return len(s.rows) > 0
	}
	s.start = s.from
	s.batch.Rows = min(s.size(chunkRows), chunkRows-s.from&chunkMask, s.to-s.from)
	s.from += s.batch.Rows
	return s.batch.Rows > 0
}

// choose selects rows of the batch.
func (s *scan) choose() error {
	n := s.batch.Rows
	s.batch.Sel, s.batch.Selected, s.batch.Deleted = nil, n, nil
	life := s.m.deltas.HasLife()
	if s.spec.Filter == nil && !s.test && !life && !s.diff {
		s.spec.Stats.RowsConsidered.Add(int64(n))
		return nil
	}
	sel := s.ones.Grow(n)
	s.ones = sel
	sel.SetRange(0, n)
	if life {
		if err := s.testLife(sel); err != nil {
			return err
		}
	}
	if s.diff {
		s.testChanges(sel)
	}
	if s.test {
		if err := s.testKeys(sel); err != nil {
			return err
		}
	}
	s.spec.Stats.RowsConsidered.Add(int64(sel.Count()))
	if s.spec.Filter != nil && sel.Any() {
		if err := s.spec.Filter.Eval(n, sel, s.column); err != nil {
			return err
		}
	}
	if s.batch.Selected = sel.Count(); s.batch.Selected < n {
		s.batch.Sel = sel
	}
	return nil
}

// testLife clears from sel the rows that are deleted at the scan's snapshot.
func (s *scan) testLife(sel vector.Bitmap) error {
	at := s.spec.Time.Hi
	if s.walker == nil {
		return s.m.deltas.ApplyLife(context.Background(), at, s.start, s.start+s.batch.Rows, sel)
	}
	for i, r := range s.rows {
		if !s.m.deltas.Live(at, r) {
			sel.Clear(i)
		}
	}
	return nil
}

// row returns row i of the batch.
func (s *scan) row(i int) rowset.RowID {
	if s.walker == nil {
		return rowset.RowID(s.start + i)
	}
	return s.rows[i]
}

// testChanges makes sel, the rows live at the upper end of the interval, those that
// changed in it and are live at one of the ends.
func (s *scan) testChanges(sel vector.Bitmap) {
	in, deltas := s.spec.Time, s.m.deltas
	s.dead = s.dead.Grow(s.batch.Rows)
	s.twice = s.twice[:0]
	for i := range s.batch.Rows {
		r := s.row(i)
		before := int(r) < s.old
		switch live := sel.Get(i); {
		case before && !deltas.TouchedRow(in, r):
			sel.Clear(i)
		case !live && before && deltas.Live(in.Lo, r):
			sel.Set(i)
			s.dead.Set(i)
			if first, again := deltas.FirstDeath(in, r); again {
				s.twice = append(s.twice, rowset.Event{Row: rowset.RowID(i), Time: first})
			}
		}
	}
	if s.dead.Any() {
		s.batch.Deleted = s.dead
	}
}

// testKeys clears from sel the rows whose key lies outside the bounds.
func (s *scan) testKeys(sel vector.Bitmap) error {
	keys, err := s.keyVector()
	if err != nil {
		return err
	}
	for i := range s.batch.Rows {
		k := keys.BytesAt(i)
		if s.bounds.lower != nil && bytes.Compare(k, s.bounds.lower) < 0 ||
			s.bounds.upper != nil && bytes.Compare(k, s.bounds.upper) >= 0 {
			sel.Clear(i)
		}
	}
	return nil
}

// deliver completes the batch.
func (s *scan) deliver() (*rowset.Batch, error) {
	for i, c := range s.spec.Columns {
		v, err := s.column(c)
		if err != nil {
			return nil, fmt.Errorf("scan memrowset: %w", err)
		}
		s.batch.Columns[i] = v
	}
	if s.spec.WithKeys {
		v, err := s.keyVector()
		if err != nil {
			return nil, fmt.Errorf("scan memrowset: %w", err)
		}
		s.batch.Keys = v
	}
	return &s.batch, nil
}

// column returns the cells of a schema column for the rows of the batch.
func (s *scan) column(c int) (*vector.Vector, error) {
	d := &s.slots[c]
	if d.ready {
		return d.now, nil
	}
	d.ready = true
	err := s.fill(d, c)
	if err == nil && s.batch.Deleted != nil && len(s.twice) > 0 {
		d.now, err = s.revive(c, d.now)
	}
	return d.now, err
}

// fill makes d the cells of a column at the scan's snapshot.
func (s *scan) fill(d *slot, c int) (err error) {
	at := s.spec.Time.Hi
	if s.walker == nil {
		s.m.columns[c].view(d, s.start, s.start+s.batch.Rows)
		d.patched.Reset(&d.vec)
		err = s.m.deltas.Patch(context.Background(), mvcc.At(at), c, s.start, s.start+s.batch.Rows, &d.patched)
	} else {
		d.vec.Reset(s.m.schema.Column(c).Kind())
		err = s.m.columns[c].gather(&d.vec, s.rows)
		d.patched.Reset(&d.vec)
		if err == nil {
			err = s.m.deltas.PatchRows(at, c, s.rows, &d.patched)
		}
	}
	if err == nil {
		d.now, err = d.patched.Result()
	}
	return err
}

// revive returns the cells with those of rows that lived again as they were when the rows
// first died.
func (s *scan) revive(c int, v *vector.Vector) (*vector.Vector, error) {
	out, done := vector.New(v.Kind(), v.Len()), 0
	for _, e := range s.twice {
		if err := out.AppendRange(v, done, int(e.Row)); err != nil {
			return nil, err
		}
		cell := []*vector.Vector{out}
		if err := s.m.ReadRow(context.Background(), s.row(int(e.Row)), e.Time, []int{c}, cell); err != nil {
			return nil, err
		}
		done = int(e.Row) + 1
	}
	return out, out.AppendRange(v, done, v.Len())
}

// keyVector returns the encoded keys of the rows of the batch.
func (s *scan) keyVector() (*vector.Vector, error) {
	d := &s.key
	if d.ready {
		return &d.vec, nil
	}
	d.ready = true
	if s.walker == nil {
		s.m.keys.view(d, s.start, s.start+s.batch.Rows, nil)
		return &d.vec, nil
	}
	d.vec.Reset(schema.KindBytes)
	return &d.vec, s.m.keys.gather(&d.vec, s.rows)
}
