package errorfs

import (
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minikudu/minikudu/vfs"
)

// Match says which calls a hook concerns.
type Match func(Call) bool

// Any matches every call.
func Any(Call) bool { return true }

// Ops matches the given operations.
func Ops(ops ...Op) Match { return func(c Call) bool { return slices.Contains(ops, c.Op) } }

// Writes matches operations that change what is stored.
func Writes(c Call) bool { return c.Op.Writes() }

// Kinds matches calls on the given kinds of files.
func Kinds(kinds ...vfs.Kind) Match {
	return func(c Call) bool { return slices.Contains(kinds, c.Kind) }
}

// Base matches calls whose name ends in an element that the pattern of path.Match fits.
func Base(pattern string) Match {
	return func(c Call) bool {
		ok, _ := path.Match(pattern, path.Base(strings.ReplaceAll(c.Name, `\`, "/")))
		return ok
	}
}

// And matches calls that all of the given ones match.
func And(all ...Match) Match {
	return func(c Call) bool {
		for _, m := range all {
			if !m(c) {
				return false
			}
		}
		return true
	}
}

// Fail returns a hook that fails the matching calls from the nth (counted from 1) to
// the last with err; a last below n means for ever.
func Fail(err error, n, last int64, m Match) Hook {
	var seen atomic.Int64
	return func(c Call) error {
		if !m(c) {
			return nil
		}
		if i := seen.Add(1); i >= n && (i <= last || last < n) {
			return err
		}
		return nil
	}
}

// Short returns a hook that makes the nth matching write store only half of its bytes
// and then fail with err.
func Short(err error, n int64, m Match) Hook {
	fail := Fail(err, n, n, And(Ops(OpWrite), m))
	return func(c Call) error {
		if err := fail(c); err != nil {
			return &ShortError{N: c.Length / 2, Err: err}
		}
		return nil
	}
}

// Each returns a hook that calls the given ones in order until one fails.
func Each(hooks ...Hook) Hook {
	return func(c Call) error {
		for _, h := range hooks {
			if err := h(c); err != nil {
				return err
			}
		}
		return nil
	}
}

// Disk models the time that a device needs. Zero fields take no time.
type Disk struct {
	Latency        time.Duration // of each read and write
	SyncLatency    time.Duration // of each sync of a file or directory
	BytesPerSecond int64         // of reads and writes together
}

// Slower returns the disk slowed by a factor.
func (d Disk) Slower(factor int) Disk {
	return Disk{d.Latency * time.Duration(factor), d.SyncLatency * time.Duration(factor), d.BytesPerSecond / int64(factor)}
}

func (d Disk) cost(c Call) (t time.Duration) {
	switch c.Op {
	case OpRead, OpWrite:
		t = d.Latency
		if d.BytesPerSecond > 0 {
			t += time.Duration(float64(c.Length) / float64(d.BytesPerSecond) * float64(time.Second))
		}
	case OpSync, OpSyncDir:
		t = d.SyncLatency
	}
	return t
}

// Slow returns a hook that makes reads, writes and syncs wait as if they queued for one
// such disk.
func Slow(d Disk) Hook {
	var mu sync.Mutex
	var free time.Time // when the disk has done what is queued
	return func(c Call) error {
		cost := d.cost(c)
		if cost == 0 {
			return nil
		}
		mu.Lock()
		now := time.Now()
		if free.Before(now) {
			free = now
		}
		free = free.Add(cost)
		wait := free.Sub(now)
		mu.Unlock()
		time.Sleep(wait)
		return nil
	}
}
