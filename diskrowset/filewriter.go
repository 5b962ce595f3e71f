package diskrowset

import (
	"fmt"
	"strconv"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// fileWriter writes one file.
type fileWriter struct {
	*writer
	out      *output
	num      rowset.FileNum
	from, to int // rows of the source
	limit    int64
	cols     []int // schema columns to be written
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
	meta := w.meta // a pointer into w would keep the source and all buffers alive
	return &meta, nil
}

// section notes that the bytes written since offset at are a section.
func (w *fileWriter) section(kind rowset.SectionKind, column schema.ColumnID, at int64) {
	w.meta.Sections = append(w.meta.Sections, rowset.Section{File: w.num, Offset: at, Length: w.out.size() - at, Kind: kind, Column: column})
}

func (w *fileWriter) writeColumns() error {
	for _, i := range w.cols {
		if err := w.writeColumn(i); err != nil {
			return fmt.Errorf("writing column %q: %w", w.o.Schema.Column(i).Name, err)
		}
	}
	return nil
}

func (w *fileWriter) writeColumn(i int) error {
	at := w.out.size()
	c := w.o.Schema.Column(i)
	cw, err := cfile.NewWriter(w.out, w.o.column(i))
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
	cw, err := cfile.NewWriter(w.out, w.o.numbers("insert times", schema.Int64))
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
	for k, z := range w.zones {
		i, at := w.cols[k], w.out.size()
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
