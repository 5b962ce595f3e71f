package minikudu

import (
	"sync"
	"time"
)

// gate lets calls in until it is closed, and lets Close wait for those inside.
type gate struct {
	mu     sync.Mutex
	inside int
	shut   chan struct{} // closed when the gate shuts
	empty  chan struct{} // closed when it is shut and nobody is inside
}

func newGate() *gate { return &gate{shut: make(chan struct{}), empty: make(chan struct{})} }

// enter begins a call; exit must follow. It fails with ErrClosed.
func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isShut() {
		return ErrClosed
	}
	g.inside++
	return nil
}

// exit ends a call.
func (g *gate) exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.isShut() {
		close(g.empty)
	}
}

// isShut reports whether the gate was closed. Calls that take long ask it now and then.
func (g *gate) isShut() bool {
	select {
	case <-g.shut:
		return true
	default:
		return false
	}
}

// close shuts the gate and waits for those inside, at most the given time. It
// reports whether it was this call that shut it.
func (g *gate) close(wait time.Duration) bool {
	g.mu.Lock()
	if g.isShut() {
		g.mu.Unlock()
		return false
	}
	close(g.shut)
	if g.inside == 0 {
		close(g.empty)
	}
	g.mu.Unlock()
	select {
	case <-g.empty:
	case <-time.After(wait):
	}
	return true
}
