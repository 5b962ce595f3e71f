package diskrowset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
)

const deltaMagic = "mkdeltas"

// DeltaDirectory says what a file of changes, REDO or UNDO by its header, holds.
type DeltaDirectory struct {
	Header           binfmt.Header
	MinTime, MaxTime mvcc.Timestamp
	Columns          []DeltaColumn // in the order of the file
	Deletes          DeltaList
	Births           DeltaList // of an UNDO file
}

// DeltaColumn is the changes of one column. Of the column it knows name, type,
// parameters, nullability and id.
type DeltaColumn struct {
	Column schema.Column
	Values rowset.Section // CFile of the new cells
	DeltaList
}

// DeltaList says which rows were changed and when, by row and then by time.
type DeltaList struct {
	Count int64
	Rows  rowset.Section // CFile of int32
	Times rowset.Section // CFile of int64
}

// appendTo appends the directory and its trailer. The header is not part of it.
func (d *DeltaDirectory) appendTo(dst []byte) []byte {
	at := len(dst)
	dst = binary.AppendUvarint(dst, uint64(d.MinTime))
	dst = binary.AppendUvarint(dst, uint64(d.MaxTime))
	dst = binary.AppendUvarint(dst, uint64(len(d.Columns)))
	for i := range d.Columns {
		c := &d.Columns[i]
		dst = appendColumn(dst, &c.Column)
		dst = binary.AppendUvarint(dst, uint64(c.Values.Length))
		dst = c.DeltaList.appendTo(dst)
	}
	dst = d.Deletes.appendTo(dst)
	if d.undo() {
		dst = d.Births.appendTo(dst)
	}
	return appendTrailer(dst, at, deltaMagic)
}

func (d *DeltaDirectory) undo() bool { return d.Header.Kind == binfmt.FileUndo }

// kind returns what the file is to a rowset.
func (d *DeltaDirectory) kind() rowset.SectionKind {
	if d.undo() {
		return rowset.SectionUndo
	}
	return rowset.SectionRedo
}

func (l *DeltaList) appendTo(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(l.Count))
	if l.Count == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(l.Rows.Length))
	return binary.AppendUvarint(dst, uint64(l.Times.Length))
}

// decode fills d, whose header is known, from the bytes before the trailer, which begin
// at the given offset of the file. Sections lie back to back.
func (d *DeltaDirectory) decode(src []byte, end int64) error {
	r := &deltaDecoder{Reader: binfmt.NewReader(src), file: rowset.FileNum(d.Header.File), at: binfmt.HeaderSize, end: end, kind: d.kind()}
	d.MinTime = mvcc.Timestamp(r.UvarintMax(uint64(mvcc.Max)))
	d.MaxTime = mvcc.Timestamp(r.UvarintMax(uint64(mvcc.Max)))
	n := r.Count(10)
	if n > maxColumns {
		r.Fail("%d columns", n)
		return r.Err()
	}
	d.Columns = make([]DeltaColumn, n)
	for i := range d.Columns {
		c := &d.Columns[i]
		c.Column = decodeColumn(r.Reader)
		c.Values = r.section(c.Column.ID)
		if c.DeltaList = r.list(c.Column.ID); c.Count == 0 || !c.Column.Type.Valid() {
			r.Fail("column of type %d with %d changes", c.Column.Type, c.Count)
		}
	}
	d.Deletes = r.list(-1)
	if d.undo() {
		d.Births = r.list(-1)
	}
	switch {
	case r.Err() != nil:
	case r.Len() > 0 || r.at != end:
		r.Fail("%d bytes after the last section, which ends at %d", r.Len(), r.at)
	case d.MinTime > d.MaxTime || n == 0 && d.Deletes.Count == 0 && d.Births.Count == 0:
		r.Fail("no changes")
	}
	return r.Err()
}

// deltaDecoder is a reader that knows where the next section begins.
type deltaDecoder struct {
	*binfmt.Reader
	file    rowset.FileNum
	at, end int64
	kind    rowset.SectionKind
}

// section reads the length of the next section.
func (r *deltaDecoder) section(col schema.ColumnID) rowset.Section {
	s := rowset.Section{File: r.file, Offset: r.at, Kind: r.kind, Column: col}
	s.Length = int64(r.UvarintMax(uint64(r.end - r.at)))
	r.at += s.Length
	return s
}

func (r *deltaDecoder) list(col schema.ColumnID) (l DeltaList) {
	if l.Count = int64(r.UvarintMax(1<<32 - 1)); l.Count > 0 {
		l.Rows = r.section(col)
		l.Times = r.section(col)
	}
	return l
}

// ReadDeltaDirectory reads the header and directory of a file of changes of the given
// kind and size. Path is for messages.
func ReadDeltaDirectory(ctx context.Context, src cfile.Source, kind binfmt.FileKind, size int64, path string) (*DeltaDirectory, error) {
	d := &DeltaDirectory{}
	var err error
	if d.Header, err = readHeader(ctx, src, size, path, kind); err != nil {
		return nil, err
	}
	body, at, err := readTail(ctx, src, size, path, deltaMagic)
	if err != nil {
		return nil, err
	}
	if err := d.decode(body, at); err != nil {
		return nil, place(err, path, "directory", at)
	}
	return d, nil
}

// Delta returns the file's description as the manifest has it; size is the file's.
func (d *DeltaDirectory) Delta(size int64) rowset.DeltaFile {
	out := rowset.DeltaFile{MinTime: d.MinTime, MaxTime: d.MaxTime, Deletes: d.Deletes.Count, Births: d.Births.Count,
		Section: rowset.Section{File: rowset.FileNum(d.Header.File), Length: size, Kind: d.kind(), Column: -1}}
	for i := range d.Columns {
		if out.Updates == nil {
			out.Updates = map[schema.ColumnID]int64{}
		}
		out.Updates[d.Columns[i].Column.ID] = d.Columns[i].Count
	}
	return out
}

// matches compares the directory with the manifest's description.
func (d *DeltaDirectory) matches(m *rowset.DeltaFile) error {
	if d.MinTime != m.MinTime || d.MaxTime != m.MaxTime || d.Deletes.Count != m.Deletes || d.Births.Count != m.Births ||
		len(d.Columns) != len(m.Updates) {
		return errors.New("changes differ from the manifest's")
	}
	for i := range d.Columns {
		if c := &d.Columns[i]; c.Count != m.Updates[c.Column.ID] {
			return fmt.Errorf("%d changes of column %d, want %d", c.Count, c.Column.ID, m.Updates[c.Column.ID])
		}
	}
	return nil
}
