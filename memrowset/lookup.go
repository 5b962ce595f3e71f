package memrowset

import (
	"context"
	"sync"

	"github.com/minikudu/minikudu/internal/filter"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
)

// Lookup sets out[i] for each of the keys which that is stored here. The caller's key
// locks keep the keys from being inserted meanwhile.
func (m *MemRowSet) Lookup(ctx context.Context, keys *rowset.Keys, which []int32, out []rowset.Found) error {
	published := m.Rows()
	if published == 0 {
		return ctx.Err()
	}
	q := probes.Get().(*probe)
	defer q.release()
	q.m, q.keys, q.out, q.published = m, keys, out, rowset.RowID(published)
	for len(which) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(which), probeKeys)
		q.start(which[:n])
		q.resolve(m.index.Load())
		which = which[n:]
	}
	return nil
}

// probeKeys is the number of keys taken together through the runs, so that the filter
// of a run is in the processor's cache for many of them.
const probeKeys = 1024

// fewKeys is the largest slice whose zones are not worth computing.
const fewKeys = 4

// probe is a slice of at most probeKeys keys being looked up. A key is known by its
// position in the slice.
type probe struct {
	m         *MemRowSet
	keys      *rowset.Keys
	out       []rowset.Found
	published rowset.RowID // rows from here on belong to an unfinished append

	which []int32   // index in keys of each position
	rows  []int32   // row in keys.Columns of each position
	open  []int32   // positions not found so far, ascending
	hit   []bool    // positions found
	cells [][]int64 // of integer key columns, by column and position
	zones []zone    // of the slice, by key column; none for a few keys
	ints  []int64
}

var probes = sync.Pool{New: func() any { return new(probe) }}

// release drops what the probe points to and keeps its memory.
func (q *probe) release() {
	q.m, q.keys, q.out, q.which = nil, nil, nil, nil
	clear(q.zones)
	probes.Put(q)
}

// start takes a slice of keys.
func (q *probe) start(which []int32) {
	q.which, q.open, q.rows, q.hit = which, q.open[:0], q.rows[:0], q.hit[:0]
	for p, i := range which {
		q.open = append(q.open, int32(p))
		q.rows = append(q.rows, int32(q.keys.ColumnRow(int(i))))
		q.hit = append(q.hit, false)
	}
	n := q.m.schema.NumKey()
	for len(q.cells) < n {
		q.cells = append(q.cells, nil)
	}
	q.zones = q.zones[:0]
	rows := pick{rows: q.rows, n: len(which)}
	for c, v := range q.keys.Columns[:n] {
		if v.Kind() != schema.KindBytes {
			q.cells[c] = appendInts(q.cells[c][:0], v, rows)
		}
		if len(which) > fewKeys {
			q.zones = append(q.zones, zoneOf(v, rows, c == 0, &q.ints))
		}
	}
}

// resolve looks the slice up in the newest rows first.
func (q *probe) resolve(x *index) {
	for i := 0; i < len(q.open); i += lockSlice {
		x.active.lookup(q, q.open[i:min(i+lockSlice, len(q.open))])
	}
	for i := len(x.runs) - 1; i >= 0 && q.left(); i-- {
		x.runs[i].lookup(q)
	}
}

// left removes the positions found from open and reports whether any remains.
func (q *probe) left() bool {
	keep := q.open[:0]
	for _, p := range q.open {
		if !q.hit[p] {
			keep = append(keep, p)
		}
	}
	q.open = keep
	return len(keep) > 0
}

// meets reports whether rows of the given zones may hold any key of the slice.
func (q *probe) meets(zones []zone) bool {
	for c := range q.zones {
		if !q.zones[c].meets(&zones[c]) {
			return false
		}
	}
	return true
}

// inside reports whether rows of the given zones may hold the key at p.
func (q *probe) inside(p int32, zones []zone) bool {
	for _, c := range q.m.zoneOrder {
		if v := q.keys.Columns[c]; v.Kind() != schema.KindBytes {
			if !zones[c].hasInt(q.cells[c][p]) {
				return false
			}
		} else if !zones[c].hasBytes(v.BytesAt(int(q.rows[p]))) {
			return false
		}
	}
	return true
}

func (q *probe) key(p int32) []byte { return q.keys.At(int(q.which[p])) }

func (q *probe) locations(p int32) *filter.Locations { return q.keys.Locations(int(q.which[p])) }

// found records that row holds the key at p.
func (q *probe) found(p int32, row rowset.RowID) {
	if row >= q.published {
		return
	}
	q.hit[p] = true
	q.out[q.which[p]] = rowset.Found{RowSet: q.m, Row: row, Live: true, LastChange: mvcc.Timestamp(q.m.times.at(row))}
}
