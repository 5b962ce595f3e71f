package diskrowset

import (
	"context"
	"errors"
	"fmt"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// ErrNoChanges is returned by WriteRedo for a store without changes.
var ErrNoChanges = errors.New("no changes to write")

// WrittenRedo is a file that WriteRedo made. It is synced; its directory entry is not.
type WrittenRedo struct {
	File     rowset.FileNum
	Size     int64
	Checksum uint32 // CRC-32C of the whole file
	Delta    rowset.DeltaFile
}

// WriteRedo writes frozen changes into a new file. When it fails, no file is left.
func WriteRedo(ctx context.Context, m *delta.MemStore, o WriterOptions) (w WrittenRedo, err error) {
	switch {
	case m.Entries() == 0:
		return w, ErrNoChanges
	case m.Revivals() > 0:
		return w, errors.New("changes of a rowset on disk put rows back")
	}
	return writeRedo(ctx, m, o)
}

func writeRedo(ctx context.Context, changes changeSource, o WriterOptions) (w WrittenRedo, err error) {
	num := o.NewFile()
	path := o.FS.Join(o.Dir, DeltaName(num))
	f, err := o.FS.Create(path, vfs.KindDelta)
	if err != nil {
		return w, fmt.Errorf("creating delta file: %w", err)
	}
	out := &output{f: f, throttle: o.throttle(ctx), buf: make([]byte, 0, bufferBytes)}
	rw := &redoWriter{ctx: ctx, changes: changes, schema: o.Schema, out: out}
	rw.dir.Header = binfmt.Header{Kind: binfmt.FileDelta, Store: o.StoreID, File: uint64(num)}
	err = rw.write()
	if cerr := f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("closing delta file: %w", cerr)
	}
	if err != nil {
		return w, errors.Join(err, o.FS.Remove(path))
	}
	return WrittenRedo{File: num, Size: out.size(), Checksum: out.crc, Delta: rw.dir.Delta(out.size())}, nil
}

// redoWriter writes one file of changes.
type redoWriter struct {
	ctx     context.Context
	changes changeSource
	schema  *schema.Schema
	out     *output
	dir     RedoDirectory

	// Memory that is used again.
	rows, times, cells vector.Vector
}

func (w *redoWriter) write() error {
	if _, err := w.out.Write(w.dir.Header.AppendTo(nil)); err != nil {
		return err
	}
	w.dir.MinTime, w.dir.MaxTime = w.changes.MinTime(), w.changes.MaxTime()
	for i := range w.schema.Len() {
		if w.changes.Touches(i) {
			if err := w.writeColumn(i); err != nil {
				return fmt.Errorf("writing changes of column %q: %w", w.schema.Column(i).Name, err)
			}
		}
	}
	if err := w.writeDeletes(); err != nil {
		return fmt.Errorf("writing deletions: %w", err)
	}
	if _, err := w.out.Write(w.dir.appendTo(nil)); err != nil {
		return err
	}
	return w.out.sync()
}

// section returns the bytes written since offset at as a section.
func (w *redoWriter) section(at int64, col schema.ColumnID) rowset.Section {
	return rowset.Section{File: rowset.FileNum(w.dir.Header.File), Offset: at, Length: w.out.size() - at, Kind: rowset.SectionRedo, Column: col}
}

// writeColumn writes the cells in one pass over the changes, and then where they belong.
func (w *redoWriter) writeColumn(i int) error {
	c := w.schema.Column(i)
	at := w.out.size()
	o := columnOptions(w.schema, i)
	o.ValueIndex, o.NoZones = false, true
	cw, err := cfile.NewWriter(w.out, o)
	if err != nil {
		return err
	}
	w.reset(c.Kind())
	err = w.changes.EachCell(i, func(row rowset.RowID, ts mvcc.Timestamp, cells *vector.Vector, k int) error {
		w.add(row, ts)
		if err := w.cells.AppendFrom(cells, k); err != nil {
			return err
		}
		return w.flushCells(cw, firstPiece)
	})
	if err == nil {
		err = w.flushCells(cw, 1)
	}
	if err != nil {
		return err
	}
	if _, err := cw.Finish(); err != nil {
		return err
	}
	out := RedoColumn{Column: *c, Values: w.section(at, c.ID)}
	if out.RedoList, err = w.writeList(c.ID); err == nil {
		w.dir.Columns = append(w.dir.Columns, out)
	}
	return err
}

func (w *redoWriter) reset(kind schema.Kind) {
	w.rows.Reset(schema.KindInt32)
	w.times.Reset(schema.KindInt64)
	w.cells.Reset(kind)
}

func (w *redoWriter) add(row rowset.RowID, ts mvcc.Timestamp) {
	vector.AppendFixed(&w.rows, int32(row))
	vector.AppendFixed(&w.times, int64(ts))
}

// flushCells writes the cells gathered when they are at least n or large.
func (w *redoWriter) flushCells(cw *cfile.Writer, n int) error {
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

func (w *redoWriter) writeDeletes() (err error) {
	if !w.changes.HasLife() {
		return nil
	}
	w.reset(schema.KindBool)
	if err := w.changes.EachDelete(func(row rowset.RowID, ts mvcc.Timestamp) error {
		w.add(row, ts)
		return nil
	}); err != nil {
		return err
	}
	w.dir.Deletes, err = w.writeList(-1)
	return err
}

// writeList writes the rows and times gathered.
func (w *redoWriter) writeList(col schema.ColumnID) (l RedoList, err error) {
	l.Count = int64(w.rows.Len())
	if l.Rows, err = w.writeNumbers("rows of changes", schema.Int32, &w.rows, col); err != nil {
		return l, err
	}
	l.Times, err = w.writeNumbers("times of changes", schema.Int64, &w.times, col)
	return l, err
}

func (w *redoWriter) writeNumbers(name string, typ schema.Type, v *vector.Vector, col schema.ColumnID) (rowset.Section, error) {
	at := w.out.size()
	cw, err := cfile.NewWriter(w.out, cfile.WriterOptions{Column: name, Type: typ, Encoding: schema.EncodingBitShuffle, NoZones: true})
	if err == nil {
		err = cw.Append(v)
	}
	if err == nil {
		_, err = cw.Finish()
	}
	return w.section(at, col), err
}
