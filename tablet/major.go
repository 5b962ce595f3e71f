package tablet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
)

// CompactMajor writes columns of a disk rowset anew with the changes in its REDO files
// folded in: major delta compaction. Where it has left the tablet, or has no such changes,
// nothing is done. Columns may be nil: those with changes. After an error nothing has
// changed.
func (t *Tablet) CompactMajor(ctx context.Context, rs *diskrowset.RowSet, columns []int) (c Compacted, err error) {
	t.compacting.Lock()
	defer t.compacting.Unlock()
	if t.closed.Load() {
		return c, ErrClosed
	}
	from := t.reserve([]*diskrowset.RowSet{rs})
	defer t.unreserve()
	if changed := rs.ChangedColumns(); columns == nil {
		columns = changed
	} else {
		columns = slices.DeleteFunc(slices.Clone(columns), func(col int) bool { return !slices.Contains(changed, col) })
	}
	if len(from) == 0 || len(columns) == 0 {
		return c, nil
	}
	meta, horizon := rs.Meta(), t.raiseHorizon()
	p, err := rs.WritePatch(ctx, columns, horizon, t.writer(horizon))
	if err != nil {
		return c, err
	}
	next, err := diskrowset.Open(p.Meta, t.env.Disk)
	if err != nil {
		return c, errors.Join(err, p.Remove(t.env.Writer))
	}
	if err := t.publishPatch(ctx, p); err != nil {
		next.Close()
		return c, err
	}
	t.exchange(rs, next)
	rs.Supersede(p.Gone)
	return Compacted{Inputs: 1, Outputs: 1, RowsIn: meta.Rows, RowsOut: meta.Rows, BytesIn: patchedBytes(meta, p.Meta), BytesOut: p.Bytes(),
		Sets: []*diskrowset.RowSet{next}}, nil
}

// publishPatch makes a patch durable. When that fails its files are deleted, unless the
// edit may be on disk all the same.
func (t *Tablet) publishPatch(ctx context.Context, p *diskrowset.Patch) error {
	err := t.env.Writer.FS.SyncDir(t.env.Writer.Dir)
	if err == nil {
		err = t.env.SyncLog(ctx, p.At)
	}
	if err == nil {
		pub := &Publication{Update: p.Meta, Files: []diskrowset.Written{p.File}, Gone: p.Gone, MaxM: p.Meta.DurableTo}
		for i := range p.Deltas {
			pub.Deltas = append(pub.Deltas, &p.Deltas[i])
		}
		err = t.edit(ctx, pub)
	}
	if err != nil && !errors.Is(err, ErrUncertain) {
		err = errors.Join(err, p.Remove(t.env.Writer))
	}
	return err
}

// exchange puts a rowset in the place of the one that it was made of, while no commit is
// on its way.
func (t *Tablet) exchange(old, next *diskrowset.RowSet) {
	t.env.Quiesce(func() {
		next.Inherit(old)
		t.mu.Lock()
		defer t.mu.Unlock()
		s := *t.stores.Load()
		sets := s.diskSets()
		sets[slices.Index(sets, rowset.RowSet(old))] = next
		s.disk = NewTree(sets)
		t.stores.Store(&s)
	})
}

// patchedBytes returns the bytes of what a patch replaced.
func patchedBytes(before, after *rowset.Meta) (n int64) {
	for _, sec := range before.Sections {
		if !slices.Contains(after.Sections, sec) {
			n += sec.Length
		}
	}
	for i := range before.Redo {
		n += before.Redo[i].Section.Length
	}
	return n
}

// DropHistory deletes the UNDO files of a disk rowset that the horizon has passed. It
// returns the bytes of the files, 0 when there are none. After an error that is not
// ErrUncertain nothing has changed.
func (t *Tablet) DropHistory(ctx context.Context, rs *diskrowset.RowSet) (bytes int64, err error) {
	t.compacting.Lock()
	defer t.compacting.Unlock()
	t.flushing.Lock() // nobody else changes the description
	defer t.flushing.Unlock()
	if t.closed.Load() {
		return 0, ErrClosed
	}
	if !t.holds(rs) {
		return 0, nil
	}
	bytes = expired(rs.Meta(), t.raiseHorizon())
	meta, gone := rs.MetaWithoutHistory(t.Horizon())
	if len(gone) == 0 {
		return 0, nil
	}
	if err := t.edit(ctx, &Publication{Update: meta, Gone: gone}); err != nil {
		return 0, err
	}
	if err := rs.DroppedHistory(gone, meta); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return bytes, nil
}

// Upkeep is what may be done about a disk rowset besides merging it.
type Upkeep struct {
	Set     *diskrowset.RowSet
	Dead    bool  // every row was deleted, and the horizon has passed that
	Expired int64 // bytes of UNDO files that the horizon has passed
	Stale   bool  // a rewrite drops deleted rows or history
	Columns int   // with changes in files
	Redo    int64 // bytes of files of changes
	Base    int64 // bytes of the rowset file
}

// Upkeep returns what may be done about each disk rowset, in the order of RowSets, and when
// the horizon, if no reader holds it back, passes something that waits for it; 0: nothing
// waits.
func (t *Tablet) Upkeep() (all []Upkeep, next mvcc.Timestamp) {
	horizon := t.raiseHorizon()
	wait := func(ts mvcc.Timestamp) {
		if next == 0 || ts < next {
			next = ts
		}
	}
	for _, rs := range t.RowSets() {
		m := rs.Meta()
		u := Upkeep{Set: rs, Expired: expired(m, horizon), Columns: len(rs.ChangedColumns()), Base: m.EncodedBytes()}
		for i := range m.Redo {
			d := &m.Redo[i]
			u.Redo += d.Section.Length
			u.Stale = u.Stale || d.Deletes > 0 && d.MinTime <= horizon
		}
		for i := range m.Undo {
			d := &m.Undo[i]
			u.Stale = u.Stale || d.MinTime <= horizon
			if d.MaxTime > horizon {
				wait(d.MaxTime)
			}
		}
		if rs.Live() == 0 {
			if newest := rs.NewestChange(); newest <= horizon {
				u.Dead = true
			} else {
				wait(newest)
			}
		}
		all = append(all, u)
	}
	return all, next
}

// expired returns the bytes of UNDO files that the horizon has passed.
func expired(m *rowset.Meta, horizon mvcc.Timestamp) (n int64) {
	for i := range m.Undo {
		if m.Undo[i].MaxTime <= horizon {
			n += m.Undo[i].Section.Length
		}
	}
	return n
}
