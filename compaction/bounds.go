package compaction

import "slices"

// edge is a left edge of plans and the most that a plan from there can reach.
type edge struct{ left, upper float64 }

// approximate finds a good plan and, for every left edge, a bound of the best one. A
// plan's left edge is the start of one of its rowsets; the candidates are considered
// by their end, so that the range they cover grows as slowly as can be.
func (s *search) approximate() []edge {
	var edges []edge
	b := newBounds(s)
	for _, left := range s.lefts {
		b.reset()
		e := edge{left: left}
		s.window(left, func(c int, union float64) {
			if !b.add(c) {
				return // the same values over a larger range
			}
			lower, upper := b.limits()
			e.upper = max(e.upper, quality(upper, union))
			if q := quality(lower, union); q > s.best.quality {
				s.best = solution{b.lower(lower), lower, union, q}
			}
		})
		edges = append(edges, e)
	}
	return edges
}

// bounds keeps the fractional solution of the knapsack problem while candidates are
// added: the densest ones, and one that fits in part. The values of both the best whole
// solution and this one lie between its limits (Dantzig 1957).
type bounds struct {
	candidates []candidate
	budget     int64
	heap       []int // candidates, the least dense on top
	weight     int64
	value      float64
}

func newBounds(s *search) *bounds { return &bounds{candidates: s.candidates, budget: s.budget} }

func (b *bounds) reset() { b.heap, b.weight, b.value = b.heap[:0], 0, 0 }

// add reports whether the candidate changed the solution.
func (b *bounds) add(c int) bool {
	item := &b.candidates[c]
	if b.weight >= b.budget && item.density <= b.candidates[b.heap[0]].density {
		return false
	}
	b.push(c)
	b.weight += item.weight
	b.value += item.value
	for {
		top := &b.candidates[b.heap[0]]
		if b.weight-top.weight <= b.budget {
			return true
		}
		b.weight -= top.weight
		b.value -= top.value
		b.pop()
	}
}

// limits returns bounds of the value of the best whole solution; a solution that has
// the lower one is known.
func (b *bounds) limits() (lower, upper float64) {
	excess := b.weight - b.budget
	if excess <= 0 {
		return b.value, b.value
	}
	top := &b.candidates[b.heap[0]]
	return max(b.value-top.value, top.value), b.value - float64(excess)*top.density
}

// lower returns the solution of the lower limit.
func (b *bounds) lower(value float64) []int {
	switch {
	case b.weight <= b.budget:
		return slices.Clone(b.heap)
	case value == b.candidates[b.heap[0]].value:
		return []int{b.heap[0]}
	}
	return slices.Clone(b.heap[1:])
}

// less orders candidates in the heap.
func (b *bounds) less(i, j int) bool {
	x, y := b.heap[i], b.heap[j]
	if d, e := b.candidates[x].density, b.candidates[y].density; d != e {
		return d < e
	}
	return x < y
}

func (b *bounds) push(c int) {
	b.heap = append(b.heap, c)
	for i := len(b.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !b.less(i, up) {
			return
		}
		b.heap[i], b.heap[up] = b.heap[up], b.heap[i]
		i = up
	}
}

func (b *bounds) pop() {
	n := len(b.heap) - 1
	b.heap[0] = b.heap[n]
	b.heap = b.heap[:n]
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < n && b.less(down, least) {
				least = down
			}
		}
		if least == i {
			return
		}
		b.heap[i], b.heap[least] = b.heap[least], b.heap[i]
		i = least
	}
}
