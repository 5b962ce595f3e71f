package rowset

import (
	"slices"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/schema"
)

// FileNum numbers the files of a store; numbers are never reused.
type FileNum uint64

// SectionKind says what a section of a file holds.
type SectionKind uint8

// The section kinds. The numbers are on disk.
const (
	SectionColumn      SectionKind = 1 // CFile of a column
	SectionInsertTimes SectionKind = 2 // CFile of the hidden insert-time column
	SectionKeyIndex    SectionKind = 3 // encoded key of every 128th row
	SectionFilters     SectionKind = 4 // key filters, one per 65,536 rows
	SectionZoneMap     SectionKind = 5 // zone maps of a column
	SectionRedo        SectionKind = 6 // a REDO delta file, as a whole
	SectionUndo        SectionKind = 7 // an UNDO delta file, as a whole
)

// Section is an extent of a file.
type Section struct {
	File   FileNum
	Offset int64
	Length int64
	Kind   SectionKind
	Column schema.ColumnID // of SectionColumn and SectionZoneMap, else -1
}

// Bounds are the smallest and largest value of a column; Null when unknown.
type Bounds struct{ Min, Max schema.Value }

// DeltaFile describes a file of changes of a rowset, for REDO and UNDO.
type DeltaFile struct {
	Section          Section
	MinTime, MaxTime mvcc.Timestamp
	Deletes          int64 // of an UNDO file: of lives before the present one
	Births           int64 // of an UNDO file: beginnings of such lives
	Updates          map[schema.ColumnID]int64
}

// Meta describes a disk rowset. The manifest stores it; an open reads no rowset file.
type Meta struct {
	ID                   ID
	Rows, LiveRows       int64
	MinKey, MaxKey       []byte         // encoded first and last key
	MinInsert, MaxInsert mvcc.Timestamp // of the stored insert times
	DurableTo            mvcc.Timestamp // M: the files hold every change to its rows up to here and none later
	SchemaVersion        uint32
	KeyBounds            []Bounds // of each key column, in key order
	RetentionBounds      Bounds   // reserved: of the retention column
	Sections             []Section
	Redo, Undo           []DeltaFile
	Dead                 map[FileNum]int64 // bytes of sections that later files replaced, in files that are still in use
}

// Unused returns the bytes of the rowset's files that nothing refers to any more.
func (m *Meta) Unused() (n int64) {
	for _, b := range m.Dead {
		n += b
	}
	return n
}

// Files returns the files that the rowset consists of, each once.
func (m *Meta) Files() (files []FileNum) {
	add := func(s Section) {
		if !slices.Contains(files, s.File) {
			files = append(files, s.File)
		}
	}
	for _, s := range m.Sections {
		add(s)
	}
	for _, list := range [][]DeltaFile{m.Redo, m.Undo} {
		for i := range list {
			add(list[i].Section)
		}
	}
	return files
}

// EncodedBytes returns the bytes of all sections.
func (m *Meta) EncodedBytes() int64 {
	var n int64
	for i := range m.Sections {
		n += m.Sections[i].Length
	}
	return n
}

// Section returns the section of the given kind and column (-1 for none).
func (m *Meta) Section(kind SectionKind, column schema.ColumnID) (Section, bool) {
	for _, s := range m.Sections {
		if s.Kind == kind && s.Column == column {
			return s, true
		}
	}
	return Section{}, false
}
