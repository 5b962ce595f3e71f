package memrowset

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// MaxRows is the largest number of rows of a memrowset.
const MaxRows = 1 << 30

// ErrDuplicateKey is returned by Append when a key is stored already, which the caller
// should have found out by Lookup.
var ErrDuplicateKey = errors.New("key is in the memrowset already")

// MemRowSet holds the newest rows of a tablet. See the package comment.
type MemRowSet struct {
	// Set at New, then read-only.
	id      rowset.ID
	schema  *schema.Schema
	columns []*column
	keys    *bytesStore         // encoded keys
	table   *table              // of the keys
	times   *fixedStore[uint64] // insert timestamps
	width   int                 // bytes of the fixed-width cells of a row

	// Safe on their own.
	published atomic.Int64 // rows that readers may see
	index     atomic.Pointer[index]
	memory    atomic.Int64
	deltas    *delta.MemStore // changes of the rows
	revived   atomic.Uint64   // time of the newest revival
	pins      pins

	append struct { // guards appending
		sync.Mutex
		last   mvcc.Timestamp
		broken error // of an append that failed half-way
		rows   []int32
	}
}

// index gives key order to the rows: each is in the active tree or in one run. Only the
// appender makes a new one, and only at the end does it add to the lists of the old.
type index struct {
	active *tree
	runs   []*run // of treeRows rows or more
	recent []*run // smaller ones
}

const (
	bulkRows  = 256 // rows appended at once that make a run of their own
	maxRecent = 64  // recent runs before they are merged
)

// What a row is charged for its place in the index. Nodes of a tree are about 70 % full.
const (
	treeRowBytes = 36
	runRowBytes  = 4
)

// New returns an empty memrowset.
func New(id rowset.ID, s *schema.Schema) *MemRowSet {
	m := &MemRowSet{id: id, schema: s, deltas: delta.NewMemStore(s)}
	m.keys = newBytesStore(&m.memory)
	m.times = &fixedStore[uint64]{kind: schema.KindInt64, mem: &m.memory}
	for i := range s.Len() {
		kind := s.Column(i).Kind()
		m.columns = append(m.columns, newColumn(kind, &m.memory))
		m.width += kind.Width()
	}
	m.table = newTable(m.keys, &m.memory)
	m.index.Store(&index{active: newTree(m.keys, prefix{})})
	return m
}

// Expect says how many rows will probably be appended: as many as the memrowset before
// had. It is called before the first Append.
func (m *MemRowSet) Expect(rows int64) { m.table.expect = int(rows) }

// ID returns the rowset's id.
func (m *MemRowSet) ID() rowset.ID { return m.id }

// Schema returns the schema of the rows.
func (m *MemRowSet) Schema() *schema.Schema { return m.schema }

// Bounds returns false: any key may be here.
func (m *MemRowSet) Bounds() (min, max []byte, ok bool) { return nil, nil, false }

// Rows returns the number of rows that readers may see.
func (m *MemRowSet) Rows() int64 { return m.published.Load() }

// MemoryBytes returns the memory the memrowset holds.
func (m *MemRowSet) MemoryBytes() int64 { return m.memory.Load() + m.deltas.Bytes() }

// CollectedBytes returns the memory of the changes of rows.
func (m *MemRowSet) CollectedBytes() int64 { return m.deltas.Bytes() }

// Live returns the number of rows that are live now.
func (m *MemRowSet) Live() int64 { return m.Rows() - m.deltas.Deletes() + m.deltas.Revivals() }

// Later calls fn for the changes of every commit after the given time, in timestamp
// order, until it fails. What fn is given must not be changed.
func (m *MemRowSet) Later(after mvcc.Timestamp, fn func(ts mvcc.Timestamp, c *rowset.Changes) error) error {
	return m.deltas.Later(after, fn)
}

// Apply changes stored rows: sets columns, deletes, or puts a deleted row back. Calls
// come in timestamp order, one at a time.
func (m *MemRowSet) Apply(ts mvcc.Timestamp, c *rowset.Changes) error {
	if err := m.deltas.Apply(ts, c); err != nil {
		return err
	}
	if c.Kind == rowset.ChangePut {
		m.revived.Store(uint64(ts))
	}
	return nil
}

// LastPut returns the time of the newest insert or revival, 0 when it is empty.
func (m *MemRowSet) LastPut() mvcc.Timestamp {
	last, _ := m.MaxTime()
	return max(last, mvcc.Timestamp(m.revived.Load()))
}

// BytesPerRow returns the mean bytes of the cells of a row, by which a writer of
// rowsets judges how many rows make a file; 0 when there are no rows.
func (m *MemRowSet) BytesPerRow() int {
	rows := m.Rows()
	if rows == 0 {
		return 0
	}
	size := int64(m.width) * rows
	for _, c := range m.columns {
		if s, ok := c.values.(*bytesStore); ok {
			size += s.size.Load()
		}
	}
	return int(size / rows)
}

// MinTime returns the oldest timestamp in the memrowset, which anchors the log (R9),
// and false when it is empty.
func (m *MemRowSet) MinTime() (mvcc.Timestamp, bool) {
	if m.Rows() == 0 {
		return 0, false
	}
	return m.time(0), true
}

// MaxTime returns the newest insert timestamp of a row, and false when there is none.
func (m *MemRowSet) MaxTime() (mvcc.Timestamp, bool) {
	rows := m.Rows()
	if rows == 0 {
		return 0, false
	}
	return m.time(int(rows) - 1), true
}

// time returns the insert timestamp of a row.
func (m *MemRowSet) time(row int) mvcc.Timestamp {
	return mvcc.Timestamp(m.times.at(rowset.RowID(row)))
}

// rowsAt returns how many of the first n rows were inserted at or before t: rows stand
// in the order of their timestamps.
func (m *MemRowSet) rowsAt(t mvcc.Timestamp, n int) int {
	if n == 0 || m.time(n-1) <= t {
		return n
	}
	return sort.Search(n, func(i int) bool { return m.time(i) > t })
}

// visible returns how many rows were inserted at or before a time.
func (m *MemRowSet) visible(at mvcc.Timestamp) int { return m.rowsAt(at, int(m.Rows())) }

// Append inserts rows at timestamp ts, which is not below that of an earlier Append:
// for each index k of which, ascending (nil: of every key), the key keys.At(k) with row
// keys.ColumnRow(k) of cols, one vector per schema column. It returns the first row's
// number; the others follow. Readers see all of the rows at once. The caller holds
// locks on the keys and knows them to be absent.
//
// An error means a bug of the caller or a cell too large for memory. After
// ErrDuplicateKey and other failures half-way the memrowset refuses further rows; what
// was published stays readable.
func (m *MemRowSet) Append(ts mvcc.Timestamp, cols []*vector.Vector, keys *rowset.Keys, which []int32) (rowset.RowID, error) {
	a := &m.append
	a.Lock()
	defer a.Unlock()
	first := int(m.published.Load())
	keyPick := pick{rows: which, n: len(which)}
	if which == nil {
		keyPick.n = keys.Len()
	}
	switch {
	case a.broken != nil:
		return 0, a.broken
	case len(cols) != len(m.columns):
		return 0, fmt.Errorf("append to memrowset: %d columns, want %d", len(cols), len(m.columns))
	case ts < a.last:
		return 0, fmt.Errorf("append to memrowset: timestamp %d follows %d", ts, a.last)
	case keyPick.n > MaxRows-first:
		return 0, fmt.Errorf("append to memrowset: more than %d rows", MaxRows)
	case keyPick.n == 0:
		return rowset.RowID(first), nil
	}
	if err := m.appendAll(ts, cols, keys, keyPick, m.rowPick(keys, keyPick), first); err != nil {
		a.broken = fmt.Errorf("append to memrowset: %w", err)
		return 0, a.broken
	}
	a.last = ts
	m.published.Store(int64(first + keyPick.n))
	return rowset.RowID(first), nil
}

// rowPick returns the rows of the columns that belong to the picked keys.
func (m *MemRowSet) rowPick(keys *rowset.Keys, p pick) pick {
	if keys.Row == nil {
		return p
	}
	rows := m.append.rows[:0]
	for i := range p.n {
		rows = append(rows, keys.Row[p.row(i)])
	}
	m.append.rows = rows
	return pick{rows: rows, n: p.n}
}

// appendAll appends in pieces of at most a chunk.
func (m *MemRowSet) appendAll(ts mvcc.Timestamp, cols []*vector.Vector, keys *rowset.Keys, which, rows pick, at int) error {
	for i := 0; i < which.n; {
		n := min(which.n-i, chunkRows)
		if err := m.appendPiece(ts, cols, keys, which.part(i, n), rows.part(i, n), at+i); err != nil {
			return err
		}
		i += n
	}
	return nil
}

func (m *MemRowSet) appendPiece(ts mvcc.Timestamp, cols []*vector.Vector, keys *rowset.Keys, which, rows pick, at int) error {
	for c, v := range cols {
		if err := m.columns[c].append(v, rows, at); err != nil {
			return err
		}
	}
	m.times.fill(uint64(ts), at, rows.n)
	if err := m.keys.append(keys.Encoded, which, at); err != nil {
		return err
	}
	if !m.table.add(keys, which, at) {
		return ErrDuplicateKey
	}
	if which.n >= bulkRows {
		m.addRun(at, which.n)
	} else {
		m.addToTree(at, which.n)
	}
	return nil
}

// addRun makes rows [at, at+n) a run. When the recent runs are many, or enough, they
// become one.
func (m *MemRowSet) addRun(at, n int) {
	x, r := *m.index.Load(), runOf(m.keys, at, n)
	x.recent = append(x.recent, r)
	if at == 0 {
		x.refit(r)
	}
	total := 0
	for _, r := range x.recent {
		total += len(r.rows)
	}
	switch {
	case total >= treeRows:
		r = mergeRuns(x.recent)
		x.runs, x.recent = append(x.runs, r), nil
		x.refit(r)
	case len(x.recent) == maxRecent:
		x.recent = []*run{mergeRuns(x.recent)}
	}
	m.memory.Add(runRowBytes * int64(n))
	m.index.Store(&x)
}

// refit makes items that tell the keys of a run apart, as long as there are none.
func (x *index) refit(r *run) {
	if x.active.len() == 0 {
		x.active = newTree(r.keys, newPrefix(r.first(), r.last()))
	}
}

// addToTree puts rows [at, at+n) into the active tree, and seals it when it is full.
func (m *MemRowSet) addToTree(at, n int) {
	x := m.index.Load()
	x.active.insert(at, n)
	m.memory.Add(treeRowBytes * int64(n))
	if x.active.len() >= treeRows {
		m.seal(x)
	}
}

// seal replaces the active tree, which only the appender changes, by a run. Readers
// keep reading the tree until the run is complete.
func (m *MemRowSet) seal(x *index) {
	r := x.active.seal()
	m.memory.Add((runRowBytes - treeRowBytes) * int64(len(r.rows)))
	m.index.Store(&index{active: newTree(m.keys, newPrefix(r.first(), r.last())), runs: append(x.runs, r), recent: x.recent})
}

// ReadRow appends the cells of a row to dst, one vector for each of the columns.
func (m *MemRowSet) ReadRow(ctx context.Context, row rowset.RowID, at mvcc.Timestamp, columns []int, dst []*vector.Vector) error {
	switch {
	case int64(row) >= m.Rows():
		return fmt.Errorf("read row %d of memrowset: it has %d rows", row, m.Rows())
	case m.time(int(row)) > at:
		return fmt.Errorf("read row %d of memrowset: inserted after time %d", row, at)
	}
	rows := single.Get().(*[1]rowset.RowID)
	defer single.Put(rows)
	rows[0] = row
	for i, c := range columns {
		done, err := m.deltas.PatchRow(ctx, at, c, int(row), dst[i])
		if err == nil && !done {
			err = m.columns[c].gather(dst[i], rows[:])
		}
		if err != nil {
			return fmt.Errorf("read row %d of memrowset: %w", row, err)
		}
	}
	return nil
}

// single holds lists of one row, so that ReadRow does not allocate.
var single = sync.Pool{New: func() any { return new([1]rowset.RowID) }}
