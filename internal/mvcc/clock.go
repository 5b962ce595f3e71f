package mvcc

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrClockStep is returned when the wall clock jumped forward by more than
// [MaxForwardStep] while the store was open. Taking such a time would push every
// later commit into the future for good.
var ErrClockStep = errors.New("wall clock stepped forward")

// MaxForwardStep is the largest forward jump of the wall clock, against the
// monotonic one, that a Clock follows by itself.
const MaxForwardStep = time.Hour

// Clock hands out commit timestamps, strictly increasing across restarts and
// backward steps of the wall clock: a hybrid logical clock (Kulkarni, Demirbas,
// Madappa, Avva, Leone: "Logical Physical Clocks", OPODIS 2014) of one node. It may
// be used concurrently.
type Clock struct {
	now       func() time.Time // read-only
	allowStep bool             // read-only

	mu   sync.Mutex
	last Timestamp
	seen time.Time // last accepted reading, with its monotonic part
}

// NewClock returns a clock whose timestamps are above floor. now is the source of
// time, time.Now when nil. With allowStep any forward step is followed.
func NewClock(floor Timestamp, now func() time.Time, allowStep bool) *Clock {
	if now == nil {
		now = time.Now
	}
	return &Clock{now: now, allowStep: allowStep, last: floor, seen: now()}
}

// Next returns the next commit timestamp. It fails with [ErrClockStep].
func (c *Clock) Next() (Timestamp, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.now()
	if err := checkStep(t.Round(0).Sub(c.seen.Round(0)), t.Sub(c.seen)); err != nil && !c.allowStep {
		return 0, err
	}
	c.seen = t
	c.last = max(FromTime(t), c.last+1)
	return c.last, nil
}

// checkStep refuses a wall clock that ran ahead of the monotonic one.
func checkStep(wall, monotonic time.Duration) error {
	if step := wall - monotonic; step > MaxForwardStep {
		return fmt.Errorf("%w by %v: check it, then reopen the store or allow clock steps", ErrClockStep, step.Round(time.Second))
	}
	return nil
}

// Now returns the present as a timestamp, not below any that was handed out.
func (c *Clock) Now() Timestamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(FromTime(c.now()), c.last)
}

// Raise lifts the clock to at least t, so that Next returns more than t.
func (c *Clock) Raise(t Timestamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, t)
}
