package rowset

import (
	"context"

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
	LastChange mvcc.Timestamp // commit of the newest change to the row; 0 when older than the horizon
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
	Time     mvcc.Interval    // commits that are visible
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

// Source is the content of a rowset to be written: live rows in key order with
// distinct keys. A writer reads it column by column.
type Source interface {
	// Rows returns the number of rows.
	Rows() int
	// Column appends the cells of schema column col of rows [from, to) to dst.
	Column(ctx context.Context, col, from, to int, dst *vector.Vector) error
	// Keys appends the encoded keys of rows [from, to) to dst, a vector of bytes.
	Keys(ctx context.Context, from, to int, dst *vector.Vector) error
	// InsertTimes appends the insert timestamps of rows [from, to) to dst.
	InsertTimes(ctx context.Context, from, to int, dst []mvcc.Timestamp) ([]mvcc.Timestamp, error)
}
