package minikudu

import (
	"context"
	"sync/atomic"
	"time"
)

// memoryGate slows writers smoothly as unflushed rows approach their share of the
// memory budget, and stops them only at the limit.
//
// Above three quarters of the limit a batch pays for its bytes at the rate at which
// flushes lately freed memory, times a factor that grows from 0 to 2 at the limit:
// writers settle at the pace of the disk before they hit the wall, and all of them
// wait about as long.
type memoryGate struct {
	limit  int64 // read-only
	events *EventListener
	stop   <-chan struct{} // the DB closes
	failed func() error    // the DB takes no writes, so nothing will be flushed

	used    atomic.Int64  // bytes of memrowsets
	rate    atomic.Int64  // bytes a second that flushes free, 0 before the first
	debt    atomic.Int64  // nanoseconds owed, too few to sleep for
	stalls  atomic.Int64  // waits
	stalled atomic.Int64  // nanoseconds waited
	longest atomic.Int64  // nanoseconds of the longest wait
	freed   chan struct{} // one token when a flush freed memory
	kick    func()        // asks for a flush
}

const minSleep = 500 * time.Microsecond

// grow counts n more bytes of unflushed rows.
func (m *memoryGate) grow(n int64) { m.used.Add(n) }

// shrink counts n bytes that a flush freed in d.
func (m *memoryGate) shrink(n int64, d time.Duration) {
	if rate := int64(float64(n) / max(d, time.Millisecond).Seconds()); rate > 0 {
		if old := m.rate.Load(); old > 0 {
			rate = (3*old + rate) / 4
		}
		m.rate.Store(rate)
	}
	m.release(n)
}

// release counts n bytes that are no longer held.
func (m *memoryGate) release(n int64) {
	m.used.Add(-n)
	select {
	case m.freed <- struct{}{}:
	default:
	}
}

// admit waits until a batch of n bytes may go on.
func (m *memoryGate) admit(ctx context.Context, n int64) error {
	used := m.used.Load()
	if used <= m.limit/4*3 {
		return nil
	}
	m.kick()
	begin := time.Now()
	if used < m.limit {
		return m.pay(ctx, n, used, begin)
	}
	defer m.report(begin, used)
	for m.used.Load() >= m.limit {
		if err := m.failed(); err != nil {
			return err
		}
		select {
		case <-m.freed:
		case <-time.After(100 * time.Millisecond): // another writer took the token
		case <-ctx.Done():
			return ctx.Err()
		case <-m.stop:
			return ErrClosed
		}
	}
	return nil
}

// pay sleeps for the batch's share of the disk's pace.
func (m *memoryGate) pay(ctx context.Context, n, used int64, begin time.Time) error {
	rate := m.rate.Load()
	if rate == 0 {
		return nil
	}
	factor := 2 * float64(used-m.limit/4*3) / float64(m.limit-m.limit/4*3)
	owed := time.Duration(factor * float64(n) / float64(rate) * float64(time.Second))
	if owed += time.Duration(m.debt.Swap(0)); owed < minSleep {
		m.debt.Add(int64(owed))
		return nil
	}
	defer m.report(begin, used)
	t := time.NewTimer(min(owed, time.Second))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-m.stop:
		return ErrClosed
	}
}

func (m *memoryGate) report(begin time.Time, used int64) {
	wait := time.Since(begin)
	m.stalls.Add(1)
	m.stalled.Add(int64(wait))
	for old := m.longest.Load(); old < int64(wait) && !m.longest.CompareAndSwap(old, int64(wait)); {
		old = m.longest.Load()
	}
	if m.events.Stall != nil {
		m.events.Stall(StallInfo{Wait: wait, Memory: used})
	}
}
