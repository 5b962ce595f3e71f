package record

import (
	"encoding/binary"
	"math/bits"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Kind is the net effect of a row. The numbers are on disk.
type Kind uint8

// The effects.
const (
	Put Kind = 1 // absent → live, full image
	Set Kind = 2 // live → live, the key columns and those set
	Del Kind = 3 // live → absent, the key columns
)

// Part is the effects of a batch on one tablet.
type Part struct {
	Tablet        uint64
	SchemaVersion uint32
	Sections      []Section
}

// Section is a run of rows of one kind.
type Section struct {
	Kind    Kind
	Rows    int
	IDs     []schema.ColumnID
	Columns []*vector.Vector // one for each id, Rows long
	Hints   []Hint           // where each row is stored; none, or Rows of them
}

// Hint names the disk rowset and row that an effect is on; RowSet 0 where the row is
// in memory. It saves a look-up at replay, and tells lives of a key apart.
type Hint struct {
	RowSet uint64
	Row    uint32
}

const flagHints = 1 // of a section

const flagValidity = 1

// Append appends the encoded payload to dst. Vectors must not be in dictionary form.
func Append(dst []byte, parts []Part) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(parts)))
	for i := range parts {
		p := &parts[i]
		dst = binary.AppendUvarint(dst, p.Tablet)
		dst = binary.AppendUvarint(dst, uint64(p.SchemaVersion))
		dst = binary.AppendUvarint(dst, uint64(len(p.Sections)))
		for j := range p.Sections {
			dst = appendSection(dst, &p.Sections[j])
		}
	}
	return dst
}

func appendSection(dst []byte, s *Section) []byte {
	flags := byte(0)
	if s.Hints != nil {
		flags = flagHints
	}
	dst = append(dst, byte(s.Kind), flags)
	dst = binary.AppendUvarint(dst, uint64(s.Rows))
	dst = binary.AppendUvarint(dst, uint64(len(s.Columns)))
	for _, h := range s.Hints {
		dst = binary.AppendUvarint(dst, h.RowSet)
		dst = binary.AppendUvarint(dst, uint64(h.Row))
	}
	for i, v := range s.Columns {
		dst = binary.AppendUvarint(dst, uint64(s.IDs[i]))
		dst = appendColumn(dst, v)
	}
	return dst
}

func appendColumn(dst []byte, v *vector.Vector) []byte {
	flags := byte(0)
	if v.Valid() != nil {
		flags = flagValidity
	}
	dst = append(dst, byte(v.Kind()), flags)
	if flags != 0 {
		dst = appendBits(dst, v.Valid(), v.Len())
	}
	switch v.Kind() {
	case schema.KindBool:
		return appendBits(dst, v.Bits(), v.Len())
	case schema.KindBytes:
		return appendBytes(dst, v)
	}
	return vector.AppendLE(dst, v)
}

func appendBits(dst []byte, b vector.Bitmap, n int) []byte {
	for i := range (n + 7) / 8 {
		dst = append(dst, byte(b[i>>3]>>(8*(uint(i)&7))))
	}
	return dst
}

func appendBytes(dst []byte, v *vector.Vector) []byte {
	offsets := v.Offsets()
	for i := range v.Len() {
		dst = binary.AppendUvarint(dst, uint64(offsets[i+1]-offsets[i]))
	}
	return append(dst, v.Data()[offsets[0]:offsets[v.Len()]]...)
}

// Size returns an upper bound of the encoded size of the columns, for limits that
// are checked before anything is built.
func Size(columns []*vector.Vector) int64 {
	var n int64
	for _, v := range columns {
		rows := int64(v.Len())
		n += 16 + rows/8
		switch v.Kind() {
		case schema.KindBool:
			n += rows / 8
		case schema.KindBytes:
			n += int64(len(v.Data())) + rows*int64(uvarintLen(uint64(len(v.Data()))))
		default:
			n += rows * int64(v.Kind().Width())
		}
	}
	return n
}

func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// Decode parses a payload. The vectors own their memory.
func Decode(src []byte) ([]Part, error) {
	r := binfmt.NewReader(src)
	n := r.Count(3)
	parts := make([]Part, 0, n)
	for range n {
		p := Part{Tablet: r.Uvarint(), SchemaVersion: uint32(r.UvarintMax(1<<32 - 1))}
		sections := r.Count(4)
		for range sections {
			p.Sections = append(p.Sections, decodeSection(r))
		}
		if r.Err() != nil {
			return nil, r.Err()
		}
		parts = append(parts, p)
	}
	if r.Len() > 0 {
		r.Fail("%d bytes after the last part", r.Len())
	}
	return parts, r.Err()
}

func decodeSection(r *binfmt.Reader) Section {
	s := Section{Kind: Kind(r.U8())}
	if s.Kind < Put || s.Kind > Del {
		r.Fail("unknown effect %d", s.Kind)
	}
	flags := r.U8()
	if flags&^flagHints != 0 {
		r.Fail("unknown section flags %#x", flags)
	}
	rows := r.UvarintMax(8 * uint64(r.Len())) // a column holds at least a bit a row
	columns := r.Count(3)
	s.Rows = int(rows)
	if flags&flagHints != 0 {
		s.Hints = decodeHints(r, s.Rows)
	}
	for range columns {
		s.IDs = append(s.IDs, schema.ColumnID(r.UvarintMax(1<<31-1)))
		v := decodeColumn(r, s.Rows)
		if r.Err() != nil {
			break
		}
		s.Columns = append(s.Columns, v)
	}
	if columns == 0 {
		r.Fail("section without columns")
	}
	return s
}

// decodeHints returns one hint a row; each takes two bytes at least.
func decodeHints(r *binfmt.Reader, rows int) []Hint {
	if rows > r.Len()/2 {
		r.Fail("%d hints in %d bytes", rows, r.Len())
		return nil
	}
	hints := make([]Hint, rows)
	for i := range hints {
		hints[i] = Hint{RowSet: r.Uvarint(), Row: uint32(r.UvarintMax(1<<32 - 1))}
	}
	return hints
}

func decodeColumn(r *binfmt.Reader, rows int) *vector.Vector {
	kind := schema.Kind(r.U8())
	flags := r.U8()
	if kind < schema.KindBool || kind > schema.KindBytes || flags&^flagValidity != 0 {
		r.Fail("column of kind %d with flags %#x", kind, flags)
		return nil
	}
	var valid vector.Bitmap
	if flags&flagValidity != 0 {
		valid = decodeBits(r, rows)
	}
	switch kind {
	case schema.KindBool:
		words := decodeBits(r, rows)
		if valid != nil && r.Err() == nil {
			words.And(valid)
		}
		return vector.FromBits(words, rows, valid)
	case schema.KindBytes:
		return decodeBytes(r, rows, valid)
	}
	raw := r.Take(uint64(rows) * uint64(kind.Width()))
	return vector.FromLE(kind, raw, valid)
}

func decodeBits(r *binfmt.Reader, rows int) vector.Bitmap {
	raw := r.Take(uint64(rows+7) / 8)
	b := vector.NewBitmap(8 * len(raw))
	for i, x := range raw {
		b[i>>3] |= uint64(x) << (8 * (uint(i) & 7))
	}
	b.ClearRange(min(rows, 64*len(b)), 64*len(b))
	return b[:min(vector.Words(rows), len(b))]
}

func decodeBytes(r *binfmt.Reader, rows int, valid vector.Bitmap) *vector.Vector {
	if rows > r.Len() { // a length takes a byte at least
		r.Fail("%d values in %d bytes", rows, r.Len())
		return nil
	}
	offsets := make([]int32, rows+1)
	total := uint64(0)
	for i := range rows {
		total += r.UvarintMax(uint64(r.Len()))
		if total > uint64(r.Len()) {
			r.Fail("values of %d bytes in %d", total, r.Len())
			return nil
		}
		offsets[i+1] = int32(total)
	}
	return vector.FromBytes(offsets, append([]byte(nil), r.Take(total)...), valid)
}
