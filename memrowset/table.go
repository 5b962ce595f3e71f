package memrowset

import (
	"bytes"
	"math/bits"
	"sync/atomic"

	"github.com/minikudu/minikudu/internal/rowset"
)

// firstPlaces is the size a table starts with; it doubles.
const firstPlaces = 512

// table finds rows by key: a hash table with linear probing (Knuth, "The Art of
// Computer Programming", vol. 3, 6.4), at most two thirds full. A place is one word: the
// first 32 bits of the key's hash, then the row number plus one; 0 is free. The same
// 32 bits choose the place where a search begins, so a larger table is made by one pass
// over the smaller one, which touches no key and writes almost in order.
//
// The appender adds rows, anyone may search meanwhile: a place changes once, from free
// to taken, and a table never changes after a larger one took its place.
type table struct {
	// Set at newTable, then read-only.
	keys *bytesStore
	mem  *atomic.Int64

	places atomic.Pointer[[]atomic.Uint64]

	// Only the appender uses these.
	rows   int
	expect int // rows that will come, as far as one knows
}

func newTable(keys *bytesStore, mem *atomic.Int64) *table {
	t := &table{keys: keys, mem: mem}
	t.places.Store(new([]atomic.Uint64))
	return t
}

// tag returns the bits of a hash that a place holds.
func tag(hash uint64) uint32 { return uint32(hash >> 32) }

// start returns the place where the search for a tag begins among n, a power of two.
func start(tag uint32, n int) int { return int(uint64(tag) * uint64(n) >> 32) }

// search returns the place that holds the row of a key, if that is below limit, and
// otherwise the free one where the search ended, with false.
func (t *table) search(places []atomic.Uint64, key []byte, tag uint32, limit rowset.RowID) (place int, row rowset.RowID, found bool) {
	for i := start(tag, len(places)); ; i = (i + 1) & (len(places) - 1) {
		p := places[i].Load()
		if p == 0 {
			return i, 0, false
		}
		if uint32(p>>32) == tag {
			row := rowset.RowID(uint32(p) - 1)
			if row < limit && bytes.Equal(t.keys.at(row), key) {
				return i, row, true
			}
		}
	}
}

// find calls found for each of the listed keys whose row is stored below limit.
func (t *table) find(keys *rowset.Keys, which []int32, limit rowset.RowID, found func(key int32, row rowset.RowID)) {
	places, hashes := *t.places.Load(), keys.Hashes()
	for len(which) > 0 {
		n := min(len(which), warmKeys)
		warm(places, hashes, which[:n])
		for _, k := range which[:n] {
			if _, row, ok := t.search(places, keys.At(int(k)), tag(hashes[k]), limit); ok {
				found(k, row)
			}
		}
		which = which[n:]
	}
}

// warmKeys is the number of keys whose places are brought into the cache together.
const warmKeys = 256

// warm loads the places where the searches for keys begin. Nothing in the loop depends
// on what is loaded, so the processor waits for many places at a time.
func warm(places []atomic.Uint64, hashes []uint64, which []int32) {
	for _, k := range which {
		places[start(tag(hashes[k]), len(places))].Load()
	}
}

// warmPicked is warm for picked keys.
func warmPicked(places []atomic.Uint64, hashes []uint64, p pick) {
	for i := range p.n {
		places[start(tag(hashes[p.row(i)]), len(places))].Load()
	}
}

// add puts the picked keys, which are stored already, at rows at, at+1 and so on. It
// stops at a key that is there and returns false.
func (t *table) add(keys *rowset.Keys, p pick, at int) bool {
	places, hashes := t.reserve(t.rows+p.n), keys.Hashes()
	for i := range p.n {
		if i%warmKeys == 0 {
			warmPicked(places, hashes, p.part(i, min(warmKeys, p.n-i)))
		}
		k, row := p.row(i), rowset.RowID(at+i)
		tag := tag(hashes[k])
		place, _, found := t.search(places, keys.At(k), tag, row)
		if found {
			return false
		}
		places[place].Store(uint64(tag)<<32 | uint64(row+1))
	}
	t.rows += p.n
	return true
}

// reserve makes room for n rows, or for all that are expected once an eighth of them is
// there: making the table larger in steps costs a third of filling it.
func (t *table) reserve(n int) []atomic.Uint64 {
	old := *t.places.Load()
	if 3*n <= 2*len(old) {
		return old
	}
	if n >= t.expect/8 {
		n = max(n, t.expect)
	}
	places := make([]atomic.Uint64, max(firstPlaces, 1<<bits.Len(uint(3*n/2))))
	for i := range old {
		word := old[i].Load()
		if word == 0 {
			continue
		}
		k := start(tag(word), len(places))
		for places[k].Load() != 0 {
			k = (k + 1) & (len(places) - 1)
		}
		places[k].Store(word)
	}
	t.places.Store(&places)
	t.mem.Add(8 * int64(len(places)-len(old)))
	return places
}
