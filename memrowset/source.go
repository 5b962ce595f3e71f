package memrowset

import (
	"context"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vector"
)

// Source is the content of a memrowset at a time, in key order, for the writer of a
// rowset.
type Source struct {
	m    *MemRowSet
	rows []rowset.RowID
}

var (
	_ rowset.Source = (*Source)(nil)
	_ rowset.RowSet = (*MemRowSet)(nil)
)

// Source returns the rows inserted at or before a time. It holds 4 bytes a row.
func (m *MemRowSet) Source(at mvcc.Timestamp) *Source {
	_, n := m.visible(mvcc.At(at))
	w := newWalker(m, bounds{}, 0, n, rowset.KeyOrder)
	return &Source{m: m, rows: w.next(make([]rowset.RowID, 0, n), n)}
}

// Rows returns the number of rows.
func (s *Source) Rows() int { return len(s.rows) }

// Column appends the cells of schema column col of rows [from, to) to dst.
func (s *Source) Column(_ context.Context, col, from, to int, dst *vector.Vector) error {
	return s.m.columns[col].gather(dst, s.rows[from:to])
}

// Keys appends the encoded keys of rows [from, to) to dst.
func (s *Source) Keys(_ context.Context, from, to int, dst *vector.Vector) error {
	return s.m.keys.gather(dst, s.rows[from:to])
}

// InsertTimes appends the insert timestamps of rows [from, to) to dst.
func (s *Source) InsertTimes(from, to int, dst []mvcc.Timestamp) []mvcc.Timestamp {
	chunks := s.m.times.load()
	for _, r := range s.rows[from:to] {
		dst = append(dst, mvcc.Timestamp(chunks[r>>chunkShift][r&chunkMask]))
	}
	return dst
}
