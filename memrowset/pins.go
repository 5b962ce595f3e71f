package memrowset

import (
	"context"
	"sync"
)

// pins counts the commits that are about to append.
type pins struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when count falls to 0; nil when nobody waits
}

// Pin keeps WaitUnpinned from returning until Unpin. A commit pins the store it will
// append to while it holds the commit mutex, under which stores are rotated (R1).
func (m *MemRowSet) Pin() {
	m.pins.mu.Lock()
	m.pins.count++
	m.pins.mu.Unlock()
}

// Unpin ends a Pin, after the append.
func (m *MemRowSet) Unpin() {
	p := &m.pins
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count--; p.count < 0 {
		panic("memrowset: unpinned more often than pinned")
	}
	if p.count == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// WaitUnpinned waits until nobody pins the memrowset. A rotated memrowset gets no new
// pins, so from then on its rows are final (R5).
func (m *MemRowSet) WaitUnpinned(ctx context.Context) error {
	p := &m.pins
	p.mu.Lock()
	if p.count == 0 {
		p.mu.Unlock()
		return nil
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
