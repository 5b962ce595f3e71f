package diskrowset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/internal/binfmt"
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
	for _, d := range done {
		err = errors.Join(err, o.FS.Remove(w.path(d.File)))
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
	out := &output{f: f, buf: w.buf[:0]}
	fw := &fileWriter{writer: w, out: out, num: num, from: from, to: from + n, limit: w.o.limit()}
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
		w.times = w.src.InsertTimes(from, to, w.times[:0])
		for _, t := range w.times {
			if t < w.o.Horizon {
				t = 0
			}
			vector.AppendFixed(dst, int64(t))
		}
		return nil
	}, use)
}

// fileWriter writes one file.
type fileWriter struct {
	*writer
	out      *output
	num      rowset.FileNum
	from, to int // rows of the source
	limit    int64
	meta     rowset.Meta
	zones    []*cfile.ZoneMap // of schema columns
}

// write writes the whole file.
func (w *fileWriter) write() (*rowset.Meta, error) {
	rows := int64(w.to - w.from)
	w.meta = rowset.Meta{Rows: rows, LiveRows: rows, SchemaVersion: w.o.SchemaVersion}
	h := binfmt.Header{Kind: binfmt.FileRowSet, Store: w.o.StoreID, File: uint64(w.num)}
	if _, err := w.out.Write(h.AppendTo(nil)); err != nil {
		return nil, err
	}
	for _, step := range []func() error{w.writeColumns, w.writeTimes, w.writeZones, w.writeKeys, w.writeDirectory} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if err := w.out.sync(); err != nil {
		return nil, err
	}
	return &w.meta, nil
}

// section notes that the bytes written since offset at are a section.
func (w *fileWriter) section(kind rowset.SectionKind, column schema.ColumnID, at int64) {
	w.meta.Sections = append(w.meta.Sections, rowset.Section{File: w.num, Offset: at, Length: w.out.size() - at, Kind: kind, Column: column})
}

func (w *fileWriter) writeColumns() error {
	for i := range w.o.Schema.Len() {
		if err := w.writeColumn(i); err != nil {
			return fmt.Errorf("writing column %q: %w", w.o.Schema.Column(i).Name, err)
		}
	}
	return nil
}

// columnOptions returns how schema column i is written.
func columnOptions(s *schema.Schema, i int) cfile.WriterOptions {
	c := s.Column(i)
	return cfile.WriterOptions{Column: c.Name, Type: c.Type, Nullable: c.Nullable, Encoding: c.Encoding,
		Compression: c.Compression, BlockSize: c.BlockSize, ValueIndex: i == 0 && s.NumKey() == 1}
}

func (w *fileWriter) writeColumn(i int) error {
	at := w.out.size()
	c := w.o.Schema.Column(i)
	cw, err := cfile.NewWriter(w.out, columnOptions(w.o.Schema, i))
	if err != nil {
		return err
	}
	plain := int64(0)
	err = w.columnPieces(i, w.from, w.to, func(v *vector.Vector) error {
		plain += plainBytes(v)
		if err := cw.Append(v); err != nil {
			return err
		}
		return w.fits(at + cw.EstimatedSize())
	})
	if err != nil {
		return err
	}
	cw.AddMetadata(plainBytesKey, strconv.AppendInt(nil, plain, 10))
	sum, err := cw.Finish()
	if err != nil {
		return err
	}
	w.zones = append(w.zones, sum.Zones)
	w.section(rowset.SectionColumn, c.ID, at)
	return nil
}

// plainBytes returns the bytes of the cells without any encoding.
func plainBytes(v *vector.Vector) int64 {
	switch k := v.Kind(); {
	case k == schema.KindBool:
		return int64(v.Len()+7) / 8
	case k != schema.KindBytes:
		return int64(v.Len() * k.Width())
	case v.Dict() == nil:
		return int64(4*v.Len()) + int64(v.Offsets()[v.Len()]-v.Offsets()[0])
	}
	n := int64(4 * v.Len())
	for i := range v.Len() {
		n += int64(len(v.BytesAt(i)))
	}
	return n
}

// fits reports the file as too large when its estimated size passes the limit.
func (w *fileWriter) fits(size int64) error {
	if size > w.limit {
		return errTooLarge
	}
	return nil
}

// writeTimes writes the insert times, of which those below the horizon become 0. When
// all are the same they are left out.
func (w *fileWriter) writeTimes() error {
	lo, hi := int64(mvcc.Max), int64(0)
	err := w.timePieces(w.from, w.to, func(v *vector.Vector) error {
		for _, t := range vector.Values[int64](v) {
			lo, hi = min(lo, t), max(hi, t)
		}
		return nil
	})
	w.meta.MinInsert, w.meta.MaxInsert = mvcc.Timestamp(lo), mvcc.Timestamp(hi)
	if err != nil || lo == hi {
		return err
	}
	at := w.out.size()
	cw, err := cfile.NewWriter(w.out, cfile.WriterOptions{Column: "insert times", Type: schema.Int64,
		Encoding: schema.EncodingBitShuffle, NoZones: true})
	if err != nil {
		return err
	}
	if err := w.timePieces(w.from, w.to, cw.Append); err != nil {
		return fmt.Errorf("writing insert times: %w", err)
	}
	if _, err := cw.Finish(); err != nil {
		return fmt.Errorf("writing insert times: %w", err)
	}
	w.section(rowset.SectionInsertTimes, -1, at)
	return nil
}

// writeZones writes the zone maps and takes the key columns' bounds from them.
func (w *fileWriter) writeZones() error {
	var buf []byte
	for i, z := range w.zones {
		at := w.out.size()
		buf = z.AppendTo(buf[:0])
		if _, err := w.out.Write(buf); err != nil {
			return err
		}
		w.section(rowset.SectionZoneMap, w.o.Schema.Column(i).ID, at)
		if i < w.o.Schema.NumKey() {
			w.meta.KeyBounds = append(w.meta.KeyBounds, rowset.Bounds{Min: z.File.Min, Max: z.File.Max})
		}
	}
	return nil
}

// writeKeys writes the key filters and the key index in one pass over the keys: the
// filters go to the file at once, the index, far smaller, is held until they are done.
func (w *fileWriter) writeKeys() error {
	k, err := newKeyWriter(w)
	if err != nil {
		return err
	}
	err = w.pieces(schema.KindBytes, w.from, w.to, func(from, to int, dst *vector.Vector) error {
		return w.src.Keys(w.ctx, from, to, dst)
	}, k.add)
	if err != nil {
		return fmt.Errorf("writing keys: %w", err)
	}
	if err := k.finish(); err != nil {
		return fmt.Errorf("writing keys: %w", err)
	}
	return nil
}

// writeDirectory writes directory and trailer.
func (w *fileWriter) writeDirectory() error {
	d := Directory{SchemaVersion: w.meta.SchemaVersion, Rows: w.meta.Rows, MinKey: w.meta.MinKey, MaxKey: w.meta.MaxKey,
		MinInsert: w.meta.MinInsert, MaxInsert: w.meta.MaxInsert, NumKey: w.o.Schema.NumKey(),
		Columns: w.o.Schema.Columns(), Sections: w.meta.Sections}
	if _, err := w.out.Write(d.appendTo(nil)); err != nil {
		return err
	}
	return w.fits(w.out.size())
}
