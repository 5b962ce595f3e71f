package diskrowset

import (
	"context"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vector"
)

// deltas are the changes of a rowset's rows. The value is immutable; a reader keeps the
// one it began with.
type deltas struct {
	meta *rowset.Meta // describes the files among the stores
	// undo brings rows from the base data back to an earlier time: files, the newest
	// first, as they apply.
	undo []*deltaFile
	// stores bring rows forward, in the order in which they apply: REDO files, changes
	// that are being flushed, and at the end those that are still collected.
	stores []delta.Reader
	active *delta.MemStore // the last of stores; nil: nothing changed since the last flush
}

// visible returns the stores that bring rows to the given time, in the order in which
// they apply. Of a column, the changes in UNDO files are older than those in others, so
// no cell is brought back and forth.
func (d *deltas) visible(at mvcc.Timestamp) []delta.Reader {
	var undo []delta.Reader
	for _, f := range d.undo {
		if f.applies(at) {
			undo = append(undo, f)
		}
	}
	for i, s := range d.stores {
		if s.MinTime() > at {
			out := append(undo, d.stores[:i]...)
			for _, s := range d.stores[i+1:] {
				if s.MinTime() <= at {
					out = append(out, s)
				}
			}
			return out
		}
	}
	if len(undo) == 0 {
		return d.stores
	}
	return append(undo, d.stores...)
}

// Apply changes stored rows: sets columns or deletes. Calls come in timestamp order,
// one at a time.
func (s *RowSet) Apply(ts mvcc.Timestamp, c *rowset.Changes) error {
	if d := s.deltas.Load(); d.active != nil {
		return d.active.Apply(ts, c)
	}
	m := delta.NewMemStore(s.env.Schema)
	if err := m.Apply(ts, c); err != nil {
		return err
	}
	s.deltasMu.Lock()
	defer s.deltasMu.Unlock()
	d := *s.deltas.Load()
	d.stores, d.active = append(slices.Clone(d.stores), m), m
	s.deltas.Store(&d)
	return nil
}

// memStores returns the stores of changes that are not flushed.
func (d *deltas) memStores() (out []*delta.MemStore) {
	for _, s := range d.stores {
		if m, ok := s.(*delta.MemStore); ok {
			out = append(out, m)
		}
	}
	return out
}

// CollectedBytes returns the memory of the changes that came since the last flush began.
func (s *RowSet) CollectedBytes() int64 {
	if m := s.deltas.Load().active; m != nil {
		return m.Bytes()
	}
	return 0
}

// MemoryBytes returns the memory of the changes that are not flushed.
func (s *RowSet) MemoryBytes() (n int64) {
	for _, m := range s.deltas.Load().memStores() {
		n += m.Bytes()
	}
	return n
}

// OldestChange returns the time of the oldest change that is not flushed, which
// anchors the log (R9), 0 when there is none.
func (s *RowSet) OldestChange() mvcc.Timestamp {
	for _, m := range s.deltas.Load().memStores() {
		return m.MinTime() // they are in order of time
	}
	return 0
}

// NewestChange returns the time of the newest change since the rows were written, 0 when
// there is none.
func (s *RowSet) NewestChange() mvcc.Timestamp {
	stores := s.deltas.Load().stores
	if len(stores) == 0 {
		return 0
	}
	return stores[len(stores)-1].MaxTime() // they are in order of time
}

// ChangedAt reports whether the rows at a time are not those of the base data, so that
// stored summaries do not speak for them.
func (s *RowSet) ChangedAt(at mvcc.Timestamp) bool {
	return len(s.deltas.Load().visible(at)) > 0
}

// Live returns the number of rows that are live now.
func (s *RowSet) Live() int64 {
	d := s.deltas.Load()
	n := d.meta.LiveRows
	for _, m := range d.memStores() {
		n -= m.Deletes()
	}
	return n
}

// Later calls fn for the changes of every commit after the given time that are not
// flushed, in timestamp order, until it fails.
func (s *RowSet) Later(after mvcc.Timestamp, fn func(ts mvcc.Timestamp, c *rowset.Changes) error) error {
	for _, m := range s.deltas.Load().memStores() {
		if err := m.Later(after, fn); err != nil {
			return err
		}
	}
	return nil
}

// FreezeDeltas returns the oldest changes that are not flushed, to be written by
// WriteRedo, and nil when there are none; from now on they stay as they are. No Apply
// may run. Changes whose flush failed are returned again, before any later ones.
func (s *RowSet) FreezeDeltas() *delta.MemStore {
	s.deltasMu.Lock()
	defer s.deltasMu.Unlock()
	d := *s.deltas.Load()
	all := d.memStores()
	switch {
	case len(all) == 0:
		return nil
	case all[0] == d.active:
		d.active = nil
		s.deltas.Store(&d)
	}
	return all[0]
}

// MetaWith returns the description of the rowset once the frozen changes are in the
// file w.
func (s *RowSet) MetaWith(frozen *delta.MemStore, w *WrittenDelta) *rowset.Meta {
	m := *s.Meta()
	m.Redo = append(slices.Clone(m.Redo), w.Delta)
	m.LiveRows -= frozen.Deletes()
	m.DurableTo = max(m.DurableTo, frozen.MaxTime()) // all older changes are in files too
	return &m
}

// FlushedDeltas replaces the frozen changes by the file they were written to. Meta,
// which MetaWith returned, describes the rowset from now on. A scan in progress goes on
// with what it began with.
func (s *RowSet) FlushedDeltas(frozen *delta.MemStore, w *WrittenDelta, meta *rowset.Meta) error {
	if !s.Acquire() {
		return ErrClosed
	}
	defer s.Release()
	s.deltasMu.Lock()
	defer s.deltasMu.Unlock()
	d := *s.deltas.Load()
	i := slices.IndexFunc(d.stores, func(r delta.Reader) bool { return r == delta.Reader(frozen) })
	if i < 0 || frozen == d.active {
		return fmt.Errorf("rowset %d: flushed changes are not frozen ones", s.meta.ID)
	}
	d.meta, d.stores = meta, slices.Clone(d.stores)
	d.stores[i] = newDeltaFile(s, &w.Delta)
	s.deltas.Store(&d)
	return nil
}

// changed reports whether one of the changes may set the column in rows [from, to):
// then no zone map, bound or summary of the stored cells answers for them.
func changed(ctx context.Context, stores []delta.Reader, col, from, to int) (bool, error) {
	for _, d := range stores {
		if yes, err := d.Changed(ctx, col, from, to); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}

// applyLife brings the liveness of rows [from, to) in sel to a time.
func applyLife(ctx context.Context, stores []delta.Reader, at mvcc.Timestamp, from, to int, sel vector.Bitmap) error {
	for _, d := range stores {
		if d.HasLife() {
			if err := d.ApplyLife(ctx, at, from, to, sel); err != nil {
				return err
			}
		}
	}
	return nil
}

// patchRow appends the newest cell of a row to dst, if a change set it.
func (d *deltas) patchRow(ctx context.Context, at mvcc.Timestamp, col, row int, dst *vector.Vector) (bool, error) {
	for i := len(d.stores) - 1; i >= 0; i-- {
		if s := d.stores[i]; s.Touches(col) {
			if done, err := s.PatchRow(ctx, at, col, row, dst); done || err != nil {
				return done, err
			}
		}
	}
	return false, nil
}

// last returns the newest change of a row.
func (d *deltas) last(ctx context.Context, row rowset.RowID) (rowset.ChangeKind, mvcc.Timestamp, bool, error) {
	for i := len(d.stores) - 1; i >= 0; i-- {
		if kind, ts, ok, err := d.stores[i].Last(ctx, row); ok || err != nil {
			return kind, ts, ok, err
		}
	}
	return 0, 0, false, nil
}

// Life returns when a row was inserted, and when it was deleted, 0 while it is not.
func (s *RowSet) Life(ctx context.Context, row rowset.RowID) (inserted, deleted mvcc.Timestamp, err error) {
	if !s.Acquire() {
		return 0, 0, ErrClosed
	}
	defer s.Release()
	inserted = s.meta.MinInsert
	if s.times != nil {
		c := cursor{col: s.times}
		if err := c.open(ctx); err != nil {
			return 0, 0, err
		}
		page, at, err := c.at(ctx, int(row))
		if err != nil {
			return 0, 0, err
		}
		inserted = mvcc.Timestamp(vector.Values[int64](page)[at])
	}
	kind, ts, ok, err := s.deltas.Load().last(ctx, row)
	if ok && kind == rowset.ChangeDel {
		deleted = ts
	}
	return inserted, deleted, err
}
