package kernel

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// guarded is a slice to write to with something before and after it that must stay. It
// does not start at a multiple of more than its element's size.
type guarded[T any] struct {
	vals []T
	all  []byte
	size int
}

const guard = 64 + 8 // bytes on either side

func newGuarded[T any](n int) guarded[T] {
	size := n * int(unsafe.Sizeof(*new(T)))
	words := make([]uint64, (size+2*guard+7)/8)
	all := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))[:size+2*guard]
	for i := range all {
		all[i] = 0xa5
	}
	return guarded[T]{unsafe.Slice((*T)(unsafe.Pointer(&all[guard])), n), all, size}
}

// guardedCopy returns a guarded copy of vals.
func guardedCopy[T any](vals []T) guarded[T] {
	g := newGuarded[T](len(vals))
	copy(g.vals, vals)
	return g
}

func (g *guarded[T]) check(t *testing.T) {
	t.Helper()
	for i, b := range g.all {
		if b != 0xa5 && (i < guard || i >= guard+g.size) {
			t.Fatalf("byte %d of %d before or after the values was written", i-guard, g.size)
		}
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
