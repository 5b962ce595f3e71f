package memrowset

import (
	"context"
	"slices"

	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vector"
)

// Source is the content of a memrowset at a time, in key order, for the writer of a
// rowset, with its history after a horizon.
type Source struct {
	m       *MemRowSet
	at      mvcc.Timestamp
	horizon mvcc.Timestamp
	rows    []rowset.RowID
	cells   vector.Vector // scratch
	patched delta.Overlay // scratch
}

var (
	_ rowset.Source = (*Source)(nil)
	_ rowset.RowSet = (*MemRowSet)(nil)
)

// Source returns the rows as they are at a time, and what they were after the horizon:
// rows that were deleted at or before it are left out. It holds 4 bytes a row.
func (m *MemRowSet) Source(at, horizon mvcc.Timestamp) *Source {
	n := m.visible(at)
	w := newWalker(m, bounds{}, 0, n, rowset.KeyOrder)
	s := &Source{m: m, at: at, horizon: horizon, rows: w.next(make([]rowset.RowID, 0, n), n)}
	if m.deltas.HasLife() {
		s.rows = slices.DeleteFunc(s.rows, func(r rowset.RowID) bool {
			died, dead := m.deltas.Death(at, r)
			return dead && died <= horizon
		})
	}
	return s
}

// RowOf returns the memrowset's row that row i of the source is.
func (s *Source) RowOf(i int) rowset.RowID { return s.rows[i] }

// Fork returns the same rows for another goroutine.
func (s *Source) Fork() rowset.Source {
	return &Source{m: s.m, at: s.at, horizon: s.horizon, rows: s.rows}
}

// Rows returns the number of rows.
func (s *Source) Rows() int { return len(s.rows) }

// Column appends the cells of schema column col of rows [from, to) to dst.
func (s *Source) Column(_ context.Context, col, from, to int, dst *vector.Vector) error {
	if !s.m.deltas.Touches(col) {
		return s.m.columns[col].gather(dst, s.rows[from:to])
	}
	s.cells.Reset(dst.Kind())
	if err := s.m.columns[col].gather(&s.cells, s.rows[from:to]); err != nil {
		return err
	}
	s.patched.Reset(&s.cells)
	if err := s.m.deltas.PatchRows(s.at, col, s.rows[from:to], &s.patched); err != nil {
		return err
	}
	v, err := s.patched.Result()
	if err != nil {
		return err
	}
	return dst.AppendRange(v, 0, v.Len())
}

// Keys appends the encoded keys of rows [from, to) to dst.
func (s *Source) Keys(_ context.Context, from, to int, dst *vector.Vector) error {
	return s.m.keys.gather(dst, s.rows[from:to])
}

// InsertTimes appends the insert timestamps of rows [from, to) to dst: of a row that
// was deleted and put back, the time when it was put back.
func (s *Source) InsertTimes(_ context.Context, from, to int, dst []mvcc.Timestamp) ([]mvcc.Timestamp, error) {
	chunks := s.m.times.load()
	revivals := s.m.deltas.Revivals() > 0
	for _, r := range s.rows[from:to] {
		ts := mvcc.Timestamp(chunks[r>>chunkShift][r&chunkMask])
		if revivals {
			if again, ok := s.m.deltas.Revived(s.at, r); ok {
				ts = again
			}
		}
		dst = append(dst, ts)
	}
	return dst, nil
}
