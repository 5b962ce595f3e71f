package minikudu

import (
	"fmt"
	"time"

	"github.com/minikudu/minikudu/compaction"
)

// EventListener receives what happens in the background. Callbacks may be nil, run
// on the goroutine that does the work, and must not call the DB.
type EventListener struct {
	// FlushBegin is called before a memory rowset is written out.
	FlushBegin func(FlushInfo)
	// FlushEnd is called when it was, or could not be.
	FlushEnd func(FlushInfo)
	// DeltaFlushBegin is called before changes of a disk rowset are written out.
	DeltaFlushBegin func(DeltaFlushInfo)
	// DeltaFlushEnd is called when they were, or could not be.
	DeltaFlushEnd func(DeltaFlushInfo)
	// CompactionBegin is called before rowsets or files of changes are merged, or rowsets
	// without live rows deleted.
	CompactionBegin func(CompactionInfo)
	// CompactionEnd is called when they were, or could not be.
	CompactionEnd func(CompactionInfo)
	// Replayed is called once the log has been replayed at open.
	Replayed func(ReplayInfo)
	// BackgroundError is called for every failure of a background step; the step is
	// retried after a pause.
	BackgroundError func(error)
	// Stall is called when a write had to wait for memory.
	Stall func(StallInfo)
}

// FlushInfo describes a flush.
type FlushInfo struct {
	Job      int64 // number of the background step, from 1
	Table    string
	Reason   string // why it was chosen: "size", "age", "memory", "log" or "asked"
	Rows     int64
	Memory   int64 // bytes of the memory rowset
	RowSets  int   // files written
	Bytes    int64 // bytes of the files
	Duration time.Duration
	Err      error
}

// String returns one line.
func (i FlushInfo) String() string {
	if i.Err != nil {
		return fmt.Sprintf("job %d: flush of %q failed after %v: %v", i.Job, i.Table, i.Duration.Round(time.Millisecond), i.Err)
	}
	return fmt.Sprintf("job %d: flush of %q (%s): %d rows, %d bytes of memory to %d rowsets of %d bytes in %v",
		i.Job, i.Table, i.Reason, i.Rows, i.Memory, i.RowSets, i.Bytes, i.Duration.Round(time.Millisecond))
}

// DeltaFlushInfo describes a flush of the changes of one disk rowset.
type DeltaFlushInfo struct {
	Job      int64 // number of the background step, from 1
	Table    string
	Reason   string // as of a flush
	RowSet   uint64 // id
	Changes  int64
	Memory   int64 // bytes of the changes
	Bytes    int64 // bytes of the file
	Duration time.Duration
	Err      error
}

// String returns one line.
func (i DeltaFlushInfo) String() string {
	if i.Err != nil {
		return fmt.Sprintf("job %d: flush of changes of %q failed after %v: %v", i.Job, i.Table, i.Duration.Round(time.Millisecond), i.Err)
	}
	return fmt.Sprintf("job %d: flush of changes of %q (%s): %d changes of rowset %d, %d bytes of memory to %d bytes in %v",
		i.Job, i.Table, i.Reason, i.Changes, i.RowSet, i.Memory, i.Bytes, i.Duration.Round(time.Millisecond))
}

// CompactionInfo describes a compaction, or the deletion of rowsets without live rows.
type CompactionInfo struct {
	Job   int64 // number of the background step, from 1
	Table string
	Kind  compaction.Kind
	// Reason says why it was chosen: "gain" (look-ups ask fewer rowsets or files, or there
	// are fewer small ones), "waste" (a fifth of it or more is freed), "garbage" (nothing
	// in it lives) or "asked".
	Reason            string
	Score             float64 // what the policy expects of it, see package compaction; 0 if it was not asked
	Inputs, Outputs   int     // rowsets, or files of changes
	BytesIn, BytesOut int64   // of their files
	RowsDropped       int64   // deleted rows whose bytes are gone
	Duration          time.Duration
	Err               error
}

// String returns one line.
func (i CompactionInfo) String() string {
	if i.Err != nil {
		return fmt.Sprintf("job %d: %v of %q failed after %v: %v", i.Job, i.Kind, i.Table, i.Duration.Round(time.Millisecond), i.Err)
	}
	return fmt.Sprintf("job %d: %v of %q (%s): %d files of %d bytes to %d of %d bytes, %d rows dropped in %v",
		i.Job, i.Kind, i.Table, i.Reason, i.Inputs, i.BytesIn, i.Outputs, i.BytesOut, i.RowsDropped, i.Duration.Round(time.Millisecond))
}

// ReplayInfo describes the replay of the log at open.
type ReplayInfo struct {
	Records  int64 // records read
	Bytes    int64 // bytes of log read
	Rows     int64 // rows put back into memory
	Flushes  int   // memory rowsets written out on the way
	Trimmed  bool  // an incomplete tail was cut off
	Duration time.Duration
}

// String returns one line.
func (i ReplayInfo) String() string {
	return fmt.Sprintf("replayed %d records (%d bytes, %d rows, %d flushes) in %v", i.Records, i.Bytes, i.Rows, i.Flushes,
		i.Duration.Round(time.Millisecond))
}

// StallInfo describes a write that waited for memory.
type StallInfo struct {
	Wait   time.Duration
	Memory int64 // bytes of unflushed rows when it began
}

// String returns one line.
func (i StallInfo) String() string {
	return fmt.Sprintf("a write waited %v at %d bytes of unflushed rows", i.Wait.Round(time.Microsecond), i.Memory)
}
