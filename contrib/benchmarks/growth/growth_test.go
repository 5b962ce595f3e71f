package main

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func TestPermutationIsABijection(t *testing.T) {
	for half := uint(1); half <= 8; half++ {
		for seed := range uint64(3) {
			p := newPermutation(half, seed)
			seen := make([]bool, p.size())
			for i := range p.size() {
				x := p.at(i)
				if x < 0 || x >= p.size() || seen[x] {
					t.Fatalf("half %d, seed %d: %d is out of range or comes twice", half, seed, x)
				}
				seen[x] = true
			}
		}
	}
}

// The order of keys is random: about half of them follow a smaller one, and two seeds
// give different orders.
func TestPermutationIsRandom(t *testing.T) {
	p, q := newPermutation(keyHalf, 1), newPermutation(keyHalf, 2)
	const n = 100_000
	ascending, same := 0, 0
	seen := map[int64]bool{}
	for i := range int64(n) {
		x := p.at(i)
		if x < 0 || x >= p.size() || seen[x] {
			t.Fatalf("%d is out of range or comes twice", x)
		}
		seen[x] = true
		if i > 0 && x > p.at(i-1) {
			ascending++
		}
		if x == q.at(i) {
			same++
		}
	}
	if math.Abs(float64(ascending)-n/2) > n/100 || same > 2 {
		t.Errorf("%d of %d follow a smaller one, %d are those of another seed", ascending, n, same)
	}
}

// texts returns a copy of a column as text, cell by cell.
func texts(v *vector.Vector) (out []string) {
	for i := range v.Len() {
		switch v.Kind() {
		case schema.KindInt64:
			out = append(out, strconv.FormatInt(v.Int64s()[i], 10))
		case schema.KindFloat64:
			out = append(out, strconv.FormatFloat(v.Float64s()[i], 'g', -1, 64))
		default:
			out = append(out, string(v.BytesAt(i)))
		}
	}
	return out
}

// Rows do not depend on where a batch begins, keys are unique, absent keys are absent, and
// the sums are those of the rows.
func TestRows(t *testing.T) {
	const n = 20_000
	for _, w := range workloads() {
		whole := w.columns(n)
		if err := w.batch(whole, 0, n); err != nil {
			t.Fatal(err)
		}
		for _, first := range []int64{0, 1, 777, n - 10} {
			part := w.columns(10)
			if err := w.batch(part, first, 10); err != nil {
				t.Fatal(err)
			}
			for k := range part {
				if !slices.Equal(texts(part[k]), texts(whole[k])[first:first+10]) {
					t.Errorf("%s: rows from %d on differ in column %d", w.Name, first, k)
				}
			}
		}
		row := make([]cell, len(w.Spec.Columns))
		key := func(i int64, absent bool) (text string) {
			for _, v := range w.key(i, absent, row) {
				switch v := v.(type) {
				case int64:
					text += " " + strconv.FormatInt(v, 10)
				case string:
					text += " " + v
				}
			}
			return text
		}
		keys := map[string]bool{}
		for i := range int64(n) {
			keys[key(i, false)] = true
		}
		if len(keys) != n {
			t.Errorf("%s: %d keys of %d rows", w.Name, len(keys), n)
		}
		for i := range int64(n) {
			if keys[key(i, true)] {
				t.Fatalf("%s: the absent key of row %d is there", w.Name, i)
			}
		}
		for k, got := range w.sums(n) {
			want := 0.0
			for c := range w.Spec.Columns {
				if w.Spec.Columns[c].Name != w.Sums[k] {
					continue
				}
				for i := range n {
					if whole[c].Kind() == schema.KindFloat64 {
						want += whole[c].Float64s()[i]
					} else {
						want += float64(whole[c].Int64s()[i])
					}
				}
			}
			if want == 0 || !same(got, want) {
				t.Errorf("%s: sum of %s is %v, not %v", w.Name, w.Sums[k], got, want)
			}
		}
	}
}

// Metrics stay in their range, and neighbours of a host are close.
func TestMetrics(t *testing.T) {
	w := cpu()
	before, row := make([]cell, 12), make([]cell, 12)
	for i := int64(cpuHosts); i < 200*cpuHosts; i += cpuHosts {
		w.row(i-cpuHosts, before)
		w.row(i, row)
		for m := 2; m < 12; m++ {
			if row[m].n < 0 || row[m].n > 100 || max(row[m].n-before[m].n, before[m].n-row[m].n) > 5 {
				t.Fatalf("metric %d goes from %d to %d", m-2, before[m].n, row[m].n)
			}
		}
	}
}

// About nearRows rows lie together.
func TestNear(t *testing.T) {
	for _, w := range workloads() {
		const n, step = 10 * nearRows, 1009
		near := 0
		for i := int64(0); i < n; i += step {
			if w.near(i, n) {
				near++
			}
		}
		if want := nearRows / step; near < want*4/5 || near > want*6/5 {
			t.Errorf("%s: %d rows in a sample that should hold %d", w.Name, near, want)
		}
	}
}

// here runs a phase in this process.
func here(t *testing.T) func(string, []string) error {
	limit := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(limit) })
	return func(phase string, args []string) error {
		s, _, err := parse(args, io.Discard)
		if err != nil {
			return err
		}
		return s.phase(phase)
	}
}

// content returns the rows of a store in order of their keys.
func content(t *testing.T, dir, table string) (out []string) {
	t.Helper()
	db, err := minikudu.Open(dir, &minikudu.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tab, err := db.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range tab.Scan(ctx, minikudu.Query{Order: minikudu.KeyOrder}) {
		if err != nil {
			t.Fatal(err)
		}
		columns := make([][]string, tab.Schema().Len())
		for k := range columns {
			columns[k] = texts(b.Column(k))
		}
		for i := range b.Len() {
			row := ""
			for k := range columns {
				row += columns[k][i] + " "
			}
			out = append(out, row)
		}
	}
	return out
}

// A run that is continued, also after a half-written result, holds the same rows as one
// that is not, and its results go on.
func TestRunAndContinue(t *testing.T) {
	for _, w := range workloads() {
		t.Run(w.Name, func(t *testing.T) {
			dir := t.TempDir()
			file := func(name string) string { return filepath.Join(dir, name) }
			start := func(name, rows string, more ...string) {
				t.Helper()
				args := append([]string{"-workload", w.Name, "-rows", rows, "-batch", "70", "-every", "500", "-seconds", "0.01", "-memory", "64MiB",
					"-dir", file(name), "-out", file(name + ".jsonl")}, more...)
				if err := run(args, here(t)); err != nil {
					t.Fatal(err)
				}
			}
			start("parts", "3000")
			torn, err := os.OpenFile(file("parts.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := torn.WriteString(`{"sample":{"rows":31`); err != nil {
				t.Fatal(err)
			}
			torn.Close()
			start("parts", "5000", "-use-existing")
			start("whole", "5000", "-profile", file("profiles"))
			for _, phase := range []string{"load", "read", "tight"} {
				if info, err := os.Stat(filepath.Join(file("profiles"), phase+".pprof")); err != nil || info.Size() == 0 {
					t.Errorf("profile of %s: %v", phase, err)
				}
			}
			if a, b := content(t, file("parts"), w.Name), content(t, file("whole"), w.Name); len(a) != 5000 || !slices.Equal(a, b) {
				t.Errorf("%d and %d rows, or others", len(a), len(b))
			}

			lines, err := readLines(file("parts.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			found := results(lines)
			if len(found) != 2 || found[0].rows() != 3000 || found[1].rows() != 5000 || found[1].run.Existing != 3000 {
				t.Fatalf("%d results", len(found))
			}
			if first, second := found[0].loaded, found[1].loaded; second.Written <= first.Written || second.Flushes <= first.Flushes {
				t.Errorf("bytes written %d, then %d; flushes %d, then %d", first.Written, second.Written, first.Flushes, second.Flushes)
			}
			rows, seconds := int64(0), 0.0
			for _, s := range found[1].samples {
				rows, seconds = rows+s.New, seconds+s.Took
				if s.Rows != rows || math.Abs(s.Seconds-seconds) > 1e-6 {
					t.Fatalf("sample of %d rows in %v s, but %d new ones in %v s", s.Rows, s.Seconds, rows, seconds)
				}
			}
			if len(found[1].opened) != 5 || found[1].reads.Uniform.Reads == 0 || found[1].reads.Absent.Reads == 0 || found[1].loaded.Columns == 0 {
				t.Errorf("reads %+v", found[1].reads)
			}
			testReport(t, file("report"), w, file("parts.jsonl"))
		})
	}
}

// testReport writes the report of a file with 3,000 and 5,000 rows.
func testReport(t *testing.T, out string, w *Workload, results string) {
	t.Helper()
	if err := run([]string{"report", "-out", out, "-fit", "3000", results}, nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, resultsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## " + w.Name + ", 64 MiB", "| 5 k | reads of any row / those of 3 k rows | at least 0.50 |",
		"Constants measured at 3 k rows", "| rows | 3 k | 5 k | 1 M | 10 M | 100 M | 1 G | 10 G |", "| rowsets, settled | 1.00 (1.00) |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), filepath.Dir(out)) {
		t.Error("the report names a directory of the machine")
	}
	for _, name := range []string{"rate.svg", "memory.png", "height.svg", "amplification.png"} {
		if info, err := os.Stat(filepath.Join(out, "scale-"+w.Name+"-"+name)); err != nil || info.Size() == 0 {
			t.Errorf("chart %s: %v", name, err)
		}
	}
}

// A store that holds other rows, and a directory or a file of something else, are refused.
func TestOthersAreRefused(t *testing.T) {
	dir := t.TempDir()
	w := narrow()
	args := func(more ...string) []string {
		return append([]string{"-rows", "100", "-dir", filepath.Join(dir, "store"), "-out", filepath.Join(dir, "out"), "-seconds", "0.01"}, more...)
	}
	db, err := minikudu.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := db.CreateTable(ctx, w.Name, w.Spec)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]cell, 3)
	w.row(0, row)
	var b minikudu.WriteBatch
	b.Insert(tab, row[0].n, row[1].n+1, row[2].f) // not the counter of row 0
	if _, err := db.Commit(ctx, &b, nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f := func(want string, more ...string) {
		t.Helper()
		if err := run(args(more...), here(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", more, err)
		}
	}
	f("is not empty")
	f("wrong value", "-use-existing")
	f("no workload", "-workload", "wide", "-use-existing")
	if err := os.WriteFile(filepath.Join(dir, "out"), []byte(`{"run":{"workload":"cpu"}}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	f("is of workload cpu", "-use-existing")
}

// A wrong sum or count ends a run.
func TestScanIsCompared(t *testing.T) {
	s := &Settings{Workload: "narrow", Rows: 200, Memory: 64 << 20, Dir: t.TempDir(), Out: filepath.Join(t.TempDir(), "out"), Batch: 50, Every: 100}
	j, err := openJournal(s.Out)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	st, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	defer st.db.Close()
	if err := st.fill(j, 0); err != nil {
		t.Fatal(err)
	}
	sums := st.work.sums(200)
	if _, err := st.scan(200, sums); err != nil {
		t.Error(err)
	}
	if _, err := st.scan(201, sums); err == nil {
		t.Error("a wrong count passes")
	}
	for k := range sums {
		wrong := slices.Clone(sums)
		wrong[k]++
		if _, err := st.scan(200, wrong); err == nil {
			t.Errorf("a wrong sum of %s passes", st.work.Sums[k])
		}
	}
	if err := st.checkRows(199); err == nil {
		t.Error("row 199 is there, although there should be 199 rows")
	}
}

func TestCommand(t *testing.T) {
	got := command([]string{"-workload", "cpu", "-dir", "/some/where", "--out=/x/y", "-rows=5", "-use-existing", "-profile", "p"})
	if want := "go run ./growth -workload cpu -rows=5 -use-existing -dir … -out …"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// invented is a result whose numbers are easy to reckon with: 1,000 rows, 10 bytes each,
// in two rowsets of 5,000 bytes, one merge reads 80,000 bytes.
func invented() *result {
	r := &result{run: &Run{Workload: "narrow", Memory: 1 << 20}}
	for k := range int64(10) {
		h := float64(1 + k%2)
		s := &Sample{State: State{Rows: 100 * (k + 1), Height: h + float64(k+1)*1000/80_000}, New: 100, CPU: 100e-6 * (2 + h/2), Seconds: float64(k+1) / 100}
		s.CPU += 100e-6 * (s.Height - h) / 2
		s.Took = s.CPU + 100e-6*3
		r.samples = append(r.samples, s)
	}
	r.loaded = &Loaded{State: State{Rows: 1000, RowSets: 2, Height: 1, Bytes: 10_000}, Target: 10_000, Columns: 7700}
	r.opened = []*Opened{{Empty: 1, Read: 2, RowSets: 2}, {Empty: 1, Read: 3, RowSets: 2}, {Empty: 1, Read: 100, RowSets: 2}}
	r.reads = &Reads{Rows: 1000, RowSets: 2, Height: 1, Heap: 600, Cached: 20_000, Budget: 100_000,
		Uniform: Gets{Rate: 1e6}, Absent: Gets{Pages: 0.01}}
	r.tight = &Tight{Budget: 5000, Uniform: Gets{Rate: 1e6 / 301.0, Misses: 3}}
	return r
}

func TestModel(t *testing.T) {
	m, err := fit(invented(), narrow())
	if err != nil {
		t.Fatal(err)
	}
	f := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	f("bytes/row", m.BytesPerRow, 10)
	f("times of commits", m.TimeBytes, 1)
	f("fill", m.Fill, 0.5)
	f("processor time", m.RowMicros, 2)
	f("time of a probe", m.ProbeMicros, 0.5)
	f("waiting", m.WaitMicros, 3)
	f("first height", m.FirstHeight, 14.0/9)
	f("open of a rowset", m.OpenRowSet, 1)
	f("pages of a read", m.PagesGet, 4)
	f("time of a miss", m.MissMicros, 100)

	f("rowsets at the size of the fit", m.rowSets(1000), 2)
	f("runs", m.runs(8000), 1)
	f("height", m.height(16_000), 14.0/9+2)
	f("processor time of a row", m.cpuMicros(16_000), 2+0.5*(14.0/9+2))
	f("load", m.loadSeconds(8000), 8000*(5+0.5*(14.0/9+0.5))/1e6)
	f("slowing", m.slowing(8000), (5+0.5*(14.0/9+0.15))/(5+0.5*(14.0/9+0.95)))
	m.FirstHeight = 7
	f("amplification", m.amplification(8000), 7) // 5, 1, and one level of 8 runs
	f("open", m.openMillis(1000), 3)
	f("memory", m.heap(1000), 600)
	f("misses while all fits", m.misses(5000), 0)
	f("misses of half", m.misses(10_000), 2)
	f("reads of all", m.getRate(1000), 1e6)
	f("reads of half", m.getRate(10_000), 1e6/201)
	f("pages for absent keys", m.falseReads(1e6), 0.01)

	// Keys lie closer together, times take more bits until they are not kept any more.
	m.WaitMicros, m.RowMicros, m.ProbeMicros, m.Seconds = 1e4, 0, 0, 10
	f("bytes/row at twice the rows", m.bytesPerRow(2000), 10-1.0/8+1.0/8)
	m.Seconds = 450
	f("bytes/row when half of the times are gone", m.bytesPerRow(180_000), 9-math.Log2(180)/8+(1+1.0/8)/2)
	m.Random = false
	f("bytes/row in order", m.bytesPerRow(2000), 10)
}

func TestModelNeedsARunThatFits(t *testing.T) {
	r := invented()
	r.reads.Cached = r.reads.Budget
	if _, err := fit(r, narrow()); err == nil || !strings.Contains(err.Error(), "do not fit the cache") {
		t.Error(err)
	}
	r = invented()
	r.opened = nil
	if _, err := fit(r, narrow()); err == nil {
		t.Error("a model of half a run")
	}
}

func TestTenths(t *testing.T) {
	r := invented()
	for k := range int64(10) {
		if want := 100 / r.samples[k].Took; r.tenth(k) != want {
			t.Errorf("tenth %d: %v, want %v", k, r.tenth(k), want)
		}
	}
	r.samples = r.samples[:5]
	if r.tenth(7) != 0 {
		t.Error("a rate without samples")
	}
}
