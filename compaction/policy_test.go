package compaction

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// sized gives all rowsets the same size.
func sized(bytes int64, sets []RowSet) []RowSet {
	for i := range sets {
		sets[i].Bytes = bytes
	}
	return sets
}

// stretch returns n rowsets of 1,000,000 bytes, number i from key i*step on.
func stretch(n, step, length int) []RowSet {
	var sets []RowSet
	for i := range n {
		sets = append(sets, RowSet{Min: fmt.Appendf(nil, "%09d", i*step), Max: fmt.Appendf(nil, "%09d", i*step+length)})
	}
	return sized(1e6, sets)
}

// options returns the default ones with a budget in MiB.
func options(budget int64) Options {
	o := DefaultOptions(32 * mib)
	o.Budget = budget * mib
	return o
}

func expect(t *testing.T, p Plan, rowsets []int, quality float64) {
	t.Helper()
	slices.Sort(p.Rowsets)
	if !slices.Equal(p.Rowsets, rowsets) || math.Abs(p.Quality-quality) > 1e-4 {
		t.Errorf("picked %v with quality %.4f, want %v with %.4f", p.Rowsets, p.Quality, rowsets, quality)
	}
}

func TestItem96Selection(t *testing.T) {
	pick := func(sets []RowSet, budget int64) Plan {
		o := options(budget)
		o.SmallRowSets = 0
		return Pick(sets, o)
	}
	expect(t, pick(sized(1e6, rowsets("C-c,B-a,A-b")), 1000), []int{0, 1, 2}, 1.9146)
	expect(t, pick(stretch(100, 10000, 9999), 128), nil, 0)
	expect(t, pick(stretch(100, 10000, 11000), 128), nil, 0)
	p := pick(stretch(100, 10000, 20000), 64)
	if len(p.Rowsets) != 64 || math.Abs(p.Quality-0.6331) > 1e-4 {
		t.Errorf("%d rowsets with quality %v", len(p.Rowsets), p.Quality)
	}
}

func TestItem97SmallRowSets(t *testing.T) {
	const target = 32 * mib
	o := DefaultOptions(target)
	expect(t, Pick(sized(target*9/10, rowsets("A-B,A-B,B-C")), o), []int{0, 1}, 0.6665)
	expect(t, Pick(sized(target*3/10, rowsets("A-B,A-B,B-C")), o), []int{0, 1, 2}, 0.6826)
	last := math.Inf(1)
	for _, part := range []int64{32, 16, 8, 4} {
		p := Pick(sized(target/part, rowsets("A-B,C-D")), o)
		if len(p.Rowsets) != 2 || p.Quality > last {
			t.Errorf("two of target/%d: %v", part, p)
		}
		last = p.Quality
	}
	expect(t, Pick(sized(target/2, rowsets("A-B,C-D")), o), nil, 0)
	expect(t, Pick(sized(target, rowsets("A-B,C-D")), o), nil, 0)
	expect(t, Pick(sized(target/3, rowsets("A-B,C-D,E-F")), o), []int{0, 1, 2}, 0.015)
}

func TestItem98NearlyFullRowSetsAreLeftAlone(t *testing.T) {
	const target = 32 * mib
	for n := 1; n <= 100; n++ {
		sets := sized(target-target/99, stretch(n, 100, 99))
		if p := Pick(sets, DefaultOptions(target)); p.Rowsets != nil {
			t.Fatalf("%d rowsets: %v", n, p)
		}
		if p := Pick(sets, options(100*32)); p.Rowsets != nil {
			t.Fatalf("%d rowsets, large budget: %v", n, p)
		}
	}
}

func TestItem98OverlapGoesBeforeSize(t *testing.T) {
	sets := sized(8*mib, rowsets("A-B,A-B,C-D,E-F,G-H,I-J"))
	sets[0].Bytes, sets[1].Bytes = 32*mib, 32*mib
	if p := Pick(sets, options(64)); !slices.Equal(p.Rowsets, []int{0, 1}) {
		t.Errorf("picked %v", p)
	}
	sets = stretch(100, 100, 99)
	sets = sized(64*mib, append(sets, sets[40]))
	if p := Pick(sets, options(128)); !slices.Equal(p.Rowsets, []int{40, 100}) || p.Quality <= 0 {
		t.Errorf("picked %v", p)
	}
}

func TestItem99LargeSizes(t *testing.T) {
	sets := rowsets("C-c,B-a,A-b")
	for i := range sets {
		sets[i].Bytes = 1 << (31 + i)
	}
	o := DefaultOptions(1 << 34)
	o.Budget = 1 << 50
	if p := Pick(sets, o); len(p.Rowsets) != 3 || p.Quality <= 1 || p.Quality >= 2 {
		t.Errorf("picked %v", p)
	}
	o.Budget = math.MaxInt64
	if p := Pick(sets, o); len(p.Rowsets) != 3 {
		t.Errorf("unlimited: picked %v", p)
	}
}

func TestItem101OptionsAreValidated(t *testing.T) {
	change := func(f func(o *Options)) error {
		o := DefaultOptions(32 * mib)
		f(&o)
		return o.Validate()
	}
	if err := change(func(*Options) {}); err != nil {
		t.Error(err)
	}
	for name, f := range map[string]func(*Options){
		"small rowsets at the minimum":  func(o *Options) { o.SmallRowSets = o.Minimum },
		"small rowsets above":           func(o *Options) { o.SmallRowSets = 0.02 },
		"small rowsets not a number":    func(o *Options) { o.SmallRowSets = math.NaN() },
		"target 0":                      func(o *Options) { o.Target = 0 },
		"budget 0":                      func(o *Options) { o.Budget = 0 },
		"ratio":                         func(o *Options) { o.Ratio = 0.9 },
		"minimum within the adjustment": func(o *Options) { o.Minimum, o.SmallRowSets = 0.002, 0 },
	} {
		if change(f) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestItem101LockedRowSetsAreNotCandidates(t *testing.T) {
	sets := sized(mib, rowsets("A-C,A-C,A-C"))
	sets[1].Locked = true
	if p := Pick(sets, options(256)); !slices.Equal(p.Rowsets, []int{0, 2}) {
		t.Errorf("picked %v", p)
	}
	sets[0].Locked = true
	expect(t, Pick(sets, options(256)), nil, 0)
}

func TestItem101OneCandidateIsNothing(t *testing.T) {
	for _, size := range []int64{0, 1, mib, 32 * mib, 1 << 40} {
		expect(t, Pick(sized(size, rowsets("A-B")), options(256)), nil, 0)
	}
	expect(t, Pick(nil, options(256)), nil, 0)
}

func TestItem102Split(t *testing.T) {
	sets := rowsets("0-9,2-5,5-6")
	sets[0].Bytes, sets[1].Bytes, sets[2].Bytes = 9000, 3000, 1000
	for _, c := range []struct {
		start, end string
		target     int64
		want       string
	}{
		{"", "", 3000, "[-2)2000 [2-5)6000 [5-6)2000 [6-)3000 "},
		{"", "", 20000, "[-)13000 "},
		{"1", "4", 2000, "[1-2)1000 [2-4)4000 "},
		{"a", "b", 2000, "[a-b)0 "},
	} {
		var start, end []byte
		if c.start != "" {
			start, end = []byte(c.start), []byte(c.end)
		}
		got := ""
		for _, k := range Split(sets, start, end, c.target) {
			got += fmt.Sprintf("[%s-%s)%d ", k.Start, k.End, k.Bytes)
		}
		if got != c.want {
			t.Errorf("split %q to %q at %d: %s, want %s", c.start, c.end, c.target, got, c.want)
		}
	}
	if got := Split(nil, nil, nil, 1); len(got) != 1 || got[0].Start != nil || got[0].End != nil {
		t.Errorf("split of nothing: %v", got)
	}
}

func TestSmallTargetsAreWeighedFinely(t *testing.T) {
	o := DefaultOptions(64 << 10)
	sets := sized(60<<10, rowsets("A-C,A-C,A-C,A-C,A-C,A-C,A-C,A-C,A-C,A-C"))
	p := Pick(sets, o)
	if len(p.Rowsets) != 8 || p.Bytes > o.Budget {
		t.Errorf("picked %v", p)
	}
}

func TestWasteIsWorthRewritingAlone(t *testing.T) {
	sets := sized(32*mib, rowsets("A-B,C-D,E-F"))
	sets[1].Reclaimable = 32 * mib * 19 / 100
	expect(t, Pick(sets, options(256)), nil, 0)
	sets[1].Reclaimable = 32*mib/5 + 1
	p := Pick(sets, options(256))
	if !slices.Equal(p.Rowsets, []int{1}) || p.Reclaimable != sets[1].Reclaimable {
		t.Errorf("picked %v", p)
	}
	one := sets[1:2]
	if p := Pick(one, options(256)); len(p.Rowsets) != 1 {
		t.Errorf("only rowset of a tablet: %v", p)
	}
	one[0].Bytes = 1 << 40
	one[0].Reclaimable = 1 << 40
	if p := Pick(one, options(256)); len(p.Rowsets) != 1 {
		t.Errorf("heavier than the budget: %v", p)
	}
	one[0].Locked = true
	expect(t, Pick(one, options(256)), nil, 0)
}

func TestWasteGoesBeforeEqualOverlap(t *testing.T) {
	sets := sized(32*mib, rowsets("A-C,A-C,D-F,D-F"))
	sets[3].Reclaimable = 20 * mib
	if p := Pick(sets, options(64)); !slices.Equal(p.Rowsets, []int{2, 3}) {
		t.Errorf("picked %v", p)
	}
}

func TestWaste(t *testing.T) {
	for _, c := range []struct {
		w    Waste
		want int64
	}{
		{Waste{}, 0},
		{Waste{Base: 1000}, 0},
		{Waste{Rows: 10, Dead: 3, Base: 1000, History: 20, Unused: 1}, 321},
		{Waste{Rows: 10, Dead: 11, Base: 1000}, 1000},
		{Waste{Rows: 1 << 40, Dead: 1 << 39, Base: 1 << 50}, 1 << 49},
	} {
		if got := c.w.Reclaimable(); got != c.want {
			t.Errorf("%+v: %d", c.w, got)
		}
	}
}

// TestGainBySizeNeedsFewerRowSets: outputs that reach nine tenths of the target are
// left alone even where the budget holds enough of them to add up.
func TestGainBySizeNeedsFewerRowSets(t *testing.T) {
	const target = 32 * mib
	sets := sized(target*95/100, stretch(100, 100, 99))
	if p := Pick(sets, options(100*32)); p.Rowsets != nil {
		t.Errorf("picked %d rowsets with quality %v", len(p.Rowsets), p.Quality)
	}
	sets = sized(target/2, stretch(100, 100, 99))
	if p := Pick(sets, options(100*32)); len(p.Rowsets) < 2 {
		t.Errorf("picked %v of half-full rowsets", p)
	}
}

// TestSmallBudget: a plan within a budget far below the target names rowsets of about
// that many bytes, and one of a byte nothing but waste.
func TestSmallBudget(t *testing.T) {
	o := DefaultOptions(32 << 20)
	sets := make([]RowSet, 20)
	for i := range sets {
		sets[i] = RowSet{Bytes: 1000, Min: []byte("a"), Max: []byte("z")}
	}
	sets[7].Bytes = 20 << 20
	o.Budget = 8000
	if p := Pick(sets, o); len(p.Rowsets) < 7 || p.Bytes > 9000 {
		t.Errorf("%d rowsets of %d bytes", len(p.Rowsets), p.Bytes)
	}
	o.Budget = 1
	if p := Pick(sets, o); len(p.Rowsets) != 0 {
		t.Errorf("%d rowsets of %d bytes", len(p.Rowsets), p.Bytes)
	}
	sets[7].Reclaimable = 5 << 20
	if p := Pick(sets, o); len(p.Rowsets) != 1 || p.Rowsets[0] != 7 {
		t.Errorf("waste: %+v", p)
	}
}
