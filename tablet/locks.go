package tablet

import (
	"bytes"
	"slices"
	"sync"

	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vector"
)

// keyLocks serialises batches that touch a common key. A batch names all its keys
// at once and waits for every earlier batch that names one of them, so batches
// queue in the order in which they arrived and cannot deadlock. One batch alone, or
// batches over disjoint key ranges, cost two comparisons each.
type keyLocks struct {
	mu   sync.Mutex
	held []*keyLock // in order of arrival
}

// keyLock is one batch's hold on its keys.
type keyLock struct {
	keys     *vector.Vector // encoded, ascending; unchanged until unlock
	released chan struct{}  // made by the first batch that waits, guarded by keyLocks.mu
}

// lock waits until no earlier batch holds one of the keys.
func (l *keyLocks) lock(keys *rowset.Keys) *keyLock {
	k := &keyLock{keys: keys.Encoded}
	l.mu.Lock()
	var wait []chan struct{}
	for _, h := range l.held {
		if overlap(h.keys, k.keys) {
			if h.released == nil {
				h.released = make(chan struct{})
			}
			wait = append(wait, h.released)
		}
	}
	l.held = append(l.held, k)
	l.mu.Unlock()
	for _, released := range wait {
		<-released
	}
	return k
}

// unlock lets the batches that wait for k go on.
func (l *keyLocks) unlock(k *keyLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = slices.DeleteFunc(l.held, func(h *keyLock) bool { return h == k })
	if k.released != nil {
		close(k.released)
	}
}

// overlap reports whether two ascending key lists share a key.
func overlap(a, b *vector.Vector) bool {
	if a.Len() == 0 || b.Len() == 0 ||
		bytes.Compare(a.BytesAt(a.Len()-1), b.BytesAt(0)) < 0 || bytes.Compare(b.BytesAt(b.Len()-1), a.BytesAt(0)) < 0 {
		return false
	}
	for i, j := 0, 0; i < a.Len() && j < b.Len(); {
		switch c := bytes.Compare(a.BytesAt(i), b.BytesAt(j)); {
		case c == 0:
			return true
		case c < 0:
			i++
		default:
			j++
		}
	}
	return false
}
