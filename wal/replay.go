package wal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/vfs"
)

// Recovery says what Replay found.
type Recovery struct {
	// End is the position after the last record; zero for an empty log. Once Start
	// has returned it is durable, and may be kept for Options.End of the next open.
	End Position
	// LastTimestamp is the largest timestamp in the log.
	LastTimestamp mvcc.Timestamp
	// Records is the number of records replayed.
	Records int64
	// Dropped says what was not replayed: the torn tail, and damage with Options.Salvage.
	Dropped []Drop
}

// Drop is an extent of the log that holds something and was not replayed.
type Drop struct {
	Path   string
	Offset int64
	Bytes  int64
	Err    error // what is wrong with it
}

// String describes the drop.
func (d Drop) String() string {
	return fmt.Sprintf("%s: %d bytes at offset %d dropped: %v", d.Path, d.Bytes, d.Offset, d.Err)
}

// Replay calls fn for each record in order. The record and its slices are valid
// during the call. An error of fn ends the replay and is returned.
//
// A bad record is damage, a *vfs.CorruptionError, if and only if the log is known
// durable past it; otherwise the log ends there (I4).
func (l *Log) Replay(ctx context.Context, fn func(*Record) error) (Recovery, error) {
	p := &replayer{log: l, fn: fn}
	l.replaying = p
	err := p.run(ctx)
	l.replaying = nil
	if err != nil {
		return Recovery{}, fmt.Errorf("replaying log: %w", err)
	}
	l.finishReplay(p)
	return p.out, nil
}

// Harden makes the log durable through the record that Replay is handing over. The
// callback calls it before it makes something durable that relies on the record
// (R4): what was read back may be in the page cache only.
func (l *Log) Harden(ctx context.Context) error {
	p := l.replaying
	if p == nil || l.opts.ReadOnly {
		return fmt.Errorf("hardening log: %w", errNotReplaying)
	}
	end := Position{p.seg.number, p.seg.used}
	for _, s := range l.found {
		if !s.member || s.number < p.hardened().Segment || s.number > end.Segment {
			continue
		}
		from, to := int64(0), s.size
		if s.number == p.hardened().Segment {
			from = p.hardened().Offset
		}
		if s.number == end.Segment {
			to = end.Offset
		}
		if err := l.rewriteSynced(ctx, s, from, to); err != nil {
			return fmt.Errorf("hardening log: %w", err)
		}
	}
	p.hard = end
	return nil
}

var errNotReplaying = errors.New("no replay for writing is running")

// hardened returns the position up to which the log is durable.
func (p *replayer) hardened() Position {
	if p.claim.Before(p.hard) {
		return p.hard
	}
	return p.claim
}

// rewriteSynced writes [from, to) of a segment once more and syncs it; see harden.
func (l *Log) rewriteSynced(ctx context.Context, s *segment, from, to int64) error {
	if from >= to {
		return nil
	}
	f, err := l.fs.OpenWrite(s.name, vfs.KindLog)
	if err != nil {
		return err
	}
	if err = rewrite(ctx, f, from, to); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (l *Log) finishReplay(p *replayer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replayed, l.claim = true, p.hardened()
	l.mu.segments = l.mu.segments[:0]
	for _, s := range l.found {
		if s.member {
			l.mu.segments = append(l.mu.segments, s)
		}
	}
	l.mu.end, l.mu.written = p.out.End, p.out.End
	l.mu.appendTS, l.mu.writtenTS = p.out.LastTimestamp, p.out.LastTimestamp
}

// replayer is the state of one Replay.
type replayer struct {
	log   *Log
	fn    func(*Record) error
	out   Recovery
	claim Position // largest syncedThrough seen
	hard  Position // made durable by Harden

	seg    *segment
	in     *reader
	first  bool     // no segment was read before seg
	frame  frame    // the last one read
	rec    Record   // what fn is given
	record []byte   // data of the record being assembled
	head   frame    // its first frame
	start  Position // of its first frame; zero between records
	orphan bool     // skipping the rest of a record that began in a trimmed segment
}

// badFrame says why the log cannot be read on at pos; see replayer.edge for edge.
type badFrame struct {
	pos       Position
	want, got uint32
	reason    string // "" where the data ends: zeroes or the end of the file
	fatal     bool   // the checksum is right, so this is no torn write
	edge      Position
}

func (p *replayer) run(ctx context.Context) error {
	p.claim = p.log.opts.End
	p.out.Dropped = slices.Clone(p.log.lost)
	p.first = true
	for _, s := range p.log.found {
		if !s.member {
			continue
		}
		if done, err := p.segment(ctx, s); err != nil || done {
			return err
		}
		p.first = false
	}
	for _, s := range p.log.found {
		if p.first && s.number >= p.log.opts.First {
			p.seg = s
			return p.judge(ctx, &badFrame{pos: Position{s.number, binfmt.HeaderSize}})
		}
	}
	return nil
}

// segment replays one segment. It reports done when the log ends in it.
func (p *replayer) segment(ctx context.Context, s *segment) (done bool, err error) {
	if p.in, err = openReader(p.log.fs, s); err != nil {
		return false, err
	}
	defer p.in.close()
	p.seg = s
	p.in.seek(binfmt.HeaderSize)
	for {
		bad, err := p.frames(ctx)
		if err != nil || bad == nil {
			return false, err
		}
		if !p.log.opts.Salvage {
			return true, p.judge(ctx, bad)
		}
		if more, err := p.resync(ctx, bad); err != nil || !more {
			return false, err
		}
	}
}

// frames replays frames until the end of the segment (nil) or a bad frame.
func (p *replayer) frames(ctx context.Context) (*badFrame, error) {
	for p.seg.end < 0 || p.in.off < p.seg.end {
		at := Position{p.seg.number, p.in.off}
		f := &p.frame
		bad, err := p.next(ctx, at)
		if err != nil || bad != nil {
			return bad, err
		}
		if bad := p.accept(f, at); bad != nil {
			return bad, nil
		}
		if f.synced.Compare(p.claim) > 0 {
			p.claim = f.synced
		}
		if err := p.deliver(f); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// next reads the frame at the reader's offset into p.frame and appends its data to
// p.record.
func (p *replayer) next(ctx context.Context, at Position) (*badFrame, error) {
	b, err := p.in.peek(ctx, frameHeaderSize)
	if err != nil {
		return nil, err
	}
	if allZero(b) {
		return &badFrame{pos: at}, nil
	}
	if len(b) < frameHeaderSize {
		return &badFrame{pos: at, reason: "frame header is cut off"}, nil
	}
	f, ok := decodeFrame(b, p.seg.seed, at)
	if !ok {
		return &badFrame{pos: at, reason: "bad frame header"}, nil
	}
	if int64(f.length) > p.in.left()-frameHeaderSize {
		return &badFrame{pos: at, reason: "frame data is cut off"}, nil
	}
	p.in.skip(frameHeaderSize)
	keep := len(p.record)
	if f.typ != typeLink && (f.part.begins() || p.start == Position{}) {
		keep = 0
	}
	p.record = p.record[:keep]
	crc, err := p.data(ctx, int(f.length))
	if f.typ == typeLink { // surveyed already
		p.record = p.record[:keep]
	}
	if err == nil && crc != f.dataCRC {
		return &badFrame{pos: at, want: f.dataCRC, got: crc, reason: "bad frame data"}, nil
	}
	p.frame = f
	return nil, err
}

// data appends n bytes, which the file has, to p.record and returns their checksum.
func (p *replayer) data(ctx context.Context, n int) (crc uint32, err error) {
	crc = p.seg.seed
	for n > 0 {
		b, err := p.in.peek(ctx, min(n, chunkSize))
		if err != nil {
			return 0, err
		}
		if len(b) == 0 {
			return ^crc, nil // the file became shorter
		}
		crc = binfmt.UpdateCRC(crc, b)
		p.record = append(p.record, b...)
		p.in.skip(len(b))
		n -= len(b)
	}
	return crc, nil
}

// accept checks that f may stand at its place and keeps track of split records.
func (p *replayer) accept(f *frame, at Position) *badFrame {
	bad := func(reason string) *badFrame { return &badFrame{pos: at, reason: reason} }
	open := p.start != Position{}
	switch {
	case (f.typ == typeLink) != (at.Offset == binfmt.HeaderSize):
		return bad("misplaced link")
	case f.typ == typeLink:
		p.orphan = p.first && p.seg.prev.Segment != 0
		return nil
	case f.timestamp < p.out.LastTimestamp:
		return &badFrame{pos: at, reason: "timestamps out of order", fatal: true}
	case f.part.begins() && open:
		return bad("record begins inside another")
	case f.part.begins():
		p.orphan, p.head, p.start = false, *f, at
	case p.orphan:
		return nil
	case !open:
		return bad("continues no record")
	case !f.continues(&p.head) || uint64(len(p.record)) > uint64(f.total):
		return bad("continues another record")
	}
	if f.part.ends() && uint64(len(p.record)) != uint64(f.total) {
		return bad("record of wrong length")
	}
	if f.part.ends() {
		if err := checkExtensions(p.record[:f.extensions]); errors.Is(err, vfs.ErrCorruption) {
			return &badFrame{pos: at, reason: "malformed extension fields", fatal: true}
		}
	}
	return nil
}

// deliver accounts for the frame f and hands over the record that it completes.
func (p *replayer) deliver(f *frame) error {
	p.seg.used = p.in.off
	if f.typ != typeLink && !f.part.ends() {
		return nil
	}
	if f.typ != typeLink && f.typ != typeEnd && !p.orphan {
		if err := p.call(); err != nil {
			return err
		}
		p.cover(f.timestamp)
	}
	if f.typ != typeLink {
		p.start = Position{}
	}
	if p.start == (Position{}) {
		p.out.End = Position{p.seg.number, p.in.off}
	}
	return nil
}

// call hands the assembled record to the caller.
func (p *replayer) call() error {
	if p.head.typ != TypeBatch || p.head.flags != 0 {
		return p.fail(p.start, fmt.Errorf("record of type %d, flags %#x: %w", p.head.typ, p.head.flags, vfs.ErrNotSupported))
	}
	p.rec = Record{
		Type: p.head.typ, Flags: p.head.flags, KeyEpoch: p.head.epoch, Timestamp: p.head.timestamp,
		Extensions: p.record[:p.head.extensions:p.head.extensions], Payload: p.record[p.head.extensions:],
		Position: p.start, SyncedThrough: p.head.synced,
	}
	if err := checkExtensions(p.rec.Extensions); err != nil {
		return p.fail(p.start, err)
	}
	p.out.Records++
	p.out.LastTimestamp = p.rec.Timestamp
	return p.fn(&p.rec)
}

// cover raises the largest timestamp of the segments that hold the record that ends
// in p.seg.
func (p *replayer) cover(ts mvcc.Timestamp) {
	p.seg.maxTS = ts
	if p.start.Segment == p.seg.number {
		return
	}
	for _, s := range p.log.found {
		if s.member && s.number >= p.start.Segment && s.number < p.seg.number {
			s.maxTS = ts
		}
	}
}

// fail says in which segment and where a record is refused.
func (p *replayer) fail(at Position, err error) error {
	return fmt.Errorf("%s, log record at offset %d: %w", p.path(at), at.Offset, err)
}

func (p *replayer) path(at Position) string {
	return p.log.fs.Join(p.log.dir, segmentName(at.Segment))
}
