package diskrowset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/filter"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// The filters section: the filters back to back, then a directory of
//
//	count uvarint, and for each filter: length uvarint, first key bytes
//
// then 8 bytes: directory length u32, CRC-32C u32 of the directory and that length.
const filtersTail = 8

// filterWriter writes the filters section while keys come in.
type filterWriter struct {
	dst    io.Writer
	left   int // keys to come
	open   *filter.Filter
	dir    []byte // of the filters written
	count  int
	first  []byte // first key of the open filter
	buffer []byte
}

func newFilterWriter(dst io.Writer, keys int) *filterWriter {
	return &filterWriter{dst: dst, left: keys}
}

// add puts the keys of a vector, which follow those added before, into filters.
func (w *filterWriter) add(keys *vector.Vector) error {
	for i := range keys.Len() {
		key := keys.BytesAt(i)
		if w.open == nil {
			w.open = filter.New(min(w.left, filter.KeysPerFilter))
			w.first = append(w.first[:0], key...)
		}
		l := filter.Locate(key)
		w.open.Add(&l)
		w.left--
		if w.open.Keys() == filter.KeysPerFilter {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *filterWriter) flush() error {
	w.buffer = w.open.AppendTo(w.buffer[:0])
	w.dir = binary.AppendUvarint(w.dir, uint64(len(w.buffer)))
	w.dir = binfmt.AppendBytes(w.dir, w.first)
	w.count++
	w.open = nil
	_, err := w.dst.Write(w.buffer)
	return err
}

// finish writes the last filter and the directory.
func (w *filterWriter) finish() error {
	if w.open != nil {
		if err := w.flush(); err != nil {
			return err
		}
	}
	dir := binary.AppendUvarint(nil, uint64(w.count))
	dir = append(dir, w.dir...)
	dir = binary.LittleEndian.AppendUint32(dir, uint32(len(dir)))
	dir = binary.LittleEndian.AppendUint32(dir, binfmt.CRC(dir))
	_, err := w.dst.Write(dir)
	return err
}

// filters reads the key filters of a rowset. The directory is kept once read, the
// filters themselves are pages of the cache.
type filters struct {
	file    *file
	section rowset.Section
	mu      sync.Mutex // held while the directory is read
	dir     atomic.Pointer[filterDir]
	idle    atomic.Int32 // 0 while asking for a single key pays, see note
}

type filterDir struct {
	firsts  *runs
	offsets []int64 // in the file, one more than there are filters
	slots   []cache.Slot[cache.Page]
}

// directory returns the directory, reading it at the first call.
func (f *filters) directory(ctx context.Context) (*filterDir, error) {
	if d := f.dir.Load(); d != nil {
		return d, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := f.dir.Load(); d != nil {
		return d, nil
	}
	d, err := f.readDirectory(ctx)
	if err != nil {
		return nil, err
	}
	f.dir.Store(d)
	return d, nil
}

func (f *filters) readDirectory(ctx context.Context) (*filterDir, error) {
	if err := f.file.check(ctx); err != nil {
		return nil, err
	}
	s := f.section
	if s.Length < filtersTail {
		return nil, f.damage(s.Offset, s.Length, errors.New("section too short"))
	}
	var tail [filtersTail]byte
	if err := f.read(ctx, tail[:], s.Offset+s.Length-filtersTail); err != nil {
		return nil, err
	}
	n, want := int64(binary.LittleEndian.Uint32(tail[:])), binary.LittleEndian.Uint32(tail[4:])
	if n > s.Length-filtersTail {
		return nil, f.damage(s.Offset+s.Length-filtersTail, filtersTail, fmt.Errorf("directory of %d bytes", n))
	}
	at := s.Offset + s.Length - filtersTail - n
	body := make([]byte, n)
	if err := f.read(ctx, body, at); err != nil {
		return nil, err
	}
	if got := binfmt.UpdateCRC(binfmt.CRC(body), tail[:4]); got != want {
		return nil, &vfs.CorruptionError{Path: f.file.path, Section: sectionName(s.Kind), Offset: at, Length: n, Want: want, Got: got}
	}
	d, err := decodeFilterDir(body, s.Offset, at)
	return d, f.placed(err, at)
}

// decodeFilterDir decodes the directory of filters that lie in [from, to) of the file.
func decodeFilterDir(body []byte, from, to int64) (*filterDir, error) {
	r := binfmt.NewReader(body)
	n := r.Count(2)
	d := &filterDir{offsets: append(make([]int64, 0, n+1), from)}
	firsts := vector.New(schema.KindBytes, n)
	for range n {
		from += int64(r.UvarintMax(uint64(to - from)))
		d.offsets = append(d.offsets, from)
		if err := firsts.AppendBytes(r.Bytes(maxEncodedKey)); err != nil {
			return nil, err
		}
	}
	switch {
	case r.Err() != nil:
		return nil, r.Err()
	case n == 0 || r.Len() > 0 || from != to || !ascending(firsts):
		return nil, vfs.Corruptf("filter directory does not fit its section")
	}
	d.firsts = newRuns(firsts)
	d.slots = make([]cache.Slot[cache.Page], n)
	return d, nil
}

// filter returns filter i.
func (f *filters) filter(ctx context.Context, pages *Pages, d *filterDir, i int) (*filter.Filter, error) {
	if p, ok := d.slots[i].Get(); ok {
		return p.(*filter.Filter), nil
	}
	src := make([]byte, d.offsets[i+1]-d.offsets[i])
	if err := f.read(ctx, src, d.offsets[i]); err != nil {
		return nil, err
	}
	x, rest, err := filter.Decode(src)
	if err == nil && len(rest) > 0 {
		err = vfs.Corruptf("%d bytes after the filter", len(rest))
	}
	if err != nil {
		return nil, f.placed(err, d.offsets[i])
	}
	return pages.Put(&d.slots[i], x).(*filter.Filter), nil
}

// of returns the filter that a key is in if the rowset holds it, nil when it does not.
func (f *filters) of(ctx context.Context, pages *Pages, key []byte) (*filter.Filter, error) {
	d, err := f.directory(ctx)
	if err != nil {
		return nil, err
	}
	at := d.firsts.find(key, -1)
	if at < 0 {
		return nil, nil
	}
	return f.filter(ctx, pages, d, at)
}

// maxIdle is how far idle goes: how soon the filters are asked again.
const maxIdle = 64

// note tells whether a key that was looked up alone is absent. A filter spares the search for an absent key
// and only delays that for a present one. So filters are not asked where the pages to be searched are cached
// anyhow, as long as fewer than one key in four is absent.
func (f *filters) note(absent bool) {
	if f == nil {
		return
	}
	was := f.idle.Load()
	n := min(was+1, maxIdle)
	if absent {
		n = max(was-3, 0)
	}
	if n != was {
		f.idle.Store(n) // a lost update only forgets a key
	}
}

// pays reports whether to ask for a single key before all else.
func (f *filters) pays() bool { return f != nil && f.idle.Load() < maxIdle }

func (f *filters) read(ctx context.Context, p []byte, off int64) error {
	return readFull(ctx, f.file, p, off, f.file.path, sectionName(f.section.Kind))
}

func (f *filters) damage(off, n int64, err error) error {
	return damage(f.file.path, sectionName(f.section.Kind), off, n, err)
}

func (f *filters) placed(err error, base int64) error {
	if err == nil {
		return nil
	}
	return place(err, f.file.path, sectionName(f.section.Kind), base)
}
