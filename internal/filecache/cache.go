package filecache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/minikudu/minikudu/vfs"
)

// Cache holds open files. Make one with New.
type Cache struct {
	// Set by New, then read-only.
	fs      vfs.FS
	maxOpen int

	mu struct {
		sync.Mutex
		entries map[string]*entry
		open    int           // open files and files being opened
		idle    entry         // ring of open files without readers, the least recently read next
		changed chan struct{} // closed when a file becomes idle or closes; nil: nobody waits
		stats   Stats
	}
}

// Stats counts what a Cache did. Open and Handles are current, the others totals.
type Stats struct {
	Open      int   // files open
	Handles   int   // handles not released
	Opens     int64 // files opened
	Evictions int64 // files closed to make room
}

// entry is a file that has handles. Its fields are guarded by Cache.mu.
type entry struct {
	name    string
	kind    vfs.Kind
	handles int
	remove  bool
	file    vfs.File      // nil: closed
	opening chan struct{} // not nil: being opened; closed when that ended
	readers int           // reads running
	prev    *entry        // in the ring of idle files, else nil
	next    *entry
}

// Handle reads one file. A handle may be used by several goroutines.
type Handle struct {
	c        *Cache
	e        *entry
	released atomic.Bool
}

// New returns a cache that opens files of fs, at most maxOpen at once (at least 1).
func New(fs vfs.FS, maxOpen int) *Cache {
	c := &Cache{fs: fs, maxOpen: max(maxOpen, 1)}
	c.mu.entries = map[string]*entry{}
	c.mu.idle.prev, c.mu.idle.next = &c.mu.idle, &c.mu.idle
	return c
}

// Handle returns a handle of the named file. It does no I/O: a file that is missing
// shows at the first read.
func (c *Cache) Handle(name string, kind vfs.Kind) *Handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.mu.entries[name]
	if e == nil {
		e = &entry{name: name, kind: kind}
		c.mu.entries[name] = e
	}
	e.handles++
	c.mu.stats.Handles++
	return &Handle{c: c, e: e}
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.stats
	s.Open = c.mu.open
	return s
}

// Close reports handles that were not released; their files stay open until they are.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.mu.entries {
		return fmt.Errorf("closing file cache: %d handles in use, one of %s", c.mu.stats.Handles, name)
	}
	return nil
}

// Name returns the file's path.
func (h *Handle) Name() string { return h.e.name }

// ReadAt implements io.ReaderAt.
func (h *Handle) ReadAt(p []byte, off int64) (int, error) {
	return h.ReadAtContext(context.Background(), p, off)
}

// ReadAtContext reads as vfs.File does, and opens the file if need be.
func (h *Handle) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	f, err := h.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer h.c.release(h.e)
	return f.ReadAtContext(ctx, p, off)
}

// Size returns the size of the file.
func (h *Handle) Size(ctx context.Context) (int64, error) {
	f, err := h.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer h.c.release(h.e)
	return f.Size()
}

// RemoveOnRelease makes the release of the file's last handle remove the file.
func (h *Handle) RemoveOnRelease() {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	h.e.remove = true
}

// Release gives the handle up; a second call does nothing. With the last handle the
// file is closed and, after RemoveOnRelease, removed; the error says that one of the
// two failed. A file that could not be removed is left to the next open of the store.
// Reads that are running in other goroutines end first, and then the last one does
// the work and its error is dropped.
func (h *Handle) Release() error {
	if h.released.Swap(true) {
		return nil
	}
	c := h.c
	c.mu.Lock()
	h.e.handles--
	c.mu.stats.Handles--
	return c.dropAndUnlock(h.e)
}

// acquire returns the open file and counts a reader of it.
func (h *Handle) acquire(ctx context.Context) (vfs.File, error) {
	c, e := h.c, h.e
	c.mu.Lock()
	for {
		switch {
		case h.released.Load():
			c.mu.Unlock()
			return nil, &fs.PathError{Op: "read", Path: e.name, Err: fs.ErrClosed}
		case e.file != nil:
			f := e.file
			e.unlink()
			e.readers++
			c.mu.Unlock()
			return f, nil
		case e.opening != nil:
			if err := c.waitLocked(ctx, e.opening); err != nil {
				return nil, err
			}
		case c.mu.open < c.maxOpen:
			return c.openAndUnlock(e)
		case c.evictLocked():
		default:
			if c.mu.changed == nil {
				c.mu.changed = make(chan struct{})
			}
			if err := c.waitLocked(ctx, c.mu.changed); err != nil {
				return nil, err
			}
		}
	}
}

// waitLocked waits without the lock. It returns with the lock held unless it fails.
func (c *Cache) waitLocked(ctx context.Context, ch chan struct{}) error {
	c.mu.Unlock()
	select {
	case <-ch:
		c.mu.Lock()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// openAndUnlock opens the file of e and counts a reader of it. When the process is at
// its limit of descriptors, idle files are closed to get one.
func (c *Cache) openAndUnlock(e *entry) (vfs.File, error) {
	e.opening = make(chan struct{})
	e.readers++
	c.mu.open++
	f, err := c.openUnlocked(e)
	for outOfDescriptors(err) && c.evictLocked() {
		f, err = c.openUnlocked(e)
	}
	close(e.opening)
	e.opening = nil
	if err != nil {
		c.closedLocked()
		c.endReadAndUnlock(e)
		return nil, fmt.Errorf("opening: %w", err)
	}
	e.file = f
	c.mu.stats.Opens++
	c.mu.Unlock()
	return f, nil
}

func (c *Cache) openUnlocked(e *entry) (vfs.File, error) {
	c.mu.Unlock()
	defer c.mu.Lock()
	return c.fs.Open(e.name, e.kind)
}

func outOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// evictLocked closes the least recently read idle file, without the lock meanwhile;
// false when there is none.
func (c *Cache) evictLocked() bool {
	e := c.mu.idle.next
	if e == &c.mu.idle {
		return false
	}
	f := e.file
	e.unlink()
	e.file = nil
	e.readers++ // keeps it from being removed before it is closed
	c.mu.stats.Evictions++
	c.mu.Unlock()
	f.Close() // a file that was only read has nothing to lose
	c.mu.Lock()
	c.closedLocked()
	c.endReadAndUnlock(e)
	c.mu.Lock()
	return true
}

// closedLocked counts a file that is no longer open.
func (c *Cache) closedLocked() {
	c.mu.open--
	c.signalLocked()
}

// signalLocked wakes everybody who waits for a file to become idle.
func (c *Cache) signalLocked() {
	if c.mu.changed != nil {
		close(c.mu.changed)
		c.mu.changed = nil
	}
}

// release ends a read.
func (c *Cache) release(e *entry) {
	c.mu.Lock()
	c.endReadAndUnlock(e)
}

// endReadAndUnlock ends a use of e; the last one makes the file idle, or drops it when
// its handles are gone.
func (c *Cache) endReadAndUnlock(e *entry) {
	e.readers--
	if e.readers == 0 && e.handles > 0 && e.file != nil {
		e.pushIdle(&c.mu.idle)
		c.signalLocked()
	}
	c.dropAndUnlock(e)
}

// dropAndUnlock closes and, if asked to, removes a file without handles and readers.
func (c *Cache) dropAndUnlock(e *entry) error {
	if e.handles > 0 || e.readers > 0 {
		c.mu.Unlock()
		return nil
	}
	delete(c.mu.entries, e.name)
	e.unlink()
	f := e.file
	e.file = nil
	remove := e.remove
	c.mu.Unlock()
	var err error
	if f != nil {
		err = f.Close()
		c.mu.Lock()
		c.closedLocked()
		c.mu.Unlock()
	}
	if remove {
		err = errors.Join(err, c.fs.Remove(e.name))
	}
	return err
}

// pushIdle makes e the most recently read of the ring.
func (e *entry) pushIdle(ring *entry) {
	e.prev, e.next = ring.prev, ring
	e.prev.next, ring.prev = e, e
}

// unlink takes e out of the ring if it is in it.
func (e *entry) unlink() {
	if e.next != nil {
		e.prev.next, e.next.prev = e.next, e.prev
		e.prev, e.next = nil, nil
	}
}
