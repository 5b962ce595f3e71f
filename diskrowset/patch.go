package diskrowset

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// Patch is a rowset some of whose columns were written anew with the changes in REDO files
// folded in. Rows, keys and key filters are as before.
type Patch struct {
	Meta   *rowset.Meta     // describes the rowset afterwards
	File   Written          // the new columns; its Meta is not used
	Deltas []WrittenDelta   // UNDO of what was folded in, REDO of what was not
	Gone   []rowset.FileNum // files that the rowset does not need any more
	At     mvcc.Timestamp   // changes up to here were folded in
}

// Remove deletes the files that were written.
func (p *Patch) Remove(o WriterOptions) error {
	f := p.File
	f.Deltas = p.Deltas
	return f.Remove(o)
}

// Bytes returns the size of the files that were written.
func (p *Patch) Bytes() int64 {
	f := p.File
	f.Deltas = p.Deltas
	return f.Bytes()
}

// ChangedColumns returns the schema columns with changes in REDO files.
func (s *RowSet) ChangedColumns() (cols []int) {
	files := s.deltas.Load().files()
	for i := s.env.Schema.NumKey(); i < s.env.Schema.Len(); i++ {
		if slices.ContainsFunc(files, func(f *deltaFile) bool { return f.Touches(i) }) {
			cols = append(cols, i)
		}
	}
	return cols
}

// WritePatch writes columns anew with the changes in REDO files folded in: major delta
// compaction. What it replaces after the horizon becomes UNDO; deletions and the changes
// of other columns stay REDO. Changes in memory are not part of it. When it fails, no file
// is left. No file of changes may be flushed or merged until the rowset was replaced.
func (s *RowSet) WritePatch(ctx context.Context, cols []int, horizon mvcc.Timestamp, o WriterOptions) (p *Patch, err error) {
	if !s.Acquire() {
		return nil, ErrClosed
	}
	defer s.Release()
	d := s.deltas.Load()
	files := d.files()
	if len(files) == 0 || len(cols) == 0 {
		return nil, fmt.Errorf("%w: %d files, %d columns", ErrNoChanges, len(files), len(cols))
	}
	p = &Patch{At: files[len(files)-1].MaxTime()}
	n := &Snapshot{set: s, at: p.At, horizon: horizon, deltas: &deltas{meta: d.meta, undo: d.undo}, col: -1}
	for _, f := range files {
		n.deltas.stores = append(n.deltas.stores, f)
	}
	n.stores = n.deltas.stores
	w := &patchWriter{ctx: ctx, set: s, cols: cols, snapshot: n, o: o.withDefaults(), patch: p}
	if err := w.write(); err != nil {
		if w.patch.File.File != 0 {
			err = errors.Join(err, p.Remove(o))
		}
		return nil, err
	}
	p.Meta = w.meta()
	p.Gone = goneFiles(d.meta, p.Meta)
	return p, nil
}

// patchWriter makes a Patch.
type patchWriter struct {
	ctx      context.Context
	set      *RowSet
	cols     []int
	snapshot *Snapshot // of the base data and the REDO files
	o        WriterOptions
	patch    *Patch
	sections []rowset.Section // of the new columns
	undo     *WrittenDelta
	redo     *WrittenDelta
}

func (w *patchWriter) write() (err error) {
	if err = w.writeColumns(); err != nil {
		return err
	}
	h := &past{Snapshot: w.snapshot, redo: w.snapshot.stores, any: true}
	if w.undo, err = writeAny(w.ctx, replacedCells{h, w.cols}, rowset.SectionUndo, w.o, &w.patch.Deltas); err != nil {
		return err
	}
	w.redo, err = writeAny(w.ctx, otherChanges{mergedFiles(w.set.deltas.Load().files()), w.cols}, rowset.SectionRedo, w.o, &w.patch.Deltas)
	return err
}

// writeColumns writes the file of the new columns.
func (w *patchWriter) writeColumns() (err error) {
	num := w.o.NewFile()
	path := w.o.FS.Join(w.o.Dir, FileName(num))
	f, err := w.o.FS.Create(path, vfs.KindRowSet)
	if err != nil {
		return fmt.Errorf("creating rowset file: %w", err)
	}
	out := &output{f: f, throttle: w.o.throttle(w.ctx), buf: make([]byte, 0, bufferBytes)}
	fw := &fileWriter{writer: &writer{ctx: w.ctx, src: baseSource{w.snapshot}, o: w.o}, out: out, num: num, to: w.set.rows,
		limit: 1 << 62, cols: w.cols}
	m := w.set.Meta()
	fw.meta = rowset.Meta{Rows: m.Rows, MinKey: m.MinKey, MaxKey: m.MaxKey, MinInsert: m.MinInsert, MaxInsert: m.MaxInsert, SchemaVersion: m.SchemaVersion}
	err = fw.writeParts(fw.columns())
	if cerr := f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("closing rowset file: %w", cerr)
	}
	if err != nil {
		return errors.Join(err, w.o.FS.Remove(path))
	}
	w.sections = fw.meta.Sections
	w.patch.File = Written{File: num, Size: out.size(), Checksum: out.crc}
	return nil
}

// meta returns the description of the rowset with the new files.
func (w *patchWriter) meta() *rowset.Meta {
	m := *w.set.Meta()
	dead := map[rowset.FileNum]int64{}
	maps.Copy(dead, m.Dead)
	m.Sections = slices.DeleteFunc(slices.Clone(m.Sections), func(sec rowset.Section) bool {
		replaced := slices.ContainsFunc(w.sections, func(x rowset.Section) bool { return x.Kind == sec.Kind && x.Column == sec.Column })
		if replaced {
			dead[sec.File] += sec.Length
		}
		return replaced
	})
	m.Sections = append(m.Sections, w.sections...)
	m.Redo = nil
	if w.redo != nil {
		m.Redo = []rowset.DeltaFile{w.redo.Delta}
	}
	if w.undo != nil {
		m.Undo = append([]rowset.DeltaFile{w.undo.Delta}, m.Undo...)
	}
	used := m.Files()
	maps.DeleteFunc(dead, func(n rowset.FileNum, _ int64) bool { return !slices.Contains(used, n) })
	m.Dead = dead
	return &m
}

// goneFiles returns the files that a description of a rowset names and a later one does not.
func goneFiles(before, after *rowset.Meta) (gone []rowset.FileNum) {
	for _, n := range before.Files() {
		if !slices.Contains(after.Files(), n) {
			gone = append(gone, n)
		}
	}
	return gone
}

// baseSource gives the cells of a snapshot to a file writer.
type baseSource struct{ *Snapshot }

func (b baseSource) Rows() int { return int(b.Snapshot.Rows()) }

func (b baseSource) Fork() rowset.Source { return baseSource{b.Snapshot.fork()} }

func (baseSource) History(int, int) rowset.History { return nil }

func (b baseSource) Column(ctx context.Context, col, from, to int, dst *vector.Vector) error {
	v, err := b.Cells(ctx, col, from, to)
	if err != nil {
		return err
	}
	return dst.AppendRange(v, 0, to-from)
}

// replacedCells is the UNDO of some columns.
type replacedCells struct {
	*past
	cols []int
}

func (r replacedCells) Versions(ctx context.Context, col int) iter.Seq2[rowset.Version, error] {
	if !slices.Contains(r.cols, col) {
		return none[rowset.Version]
	}
	return r.past.Versions(ctx, col)
}

func (replacedCells) Deaths(context.Context) iter.Seq2[rowset.Event, error] {
	return none[rowset.Event]
}

// otherChanges is REDO without that of some columns.
type otherChanges struct {
	mergedFiles
	cols []int
}

func (c otherChanges) Versions(ctx context.Context, col int) iter.Seq2[rowset.Version, error] {
	if slices.Contains(c.cols, col) {
		return none[rowset.Version]
	}
	return c.mergedFiles.Versions(ctx, col)
}

// Inherit gives the rowset, which a patch made of another one, the changes in memory of
// that one. No Apply may run. Once nobody can find the old one, Supersede ends it.
func (s *RowSet) Inherit(old *RowSet) {
	s.deltasMu.Lock()
	defer s.deltasMu.Unlock()
	d, from := *s.deltas.Load(), old.deltas.Load()
	d.active = from.active
	for _, m := range from.memStores() {
		d.stores = append(d.stores, m)
	}
	s.deltas.Store(&d)
}

// Supersede is Close that also deletes some of the files once nobody reads them: those that
// what took the rowset's place does not need.
func (s *RowSet) Supersede(gone []rowset.FileNum) {
	s.gone.Store(&gone)
	s.Close()
}
