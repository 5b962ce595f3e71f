package minikudu

import (
	"sync/atomic"
	"time"

	"github.com/minikudu/minikudu/tablet"
)

// metrics are the counters of a DB.
type metrics struct {
	commits, rows, gets, scans, scannedRows atomic.Int64
	flushes, flushedRows, flushedBytes      atomic.Int64
	flushedFiles, backgroundErrors          atomic.Int64
	deltaFlushes, deltaBytes                atomic.Int64
	compactions, compactedIn, compactedOut  atomic.Int64
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
	Compactions     int64
	CompactedBytes  int64 // bytes of rowset files that compactions read
	CompactionBytes int64 // bytes of rowset files that they wrote

	Tables       int
	RowSets      int
	RowSetBytes  int64 // bytes of the rowset files in use
	LogBytes     int64 // bytes of log segments
	LogSyncs     int64 // syncs of the log
	LogGroups    int64 // writes of the log, each of one or more commits
	MemoryBytes  int64 // bytes of unflushed rows and changes
	MemoryLimit  int64 // at which writers wait
	Stalls       int64 // writes that waited for memory
	StallTime    time.Duration
	PageCache    CacheMetrics
	OpenFiles    int // rowset files open
	MaxOpenFiles int
}

// CacheMetrics are counters of the page cache.
type CacheMetrics struct {
	Budget, Bytes, Pages    int64
	Hits, Misses, Evictions int64
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
		DeltaFlushes: db.metrics.deltaFlushes.Load(), DeltaBytes: db.metrics.deltaBytes.Load(), Compactions: db.metrics.compactions.Load(),
		CompactedBytes: db.metrics.compactedIn.Load(), CompactionBytes: db.metrics.compactedOut.Load(),
		LogBytes: db.log.Size(), LogSyncs: l.Syncs, LogGroups: l.Groups,
		MemoryBytes: db.memory.used.Load(), MemoryLimit: db.memory.limit, Stalls: db.memory.stalls.Load(),
		StallTime: time.Duration(db.memory.stalled.Load()),
		PageCache: CacheMetrics{Budget: s.Budget, Bytes: s.Bytes, Pages: s.Pages, Hits: s.Hits, Misses: s.Misses, Evictions: s.Evictions},
		OpenFiles: db.files.Stats().Open, MaxOpenFiles: db.opts.MaxOpenFiles,
	}
	for _, t := range db.tableList() {
		m.Tables++
		for _, rs := range t.tablet.RowSets() {
			m.RowSets++
			m.RowSetBytes += rs.Meta().EncodedBytes()
		}
	}
	return m
}
