package compaction

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ycsb reads the rowsets of a large tablet after days of random inserts.
func ycsb(tb testing.TB) []RowSet {
	tb.Helper()
	text, err := os.ReadFile("testdata/ycsb-test-rowsets.tsv")
	if err != nil {
		tb.Fatal(err)
	}
	var sets []RowSet
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		size, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil || len(f) != 3 {
			tb.Fatalf("bad line %q", line)
		}
		sets = append(sets, RowSet{Bytes: size * mib, Min: []byte(f[1]), Max: []byte(f[2])})
	}
	if len(sets) != 6815 {
		tb.Fatalf("%d rowsets", len(sets))
	}
	return sets
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-4 }

var ycsbPlans = []struct {
	budget, count, total int64
	quality, sum, union  float64
}{
	{128, 10, 123, 0.173621, 0.203514, 0.029803},
	{256, 14, 251, 0.302312, 0.351537, 0.049078},
	{512, 22, 507, 0.570252, 0.654475, 0.083970},
	{1024, 38, 1019, 1.104295, 1.308404, 0.203499},
}

func ycsbOptions(budget int64) Options {
	o := DefaultOptions(32 * mib)
	o.Budget = budget * mib
	return o
}

func TestItem100YCSBLayout(t *testing.T) {
	l := Place(ycsb(t))
	if !near(l.AverageHeight, 40.439916) {
		t.Errorf("average height %v", l.AverageHeight)
	}
	var widths []float64
	sum := 0.0
	for _, r := range l.Ranges {
		widths = append(widths, r.Width())
		sum += r.Width()
	}
	slices.Sort(widths)
	if !near(sum, 40.439916) || !near(widths[0], 0.00000459) || !near(widths[len(widths)/2], 0.00602115) || !near(widths[len(widths)-1], 0.04653099) {
		t.Errorf("widths sum %v, min %v, median %v, max %v", sum, widths[0], widths[len(widths)/2], widths[len(widths)-1])
	}
}

func TestItem100YCSBPlans(t *testing.T) {
	sets := ycsb(t)
	last := 0.0
	for _, want := range ycsbPlans {
		if raceEnabled && want.budget > 256 {
			break // tens of seconds
		}
		begin := time.Now()
		p := Pick(sets, ycsbOptions(want.budget))
		if took := time.Since(begin); took > 20*time.Second && !testing.Short() {
			t.Errorf("budget %d: took %v", want.budget, took)
		}
		if int64(len(p.Rowsets)) != want.count || p.Bytes != want.total*mib {
			t.Errorf("budget %d: %d rowsets of %d MiB", want.budget, len(p.Rowsets), p.Bytes/mib)
		}
		if !near(p.Quality, want.quality) || !near(p.Sum, want.sum) || !near(p.Union, want.union) {
			t.Errorf("budget %d: quality %v, sum %v, union %v", want.budget, p.Quality, p.Sum, p.Union)
		}
		if p.Bytes > want.budget*mib || p.Quality < last {
			t.Errorf("budget %d: %d bytes, quality %v after %v", want.budget, p.Bytes, p.Quality, last)
		}
		last = p.Quality
	}
}

func TestItem100ExactSearchImprovesNothing(t *testing.T) {
	sets := ycsb(t)
	for _, want := range ycsbPlans[:2] {
		o := ycsbOptions(want.budget)
		o.Ratio = 1
		if p := Pick(sets, o); !near(p.Quality, want.quality) {
			t.Errorf("budget %d: quality %v", want.budget, p.Quality)
		}
	}
}

func TestItem100OrderOfRowSetsDoesNotMatter(t *testing.T) {
	sets := ycsb(t)
	names := func(sets []RowSet, p Plan) (keys []string) {
		for _, i := range p.Rowsets {
			keys = append(keys, string(sets[i].Min)+" "+string(sets[i].Max))
		}
		return keys
	}
	want := Pick(sets, ycsbOptions(128))
	wantNames := names(sets, want)
	r := rand.New(rand.NewPCG(1, 2))
	for range 2 {
		shuffled := slices.Clone(sets)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		got := Pick(shuffled, ycsbOptions(128))
		if got.Quality != want.Quality || got.Sum != want.Sum || got.Union != want.Union || !slices.Equal(names(shuffled, got), wantNames) {
			t.Errorf("%v after shuffling, %v before", got, want)
		}
	}
}

// merge replaces what the plan names by disjoint outputs of about the target size.
func merge(sets []RowSet, p Plan, target int64) []RowSet {
	inputs := make([]RowSet, 0, len(p.Rowsets))
	var rest []RowSet
	for i := range sets {
		if slices.Contains(p.Rowsets, i) {
			inputs = append(inputs, sets[i])
		} else {
			rest = append(rest, sets[i])
		}
	}
	lo, hi := inputs[0].Min, inputs[0].Max
	for _, in := range inputs {
		if bytes.Compare(in.Max, hi) > 0 {
			hi = in.Max
		}
	}
	for _, c := range Split(inputs, lo, nil, target) {
		out := RowSet{Bytes: c.Bytes, Min: c.Start, Max: c.End}
		if c.End == nil {
			out.Max = hi
		}
		rest = append(rest, out)
	}
	return rest
}

func TestMergingLowersTheHeightByTheQuality(t *testing.T) {
	sets := ycsb(t)
	o := ycsbOptions(128)
	height := Place(sets).AverageHeight
	for round := range 5 {
		p := Pick(sets, o)
		if p.Rowsets == nil {
			t.Fatalf("round %d: nothing picked at height %v", round, height)
		}
		overlap := p.Quality // without what merging small rowsets is worth besides
		for _, i := range p.Rowsets {
			overlap -= o.SmallRowSets * (1 - float64(sets[i].Bytes)/float64(o.Target))
		}
		sets = merge(sets, p, o.Target)
		now := Place(sets).AverageHeight
		if fell := height - now; math.Abs(fell-overlap) > 0.02*overlap {
			t.Errorf("round %d: height fell by %v, overlap was %v of quality %v", round, fell, overlap, p.Quality)
		}
		height = now
	}
}

func BenchmarkPickYCSB(b *testing.B) {
	sets := ycsb(b)
	for _, budget := range []int64{128, 256, 512, 1024} {
		b.Run(strconv.FormatInt(budget, 10), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Pick(sets, ycsbOptions(budget))
			}
		})
	}
}

func BenchmarkPlaceYCSB(b *testing.B) {
	sets := ycsb(b)
	b.ReportAllocs()
	for b.Loop() {
		Place(sets)
	}
}
