package cache

import (
	"sync"
	"sync/atomic"
)

// Page is what the cache keeps. Size is in bytes and must not change.
type Page interface{ Size() int }

// Slot is the place of one page. The zero Slot is empty. It must not be copied.
type Slot[P Page] struct {
	entry   atomic.Pointer[entry[P]]
	dropped atomic.Uint64 // drop counter of the cache when the page was last evicted
}

type entry[P Page] struct {
	page P
	slot *Slot[P]
	size int64
	used atomic.Int32 // 0..3, saturating

	// Guarded by Cache.mu.
	queue *fifo[P] // in which the entry is
	seq   uint64   // its place there
}

// Get returns the slot's page, and false when it is not cached.
func (s *Slot[P]) Get() (P, bool) {
	e := s.entry.Load()
	if e == nil {
		var none P
		return none, false
	}
	if n := e.used.Load(); n < 3 {
		e.used.Store(n + 1) // a lost update only forgets one use
	}
	return e.page, true
}

// Cache bounds the bytes of the pages in all slots that were filled through it.
type Cache[P Page] struct {
	budget int64 // read-only

	hits, misses, evictions atomic.Int64
	drops                   atomic.Uint64 // pages evicted so far, the clock of Slot.dropped

	mu struct {
		sync.Mutex
		small, main          fifo[P]
		smallBytes, allBytes int64
	}
}

// New returns a cache of the given budget in bytes; with 0 it keeps nothing.
func New[P Page](budget int64) *Cache[P] { return &Cache[P]{budget: budget} }

// Put offers a page for an empty slot and returns the page to use: the given one, or
// one that another goroutine put there meanwhile.
func (c *Cache[P]) Put(s *Slot[P], page P) P {
	size := int64(page.Size())
	c.misses.Add(1)
	if size > c.budget/2 {
		return page
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := s.entry.Load(); e != nil {
		return e.page
	}
	e := &entry[P]{page: page, slot: s, size: size}
	s.entry.Store(e)
	c.mu.allBytes += size
	if c.isGhost(s) {
		c.mu.main.push(e)
	} else {
		c.mu.small.push(e)
		c.mu.smallBytes += size
	}
	for c.mu.allBytes > c.budget && c.evictLocked() {
	}
	return page
}

// Replace is Put for a slot that may hold an older form of the page, which then gives its
// place up, unless the page is too large to be kept.
func (c *Cache[P]) Replace(s *Slot[P], older, page P) P {
	if int64(page.Size()) <= c.budget/2 {
		c.give(s, older)
	}
	return c.Put(s, page)
}

// give empties a slot that holds the given page.
func (c *Cache[P]) give(s *Slot[P], page P) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := s.entry.Load(); e != nil && any(e.page) == any(page) {
		c.removeLocked(e)
	}
}

// removeLocked empties the slot of a page that will not be asked for again.
func (c *Cache[P]) removeLocked(e *entry[P]) {
	e.slot.entry.Store(nil)
	e.queue.remove(e)
	c.mu.allBytes -= e.size
	if e.queue == &c.mu.small {
		c.mu.smallBytes -= e.size
	}
}

// isGhost reports whether the slot's page was evicted not longer ago than as many
// evictions as there are pages in the main queue.
func (c *Cache[P]) isGhost(s *Slot[P]) bool {
	at := s.dropped.Load()
	return at != 0 && c.drops.Load()-at < uint64(c.mu.main.len()+16)
}

// evictLocked drops one page or moves one on, and reports whether there was any.
func (c *Cache[P]) evictLocked() bool {
	if c.mu.smallBytes > c.budget/10 || c.mu.main.len() == 0 {
		if e := c.mu.small.pop(); e != nil {
			c.mu.smallBytes -= e.size
			if e.used.Load() > 0 {
				e.used.Store(0)
				c.mu.main.push(e)
			} else {
				c.dropLocked(e)
			}
			return true
		}
	}
	e := c.mu.main.pop()
	switch {
	case e == nil:
		return false
	case e.used.Load() > 0:
		e.used.Add(-1)
		c.mu.main.push(e)
	default:
		c.dropLocked(e)
	}
	return true
}

func (c *Cache[P]) dropLocked(e *entry[P]) {
	c.mu.allBytes -= e.size
	e.slot.dropped.Store(c.drops.Add(1))
	e.slot.entry.Store(nil)
	c.evictions.Add(1)
}

// Forget empties the slots, whose pages will not be asked for again.
func (c *Cache[P]) Forget(slots []Slot[P]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range slots {
		if e := slots[i].entry.Load(); e != nil {
			c.removeLocked(e)
		}
	}
}

// Hit counts n look-ups that found their page; the owners of slots report them in
// bulk so that a hit itself touches nothing shared.
func (c *Cache[P]) Hit(n int64) { c.hits.Add(n) }

// Stats are counters since the cache was made, and its present size.
type Stats struct {
	Budget, Bytes           int64
	Pages                   int64
	Hits, Misses, Evictions int64
}

// Stats returns the counters.
func (c *Cache[P]) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{Budget: c.budget, Bytes: c.mu.allBytes, Pages: int64(c.mu.small.len() + c.mu.main.len()),
		Hits: c.hits.Load(), Misses: c.misses.Load(), Evictions: c.evictions.Load()}
}

// fifo is a queue of entries in a ring, in which removed entries leave holes.
type fifo[P Page] struct {
	ring  []*entry[P]
	head  int
	n     int // holes included
	holes int
	first uint64 // seq of the entry at head
}

func (q *fifo[P]) len() int { return q.n - q.holes }

func (q *fifo[P]) push(e *entry[P]) {
	if q.n == len(q.ring) {
		q.grow()
	}
	e.queue = q
	q.append(e)
}

func (q *fifo[P]) append(e *entry[P]) {
	e.seq = q.first + uint64(q.n)
	q.ring[(q.head+q.n)%len(q.ring)] = e
	q.n++
}

// grow closes the holes and leaves as much room as there are entries.
func (q *fifo[P]) grow() {
	old := *q
	q.ring, q.head, q.n, q.holes = make([]*entry[P], max(16, 2*q.len())), 0, 0, 0
	for i := range old.n {
		if e := old.ring[(old.head+i)%len(old.ring)]; e != nil {
			q.append(e)
		}
	}
}

// pop takes the oldest entry, nil when there is none.
func (q *fifo[P]) pop() *entry[P] {
	for q.n > 0 {
		e := q.ring[q.head]
		q.ring[q.head] = nil
		q.head = (q.head + 1) % len(q.ring)
		q.n--
		q.first++
		if e != nil {
			return e
		}
		q.holes--
	}
	return nil
}

// remove takes an entry of the queue out.
func (q *fifo[P]) remove(e *entry[P]) {
	q.ring[(q.head+int(e.seq-q.first))%len(q.ring)] = nil
	q.holes++
}
