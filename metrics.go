package minikudu

import (
	"sync/atomic"
	"time"

	"github.com/minikudu/minikudu/compaction"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/tablet"
)

// metrics are the counters of a DB.
type metrics struct {
	commits, rows, gets, scans, scannedRows  atomic.Int64
	flushes, flushedRows, flushedBytes       atomic.Int64
	flushedFiles, backgroundErrors           atomic.Int64
	deltaFlushes, deltaBytes                 atomic.Int64
	userBytes                                atomic.Int64
	merges, minors, majors, drops, histories compactionMetrics
}

// compactionMetrics are the counters of compactions of one kind.
type compactionMetrics struct{ steps, in, out atomic.Int64 }

// compacted counts a compaction.
func (m *metrics) compacted(i *CompactionInfo) {
	c := &m.merges
	switch i.Kind {
	case compaction.CompactMinor:
		c = &m.minors
	case compaction.CompactMajor:
		c = &m.majors
	case compaction.DropHistory:
		c = &m.histories
	case compaction.DropRowSet:
		c = &m.drops
	}
	c.steps.Add(1)
	c.in.Add(i.BytesIn)
	c.out.Add(i.BytesOut)
}

func (m *metrics) flushed(f tablet.Flushed) {
	m.flushes.Add(1)
	m.flushedRows.Add(f.Rows)
	m.flushedBytes.Add(f.Bytes)
	m.flushedFiles.Add(int64(f.Files))
}

// Metrics are counters since Open, and present sizes.
type Metrics struct {
	Commits     int64 // batches that wrote something
	RowsWritten int64 // rows put, updated or deleted
	Gets        int64 // rows found by key
	Scans       int64
	RowsScanned int64 // rows that scans selected

	Flushes          int64
	FlushedRows      int64
	FlushedBytes     int64 // bytes of rowset files written by flushes
	FlushedFiles     int64
	BackgroundErrors int64 // failed background steps

	DeltaFlushes    int64 // flushes of changes of a disk rowset
	DeltaBytes      int64 // bytes of the files they wrote
	Compactions     int64 // merges of rowsets
	CompactedBytes  int64 // bytes of rowset files that compactions read
	CompactionBytes int64 // bytes of rowset files that they wrote

	MinorCompactions     int64 // merges of files of changes
	MinorCompactedBytes  int64 // bytes of the files that they read
	MinorCompactionBytes int64 // bytes of the files that they wrote
	MajorCompactions     int64 // foldings of changes into columns
	MajorCompactedBytes  int64 // bytes of the columns and changes that they read
	MajorCompactionBytes int64 // bytes of the files that they wrote
	HistoryDrops         int64 // rowsets of which expired history was deleted
	RowSetDrops          int64 // deletions of rowsets without live rows
	DroppedBytes         int64 // bytes of the rowset files that went

	RunningFlushes     int // in progress, of rows and of changes
	RunningCompactions int // in progress, of every kind

	Tables       int
	RowSets      int
	RowSetBytes  int64         // bytes of the rowset files in use
	DeltaFiles   int           // files of changes in use
	ChangeBytes  int64         // bytes of files of changes that are not merged yet
	HistoryBytes int64         // bytes of files of history
	WasteBytes   int64         // bytes of all of these that compactions could free now
	PinnedBytes  int64         // bytes of history that would be gone but for scans, snapshots and pins
	OldestReader time.Duration // age of the oldest state that a scan, snapshot or pin holds
	UserBytes    int64         // bytes of batches as they were logged
	LogBytes     int64         // bytes of log segments
	LogSyncs     int64         // syncs of the log
	LogGroups    int64         // writes of the log, each of one or more commits
	MemoryBytes  int64         // bytes of unflushed rows and changes
	MemoryLimit  int64         // at which writers wait
	Stalls       int64         // writes that waited for memory
	StallTime    time.Duration
	LongestStall time.Duration
	PageCache    CacheMetrics
	OpenFiles    int // rowset files open
	MaxOpenFiles int
}

// WrittenBytes returns the bytes of rowset files and files of changes that flushes and
// compactions wrote.
func (m *Metrics) WrittenBytes() int64 {
	return m.FlushedBytes + m.DeltaBytes + m.CompactionBytes + m.MinorCompactionBytes + m.MajorCompactionBytes
}

// WriteAmplification returns the bytes written to rowset files and files of changes since
// Open, for each byte of those in use now; 0 without any.
func (m *Metrics) WriteAmplification() float64 {
	if live := m.RowSetBytes + m.ChangeBytes + m.HistoryBytes; live > 0 {
		return float64(m.WrittenBytes()) / float64(live)
	}
	return 0
}

// SpaceAmplification returns the bytes of rowset files and files of changes in use, for
// each byte that compactions could not free; 0 without any.
func (m *Metrics) SpaceAmplification() float64 {
	used := m.RowSetBytes + m.ChangeBytes + m.HistoryBytes
	if rest := used - m.WasteBytes; rest > 0 {
		return float64(used) / float64(rest)
	}
	return 0
}

// CacheMetrics are counters of the page cache.
type CacheMetrics struct {
	Budget, Bytes, Pages    int64
	Hits, Misses, Evictions int64
}

// pinnedBytes returns the bytes of UNDO files that the history mark has passed and the
// horizon has not.
func pinnedBytes(m *rowset.Meta, horizon, mark Timestamp) (n int64) {
	for i := range m.Undo {
		if d := &m.Undo[i]; d.MaxTime > horizon && d.MaxTime <= mark {
			n += d.Section.Length
		}
	}
	return n
}

// readerAge returns the age of the oldest state in use, 0 when there is none.
func (db *DB) readerAge() time.Duration {
	oldest := db.readers.Oldest()
	if oldest == mvcc.Max {
		return 0
	}
	return max(0, db.opts.Now().Sub(oldest.Time()))
}

// Metrics returns the counters.
func (db *DB) Metrics() Metrics {
	s := db.pages.Stats()
	l := db.log.Metrics()
	m := Metrics{
		Commits: db.metrics.commits.Load(), RowsWritten: db.metrics.rows.Load(), Gets: db.metrics.gets.Load(),
		Scans: db.metrics.scans.Load(), RowsScanned: db.metrics.scannedRows.Load(),
		Flushes: db.metrics.flushes.Load(), FlushedRows: db.metrics.flushedRows.Load(), FlushedBytes: db.metrics.flushedBytes.Load(),
		FlushedFiles: db.metrics.flushedFiles.Load(), BackgroundErrors: db.metrics.backgroundErrors.Load(),
		DeltaFlushes: db.metrics.deltaFlushes.Load(), DeltaBytes: db.metrics.deltaBytes.Load(), Compactions: db.metrics.merges.steps.Load(),
		CompactedBytes: db.metrics.merges.in.Load(), CompactionBytes: db.metrics.merges.out.Load(),
		MinorCompactions: db.metrics.minors.steps.Load(), MinorCompactedBytes: db.metrics.minors.in.Load(),
		MajorCompactions: db.metrics.majors.steps.Load(), MajorCompactedBytes: db.metrics.majors.in.Load(),
		MajorCompactionBytes: db.metrics.majors.out.Load(), HistoryDrops: db.metrics.histories.steps.Load(),
		MinorCompactionBytes: db.metrics.minors.out.Load(), RowSetDrops: db.metrics.drops.steps.Load(), DroppedBytes: db.metrics.drops.in.Load(),
		RunningFlushes: int(db.background.flushes.Load()), RunningCompactions: int(db.background.compactions.Load()),
		UserBytes: db.metrics.userBytes.Load(), LongestStall: time.Duration(db.memory.longest.Load()),
		LogBytes: db.log.Size(), LogSyncs: l.Syncs, LogGroups: l.Groups,
		MemoryBytes: db.memory.used.Load(), MemoryLimit: db.memory.limit, Stalls: db.memory.stalls.Load(),
		StallTime: time.Duration(db.memory.stalled.Load()),
		PageCache: CacheMetrics{Budget: s.Budget, Bytes: s.Bytes, Pages: s.Pages, Hits: s.Hits, Misses: s.Misses, Evictions: s.Evictions},
		OpenFiles: db.files.Stats().Open, MaxOpenFiles: db.opts.MaxOpenFiles, OldestReader: db.readerAge(),
	}
	for _, t := range db.tableList() {
		m.Tables++
		sets, layout := t.tablet.Layout()
		for i, rs := range sets {
			meta := rs.Meta()
			m.RowSets, m.RowSetBytes = m.RowSets+1, m.RowSetBytes+meta.EncodedBytes()
			m.DeltaFiles, m.ChangeBytes = m.DeltaFiles+len(meta.Redo), m.ChangeBytes+deltaBytes(meta.Redo)
			m.HistoryBytes += deltaBytes(meta.Undo)
			m.PinnedBytes += pinnedBytes(meta, t.tablet.Horizon(), db.ancient(t.history))
			m.WasteBytes += layout[i].Reclaimable
		}
	}
	return m
}
