package wal

import "fmt"

// Close writes and syncs what is pending, marks the end of the log, cuts the last
// segment to its used length and removes those made ahead. It returns the end of the
// log, for Options.End. A log that failed is closed too and its error returned.
func (l *Log) Close() (Position, error) {
	l.trim.Lock()
	defer l.trim.Unlock()
	if !l.beginClose() {
		return l.End(), nil
	}
	close(l.quit)
	l.alloc.close()
	l.background.Wait()
	err := l.syncAll()
	if err == nil {
		err = l.seal()
	}
	l.closeFiles()
	if derr := l.discard(l.alloc.ready); err == nil {
		err = derr
	}
	if err != nil {
		err = fmt.Errorf("closing log: %w", err)
	}
	return l.End(), err
}

// beginClose refuses further records. It reports false when there is nothing to close.
func (l *Log) beginClose() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.mu.started && !l.mu.closed
	l.mu.closed = true
	return first
}

// seal ends the last segment. Nobody else changes the log any more.
func (l *Log) seal() error {
	l.mu.Lock()
	segments, end, begun := l.mu.segments, l.mu.end, l.mu.begun
	l.mu.Unlock()
	var err error
	if begun {
		s := segments[len(segments)-1]
		end.Offset, err = l.putEnd(s, end.Offset)
		s.used = end.Offset
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.end, l.mu.written, l.mu.durable = end, end, end
	l.failLocked(ErrClosed)
	return err
}

// putEnd writes the end frame at offset off, which says that all before it is durable,
// and cuts the segment behind it. Without room for the frame it only cuts: the frame
// merely makes damage to the last records known for what it is.
func (l *Log) putEnd(s *segment, off int64) (int64, error) {
	if l.opts.SegmentBytes-off >= frameHeaderSize {
		f := frame{typ: typeEnd, part: partWhole, timestamp: s.maxTS, synced: Position{s.number, off}, dataCRC: s.seed}
		b := make([]byte, frameHeaderSize)
		f.put(b, s.seed, off)
		if _, err := s.file.WriteAt(b, off); err != nil {
			return off, err
		}
		off += frameHeaderSize
	}
	if err := s.file.Truncate(off); err != nil {
		return off, err
	}
	return off, s.file.Sync()
}

// discard closes and removes segments that hold nothing.
func (l *Log) discard(segments []*segment) (err error) {
	for _, s := range segments {
		_ = s.file.Close()
		s.file = nil
		if rerr := l.fs.Remove(s.name); err == nil {
			err = rerr
		}
	}
	return err
}

// closeFiles closes what is still open, once nobody writes or syncs it.
func (l *Log) closeFiles() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.mu.writing || l.mu.syncing {
		l.mu.changed.Wait()
	}
	for _, s := range l.mu.segments {
		if s.file != nil {
			_ = s.file.Close()
			s.file = nil
		}
	}
}
