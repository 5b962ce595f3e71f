package minikudu

import (
	"sync"
	"sync/atomic"
	"time"
)

// gate lets calls in until it is closed, and lets Close wait for those inside.
type gate struct {
	state atomic.Int64  // calls inside, and gateShut
	shut  chan struct{} // closed when the gate shuts
	empty chan struct{} // closed when it is shut and nobody is inside
	once  sync.Once     // for closing empty
}

// gateShut is added to the calls inside when the gate shuts.
const gateShut = 1 << 62

func newGate() *gate { return &gate{shut: make(chan struct{}), empty: make(chan struct{})} }

// enter begins a call; exit must follow. It fails with ErrClosed.
func (g *gate) enter() error {
	if g.state.Add(1) >= gateShut {
		g.exit()
		return ErrClosed
	}
	return nil
}

// exit ends a call.
func (g *gate) exit() {
	if g.state.Add(-1) == gateShut {
		g.left()
	}
}

// left says that nobody is inside any more. Calls that came too late may say so again.
func (g *gate) left() { g.once.Do(func() { close(g.empty) }) }

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
	for {
		inside := g.state.Load()
		if inside >= gateShut {
			return false
		}
		if g.state.CompareAndSwap(inside, inside+gateShut) {
			close(g.shut)
			if inside == 0 {
				g.left()
			}
			break
		}
	}
	select {
	case <-g.empty:
	case <-time.After(wait):
	}
	return true
}
