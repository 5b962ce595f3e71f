package delta

import (
	"math/bits"
	"sync/atomic"

	"github.com/minikudu/minikudu/internal/rowset"
)

// heads maps rows to their newest nodes. Rows stand in groups of 64. A group in which few
// rows changed is a bit for each row and the heads of those that are set, in order; one more
// row makes a copy. From fullGroup rows on it has a place for every row. So a row costs 5 to
// 20 bytes wherever it lies, the rows of a range are found in order, and readers take no
// lock: what an index leads to changes by single words only.
type heads struct {
	parts list[*part] // by row / partRows; nil where no row changed
	words list[*[wordChunk]atomic.Uint32]
	used  uint32 // words; of the publisher alone, as is bytes
	bytes int64
}

const (
	groupRows  = 64
	partGroups = 1024
	partRows   = groupRows * partGroups
	fullGroup  = 9       // rows from which on a group has a place for every row
	wordChunk  = 1 << 10 // words are kept in chunks of this many
	fullBit    = 1 << 31 // of an index: the group has a place for every row
)

// part is the indexes of the first words of 1024 groups, plus 1; 0 where no row changed.
type part [partGroups]atomic.Uint32

// rows returns a number above that of any row that changed.
func (h *heads) rows() int { return len(h.parts.load()) * partRows }

// group returns the index of a group, 0 for none.
func (h *heads) group(g int) uint32 {
	if parts := h.parts.load(); g/partGroups < len(parts) && parts[g/partGroups] != nil {
		return parts[g/partGroups][g%partGroups].Load()
	}
	return 0
}

// at returns n words from an index on; they lie in one chunk.
func (h *heads) at(x uint32, n int) []atomic.Uint32 {
	i := int(x&^fullBit) - 1
	c := h.words.load()[i/wordChunk]
	return c[i%wordChunk : i%wordChunk+n]
}

// sparse returns the bits and the heads of a group that has few.
func (h *heads) sparse(x uint32) (set uint64, all []atomic.Uint32) {
	b := h.at(x, 2)
	set = uint64(b[0].Load()) | uint64(b[1].Load())<<32
	return set, h.at(x, 2+bits.OnesCount64(set))[2:]
}

// of returns the newest node of a row, 0 when there is none.
func (h *heads) of(row rowset.RowID) uint32 {
	x, k := h.group(int(row/groupRows)), int(row%groupRows)
	switch {
	case x == 0:
		return 0
	case x&fullBit != 0:
		return h.at(x, groupRows)[k].Load()
	}
	set, all := h.sparse(x)
	if set>>k&1 == 0 {
		return 0
	}
	return all[bits.OnesCount64(set&(1<<k-1))].Load()
}

// publish makes node n the head of a row.
func (h *heads) publish(row rowset.RowID, n uint32) {
	g, k := int(row/groupRows), int(row%groupRows)
	x := h.group(g)
	if x&fullBit != 0 {
		h.at(x, groupRows)[k].Store(n)
		return
	}
	var set uint64
	var all []atomic.Uint32
	if x != 0 {
		if set, all = h.sparse(x); set>>k&1 == 1 {
			all[bits.OnesCount64(set&(1<<k-1))].Store(n)
			return
		}
	}
	if len(all)+1 < fullGroup {
		x = h.grown(set, all, k, n)
	} else {
		x = h.full(set, all, k, n)
	}
	h.partOf(g)[g%partGroups].Store(x)
}

// grown makes a group of few rows with one more.
func (h *heads) grown(set uint64, all []atomic.Uint32, k int, n uint32) uint32 {
	x, w := h.take(3 + len(all))
	at := bits.OnesCount64(set & (1<<k - 1))
	set |= 1 << k
	w[0].Store(uint32(set))
	w[1].Store(uint32(set >> 32))
	for i := range all {
		to := 2 + i
		if i >= at {
			to++
		}
		w[to].Store(all[i].Load())
	}
	w[2+at].Store(n)
	return x
}

// full makes a group with a place for every row.
func (h *heads) full(set uint64, all []atomic.Uint32, k int, n uint32) uint32 {
	x, w := h.take(groupRows)
	for i := 0; set != 0; set &= set - 1 {
		w[bits.TrailingZeros64(set)].Store(all[i].Load())
		i++
	}
	w[k].Store(n)
	return x | fullBit
}

// take returns n fresh words, which lie in one chunk, and the index of the first.
func (h *heads) take(n int) (uint32, []atomic.Uint32) {
	chunks := h.words.load()
	if left := uint32(len(chunks))*wordChunk - h.used; uint32(n) > left {
		h.used = uint32(len(chunks)) * wordChunk
		h.words.store(append(chunks, new([wordChunk]atomic.Uint32))) // beyond what readers see of the array
		h.bytes += 4 * wordChunk
	}
	x := h.used + 1
	h.used += uint32(n)
	return x, h.at(x, n)
}

// partOf returns the part of a group.
func (h *heads) partOf(g int) *part {
	i, parts := g/partGroups, h.parts.load()
	if i < len(parts) && parts[i] != nil {
		return parts[i]
	}
	next := make([]*part, max(len(parts), i+1))
	copy(next, parts)
	next[i] = new(part)
	h.parts.store(next)
	h.bytes += 4 * partGroups
	return next[i]
}

// any reports whether a row may have changed in one of the groups that rows [from, to) lie
// in.
func (h *heads) any(from, to int) bool {
	parts := h.parts.load()
	last := min((to-1)/groupRows, len(parts)*partGroups-1)
	for g := from / groupRows; g <= last; g++ {
		p := parts[g/partGroups]
		if p == nil {
			g |= partGroups - 1 // to the part's last group
			continue
		}
		if p[g%partGroups].Load() != 0 {
			return true
		}
	}
	return false
}

// each calls f with every row of [from, to) that changed and its head, ascending, until it
// returns false.
func (h *heads) each(from, to int, f func(row int, head uint32) bool) {
	parts := h.parts.load()
	last := min((to-1)/groupRows, len(parts)*partGroups-1)
	for g := from / groupRows; g <= last; g++ {
		p := parts[g/partGroups]
		if p == nil {
			g |= partGroups - 1 // to the part's last group
			continue
		}
		if x := p[g%partGroups].Load(); x != 0 && !h.eachOf(x, g*groupRows, from, to, f) {
			return
		}
	}
}

// eachOf is each for one group, whose first row is given.
func (h *heads) eachOf(x uint32, first, from, to int, f func(row int, head uint32) bool) bool {
	if x&fullBit != 0 {
		w := h.at(x, groupRows)
		for k := max(0, from-first); k < min(groupRows, to-first); k++ {
			if n := w[k].Load(); n != 0 && !f(first+k, n) {
				return false
			}
		}
		return true
	}
	set, all := h.sparse(x)
	for i := 0; set != 0; set &= set - 1 {
		if row := first + bits.TrailingZeros64(set); row >= from && row < to && !f(row, all[i].Load()) {
			return false
		}
		i++
	}
	return true
}
