package diskrowset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

const (
	trailerMagic  = "mkrowset"
	trailerSize   = 16
	maxDirectory  = 16 << 20
	maxEncodedKey = 1 << 24
	maxName       = 1 << 16
	maxColumns    = 1 << 16
)

// Directory is the description of a rowset that its file carries. The store trusts
// the manifest; the directory serves dump and verify.
type Directory struct {
	Header               binfmt.Header
	SchemaVersion        uint32
	Rows                 int64
	MinKey, MaxKey       []byte
	MinInsert, MaxInsert mvcc.Timestamp
	NumKey               int
	Columns              []schema.Column // name, type, parameters, nullability and id only
	Sections             []rowset.Section
}

// appendTo appends the directory and its trailer. The header is not part of it.
func (d *Directory) appendTo(dst []byte) []byte {
	at := len(dst)
	dst = binary.AppendUvarint(dst, uint64(d.SchemaVersion))
	dst = binary.AppendUvarint(dst, uint64(d.Rows))
	dst = binfmt.AppendBytes(dst, d.MinKey)
	dst = binfmt.AppendBytes(dst, d.MaxKey)
	dst = binary.AppendUvarint(dst, uint64(d.MinInsert))
	dst = binary.AppendUvarint(dst, uint64(d.MaxInsert))
	dst = binary.AppendUvarint(dst, uint64(d.NumKey))
	dst = binary.AppendUvarint(dst, uint64(len(d.Columns)))
	for i := range d.Columns {
		dst = appendColumn(dst, &d.Columns[i])
	}
	dst = binary.AppendUvarint(dst, uint64(len(d.Sections)))
	for _, s := range d.Sections {
		dst = append(dst, byte(s.Kind))
		dst = binary.AppendVarint(dst, int64(s.Column))
		dst = binary.AppendUvarint(dst, uint64(s.Offset))
		dst = binary.AppendUvarint(dst, uint64(s.Length))
	}
	return appendTrailer(dst, at, trailerMagic)
}

// appendTrailer appends the trailer of the directory that begins at the given offset.
func appendTrailer(dst []byte, at int, magic string) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(dst)-at))
	dst = binary.LittleEndian.AppendUint32(dst, binfmt.CRC(dst[at:]))
	return append(dst, magic...)
}

func appendColumn(dst []byte, c *schema.Column) []byte {
	dst = binary.AppendVarint(dst, int64(c.ID))
	dst = binfmt.AppendString(dst, c.Name)
	dst = append(dst, byte(c.Type), c.Precision, c.Scale)
	dst = binary.AppendUvarint(dst, uint64(c.Length))
	return binfmt.AppendBool(dst, c.Nullable)
}

// decode fills d from the bytes before the trailer.
func (d *Directory) decode(src []byte) error {
	r := binfmt.NewReader(src)
	d.SchemaVersion = uint32(r.UvarintMax(1<<32 - 1))
	d.Rows = int64(r.UvarintMax(maxRows))
	d.MinKey = append([]byte(nil), r.Bytes(maxEncodedKey)...)
	d.MaxKey = append([]byte(nil), r.Bytes(maxEncodedKey)...)
	d.MinInsert = mvcc.Timestamp(r.UvarintMax(uint64(mvcc.Max)))
	d.MaxInsert = mvcc.Timestamp(r.UvarintMax(uint64(mvcc.Max)))
	d.NumKey = int(r.UvarintMax(maxColumns))
	n := r.Count(7)
	if n > maxColumns {
		r.Fail("%d columns", n)
		return r.Err()
	}
	d.Columns = make([]schema.Column, n)
	for i := range d.Columns {
		d.Columns[i] = decodeColumn(r)
	}
	d.Sections = make([]rowset.Section, r.Count(4))
	for i := range d.Sections {
		d.Sections[i] = rowset.Section{File: rowset.FileNum(d.Header.File), Kind: rowset.SectionKind(r.U8()),
			Column: schema.ColumnID(r.Varint()), Offset: int64(r.UvarintMax(1 << 62)), Length: int64(r.UvarintMax(1 << 62))}
	}
	if r.Err() == nil && r.Len() > 0 {
		r.Fail("%d bytes after the last section", r.Len())
	}
	return r.Err()
}

func decodeColumn(r *binfmt.Reader) schema.Column {
	return schema.Column{ID: schema.ColumnID(r.Varint()), Name: r.String(maxName), Type: schema.Type(r.U8()),
		Precision: r.U8(), Scale: r.U8(), Length: uint16(r.UvarintMax(1<<16 - 1)), Nullable: r.Bool()}
}

// ReadDirectory reads the header and directory of a rowset file of the given size.
// Path is for messages.
func ReadDirectory(ctx context.Context, src cfile.Source, size int64, path string) (*Directory, error) {
	d := &Directory{}
	var err error
	if d.Header, err = readHeader(ctx, src, size, path, binfmt.FileRowSet); err != nil {
		return nil, err
	}
	body, at, err := readTail(ctx, src, size, path, trailerMagic)
	if err != nil {
		return nil, err
	}
	if err := d.decode(body); err != nil {
		return nil, place(err, path, "directory", at)
	}
	return d, d.check(path, at)
}

// readHeader returns the header of a file of the given kind and size.
func readHeader(ctx context.Context, src cfile.Source, size int64, path string, kind binfmt.FileKind) (binfmt.Header, error) {
	var b [binfmt.HeaderSize]byte
	if size < binfmt.HeaderSize+trailerSize {
		return binfmt.Header{}, damage(path, "header", 0, size, errors.New("file too short"))
	}
	if err := readFull(ctx, src, b[:], 0, path, "header"); err != nil {
		return binfmt.Header{}, err
	}
	h, err := binfmt.DecodeHeader(b[:])
	if err == nil {
		err = h.Check(binfmt.Header{Kind: kind, Store: h.Store, File: h.File})
	}
	if err != nil {
		return binfmt.Header{}, place(err, path, "header", 0)
	}
	return h, nil
}

// readTail returns the bytes of the directory and their offset.
func readTail(ctx context.Context, src cfile.Source, size int64, path, wantMagic string) ([]byte, int64, error) {
	var tail [trailerSize]byte
	if err := readFull(ctx, src, tail[:], size-trailerSize, path, "trailer"); err != nil {
		return nil, 0, err
	}
	r := binfmt.NewReader(tail[:])
	n, want, magic := int64(r.U32()), r.U32(), string(r.Rest())
	if magic != wantMagic {
		return nil, 0, damage(path, "trailer", size-trailerSize, trailerSize, errors.New("wrong magic"))
	}
	if n > size-binfmt.HeaderSize-trailerSize || n > maxDirectory {
		return nil, 0, damage(path, "trailer", size-trailerSize, trailerSize, fmt.Errorf("directory of %d bytes", n))
	}
	at := size - trailerSize - n
	body := make([]byte, n)
	if err := readFull(ctx, src, body, at, path, "directory"); err != nil {
		return nil, 0, err
	}
	if got := binfmt.UpdateCRC(binfmt.CRC(body), tail[:4]); got != want {
		return nil, 0, &vfs.CorruptionError{Path: path, Section: "directory", Offset: at, Length: size - at, Want: want, Got: got}
	}
	return body, at, nil
}

// check tests that sections lie back to back between header and directory.
func (d *Directory) check(path string, end int64) error {
	at := int64(binfmt.HeaderSize)
	for _, s := range d.Sections {
		if s.Offset != at || s.Length > end-at {
			return damage(path, "directory", end, 0, fmt.Errorf("%s at [%d, +%d) where %d was expected",
				sectionName(s.Kind), s.Offset, s.Length, at))
		}
		at += s.Length
	}
	if at != end {
		return damage(path, "directory", end, 0, fmt.Errorf("sections end at %d", at))
	}
	for i := range d.Columns {
		if !d.Columns[i].Type.Valid() {
			return damage(path, "directory", end, 0, fmt.Errorf("unknown type %d", d.Columns[i].Type))
		}
	}
	return nil
}

// Schema returns the schema the rows were written with, without defaults.
func (d *Directory) Schema() (*schema.Schema, error) {
	if d.NumKey > len(d.Columns) {
		return nil, fmt.Errorf("%d key columns of %d", d.NumKey, len(d.Columns))
	}
	key := make([]string, d.NumKey)
	for i := range key {
		key[i] = d.Columns[i].Name
	}
	return schema.New(d.Columns, key, schema.Limits{MaxColumns: len(d.Columns), MaxNameBytes: maxName})
}

// Meta returns the description of the rowset as far as the file knows it.
func (d *Directory) Meta() *rowset.Meta {
	return &rowset.Meta{Rows: d.Rows, LiveRows: d.Rows, MinKey: d.MinKey, MaxKey: d.MaxKey, MinInsert: d.MinInsert,
		MaxInsert: d.MaxInsert, SchemaVersion: d.SchemaVersion, KeyBounds: make([]rowset.Bounds, d.NumKey), Sections: d.Sections}
}

var sectionNames = [...]string{rowset.SectionColumn: "column", rowset.SectionInsertTimes: "insert times",
	rowset.SectionKeyIndex: "key index", rowset.SectionFilters: "key filters", rowset.SectionZoneMap: "zone map",
	rowset.SectionRedo: "redo deltas", rowset.SectionUndo: "undo deltas"}

func sectionName(k rowset.SectionKind) string {
	if int(k) < len(sectionNames) && sectionNames[k] != "" {
		return sectionNames[k]
	}
	return fmt.Sprintf("section kind %d", uint8(k))
}

// readFull reads len(p) bytes at off; a file that ends before is damage.
func readFull(ctx context.Context, src cfile.Source, p []byte, off int64, path, section string) error {
	n, err := src.ReadAtContext(ctx, p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return damage(path, section, off, int64(len(p)), fmt.Errorf("file ends at or before offset %d", off+int64(n)))
	}
	return fmt.Errorf("reading %s of %s: %w", section, path, err)
}

func damage(path, section string, off, n int64, err error) error {
	return &vfs.CorruptionError{Path: path, Section: section, Offset: off, Length: n, Err: err}
}

// place says where the bytes lay that a decoder refused; the offset in its error, if
// there is one, is relative to base.
func place(err error, path, section string, base int64) error {
	var c *vfs.CorruptionError
	switch {
	case errors.Is(err, vfs.ErrNotSupported):
		return fmt.Errorf("%s of %s: %w", section, path, err)
	case !errors.As(err, &c):
		return damage(path, section, base, 0, err)
	}
	if c.Path == "" {
		c.Path = path
		c.Offset += base
	}
	if c.Section == "" {
		c.Section = section
	}
	return err
}
