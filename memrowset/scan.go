package memrowset

import (
	"bytes"
	"context"
	"fmt"

	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// gatherRows is the number of rows of a batch that is gathered in key order.
const gatherRows = 4096

// Scan starts a scan over the rows inserted in the interval.
//
// Unordered scans hand out the vectors themselves, chunk by chunk. Ordered ones, and
// unordered ones whose key bounds leave few rows, gather the rows that the index names.
func (m *MemRowSet) Scan(_ context.Context, spec *rowset.ScanSpec) (rowset.Iterator, error) {
	from, to := m.visible(spec.Time)
	s := &scan{m: m, spec: spec, bounds: bounds{spec.Lower, spec.Upper}, from: from, to: to}
	s.slots = make([]slot, m.schema.Len())
	s.batch.Columns = make([]*vector.Vector, len(spec.Columns))
	switch {
	case from == to:
	case spec.Order != rowset.Unordered || s.bounded() && m.few(s.bounds):
		s.walker = newWalker(m, s.bounds, from, to, spec.Order)
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
	test   bool    // test keys against the bounds
	walker *walker // of a scan that gathers, else nil

	rows  []rowset.RowID // of the batch, when gathering
	start int            // first row of the batch, otherwise
	slots []slot         // by schema column
	key   slot
	ones  vector.Bitmap
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
	s.batch.Sel, s.batch.Selected = nil, n
	life := s.m.deltas.HasLife()
	if s.spec.Filter == nil && !s.test && !life {
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
	var err error
	if s.walker == nil {
		s.m.columns[c].view(d, s.start, s.start+s.batch.Rows)
		d.now, err = s.m.deltas.Patch(context.Background(), s.spec.Time.Hi, c, s.start, s.start+s.batch.Rows, &d.vec, &d.patched)
		return d.now, err
	}
	d.vec.Reset(s.m.schema.Column(c).Kind())
	if err := s.m.columns[c].gather(&d.vec, s.rows); err != nil {
		return nil, err
	}
	d.now, err = s.m.deltas.PatchRows(s.spec.Time.Hi, c, s.rows, &d.vec, &d.patched)
	return d.now, err
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
