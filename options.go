package minikudu

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

// Durability says when a commit is safe from what.
type Durability uint8

// The durabilities.
const (
	// DurabilityDefault stands for the DB's durability in a commit, for Sync in Options.
	DurabilityDefault Durability = iota
	// Sync: durable against power loss when Commit returns. Commits that wait at the
	// same time share one sync.
	Sync
	// Interval: safe from a kill of the process when Commit returns, from power loss
	// at most Options.SyncInterval later.
	Interval
	// NoSync: safe from a kill of the process when Commit returns, from power loss
	// when the operating system writes it back or the rows are flushed.
	NoSync
)

// String returns "sync", "interval" or "none".
func (d Durability) String() string {
	switch d {
	case Interval:
		return "interval"
	case NoSync:
		return "none"
	}
	return "sync"
}

// Options configure a DB. The zero value works; a nil *Options is the zero value.
type Options struct {
	// Behaviour

	// ReadOnly opens without writing anything: the log is replayed in memory. Several
	// read-only handles may be open, none beside a writer. Default false.
	ReadOnly bool
	// ErrorIfMissing makes Open fail with fs.ErrNotExist where there is no store,
	// instead of making one. A read-only open always does. Default false.
	ErrorIfMissing bool
	// Durability of commits that do not ask for another. Default Sync.
	Durability Durability
	// SyncInterval is the longest time between syncs under Interval. Default 100 ms.
	SyncInterval time.Duration
	// Limits of tables. Defaults: 300 columns, names of 256 bytes, cells of 64 KiB,
	// encoded keys of 16 KiB. Raise them for wide rows; cells of 8 MiB at most.
	Limits schema.Limits
	// MaxBatchBytes is the largest size of a batch, checked before anything is done.
	// Default min(32 MiB, MemoryBudget/4).
	MaxBatchBytes int64
	// AllowClockStep lets commits follow a wall clock that jumped forward by more
	// than an hour while the store was open; without it they fail. Default false.
	AllowClockStep bool
	// FS is the file system. Default vfs.OS.
	FS vfs.FS
	// Events receives what happens in the background. Default none.
	Events *EventListener
	// Logger receives the same as text. Default none: the engine is silent.
	Logger *slog.Logger
	// Now is the source of time, for tests. Default time.Now.
	Now func() time.Time

	// Performance

	// MemoryBudget bounds what the DB holds in memory, in bytes: half for cached
	// pages, a quarter for rows not yet flushed, the rest for work buffers. Default
	// 512 MiB, at least 8 MiB.
	MemoryBudget int64
	// FlushBytes is the memory of a table's unflushed rows at which they are written
	// out. Default min(64 MiB, MemoryBudget/8). Above that the unflushed rows of all
	// tables may take twice as much, even if it is more than their share of MemoryBudget.
	FlushBytes int64
	// RowSetBytes is the target size of a rowset file. Default min(32 MiB,
	// MemoryBudget/4). Smaller ones make compaction cheaper and look-ups dearer.
	RowSetBytes int64
	// MaxOpenFiles bounds open rowset files. Default 512, or half of what the
	// operating system allows the process if that is less.
	MaxOpenFiles int
	// CompactionWorkers is the number of goroutines that compact in the background, beside
	// the one that flushes: a table is compacted by one at a time. Default 1; negative for
	// none, then only Table.Compact and the like do. At most 64.
	CompactionWorkers int
	// MaxReaderAge ends scans that have run for longer, at their next batch, with
	// ErrReaderExpired, and lets go of snapshots that were held for longer, so that a reader
	// that was forgotten does not keep history and replaced files for ever. Pins are not
	// concerned. Default 0: none.
	MaxReaderAge time.Duration
	// CompactionRate bounds what compactions in the background write together, in bytes a
	// second of rowset files. They go as fast as they can while memory or the log is short
	// of room, and while somebody waits for one to end. Default 0: no bound.
	CompactionRate int64
	// LogBytes is the size of the log at which the table that holds back its oldest
	// part is flushed. It is kept in segments of a quarter of that, at most 16 MiB.
	// Default twice FlushBytes, at least 32 MiB.
	LogBytes int64
}

// segmentBytes is the size of a log segment. The log is trimmed by whole segments.
func (o *Options) segmentBytes() int64 { return min(16*mib, max(4<<10, o.LogBytes/4)) }

const (
	mib             = 1 << 20
	minMemoryBudget = 8 * mib
	// maxCellBytes keeps a page of one cell within the 16 MiB that a compressed block
	// of a column file may hold.
	maxCellBytes = 8 * mib
	maxWorkers   = 64
)

// withDefaults returns a copy of o, which may be nil, with the defaults filled in.
func (o *Options) withDefaults() *Options {
	var c Options
	if o != nil {
		c = *o
	}
	def := func(p *int64, v int64) {
		if *p == 0 {
			*p = v
		}
	}
	def(&c.MemoryBudget, 512*mib)
	def(&c.MaxBatchBytes, min(32*mib, c.MemoryBudget/4))
	def(&c.FlushBytes, min(64*mib, c.MemoryBudget/8))
	def(&c.RowSetBytes, min(32*mib, c.MemoryBudget/4))
	def(&c.LogBytes, max(32*mib, 2*c.FlushBytes))
	if c.Durability == DurabilityDefault {
		c.Durability = Sync
	}
	if c.CompactionWorkers == 0 {
		c.CompactionWorkers = 1
	}
	if c.SyncInterval == 0 {
		c.SyncInterval = 100 * time.Millisecond
	}
	if c.FS == nil {
		c.FS = vfs.OS
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MaxOpenFiles == 0 {
		c.MaxOpenFiles = defaultOpenFiles()
	}
	if c.Events == nil {
		c.Events = &EventListener{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Limits = c.Limits.WithDefaults()
	return &c
}

// Validate reports everything that is wrong with the options at once. Open calls it.
func (o *Options) Validate() error {
	var errs []error
	positive := func(name string, v int64) {
		if v < 0 {
			errs = append(errs, fmt.Errorf("options: %s is %d, must not be negative", name, v))
		}
	}
	positive("MaxBatchBytes", o.MaxBatchBytes)
	positive("FlushBytes", o.FlushBytes)
	positive("RowSetBytes", o.RowSetBytes)
	positive("LogBytes", o.LogBytes)
	positive("CompactionRate", o.CompactionRate)
	positive("MaxReaderAge", int64(o.MaxReaderAge))
	positive("MaxOpenFiles", int64(o.MaxOpenFiles))
	positive("SyncInterval", int64(o.SyncInterval))
	if o.Limits.MaxCellBytes > maxCellBytes {
		errs = append(errs, fmt.Errorf("options: Limits.MaxCellBytes is %d, at most %d", o.Limits.MaxCellBytes, maxCellBytes))
	}
	if o.CompactionWorkers > maxWorkers {
		errs = append(errs, fmt.Errorf("options: CompactionWorkers is %d, at most %d", o.CompactionWorkers, maxWorkers))
	}
	if o.MemoryBudget != 0 && o.MemoryBudget < minMemoryBudget {
		errs = append(errs, fmt.Errorf("options: MemoryBudget is %d bytes, at least %d", o.MemoryBudget, minMemoryBudget))
	}
	if o.Durability > NoSync {
		errs = append(errs, fmt.Errorf("options: unknown Durability %d", o.Durability))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidArgument, err)
	}
	return nil
}

// String prints the effective values, one a line.
func (o *Options) String() string {
	c := o.withDefaults()
	return fmt.Sprintf("read only: %v\ndurability: %v\nsync interval: %v\nmemory budget: %d\nflush bytes: %d\n"+
		"rowset bytes: %d\nlog bytes: %d\nmax batch bytes: %d\nmax open files: %d\n"+
		"compaction workers: %d\ncompaction rate: %d\n",
		c.ReadOnly, c.Durability, c.SyncInterval, c.MemoryBudget, c.FlushBytes, c.RowSetBytes, c.LogBytes, c.MaxBatchBytes, c.MaxOpenFiles,
		c.CompactionWorkers, c.CompactionRate)
}
