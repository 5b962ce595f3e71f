package compaction

import (
	"bytes"
	"encoding/binary"
	"sort"
)

// RowSet is what the layout of a rowset depends on.
type RowSet struct {
	Bytes    int64  // of its data: base, REDO and UNDO, without filters and indexes
	Min, Max []byte // encoded first and last key
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

// endpoint is the first or last key of a rowset.
type endpoint struct {
	key   []byte
	set   int
	start bool
}

// Place computes the layout of the rowsets.
func Place(sets []RowSet) Layout {
	l := Layout{Ranges: make([]Range, len(sets))}
	var active []int
	var total, weighted float64
	points := endpoints(sets)
	for i, p := range points {
		if i > 0 {
			size := 0.0
			for _, s := range active {
				size += float64(sets[s].Bytes) * share(&sets[s], points[i-1].key, p.key)
			}
			total += size
			weighted += size * float64(len(active))
		}
		if p.start {
			l.Ranges[p.set].Start = total
			active = append(active, p.set)
		} else {
			l.Ranges[p.set].End = total
			active = remove(active, p.set)
		}
	}
	if total == 0 {
		return Layout{Ranges: make([]Range, len(sets))}
	}
	for i := range l.Ranges {
		l.Ranges[i].Start /= total
		l.Ranges[i].End /= total
	}
	l.AverageHeight = weighted / total
	return l
}

// endpoints returns the first and last keys in order; for a rowset of one key the
// start comes first.
func endpoints(sets []RowSet) []endpoint {
	points := make([]endpoint, 0, 2*len(sets))
	for i := range sets {
		points = append(points, endpoint{sets[i].Min, i, true}, endpoint{sets[i].Max, i, false})
	}
	sort.SliceStable(points, func(i, j int) bool {
		a, b := points[i], points[j]
		if c := bytes.Compare(a.key, b.key); c != 0 {
			return c < 0
		}
		return a.set == b.set && a.start && !b.start
	})
	return points
}

func remove(sets []int, set int) []int {
	for i, s := range sets {
		if s == set {
			return append(sets[:i], sets[i+1:]...)
		}
	}
	return sets
}

// share estimates the part of the rowset's data between keys p and q, both within
// its range, by interpolating the first eight bytes after its common prefix.
func share(s *RowSet, p, q []byte) float64 {
	n := 0
	for n < len(s.Min) && n < len(s.Max) && s.Min[n] == s.Max[n] {
		n++
	}
	lo, hi := number(s.Min, n), number(s.Max, n)
	if lo == hi {
		return 0
	}
	return float64(number(q, n)-number(p, n)) / float64(hi-lo)
}

// number is bytes [n, n+8) of a key as a big-endian integer, zero-padded.
func number(key []byte, n int) uint64 {
	var b [8]byte
	if n < len(key) {
		copy(b[:], key[n:])
	}
	return binary.BigEndian.Uint64(b[:])
}
