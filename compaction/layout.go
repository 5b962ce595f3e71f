package compaction

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// RowSet is what the policy knows of a disk rowset.
type RowSet struct {
	Bytes       int64  // of its data: base, REDO and UNDO, without filters and indexes
	Disk        int64  // of everything it occupies; counts as at least Bytes
	Reclaimable int64  // of Disk: what a rewrite is certain to free now, see Waste
	Min, Max    []byte // encoded first and last key, Min at most Max
	Locked      bool   // other work holds it: it cannot be compacted now
}

func (r *RowSet) disk() int64 { return max(r.Disk, r.Bytes) }

// compare orders rowsets by key range. Equal ones are alike for every purpose here.
func (r *RowSet) compare(o *RowSet) int {
	return cmp.Or(
		bytes.Compare(r.Min, o.Min),
		bytes.Compare(r.Max, o.Max),
		cmp.Compare(r.Bytes, o.Bytes),
		cmp.Compare(r.disk(), o.disk()),
		cmp.Compare(r.Reclaimable, o.Reclaimable),
	)
}

// Range is a rowset's place in the cumulative distribution of the tablet's data over
// the key space: the shares of data below its first and up to its last key.
type Range struct{ Start, End float64 }

// Width returns the share of the tablet's data in the rowset's key range.
func (r Range) Width() float64 { return r.End - r.Start }

// Layout is the place of every rowset of a tablet.
type Layout struct {
	Ranges        []Range // one for each rowset, in the order given
	AverageHeight float64 // rowsets a key must be looked for in, weighed by data; 0 without data
}

// Place computes the layout of the rowsets.
func Place(sets []RowSet) Layout {
	ranges := make([]Range, len(sets))
	var total, weighted float64
	newSweep(sets).run(func(p *endpoint, size float64, height int) {
		total += size
		weighted += size * float64(height)
		if p.start {
			ranges[p.set].Start = total
		} else {
			ranges[p.set].End = total
		}
	})
	if total == 0 {
		return Layout{Ranges: ranges}
	}
	for i := range ranges {
		ranges[i].Start /= total
		ranges[i].End /= total
	}
	return Layout{Ranges: ranges, AverageHeight: weighted / total}
}

// sweep walks the first and last keys of rowsets in key order.
type sweep struct {
	points []endpoint
	spans  []span // by rowset
	active []int  // rowsets whose range the walk is in, in the order they were entered
}

// endpoint is the first or last key of a rowset, or a key of interest to the caller.
type endpoint struct {
	key   []byte
	set   int // -1 for none
	start bool
}

// span interpolates within a rowset by the eight bytes after its common prefix.
type span struct {
	bytes, width float64
	prefix       int
	at           uint64 // position of the walk
}

// newSweep prepares a walk that also stops at the marks.
func newSweep(sets []RowSet, marks ...[]byte) *sweep {
	s := &sweep{
		points: make([]endpoint, 0, 2*len(sets)+len(marks)),
		spans:  make([]span, len(sets)),
	}
	for _, i := range keyOrder(sets) { // so that the order given has no effect
		r := &sets[i]
		s.spans[i] = newSpan(r)
		s.points = append(s.points, endpoint{r.Min, i, true}, endpoint{r.Max, i, false})
	}
	for _, key := range marks {
		s.points = append(s.points, endpoint{key: key, set: -1})
	}
	slices.SortStableFunc(s.points, func(a, b endpoint) int { return bytes.Compare(a.key, b.key) })
	return s
}

// keyOrder returns the indexes of the rowsets in the order of compare.
func keyOrder(sets []RowSet) []int {
	order := make([]int, len(sets))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return sets[a].compare(&sets[b]) })
	return order
}

func newSpan(r *RowSet) span {
	n := 0
	for n < len(r.Min) && n < len(r.Max) && r.Min[n] == r.Max[n] {
		n++
	}
	lo, hi := number(r.Min, n), number(r.Max, n)
	return span{bytes: float64(r.Bytes), width: float64(hi - lo), prefix: n, at: lo}
}

// number is bytes [n, n+8) of a key as a big-endian integer, zero-padded.
func number(key []byte, n int) uint64 {
	if len(key)-n >= 8 {
		return binary.BigEndian.Uint64(key[n:])
	}
	var b [8]byte
	if n < len(key) {
		copy(b[:], key[n:])
	}
	return binary.BigEndian.Uint64(b[:])
}

// advance moves on to a key within the range and estimates the bytes passed.
func (s *span) advance(key []byte) float64 {
	if s.width == 0 {
		return 0
	}
	n := number(key, s.prefix)
	share := float64(n-s.at) / s.width
	s.at = n
	return s.bytes * share
}

// run calls f at every point, with the bytes between the point before and this one and
// the number of rowsets that lie there.
func (s *sweep) run(f func(p *endpoint, size float64, height int)) {
	for i := range s.points {
		p := &s.points[i]
		size := 0.0
		if i > 0 && !bytes.Equal(s.points[i-1].key, p.key) {
			for _, a := range s.active {
				size += s.spans[a].advance(p.key)
			}
		}
		f(p, size, len(s.active))
		if p.start {
			s.active = append(s.active, p.set)
		} else if at := slices.Index(s.active, p.set); at >= 0 {
			s.active = slices.Delete(s.active, at, at+1)
		}
	}
}
