package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/vfs"
)

// Log is a write-ahead log. See the package comment for the order of calls.
type Log struct {
	// Set by Open, then read-only.
	fs   vfs.FS
	dir  string
	opts Options

	// Used by Open, Replay and Start only.
	found     []*segment // all segments in the directory, ascending
	lost      []Drop     // missing segments, when salvaging
	replayed  bool
	replaying *replayer // while Replay runs
	claim     Position  // the log is known durable up to here

	alloc      *allocator
	kick       chan struct{}  // asks the syncer for an interval sync
	quit       chan struct{}  // closed by Close
	background sync.WaitGroup // the syncer and the allocator

	trim sync.Mutex // serialises TrimBefore and Close

	mu struct {
		sync.Mutex
		changed  *sync.Cond // something below changed
		segments []*segment // of the log, ascending; the last one is appended to
		first    uint64     // least number of a segment of this run
		started  bool
		begun    bool // the last segment is of this run
		closed   bool
		err      error // why the log failed

		pending *group // appended, not handed to a writer
		spare   *group // the other buffer, nil while a writer has it
		writing bool
		syncing bool

		end       Position       // of the last appended record
		written   Position       // end of what was written
		durable   Position       // end of what was synced
		appendTS  mvcc.Timestamp // largest timestamp appended
		writtenTS mvcc.Timestamp
		durableTS mvcc.Timestamp

		metrics Metrics
	}
}

// Open surveys the segments in dir, which it makes unless o.ReadOnly. It reads the
// beginning of each segment; [Log.Replay] reads the records.
func Open(ctx context.Context, fsys vfs.FS, dir string, o Options) (*Log, error) {
	o.fill()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	l := &Log{fs: fsys, dir: dir, opts: o, kick: make(chan struct{}, 1), quit: make(chan struct{})}
	l.mu.changed = sync.NewCond(&l.mu)
	if err := l.surveyAll(ctx); err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	if err := l.findChain(); err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	return l, nil
}

// surveyAll fills l.found.
func (l *Log) surveyAll(ctx context.Context) error {
	if !l.opts.ReadOnly {
		if err := l.fs.MkdirAll(l.dir); err != nil {
			return err
		}
	}
	names, err := l.fs.List(l.dir)
	if err != nil && !(l.opts.ReadOnly && errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	for _, name := range names {
		number, ok := parseName(name)
		if !ok {
			continue
		}
		s := l.newSegment(number)
		l.found = append(l.found, s)
		if number < l.opts.First {
			continue
		}
		if err := s.survey(ctx, l.fs, l.opts.Store); err != nil {
			return err
		}
	}
	slices.SortFunc(l.found, func(a, b *segment) int { return Position{a.number, 0}.Compare(Position{b.number, 0}) })
	return nil
}

// findChain marks the segments that are part of the log: the last one with a link,
// the one it links to, and so on (I3). A salvage looks at those after it too.
func (l *Log) findChain() error {
	i := len(l.found) - 1
	for i >= 0 && !l.found[i].linked && !l.opts.Salvage {
		i--
	}
	for i >= 0 {
		s := l.found[i]
		s.member = true
		if s.err != nil && !l.opts.Salvage {
			return s.err
		}
		var err error
		if i, err = l.predecessor(s); err != nil {
			return err
		}
	}
	return l.checkReached()
}

// predecessor returns the index of the segment before s and sets its end; -1 when
// s is the first of the log.
func (l *Log) predecessor(s *segment) (int, error) {
	if !s.linked { // damaged; replay tells what that means
		return l.indexBefore(s.number), nil
	}
	if s.prev.Segment == 0 || s.prev.Segment < l.opts.First {
		return -1, nil
	}
	for i, p := range l.found {
		if p.number == s.prev.Segment {
			p.end = s.prev.Offset
			return i, nil
		}
	}
	i := l.indexBefore(s.number)
	if i < 0 && l.opts.First == 0 {
		return i, nil
	}
	return i, l.missing(s.prev.Segment, fmt.Errorf("missing, %s continues it", s.name))
}

// checkReached reports a log whose last known segment is not there.
func (l *Log) checkReached() error {
	end := l.opts.End
	if end.Segment == 0 || end.Segment < l.opts.First ||
		slices.ContainsFunc(l.found, func(s *segment) bool { return s.number >= end.Segment && s.linked && s.member }) {
		return nil
	}
	if slices.ContainsFunc(l.found, func(s *segment) bool { return s.number == end.Segment }) {
		return nil // replay says what is wrong with it
	}
	return l.missing(end.Segment, fmt.Errorf("missing, the log is known to reach %v", end))
}

// missing returns the error for a segment that is lost; a salvage notes it and goes on.
func (l *Log) missing(number uint64, err error) error {
	path := l.fs.Join(l.dir, segmentName(number))
	if l.opts.Salvage {
		l.lost = append(l.lost, Drop{Path: path, Err: err})
		return nil
	}
	return &vfs.CorruptionError{Path: path, Section: "log segment", Err: err}
}

// indexBefore returns the index of the segment before the given number, -1 when
// there is none in the log's range.
func (l *Log) indexBefore(number uint64) int {
	for i, s := range slices.Backward(l.found) {
		if s.number < number && s.number >= l.opts.First {
			return i
		}
	}
	return -1
}
