package compaction

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawSets draws rowsets of a few MiB over a small key space.
func drawSets(t *rapid.T, least, most int) []RowSet {
	key := rapid.SliceOfN(rapid.ByteRange('A', 'D'), 1, 3)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) RowSet {
		r := RowSet{
			Bytes: rapid.Int64Range(0, 40).Draw(t, "MiB")*mib + rapid.Int64Range(0, 999).Draw(t, "bytes"),
			Min:   key.Draw(t, "min"),
			Max:   key.Draw(t, "max"),
		}
		if bytes.Compare(r.Min, r.Max) > 0 {
			r.Min, r.Max = r.Max, r.Min
		}
		r.Disk = r.Bytes + rapid.Int64Range(0, mib).Draw(t, "indexes")
		r.Reclaimable = r.Disk / 10 * rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 5, 10}).Draw(t, "tenths of waste")
		r.Locked = rapid.IntRange(0, 5).Draw(t, "locked") == 0
		return r
	}), least, most).Draw(t, "sets")
}

// bestOf finds the best quality of all sets of candidates.
func bestOf(s *search) float64 {
	best := 0.0
	for picked := range uint(1) << len(s.candidates) {
		weight, sum, lo, hi := int64(0), 0.0, 1.0, 0.0
		for rest := picked; rest != 0; rest &= rest - 1 {
			c := &s.candidates[bits.TrailingZeros(rest)]
			weight += c.weight
			sum += c.value
			lo, hi = min(lo, c.Start), max(hi, c.End)
		}
		if picked != 0 && weight <= s.budget {
			best = max(best, quality(sum, hi-lo))
		}
	}
	return best
}

func TestPickIsAsGoodAsTheRatioSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sets := drawSets(t, 4, 9)
		o := options(rapid.Int64Range(1, 200).Draw(t, "budget"))
		o.Ratio = rapid.SampledFrom([]float64{1, 1.05, 1.5}).Draw(t, "ratio")
		s := newSearch(sets, &o)
		s.exact(s.approximate())
		if want := bestOf(s); want > o.Minimum*o.Ratio && s.best.quality < want/o.Ratio-1e-12 {
			t.Fatalf("quality %v, best is %v", s.best.quality, want)
		}
	})
}

func TestKnapsackIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "items")
		weights := rapid.SliceOfN(rapid.IntRange(1, 20), n, n).Draw(t, "weights")
		values := rapid.SliceOfN(rapid.IntRange(0, 20), n, n).Draw(t, "values")
		capacity := rapid.IntRange(1, 100).Draw(t, "capacity")
		sum := func(picked uint) (weight, value int) {
			for i := range n {
				if picked>>i&1 == 1 {
					weight += weights[i]
					value += values[i]
				}
			}
			return weight, value
		}
		best := 0
		for picked := range uint(1) << n {
			if weight, value := sum(picked); weight <= capacity {
				best = max(best, value)
			}
		}
		var k knapsack
		k.reset(n, capacity)
		got := 0.0
		for i := range n {
			got = k.add(weights[i], float64(values[i]))
		}
		picked, room := uint(0), capacity
		for i := n - 1; i >= 0; i-- {
			if k.taken(i, room) {
				picked |= 1 << i
				room -= weights[i]
			}
		}
		weight, value := sum(picked)
		if got != float64(best) || value != best || weight > capacity {
			t.Fatalf("value %v, traced %d of weight %d, best is %d within %d", got, value, weight, best, capacity)
		}
	})
}

// TestExactSearchIsRun finds inputs on which the first pass is not good enough.
func TestExactSearchIsRun(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	improved := 0
	for range 200 {
		var sets []RowSet
		for range 10 {
			lo, hi := r.IntN(100), r.IntN(100)
			sets = append(sets, RowSet{Bytes: int64(1+r.IntN(40)) * mib, Min: []byte{byte(min(lo, hi))}, Max: []byte{byte(max(lo, hi))}})
		}
		o := options(64)
		o.Ratio = 1
		s := newSearch(sets, &o)
		s.approximate()
		p := Pick(sets, o)
		if p.Bytes > o.Budget || p.Quality < s.best.quality {
			t.Fatalf("picked %+v, first pass %+v", p, s.best)
		}
		if p.Quality > s.best.quality {
			improved++
			if want := bestOf(s); p.Quality < want-1e-12 {
				t.Fatalf("quality %v, best is %v", p.Quality, want)
			}
		}
	}
	if improved == 0 {
		t.Fatal("the exact search never improved the first pass")
	}
}

func TestBoundsOfAHeavyItem(t *testing.T) {
	b := &bounds{candidates: []candidate{{value: 1, density: 1, weight: 1}, {value: 10, density: 0.1, weight: 100}}, budget: 100}
	b.add(0)
	b.add(1)
	lower, upper := b.limits()
	if lower != 10 || math.Abs(upper-10.9) > 1e-12 || !slices.Equal(b.lower(lower), []int{1}) {
		t.Errorf("lower %v by %v, upper %v", lower, b.lower(lower), upper)
	}
}

func TestPlansAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sets := drawSets(t, 2, 40)
		o := options(rapid.Int64Range(1, 200).Draw(t, "budget"))
		o.Ratio = rapid.SampledFrom([]float64{1, 1.05}).Draw(t, "ratio")
		p := Pick(sets, o)
		if p.Rowsets == nil {
			if p.Quality != 0 || p.Bytes != 0 {
				t.Fatalf("nothing picked: %+v", p)
			}
			return
		}
		layout := Place(sets)
		weight, sum := int64(0), 0.0
		s := newSearch(sets, &o)
		for i, set := range p.Rowsets {
			if sets[set].Locked || slices.Contains(p.Rowsets[:i], set) {
				t.Fatalf("rowset %d of %v", set, p.Rowsets)
			}
			c := s.candidate(set, layout.Ranges[set])
			weight += c.weight
			sum += c.value
		}
		if weight > s.budget || sum < p.Sum-1e-9 || sum > p.Sum+1e-9 {
			t.Fatalf("weight %d of %d, sum %v, plan %+v", weight, s.budget, sum, p)
		}
		if p.Quality <= o.Minimum || p.Quality != quality(p.Sum, p.Union) {
			t.Fatalf("plan %+v", p)
		}
	})
}

func TestWidthsSumUpToTheHeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Place(drawSets(t, 2, 40))
		sum := 0.0
		for _, r := range l.Ranges {
			if r.Start < 0 || r.Start > r.End || r.End > 1+1e-9 {
				t.Fatalf("range %v", r)
			}
			sum += r.Width()
		}
		if sum < l.AverageHeight-1e-9 || sum > l.AverageHeight+1e-9 {
			t.Fatalf("widths sum up to %v, height is %v", sum, l.AverageHeight)
		}
	})
}

func TestSplitLeavesNoGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sets := drawSets(t, 0, 20)
		target := rapid.Int64Range(1, 100*mib).Draw(t, "target")
		whole := Split(sets, nil, nil, 1<<62)
		chunks := Split(sets, nil, nil, target)
		total, last := int64(0), []byte(nil)
		for i, c := range chunks {
			if !bytes.Equal(c.Start, last) || i > 0 && (c.Start == nil || c.End != nil && bytes.Compare(c.Start, c.End) >= 0) {
				t.Fatalf("chunk %d of %v", i, chunks)
			}
			total, last = total+c.Bytes, c.End
		}
		if last != nil || len(whole) != 1 || total < whole[0].Bytes-40 || total > whole[0].Bytes+40 {
			t.Fatalf("chunks of %d bytes of %d, end %q", total, whole[0].Bytes, last)
		}
	})
}

// TestMergingEnds merges what is picked until nothing is, with outputs that miss the
// target by up to a tenth.
func TestMergingEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sets := drawSets(t, 4, 25)
		for i := range sets {
			sets[i].Locked = false
		}
		o := options(rapid.Int64Range(32, 1000).Draw(t, "budget"))
		target := o.Target * rapid.Int64Range(90, 100).Draw(t, "fill") / 100
		for round := 0; ; round++ {
			p := Pick(sets, o)
			if p.Rowsets == nil {
				return
			}
			if round > 100 {
				t.Fatalf("still picks %+v of %d rowsets", p, len(sets))
			}
			sets = rewrite(sets, p, target)
		}
	})
}

// rewrite replaces what the plan names by outputs without waste that share the inputs'
// range evenly.
func rewrite(sets []RowSet, p Plan, target int64) []RowSet {
	var rest []RowSet
	lo, hi := sets[p.Rowsets[0]].Min, sets[p.Rowsets[0]].Max
	for i := range sets {
		if !slices.Contains(p.Rowsets, i) {
			rest = append(rest, sets[i])
		} else if bytes.Compare(sets[i].Max, hi) > 0 {
			hi = sets[i].Max
		}
	}
	live := max(1, p.Bytes-p.Reclaimable)
	n := int((live + target - 1) / target)
	cut := func(i int) []byte { // key i of n+1 between lo and hi
		a, b := number(lo, 0)>>32, number(hi, 0)>>32
		return binary.BigEndian.AppendUint32(nil, uint32(a+(b-a)*uint64(i)/uint64(n)))
	}
	for i := range n {
		size := min(target, live-int64(i)*target)
		rest = append(rest, RowSet{Bytes: size, Disk: size, Min: cut(i), Max: cut(i + 1)})
	}
	return rest
}
