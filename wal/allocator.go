package wal

import (
	"fmt"
	"sync"
)

// allocator makes segments ahead of their use, in a goroutine, so that a commit
// does not wait for a file to be made. It makes none before the first is asked for.
type allocator struct {
	make func(number uint64) (*segment, error) // set at start

	mu      sync.Mutex
	changed *sync.Cond
	next    uint64     // number of the next segment to make; never used twice
	ready   []*segment // made and durable, ascending
	want    int        // ready segments asked for
	failed  int        // tries that failed
	err     error      // of the last try; nobody tries again until asked
	closed  bool
}

func newAllocator(next uint64, mk func(uint64) (*segment, error)) *allocator {
	a := &allocator{make: mk, next: next}
	a.changed = sync.NewCond(&a.mu)
	return a
}

// run makes segments until the allocator is closed.
func (a *allocator) run() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		for !a.closed && (a.err != nil || len(a.ready) >= a.want) {
			a.changed.Wait()
		}
		if a.closed {
			return
		}
		a.makeOne()
	}
}

// makeOne makes the next segment; the lock is released meanwhile.
func (a *allocator) makeOne() {
	number := a.next
	a.next++
	a.mu.Unlock()
	s, err := a.make(number)
	a.mu.Lock()
	if err != nil {
		a.failed++
		a.err = fmt.Errorf("making log segment %d: %w", number, err)
	} else {
		a.ready = append(a.ready, s)
	}
	a.changed.Broadcast()
}

// reserve waits until n segments are ready. An earlier failure is tried again.
func (a *allocator) reserve(n int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	tries := a.failed
	a.want = max(n, 1)
	defer func() { a.want = 1 }()
	for len(a.ready) < n {
		if a.failed > tries {
			return a.err
		}
		if a.closed {
			return ErrClosed
		}
		a.err = nil
		a.changed.Broadcast()
		a.changed.Wait()
	}
	return nil
}

// available returns the number of ready segments.
func (a *allocator) available() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ready)
}

// take returns the first ready segment; there must be one. The next is made in the
// background.
func (a *allocator) take() *segment {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.ready[0]
	a.ready = append(a.ready[:0], a.ready[1:]...)
	a.changed.Broadcast()
	return s
}

// close stops run; what nobody took is left in ready.
func (a *allocator) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.changed.Broadcast()
}
