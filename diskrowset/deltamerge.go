package diskrowset

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
)

// MergeRedo writes the changes of all REDO files that the rowset has at present into a
// new one, and returns how many they are, at least two. When it fails, no file is left.
func (s *RowSet) MergeRedo(ctx context.Context, o WriterOptions) (w WrittenDelta, merged int, err error) {
	if !s.Acquire() {
		return w, 0, ErrClosed
	}
	defer s.Release()
	files := s.deltas.Load().files()
	if len(files) < 2 {
		return w, 0, fmt.Errorf("%w: %d files", ErrNoChanges, len(files))
	}
	w, err = writeDelta(ctx, mergedFiles(files), rowset.SectionRedo, o)
	return w, len(files), err
}

// MetaMerged returns the description of the rowset with its first n REDO files
// replaced by w.
func (s *RowSet) MetaMerged(n int, w *WrittenDelta) *rowset.Meta {
	m := *s.Meta()
	m.Redo = append([]rowset.DeltaFile{w.Delta}, m.Redo[n:]...)
	return &m
}

// MergedDeltas replaces the first n REDO files by the one that MergeRedo made of them.
// Meta, which MetaMerged returned, describes the rowset from now on. The old files are
// deleted when no scan reads them.
func (s *RowSet) MergedDeltas(n int, w *WrittenDelta, meta *rowset.Meta) error {
	if !s.Acquire() {
		return ErrClosed
	}
	defer s.Release()
	s.deltasMu.Lock()
	defer s.deltasMu.Unlock()
	d := *s.deltas.Load()
	old := d.files()
	if n > len(old) {
		return fmt.Errorf("rowset %d: %d files of changes merged, of %d", s.meta.ID, n, len(old))
	}
	d.meta, d.stores = meta, append([]delta.Reader{newDeltaFile(s, &w.Delta)}, d.stores[n:]...)
	s.deltas.Store(&d)
	s.retire(old[:n])
	return nil
}

// MetaWithoutHistory returns the description of the rowset without the UNDO files all
// of whose changes are at or before the horizon, and those files; none when there are
// none.
func (s *RowSet) MetaWithoutHistory(horizon mvcc.Timestamp) (*rowset.Meta, []rowset.FileNum) {
	m := *s.Meta()
	var gone []rowset.FileNum
	m.Undo = slices.DeleteFunc(slices.Clone(m.Undo), func(d rowset.DeltaFile) bool {
		if d.MaxTime > horizon {
			return false
		}
		gone = append(gone, d.Section.File)
		return true
	})
	return &m, gone
}

// DroppedHistory takes the UNDO files that MetaWithoutHistory left out away. They are
// deleted when no scan reads them.
func (s *RowSet) DroppedHistory(gone []rowset.FileNum, meta *rowset.Meta) error {
	if !s.Acquire() {
		return ErrClosed
	}
	defer s.Release()
	s.deltasMu.Lock()
	defer s.deltasMu.Unlock()
	d := *s.deltas.Load()
	d.meta = meta
	var old []*deltaFile
	d.undo = slices.DeleteFunc(slices.Clone(d.undo), func(f *deltaFile) bool {
		if !slices.Contains(gone, f.file.num) {
			return false
		}
		old = append(old, f)
		return true
	})
	s.deltas.Store(&d)
	s.retire(old)
	return nil
}

// retire notes files that only readers which began before now may use. They are let go
// when there is no reader; see Release.
func (s *RowSet) retire(files []*deltaFile) {
	for {
		old := s.retired.Load()
		all := files
		if old != nil {
			all = append(slices.Clone(*old), files...)
		}
		if s.retired.CompareAndSwap(old, &all) {
			return
		}
	}
}

// letGo releases files of changes.
func letGo(files []*deltaFile, remove bool) {
	for _, f := range files {
		f.forget()
		f.file.release(remove)
	}
}

// mergedFiles is the changes of several files, which are in the order of time, as a
// changeSource.
type mergedFiles []*deltaFile

func (m mergedFiles) Versions(ctx context.Context, col int) iter.Seq2[rowset.Version, error] {
	var all []iter.Seq2[rowset.Version, error]
	for _, f := range m {
		if f.Touches(col) {
			all = append(all, f.versions(ctx, col))
		}
	}
	return mergeRows(all, func(v rowset.Version) rowset.RowID { return v.Row })
}

func (m mergedFiles) Deaths(ctx context.Context) iter.Seq2[rowset.Event, error] {
	return m.events(ctx, func(d *deltaData) *changeList { return d.deletes })
}

func (m mergedFiles) Births(ctx context.Context) iter.Seq2[rowset.Event, error] {
	return m.events(ctx, func(d *deltaData) *changeList { return d.births })
}

func (m mergedFiles) events(ctx context.Context, list func(*deltaData) *changeList) iter.Seq2[rowset.Event, error] {
	var all []iter.Seq2[rowset.Event, error]
	for _, f := range m {
		if f.HasLife() {
			all = append(all, f.events(ctx, list))
		}
	}
	return mergeRows(all, func(e rowset.Event) rowset.RowID { return e.Row })
}

// versions yields the cells of a column that the file touches.
func (f *deltaFile) versions(ctx context.Context, col int) iter.Seq2[rowset.Version, error] {
	return sequence(func(yield func(rowset.Version) error) error {
		l, p, err := f.changes(ctx, col)
		if err != nil {
			return err
		}
		cells := cursor{col: l.cells, once: true}
		for i, row := range p.rows {
			v := rowset.Version{Event: rowset.Event{Row: rowset.RowID(row), Time: mvcc.Timestamp(p.times[i])}}
			if v.Cells, v.At, err = cells.at(ctx, i); err != nil {
				return err
			}
			if err := yield(v); err != nil {
				return err
			}
		}
		return nil
	})
}

// events yields a list of the file.
func (f *deltaFile) events(ctx context.Context, list func(*deltaData) *changeList) iter.Seq2[rowset.Event, error] {
	return sequence(func(yield func(rowset.Event) error) error {
		d, err := f.open(ctx)
		if err != nil || list(d) == nil {
			return err
		}
		p, err := f.places(ctx, list(d))
		if err != nil {
			return err
		}
		for i, row := range p.rows {
			if err := yield(rowset.Event{Row: rowset.RowID(row), Time: mvcc.Timestamp(p.times[i])}); err != nil {
				return err
			}
		}
		return nil
	})
}

// mergeRows merges sequences in order of row. Of one row, the elements of an earlier
// sequence come first.
func mergeRows[T any](all []iter.Seq2[T, error], row func(T) rowset.RowID) iter.Seq2[T, error] {
	switch len(all) {
	case 0:
		return none[T]
	case 1:
		return all[0]
	}
	return func(yield func(T, error) bool) {
		heads := make([]pulled[T], len(all))
		for i, seq := range all {
			next, stop := iter.Pull2(seq)
			defer stop()
			heads[i].next = next
			heads[i].advance()
		}
		for {
			least := -1
			for i := range heads {
				if h := &heads[i]; h.ok && (h.err != nil || least < 0 || row(h.x) < row(heads[least].x)) {
					if least = i; h.err != nil {
						break
					}
				}
			}
			if least < 0 {
				return
			}
			h := &heads[least]
			if !yield(h.x, h.err) || h.err != nil {
				return
			}
			h.advance()
		}
	}
}

// pulled is the first element that a sequence has left.
type pulled[T any] struct {
	x    T
	err  error
	ok   bool
	next func() (T, error, bool)
}

func (h *pulled[T]) advance() { h.x, h.err, h.ok = h.next() }
