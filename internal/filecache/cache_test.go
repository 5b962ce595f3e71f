package filecache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/minikudu/minikudu/vfs"
)

func newFiles(t testing.TB, n int) *vfs.Mem {
	m := vfs.NewMemOptions(vfs.MemOptions{WindowsRules: true})
	for i := range n {
		f, err := m.Create(fmt.Sprint(i), vfs.KindRowSet)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteAt([]byte(fmt.Sprintf("%04d", i)), 0)
		f.Close()
	}
	return m
}

func read(t testing.TB, h *Handle) {
	t.Helper()
	b := make([]byte, 4)
	if _, err := h.ReadAt(b, 0); err != nil || string(b) != fmt.Sprintf("%04s", h.Name()) {
		t.Fatalf("%s: %q %v", h.Name(), b, err)
	}
}

func release(t testing.TB, handles ...*Handle) {
	t.Helper()
	for _, h := range handles {
		if err := h.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLeastRecentlyReadIsClosed(t *testing.T) {
	m := newFiles(t, 3)
	c := New(m, 2)
	var h [3]*Handle
	for i := range h {
		h[i] = c.Handle(fmt.Sprint(i), vfs.KindRowSet)
	}
	if m.OpenFiles() != 0 {
		t.Fatal("opened before the first read")
	}
	read(t, h[0])
	read(t, h[1])
	read(t, h[0])
	read(t, h[2]) // closes 1
	read(t, h[0])
	if s := c.Stats(); s != (Stats{Open: 2, Handles: 3, Opens: 3, Evictions: 1}) || m.OpenFiles() != 2 {
		t.Fatalf("%+v", s)
	}
	read(t, h[1])
	if s := c.Stats(); s.Opens != 4 || s.Open != 2 {
		t.Fatalf("%+v", s)
	}
	if c.Close() == nil {
		t.Fatal("handles in use were not reported")
	}
	release(t, h[:]...)
	if err := c.Close(); err != nil || m.OpenFiles() != 0 {
		t.Fatal(err, m.OpenFiles())
	}
}

func TestRemovedAfterLastRelease(t *testing.T) {
	m := newFiles(t, 1)
	c := New(m, 2)
	a, b := c.Handle("0", vfs.KindRowSet), c.Handle("0", vfs.KindRowSet)
	read(t, a)
	a.RemoveOnRelease()
	release(t, a, a)
	read(t, b)
	if _, err := a.ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrClosed) {
		t.Fatal(err)
	}
	release(t, b)
	if _, err := m.Stat("0"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("not removed")
	}
	d := c.Handle("0", vfs.KindRowSet)
	if _, err := d.ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	d.RemoveOnRelease()
	if err := d.Release(); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("failed removal not reported: %v", err)
	}
	if s := c.Stats(); s.Open != 0 || s.Handles != 0 {
		t.Fatalf("%+v", s)
	}
}

// slowFS lets a test hold reads and opens.
type slowFS struct {
	vfs.FS
	open    func() error
	read    chan struct{}
	reading atomic.Int32
}

type slowFile struct {
	vfs.File
	fs *slowFS
}

func (s *slowFS) Open(name string, kind vfs.Kind) (vfs.File, error) {
	if s.open != nil {
		if err := s.open(); err != nil {
			return nil, err
		}
	}
	f, err := s.FS.Open(name, kind)
	if err != nil {
		return nil, err
	}
	return slowFile{f, s}, nil
}

func (f slowFile) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if f.fs.read != nil {
		f.fs.reading.Add(1)
		<-f.fs.read
	}
	return f.File.ReadAtContext(ctx, p, off)
}

func TestReadWaitsForABusyFile(t *testing.T) {
	s := &slowFS{FS: newFiles(t, 2), read: make(chan struct{})}
	c := New(s, 1)
	a, b := c.Handle("0", vfs.KindRowSet), c.Handle("1", vfs.KindRowSet)
	var wg sync.WaitGroup
	wg.Go(func() { read(t, a) })
	for s.reading.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if _, err := b.ReadAtContext(ctx, make([]byte, 1), 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	wg.Go(func() { read(t, b) })
	a.RemoveOnRelease()
	release(t, a) // while its read runs
	close(s.read)
	wg.Wait()
	if _, err := s.Stat("0"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("the last read did not remove the file")
	}
	release(t, b)
	if err := c.Close(); err != nil || c.Stats().Open != 0 {
		t.Fatal(err)
	}
}

func TestC87OutOfDescriptors(t *testing.T) {
	s := &slowFS{FS: newFiles(t, 3)}
	c := New(s, 10)
	a, b := c.Handle("0", vfs.KindRowSet), c.Handle("1", vfs.KindRowSet)
	limit := &fs.PathError{Op: "open", Path: "1", Err: syscall.EMFILE}
	s.open = func() error {
		if c.Stats().Open > 1 { // this one and another
			return limit
		}
		return nil
	}
	read(t, a)
	read(t, b) // closes 0 to get a descriptor
	s.open = func() error { return limit }
	_, err := a.ReadAt(make([]byte, 1), 0)
	if !errors.Is(err, syscall.EMFILE) || errors.Is(err, vfs.ErrCorruption) {
		t.Fatal(err)
	}
	s.open = nil
	read(t, a)
	release(t, a, b)
	if err := c.Close(); err != nil || c.Stats().Open != 0 {
		t.Fatal(err)
	}
}

func TestConcurrently(t *testing.T) {
	const files = 20
	m := newFiles(t, files)
	var open, most atomic.Int32
	c := New(countFS{m, &open, &most}, 3)
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			for range 1000 {
				h := c.Handle(fmt.Sprint(r.IntN(files)), vfs.KindRowSet)
				for range r.IntN(3) {
					read(t, h)
				}
				release(t, h)
			}
		})
	}
	wg.Wait()
	if most.Load() > 3 || c.Stats().Open != 0 || m.OpenFiles() != 0 || c.Close() != nil {
		t.Fatalf("%d files open at once, %+v", most.Load(), c.Stats())
	}
}

type countFS struct {
	vfs.FS
	open, most *atomic.Int32
}

type countFile struct {
	vfs.File
	open *atomic.Int32
}

func (f countFS) Open(name string, kind vfs.Kind) (vfs.File, error) {
	n := f.open.Add(1)
	for m := f.most.Load(); n > m && !f.most.CompareAndSwap(m, n); m = f.most.Load() {
	}
	file, err := f.FS.Open(name, kind)
	return countFile{file, f.open}, err
}

func (f countFile) Close() error {
	f.open.Add(-1)
	return f.File.Close()
}

func TestReadAllocatesNothing(t *testing.T) {
	c := New(newFiles(t, 1), 1)
	h := c.Handle("0", vfs.KindRowSet)
	defer h.Release()
	b := make([]byte, 4)
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { h.ReadAtContext(ctx, b, 0) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkRead(b *testing.B) {
	c := New(newFiles(b, 1), 1)
	h := c.Handle("0", vfs.KindRowSet)
	defer h.Release()
	p := make([]byte, 4)
	b.ReportAllocs()
	for b.Loop() {
		h.ReadAt(p, 0)
	}
}
