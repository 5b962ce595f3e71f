package memrowset

import (
	"bytes"
	"sort"

	"github.com/minikudu/minikudu/internal/filter"
	"github.com/minikudu/minikudu/internal/rowset"
)

// sampleRows is the distance of the rows whose prefix a run keeps for the search.
const sampleRows = 16

// run is a sealed tree: its rows in key order, read without a lock.
type run struct {
	keys    *bytesStore
	prefix  prefix
	rows    []rowset.RowID
	samples []item // of rows 0, sampleRows, 2·sampleRows, …
	filter  *filter.Filter
	zones   []zone
}

// seal turns a tree that nobody changes any more into a run.
func (t *tree) seal() *run {
	n := t.items.Len()
	r := &run{keys: t.keys, prefix: t.prefix, rows: make([]rowset.RowID, 0, n), filter: filter.New(n), zones: t.zones,
		samples: make([]item, 0, n/sampleRows+1)}
	t.items.Ascend(func(it item) bool {
		if len(r.rows)%sampleRows == 0 {
			r.samples = append(r.samples, it)
		}
		r.rows = append(r.rows, it.row)
		l := filter.Locate(t.keys.at(it.row))
		r.filter.Add(&l)
		return true
	})
	return r
}

// bytes returns the memory of the run.
func (r *run) bytes() int64 {
	return int64(4*cap(r.rows) + itemBytes*cap(r.samples) + r.filter.Size())
}

// lookup calls found for each open key of q that the run holds.
func (r *run) lookup(q *probe) {
	if !q.meets(r.zones) {
		return
	}
	at := 0 // keys ascend, so no key lies in a sample before that of the last one
	for _, p := range q.open {
		if !q.inside(p, r.zones) || !r.filter.Test(q.locations(p)) {
			continue
		}
		key := q.key(p)
		it := r.prefix.item(key, probeRow)
		at = r.sample(key, &it, at)
		if i := r.searchFrom(key, at); i < len(r.rows) && bytes.Equal(r.keys.at(r.rows[i]), key) {
			q.found(p, r.rows[i])
		}
	}
}

// search returns the position of the first row whose key is not below key.
func (r *run) search(key []byte) int {
	it := r.prefix.item(key, probeRow)
	return r.searchFrom(key, r.sample(key, &it, 0))
}

// sample returns the last sample whose key is not above key, or 0, given that no
// earlier one than from is. It doubles its steps, then halves them.
func (r *run) sample(key []byte, it *item, from int) int {
	lo, step := from, 1
	for lo+step < len(r.samples) && !r.sampleAbove(lo+step, key, it) {
		lo += step
		step *= 2
	}
	hi := min(lo+step, len(r.samples)) // above key, or past the end
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); r.sampleAbove(mid, key, it) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo
}

// sampleAbove reports whether the key of sample i is above key.
func (r *run) sampleAbove(i int, key []byte, it *item) bool {
	s := &r.samples[i]
	if c := comparePrefix(s, it); c != 0 {
		return c > 0
	}
	return bytes.Compare(r.keys.at(s.row), key) > 0
}

// searchFrom ends the search within the rows of a sample.
func (r *run) searchFrom(key []byte, sample int) int {
	from := sample * sampleRows
	rows := r.rows[from:min(from+sampleRows, len(r.rows))]
	chunks := *r.keys.chunks.Load()
	return from + sort.Search(len(rows), func(i int) bool {
		return bytes.Compare(valueAt(chunks, rows[i]), key) >= 0
	})
}
