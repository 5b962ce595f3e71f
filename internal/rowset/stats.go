package rowset

import "sync/atomic"

// Stats counts what a scan considered, skipped and decoded. Rowsets add to it
// concurrently.
type Stats struct {
	RowSets          atomic.Int64  // rowsets considered
	RowSetsByKey     atomic.Int64  // skipped: key range outside the bounds
	RowSetsByZone    atomic.Int64  // skipped: file-level zone map or key column bounds
	RowSetsByTime    atomic.Int64  // skipped: no commit in the interval
	RowsConsidered   atomic.Int64  // rows within key bounds
	RowsSelected     atomic.Int64  // rows delivered
	BatchesFromZone  atomic.Int64  // batches whose filter was answered by zone maps alone
	AnsweredFromMeta atomic.Int64  // rowsets whose aggregate needed no column data
	Columns          []ColumnStats // per schema column
}

// ColumnStats counts pages of one column.
type ColumnStats struct {
	Pages       atomic.Int64 // pages within the key bounds
	ByZone      atomic.Int64 // skipped: zone map excludes the filter
	BySelection atomic.Int64 // skipped: no selected row in the page
	Cached      atomic.Int64 // found decoded in the cache
	Decoded     atomic.Int64 // decoded, and read before that unless the cache had them packed
	Bytes       atomic.Int64 // bytes read from files
}

// NewStats returns counters for a schema of n columns.
func NewStats(n int) *Stats { return &Stats{Columns: make([]ColumnStats, n)} }
