package rowset

import (
	"github.com/minikudu/minikudu/internal/filter"
	"github.com/minikudu/minikudu/vector"
)

// Keys is a batch of encoded keys in ascending order, to be resolved together. A
// Keys is used by one goroutine at a time, because [Keys.Locations] fills a cache;
// after LocateAll it may be shared.
type Keys struct {
	// Encoded holds the encoded keys, ascending, distinct.
	Encoded *vector.Vector
	// Columns holds the key columns' cells, in key column order; cell Row[i] of each
	// belongs to key i.
	Columns []*vector.Vector
	// Row maps a key to its row in Columns; nil means key i is row i.
	Row []int32

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

// LocateAll computes the locations of every key, after which goroutines may share k.
func (k *Keys) LocateAll() {
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

// Reset forgets the keys and keeps the memory of the location cache.
func (k *Keys) Reset() {
	*k = Keys{located: k.located[:0], locations: k.locations[:0]}
}
