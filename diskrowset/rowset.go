package diskrowset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// ErrClosed is returned by the calls of a RowSet that has been closed.
var ErrClosed = errors.New("rowset is closed")

// rowsPerRun is the distance of the rows whose keys the key index of a composite key holds.
const rowsPerRun = 128

// RowSet is a rowset on disk: immutable rows, and changes of them. It implements [rowset.RowSet].
type RowSet struct {
	// Set at open, then read-only.
	env     Env
	meta    *rowset.Meta // as opened; what changes is in deltas
	rows    int
	files   []*file
	columns []*column // by schema column; nil: no data, reads as its default
	keys    []*column // key columns
	times   *column   // nil: every row has the insert time meta.MinInsert
	index   *column   // key index of a composite key, nil with a single-column key
	filters *filters  // nil: none
	bounds  []keyBound

	// Safe on their own.
	deltas    atomic.Pointer[deltas]
	deltasMu  sync.Mutex // held while another deltas is made
	retired   atomic.Pointer[[]*deltaFile]
	refs      atomic.Int64
	closed    atomic.Bool
	drop      atomic.Bool                      // delete the files when the last reference ends
	gone      atomic.Pointer[[]rowset.FileNum] // files to delete then, all the same
	indexSlot [1]cache.Slot[cache.Page]
	indexMu   sync.Mutex // held while the key index is read
}

var _ rowset.RowSet = (*RowSet)(nil)

// Open returns the rowset that meta describes, with one reference, which Close or
// Drop ends. It does no I/O. Meta must not change afterwards.
func Open(meta *rowset.Meta, env Env) (*RowSet, error) {
	s := &RowSet{env: env, meta: meta, rows: int(meta.Rows)}
	s.refs.Store(1)
	s.deltas.Store(&deltas{meta: meta})
	if err := s.attach(); err != nil {
		s.finish()
		return nil, fmt.Errorf("rowset %d: %w", meta.ID, err)
	}
	return s, nil
}

// attach finds the sections of everything the rowset may be asked for.
func (s *RowSet) attach() error {
	if s.meta.Rows <= 0 || s.meta.Rows > maxRows {
		return vfs.Corruptf("%d rows", s.meta.Rows)
	}
	if err := s.attachColumns(); err != nil {
		return err
	}
	s.times = s.column(rowset.SectionInsertTimes, -1, "insert times", schema.Int64)
	if s.times == nil && s.meta.MinInsert != s.meta.MaxInsert {
		return vfs.Corruptf("no insert times")
	}
	if len(s.keys) > 1 {
		if s.index = s.column(rowset.SectionKeyIndex, -1, "key index", schema.Binary); s.index == nil {
			return vfs.Corruptf("no key index")
		}
		s.index.rows = int64(runCount(s.rows))
	}
	if sec, ok := s.meta.Section(rowset.SectionFilters, -1); ok {
		s.filters = &filters{file: s.file(sec.File), section: sec}
	}
	s.bounds = keyBounds(s.env.Schema, s.meta.KeyBounds)
	return s.attachDeltas()
}

func (s *RowSet) attachColumns() error {
	sch := s.env.Schema
	for i := range sch.Len() {
		c := sch.Column(i)
		col := s.column(rowset.SectionColumn, c.ID, c.Name, c.Type)
		s.columns = append(s.columns, col)
		if i >= sch.NumKey() {
			continue
		}
		if col == nil {
			return vfs.Corruptf("no data of key column %q", c.Name)
		}
		col.keyed = sch.NumKey() == 1
		s.keys = append(s.keys, col)
	}
	return nil
}

// runCount returns the number of runs of a rowset.
func runCount(rows int) int { return (rows + rowsPerRun - 1) / rowsPerRun }

// column returns the column stored in the given section, nil when there is none.
func (s *RowSet) column(kind rowset.SectionKind, id schema.ColumnID, name string, typ schema.Type) *column {
	sec, ok := s.meta.Section(kind, id)
	if !ok {
		return nil
	}
	c := &column{file: s.file(sec.File), pages: s.env.Pages, name: name, typ: typ, rows: s.meta.Rows, section: sec}
	if kind == rowset.SectionColumn {
		c.zoneSec, _ = s.meta.Section(rowset.SectionZoneMap, id)
	}
	return c
}

// file returns the file of the given number.
func (s *RowSet) file(n rowset.FileNum) *file {
	for _, f := range s.files {
		if f.num == n {
			return f
		}
	}
	path := s.env.path
	if path == "" {
		path = s.env.FS.Join(s.env.Dir, FileName(n))
	}
	f := &file{num: n, kind: binfmt.FileRowSet, path: path, store: s.env.StoreID, handle: s.env.Files.Handle(path, vfs.KindRowSet)}
	s.files = append(s.files, f)
	return f
}

// stored returns the data of a column of the given schema, which may be newer than the
// rowset's; nil when there is none.
func (s *RowSet) stored(sch *schema.Schema, col int) *column {
	if sch != s.env.Schema {
		col = s.env.Schema.FindID(sch.Column(col).ID)
		if col < 0 {
			return nil
		}
	}
	return s.columns[col]
}

// ID returns the rowset's id.
func (s *RowSet) ID() rowset.ID { return s.meta.ID }

// Meta returns the newest description of the rowset.
func (s *RowSet) Meta() *rowset.Meta { return s.deltas.Load().meta }

// Bounds returns the smallest and largest encoded key.
func (s *RowSet) Bounds() (min, max []byte, ok bool) { return s.meta.MinKey, s.meta.MaxKey, true }

// Rows returns the number of stored rows.
func (s *RowSet) Rows() int64 { return s.meta.Rows }

// Acquire takes a reference that keeps the files open, and returns false when the
// last one has ended already.
func (s *RowSet) Acquire() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release ends a reference taken with Acquire.
func (s *RowSet) Release() {
	retired := s.retired.Load()
	switch s.refs.Add(-1) {
	case 0:
		s.finish()
	case 1:
		// Only the opener is left, unless the rowset is closed, so all readers that began
		// before the files were retired are gone.
		if retired != nil && !s.closed.Load() && s.retired.CompareAndSwap(retired, nil) {
			letGo(*retired, true)
		}
	}
}

// Close ends the opener's reference. Iterators and lookups in flight finish; after
// the last of them the files are let go. It may be called twice.
func (s *RowSet) Close() {
	if s.closed.CompareAndSwap(false, true) {
		s.Release()
	}
}

// Drop is Close that also deletes the files once nobody reads them.
func (s *RowSet) Drop() {
	s.drop.Store(true)
	s.Close()
}

// finish lets files and cached pages go.
func (s *RowSet) finish() {
	for _, c := range append([]*column{s.times}, s.columns...) {
		if c != nil {
			c.forget()
		}
	}
	if s.filters != nil {
		if d := s.filters.dir.Load(); d != nil {
			s.env.Pages.Forget(d.slots)
		}
	}
	s.env.Pages.Forget(s.indexSlot[:])
	d := s.deltas.Load()
	for _, f := range append(d.files(), d.undo...) {
		letGo([]*deltaFile{f}, s.removes(f.file.num))
	}
	if retired := s.retired.Swap(nil); retired != nil {
		letGo(*retired, true)
	}
	for _, f := range s.files {
		f.release(s.removes(f.num))
	}
}

// removes reports whether a file goes with the rowset.
func (s *RowSet) removes(n rowset.FileNum) bool {
	gone := s.gone.Load()
	return s.drop.Load() || gone != nil && slices.Contains(*gone, n)
}

// Zone returns the summary of a whole schema column, and false when none is stored.
func (s *RowSet) Zone(ctx context.Context, col int) (vector.Zone, bool, error) {
	if !s.Acquire() {
		return vector.Zone{}, false, ErrClosed
	}
	defer s.Release()
	return s.zone(ctx, s.env.Schema, col)
}

func (s *RowSet) zone(ctx context.Context, sch *schema.Schema, col int) (vector.Zone, bool, error) {
	c := s.stored(sch, col)
	if c == nil {
		return constantZone(readDefault(sch.Column(col)), s.meta.Rows), true, nil
	}
	z, err := c.zoneMap(ctx)
	if z == nil || err != nil {
		return vector.Zone{}, false, err
	}
	return z.File, true, nil
}

// readDefault returns the value of a column in rows written before it was added.
func readDefault(c *schema.Column) schema.Value { return c.ReadDefault }

// constantZone summarises n cells of the same value.
func constantZone(v schema.Value, n int64) vector.Zone {
	z := vector.Zone{Rows: n}
	switch {
	case v.IsNull():
		z.Nulls = n
	case v.IsNaN():
		z.HasNaN = true
	default:
		z.Min, z.Max, z.Exact = v, v, true
	}
	return z
}

// keyRuns returns the runs in which keys are searched.
func (s *RowSet) keyRuns(ctx context.Context) (*runs, error) {
	if s.index == nil {
		d, err := s.keys[0].open(ctx)
		if err != nil {
			return nil, err
		}
		return d.keys, nil
	}
	if p, ok := s.indexSlot[0].Get(); ok {
		return p.(*runs), nil
	}
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	if p, ok := s.indexSlot[0].Get(); ok {
		return p.(*runs), nil
	}
	x, err := s.readKeyIndex(ctx)
	if err != nil {
		return nil, err
	}
	return s.env.Pages.Put(&s.indexSlot[0], x).(*runs), nil
}

// cachedKeyRuns is keyRuns without reading anything, nil when that takes a read.
func (s *RowSet) cachedKeyRuns() *runs {
	if s.index == nil {
		if d := s.keys[0].data.Load(); d != nil {
			return d.keys
		}
		return nil
	}
	if p, ok := s.indexSlot[0].Get(); ok {
		return p.(*runs)
	}
	return nil
}

func (s *RowSet) readKeyIndex(ctx context.Context) (*runs, error) {
	d, err := s.index.open(ctx)
	if err != nil {
		return nil, err
	}
	n := s.index.rows
	keys := vector.New(schema.KindBytes, int(n))
	if err := d.reader.AppendRange(ctx, d.index, 0, n, keys); err != nil {
		return nil, err
	}
	if int64(keys.Len()) != n || !ascending(keys) {
		return nil, s.index.damage(errors.New("keys do not ascend"))
	}
	return newRuns(keys), nil
}

// runRows returns the rows of run i.
func (s *RowSet) runRows(i int) (from, to int) {
	if s.index != nil {
		return i * rowsPerRun, min((i+1)*rowsPerRun, s.rows)
	}
	starts := s.keys[0].data.Load().index.Starts
	return int(starts[i]), int(starts[i+1])
}
