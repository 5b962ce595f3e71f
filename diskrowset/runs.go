package diskrowset

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/minikudu/minikudu/vector"
)

// runs is a sorted list of keys, each of which begins a run of rows. A run holds the
// keys from its own (inclusive) to the next run's (exclusive). It is immutable.
type runs struct {
	keys *vector.Vector // bytes, not null, ascending, at least one
	// heads holds 16 bytes of each key after the first skip bytes, which all have in
	// common, so that most comparisons touch no key.
	heads  []keyHead
	skip   int
	common []byte
}

func newRuns(keys *vector.Vector) *runs {
	x := &runs{keys: keys, heads: make([]keyHead, keys.Len())}
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

// keyHead is 16 bytes as two big-endian numbers.
type keyHead struct{ hi, lo uint64 }

// head returns the first 16 bytes of b, padded with zeroes. Where heads differ, the keys
// differ in the same direction.
func head(b []byte) keyHead {
	if len(b) >= 16 {
		return keyHead{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
	}
	var w [16]byte
	copy(w[:], b)
	return keyHead{binary.BigEndian.Uint64(w[:]), binary.BigEndian.Uint64(w[8:])}
}

// Size returns the bytes of memory held.
func (x *runs) Size() int { return x.keys.Size() + 16*len(x.heads) + int(unsafe.Sizeof(*x)) }

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
	if at < 0 {
		return x.findFirst(key, h)
	}
	// Invariant: run lo does not sort after the key, run hi does.
	lo, hi := at, len(x.heads)
	for step := 1; lo+step < hi; step *= 2 { // the next key is often near
		if x.after(lo+step, key, h) {
			hi = lo + step
			break
		}
		lo += step
	}
	return x.between(lo, hi, key, h)
}

// findFirst is find without a place to begin. It halves by heads alone and without a branch,
// which nobody could predict.
func (x *runs) findFirst(key []byte, h keyHead) int {
	at, n := 0, len(x.heads)
	for n > 1 {
		half := n / 2
		a := &x.heads[at+half]
		_, after := bits.Sub64(h.lo, a.lo, 0)
		_, after = bits.Sub64(h.hi, a.hi, after)
		at += half & (int(after) - 1)
		n -= half
	}
	switch a := x.heads[at]; {
	case a == h: // and so may be some before it
		return x.between(-1, at+1, key, h)
	case x.after(at, key, h): // only the first one can
		return -1
	}
	return at
}

// between returns the last run that does not sort after the key, which run lo does not, or -1, and
// run hi does, if there is one.
func (x *runs) between(lo, hi int, key []byte, h keyHead) int {
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); x.after(mid, key, h) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo
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
func (x *runs) after(i int, key []byte, h keyHead) bool {
	switch a := x.heads[i]; {
	case a.hi != h.hi:
		return a.hi > h.hi
	case a.lo != h.lo:
		return a.lo > h.lo
	}
	return bytes.Compare(x.keys.BytesAt(i), key) > 0
}
