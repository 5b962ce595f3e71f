package tablet

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/memrowset"
	"github.com/minikudu/minikudu/schema"
)

// ErrIllegalState says that the tablet cannot do what was asked in its present
// state, e.g. that its generated ids are used up.
var ErrIllegalState = errors.New("illegal state")

// ID identifies a tablet for the life of its store.
type ID uint64

// Env is what a tablet needs of its store. Functions may be called concurrently.
type Env struct {
	Disk   diskrowset.Env           // how rowset files are read
	Writer diskrowset.WriterOptions // how they are written; schema and version are filled in
	// NewRowSet returns an id that no rowset of the tablet had before.
	NewRowSet func() rowset.ID
	// SyncLog makes the log durable through the timestamp, in every durability mode.
	SyncLog func(ctx context.Context, through mvcc.Timestamp) error
	// Publish makes a change of the tablet durable: one manifest edit. After an error
	// that does not answer ErrUncertain nothing has changed.
	Publish func(ctx context.Context, p *Publication) error
	// Visible returns the newest commit that readers see.
	Visible func() mvcc.Timestamp
	// Quiesce calls f while no commit is between the log and memory.
	Quiesce func(f func())
	// Horizon calls raise with the time up to which history need not be kept, at most
	// Visible; no reader registers before raise returns (R8).
	Horizon func(raise func(mvcc.Timestamp))
	// Replaying reports whether the log is being replayed.
	Replaying func() bool
}

// Publication is one atomic, durable change of a tablet.
type Publication struct {
	Tablet  ID
	Remove  []*rowset.Meta             // rowsets that go, with their files
	Add     []diskrowset.Written       // rowsets that come
	Update  *rowset.Meta               // a rowset whose description changes
	Deltas  []*diskrowset.WrittenDelta // files of changes that come
	Files   []diskrowset.Written       // files of new columns of Update that come
	Gone    []rowset.FileNum           // files of changes that Update leaves out
	I, MaxM mvcc.Timestamp             // watermarks after the change, see R3
	H       mvcc.Timestamp             // horizon: history up to it may be gone
	LastID  int64                      // largest generated id in use
}

// State is a tablet as the manifest has it.
type State struct {
	ID            ID
	Schema        *schema.Schema
	SchemaVersion uint32
	I, MaxM, H    mvcc.Timestamp
	LastID        int64
	RowSets       []*rowset.Meta
}

// Tablet is a partition of a table.
type Tablet struct {
	// Set at open, then read-only.
	id     ID
	schema *schema.Schema
	env    Env
	all    []int // schema columns

	// Safe on their own.
	stores  atomic.Pointer[stores]
	locks   keyLocks
	habits  diskrowset.Habits // of its columns
	closed  atomic.Bool       // by Close or Drop
	lastID  atomic.Int64      // largest generated id handed out
	i, maxM atomic.Uint64     // watermarks of the last publication
	h       atomic.Uint64     // horizon: history up to it may be gone, or will be

	// Taken in this order, before mu.
	compacting sync.Mutex // held over a compaction
	flushing   sync.Mutex // held over a flush, so that flushes publish in rotation order
	publishing sync.Mutex // held over a manifest edit

	mu   sync.Mutex                  // guards replacing stores, and busy
	busy map[*diskrowset.RowSet]bool // inputs of a compaction, whose changes are not flushed meanwhile (R7)
}

// stores is what the tablet's rows are in. It is immutable.
type stores struct {
	active  *memrowset.MemRowSet
	rotated []*memrowset.MemRowSet // oldest first
	disk    *Tree                  // of *diskrowset.RowSet
}

// diskSets returns the disk rowsets.
func (s *stores) diskSets() []rowset.RowSet {
	sets := make([]rowset.RowSet, s.disk.Len())
	for i := range sets {
		sets[i] = s.disk.RowSet(i)
	}
	return sets
}

// Open returns the tablet of the given state. It reads no rowset file. An error says
// that the description of a rowset makes no sense.
func Open(env Env, s State) (*Tablet, error) {
	t := &Tablet{id: s.ID, schema: s.Schema, env: env, all: allColumns(0, s.Schema.Len())}
	t.env.Writer.Schema, t.env.Writer.SchemaVersion = s.Schema, s.SchemaVersion
	t.env.Disk.Schema = s.Schema
	t.lastID.Store(s.LastID)
	t.i.Store(uint64(s.I))
	t.maxM.Store(uint64(s.MaxM))
	t.h.Store(uint64(s.H))
	sets := make([]rowset.RowSet, 0, len(s.RowSets))
	for _, m := range s.RowSets {
		rs, err := diskrowset.Open(m, t.env.Disk)
		if err != nil {
			for _, open := range sets {
				open.(*diskrowset.RowSet).Close()
			}
			return nil, err
		}
		sets = append(sets, rs)
	}
	t.stores.Store(&stores{active: t.newMemRowSet(), disk: NewTree(sets)})
	return t, nil
}

func (t *Tablet) newMemRowSet() *memrowset.MemRowSet {
	return memrowset.New(t.env.NewRowSet(), t.schema)
}

// ID returns the tablet's id.
func (t *Tablet) ID() ID { return t.id }

// Schema returns the tablet's schema.
func (t *Tablet) Schema() *schema.Schema { return t.schema }

// Watermark returns I: every insert up to it is in published rowset files.
func (t *Tablet) Watermark() mvcc.Timestamp { return mvcc.Timestamp(t.i.Load()) }

// Horizon returns H: what happened up to it may not be told apart any more, so that no
// snapshot before it may be read.
func (t *Tablet) Horizon() mvcc.Timestamp { return mvcc.Timestamp(t.h.Load()) }

// raiseHorizon moves the horizon to where it may be now, and returns it.
func (t *Tablet) raiseHorizon() (h mvcc.Timestamp) {
	t.env.Horizon(func(now mvcc.Timestamp) {
		h = max(now, t.Horizon())
		t.h.Store(uint64(h))
	})
	return h
}

// writer returns how rowsets are written with history kept after the horizon. Insert
// times may go only where a replay does not need them (R8).
func (t *Tablet) writer(horizon mvcc.Timestamp) diskrowset.WriterOptions {
	o := t.env.Writer
	o.Habits = &t.habits
	if !t.env.Replaying() {
		o.Horizon = horizon
		if oldest := t.Memory().Oldest; oldest > 0 {
			o.Horizon = min(horizon, oldest)
		}
	}
	return o
}

// Memory is what a tablet holds in memory that flushes would free.
type Memory struct {
	Bytes        int64          // of all memrowsets and changes of disk rowsets
	ActiveBytes  int64          // of the active memrowset
	ActiveOldest mvcc.Timestamp // oldest commit in it, 0 when it is empty
	Rotated      int            // memrowsets that wait for their flush
	DeltaBytes   int64          // of changes of disk rowsets
	Oldest       mvcc.Timestamp // oldest commit in memory, which anchors the log (R9); 0 when there is none
}

// Full reports whether the active memrowset takes at least n bytes.
func (t *Tablet) Full(n int64) bool { return t.stores.Load().active.MemoryBytes() >= n }

// Memory returns what the tablet holds in memory.
func (t *Tablet) Memory() Memory {
	s := t.stores.Load()
	m := Memory{ActiveBytes: s.active.MemoryBytes(), Rotated: len(s.rotated)}
	m.Bytes = m.ActiveBytes
	oldest := func(ts mvcc.Timestamp) {
		if ts > 0 && (m.Oldest == 0 || ts < m.Oldest) {
			m.Oldest = ts
		}
	}
	m.ActiveOldest, _ = s.active.MinTime()
	oldest(m.ActiveOldest)
	for _, r := range s.rotated {
		m.Bytes += r.MemoryBytes()
		first, _ := r.MinTime()
		oldest(first)
	}
	for i := range s.disk.Len() {
		rs := s.disk.RowSet(i).(*diskrowset.RowSet)
		m.DeltaBytes += rs.MemoryBytes()
		oldest(rs.OldestChange())
	}
	m.Bytes += m.DeltaBytes
	return m
}

// RowSets returns the disk rowsets in order of smallest key.
func (t *Tablet) RowSets() []*diskrowset.RowSet {
	tree := t.stores.Load().disk
	out := make([]*diskrowset.RowSet, tree.Len())
	for i := range out {
		out[i] = tree.RowSet(i).(*diskrowset.RowSet)
	}
	return out
}

// Rows returns the number of live rows, from metadata alone.
func (t *Tablet) Rows() int64 {
	s := t.stores.Load()
	n := s.active.Live()
	for _, r := range s.rotated {
		n += r.Live()
	}
	for i := range s.disk.Len() {
		n += s.disk.RowSet(i).(*diskrowset.RowSet).Live()
	}
	return n
}

// Verify checks every disk rowset. It returns all damage found.
func (t *Tablet) Verify(ctx context.Context) []error {
	sets, release, err := t.Hold()
	if err != nil {
		return []error{err}
	}
	defer release()
	var errs []error
	for _, rs := range sets {
		if err := rs.Verify(ctx); err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errs
}

// Close lets go of files. Scans that still run fail.
func (t *Tablet) Close() {
	t.closed.Store(true)
	for _, rs := range t.RowSets() {
		rs.Close()
	}
}

// Drop is Close that also deletes the files, once nobody reads them.
func (t *Tablet) Drop() {
	t.closed.Store(true)
	for _, rs := range t.RowSets() {
		rs.Drop()
	}
}
