package manifest

import (
	"math"
	"time"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
)

// cursor reads the payload of one field.
type cursor struct{ *binfmt.Reader }

// each calls on for every field of c. A field that on does not know it must hand to
// c.Skip; one that it knows it must read to the end.
func (c cursor) each(on func(tag uint64, f cursor)) {
	for {
		tag, f, more := c.Field()
		if !more {
			return
		}
		at := c.Offset() - f.Len()
		on(tag, cursor{f})
		if f.Err() == nil && f.Len() > 0 && tag&1 != 0 {
			f.Fail("%d bytes too many in field %d", f.Len(), tag)
		}
		c.Merge(f, at)
	}
}

func (c cursor) time() mvcc.Timestamp { return mvcc.Timestamp(c.Uvarint()) }
func (c cursor) u32() uint32          { return uint32(c.UvarintMax(math.MaxUint32)) }
func (c cursor) u16() uint16          { return uint16(c.UvarintMax(math.MaxUint16)) }
func (c cursor) u8() uint8            { return uint8(c.UvarintMax(math.MaxUint8)) }
func (c cursor) i64() int64           { return int64(c.UvarintMax(math.MaxInt64)) }
func (c cursor) int() int             { return int(c.UvarintMax(math.MaxInt32)) }
func (c cursor) flag() bool           { return c.UvarintMax(1) == 1 }
func (c cursor) bytes() []byte        { return append([]byte{}, c.Rest()...) }
func (c cursor) text() string         { return string(c.Rest()) }
func (c cursor) column() schema.ColumnID {
	return schema.ColumnID(c.UvarintMax(math.MaxInt32))
}

// Decode decodes an encoded edit.
func (e *Edit) Decode(src []byte) error {
	c := cursor{binfmt.NewReader(src)}
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case tagClockFloor:
			e.ClockFloor = f.time()
		case tagNextFile:
			e.NextFile = rowset.FileNum(f.Uvarint())
		case tagNextTable:
			e.NextTable = TableID(f.u32())
		case tagNextTablet:
			e.NextTablet = TabletID(f.u32())
		case tagNextRowSet:
			e.NextRowSet = rowset.ID(f.Uvarint())
		case tagLog:
			e.Log = f.log()
		case tagTable:
			e.Tables = append(e.Tables, f.table())
		case tagAddTablet:
			e.AddTablets = append(e.AddTablets, f.tablet())
		case tagUpdateTablet:
			e.UpdateTablets = append(e.UpdateTablets, f.tabletUpdate())
		case tagAddFile:
			e.AddFiles = append(e.AddFiles, f.file())
		case tagRemoveRowSet:
			e.RemoveRowSets = append(e.RemoveRowSets, f.rowSetRef())
		case tagUpdateRowSet:
			e.UpdateRowSets = append(e.UpdateRowSets, f.tabletRowSet())
		case tagAddRowSet:
			e.AddRowSets = append(e.AddRowSets, f.tabletRowSet())
		case tagRemoveTablet:
			e.RemoveTablets = append(e.RemoveTablets, TabletID(f.u32()))
		case tagRemoveFile:
			e.RemoveFiles = append(e.RemoveFiles, rowset.FileNum(f.Uvarint()))
		case tagRemoveTable:
			e.RemoveTables = append(e.RemoveTables, TableID(f.u32()))
		case tagPin:
			e.Pins = append(e.Pins, f.pin())
		case tagRemovePin:
			e.RemovePins = append(e.RemovePins, f.text())
		default:
			c.Skip(tag)
		}
	})
	return c.Err()
}

func (c cursor) log() *LogState {
	l := &LogState{}
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			l.FirstSegment = f.Uvarint()
		case 3:
			l.Ends = append(l.Ends, LogEnd{Segment: f.Uvarint(), Offset: f.i64()})
		default:
			c.Skip(tag)
		}
	})
	return l
}

func (c cursor) pin() (p Pin) {
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			p.Name = f.text()
		case 3:
			p.Time = f.time()
		default:
			c.Skip(tag)
		}
	})
	return p
}

func (c cursor) table() *Table {
	t := &Table{}
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			t.ID = TableID(f.u32())
		case 3:
			t.Name = f.text()
		case 5:
			t.State = TableState(f.u8())
		case 7:
			t.Versions = append(t.Versions, f.version())
		case 9:
			t.NextColumn = f.column()
		case 11:
			t.Limits = f.limits()
		case 13:
			t.Retention = time.Duration(f.i64())
		case 15:
			t.KuduCompatible = f.flag()
		case 17:
			t.Partition = f.partition()
		case 19:
			if t.Options == nil {
				t.Options = map[string]string{}
			}
			name := f.String(f.Len())
			t.Options[name] = f.String(f.Len())
		default:
			c.Skip(tag)
		}
	})
	return t
}

func (c cursor) limits() (l schema.Limits) {
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			l.MaxColumns = f.int()
		case 3:
			l.MaxNameBytes = f.int()
		case 5:
			l.MaxCellBytes = f.int()
		case 7:
			l.MaxKeyBytes = f.int()
		case 9:
			l.MaxBlockBytes = f.int()
		default:
			c.Skip(tag)
		}
	})
	return l
}

func (c cursor) version() (v SchemaVersion) {
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			v.Version = f.u32()
		case 3:
			v.At = f.time()
		case 5:
			v.NumKey = f.int()
		case 7:
			v.Columns = append(v.Columns, f.columnOfVersion())
		default:
			c.Skip(tag)
		}
	})
	return v
}

func (c cursor) columnOfVersion() (v Column) {
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			v.ID = f.column()
		case 3:
			v.Name = f.text()
		case 5:
			v.Type = schema.Type(f.u8())
		case 7:
			v.Precision = f.u8()
		case 9:
			v.Scale = f.u8()
		case 11:
			v.Length = f.u16()
		case 13:
			v.Nullable = f.flag()
		case 15:
			v.Immutable = f.flag()
		case 17:
			v.Encoding = schema.Encoding(f.u8())
		case 19:
			v.Compression = schema.Compression(f.u8())
		case 21:
			v.BlockSize = f.int()
		case 23:
			v.Default = f.value()
		case 25:
			v.ReadDefault = f.value()
		case 27:
			v.AddedAt = f.time()
		case 29:
			v.DroppedAt = f.time()
		default:
			c.Skip(tag)
		}
	})
	return v
}

func (c cursor) partition() (p PartitionSchema) {
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			p.Hash = append(p.Hash, f.hash())
		case 3:
			p.Range = append(p.Range, f.column())
		default:
			c.Skip(tag)
		}
	})
	return p
}

func (c cursor) hash() (h HashPartition) {
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			h.Columns = append(h.Columns, f.column())
		case 3:
			h.Buckets = f.u32()
		case 5:
			h.Seed = f.u32()
		default:
			c.Skip(tag)
		}
	})
	return h
}

func (c cursor) tablet() *Tablet {
	t := &Tablet{}
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			t.ID = TabletID(f.u32())
		case 3:
			t.Table = TableID(f.u32())
		case 5:
			t.State = TabletState(f.u8())
		case 7:
			t.Lower = f.bytes()
		case 9:
			t.Upper = f.bytes()
		case 11:
			t.Buckets = append(t.Buckets, f.u32())
		default:
			c.watermark(&t.Watermarks, tag, f)
		}
	})
	return t
}

func (c cursor) tabletUpdate() (u TabletUpdate) {
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			u.ID = TabletID(f.u32())
		case 5:
			u.State = TabletState(f.u8())
		default:
			c.watermark(&u.Watermarks, tag, f)
		}
	})
	return u
}

// watermark reads field f of c, one of the watermarks.
func (c cursor) watermark(w *Watermarks, tag uint64, f cursor) {
	switch tag {
	case 13:
		w.FlushedTo = f.time()
	case 15:
		w.MaxDurable = f.time()
	case 17:
		w.Horizon = f.time()
	case 19:
		w.NextAutoIncrement = f.i64()
	default:
		c.Skip(tag)
	}
}

func (c cursor) file() (file File) {
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			file.Num = rowset.FileNum(f.Uvarint())
		case 3:
			file.Kind = binfmt.FileKind(f.u8())
		case 5:
			file.Folder = f.u32()
		case 7:
			file.Size = f.i64()
		case 9:
			file.HasChecksum, file.Checksum = true, f.u32()
		default:
			c.Skip(tag)
		}
	})
	return file
}

func (c cursor) rowSetRef() (r RowSetRef) {
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case tagTabletOfThing:
			r.Tablet = TabletID(f.u32())
		case tagThing:
			r.ID = rowset.ID(f.Uvarint())
		default:
			c.Skip(tag)
		}
	})
	return r
}

func (c cursor) tabletRowSet() TabletRowSet {
	r := TabletRowSet{Meta: &rowset.Meta{}}
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case tagTabletOfThing:
			r.Tablet = TabletID(f.u32())
		case tagThing:
			f.meta(r.Meta)
		default:
			c.Skip(tag)
		}
	})
	return r
}

func (c cursor) meta(m *rowset.Meta) {
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			m.ID = rowset.ID(f.Uvarint())
		case 3:
			m.Rows = f.i64()
		case 5:
			m.LiveRows = f.i64()
		case 7:
			m.MinKey = f.bytes()
		case 9:
			m.MaxKey = f.bytes()
		case 11:
			m.MinInsert = f.time()
		case 13:
			m.MaxInsert = f.time()
		case 15:
			m.DurableTo = f.time()
		case 17:
			m.SchemaVersion = f.u32()
		case 19:
			m.KeyBounds = append(m.KeyBounds, f.bounds())
		case 21:
			m.RetentionBounds = f.bounds()
		case 23:
			m.Sections = append(m.Sections, f.section())
		case 25:
			m.Redo = append(m.Redo, f.delta())
		case 27:
			m.Undo = append(m.Undo, f.delta())
		case 29:
			if m.Dead == nil {
				m.Dead = map[rowset.FileNum]int64{}
			}
			n := rowset.FileNum(f.Uvarint())
			m.Dead[n] = f.i64()
		default:
			c.Skip(tag)
		}
	})
}

func (c cursor) bounds() (b rowset.Bounds) {
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			b.Min = f.value()
		case 3:
			b.Max = f.value()
		default:
			c.Skip(tag)
		}
	})
	return b
}

func (c cursor) section() (s rowset.Section) {
	s.Column = -1
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			s.File = rowset.FileNum(f.Uvarint())
		case 3:
			s.Offset = f.i64()
		case 5:
			s.Length = f.i64()
		case 7:
			s.Kind = rowset.SectionKind(f.u8())
		case 9:
			s.Column = schema.ColumnID(int64(f.UvarintMax(math.MaxInt32+1)) - 1)
		default:
			c.Skip(tag)
		}
	})
	return s
}

func (c cursor) delta() (d rowset.DeltaFile) {
	c.each(func(tag uint64, f cursor) {
		switch tag {
		case 1:
			d.Section = f.section()
		case 3:
			d.MinTime = f.time()
		case 5:
			d.MaxTime = f.time()
		case 7:
			d.Deletes = f.i64()
		case 11:
			d.Births = f.i64()
		case 9:
			if d.Updates == nil {
				d.Updates = map[schema.ColumnID]int64{}
			}
			id := f.column()
			d.Updates[id] = f.i64()
		default:
			c.Skip(tag)
		}
	})
	return d
}

func (c cursor) value() schema.Value {
	switch k := schema.Kind(c.U8()); {
	case k == schema.KindBytes:
		return schema.StringValue(c.text())
	case k == schema.KindBool:
		return schema.BoolValue(c.Varint() != 0)
	case k == schema.KindInt128:
		lo := c.U64()
		return schema.Int128Value(schema.Int128{Lo: lo, Hi: int64(c.U64())})
	case k == schema.KindFloat32:
		return schema.Float32Value(math.Float32frombits(c.U32()))
	case k == schema.KindFloat64:
		return schema.Float64Value(math.Float64frombits(c.U64()))
	case k.IsInteger():
		return schema.IntValue(k, c.Varint())
	default:
		c.Fail("unknown kind %d of a value", k)
	}
	return schema.Null
}
