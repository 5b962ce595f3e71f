package diskrowset

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// ErrNoChanges is returned when there is nothing to write into a file of changes.
var ErrNoChanges = errors.New("no changes to write")

// WrittenDelta is a file of changes. It is synced; its directory entry is not.
type WrittenDelta struct {
	File     rowset.FileNum
	Size     int64
	Checksum uint32 // CRC-32C of the whole file
	Delta    rowset.DeltaFile
}

// Kind returns the kind of the file.
func (w *WrittenDelta) Kind() binfmt.FileKind { return fileKind(w.Delta.Section.Kind) }

// changeSource is what is written into a file of changes: of REDO the cells that were
// set and the deletions, of UNDO the cells that were replaced and the deaths and births
// of earlier lives. All are in order of row and then of time.
type changeSource interface {
	Versions(ctx context.Context, col int) iter.Seq2[rowset.Version, error]
	Deaths(ctx context.Context) iter.Seq2[rowset.Event, error]
	Births(ctx context.Context) iter.Seq2[rowset.Event, error]
}

// WriteRedo writes frozen changes into a new file. When it fails, no file is left.
func WriteRedo(ctx context.Context, m *delta.MemStore, o WriterOptions) (w WrittenDelta, err error) {
	switch {
	case m.Entries() == 0:
		return w, ErrNoChanges
	case m.Revivals() > 0:
		return w, errors.New("changes of a rowset on disk put rows back")
	}
	return writeDelta(ctx, memChanges{m}, rowset.SectionRedo, o)
}

// writeDelta writes a file of changes. When there are none it is ErrNoChanges; when it
// fails, no file is left.
func writeDelta(ctx context.Context, changes changeSource, kind rowset.SectionKind, o WriterOptions) (w WrittenDelta, err error) {
	num := o.NewFile()
	path := o.FS.Join(o.Dir, DeltaName(num))
	f, err := o.FS.Create(path, vfs.KindDelta)
	if err != nil {
		return w, fmt.Errorf("creating delta file: %w", err)
	}
	out := &output{f: f, throttle: o.throttle(ctx), buf: make([]byte, 0, bufferBytes)}
	dw := &deltaWriter{ctx: ctx, o: o, changes: changes, schema: o.Schema, out: out}
	dw.dir.Header = binfmt.Header{Kind: fileKind(kind), Store: o.StoreID, File: uint64(num)}
	dw.dir.MinTime = mvcc.Max
	err = dw.write()
	if cerr := f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("closing delta file: %w", cerr)
	}
	if err != nil {
		return w, errors.Join(err, o.FS.Remove(path))
	}
	return WrittenDelta{File: num, Size: out.size(), Checksum: out.crc, Delta: dw.dir.Delta(out.size())}, nil
}

// deltaWriter writes one file of changes.
type deltaWriter struct {
	ctx     context.Context
	o       WriterOptions
	changes changeSource
	schema  *schema.Schema
	out     *output
	dir     DeltaDirectory

	// Memory that is used again.
	rows, times, cells vector.Vector
}

func (w *deltaWriter) write() error {
	if _, err := w.out.Write(w.dir.Header.AppendTo(nil)); err != nil {
		return err
	}
	for i := w.schema.NumKey(); i < w.schema.Len(); i++ {
		if err := w.writeColumn(i); err != nil {
			return fmt.Errorf("writing changes of column %q: %w", w.schema.Column(i).Name, err)
		}
	}
	var err error
	if w.dir.Deletes, err = w.writeEvents(w.changes.Deaths(w.ctx)); err != nil {
		return fmt.Errorf("writing deletions: %w", err)
	}
	if w.dir.undo() {
		if w.dir.Births, err = w.writeEvents(w.changes.Births(w.ctx)); err != nil {
			return fmt.Errorf("writing births: %w", err)
		}
	}
	if w.dir.MinTime > w.dir.MaxTime {
		return ErrNoChanges
	}
	if _, err := w.out.Write(w.dir.appendTo(nil)); err != nil {
		return err
	}
	return w.out.sync()
}

// section returns the bytes written since offset at as a section.
func (w *deltaWriter) section(at int64, col schema.ColumnID) rowset.Section {
	return rowset.Section{File: rowset.FileNum(w.dir.Header.File), Offset: at, Length: w.out.size() - at, Kind: w.dir.kind(), Column: col}
}

// writeColumn writes the cells in one pass over the changes, and then where they belong.
// Of a column without changes it writes nothing.
func (w *deltaWriter) writeColumn(i int) error {
	c := w.schema.Column(i)
	at := w.out.size()
	var cw *cfile.Writer
	w.reset(c.Kind())
	for v, err := range w.changes.Versions(w.ctx, i) {
		if err == nil && cw == nil {
			cw, err = w.newColumn(i)
		}
		if err != nil {
			return err
		}
		w.add(v.Event)
		if err := w.cells.AppendFrom(v.Cells, v.At); err != nil {
			return err
		}
		if err := w.flushCells(cw, firstPiece); err != nil {
			return err
		}
	}
	if cw == nil {
		return nil
	}
	if err := w.flushCells(cw, 1); err != nil {
		return err
	}
	if _, err := cw.Finish(); err != nil {
		return err
	}
	out := DeltaColumn{Column: *c, Values: w.section(at, c.ID)}
	var err error
	if out.DeltaList, err = w.writeList(c.ID); err == nil {
		w.dir.Columns = append(w.dir.Columns, out)
	}
	return err
}

func (w *deltaWriter) newColumn(i int) (*cfile.Writer, error) {
	o := w.o.column(i)
	o.ValueIndex, o.NoZones = false, true
	return cfile.NewWriter(w.out, o)
}

func (w *deltaWriter) reset(kind schema.Kind) {
	w.rows.Reset(schema.KindInt32)
	w.times.Reset(schema.KindInt64)
	w.cells.Reset(kind)
}

func (w *deltaWriter) add(e rowset.Event) {
	vector.AppendFixed(&w.rows, int32(e.Row))
	vector.AppendFixed(&w.times, int64(e.Time))
	w.dir.MinTime, w.dir.MaxTime = min(w.dir.MinTime, e.Time), max(w.dir.MaxTime, e.Time)
}

// flushCells writes the cells gathered when they are at least n or large.
func (w *deltaWriter) flushCells(cw *cfile.Writer, n int) error {
	if w.cells.Len() < n && (w.cells.Kind() != schema.KindBytes || len(w.cells.Data()) < pieceBytes) {
		return nil
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	err := cw.Append(&w.cells)
	w.cells.Reset(w.cells.Kind())
	return err
}

// writeEvents writes the list of events, and of none nothing.
func (w *deltaWriter) writeEvents(events iter.Seq2[rowset.Event, error]) (l DeltaList, err error) {
	w.reset(schema.KindBool)
	for e, err := range events {
		if err != nil {
			return l, err
		}
		w.add(e)
	}
	if w.rows.Len() == 0 {
		return l, nil
	}
	return w.writeList(-1)
}

// writeList writes the rows and times gathered.
func (w *deltaWriter) writeList(col schema.ColumnID) (l DeltaList, err error) {
	l.Count = int64(w.rows.Len())
	if l.Rows, err = w.writeNumbers("rows of changes", schema.Int32, &w.rows, col); err != nil {
		return l, err
	}
	l.Times, err = w.writeNumbers("times of changes", schema.Int64, &w.times, col)
	return l, err
}

func (w *deltaWriter) writeNumbers(name string, typ schema.Type, v *vector.Vector, col schema.ColumnID) (rowset.Section, error) {
	at := w.out.size()
	cw, err := cfile.NewWriter(w.out, w.o.numbers(name, typ))
	if err == nil {
		err = cw.Append(v)
	}
	if err == nil {
		_, err = cw.Finish()
	}
	return w.section(at, col), err
}

// memChanges are the changes of a store in memory.
type memChanges struct{ *delta.MemStore }

var errStopped = errors.New("the reader stopped")

// Versions yields the cells that were set.
func (m memChanges) Versions(_ context.Context, col int) iter.Seq2[rowset.Version, error] {
	return sequence(func(yield func(rowset.Version) error) error {
		return m.EachCell(col, func(row rowset.RowID, ts mvcc.Timestamp, cells *vector.Vector, i int) error {
			return yield(rowset.Version{Event: rowset.Event{Row: row, Time: ts}, Cells: cells, At: i})
		})
	})
}

// Deaths yields the deletions.
func (m memChanges) Deaths(context.Context) iter.Seq2[rowset.Event, error] {
	return sequence(func(yield func(rowset.Event) error) error {
		return m.EachDelete(func(row rowset.RowID, ts mvcc.Timestamp) error { return yield(rowset.Event{Row: row, Time: ts}) })
	})
}

// Births yields nothing.
func (memChanges) Births(context.Context) iter.Seq2[rowset.Event, error] { return none[rowset.Event] }

// none is the empty sequence.
func none[T any](func(T, error) bool) {}

// sequence turns a function that calls yield for every element, until that fails, into
// a sequence.
func sequence[T any](each func(yield func(T) error) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := each(func(x T) error {
			if !yield(x, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			var zero T
			yield(zero, err)
		}
	}
}
