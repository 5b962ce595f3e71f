package tablet

import (
	"context"
	"errors"
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
	if s.active.Rows() == 0 {
		return false
	}
	s.rotated = append(slices.Clone(s.rotated), s.active)
	s.active = t.newMemRowSet()
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
	f := Flushed{Rows: m.Rows(), Memory: m.MemoryBytes()}
	o, err := t.write(ctx, m)
	if err != nil {
		return f, err
	}
	for _, w := range o.files {
		f.Files, f.Bytes = f.Files+1, f.Bytes+w.Size
	}
	if err := t.publish(ctx, o); err != nil {
		return f, err
	}
	t.replace(m, o.sets)
	return f, nil
}

// Exclude calls f while no flush of the tablet runs.
func (t *Tablet) Exclude(f func() error) error {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	return f()
}

// outputs are files that are written but not yet part of the tablet.
type outputs struct {
	files []diskrowset.Written
	sets  []rowset.RowSet
	last  mvcc.Timestamp // newest commit in them
}

// write writes a memrowset that no longer changes. Its files are durable, and so is
// the log through their newest commit.
func (t *Tablet) write(ctx context.Context, m *memrowset.MemRowSet) (*outputs, error) {
	last, _ := m.MaxTime()
	files, err := diskrowset.Write(ctx, m.Source(last), t.env.Writer)
	o := &outputs{files: files, last: last}
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
	for _, w := range o.files {
		errs = append(errs, t.env.Writer.FS.Remove(t.env.Writer.FS.Join(t.env.Writer.Dir, diskrowset.FileName(w.File))))
	}
	return errors.Join(errs...)
}

// ErrUncertain is what Env.Publish returns when the change may be on disk or not.
var ErrUncertain = errors.New("it is not known whether a flush was published")

// publish makes the files part of the tablet with one manifest edit. When that fails
// they are removed, unless the edit may be on disk all the same: then, if it is not,
// the next open removes them.
func (t *Tablet) publish(ctx context.Context, o *outputs) error {
	p := &Publication{Tablet: t.id, Add: o.files, I: max(o.last, t.Watermark()),
		MaxM: max(o.last, mvcc.Timestamp(t.maxM.Load())), LastID: t.lastID.Load()}
	err := t.env.Publish(ctx, p)
	switch {
	case errors.Is(err, ErrUncertain):
		for _, rs := range o.sets {
			rs.(*diskrowset.RowSet).Close()
		}
		return err
	case err != nil:
		return errors.Join(err, t.discard(o))
	}
	t.i.Store(uint64(p.I))
	t.maxM.Store(uint64(p.MaxM))
	return nil
}

// replace swaps a flushed memrowset for the disk rowsets that were made of it.
func (t *Tablet) replace(m *memrowset.MemRowSet, made []rowset.RowSet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := *t.stores.Load()
	s.rotated = slices.DeleteFunc(slices.Clone(s.rotated), func(r *memrowset.MemRowSet) bool { return r == m })
	sets := slices.Clone(made)
	for i := range s.disk.Len() {
		sets = append(sets, s.disk.RowSet(i))
	}
	s.disk = NewTree(sets)
	t.stores.Store(&s)
}
