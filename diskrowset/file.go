package diskrowset

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/filecache"
	"github.com/minikudu/minikudu/internal/rowset"
)

// file is a file that sections of a rowset or its changes lie in. Its header is checked before the
// first section is opened, so that a swapped or stale file is noticed.
type file struct {
	num    rowset.FileNum
	kind   binfmt.FileKind
	path   string
	store  binfmt.UUID
	handle *filecache.Handle

	checked atomic.Bool
	mu      sync.Mutex // held while the header is read
}

// check reads and checks the header, once.
func (f *file) check(ctx context.Context) error {
	if f.checked.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.checked.Load() {
		return nil
	}
	if err := f.checkHeader(ctx); err != nil {
		return err
	}
	f.checked.Store(true)
	return nil
}

func (f *file) checkHeader(ctx context.Context) error {
	var b [binfmt.HeaderSize]byte
	if err := readFull(ctx, f, b[:], 0, f.path, "header"); err != nil {
		return err
	}
	h, err := binfmt.DecodeHeader(b[:])
	if err == nil {
		err = h.Check(binfmt.Header{Kind: f.kind, Store: f.store, File: uint64(f.num)})
	}
	if err != nil {
		return place(err, f.path, "header", 0)
	}
	return nil
}

// release lets the file go and, with remove, deletes it once nobody reads it. A file
// that could not be deleted is at the next open of the store.
func (f *file) release(remove bool) {
	if remove {
		f.handle.RemoveOnRelease()
	}
	_ = f.handle.Release()
}

// ReadAtContext reads from the file.
func (f *file) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	return f.handle.ReadAtContext(ctx, p, off)
}

// readSection returns the bytes of a section.
func (f *file) readSection(ctx context.Context, s rowset.Section) ([]byte, error) {
	if err := f.check(ctx); err != nil {
		return nil, err
	}
	if s.Length < 0 || s.Length > maxSmallSection {
		return nil, damage(f.path, sectionName(s.Kind), s.Offset, s.Length, errors.New("section too long"))
	}
	b := make([]byte, s.Length)
	return b, readFull(ctx, f, b, s.Offset, f.path, sectionName(s.Kind))
}

// maxSmallSection bounds the sections that are read in one piece: zone maps.
const maxSmallSection = 256 << 20
