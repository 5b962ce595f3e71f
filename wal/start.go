package wal

import (
	"context"
	"fmt"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/vfs"
)

// Start makes the replayed log durable to its end and removes the segments that are not
// part of it. Append and the rest may then be called; the first Append begins a new
// segment, so that a run without a record writes nothing.
func (l *Log) Start(ctx context.Context) error {
	switch {
	case l.opts.ReadOnly:
		return ErrReadOnly
	case !l.replayed:
		return fmt.Errorf("starting log: it is not replayed")
	}
	if err := l.settle(ctx); err != nil {
		return fmt.Errorf("starting log: %w", err)
	}
	first := l.nextNumber()
	l.alloc = newAllocator(first, l.makeSegment)
	l.background.Go(l.alloc.run)
	l.background.Go(l.syncer)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.pending, l.mu.spare = &group{}, &group{}
	l.mu.written, l.mu.durable, l.mu.durableTS = l.mu.end, l.mu.end, l.mu.appendTS
	l.mu.first, l.mu.started = first, true
	return nil
}

// beginLocked links the first segment of this run, which is durable to its header.
func (l *Log) beginLocked() {
	s, prev := l.alloc.take(), l.mu.end
	l.mu.durable = Position{s.number, binfmt.HeaderSize}
	l.mu.written, l.mu.begun = l.mu.durable, true
	l.linkLocked(s, prev)
}

// nextNumber returns a segment number that was never used.
func (l *Log) nextNumber() uint64 {
	last := max(l.opts.End.Segment, max(l.opts.First, 1)-1)
	for _, s := range l.found {
		last = max(last, s.number)
	}
	return last + 1
}

// settle brings the directory into the state that the replay described. Every step
// may be repeated after a crash.
func (l *Log) settle(ctx context.Context) error {
	if len(l.found) == 0 {
		if err := l.fs.SyncDir(l.fs.Join(l.dir, "..")); err != nil {
			return err
		}
	}
	for _, s := range l.mu.segments {
		if err := l.harden(ctx, s); err != nil {
			return err
		}
	}
	if l.opts.Salvage {
		return nil // what was dropped stays for whoever wants to look at it
	}
	removed := false
	for _, s := range l.found {
		if s.member {
			continue
		}
		if err := l.fs.Remove(s.name); err != nil {
			return err
		}
		removed = true
	}
	if removed {
		return l.fs.SyncDir(l.dir)
	}
	return nil
}

// harden writes what segment s holds past the position known durable once more and
// syncs it: it may be in the page cache only, and after a failed sync in an earlier
// process another sync alone would prove nothing. The last segment is cut to its
// used length.
func (l *Log) harden(ctx context.Context, s *segment) error {
	from, end := int64(0), s.end
	if s.number == l.mu.end.Segment {
		end = l.mu.end.Offset
	} else if end < 0 {
		end = s.size // its successor's link is damaged
	}
	if s.number == l.claim.Segment {
		from = l.claim.Offset
	}
	excess := s.number == l.mu.end.Segment && s.size > end && !l.opts.Salvage
	if !excess && (s.number < l.claim.Segment || from >= end) {
		return nil
	}
	f, err := l.fs.OpenWrite(s.name, vfs.KindLog)
	if err != nil {
		return err
	}
	err = rewrite(ctx, f, from, end)
	if err == nil && excess {
		err = f.Truncate(end)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// rewrite writes [from, to) of f over itself.
func rewrite(ctx context.Context, f vfs.File, from, to int64) error {
	buf := make([]byte, min(max(to-from, 0), chunkSize))
	for from < to {
		b := buf[:min(int64(len(buf)), to-from)]
		if n, err := f.ReadAtContext(ctx, b, from); n < len(b) {
			return fmt.Errorf("reading %s at %d: %w", f.Name(), from, err)
		}
		if _, err := f.WriteAt(b, from); err != nil {
			return err
		}
		from += int64(len(b))
	}
	return nil
}
