package wal

import (
	"encoding/binary"
	"fmt"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
)

// group is a run of framed records that is written at once.
type group struct {
	buf     []byte
	cuts    []cut
	end     Position
	ts      mvcc.Timestamp
	records int64
}

// cut is a piece of a group that goes to one segment.
type cut struct {
	seg  *segment
	off  int64 // in the file
	from int   // in the buffer; it ends where the next cut begins
}

// reset empties g; a buffer that a huge record has grown is given back.
func (g *group) reset(limit int) {
	if cap(g.buf) > 4*limit {
		g.buf = nil
	}
	clear(g.cuts)
	g.buf, g.cuts, g.records = g.buf[:0], g.cuts[:0], 0
}

// Append frames the record and returns its position, for Wait. The caller serialises
// Append in timestamp order; r and its slices are not kept. It only copies, but waits
// for a write when MaxPending bytes are pending, and for a new segment when the record
// needs one that is not ready, as the first one after Start does.
//
// When that segment cannot be made (a full disk, no file descriptors) the record is
// refused, nothing is lost, and a later Append tries again. Any other error is final.
func (l *Log) Append(r *Record) (Position, error) {
	total := int64(len(r.Extensions)) + int64(len(r.Payload))
	if total > MaxRecordBytes {
		return Position{}, fmt.Errorf("log record of %d bytes exceeds %d", total, MaxRecordBytes)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.roomLocked(total); err != nil {
		return Position{}, err
	}
	if r.Timestamp < l.mu.appendTS {
		return Position{}, fmt.Errorf("log record with timestamp %d after %d", r.Timestamp, l.mu.appendTS)
	}
	l.mu.appendTS = r.Timestamp
	l.mu.metrics.Records++
	l.mu.metrics.PayloadBytes += total
	l.mu.pending.records++
	f := frame{
		typ: r.Type, flags: r.Flags, timestamp: r.Timestamp, epoch: r.KeyEpoch,
		extensions: uint32(len(r.Extensions)), total: uint32(total),
	}
	return l.layLocked(&f, r.Extensions, r.Payload), nil
}

// roomLocked waits until a record of the given size may be laid down.
func (l *Log) roomLocked(total int64) error {
	for {
		if err := l.usableLocked(); err != nil {
			return err
		}
		if len(l.mu.pending.buf) >= l.opts.MaxPending && len(l.mu.pending.buf) > 0 {
			l.drainLocked()
			continue
		}
		n := l.segmentsForLocked(total)
		if n == 0 || l.alloc.available() >= n {
			return nil
		}
		l.mu.Unlock()
		err := l.alloc.reserve(n)
		l.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// usableLocked returns the error of a log that takes no records.
func (l *Log) usableLocked() error {
	switch {
	case l.mu.err != nil:
		return l.mu.err
	case l.mu.closed:
		return ErrClosed
	case !l.mu.started:
		return errNotStarted
	}
	return nil
}

// segmentsForLocked returns the number of new segments that a record needs.
func (l *Log) segmentsForLocked(total int64) (n int) {
	off := l.mu.end.Offset
	if !l.mu.begun {
		off, n = firstFrame, 1
	}
	for {
		room := l.opts.SegmentBytes - off - frameHeaderSize
		if room >= total {
			return n
		}
		total -= max(room, 0)
		off = firstFrame
		n++
	}
}

// layLocked frames a record at the end of the log. The segments it needs are ready.
func (l *Log) layLocked(f *frame, ext, payload []byte) (start Position) {
	if !l.mu.begun {
		l.beginLocked()
	}
	f.synced = l.mu.durable
	for left := int64(f.total); ; {
		room := l.opts.SegmentBytes - l.mu.end.Offset - frameHeaderSize
		if room < 0 || room == 0 && left > 0 {
			l.rollLocked()
			continue
		}
		if start == (Position{}) {
			start = l.mu.end
		}
		n := min(left, room)
		left -= n
		f.length, f.part = uint32(n), partOf(l.mu.end == start, left == 0)
		e := min(n, int64(len(ext)))
		l.frameLocked(f, ext[:e], payload[:n-e])
		ext, payload = ext[e:], payload[n-e:]
		if left == 0 {
			return start
		}
	}
}

func partOf(first, last bool) part {
	switch {
	case first && last:
		return partWhole
	case first:
		return partFirst
	case last:
		return partLast
	}
	return partMiddle
}

// frameLocked appends one frame to the pending group.
func (l *Log) frameLocked(f *frame, ext, payload []byte) {
	g, seg := l.mu.pending, l.mu.segments[len(l.mu.segments)-1]
	if n := len(g.cuts); n == 0 || g.cuts[n-1].seg != seg {
		g.cuts = append(g.cuts, cut{seg: seg, off: l.mu.end.Offset, from: len(g.buf)})
	}
	at := len(g.buf)
	g.buf = append(g.buf, zeroHeader[:]...)
	g.buf = append(append(g.buf, ext...), payload...)
	f.dataCRC = binfmt.UpdateCRC(seg.seed, g.buf[at+frameHeaderSize:])
	f.put(g.buf[at:], seg.seed, l.mu.end.Offset)
	l.mu.end.Offset += int64(len(g.buf) - at)
	seg.used, seg.maxTS = l.mu.end.Offset, f.timestamp
	g.end, g.ts = l.mu.end, l.mu.appendTS
}

var zeroHeader [frameHeaderSize]byte

// rollLocked continues the log in the next ready segment.
func (l *Log) rollLocked() {
	l.linkLocked(l.alloc.take(), l.mu.end)
}

// linkLocked makes s the last segment of the log, which ended at prev.
func (l *Log) linkLocked(s *segment, prev Position) {
	l.mu.segments = append(l.mu.segments, s)
	l.mu.end = Position{s.number, binfmt.HeaderSize}
	var data [16]byte
	binary.LittleEndian.PutUint64(data[:], prev.Segment)
	binary.LittleEndian.PutUint64(data[8:], uint64(prev.Offset))
	f := frame{typ: typeLink, part: partWhole, length: 16, total: 16, timestamp: l.mu.appendTS, synced: l.mu.durable}
	l.frameLocked(&f, nil, data[:])
}
