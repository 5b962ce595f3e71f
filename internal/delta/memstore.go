package delta

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync/atomic"
	"unsafe"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

const (
	chunkBits = 10 // nodes and commits are kept in chunks of 1024
	chunkLen  = 1 << chunkBits
)

// MemStore is the changes of one rowset in memory. See the package comment.
type MemStore struct {
	schema *schema.Schema // read-only

	heads   heads // newest node of every row that changed
	nodes   list[*[chunkLen]node]
	commits list[*[chunkLen]commit]

	numCommits atomic.Int64
	entries    atomic.Int64
	deletes    atomic.Int64
	life       atomic.Int64 // deletions and revivals
	bytes      atomic.Int64
	updates    []atomic.Int64 // by schema column
	lastSet    []atomic.Int64 // by schema column: the time of the newest change that sets it
	unsorted   atomic.Bool    // the rows of some commit do not ascend
	numNodes   uint32         // of the applier alone; node 0 does not exist
}

// node is one change of one row.
type node struct {
	older  uint32
	commit uint32
	cell   uint32 // index in the commit's vectors
}

// commit is the changes of one kind that came with one commit.
type commit struct {
	ts      mvcc.Timestamp
	changes rowset.Changes // owned; At is nil
}

// list is an append-only slice that readers load atomically.
type list[T any] struct{ p atomic.Pointer[[]T] }

func (l *list[T]) load() []T {
	if p := l.p.Load(); p != nil {
		return *p
	}
	return nil
}

func (l *list[T]) store(s []T) { l.p.Store(&s) }

// NewMemStore returns an empty store for rows of the given schema.
func NewMemStore(s *schema.Schema) *MemStore {
	return &MemStore{schema: s, updates: make([]atomic.Int64, s.Len()), lastSet: make([]atomic.Int64, s.Len())}
}

// Apply adds changes that a commit at ts makes; ts is not below that of an earlier
// Apply. Calls come one at a time. The values are copied. An error means that the
// values do not fit memory; nothing was added then.
func (m *MemStore) Apply(ts mvcc.Timestamp, c *rowset.Changes) error {
	if len(c.Rows) == 0 {
		return nil
	}
	if uint64(m.numNodes)+uint64(len(c.Rows)) > math.MaxUint32-1 {
		return fmt.Errorf("more than %d changes in memory", uint32(math.MaxUint32))
	}
	own, size, err := copyChanges(c)
	if err != nil {
		return err
	}
	at := m.addCommit(commit{ts: ts, changes: own})
	first := m.addNodes(at, own.Rows)
	before := m.heads.bytes
	for i, row := range own.Rows {
		m.heads.publish(row, first+uint32(i))
	}
	m.bytes.Add(m.heads.bytes - before)
	if !slices.IsSorted(own.Rows) {
		m.unsorted.Store(true)
	}
	m.numCommits.Store(int64(at) + 1)
	m.count(ts, &own, size)
	return nil
}

// copyChanges returns a copy of c with one cell for each row, in their order.
func copyChanges(c *rowset.Changes) (rowset.Changes, int, error) {
	own := rowset.Changes{Kind: c.Kind, Rows: slices.Clone(c.Rows), Columns: slices.Clone(c.Columns)}
	size := 4*len(own.Rows) + 64
	for _, v := range c.Values {
		w := vector.New(v.Kind(), len(c.Rows))
		var err error
		if c.At == nil {
			err = w.AppendRange(v, 0, len(c.Rows))
		} else {
			err = w.AppendRows(v, c.At)
		}
		if err != nil {
			return own, 0, err
		}
		own.Values = append(own.Values, w)
		size += w.Size()
	}
	return own, size, nil
}

// addCommit stores a commit, not yet counted, and returns its index.
func (m *MemStore) addCommit(c commit) uint32 {
	n := m.numCommits.Load()
	chunks := m.commits.load()
	if int(n>>chunkBits) == len(chunks) {
		chunks = append(chunks[:len(chunks):len(chunks)], new([chunkLen]commit))
		m.commits.store(chunks)
	}
	chunks[n>>chunkBits][n&(chunkLen-1)] = c
	return uint32(n)
}

// addNodes stores a node for each of the rows and returns the first one's index.
func (m *MemStore) addNodes(commit uint32, rows []rowset.RowID) uint32 {
	first := m.numNodes + 1
	last := m.numNodes + uint32(len(rows))
	chunks := m.nodes.load()
	if need := int(last>>chunkBits) + 1; need > len(chunks) {
		chunks = slices.Clone(chunks)
		for len(chunks) < need {
			chunks = append(chunks, new([chunkLen]node))
		}
		m.nodes.store(chunks)
	}
	for i, row := range rows {
		n := first + uint32(i)
		chunks[n>>chunkBits][n&(chunkLen-1)] = node{older: m.heads.of(row), commit: commit, cell: uint32(i)}
	}
	m.numNodes = last
	return first
}

func (m *MemStore) count(ts mvcc.Timestamp, c *rowset.Changes, size int) {
	n := int64(len(c.Rows))
	m.entries.Add(n)
	m.bytes.Add(int64(size) + 12*n)
	for _, col := range c.Columns {
		m.updates[col].Add(n)
		m.lastSet[col].Store(int64(ts))
	}
	switch c.Kind {
	case rowset.ChangeDel:
		m.deletes.Add(n)
		m.life.Add(n)
	case rowset.ChangePut:
		m.life.Add(n)
	}
}

func (m *MemStore) node(n uint32) *node { return &m.nodes.load()[n>>chunkBits][n&(chunkLen-1)] }

func (m *MemStore) commit(i uint32) *commit { return &m.commits.load()[i>>chunkBits][i&(chunkLen-1)] }

// until returns the number of commits up to a time.
func (m *MemStore) until(at mvcc.Timestamp) int {
	return sort.Search(int(m.numCommits.Load()), func(i int) bool { return m.commit(uint32(i)).ts > at })
}

// Bytes returns the memory the store holds.
func (m *MemStore) Bytes() int64 { return m.bytes.Load() }

// Entries returns the number of changes of rows.
func (m *MemStore) Entries() int64 { return m.entries.Load() }

// Deletes returns how many of the changes delete a row.
func (m *MemStore) Deletes() int64 { return m.deletes.Load() }

// Revivals returns how many of the changes put a deleted row back.
func (m *MemStore) Revivals() int64 { return m.life.Load() - m.deletes.Load() }

// Updates returns how many of the changes set the schema column.
func (m *MemStore) Updates(col int) int64 { return m.updates[col].Load() }

// MinTime returns the oldest commit in the store, 0 when it is empty.
func (m *MemStore) MinTime() mvcc.Timestamp {
	if m.numCommits.Load() == 0 {
		return 0
	}
	return m.commit(0).ts
}

// MaxTime returns the newest commit in the store, 0 when it is empty.
func (m *MemStore) MaxTime() mvcc.Timestamp {
	n := m.numCommits.Load()
	if n == 0 {
		return 0
	}
	return m.commit(uint32(n - 1)).ts
}

// Touches reports whether some change sets the column.
func (m *MemStore) Touches(col int) bool { return m.updates[col].Load() > 0 }

// LastSet returns the time of the newest change that sets the column, 0 when there is none.
func (m *MemStore) LastSet(col int) mvcc.Timestamp { return mvcc.Timestamp(m.lastSet[col].Load()) }

// HasLife reports whether some change deletes or revives a row.
func (m *MemStore) HasLife() bool { return m.life.Load() > 0 }

// Changed reports whether some change may set the column in a row of [from, to).
func (m *MemStore) Changed(_ context.Context, col, from, to int) (bool, error) {
	if !m.Touches(col) {
		return false, nil
	}
	return m.heads.any(from, to), nil
}

// lifeAt returns the newest deletion or revival of a chain at the given time.
func (m *MemStore) lifeAt(at mvcc.Timestamp, n uint32) (kind rowset.ChangeKind, ok bool) {
	for n != 0 {
		x := m.node(n)
		c := m.commit(x.commit)
		if c.ts <= at && c.changes.Kind != rowset.ChangeSet {
			return c.changes.Kind, true
		}
		n = x.older
	}
	return 0, false
}

// cellAt returns the vector and index of the newest cell of a column that a chain sets in
// the interval; nil when it sets none.
func (m *MemStore) cellAt(in mvcc.Interval, col int, n uint32) (*vector.Vector, int) {
	for n != 0 {
		x := m.node(n)
		c := m.commit(x.commit)
		if c.ts <= in.Lo {
			break // and so are the older ones
		}
		if c.ts <= in.Hi {
			if k := slices.Index(c.changes.Columns, col); k >= 0 {
				return c.changes.Values[k], int(x.cell)
			}
		}
		n = x.older
	}
	return nil, 0
}

// ApplyLife clears the rows that are deleted at the given time and sets those that
// were revived.
func (m *MemStore) ApplyLife(_ context.Context, at mvcc.Timestamp, from, to int, live vector.Bitmap) error {
	if !m.HasLife() {
		return nil
	}
	m.heads.each(from, to, func(row int, head uint32) bool {
		if kind, ok := m.lifeAt(at, head); ok {
			live.Put(row-from, kind == rowset.ChangePut)
		}
		return true
	})
	return nil
}

// Touched sets the rows of [from, to) that a commit in the interval changed.
func (m *MemStore) Touched(_ context.Context, in mvcc.Interval, from, to int, rows vector.Bitmap) error {
	m.heads.each(from, to, func(row int, _ uint32) bool {
		if m.TouchedRow(in, rowset.RowID(row)) {
			rows.Set(row - from)
		}
		return true
	})
	return nil
}

// Within reports whether a commit in the interval may have changed a row.
func (m *MemStore) Within(in mvcc.Interval) bool {
	first := m.MinTime()
	return first > 0 && first <= in.Hi && m.MaxTime() > in.Lo
}

// TouchedRow reports whether a commit in the interval changed the row.
func (m *MemStore) TouchedRow(in mvcc.Interval, row rowset.RowID) bool {
	for n := m.heads.of(row); n != 0; {
		x := m.node(n)
		if in.Contains(m.commit(x.commit).ts) {
			return true
		}
		n = x.older
	}
	return false
}

// Patch brings the cells of rows [from, to) through the interval; see [Reader].
func (m *MemStore) Patch(_ context.Context, in mvcc.Interval, col, from, to int, cells *Overlay) error {
	if m.LastSet(col) <= in.Lo {
		return nil
	}
	if first, n := m.until(in.Lo), m.until(in.Hi); !m.unsorted.Load() && int64(n-first)*minRunRows <= m.entries.Load() {
		return m.patchRuns(col, from, to, first, n, cells)
	}
	var err error
	b := patchBatch{store: m, in: in, col: col, from: from, cells: cells}
	m.heads.each(from, to, func(row int, head uint32) bool {
		b.rows[b.n], b.heads[b.n] = int32(row), head
		if b.n++; b.n == len(b.rows) {
			err = b.patch()
		}
		return err == nil
	})
	if err == nil {
		err = b.patch()
	}
	return err
}

// minRunRows is the number of changes for each commit of the interval from which on it is
// cheaper to look for a range of rows in every commit than to follow the rows' chains.
const minRunRows = 32

// patchRuns is Patch where the rows of every commit ascend: the changes of a range stand
// together in each of the commits [first, n), and the newest comes last.
func (m *MemStore) patchRuns(col, from, to, first, n int, cells *Overlay) error {
	ends := cells.endsOf(m, from, first, n)
	for i := first; i < n; i++ {
		c := m.commit(uint32(i))
		k := slices.Index(c.changes.Columns, col)
		if k < 0 {
			continue
		}
		rows, lo := c.changes.Rows, int(ends[i])
		if lo < 0 {
			lo, _ = slices.BinarySearch(rows, rowset.RowID(from))
		}
		end := lo + below(rows[lo:], rowset.RowID(to))
		if ends[i] = int32(end); end == lo {
			continue
		}
		if err := cells.Scatter(int32s(rows[lo:end]), from, c.changes.Values[k], lo); err != nil {
			return err
		}
	}
	cells.ended(m, to)
	return nil
}

// below returns how many of the ascending rows are below a row, most likely few: it looks
// at the first ones and doubles the distance (Bentley and Yao, "An almost optimal algorithm
// for unbounded searching", 1976).
func below(rows []rowset.RowID, row rowset.RowID) int {
	lo, step := 0, 1 // rows before lo are below
	for lo+step <= len(rows) && rows[lo+step-1] < row {
		lo += step
		step *= 2
	}
	n, _ := slices.BinarySearch(rows[lo:min(lo+step, len(rows))], row)
	return lo + n
}

// int32s views row numbers, which are below 1<<31, as numbers with a sign.
func int32s(rows []rowset.RowID) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows))
}

// patchBatch is rows that are patched together. Their nodes and cells lie anywhere in
// memory: each loop loads something for all rows, and nothing in it waits for what it
// loaded for another row.
type patchBatch struct {
	store *MemStore
	in    mvcc.Interval
	col   int
	from  int
	cells *Overlay

	n     int
	rows  [256]int32
	heads [256]uint32
	nodes [256]node
}

func (b *patchBatch) patch() error {
	n := b.n
	b.n = 0
	chunks := b.store.nodes.load()
	for i, h := range b.heads[:n] {
		b.nodes[i] = chunks[h>>chunkBits][h&(chunkLen-1)]
	}
	var last *commit // the commit of the row before, and which of its vectors holds the column
	number, k := uint32(0), -1
	for i := range b.nodes[:n] {
		x := &b.nodes[i]
		if last == nil || x.commit != number {
			last, number = b.store.commit(x.commit), x.commit
			k = slices.Index(last.changes.Columns, b.col)
		}
		v, cell := (*vector.Vector)(nil), int(x.cell)
		switch {
		case last.ts <= b.in.Lo:
			continue
		case last.ts <= b.in.Hi && k >= 0:
			v = last.changes.Values[k]
		default:
			v, cell = b.store.cellAt(b.in, b.col, x.older)
		}
		if v == nil {
			continue
		}
		if err := b.cells.Set(int(b.rows[i])-b.from, v, cell); err != nil {
			return err
		}
	}
	return nil
}

// PatchRow appends the row's cell at the given time, if the store has one; see [Reader].
func (m *MemStore) PatchRow(_ context.Context, at mvcc.Timestamp, col, row int, dst *vector.Vector) (bool, error) {
	cells, i := m.cellAt(mvcc.At(at), col, m.heads.of(rowset.RowID(row)))
	if cells == nil {
		return false, nil
	}
	return true, dst.AppendFrom(cells, i)
}

// Newest returns the newest change of the row; ok is false when there is none.
func (m *MemStore) Newest(row rowset.RowID) (kind rowset.ChangeKind, ts mvcc.Timestamp, ok bool) {
	n := m.heads.of(row)
	if n == 0 {
		return 0, 0, false
	}
	c := m.commit(m.node(n).commit)
	return c.changes.Kind, c.ts, true
}

// Last is Newest, as a [Reader] has it.
func (m *MemStore) Last(_ context.Context, row rowset.RowID) (rowset.ChangeKind, mvcc.Timestamp, bool, error) {
	kind, ts, ok := m.Newest(row)
	return kind, ts, ok, nil
}

// Later calls fn for the changes of every commit after the given time, in timestamp
// order, until it fails. What fn is given must not be changed.
func (m *MemStore) Later(after mvcc.Timestamp, fn func(ts mvcc.Timestamp, c *rowset.Changes) error) error {
	for i := range m.numCommits.Load() {
		if c := m.commit(uint32(i)); c.ts > after {
			if err := fn(c.ts, &c.changes); err != nil {
				return err
			}
		}
	}
	return nil
}

// EachCell calls fn for every change of a column, by row and then by time, until it
// fails: the new cell is cell i of cells, which must not be changed.
func (m *MemStore) EachCell(col int, fn func(row rowset.RowID, ts mvcc.Timestamp, cells *vector.Vector, i int) error) error {
	return m.eachChange(func(row rowset.RowID, x *node, c *commit) error {
		if k := slices.Index(c.changes.Columns, col); k >= 0 {
			return fn(row, c.ts, c.changes.Values[k], int(x.cell))
		}
		return nil
	})
}

// EachDelete calls fn for every deletion, by row and then by time, until it fails.
func (m *MemStore) EachDelete(fn func(row rowset.RowID, ts mvcc.Timestamp) error) error {
	return m.eachChange(func(row rowset.RowID, _ *node, c *commit) error {
		if c.changes.Kind == rowset.ChangeDel {
			return fn(row, c.ts)
		}
		return nil
	})
}

// eachChange calls fn for every change, by row and then by time, until it fails.
func (m *MemStore) eachChange(fn func(row rowset.RowID, x *node, c *commit) error) (err error) {
	var chain []uint32
	m.heads.each(0, m.heads.rows(), func(row int, head uint32) bool {
		chain = chain[:0]
		for n := head; n != 0; n = m.node(n).older {
			chain = append(chain, n)
		}
		for i := len(chain) - 1; i >= 0 && err == nil; i-- {
			x := m.node(chain[i])
			err = fn(rowset.RowID(row), x, m.commit(x.commit))
		}
		return err == nil
	})
	return err
}

var _ Reader = (*MemStore)(nil)

// Live reports whether a row that was live before its first change is so at the
// given time.
func (m *MemStore) Live(at mvcc.Timestamp, row rowset.RowID) bool {
	kind, ok := m.lifeAt(at, m.heads.of(row))
	return !ok || kind == rowset.ChangePut
}

// Revived returns the time of the row's newest revival at or before the given time.
func (m *MemStore) Revived(at mvcc.Timestamp, row rowset.RowID) (mvcc.Timestamp, bool) {
	for n := m.heads.of(row); n != 0; {
		x := m.node(n)
		if c := m.commit(x.commit); c.ts <= at && c.changes.Kind == rowset.ChangePut {
			return c.ts, true
		}
		n = x.older
	}
	return 0, false
}

// PatchRows is Patch for the given rows, in any order, instead of a range.
func (m *MemStore) PatchRows(at mvcc.Timestamp, col int, rows []rowset.RowID, cells *Overlay) error {
	if !m.Touches(col) {
		return nil
	}
	for k, row := range rows {
		if v, i := m.cellAt(mvcc.At(at), col, m.heads.of(row)); v != nil {
			if err := cells.Set(k, v, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// Death returns the time of the row's deletion if it is dead at the given time.
func (m *MemStore) Death(at mvcc.Timestamp, row rowset.RowID) (mvcc.Timestamp, bool) {
	for n := m.heads.of(row); n != 0; {
		x := m.node(n)
		if c := m.commit(x.commit); c.ts <= at && c.changes.Kind != rowset.ChangeSet {
			return c.ts, c.changes.Kind == rowset.ChangeDel
		}
		n = x.older
	}
	return 0, false
}

// FirstDeath returns the time of the row's first deletion in the interval, and whether the
// row was put back later in it.
func (m *MemStore) FirstDeath(in mvcc.Interval, row rowset.RowID) (first mvcc.Timestamp, again bool) {
	deaths := 0
	for n := m.heads.of(row); n != 0; {
		x := m.node(n)
		if c := m.commit(x.commit); in.Contains(c.ts) && c.changes.Kind == rowset.ChangeDel {
			first = c.ts
			deaths++
		}
		n = x.older
	}
	return first, deaths > 1
}

// Change is what a commit did to a row.
type Change struct {
	Time mvcc.Timestamp
	Kind rowset.ChangeKind

	changes *rowset.Changes
	cell    uint32
}

// Cell returns the vector and index of the cell that the change set in a column; nil
// when it set none.
func (c *Change) Cell(col int) (*vector.Vector, int) {
	k := slices.Index(c.changes.Columns, col)
	if k < 0 {
		return nil, 0
	}
	return c.changes.Values[k], int(c.cell)
}

// Past appends the changes of a row up to the given time to dst, oldest first.
func (m *MemStore) Past(at mvcc.Timestamp, row rowset.RowID, dst []Change) []Change {
	from := len(dst)
	for n := m.heads.of(row); n != 0; {
		x := m.node(n)
		if c := m.commit(x.commit); c.ts <= at {
			dst = append(dst, Change{Time: c.ts, Kind: c.changes.Kind, changes: &c.changes, cell: x.cell})
		}
		n = x.older
	}
	slices.Reverse(dst[from:])
	return dst
}
