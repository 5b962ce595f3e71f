package diskrowset

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// Rows are read from the source in pieces of pieceBytes or somewhat more.
const (
	firstPiece = 256
	maxPiece   = 1 << 16
	pieceBytes = 1 << 20
)

// plainBytesKey names the column metadata that holds the bytes of the cells before
// encoding.
const plainBytesKey = "minikudu.plain_bytes"

// errTooLarge says that the rows at hand would make a file larger than allowed.
var errTooLarge = errors.New("rowset file exceeds its limit")

// Write writes the rows of src into rowset files of about the target size, each with a
// consecutive range of keys. When it fails, no file is left.
func Write(ctx context.Context, src rowset.Source, o WriterOptions) ([]Written, error) {
	w := &writer{ctx: ctx, src: src, o: o.withDefaults(), buf: make([]byte, 0, bufferBytes)}
	done, err := w.writeAll()
	if err == nil {
		return done, nil
	}
	for i := range done {
		err = errors.Join(err, done[i].Remove(o))
	}
	return nil, err
}

// writer writes the files of one source.
type writer struct {
	ctx   context.Context
	src   rowset.Source
	o     WriterOptions
	sizer sizer

	// Memory that is used again.
	buf     []byte // of output
	scratch vector.Vector
	times   []mvcc.Timestamp
}

func (w *writer) path(n rowset.FileNum) string { return w.o.FS.Join(w.o.Dir, FileName(n)) }

// writeAll returns the files written, also when it fails.
func (w *writer) writeAll() (done []Written, err error) {
	w.sizer = newSizer(w)
	for from, total := 0, w.src.Rows(); from < total; {
		n, err := w.sizer.rows(from, total)
		if err != nil {
			return done, err
		}
		d, err := w.writeFitting(from, n)
		if err != nil {
			return done, err
		}
		done = append(done, d)
		from += int(d.Meta.Rows)
	}
	return done, nil
}

// writeFitting writes a file of n rows, or of fewer when the estimate was too low.
func (w *writer) writeFitting(from, n int) (Written, error) {
	for {
		d, err := w.writeFile(from, n)
		if !errors.Is(err, errTooLarge) || n == 1 {
			if err == nil {
				w.sizer.wrote(n, d.Size)
				err = w.writeHistory(&d, from)
			}
			return d, err
		}
		n = w.sizer.shrink(n)
	}
}

// writeFile writes rows [from, from+n) into a new file, which it removes when it fails.
func (w *writer) writeFile(from, n int) (d Written, err error) {
	num := w.o.NewFile()
	f, err := w.o.FS.Create(w.path(num), vfs.KindRowSet)
	if err != nil {
		return d, fmt.Errorf("creating rowset file: %w", err)
	}
	out := &output{f: f, throttle: w.o.throttle(w.ctx), buf: w.buf[:0]}
	fw := &fileWriter{writer: w, out: out, num: num, from: from, to: from + n, limit: w.o.limit()}
	for i := range w.o.Schema.Len() {
		fw.cols = append(fw.cols, i)
	}
	if n == 1 {
		fw.limit = math.MaxInt64
	}
	meta, err := fw.write()
	if cerr := f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("closing rowset file: %w", cerr)
	}
	if err != nil {
		return d, errors.Join(err, w.o.FS.Remove(w.path(num)))
	}
	return Written{Meta: meta, File: num, Size: out.size(), Checksum: out.crc}, nil
}

// writeHistory writes what is kept of the history of a file's rows, of which the first is
// row from of the source. When that fails it removes all that was written.
func (w *writer) writeHistory(d *Written, from int) error {
	h := w.src.History(from, from+int(d.Meta.Rows))
	if h == nil {
		return nil
	}
	undo, err := writeAny(w.ctx, h, rowset.SectionUndo, w.o, &d.Deltas)
	if err == nil && undo != nil {
		d.Meta.Undo = append(d.Meta.Undo, undo.Delta)
	}
	var redo *WrittenDelta
	if err == nil {
		redo, err = writeAny(w.ctx, ghosts{h}, rowset.SectionRedo, w.o, &d.Deltas)
	}
	if err == nil && redo != nil {
		d.Meta.Redo = append(d.Meta.Redo, redo.Delta)
		d.Meta.LiveRows -= redo.Delta.Deletes
	}
	if err != nil {
		err = errors.Join(err, d.Remove(w.o))
	}
	return err
}

// writeAny is writeDelta that adds the file to those written, and is nil when there are no
// changes.
func writeAny(ctx context.Context, changes changeSource, kind rowset.SectionKind, o WriterOptions, written *[]WrittenDelta) (*WrittenDelta, error) {
	x, err := writeDelta(ctx, changes, kind, o)
	switch {
	case errors.Is(err, ErrNoChanges):
		return nil, nil
	case err != nil:
		return nil, err
	}
	*written = append(*written, x)
	return &x, nil
}

// ghosts are the deletions of rows that were not inserted again, as REDO.
type ghosts struct{ rowset.History }

func (g ghosts) Versions(context.Context, int) iter.Seq2[rowset.Version, error] {
	return none[rowset.Version]
}

func (g ghosts) Deaths(ctx context.Context) iter.Seq2[rowset.Event, error] { return g.Ghosts(ctx) }

// pieces reads rows [from, to) piece by piece into a scratch vector of the given kind
// and gives each piece to use.
func (w *writer) pieces(kind schema.Kind, from, to int, read func(from, to int, dst *vector.Vector) error, use func(*vector.Vector) error) error {
	for n := firstPiece; from < to; {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		end := min(from+n, to)
		w.scratch.Reset(kind)
		err := read(from, end, &w.scratch)
		if n > 1 && errors.Is(err, vector.ErrTooLarge) {
			n /= 2
			continue
		}
		if err == nil && w.scratch.Len() != end-from {
			err = fmt.Errorf("source gave %d rows of %d", w.scratch.Len(), end-from)
		}
		if err != nil {
			return err
		}
		size := plainBytes(&w.scratch)
		if err := use(&w.scratch); err != nil {
			return err
		}
		from = end
		switch {
		case size < pieceBytes:
			n = min(2*n, maxPiece)
		case size > 4*pieceBytes:
			n = max(n/2, 1)
		}
	}
	return nil
}

// columnPieces gives use the cells of schema column i piece by piece.
func (w *writer) columnPieces(i, from, to int, use func(*vector.Vector) error) error {
	return w.pieces(w.o.Schema.Column(i).Kind(), from, to, func(from, to int, dst *vector.Vector) error {
		return w.src.Column(w.ctx, i, from, to, dst)
	}, use)
}

// timePieces gives use the insert times as they are stored, as an int64 vector.
func (w *writer) timePieces(from, to int, use func(*vector.Vector) error) error {
	return w.pieces(schema.KindInt64, from, to, func(from, to int, dst *vector.Vector) error {
		var err error
		if w.times, err = w.src.InsertTimes(w.ctx, from, to, w.times[:0]); err != nil {
			return err
		}
		for _, t := range w.times {
			if t < w.o.Horizon {
				t = 0
			}
			vector.AppendFixed(dst, int64(t))
		}
		return nil
	}, use)
}
