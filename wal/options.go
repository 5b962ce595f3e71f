package wal

import (
	"errors"
	"fmt"
	"time"

	"github.com/minikudu/minikudu/internal/binfmt"
)

// ErrClosed is returned by calls on a log that is closed.
var ErrClosed = errors.New("log is closed")

// ErrFailed is returned by calls on a log of which it is not known what is on disk. It
// takes nothing more until it is opened again.
var ErrFailed = errors.New("log failed, reopen the store")

// ErrReadOnly is returned by Start on a log that was opened for reading.
var ErrReadOnly = errors.New("log is read-only")

var errNotStarted = errors.New("log is not started")

// Mode says when Wait returns.
type Mode uint8

// The durability modes.
const (
	// Sync waits until the record survives a power cut.
	Sync Mode = iota
	// Interval waits until the record survives the process; within
	// Options.Interval it survives a power cut too.
	Interval
	// NoSync waits until the record survives the process.
	NoSync
)

// Limits of SegmentBytes, and of a record's payload and extension fields together.
const (
	MinSegmentBytes = 512
	MaxSegmentBytes = 1 << 30
	MaxRecordBytes  = 1 << 30
)

// Options of Open. The zero value works.
type Options struct {
	// Store is the UUID that every segment must carry; zero is a store of its own.
	Store binfmt.UUID
	// First is the number of the first segment that must be there: what KeepFrom
	// returned before the last trim. Older segments are leftovers. Zero: not known,
	// then the oldest segment found is the first.
	First uint64
	// End is a position up to which the log is known durable: what Close returned, or
	// Recovery.End of an earlier open that has started. Zero: not known.
	End Position
	// ReadOnly allows Replay only and changes nothing in the directory.
	ReadOnly bool
	// Salvage replays what is readable and reports the rest in Recovery.Dropped
	// instead of failing. Damage stays where it is, so the next open needs Salvage
	// too unless the damaged segments are trimmed.
	Salvage bool

	// SegmentBytes is the size of a segment file, 16 MiB by default.
	SegmentBytes int64
	// MaxPending is the size of the framed records in memory at which Append waits
	// for a write, 4 MiB by default. One record may exceed it.
	MaxPending int
	// Interval is the longest time until a record waited for with mode Interval is
	// synced, 100 ms by default.
	Interval time.Duration
}

func (o *Options) fill() {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 16 << 20
	}
	if o.MaxPending == 0 {
		o.MaxPending = 4 << 20
	}
	if o.Interval == 0 {
		o.Interval = 100 * time.Millisecond
	}
}

func (o *Options) validate() error {
	var errs []error
	if o.SegmentBytes < MinSegmentBytes || o.SegmentBytes > MaxSegmentBytes {
		errs = append(errs, fmt.Errorf("option SegmentBytes %d is not in [%d, %d]", o.SegmentBytes, MinSegmentBytes, MaxSegmentBytes))
	}
	if o.MaxPending < 0 {
		errs = append(errs, fmt.Errorf("option MaxPending %d is negative", o.MaxPending))
	}
	if o.Interval < 0 {
		errs = append(errs, fmt.Errorf("option Interval %v is negative", o.Interval))
	}
	return errors.Join(errs...)
}
