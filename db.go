package minikudu

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/filecache"
	"github.com/minikudu/minikudu/internal/manifest"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/wal"
)

// DB is an open store. All methods may be called concurrently.
type DB struct {
	// Set at open, then read-only.
	dir       string
	opts      *Options
	fs        vfs.FS
	lock      io.Closer
	manifest  *manifest.Manifest
	log       *wal.Log
	clock     *mvcc.Clock
	files     *filecache.Cache
	pages     *diskrowset.Pages
	memory    *memoryGate
	readers   mvcc.Readers // snapshots in use; safe on its own
	replayEnd wal.Position // where the log ended at open
	orphans   []string     // during an open: rowset files that no edit names

	// Safe on their own.
	gate       *gate
	background *background
	metrics    metrics
	rate       rate          // of what compactions in the background write
	visible    atomic.Uint64 // newest commit that readers see
	failure    atomic.Pointer[error]
	lastCommit atomic.Int64 // nanoseconds since opened
	logStarted atomic.Bool  // false while the log is replayed
	nextFile   atomic.Uint64
	nextRowSet atomic.Uint64
	trimmed    struct { // the log state last written to the manifest
		sync.Mutex
		first uint64
	}

	commit sync.Mutex // orders commits: timestamp, log record, pins; excludes rotation
	apply  sync.Mutex // taken before commit is released: commits apply in timestamp order

	catalog struct {
		sync.RWMutex
		tables map[string]*Table
		list   []*Table   // by id
		change sync.Mutex // held over a change of the catalog, manifest edit included
	}
}

// closeWait bounds how long Close waits for calls in progress. Scans notice at
// their next batch.
const closeWait = 10 * time.Second

// Close stops the background work, waits for calls in progress (10 seconds at most)
// and releases the store. It does not flush: rows in memory are in the log. From then
// on a second Close, and every call that reads or writes rows or tables, is ErrClosed.
func (db *DB) Close() error {
	if db.gate.isShut() {
		return ErrClosed
	}
	db.background.cancel()
	if !db.gate.close(closeWait) {
		return ErrClosed
	}
	db.background.stop()
	var errs []error
	if !db.opts.ReadOnly {
		end, err := db.log.Close()
		errs = append(errs, err)
		if err == nil {
			errs = append(errs, db.recordLogEnd(end))
		}
	}
	for _, t := range db.tableList() {
		t.tablet.Close()
	}
	if db.manifest != nil {
		errs = append(errs, db.manifest.Close())
	}
	return errors.Join(append(errs, db.lock.Close())...)
}

// tableList returns the tables by id. The caller must not change it.
func (db *DB) tableList() []*Table {
	db.catalog.RLock()
	defer db.catalog.RUnlock()
	return db.catalog.list
}

// setTables replaces the tables.
func (db *DB) setTables(list []*Table) {
	slices.SortFunc(list, func(a, b *Table) int { return int(a.id) - int(b.id) })
	tables := make(map[string]*Table, len(list))
	for _, t := range list {
		tables[t.name] = t
	}
	db.catalog.Lock()
	defer db.catalog.Unlock()
	db.catalog.tables, db.catalog.list = tables, list
}

// Tables returns the tables in order of name.
func (db *DB) Tables() []*Table {
	list := slices.Clone(db.tableList())
	slices.SortFunc(list, func(a, b *Table) int { return strings.Compare(a.name, b.name) })
	return list
}

// Dir returns the directory of the store.
func (db *DB) Dir() string { return db.dir }

// Options returns the effective options.
func (db *DB) Options() Options { return *db.opts }

// Now returns the present as a timestamp, not below that of any commit.
func (db *DB) Now() Timestamp { return db.clock.Now() }

func (db *DB) newFile() rowset.FileNum { return rowset.FileNum(db.nextFile.Add(1) - 1) }

func (db *DB) newRowSet() rowset.ID { return rowset.ID(db.nextRowSet.Add(1) - 1) }

// trimLog deletes log segments that nothing needs any more (R9). The manifest says
// first where the log begins now, so that a missing older segment is no damage.
func (db *DB) trimLog(ctx context.Context) error {
	db.trimmed.Lock()
	defer db.trimmed.Unlock()
	first := db.log.KeepFrom(db.anchor())
	if first <= db.trimmed.first {
		return nil
	}
	state := &manifest.LogState{FirstSegment: first, Ends: logEnds(db.logReach())}
	if err := db.edit(ctx, &manifest.Edit{Log: state, ClockFloor: db.snapshot()}); err != nil {
		return err
	}
	db.trimmed.first = first
	_, err := db.log.TrimBefore(first)
	return err
}

// logReach returns how far the log survives a power cut. A segment of which nothing is
// durable yet does not count: a close or the next open removes it.
func (db *DB) logReach() wal.Position {
	if end, _ := db.log.Durable(); end.Offset > binfmt.HeaderSize {
		return end
	}
	return db.replayEnd
}

// recordLogEnd notes in the manifest how far the log is known to reach, so that a
// shorter one is known to be damaged.
func (db *DB) recordLogEnd(end wal.Position) error {
	state := &manifest.LogState{FirstSegment: db.trimmed.first, Ends: logEnds(end)}
	return db.edit(context.Background(), &manifest.Edit{Log: state, ClockFloor: db.clock.Now()})
}

func logEnds(end wal.Position) []manifest.LogEnd {
	if end == (wal.Position{}) {
		return nil
	}
	return []manifest.LogEnd{{Segment: end.Segment, Offset: end.Offset}}
}

// knownLogEnd returns how far the manifest says that the log reaches.
func knownLogEnd(s *manifest.LogState) (end wal.Position) {
	if n := len(s.Ends); n > 0 {
		end = wal.Position{Segment: s.Ends[n-1].Segment, Offset: s.Ends[n-1].Offset}
	}
	return end
}
