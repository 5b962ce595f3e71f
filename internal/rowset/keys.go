package rowset

import (
	"hash/maphash"
	"slices"

	"github.com/minikudu/minikudu/internal/filter"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/vector"
)

// Keys is a batch of encoded keys in ascending order, to be resolved together. A
// Keys is used by one goroutine at a time, because [Keys.Hashes] and [Keys.Locations]
// fill caches; after LocateAll it may be shared.
type Keys struct {
	// Encoded holds the encoded keys, ascending, distinct.
	Encoded *vector.Vector
	// Columns holds the key columns' cells, in key column order; cell Row[i] of each
	// belongs to key i.
	Columns []*vector.Vector
	// Row maps a key to its row in Columns; nil means key i is row i.
	Row []int32
	// Since is the time up to which the caller does not need to know when a row changed
	// last: an answer from before it may be any time up to it.
	Since mvcc.Timestamp
	// Found is where a look-up of a single key may put what it finds.
	Found [1]Found

	hashes    []uint64      // of all keys, or none
	located   vector.Bitmap // keys whose locations are known
	locations []filter.Locations
}

// Len returns the number of keys.
func (k *Keys) Len() int { return k.Encoded.Len() }

// At returns encoded key i.
func (k *Keys) At(i int) []byte { return k.Encoded.BytesAt(i) }

// ColumnRow returns the row of Columns that belongs to key i.
func (k *Keys) ColumnRow(i int) int {
	if k.Row == nil {
		return i
	}
	return int(k.Row[i])
}

// seed differs from process to process, so that nobody can choose keys that collide.
var seed = maphash.MakeSeed()

// Hashes returns a hash of every key, computed at the first call: equal for equal keys,
// within the process. The result is valid until Reset and must not be changed.
func (k *Keys) Hashes() []uint64 {
	if n := k.Len(); len(k.hashes) != n {
		k.hashes = slices.Grow(k.hashes[:0], n)[:n]
		offsets, data := k.Encoded.Offsets(), k.Encoded.Data()
		for i := range k.hashes {
			k.hashes[i] = maphash.Bytes(seed, data[offsets[i]:offsets[i+1]])
		}
	}
	return k.hashes
}

// Locations returns the filter locations of key i, computed at the first call. The
// result is valid until Reset and must not be changed, nor may Encoded meanwhile.
func (k *Keys) Locations(i int) *filter.Locations {
	if len(k.located)*64 <= i {
		k.makeRoom()
	}
	if !k.located.Get(i) {
		k.locations[i] = filter.Locate(k.At(i))
		k.located.Set(i)
	}
	return &k.locations[i]
}

// LocateAll fills the caches, after which goroutines may share k.
func (k *Keys) LocateAll() {
	k.Hashes()
	for i := range k.Len() {
		k.Locations(i)
	}
}

// makeRoom prepares the cache for all keys.
func (k *Keys) makeRoom() {
	n := k.Len()
	k.located = k.located.Grow(n)
	if cap(k.locations) < n {
		k.locations = make([]filter.Locations, n)
	}
	k.locations = k.locations[:n]
}

// Reset forgets the keys and keeps the memory of the caches.
func (k *Keys) Reset() {
	*k = Keys{hashes: k.hashes[:0], located: k.located[:0], locations: k.locations[:0]}
}
