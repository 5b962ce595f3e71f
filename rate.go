package minikudu

import (
	"sync"
	"time"
)

// rate spreads bytes over time.
type rate struct {
	mu   sync.Mutex
	free time.Time // when the bytes reserved so far are through
}

// reserve returns when n more bytes will have been written at a number of bytes a second.
func (r *rate) reserve(now time.Time, n, perSecond int64) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.free.Before(now) {
		r.free = now
	}
	r.free = r.free.Add(time.Duration(float64(n) / float64(perSecond) * float64(time.Second)))
	return r.free
}
