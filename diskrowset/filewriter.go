package diskrowset

import (
	"fmt"
	"strconv"
	"sync/atomic"

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
	zones    []*cfile.ZoneMap // of the columns, in order
	size     atomic.Int64     // bytes of the parts, about, those in the making included
}

// write writes the whole file.
func (w *fileWriter) write() (*rowset.Meta, error) {
	rows := int64(w.to - w.from)
	w.meta = rowset.Meta{Rows: rows, LiveRows: rows, SchemaVersion: w.o.SchemaVersion}
	parts := append(w.columns(), &part{of: "insert times", make: w.makeTimes}, &part{of: "keys", make: w.makeKeys})
	if err := w.writeParts(parts); err != nil {
		return nil, err
	}
	meta := w.meta // a pointer into w would keep the source and all buffers alive
	return &meta, nil
}

// columns returns the parts of the columns.
func (w *fileWriter) columns() (parts []*part) {
	w.zones = make([]*cfile.ZoneMap, len(w.cols))
	for k, i := range w.cols {
		parts = append(parts, &part{of: fmt.Sprintf("column %q", w.o.Schema.Column(i).Name),
			make: func(p *part) error { return w.makeColumn(p, k, i) }})
	}
	return parts
}

// writeParts writes a file: header, columns, other parts but the last, zone maps, the last
// part if it is not a column, directory.
func (w *fileWriter) writeParts(parts []*part) error {
	h := binfmt.Header{Kind: binfmt.FileRowSet, Store: w.o.StoreID, File: uint64(w.num)}
	if _, err := w.out.Write(h.AppendTo(nil)); err != nil {
		return err
	}
	zonesAt := max(len(w.cols), len(parts)-1)
	err := w.makeAll(parts, func(k int) error {
		if k == zonesAt {
			if err := w.writeZones(); err != nil {
				return err
			}
		}
		return w.add(parts[k])
	})
	if err == nil && zonesAt == len(parts) {
		err = w.writeZones()
	}
	if err == nil {
		err = w.writeDirectory()
	}
	if err != nil {
		return err
	}
	return w.out.sync()
}

// add appends a part to the file.
func (w *fileWriter) add(p *part) error {
	base := w.out.size()
	for _, s := range p.sections {
		s.Offset += base
		w.meta.Sections = append(w.meta.Sections, s)
	}
	return p.buf.moveTo(w.out)
}

// makeColumn makes the part of schema column i, the kth to be written.
func (w *fileWriter) makeColumn(p *part, k, i int) error {
	cw, err := cfile.NewWriter(&p.buf, w.o.column(i))
	if err != nil {
		return err
	}
	c := columnWriter{file: w, part: p, col: i, out: cw}
	if err := c.write(w.from, w.to); err != nil {
		return err
	}
	cw.AddMetadata(plainBytesKey, strconv.AppendInt(nil, c.plain, 10))
	sum, err := cw.Finish()
	if err != nil {
		return err
	}
	w.zones[k] = sum.Zones
	p.section(w.num, rowset.SectionColumn, w.o.Schema.Column(i).ID, 0)
	return w.grow(p, int64(p.buf.Len()))
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

// grow notes the present size of a part and reports the file as too large when the sum of
// all passes the limit.
func (w *fileWriter) grow(p *part, size int64) error {
	all := w.size.Add(size - p.size)
	p.size = size
	return w.fits(all)
}

func (w *fileWriter) fits(size int64) error {
	if size > w.limit {
		return errTooLarge
	}
	return nil
}

// makeTimes makes the part of the insert times, of which those below the horizon become 0.
// When all are the same, which is known at the end, they are left out.
func (w *fileWriter) makeTimes(p *part) error {
	o := w.o.numbers("insert times", schema.Int64)
	o.Habit = w.o.Habits.of(insertTimes)
	cw, err := cfile.NewWriter(&p.buf, o)
	if err != nil {
		return err
	}
	lo, hi := int64(mvcc.Max), int64(0)
	err = p.w.timePieces(w.from, w.to, func(v *vector.Vector) error {
		for _, t := range vector.Values[int64](v) {
			lo, hi = min(lo, t), max(hi, t)
		}
		return cw.Append(v)
	})
	if err != nil {
		return err
	}
	w.meta.MinInsert, w.meta.MaxInsert = mvcc.Timestamp(lo), mvcc.Timestamp(hi)
	if _, err := cw.Finish(); err != nil {
		return err
	}
	if lo == hi {
		p.buf.free()
		return nil
	}
	p.section(w.num, rowset.SectionInsertTimes, -1, 0)
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
		w.meta.Sections = append(w.meta.Sections, rowset.Section{File: w.num, Offset: at, Length: w.out.size() - at,
			Kind: rowset.SectionZoneMap, Column: w.o.Schema.Column(i).ID})
		if i < w.o.Schema.NumKey() {
			w.meta.KeyBounds = append(w.meta.KeyBounds, rowset.Bounds{Min: z.File.Min, Max: z.File.Max})
		}
	}
	return nil
}

// makeKeys makes the part of the key filters and the key index in one pass over the keys.
func (w *fileWriter) makeKeys(p *part) error {
	k, err := newKeyWriter(w, p)
	if err != nil {
		return err
	}
	err = p.w.pieces(schema.KindBytes, w.from, w.to, func(from, to int, dst *vector.Vector) error {
		return p.w.src.Keys(p.w.ctx, from, to, dst)
	}, k.add)
	if err != nil {
		return err
	}
	return k.finish()
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
