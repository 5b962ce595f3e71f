package diskrowset

import (
	"bytes"
	"encoding/binary"
	"sort"
	"unsafe"

	"github.com/minikudu/minikudu/vector"
)

// runs is a sorted list of keys, each of which begins a run of rows. A run holds the
// keys from its own (inclusive) to the next run's (exclusive). It is immutable.
type runs struct {
	keys *vector.Vector // bytes, not null, ascending, at least one
	// heads holds 8 bytes of each key after the first skip bytes, which all have in
	// common, as a big-endian number, so that most comparisons touch no key.
	heads  []uint64
	skip   int
	common []byte
}

func newRuns(keys *vector.Vector) *runs {
	x := &runs{keys: keys, heads: make([]uint64, keys.Len())}
	first, last := keys.BytesAt(0), keys.BytesAt(keys.Len()-1)
	for x.skip < len(first) && x.skip < len(last) && first[x.skip] == last[x.skip] {
		x.skip++
	}
	x.common = first[:x.skip]
	for i := range x.heads {
		x.heads[i] = head(keys.BytesAt(i)[x.skip:])
	}
	return x
}

// ascending reports whether the keys are in strictly ascending order.
func ascending(keys *vector.Vector) bool {
	for i := 1; i < keys.Len(); i++ {
		if bytes.Compare(keys.BytesAt(i-1), keys.BytesAt(i)) >= 0 {
			return false
		}
	}
	return true
}

// head returns the first 8 bytes of b as a big-endian number, padded with zeroes.
// Where heads differ, the keys differ in the same direction.
func head(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var w [8]byte
	copy(w[:], b)
	return binary.BigEndian.Uint64(w[:])
}

// Size returns the bytes of memory held.
func (x *runs) Size() int { return x.keys.Size() + 8*len(x.heads) + int(unsafe.Sizeof(*x)) }

// find returns the run in which key lies, -1 when it sorts before all of them. at is
// where to begin: a run that does not sort after the key, or -1.
func (x *runs) find(key []byte, at int) int {
	if c := compareCommon(key, x.common); c != 0 {
		if c < 0 {
			return -1
		}
		return len(x.heads) - 1
	}
	h := head(key[x.skip:])
	// Invariant: run lo does not sort after the key, run hi does.
	lo, hi := at, len(x.heads)
	for step := 1; at >= 0 && lo+step < hi; step *= 2 { // the next key is often near
		if x.after(lo+step, key, h) {
			hi = lo + step
			break
		}
		lo += step
	}
	return lo + sort.Search(hi-lo-1, func(i int) bool { return x.after(lo+1+i, key, h) })
}

// compareCommon compares the key's first bytes with the bytes all runs begin with; a
// key shorter than those sorts before when it agrees with them.
func compareCommon(key, common []byte) int {
	if len(key) >= len(common) {
		return bytes.Compare(key[:len(common)], common)
	}
	if c := bytes.Compare(key, common[:len(key)]); c != 0 {
		return c
	}
	return -1
}

// after reports whether run i sorts after the key.
func (x *runs) after(i int, key []byte, h uint64) bool {
	if x.heads[i] != h {
		return x.heads[i] > h
	}
	return bytes.Compare(x.keys.BytesAt(i), key) > 0
}
