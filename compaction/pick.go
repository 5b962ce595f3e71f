package compaction

import (
	"cmp"
	"math"
	"slices"
)

// Plan names rowsets to merge in one step. The zero plan names none.
type Plan struct {
	Rowsets     []int   // indexes into the rowsets given, in key order
	Bytes       int64   // of their data
	Reclaimable int64   // bytes that the merge frees
	Sum         float64 // of the rowsets' values
	Union       float64 // share of the tablet's data in the key range that was considered
	Quality     float64 // what the average height falls by, and small rowsets and waste as much
}

const (
	// supportAdjust makes a plan pay for its range, so that wide ones must gain more.
	supportAdjust = 1.003
	// fill is how full outputs are at least, as a share of the target.
	fill = 0.9
)

// Pick returns the plan of the best quality within the budget, or the zero plan if none
// exceeds the minimum. The quality is that of the best plan there is, divided by
// Options.Ratio at most, unless the exact search would take too long; see
// exactCells. The options must be valid.
func Pick(sets []RowSet, o Options) Plan {
	s := newSearch(sets, &o)
	if s.potential <= o.Minimum {
		return Plan{}
	}
	edges := s.approximate()
	s.exact(edges)
	if s.best.quality <= o.Minimum {
		return Plan{}
	}
	if !s.progresses() {
		return Plan{}
	}
	return s.plan()
}

// candidate is a rowset that may be picked.
type candidate struct {
	Range
	value, density float64
	weight         int64 // of data, in units
	set            int
}

// solution is a set of candidates.
type solution struct {
	picked              []int // indexes of candidates
	sum, union, quality float64
}

// search is one run of the policy.
type search struct {
	sets       []RowSet
	opts       *Options
	candidates []candidate // by end
	lefts      []float64   // their starts, ascending
	budget     int64       // in units of weight
	potential  float64     // no plan's values sum up to more
	best       solution
}

func newSearch(sets []RowSet, o *Options) *search {
	s := &search{sets: sets, opts: o, budget: weigh(o.Budget, o.unit(), math.MaxInt32)}
	layout := Place(sets)
	for _, i := range keyOrder(sets) {
		if !sets[i].Locked {
			s.candidates = append(s.candidates, s.candidate(i, layout.Ranges[i]))
		}
	}
	slices.SortStableFunc(s.candidates, func(a, b candidate) int { return cmp.Compare(a.End, b.End) })
	for i := range s.candidates {
		s.lefts = append(s.lefts, s.candidates[i].Start)
	}
	slices.Sort(s.lefts)
	s.lefts = slices.Compact(s.lefts)
	all := newBounds(s)
	for i := range s.candidates {
		all.add(i)
	}
	_, s.potential = all.limits()
	return s
}

func (s *search) candidate(i int, r Range) candidate {
	set := &s.sets[i]
	small := max(0, 1-float64(set.disk())/float64(s.opts.Target))
	c := candidate{
		Range:  r,
		value:  r.Width() + s.opts.SmallRowSets*small + s.opts.wasteValue(set),
		weight: weigh(set.Bytes, s.opts.unit(), s.budget),
		set:    i,
	}
	c.density = c.value / float64(c.weight)
	return c
}

// weigh returns whole units of the bytes, at least 1 and at most the limit: what is
// heavier than the budget fills it alone.
func weigh(bytes, unit, limit int64) int64 {
	return max(1, min(bytes/unit, limit))
}

// quality is what rowsets of these values gain if the outputs cover the union.
func quality(sum, union float64) float64 {
	if sum <= union {
		return sum - union
	}
	return sum - supportAdjust*union
}

// floor is the quality that is worth looking for.
func (s *search) floor() float64 { return max(s.best.quality, s.opts.Minimum) }

// window calls f for the candidates that start at or after left, by end, with the
// range that they and the ones before cover, while a better plan may be found.
func (s *search) window(left float64, f func(c int, union float64)) {
	first, _ := slices.BinarySearchFunc(s.candidates, left, func(c candidate, left float64) int { return cmp.Compare(c.End, left) })
	for i := first; i < len(s.candidates); i++ {
		c := &s.candidates[i]
		union := c.End - left
		if s.potential-union <= s.floor() {
			return
		}
		if c.Start >= left {
			f(i, union)
		}
	}
}

// progresses reports whether the best plan satisfies invariant 3: whether it counts on
// waste, or the outputs, which may be small again, are worth less than the inputs.
func (s *search) progresses() bool {
	gain, live := -s.best.union, 0.0
	for _, i := range s.best.picked {
		c := &s.candidates[i]
		set := &s.sets[c.set]
		if s.opts.wasteValue(set) > 0 {
			return true
		}
		gain += c.value
		live += float64(set.disk()-set.Reclaimable) / float64(s.opts.Target)
	}
	small := math.Ceil(live/fill) - live // the sum of the outputs' shortfalls
	return gain-s.opts.SmallRowSets*small > s.opts.Minimum/10
}

func (s *search) plan() Plan {
	p := Plan{Sum: s.best.sum, Union: s.best.union, Quality: s.best.quality}
	for _, i := range s.best.picked {
		set := s.candidates[i].set
		p.Rowsets = append(p.Rowsets, set)
		p.Bytes += s.sets[set].Bytes
		p.Reclaimable += s.sets[set].Reclaimable
	}
	slices.SortFunc(p.Rowsets, func(a, b int) int {
		return cmp.Or(s.sets[a].compare(&s.sets[b]), cmp.Compare(a, b))
	})
	return p
}

// Debt returns what plans lower: the sum of all rowsets' widths and of their values of
// small size and waste. Whoever executes one plan after the other stops where it did
// not fall by a tenth of the minimum, because outputs that fall short of nine tenths of
// the target would be picked for ever.
func Debt(sets []RowSet, o Options) (debt float64) {
	for _, c := range newSearch(sets, &o).candidates {
		debt += c.value
	}
	return debt
}
