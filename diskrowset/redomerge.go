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

// MergeRedo writes the changes of all files that the rowset has at present into a new
// one, and returns how many they are, at least two. When it fails, no file is left.
func (s *RowSet) MergeRedo(ctx context.Context, o WriterOptions) (w WrittenRedo, merged int, err error) {
	if !s.Acquire() {
		return w, 0, ErrClosed
	}
	defer s.Release()
	files := s.deltas.Load().redoFiles()
	if len(files) < 2 {
		return w, 0, fmt.Errorf("%w: %d files", ErrNoChanges, len(files))
	}
	w, err = writeRedo(ctx, &mergedFiles{ctx: ctx, files: files}, o)
	return w, len(files), err
}

// MetaMerged returns the description of the rowset with its first n files of changes
// replaced by w.
func (s *RowSet) MetaMerged(n int, w *WrittenRedo) *rowset.Meta {
	m := *s.Meta()
	m.Redo = append([]rowset.DeltaFile{w.Delta}, m.Redo[n:]...)
	return &m
}

// MergedDeltas replaces the first n files of changes by the one that MergeRedo made of
// them. Meta, which MetaMerged returned, describes the rowset from now on. The old files
// are deleted when no scan reads them.
func (s *RowSet) MergedDeltas(n int, w *WrittenRedo, meta *rowset.Meta) error {
	if !s.Acquire() {
		return ErrClosed
	}
	defer s.Release()
	s.deltasMu.Lock()
	defer s.deltasMu.Unlock()
	d := s.deltas.Load()
	old := d.redoFiles()
	if n > len(old) {
		return fmt.Errorf("rowset %d: %d files of changes merged, of %d", s.meta.ID, n, len(old))
	}
	next := &deltas{meta: meta, active: d.active}
	next.stores = append([]delta.Reader{newRedoFile(s, &w.Delta)}, d.stores[n:]...)
	s.deltas.Store(next)
	s.retire(old[:n])
	return nil
}

// retire notes files that only readers which began before now may use. They are let go
// when there is no reader; see Release.
func (s *RowSet) retire(files []*redoFile) {
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
func letGo(files []*redoFile, remove bool) {
	for _, f := range files {
		f.forget()
		f.file.release(remove)
	}
}

// changeSource is what is written into a file of changes.
type changeSource interface {
	MinTime() mvcc.Timestamp
	MaxTime() mvcc.Timestamp
	Touches(col int) bool
	HasLife() bool
	EachCell(col int, fn eachCell) error
	EachDelete(fn eachDelete) error
}

type (
	eachCell   = func(row rowset.RowID, ts mvcc.Timestamp, cells *vector.Vector, i int) error
	eachDelete = func(row rowset.RowID, ts mvcc.Timestamp) error
)

// mergedFiles is the changes of several files, which are in the order of time.
type mergedFiles struct {
	ctx   context.Context
	files []*redoFile
}

func (m *mergedFiles) MinTime() mvcc.Timestamp { return m.files[0].MinTime() }

func (m *mergedFiles) MaxTime() mvcc.Timestamp { return m.files[len(m.files)-1].MaxTime() }

func (m *mergedFiles) Touches(col int) bool {
	return slices.ContainsFunc(m.files, func(f *redoFile) bool { return f.Touches(col) })
}

func (m *mergedFiles) HasLife() bool { return slices.ContainsFunc(m.files, (*redoFile).HasLife) }

// EachCell calls fn for every change of a column, by row and then by time.
func (m *mergedFiles) EachCell(col int, fn eachCell) error {
	var inputs []*mergeInput
	for _, f := range m.files {
		if !f.Touches(col) {
			continue
		}
		l, p, err := f.changes(m.ctx, col)
		if err != nil {
			return err
		}
		inputs = append(inputs, &mergeInput{places: p, cells: cursor{col: l.cells}})
	}
	return mergeEach(inputs, func(in *mergeInput, row rowset.RowID, ts mvcc.Timestamp) error {
		page, i, err := in.cells.at(m.ctx, in.next)
		if err != nil {
			return err
		}
		return fn(row, ts, page, i)
	})
}

// EachDelete calls fn for every deletion, by row.
func (m *mergedFiles) EachDelete(fn eachDelete) error {
	var inputs []*mergeInput
	for _, f := range m.files {
		if !f.HasLife() {
			continue
		}
		d, err := f.open(m.ctx)
		if err != nil {
			return err
		}
		p, err := f.places(m.ctx, d.deletes)
		if err != nil {
			return err
		}
		inputs = append(inputs, &mergeInput{places: p})
	}
	return mergeEach(inputs, func(_ *mergeInput, row rowset.RowID, ts mvcc.Timestamp) error { return fn(row, ts) })
}

// mergeInput is a list of changes that is being merged.
type mergeInput struct {
	*places
	cells cursor
	next  int
}

// mergeEach calls fn for every change of the lists, which are in the order of time, by row
// and then by time.
func mergeEach(inputs []*mergeInput, fn func(in *mergeInput, row rowset.RowID, ts mvcc.Timestamp) error) error {
	for {
		row, more := int32(0), false
		for _, in := range inputs {
			if in.next < len(in.rows) && (!more || in.rows[in.next] < row) {
				row, more = in.rows[in.next], true
			}
		}
		if !more {
			return nil
		}
		for _, in := range inputs {
			for ; in.next < len(in.rows) && in.rows[in.next] == row; in.next++ {
				if err := fn(in, rowset.RowID(row), mvcc.Timestamp(in.times[in.next])); err != nil {
					return err
				}
			}
		}
	}
}
