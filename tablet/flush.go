package tablet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/memrowset"
)

// Rotate makes a new active memrowset and leaves the old one to Flush, unless it is
// empty. It is called under the store's commit mutex, so that no commit lies
// between two memrowsets (R5).
func (t *Tablet) Rotate() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := *t.stores.Load()
	rows := s.active.Rows()
	if rows == 0 {
		return false
	}
	s.rotated = append(slices.Clone(s.rotated), s.active)
	s.active = t.newMemRowSet()
	s.active.Expect(rows)
	t.stores.Store(&s)
	return true
}

// Flushed says what a flush did.
type Flushed struct {
	Rows   int64
	Memory int64 // bytes of the memrowset
	Files  int
	Bytes  int64
}

// Flush writes the oldest rotated memrowset to disk rowsets, publishes them and
// frees the memory (R5). With none it does nothing. After Close or Drop it is
// ErrClosed. After any other error the tablet has not changed, and Flush may be
// called again.
func (t *Tablet) Flush(ctx context.Context) (Flushed, error) {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	if t.closed.Load() {
		return Flushed{}, ErrClosed
	}
	s := t.stores.Load()
	if len(s.rotated) == 0 {
		return Flushed{}, nil
	}
	m := s.rotated[0]
	if err := m.WaitUnpinned(ctx); err != nil {
		return Flushed{}, err
	}
	// Every row is in the memrowset now, and the newest of them is visible. Changes go
	// on: the files take those up to last, the later ones move when the stores do.
	horizon := t.raiseHorizon()
	last := t.env.Visible()
	source := m.Source(last, horizon)
	f := Flushed{Rows: m.Rows()}
	o, err := t.write(ctx, source, last, horizon)
	if err != nil {
		return f, err
	}
	for i := range o.files {
		f.Files, f.Bytes = f.Files+1, f.Bytes+o.files[i].Bytes()
	}
	o.inserts = m.LastPut()
	if err := t.publish(ctx, o, nil); err != nil {
		return f, err
	}
	f.Memory, err = t.replace(m, source, o)
	return f, err
}

// Exclude calls f while no flush or compaction of the tablet runs.
func (t *Tablet) Exclude(f func() error) error {
	t.compacting.Lock()
	defer t.compacting.Unlock()
	t.flushing.Lock()
	defer t.flushing.Unlock()
	return f()
}

// outputs are files that are written but not yet part of the tablet.
type outputs struct {
	files   []diskrowset.Written
	sets    []rowset.RowSet
	last    mvcc.Timestamp // M: they hold every change of their rows up to here
	inserts mvcc.Timestamp // I: inserts up to here are in files now
}

// write writes the rows of a source as they are at last, and their history after the
// horizon. The files are durable, and so is the log through that time.
func (t *Tablet) write(ctx context.Context, source rowset.Source, last, horizon mvcc.Timestamp) (*outputs, error) {
	o := &outputs{last: last}
	var err error
	if source.Rows() > 0 {
		o.files, err = diskrowset.Write(ctx, source, t.writer(horizon))
	}
	if err == nil {
		err = t.prepare(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, t.discard(o))
	}
	return o, nil
}

// prepare opens the files and makes everything durable that publishing relies on (R4).
func (t *Tablet) prepare(ctx context.Context, o *outputs) error {
	for i := range o.files {
		meta := o.files[i].Meta
		meta.ID, meta.DurableTo = t.env.NewRowSet(), o.last
		rs, err := diskrowset.Open(meta, t.env.Disk)
		if err != nil {
			return err
		}
		o.sets = append(o.sets, rs)
	}
	if err := t.env.Writer.FS.SyncDir(t.env.Writer.Dir); err != nil {
		return err
	}
	return t.env.SyncLog(ctx, o.last)
}

// discard deletes files that will not be published.
func (t *Tablet) discard(o *outputs) error {
	var errs []error
	for _, rs := range o.sets {
		rs.(*diskrowset.RowSet).Close()
	}
	for i := range o.files {
		errs = append(errs, o.files[i].Remove(t.env.Writer))
	}
	return errors.Join(errs...)
}

// ErrUncertain is what Env.Publish returns when the change may be on disk or not. Flushes
// and compactions return it also when memory does not agree with what was published.
var ErrUncertain = errors.New("it is not known whether a flush was published")

// publish makes the files part of the tablet with one manifest edit, in place of the
// rowsets removed. When that fails they are deleted, unless the edit may be on disk all
// the same: then, if it is not, the next open deletes them.
func (t *Tablet) publish(ctx context.Context, o *outputs, removed []*rowset.Meta) error {
	p := &Publication{Remove: removed, Add: o.files, I: max(o.inserts, t.Watermark()), MaxM: o.last}
	err := t.edit(ctx, p)
	switch {
	case errors.Is(err, ErrUncertain):
		for _, rs := range o.sets {
			rs.(*diskrowset.RowSet).Close()
		}
	case err != nil:
		return errors.Join(err, t.discard(o))
	}
	return err
}

// edit publishes a change and raises the watermarks.
func (t *Tablet) edit(ctx context.Context, p *Publication) error {
	t.publishing.Lock()
	defer t.publishing.Unlock()
	p.Tablet, p.LastID = t.id, t.lastID.Load()
	p.I, p.MaxM, p.H = max(p.I, t.Watermark()), max(p.MaxM, mvcc.Timestamp(t.maxM.Load())), t.Horizon()
	if err := t.env.Publish(ctx, p); err != nil {
		return err
	}
	t.i.Store(uint64(p.I))
	t.maxM.Store(uint64(p.MaxM))
	return nil
}

// replace swaps a flushed memrowset for the disk rowsets that were made of it, and
// moves the changes that came meanwhile. It returns the bytes of memory freed.
func (t *Tablet) replace(m *memrowset.MemRowSet, source *memrowset.Source, o *outputs) (freed int64, err error) {
	rows := &rowMap{build: func() []int32 {
		to := make([]int32, m.Rows())
		for i := range to {
			to[i] = -1
		}
		for i := range source.Rows() {
			to[source.RowOf(i)] = int32(i)
		}
		return to
	}}
	return t.swap(o, []later{m}, []*rowMap{rows}, func(s *stores) {
		s.rotated = slices.DeleteFunc(slices.Clone(s.rotated), func(r *memrowset.MemRowSet) bool { return r == m })
	})
}

// swap puts the outputs into the stores, from which remove takes the inputs, and moves
// the inputs' later changes, while no commit is on its way. It returns the bytes of
// memory freed. After an error the stores are not what was published.
func (t *Tablet) swap(o *outputs, inputs []later, rows []*rowMap, remove func(s *stores)) (freed int64, err error) {
	t.env.Quiesce(func() {
		for _, in := range inputs {
			freed += in.MemoryBytes()
		}
		if err = moveLater(o, inputs, rows); err != nil {
			err = fmt.Errorf("%w: moving changes: %w", ErrUncertain, err)
			return
		}
		for _, rs := range o.sets {
			freed -= rs.MemoryBytes()
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		s := *t.stores.Load()
		remove(&s)
		s.disk = NewTree(append(slices.Clone(o.sets), s.diskSets()...))
		t.stores.Store(&s)
	})
	return freed, err
}

// rowMap leads from the rows of an input to those of the outputs, which follow each
// other; -1 where a row was dropped. It is made when it is first needed: most inputs do
// not change meanwhile.
type rowMap struct {
	build func() []int32
	to    []int32
}

// later is an input whose changes move.
type later interface {
	MemoryBytes() int64
	Later(after mvcc.Timestamp, fn func(ts mvcc.Timestamp, c *rowset.Changes) error) error
}

// moveLater applies the inputs' changes after o.last to the outputs, in the order of
// time over all inputs.
func moveLater(o *outputs, inputs []later, rows []*rowMap) error {
	type move struct {
		ts   mvcc.Timestamp
		c    *rowset.Changes
		rows *rowMap
	}
	var all []move
	for i, in := range inputs {
		err := in.Later(o.last, func(ts mvcc.Timestamp, c *rowset.Changes) error {
			all = append(all, move{ts, c, rows[i]})
			return nil
		})
		if err != nil {
			return err
		}
	}
	slices.SortStableFunc(all, func(a, b move) int { return cmp.Compare(a.ts, b.ts) })
	for _, m := range all {
		if m.rows.to == nil {
			m.rows.to = m.rows.build()
		}
		if err := m.rows.moveCommit(m.ts, m.c, o); err != nil {
			return err
		}
	}
	return nil
}

// moveCommit applies one commit's changes of input rows to the outputs they became.
func (r *rowMap) moveCommit(ts mvcc.Timestamp, c *rowset.Changes, o *outputs) error {
	parts := make([]rowset.Changes, len(o.sets))
	for i, row := range c.Rows {
		out := int64(r.to[row])
		if out < 0 {
			return fmt.Errorf("%w: a change of a row that was dropped", ErrIllegalState)
		}
		k := 0
		for out >= o.sets[k].Rows() {
			out -= o.sets[k].Rows()
			k++
		}
		parts[k].Rows, parts[k].At = append(parts[k].Rows, rowset.RowID(out)), append(parts[k].At, int32(c.Cell(i)))
	}
	for k := range parts {
		if len(parts[k].Rows) == 0 {
			continue
		}
		parts[k].Kind, parts[k].Columns, parts[k].Values = c.Kind, c.Columns, c.Values
		if err := o.sets[k].Apply(ts, &parts[k]); err != nil {
			return err
		}
	}
	return nil
}
