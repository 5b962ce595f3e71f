package rowset

import (
	"context"
	"iter"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// ID identifies a rowset for the life of its tablet. Memory rowsets have ids too.
type ID uint64

// RowID is the position of a row in its rowset, dense from 0. In a disk rowset rows
// stand in key order; in a memrowset in order of arrival.
type RowID uint32

// RowSet is a set of rows with distinct live keys. All methods may be called
// concurrently.
type RowSet interface {
	// ID returns the rowset's id.
	ID() ID
	// Bounds returns the smallest and largest encoded key; ok is false when they are
	// unknown or change (a memrowset), and then any key may be here.
	Bounds() (min, max []byte, ok bool)
	// Rows returns the number of stored rows, deleted ones included.
	Rows() int64
	// Lookup resolves the keys whose indexes in keys are listed, ascending, in which,
	// and sets out[i] for each of them that is stored here; it leaves the others as
	// they are. An I/O error is an error, never "absent".
	Lookup(ctx context.Context, keys *Keys, which []int32, out []Found) error
	// ReadRow appends the values of one row that Lookup found to dst, one vector per
	// schema column index in columns.
	ReadRow(ctx context.Context, row RowID, at mvcc.Timestamp, columns []int, dst []*vector.Vector) error
	// Scan starts a scan. The spec must not change until the iterator is closed.
	Scan(ctx context.Context, spec *ScanSpec) (Iterator, error)
	// Apply changes stored rows, in memory. Calls come in timestamp order, one at a time.
	Apply(ts mvcc.Timestamp, c *Changes) error
	// CollectedBytes returns the memory of the changes that Apply adds to. Between two calls
	// of Apply a flush may take them away, during one it may not.
	CollectedBytes() int64
	// MemoryBytes returns the memory that a flush of the rowset's changes, or of the
	// rowset itself, would free.
	MemoryBytes() int64
}

// Found says where a key is stored and in what state at latest.
type Found struct {
	RowSet     RowSet // nil when no rowset asked so far stores the key
	Row        RowID
	Live       bool           // false for a ghost
	OnDisk     bool           // the rowset is one that the manifest names
	LastChange mvcc.Timestamp // commit of the newest change to the row, see Keys.Since; 0 when older than the horizon
}

// Order is the order in which a scan delivers rows.
type Order uint8

// The orders.
const (
	Unordered  Order = iota // storage order, the cheapest
	KeyOrder                // ascending encoded key
	KeyReverse              // descending encoded key
)

// ScanSpec says what a scan of one rowset reads.
type ScanSpec struct {
	Schema   *schema.Schema
	Time     mvcc.Interval    // commits that are visible; with a lower end only rows that changed, see Batch.Deleted
	Columns  []int            // schema columns to deliver, in this order; may be empty
	Filter   *predicate.Bound // nil: every row
	Lower    []byte           // encoded key, inclusive; nil: from the first
	Upper    []byte           // encoded key, exclusive; nil: to the last
	Order    Order
	WithKeys bool   // deliver encoded keys in Batch.Keys
	MaxRows  int    // rows of a batch at most; 0: the rowset's choice (a page)
	Stats    *Stats // counters to add to; never nil
	// NoPrune turns off every skip by zone map, filter or bound beyond Lower and
	// Upper, to check that pruning changes no answer.
	NoPrune bool
}

// Iterator delivers the rows of one rowset. It is used by one goroutine at a time.
type Iterator interface {
	// Next returns the next batch with at least one selected row, or nil after the
	// last. The batch is valid until the following Next or Close; the vectors in it
	// may be shared with the page cache and must not be changed.
	Next(ctx context.Context) (*Batch, error)
	// Close releases what the scan holds. It may be called twice.
	Close()
}

// Batch is a run of rows of one rowset, of which some are selected.
type Batch struct {
	Rows     int              // rows in the vectors
	Sel      vector.Bitmap    // selected rows; nil: all of them
	Selected int              // number of selected rows, at least 1
	Columns  []*vector.Vector // one for each of ScanSpec.Columns, Rows long; unselected rows hold anything of the kind
	Keys     *vector.Vector   // encoded keys, Rows long, when ScanSpec.WithKeys
	// Deleted are, in a scan whose Time has a lower end, the rows that were live there and
	// are dead at the upper one, with the cells they had when they first died in between; nil: none. The other rows
	// are live at the upper end. Rows that are dead at both are not selected.
	Deleted vector.Bitmap
}

// AppendSelected appends the selected rows, ascending, to dst.
func (b *Batch) AppendSelected(dst []int32) []int32 {
	if b.Sel != nil {
		return b.Sel.AppendIndexes(dst)
	}
	for i := range b.Rows {
		dst = append(dst, int32(i))
	}
	return dst
}

// AppendDeleted appends which of the given rows of the batch, nil for all, are deleted, as
// indexes into them.
func (b *Batch) AppendDeleted(dst []int32, rows []int32) []int32 {
	switch {
	case b.Deleted == nil:
		return dst
	case rows == nil:
		return b.Deleted.AppendIndexes(dst)
	}
	for i, r := range rows {
		if b.Deleted.Get(int(r)) {
			dst = append(dst, int32(i))
		}
	}
	return dst
}

// MergeInput is a rowset to be merged, as it is at the merge's time: rows with ascending
// keys, some of them dead. It is used by one goroutine at a time. What commits at or
// before the horizon did is not kept: it is in the rows and in no history.
type MergeInput interface {
	// String names the rowset in errors.
	String() string
	// Rows returns the number of rows, dead ones included.
	Rows() int64
	// Keys appends the encoded keys of rows [from, to) to dst, a vector of bytes.
	Keys(ctx context.Context, from, to int, dst *vector.Vector) error
	// Fork returns the same rows for another goroutine, to be used no longer than this one.
	Fork() MergeInput
	// Live clears the rows of [from, to) that are not kept: those whose last life ended
	// at or before the horizon. Ghosts that died after it stay set. Bit i is row from+i.
	Live(ctx context.Context, from, to int, live vector.Bitmap) error
	// Cells returns the cells of rows [from, to) of a schema column, those of a ghost as
	// they were last, valid until the next call for the same column.
	Cells(ctx context.Context, col, from, to int) (*vector.Vector, error)
	// Measure returns about how many bytes rows [from, to) take in their files, what was
	// changed since and their history not counted.
	Measure(ctx context.Context, from, to int) (float64, error)
	// Stored returns a schema column as it lies in a file; nil when that differs from what
	// Cells returns.
	Stored(ctx context.Context, col int) (StoredColumn, error)
	// InsertTimes appends the insert timestamps of rows [from, to) to dst: when their
	// last life began, 0 when that is not known.
	InsertTimes(ctx context.Context, from, to int, dst []mvcc.Timestamp) ([]mvcc.Timestamp, error)
	// History returns what commits after the horizon did to all rows, numbered as in the
	// input; nil when that is nothing. A kept row that is not among its ghosts is live.
	// While a sequence is read, other methods of the input may be called.
	History() History
}

// Source is the content of a rowset to be written: rows in key order with distinct
// keys, as they are at one time, and what is kept of their history. A writer reads it
// column by column.
type Source interface {
	// Rows returns the number of rows.
	Rows() int
	// Fork returns a source of the same rows for another goroutine, to be used no longer
	// than this one.
	Fork() Source
	// Column appends the cells of schema column col of rows [from, to) to dst. Those of
	// a ghost are the last it had.
	Column(ctx context.Context, col, from, to int, dst *vector.Vector) error
	// Keys appends the encoded keys of rows [from, to) to dst, a vector of bytes.
	Keys(ctx context.Context, from, to int, dst *vector.Vector) error
	// InsertTimes appends the insert timestamps of rows [from, to) to dst: when their
	// present life began.
	InsertTimes(ctx context.Context, from, to int, dst []mvcc.Timestamp) ([]mvcc.Timestamp, error)
	// History returns what is kept of the history of rows [from, to), which it numbers
	// from 0; nil when that is nothing.
	History(from, to int) History
}

// FromFiles is a Source whose rows come from files.
type FromFiles interface {
	Source
	// Measure returns about how many bytes rows [from, to) take in their files, without
	// their history.
	Measure(ctx context.Context, from, to int) (float64, error)
	// Stored says where cells of a schema column lie: those of rows [from, from+n), n at
	// least 1 and to-from at most, are the cells of rows [at, at+n) of a file. There is no
	// file when they must be read with Column.
	Stored(ctx context.Context, col, from, to int) (file StoredColumn, at, n int, err error)
}

// StoredColumn is a column as it lies in a file. Its writer knows more of it.
type StoredColumn interface {
	// Pages returns the number of its pages.
	Pages() int
}

// History is what commits did to rows besides beginning their present life. Every
// sequence is in order of row and then of time, and ends with an error or without one.
// They may be read several times, one after the other, by one goroutine at a time.
type History interface {
	// Versions yields the cells of a schema column that were replaced. At a death every
	// column that is not part of the key has a version: what the row was until then.
	Versions(ctx context.Context, col int) iter.Seq2[Version, error]
	// Deaths yields the commits that deleted a row which was inserted again later.
	Deaths(ctx context.Context) iter.Seq2[Event, error]
	// Births yields the commits that began lives of rows before the present one.
	Births(ctx context.Context) iter.Seq2[Event, error]
	// Ghosts yields the commits that deleted rows which were not inserted again, one at
	// most for each row. They end the present life.
	Ghosts(ctx context.Context) iter.Seq2[Event, error]
}

// Event is a commit that began or ended a life of a row.
type Event struct {
	Row  RowID
	Time mvcc.Timestamp
}

// Version is a cell that a row had until the commit at Time replaced it: cell At of
// Cells, which is valid until the next version is yielded and must not be changed.
type Version struct {
	Event
	Cells *vector.Vector
	At    int
}
