package compaction

import (
	"cmp"
	"slices"
)

// exactCells bounds the work of the exact search for one plan, in bits of its tables,
// to some tenths of a second and 32 MiB. Edges are searched from the most promising one
// on, so that what remains is not worth much. A tablet of some hundred rowsets and the
// usual budget is far below it.
const exactCells = 1 << 27

// exact searches for better plans from the edges that promise more than the ratio.
func (s *search) exact(edges []edge) {
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(b.upper, a.upper) })
	var k knapsack
	cells := int64(0)
	for _, e := range edges {
		if e.upper <= s.opts.Minimum || e.upper <= s.opts.Ratio*s.best.quality {
			return
		}
		var items []int
		weight := int64(0)
		s.window(e.left, func(c int, _ float64) {
			items = append(items, c)
			weight += s.candidates[c].weight
		})
		capacity := min(weight, s.budget)
		if cells += int64(len(items)+64) * capacity; cells > exactCells {
			return
		}
		s.solve(&k, e.left, items, int(capacity))
	}
}

// solve finds the best plan of items from the left edge on. It may be any run of the
// items from the first, because every further one costs a larger range.
func (s *search) solve(k *knapsack, left float64, items []int, capacity int) {
	k.reset(len(items), capacity)
	last := -1
	for i, c := range items {
		item := &s.candidates[c]
		sum := k.add(int(item.weight), item.value)
		union := item.End - left
		if q := quality(sum, union); q > s.best.quality {
			s.best = solution{sum: sum, union: union, quality: q}
			last = i
		}
	}
	if last < 0 {
		return
	}
	for room := capacity; last >= 0; last-- {
		if k.taken(last, room) {
			s.best.picked = append(s.best.picked, items[last])
			room -= int(s.candidates[items[last]].weight)
		}
	}
}

// knapsack solves the 0/1 knapsack problem by dynamic programming over weights, one
// item after the other.
type knapsack struct {
	capacity int
	values   []float64 // by capacity up to the whole one: the best sum of values
	took     []uint64  // a bit for each item and capacity: the best sum includes the item
	items    int
}

func (k *knapsack) reset(items, capacity int) {
	k.items, k.capacity = 0, capacity
	k.values = zeroed(k.values, capacity+1)
	k.took = zeroed(k.took, (items*(capacity+1)+63)/64)
}

func zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// add considers an item and returns the best sum of the items so far.
func (k *knapsack) add(weight int, value float64) float64 {
	row := k.items * (k.capacity + 1)
	for room := k.capacity; room >= weight; room-- {
		if v := k.values[room-weight] + value; v > k.values[room] {
			k.values[room] = v
			k.took[(row+room)/64] |= 1 << ((row + room) % 64)
		}
	}
	k.items++
	return k.values[k.capacity]
}

// taken reports whether the best solution of items 0 to item has this one, given room.
func (k *knapsack) taken(item, room int) bool {
	bit := item*(k.capacity+1) + room
	return k.took[bit/64]>>(bit%64)&1 == 1
}
