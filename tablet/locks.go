package tablet

import (
	"bytes"
	"sync"

	"github.com/minikudu/minikudu/internal/rowset"
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
	keys     *rowset.Keys // ascending
	released chan struct{}
}

// lock waits until no earlier batch holds one of the keys.
func (l *keyLocks) lock(keys *rowset.Keys) *keyLock {
	k := &keyLock{keys: keys, released: make(chan struct{})}
	l.mu.Lock()
	var wait []*keyLock
	for _, h := range l.held {
		if overlap(h.keys, keys) {
			wait = append(wait, h)
		}
	}
	l.held = append(l.held, k)
	l.mu.Unlock()
	for _, h := range wait {
		<-h.released
	}
	return k
}

// unlock lets the batches that wait for k go on.
func (l *keyLocks) unlock(k *keyLock) {
	l.mu.Lock()
	for i, h := range l.held {
		if h == k {
			l.held = append(l.held[:i], l.held[i+1:]...)
			break
		}
	}
	l.mu.Unlock()
	close(k.released)
}

// overlap reports whether two ascending key lists share a key.
func overlap(a, b *rowset.Keys) bool {
	if a.Len() == 0 || b.Len() == 0 ||
		bytes.Compare(a.At(a.Len()-1), b.At(0)) < 0 || bytes.Compare(b.At(b.Len()-1), a.At(0)) < 0 {
		return false
	}
	for i, j := 0, 0; i < a.Len() && j < b.Len(); {
		switch c := bytes.Compare(a.At(i), b.At(j)); {
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
