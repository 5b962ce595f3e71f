package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/vfs"
)

const suffix = ".log"

// segmentName returns the file name of a segment.
func segmentName(number uint64) string { return fmt.Sprintf("%08d%s", number, suffix) }

// parseName returns the number of the segment with the given file name; ok is false
// for any other file.
func parseName(name string) (number uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil && number > 0 && segmentName(number) == name
}

// segment is one file of the log.
type segment struct {
	// Set when it is surveyed or made, then read-only.
	number uint64
	name   string
	seed   uint32
	size   int64 // of the file; at most MaxSegmentBytes of it is looked at
	linked bool  // it begins with a valid link frame ...
	prev   Position
	err    error // what is wrong with the file header
	member bool  // it is part of the chain ...
	end    int64 // ... and its successor says it ends here; -1: not known

	// Guarded by Log.mu once the log has started.
	file  vfs.File       // open while it may hold bytes that are not durable
	used  int64          // end of the frames in it
	maxTS mvcc.Timestamp // largest timestamp of a record with a frame in it
}

// newSegment describes a segment that is yet to be made or surveyed.
func (l *Log) newSegment(number uint64) *segment {
	return &segment{
		number: number,
		name:   l.fs.Join(l.dir, segmentName(number)),
		seed:   segmentSeed(l.opts.Store, number),
		end:    -1,
	}
}

// create makes the file: header and zeroes, durable, directory entry too.
func (s *segment) create(fs vfs.FS, dir string, store binfmt.UUID, size int64) (err error) {
	f, err := fs.Create(s.name, vfs.KindLog)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = fs.Remove(s.name) // a leftover is never linked, so it does no harm
		}
	}()
	if err := f.Preallocate(0, size); err != nil {
		return err
	}
	h := binfmt.Header{Kind: binfmt.FileLog, Format: binfmt.Format1, Store: store, File: s.number}
	if _, err := f.WriteAt(h.AppendTo(nil), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := fs.SyncDir(dir); err != nil {
		return err
	}
	s.file, s.size = f, size
	return nil
}

// survey reads the header and the link of an existing segment. A damaged header is
// remembered in s.err, since it depends on the other segments what it means.
func (s *segment) survey(ctx context.Context, fs vfs.FS, store binfmt.UUID) error {
	r, err := openReader(fs, s)
	if err != nil {
		return err
	}
	defer r.close()
	s.size = r.size
	b, err := r.peek(ctx, firstFrame)
	if err != nil {
		return err
	}
	if err := s.checkHeader(b, store); errors.Is(err, vfs.ErrNotSupported) {
		return fmt.Errorf("%s: %w", s.name, err)
	} else if err != nil {
		s.err = withPath(err, s.name)
	}
	if len(b) == firstFrame {
		s.prev, s.linked = decodeLink(b[binfmt.HeaderSize:], s)
	}
	return nil
}

func (s *segment) checkHeader(b []byte, store binfmt.UUID) error {
	h, err := binfmt.DecodeHeader(b[:min(len(b), binfmt.HeaderSize)])
	if err != nil {
		return err
	}
	return h.Check(binfmt.Header{Kind: binfmt.FileLog, Store: store, File: s.number})
}

// decodeLink decodes the link frame that segment s begins with.
func decodeLink(b []byte, s *segment) (prev Position, ok bool) {
	f, ok := decodeFrame(b, s.seed, Position{s.number, binfmt.HeaderSize})
	data := b[frameHeaderSize:linkSize]
	if !ok || f.typ != typeLink || f.length != uint32(len(data)) || binfmt.UpdateCRC(s.seed, data) != f.dataCRC {
		return Position{}, false
	}
	prev = Position{binary.LittleEndian.Uint64(data), int64(binary.LittleEndian.Uint64(data[8:]))}
	return prev, prev.Segment < s.number && prev.Offset >= 0
}

// withPath names the file in a CorruptionError.
func withPath(err error, path string) error {
	var c *vfs.CorruptionError
	if errors.As(err, &c) {
		c.Path = path
	}
	return err
}

// reader reads a segment from front to back through a fixed buffer.
type reader struct {
	file vfs.File
	size int64 // bytes of the file that are looked at
	off  int64 // offset of the first byte that is not consumed
	buf  []byte
	r, w int // buf[r:w] is read and not consumed
}

// chunkSize is the size of a reader's buffer.
const chunkSize = 256 << 10

func openReader(fs vfs.FS, s *segment) (*reader, error) {
	f, err := fs.Open(s.name, vfs.KindLog)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &reader{file: f, size: min(size, MaxSegmentBytes)}, nil
}

func (r *reader) close() { _ = r.file.Close() }

// seek continues at offset off.
func (r *reader) seek(off int64) { r.off, r.r, r.w = off, 0, 0 }

// left returns the number of bytes to the end of the file.
func (r *reader) left() int64 { return max(r.size-r.off, 0) }

// peek returns the next n ≤ chunkSize bytes, fewer only at the end of the file.
// They are valid until the next peek.
func (r *reader) peek(ctx context.Context, n int) ([]byte, error) {
	if n > r.w-r.r {
		if err := r.fill(ctx, n); err != nil {
			return nil, err
		}
	}
	return r.buf[r.r:min(r.w, r.r+n)], nil
}

// fill reads on. The buffer is no larger than what is left of the file; a survey,
// which starts at offset 0, reads no more than it asks for.
func (r *reader) fill(ctx context.Context, n int) error {
	want := int64(chunkSize)
	if r.buf == nil && r.off == 0 {
		want = int64(n)
	}
	want = min(want, r.left())
	r.w = copy(r.buf, r.buf[r.r:r.w])
	r.r = 0
	if int64(len(r.buf)) < want {
		r.buf = append(make([]byte, 0, want), r.buf[:r.w]...)[:want]
	}
	more := r.buf[r.w:max(want, int64(r.w))]
	got, err := r.file.ReadAtContext(ctx, more, r.off+int64(r.w))
	r.w += got
	if got == len(more) || errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading %s at %d: %w", r.file.Name(), r.off, err)
}

// skip consumes n peeked bytes.
func (r *reader) skip(n int) { r.r, r.off = r.r+n, r.off+int64(n) }
