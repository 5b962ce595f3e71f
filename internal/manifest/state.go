package manifest

import (
	"maps"
	"slices"
	"time"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
)

// TableID identifies a table for the life of its store; ids are never reused.
type TableID uint32

// TabletID identifies a tablet for the life of its store; ids are never reused.
type TabletID uint32

// State is what the manifest says. The values behind its pointers must not be changed.
type State struct {
	Store      binfmt.UUID
	Format     uint16         // store-wide format number
	ClockFloor mvcc.Timestamp // the clock never hands out this or less

	// Next numbers to hand out. Adding a thing raises them past its number.
	NextFile   rowset.FileNum
	NextTable  TableID
	NextTablet TabletID
	NextRowSet rowset.ID

	Log     LogState
	Tables  map[TableID]*Table
	Tablets map[TabletID]*Tablet
	RowSets map[TabletID]map[rowset.ID]*rowset.Meta
	Files   map[rowset.FileNum]File
	Pins    map[string]mvcc.Timestamp // named snapshots that hold back the horizon

	refs map[rowset.FileNum]int // sections in each file
}

// LogState says which part of the log belongs to the store.
type LogState struct {
	FirstSegment uint64   // the oldest segment that replay needs
	Ends         []LogEnd // where trimmed segments end, ascending
}

// LogEnd is the end of a segment whose tail was trimmed; what follows is not log.
type LogEnd struct {
	Segment uint64
	Offset  int64
}

// TableState is where a table is in its life.
type TableState uint8

// The states of a table. The numbers are on disk.
const (
	TableLive    TableState = 1
	TableDropped TableState = 2 // invisible; its tablets are being removed
)

// Table describes a table. It is replaced as a whole.
type Table struct {
	ID             TableID
	Name           string
	State          TableState
	Versions       []SchemaVersion // ascending; the last is current
	NextColumn     schema.ColumnID
	Limits         schema.Limits
	Retention      time.Duration // history retention; 0 keeps none
	KuduCompatible bool
	Partition      PartitionSchema
	Options        map[string]string // further options by name
}

// SchemaVersion is the schema of a table from the time At.
type SchemaVersion struct {
	Version uint32
	At      mvcc.Timestamp
	NumKey  int      // the first NumKey columns are the key
	Columns []Column // in order
}

// Column is a column in a version of the schema.
type Column struct {
	schema.Column
	AddedAt   mvcc.Timestamp
	DroppedAt mvcc.Timestamp // when a later version dropped it; 0 while it lives
}

// PartitionSchema says how rows of a table are spread over tablets.
type PartitionSchema struct {
	Hash  []HashPartition
	Range []schema.ColumnID // key columns that the range bounds compare
}

// HashPartition spreads rows by a hash of some key columns.
type HashPartition struct {
	Columns []schema.ColumnID
	Buckets uint32
	Seed    uint32
}

// TabletState is where a tablet is in its life.
type TabletState uint8

// The states of a tablet. The numbers are on disk.
const (
	TabletLive    TabletState = 1
	TabletFailed  TabletState = 2 // readable at best; its log anchor is released
	TabletDropped TabletState = 3 // to be removed
)

// Tablet describes a partition of a table. Its watermarks only rise.
type Tablet struct {
	ID      TabletID
	Table   TableID
	State   TabletState
	Lower   []byte   // encoded range bounds, inclusive and exclusive; nil: open
	Upper   []byte   //
	Buckets []uint32 // bucket in each hash partition of the table

	Watermarks
}

// Watermarks are the numbers of a tablet that only rise. In an edit 0 means unchanged.
type Watermarks struct {
	FlushedTo         mvcc.Timestamp // I: every insert up to here is in rowset files or was collected
	MaxDurable        mvcc.Timestamp // maxM: the highest DurableTo of any rowset ever published
	Horizon           mvcc.Timestamp // H: history up to here may be gone
	NextAutoIncrement int64
}

// raise returns the larger of each watermark.
func (w Watermarks) raise(by Watermarks) Watermarks {
	return Watermarks{
		FlushedTo:         max(w.FlushedTo, by.FlushedTo),
		MaxDurable:        max(w.MaxDurable, by.MaxDurable),
		Horizon:           max(w.Horizon, by.Horizon),
		NextAutoIncrement: max(w.NextAutoIncrement, by.NextAutoIncrement),
	}
}

// File describes a file that holds sections of rowsets.
type File struct {
	Num         rowset.FileNum
	Kind        binfmt.FileKind
	Folder      uint32 // reserved: 0
	Size        int64
	HasChecksum bool
	Checksum    uint32 // CRC-32C of the whole file
}

// Current returns the newest schema version, nil when there is none.
func (t *Table) Current() *SchemaVersion {
	if len(t.Versions) == 0 {
		return nil
	}
	return &t.Versions[len(t.Versions)-1]
}

// Version returns the schema version of the given number, nil when it is unknown.
func (t *Table) Version(n uint32) *SchemaVersion {
	for i := range t.Versions {
		if t.Versions[i].Version == n {
			return &t.Versions[i]
		}
	}
	return nil
}

// Schema returns the version as a schema within the table's limits.
func (v *SchemaVersion) Schema(limits schema.Limits) (*schema.Schema, error) {
	cols := make([]schema.Column, len(v.Columns))
	var key []string
	for i := range v.Columns {
		cols[i] = v.Columns[i].Column
		if i < v.NumKey {
			key = append(key, cols[i].Name)
		}
	}
	return schema.New(cols, key, limits)
}

func newState(store binfmt.UUID, format uint16) *State {
	return &State{
		Store: store, Format: format, NextFile: 1, NextTable: 1, NextTablet: 1, NextRowSet: 1,
		Tables: map[TableID]*Table{}, Tablets: map[TabletID]*Tablet{},
		RowSets: map[TabletID]map[rowset.ID]*rowset.Meta{}, Files: map[rowset.FileNum]File{},
		Pins: map[string]mvcc.Timestamp{}, refs: map[rowset.FileNum]int{},
	}
}

// cloneFor returns a copy in which applying e changes nothing of s.
func (s *State) cloneFor(e *Edit) *State {
	c := *s
	c.Tables, c.Tablets, c.Pins = maps.Clone(s.Tables), maps.Clone(s.Tablets), maps.Clone(s.Pins)
	c.Files, c.refs, c.RowSets = maps.Clone(s.Files), maps.Clone(s.refs), maps.Clone(s.RowSets)
	for id := range e.touched() {
		if old := s.RowSets[id]; old != nil {
			c.RowSets[id] = maps.Clone(old)
		}
	}
	return &c
}

// after returns the state after an encoded edit. Decoding it first makes sure that what
// is written can be read, and takes a copy of what the caller passed.
func (s *State) after(payload []byte) (*State, error) {
	e := &Edit{}
	if err := e.Decode(payload); err != nil {
		return nil, err
	}
	next := s.cloneFor(e)
	return next, next.apply(e)
}

// Batches in which a snapshot lists things, so that its frames stay small.
const (
	rowSetsAPart = 32
	filesAPart   = 1024
)

// snapshot returns edits that make the state from an empty one, in a fixed order.
func (s *State) snapshot() []*Edit {
	head := &Edit{ClockFloor: s.ClockFloor, NextFile: s.NextFile, NextTable: s.NextTable, NextTablet: s.NextTablet,
		NextRowSet: s.NextRowSet, Log: &s.Log}
	edits := []*Edit{head}
	for _, name := range slices.Sorted(maps.Keys(s.Pins)) {
		head.Pins = append(head.Pins, Pin{name, s.Pins[name]})
	}
	for _, id := range slices.Sorted(maps.Keys(s.Tables)) {
		edits = append(edits, &Edit{Tables: []*Table{s.Tables[id]}})
	}
	files := slices.Sorted(maps.Keys(s.Files))
	for part := range slices.Chunk(files, filesAPart) {
		e := &Edit{}
		for _, n := range part {
			e.AddFiles = append(e.AddFiles, s.Files[n])
		}
		edits = append(edits, e)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Tablets)) {
		edits = append(edits, &Edit{AddTablets: []*Tablet{s.Tablets[id]}})
		ids := slices.Sorted(maps.Keys(s.RowSets[id]))
		for part := range slices.Chunk(ids, rowSetsAPart) {
			e := &Edit{}
			for _, r := range part {
				e.AddRowSets = append(e.AddRowSets, TabletRowSet{id, s.RowSets[id][r]})
			}
			edits = append(edits, e)
		}
	}
	return edits
}
