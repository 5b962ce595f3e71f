package wal

import (
	"fmt"

	"github.com/minikudu/minikudu/internal/mvcc"
)

// KeepFrom returns the number of the first segment that holds a record with
// timestamp ts or a later one, or else of the segment that is appended to, which the
// first Append after Start makes; 0 for an empty log before Start. The caller keeps the
// number durably, for Options.First, before it trims.
func (l *Log) KeepFrom(ts mvcc.Timestamp) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	number := uint64(0)
	for _, s := range l.mu.segments {
		number = s.number
		if s.maxTS >= ts {
			return number
		}
	}
	if l.mu.started && !l.mu.begun {
		return l.mu.first
	}
	return number
}

// TrimBefore deletes the segments before the given one and returns how many. The
// segment that is appended to, and segments that are not yet durable, stay.
func (l *Log) TrimBefore(number uint64) (int, error) {
	l.trim.Lock()
	defer l.trim.Unlock()
	segments := l.trimmable(number)
	for i, s := range segments {
		if err := l.fs.Remove(s.name); err != nil {
			l.forget(i)
			return i, fmt.Errorf("trimming log: %w", err)
		}
	}
	l.forget(len(segments))
	if len(segments) == 0 {
		return 0, nil
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return len(segments), fmt.Errorf("trimming log: %w", err)
	}
	return len(segments), nil
}

func (l *Log) trimmable(number uint64) []*segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.started || l.mu.closed {
		return nil
	}
	n, last := 0, len(l.mu.segments)
	if l.mu.begun {
		last--
	}
	for n < last && l.mu.segments[n].number < number && l.mu.segments[n].file == nil {
		n++
	}
	return l.mu.segments[:n:n]
}

// forget drops the first n segments.
func (l *Log) forget(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.metrics.Trimmed += int64(n)
	l.mu.segments = append([]*segment(nil), l.mu.segments[n:]...)
}

// Size returns the bytes of the log in use, without what is made ahead.
func (l *Log) Size() int64 { return l.ReplayBytes(0) }

// Segments returns the number of segments in use.
func (l *Log) Segments() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.segments)
}

// ReplayBytes returns the bytes of the log that a replay would have to read were the
// log trimmed to KeepFrom(ts).
func (l *Log) ReplayBytes(ts mvcc.Timestamp) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.mu.segments {
		if s.maxTS >= ts {
			n += s.used
		}
	}
	return n
}
