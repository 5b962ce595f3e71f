package wal

import (
	"context"
	"fmt"
	"time"

	"github.com/minikudu/minikudu/internal/mvcc"
)

// Wait waits until the record at pos is as durable as mode asks. One of the waiters
// writes everything that is pending, and with mode Sync syncs it, for all.
//
// When ctx ends first, the record's fate is unknown. After a failed write or sync
// the log takes nothing more until it is reopened.
func (l *Log) Wait(ctx context.Context, pos Position, mode Mode) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch mode {
	case Sync:
		return l.reachLocked(ctx, true, func() bool { return pos.Before(l.mu.durable) })
	case Interval:
		l.askSync()
	}
	return l.reachLocked(ctx, false, func() bool { return pos.Before(l.mu.written) })
}

// SyncThrough makes every record with a timestamp of at most ts durable, whatever
// mode it was waited for with.
func (l *Log) SyncThrough(ctx context.Context, ts mvcc.Timestamp) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ts = min(ts, l.mu.appendTS)
	return l.reachLocked(ctx, true, func() bool { return ts <= l.mu.durableTS })
}

// Durable returns the position up to which the log survives a power cut, and the
// timestamp up to which its records do.
func (l *Log) Durable() (Position, mvcc.Timestamp) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.durable, l.mu.durableTS
}

// End returns the position after the last appended record.
func (l *Log) End() Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.end
}

// reachLocked leads or follows until done.
func (l *Log) reachLocked(ctx context.Context, sync bool, done func() bool) error {
	for !done() {
		switch {
		case l.mu.err != nil:
			return l.mu.err
		case !l.mu.started:
			return errNotStarted
		case ctx.Err() != nil:
			return fmt.Errorf("waiting for the log: %w", context.Cause(ctx))
		case l.mu.writing || sync && l.mu.syncing:
			l.waitLocked(ctx)
		case sync:
			l.syncLocked()
		default:
			l.writeLocked()
		}
	}
	return nil
}

// waitLocked waits for a change or the end of ctx.
func (l *Log) waitLocked(ctx context.Context) {
	if ctx.Done() == nil {
		l.mu.changed.Wait()
		return
	}
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.mu.changed.Broadcast()
	})
	l.mu.changed.Wait()
	stop()
}

// drainLocked gets the pending group written, by this goroutine or another.
func (l *Log) drainLocked() {
	if l.mu.writing {
		l.mu.metrics.Stalls++
		l.mu.changed.Wait()
		return
	}
	l.writeLocked()
}

// writeLocked writes the pending group; nobody else is writing. The lock is released
// meanwhile, so that the other buffer fills.
func (l *Log) writeLocked() {
	g := l.mu.pending
	if len(g.cuts) == 0 {
		return
	}
	l.mu.pending, l.mu.spare, l.mu.writing = l.mu.spare, nil, true
	l.mu.Unlock()
	err := g.write()
	l.mu.Lock()
	l.mu.writing = false
	l.mu.changed.Broadcast()
	if err != nil {
		l.failLocked(fmt.Errorf("writing log: %w", err))
		return
	}
	m := &l.mu.metrics
	m.Groups++
	m.WrittenBytes += int64(len(g.buf))
	m.LargestGroup = max(m.LargestGroup, g.records)
	l.mu.written, l.mu.writtenTS = g.end, g.ts
	g.reset(l.opts.MaxPending)
	l.mu.spare = g
}

// write writes the group, one call for each segment it touches.
func (g *group) write() error {
	for i, c := range g.cuts {
		to := len(g.buf)
		if i+1 < len(g.cuts) {
			to = g.cuts[i+1].from
		}
		if _, err := c.seg.file.WriteAt(g.buf[c.from:to], c.off); err != nil {
			return err
		}
	}
	return nil
}

// syncLocked writes what is pending and syncs what is written; nobody else is
// writing or syncing. The lock is released meanwhile.
func (l *Log) syncLocked() {
	l.mu.syncing = true
	defer func() {
		l.mu.syncing = false
		l.mu.changed.Broadcast()
	}()
	if l.writeLocked(); l.mu.err != nil {
		return
	}
	through, ts := l.mu.written, l.mu.writtenTS
	files := l.openLocked(through)
	l.mu.Unlock()
	err := syncFiles(files, through)
	l.mu.Lock()
	if err != nil {
		l.failLocked(fmt.Errorf("syncing log: %w", err))
		return
	}
	l.mu.metrics.Syncs += int64(len(files))
	l.mu.durable, l.mu.durableTS = through, ts
	for _, s := range files {
		if s.number < through.Segment {
			s.file = nil
		}
	}
}

// openLocked returns the segments up to a position that may hold bytes that are not
// durable.
func (l *Log) openLocked(through Position) []*segment {
	i := len(l.mu.segments)
	for i > 0 && l.mu.segments[i-1].file != nil {
		i--
	}
	j := i
	for j < len(l.mu.segments) && l.mu.segments[j].number <= through.Segment {
		j++
	}
	return l.mu.segments[i:j:j]
}

// syncFiles syncs segments in order, and closes those that end before a position.
func syncFiles(segments []*segment, through Position) error {
	for _, s := range segments {
		if err := s.file.Sync(); err != nil {
			return err
		}
	}
	for _, s := range segments {
		if s.number < through.Segment {
			if err := s.file.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// failLocked ends the log: the first error is returned from now on.
func (l *Log) failLocked(err error) {
	if l.mu.err == nil {
		l.mu.err = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	l.mu.changed.Broadcast()
}

// askSync wakes the syncer.
func (l *Log) askSync() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// syncer syncs the log within Options.Interval after somebody asked. Its failures
// are kept in the log.
func (l *Log) syncer() {
	timer := time.NewTimer(l.opts.Interval)
	defer timer.Stop()
	for {
		select {
		case <-l.quit:
			return
		case <-l.kick:
		}
		timer.Reset(l.opts.Interval)
		select {
		case <-l.quit:
			return
		case <-timer.C:
		}
		_ = l.syncAll()
	}
}

// syncAll makes durable what is appended now.
func (l *Log) syncAll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := l.mu.end
	return l.reachLocked(context.Background(), true, func() bool { return !l.mu.durable.Before(end) })
}

// makeSegment is the allocator's way to a new segment.
func (l *Log) makeSegment(number uint64) (*segment, error) {
	s := l.newSegment(number)
	return s, s.create(l.fs, l.dir, l.opts.Store, l.opts.SegmentBytes)
}
