package wal

import (
	"context"
	"fmt"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/vfs"
)

// FrameInfo is an extent of a segment as Dump shows it.
type FrameInfo struct {
	Kind           string // "link", "record", "end", "unused", "unreadable"
	Offset, Length int64  // header included
	Part           string // of a record: "whole", "first", "middle", "last"
	Type           Type
	Timestamp      mvcc.Timestamp
	Synced         Position
	Payload        []byte // of a whole record, without extension fields; valid during the call
	Reason         string // of "unreadable"
}

var partNames = map[part]string{partWhole: "whole", partFirst: "first", partMiddle: "middle", partLast: "last"}

// Dump calls visit for every extent of a segment file, in order, and checks checksums
// on the way. It looks at one file only, so it cannot tell a torn end, which is no
// damage, from a damaged frame: both are "unreadable", and the rest is not looked at.
func Dump(ctx context.Context, fsys vfs.FS, path string, visit func(FrameInfo) error) error {
	s := &segment{name: path, end: -1}
	in, err := openReader(fsys, s)
	if err != nil {
		return err
	}
	defer in.close()
	head, err := in.peek(ctx, binfmt.HeaderSize)
	if err != nil {
		return err
	}
	h, err := binfmt.DecodeHeader(head)
	if err == nil {
		err = h.Check(binfmt.Header{Kind: binfmt.FileLog, Store: h.Store, File: h.File})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, withPath(err, path))
	}
	s.number, s.seed = h.File, segmentSeed(h.Store, h.File)
	in.seek(binfmt.HeaderSize)
	p := &replayer{seg: s, in: in}
	for in.left() > 0 {
		at := Position{s.number, in.off}
		bad, err := p.next(ctx, at)
		if err != nil {
			return err
		}
		if bad != nil {
			return visit(unread(bad, in.size))
		}
		if err := visit(p.info(at, in.off)); err != nil {
			return err
		}
		p.start = at // so that next appends to the record until another begins
	}
	return nil
}

// unread describes what is left of a segment after its last frame.
func unread(bad *badFrame, size int64) FrameInfo {
	f := FrameInfo{Kind: "unused", Offset: bad.pos.Offset, Length: size - bad.pos.Offset}
	if bad.reason != "" {
		f.Kind, f.Reason = "unreadable", bad.reason
	}
	return f
}

// info describes the frame that was read last, which ends at offset end.
func (p *replayer) info(at Position, end int64) FrameInfo {
	f := &p.frame
	out := FrameInfo{Kind: "record", Offset: at.Offset, Length: end - at.Offset, Part: partNames[f.part], Type: f.typ,
		Timestamp: f.timestamp, Synced: f.synced}
	switch f.typ {
	case typeLink:
		out.Kind, out.Part = "link", ""
	case typeEnd:
		out.Kind, out.Part = "end", ""
	default:
		if f.part == partWhole && int64(f.extensions) <= int64(len(p.record)) {
			out.Payload = p.record[f.extensions:]
		}
	}
	return out
}
