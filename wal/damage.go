package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/vfs"
)

// judge decides what a bad frame in the current segment means (I4): damage, which
// is an error, or the end of the log, which drops everything after it.
func (p *replayer) judge(ctx context.Context, bad *badFrame) error {
	bad.edge = p.edge(bad)
	if bad.fatal || p.past(bad, p.claim) {
		return p.damage(bad, p.claim, "the caller of Open")
	}
	p.dropOpen(bad)
	for _, s := range p.log.found {
		if s.number < p.seg.number {
			continue
		}
		from := int64(0)
		if s == p.seg {
			from = bad.pos.Offset
		}
		claim, drop, err := p.evidence(ctx, s, from, bad)
		switch {
		case err != nil:
			return err
		case p.past(bad, claim) && s.err != nil:
			return s.err
		case p.past(bad, claim):
			return p.damage(bad, claim, s.name)
		}
		p.dropRest(s, drop, bad)
	}
	for _, s := range p.log.found {
		if s.number == p.out.End.Segment {
			s.used = p.out.End.Offset
		}
	}
	return nil
}

// edge returns the first position that is known to be unreadable: that of the bad
// frame, or, where the data of a segment merely ends and nothing says where it should,
// the link of the next segment, which then has no valid one.
func (p *replayer) edge(bad *badFrame) Position {
	if bad.reason != "" || p.seg.end >= 0 || bad.pos.Offset == binfmt.HeaderSize {
		return bad.pos
	}
	for _, s := range p.log.found {
		if s.number > p.seg.number {
			return Position{s.number, binfmt.HeaderSize}
		}
	}
	return bad.pos
}

// past reports whether a claim covers something that cannot be read.
func (p *replayer) past(bad *badFrame, claim Position) bool {
	end := p.out.End
	return bad.edge.Before(claim) || claim.Segment == end.Segment && end.Before(claim)
}

// evidence looks in segment s from the given offset for a frame whose claim is past
// the bad one. Drop is what the segment holds there.
func (p *replayer) evidence(ctx context.Context, s *segment, from int64, bad *badFrame) (claim Position, drop Drop, err error) {
	last, err := scan(ctx, p.log.fs, s, from, func(_ int64, f *frame) bool {
		claim = f.synced
		return p.past(bad, claim)
	})
	if from == 0 && last <= binfmt.HeaderSize {
		last = 0 // never used
	}
	return claim, Drop{Path: s.name, Offset: from, Bytes: max(last-from, 0)}, err
}

// dropRest takes what lies in s after the end of the log out of it.
func (p *replayer) dropRest(s *segment, drop Drop, bad *badFrame) {
	if s.number > p.out.End.Segment {
		s.member = false
	}
	if drop.Bytes > 0 {
		drop.Err = bad.err()
		p.out.Dropped = append(p.out.Dropped, drop)
	}
}

// dropOpen reports the frames of a record that the bad frame leaves incomplete.
func (p *replayer) dropOpen(bad *badFrame) {
	if p.start != (Position{}) && p.start != bad.pos {
		p.out.Dropped = append(p.out.Dropped, Drop{
			Path: p.path(p.start), Offset: p.start.Offset, Bytes: int64(len(p.record)), Err: errors.New("record is not complete"),
		})
	}
}

// err says what is wrong, as the cause of a CorruptionError.
func (b *badFrame) err() error {
	if b.reason == "" {
		return errors.New("record missing")
	}
	return errors.New(b.reason)
}

// damage returns the error for a bad frame that was whole once, as the claim proves.
func (p *replayer) damage(bad *badFrame, claim Position, witness string) error {
	at, err := bad.pos, bad.err()
	if claim.Segment > at.Segment && bad.edge != at {
		at, err = bad.edge, errors.New("bad link")
	}
	if !bad.fatal {
		err = fmt.Errorf("%w, but the log was durable up to %v, says %s", err, claim, witness)
	}
	return &vfs.CorruptionError{
		Path: p.path(at), Section: "log record", Offset: at.Offset, Want: bad.want, Got: bad.got, Err: err,
	}
}

// resync seeks the next record after a bad frame and reports what is dropped up to
// it. More is false when the segment holds none.
func (p *replayer) resync(ctx context.Context, bad *badFrame) (more bool, err error) {
	p.dropOpen(bad)
	p.start, p.orphan = Position{}, false
	next := int64(-1)
	last, err := scan(ctx, p.log.fs, p.seg, bad.pos.Offset+1, func(off int64, f *frame) bool {
		if f.part.begins() && f.typ != typeLink {
			next = off
		}
		return next >= 0
	})
	if err != nil {
		return false, err
	}
	to := last
	if next >= 0 {
		to = next
	}
	if p.seg.end >= 0 && (next < 0 || next >= p.seg.end) {
		next, to = -1, p.seg.end
	}
	if to > bad.pos.Offset {
		p.out.Dropped = append(p.out.Dropped, Drop{Path: p.seg.name, Offset: bad.pos.Offset, Bytes: to - bad.pos.Offset, Err: bad.err()})
	}
	p.in.seek(max(next, 0))
	return next >= 0, nil
}

// scan calls visit for each valid frame header in segment s at or after offset from,
// until visit returns true. It returns the end of the last byte that is not zero
// among those it read.
func scan(ctx context.Context, fs vfs.FS, s *segment, from int64, visit func(off int64, f *frame) bool) (last int64, err error) {
	r, err := openReader(fs, s)
	if err != nil {
		return 0, err
	}
	defer r.close()
	r.seek(from)
	for {
		b, err := r.peek(ctx, chunkSize)
		if err != nil {
			return last, err
		}
		n := used(b)
		if n > 0 {
			last = r.off + int64(n)
		}
		for i := range min(n, max(len(b)-frameHeaderSize+1, 0)) {
			pos := Position{s.number, r.off + int64(i)}
			if f, ok := decodeFrame(b[i:], s.seed, pos); ok && visit(pos.Offset, &f) {
				return last, nil
			}
		}
		if len(b) < chunkSize {
			return last, nil
		}
		r.skip(chunkSize - frameHeaderSize + 1)
	}
}

// used returns the length of b without the zeroes at its end.
func used(b []byte) int {
	for len(b) > 0 && b[len(b)-1] == 0 {
		if h := len(b) / 2; h > 0 && allZero(b[h:]) {
			b = b[:h]
		} else {
			b = b[:len(b)-1]
		}
	}
	return len(b)
}
