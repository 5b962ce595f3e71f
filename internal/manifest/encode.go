package manifest

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
)

// Tags of an edit's fields. They are odd: none may be skipped. See docs/format/manifest.md.
const (
	tagClockFloor    = 1
	tagNextFile      = 3
	tagNextTable     = 5
	tagNextTablet    = 7
	tagNextRowSet    = 9
	tagLog           = 11
	tagTable         = 13
	tagAddTablet     = 15
	tagUpdateTablet  = 17
	tagAddFile       = 19
	tagRemoveRowSet  = 21
	tagUpdateRowSet  = 23
	tagAddRowSet     = 25
	tagRemoveTablet  = 27
	tagRemoveFile    = 29
	tagRemoveTable   = 31
	tagPin           = 33
	tagRemovePin     = 35
	tagTabletOfThing = 1 // in rowset fields: the tablet
	tagThing         = 3 // in rowset fields: the meta data or the id
)

// fields collects tagged fields. Zero numbers, nil slices and empty strings are left out.
type fields []byte

func (f *fields) uint(tag, v uint64) {
	if v != 0 {
		*f = binfmt.AppendUintField(*f, tag, v)
	}
}

func (f *fields) time(tag uint64, t mvcc.Timestamp) { f.uint(tag, uint64(t)) }

func (f *fields) bool(tag uint64, b bool) {
	if b {
		f.uint(tag, 1)
	}
}

func (f *fields) bytes(tag uint64, b []byte) {
	if b != nil {
		*f = binfmt.AppendField(*f, tag, b)
	}
}

func (f *fields) string(tag uint64, s string) {
	if s != "" {
		*f = binfmt.AppendField(*f, tag, []byte(s))
	}
}

// sub appends a field that holds fields, also when there are none.
func (f *fields) sub(tag uint64, s fields) { *f = binfmt.AppendField(*f, tag, s) }

// AppendTo appends the encoded edit.
func (e *Edit) AppendTo(dst []byte) []byte {
	f := fields(dst)
	f.time(tagClockFloor, e.ClockFloor)
	f.uint(tagNextFile, uint64(e.NextFile))
	f.uint(tagNextTable, uint64(e.NextTable))
	f.uint(tagNextTablet, uint64(e.NextTablet))
	f.uint(tagNextRowSet, uint64(e.NextRowSet))
	if e.Log != nil {
		f.sub(tagLog, e.Log.encode())
	}
	for _, t := range e.Tables {
		f.sub(tagTable, t.encode())
	}
	for _, t := range e.AddTablets {
		f.sub(tagAddTablet, t.encode())
	}
	for i := range e.UpdateTablets {
		f.sub(tagUpdateTablet, e.UpdateTablets[i].encode())
	}
	for i := range e.AddFiles {
		f.sub(tagAddFile, e.AddFiles[i].encode())
	}
	for _, r := range e.RemoveRowSets {
		f.sub(tagRemoveRowSet, r.encode())
	}
	for _, r := range e.UpdateRowSets {
		f.sub(tagUpdateRowSet, r.encode())
	}
	for _, r := range e.AddRowSets {
		f.sub(tagAddRowSet, r.encode())
	}
	for _, id := range e.RemoveTablets {
		f = binfmt.AppendUintField(f, tagRemoveTablet, uint64(id))
	}
	for _, n := range e.RemoveFiles {
		f = binfmt.AppendUintField(f, tagRemoveFile, uint64(n))
	}
	for _, id := range e.RemoveTables {
		f = binfmt.AppendUintField(f, tagRemoveTable, uint64(id))
	}
	for _, p := range e.Pins {
		f.sub(tagPin, p.encode())
	}
	for _, name := range e.RemovePins {
		f = binfmt.AppendField(f, tagRemovePin, []byte(name))
	}
	return f
}

func (l *LogState) encode() (f fields) {
	f.uint(1, l.FirstSegment)
	for _, end := range l.Ends {
		f.sub(3, binary.AppendUvarint(binary.AppendUvarint(nil, end.Segment), uint64(end.Offset)))
	}
	return f
}

func (p *Pin) encode() (f fields) {
	f.string(1, p.Name)
	f.time(3, p.Time)
	return f
}

func (t *Table) encode() (f fields) {
	f.uint(1, uint64(t.ID))
	f.string(3, t.Name)
	f.uint(5, uint64(t.State))
	for i := range t.Versions {
		f.sub(7, t.Versions[i].encode())
	}
	f.uint(9, uint64(t.NextColumn))
	f.sub(11, encodeLimits(t.Limits))
	f.uint(13, uint64(t.Retention))
	f.bool(15, t.KuduCompatible)
	f.sub(17, t.Partition.encode())
	for _, name := range slices.Sorted(maps.Keys(t.Options)) {
		f.sub(19, binfmt.AppendString(binfmt.AppendString(nil, name), t.Options[name]))
	}
	return f
}

func encodeLimits(l schema.Limits) (f fields) {
	f.uint(1, uint64(l.MaxColumns))
	f.uint(3, uint64(l.MaxNameBytes))
	f.uint(5, uint64(l.MaxCellBytes))
	f.uint(7, uint64(l.MaxKeyBytes))
	f.uint(9, uint64(l.MaxBlockBytes))
	return f
}

func (v *SchemaVersion) encode() (f fields) {
	f.uint(1, uint64(v.Version))
	f.time(3, v.At)
	f.uint(5, uint64(v.NumKey))
	for i := range v.Columns {
		f.sub(7, v.Columns[i].encode())
	}
	return f
}

func (c *Column) encode() (f fields) {
	f.uint(1, uint64(c.ID))
	f.string(3, c.Name)
	f.uint(5, uint64(c.Type))
	f.uint(7, uint64(c.Precision))
	f.uint(9, uint64(c.Scale))
	f.uint(11, uint64(c.Length))
	f.bool(13, c.Nullable)
	f.bool(15, c.Immutable)
	f.uint(17, uint64(c.Encoding))
	f.uint(19, uint64(c.Compression))
	f.uint(21, uint64(c.BlockSize))
	f.value(23, c.Default)
	f.value(25, c.ReadDefault)
	f.time(27, c.AddedAt)
	f.time(29, c.DroppedAt)
	return f
}

func (p *PartitionSchema) encode() (f fields) {
	for _, h := range p.Hash {
		f.sub(1, h.encode())
	}
	for _, id := range p.Range {
		f = binfmt.AppendUintField(f, 3, uint64(id))
	}
	return f
}

func (h *HashPartition) encode() (f fields) {
	for _, id := range h.Columns {
		f = binfmt.AppendUintField(f, 1, uint64(id))
	}
	f.uint(3, uint64(h.Buckets))
	f.uint(5, uint64(h.Seed))
	return f
}

func (t *Tablet) encode() (f fields) {
	f.uint(1, uint64(t.ID))
	f.uint(3, uint64(t.Table))
	f.uint(5, uint64(t.State))
	f.bytes(7, t.Lower)
	f.bytes(9, t.Upper)
	for _, b := range t.Buckets {
		f = binfmt.AppendUintField(f, 11, uint64(b))
	}
	f.watermarks(t.Watermarks)
	return f
}

func (u *TabletUpdate) encode() (f fields) {
	f.uint(1, uint64(u.ID))
	f.uint(5, uint64(u.State))
	f.watermarks(u.Watermarks)
	return f
}

func (f *fields) watermarks(w Watermarks) {
	f.time(13, w.FlushedTo)
	f.time(15, w.MaxDurable)
	f.time(17, w.Horizon)
	f.uint(19, uint64(w.NextAutoIncrement))
}

func (file *File) encode() (f fields) {
	f.uint(1, uint64(file.Num))
	f.uint(3, uint64(file.Kind))
	f.uint(5, uint64(file.Folder))
	f.uint(7, uint64(file.Size))
	if file.HasChecksum {
		f = binfmt.AppendUintField(f, 9, uint64(file.Checksum))
	}
	return f
}

func (r *RowSetRef) encode() (f fields) {
	f.uint(tagTabletOfThing, uint64(r.Tablet))
	f.uint(tagThing, uint64(r.ID))
	return f
}

func (r *TabletRowSet) encode() (f fields) {
	f.uint(tagTabletOfThing, uint64(r.Tablet))
	f.sub(tagThing, encodeMeta(r.Meta))
	return f
}

func encodeMeta(m *rowset.Meta) (f fields) {
	f.uint(1, uint64(m.ID))
	f.uint(3, uint64(m.Rows))
	f.uint(5, uint64(m.LiveRows))
	f.bytes(7, m.MinKey)
	f.bytes(9, m.MaxKey)
	f.time(11, m.MinInsert)
	f.time(13, m.MaxInsert)
	f.time(15, m.DurableTo)
	f.uint(17, uint64(m.SchemaVersion))
	for _, b := range m.KeyBounds {
		f.sub(19, encodeBounds(b))
	}
	f.sub(21, encodeBounds(m.RetentionBounds))
	for _, s := range m.Sections {
		f.sub(23, encodeSection(s))
	}
	for i := range m.Redo {
		f.sub(25, encodeDelta(&m.Redo[i]))
	}
	for i := range m.Undo {
		f.sub(27, encodeDelta(&m.Undo[i]))
	}
	for _, n := range slices.Sorted(maps.Keys(m.Dead)) {
		f.sub(29, binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n)), uint64(m.Dead[n])))
	}
	return f
}

func encodeBounds(b rowset.Bounds) (f fields) {
	f.value(1, b.Min)
	f.value(3, b.Max)
	return f
}

func encodeSection(s rowset.Section) (f fields) {
	f.uint(1, uint64(s.File))
	f.uint(3, uint64(s.Offset))
	f.uint(5, uint64(s.Length))
	f.uint(7, uint64(s.Kind))
	f.uint(9, uint64(int64(s.Column)+1))
	return f
}

func encodeDelta(d *rowset.DeltaFile) (f fields) {
	f.sub(1, encodeSection(d.Section))
	f.time(3, d.MinTime)
	f.time(5, d.MaxTime)
	f.uint(7, uint64(d.Deletes))
	f.uint(11, uint64(d.Births))
	for _, id := range slices.Sorted(maps.Keys(d.Updates)) {
		f.sub(9, binary.AppendUvarint(binary.AppendUvarint(nil, uint64(id)), uint64(d.Updates[id])))
	}
	return f
}

// value appends a value as its kind (u8) and its bits, unless it is null.
func (f *fields) value(tag uint64, v schema.Value) {
	if v.IsNull() {
		return
	}
	b := []byte{byte(v.Kind())}
	switch k := v.Kind(); {
	case k == schema.KindBytes:
		b = append(b, v.Str()...)
	case k == schema.KindInt128:
		n := v.Int128()
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, n.Lo), uint64(n.Hi))
	case k == schema.KindFloat32:
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v.Float32()))
	case k == schema.KindFloat64:
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float()))
	default:
		b = binary.AppendVarint(b, v.Int())
	}
	*f = binfmt.AppendField(*f, tag, b)
}
