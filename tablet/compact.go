package tablet

import (
	"context"
	"errors"
	"slices"

	"github.com/minikudu/minikudu/compaction"
	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
)

// FlushDeltas writes the changes of a disk rowset that are in memory to a file (R6).
// Where there are none, or the rowset has left the tablet or is being compacted, it does
// nothing. After an error nothing has changed, and it may be called again.
func (t *Tablet) FlushDeltas(ctx context.Context, rs *diskrowset.RowSet) (Flushed, error) {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	if t.closed.Load() {
		return Flushed{}, ErrClosed
	}
	var frozen *delta.MemStore
	if t.holds(rs) && !t.Busy(rs) {
		t.env.Quiesce(func() { frozen = rs.FreezeDeltas() })
	}
	if frozen == nil {
		return Flushed{}, nil
	}
	f := Flushed{Rows: frozen.Entries(), Memory: frozen.Bytes(), Files: 1}
	w, err := diskrowset.WriteRedo(ctx, frozen, t.env.Writer)
	if err != nil {
		return f, err
	}
	f.Bytes = w.Size
	meta := rs.MetaWith(frozen, &w)
	if err = t.env.Writer.FS.SyncDir(t.env.Writer.Dir); err == nil {
		err = t.env.SyncLog(ctx, frozen.MaxTime())
	}
	if err == nil {
		err = t.edit(ctx, &Publication{Update: meta, Deltas: []*diskrowset.WrittenDelta{&w}, MaxM: meta.DurableTo})
	}
	switch {
	case errors.Is(err, ErrUncertain):
		return f, err
	case err != nil:
		return f, errors.Join(err, t.env.Writer.FS.Remove(t.env.Writer.FS.Join(t.env.Writer.Dir, diskrowset.DeltaName(w.File))))
	}
	return f, rs.FlushedDeltas(frozen, &w, meta)
}

// holds reports whether the rowset is part of the tablet.
func (t *Tablet) holds(rs *diskrowset.RowSet) bool {
	return slices.Contains(t.stores.Load().diskSets(), rowset.RowSet(rs))
}

// Busy reports whether the rowset is being compacted.
func (t *Tablet) Busy(rs *diskrowset.RowSet) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy[rs]
}

// reserve marks those of the rowsets that the tablet still holds as being compacted.
// None of them has a flush of changes in progress then.
func (t *Tablet) reserve(sets []*diskrowset.RowSet) []*diskrowset.RowSet {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	from := slices.DeleteFunc(slices.Clone(sets), func(rs *diskrowset.RowSet) bool { return !t.holds(rs) })
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = make(map[*diskrowset.RowSet]bool, len(from))
	for _, rs := range from {
		t.busy[rs] = true
	}
	return from
}

// unreserve ends reserve.
func (t *Tablet) unreserve() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = nil
}

// Compacted says what a compaction did.
type Compacted struct {
	Inputs, Outputs   int
	BytesIn, BytesOut int64
	RowsIn, RowsOut   int64
	Memory            int64                // freed
	Sets              []*diskrowset.RowSet // that came
}

// Compact merges disk rowsets into new ones (R7), without what was deleted before the
// horizon and without history up to it. Rowsets that
// have left the tablet are passed over. Memory rowsets are flushed beside it, changes of
// the inputs are not. After an error nothing has changed.
func (t *Tablet) Compact(ctx context.Context, sets []*diskrowset.RowSet) (c Compacted, err error) {
	t.compacting.Lock()
	defer t.compacting.Unlock()
	from := t.reserve(sets)
	defer t.unreserve()
	horizon := t.raiseHorizon()
	at := t.env.Visible()
	inputs := make([]compaction.Input, 0, len(from))
	var metas []*rowset.Meta
	for _, rs := range from {
		snapshot, err := rs.At(at, horizon)
		if err != nil {
			return c, err
		}
		defer snapshot.Close()
		meta := rs.Meta()
		inputs, metas = append(inputs, snapshot), append(metas, meta)
		c.Inputs, c.RowsIn, c.BytesIn = c.Inputs+1, c.RowsIn+meta.Rows, c.BytesIn+meta.EncodedBytes()
	}
	if len(inputs) == 0 {
		return c, nil
	}
	merged, err := compaction.Merge(ctx, inputs, horizon)
	if err != nil {
		return c, err
	}
	o, err := t.write(ctx, merged, at, horizon)
	if err != nil {
		return c, err
	}
	if err := t.publish(ctx, o, metas); err != nil {
		return c, err
	}
	for i := range o.files {
		w := &o.files[i]
		c.Outputs, c.BytesOut, c.RowsOut = c.Outputs+1, c.BytesOut+w.Bytes(), c.RowsOut+w.Meta.Rows
	}
	for _, rs := range o.sets {
		c.Sets = append(c.Sets, rs.(*diskrowset.RowSet))
	}
	c.Memory, err = t.replaceSets(from, merged, o)
	return c, err
}

// replaceSets swaps merged rowsets for what they became and deletes their files once
// nobody reads them.
func (t *Tablet) replaceSets(from []*diskrowset.RowSet, merged *compaction.Merged, o *outputs) (freed int64, err error) {
	inputs, rows := make([]later, len(from)), make([]*rowMap, len(from))
	for i, rs := range from {
		inputs[i], rows[i] = rs, &rowMap{build: func() []int32 { return merged.Map(i) }}
	}
	freed, err = t.swap(o, inputs, rows, func(s *stores) {
		rest := slices.DeleteFunc(s.diskSets(), func(rs rowset.RowSet) bool { return slices.Contains(from, rs.(*diskrowset.RowSet)) })
		s.disk = NewTree(rest)
	})
	if err != nil {
		return freed, err
	}
	for _, rs := range from {
		rs.Drop()
	}
	return freed, nil
}

// Layout describes the disk rowsets for the compaction policy, in the order of RowSets.
func (t *Tablet) Layout() ([]*diskrowset.RowSet, []compaction.RowSet) {
	sets, horizon := t.RowSets(), t.raiseHorizon()
	out := make([]compaction.RowSet, len(sets))
	for i, rs := range sets {
		out[i] = describe(rs.Meta(), horizon)
	}
	return sets, out
}

// describe describes a rowset for the compaction policy. What is certain to go when it is
// rewritten are the rows deleted, the changes made and the history that ended up to the
// horizon, and the sections that patches replaced.
func describe(m *rowset.Meta, horizon mvcc.Timestamp) compaction.RowSet {
	waste := compaction.Waste{Rows: m.Rows, Base: m.EncodedBytes(), Unused: m.Unused()}
	bytes := waste.Base
	for i := range m.Redo {
		d := &m.Redo[i]
		bytes += d.Section.Length
		if d.MaxTime <= horizon {
			waste.Dead += d.Deletes
			waste.History += d.Section.Length
		}
	}
	for i := range m.Undo {
		d := &m.Undo[i]
		bytes += d.Section.Length
		if d.MaxTime <= horizon {
			waste.History += d.Section.Length
		}
	}
	return compaction.RowSet{Bytes: bytes, Disk: bytes + waste.Unused, Reclaimable: waste.Reclaimable(), Min: m.MinKey, Max: m.MaxKey}
}
