package mvcc

import "sync"

// Readers are the snapshots that scans, handles and pins hold. The horizon of what
// history may be dropped is never above the oldest of them. The zero value is ready; it
// may be used concurrently.
type Readers struct {
	mu     sync.Mutex
	counts map[Timestamp]int
}

// Begin registers the snapshot that take returns, unless it fails; take is given the
// oldest one registered, Max when there is none. No horizon is computed meanwhile.
func (r *Readers) Begin(take func(oldest Timestamp) (Timestamp, error)) (Timestamp, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, err := take(r.oldestLocked())
	if err != nil {
		return 0, err
	}
	if r.counts == nil {
		r.counts = map[Timestamp]int{}
	}
	r.counts[t]++
	return t, nil
}

// End ends one registration of a snapshot.
func (r *Readers) End(t Timestamp) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts[t]--; r.counts[t] <= 0 {
		delete(r.counts, t)
	}
}

// Oldest returns the oldest snapshot registered, Max when there is none.
func (r *Readers) Oldest() Timestamp {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.oldestLocked()
}

// Horizon calls f with the oldest snapshot registered, Max when there is none. No
// snapshot is registered meanwhile.
func (r *Readers) Horizon(f func(oldest Timestamp)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.oldestLocked())
}

func (r *Readers) oldestLocked() Timestamp {
	oldest := Max
	for t := range r.counts {
		oldest = min(oldest, t)
	}
	return oldest
}
