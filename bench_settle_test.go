package minikudu_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// The benchmarks of this file are long stories rather than short loops: what a store
// looks like after much was written in an unkind order, and after its compactions have
// caught up. They are run once (-benchtime 1x), at full size with MINIKUDU_FULL=1, and
// fail on a wrong answer.

var narrowNames = []string{"id", "count", "value"}

// sized returns the size of a run: the first with MINIKUDU_FULL, else the second.
func sized[T any](whole, small T) T {
	if full() {
		return whole
	}
	return small
}

// narrowRows is what a narrow table holds: the cells of the row with id i at place i.
type narrowRows struct {
	counts []int64
	values []float64
}

func newNarrowRows(rows int, batches [][]*vector.Vector) *narrowRows {
	w := &narrowRows{make([]int64, rows), make([]float64, rows)}
	for _, cols := range batches {
		for i, id := range cols[0].Int64s() {
			w.counts[id], w.values[id] = cols[1].Int64s()[i], cols[2].Float64s()[i]
		}
	}
	return w
}

// sum returns the sum of the counts.
func (w *narrowRows) sum() (sum int64) {
	for _, x := range w.counts {
		sum += x
	}
	return sum
}

// check compares n random rows, read by key, and the sum of all counts. It returns the
// time a read takes.
func (w *narrowRows) check(b *testing.B, tab *minikudu.Table, n int) time.Duration {
	b.Helper()
	r := rand.New(rand.NewPCG(9, uint64(n)))
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = r.Int64N(int64(len(w.counts)))
	}
	start := time.Now()
	for _, id := range ids {
		w.get(b, tab, id)
	}
	took := time.Since(start) / time.Duration(n)
	if rows, sum := scanSum(b, tab, minikudu.Query{Columns: []string{"count"}}); rows != int64(len(w.counts)) || sum != w.sum() {
		b.Fatalf("%d rows with sum %d, want %d with %d", rows, sum, len(w.counts), w.sum())
	}
	return took
}

func (w *narrowRows) get(b *testing.B, tab *minikudu.Table, id int64) {
	b.Helper()
	row, err := tab.Get(ctx, id)
	if err != nil {
		b.Fatalf("row %d: %v", id, err)
	}
	if row.Cell(0).Int() != id || row.Cell(1).Int() != w.counts[id] || row.Cell(2).Float() != w.values[id] {
		b.Fatalf("row %d: %v, want %d and %v", id, row.Values(), w.counts[id], w.values[id])
	}
}

// height returns how many rowsets a key must be looked for in, on average.
func height(b *testing.B, tab *minikudu.Table) (h float64) {
	b.Helper()
	layout, err := tab.Layout(ctx)
	if err != nil {
		b.Fatal(err)
	}
	for _, rs := range layout {
		h += rs.End - rs.Start
	}
	return h
}

// settle writes out what is in memory and waits until no compaction is worth doing.
func settle(b *testing.B, db *minikudu.DB, tab *minikudu.Table) time.Duration {
	b.Helper()
	start := time.Now()
	if err := tab.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	if err := db.WaitSettled(ctx); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// smallOptions make the work in the background of a small run like that of a large one.
func smallOptions() *minikudu.Options { return &minikudu.Options{MemoryBudget: 16 << 20} }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// BenchmarkRandomLoad commits rows of three numbers in random order of keys, durably,
// while compactions run in the background, then lets them catch up.
func BenchmarkRandomLoad(b *testing.B) {
	rows, options := sized(10_000_000, 100_000), smallOptions()
	if full() {
		options.MemoryBudget = 256 << 20
	}
	batches := narrowBatches(rows)
	want := newNarrowRows(rows, batches)
	for b.Loop() {
		db := mustOpen(b, b.TempDir(), options)
		tab := narrowTable(b, db)
		var longest time.Duration
		start := time.Now()
		for _, cols := range batches {
			longest = max(longest, timedCommit(b, db, tab, minikudu.OpInsert, narrowNames, cols))
		}
		took := time.Since(start)
		loaded := height(b, tab)
		settling := settle(b, db, tab)
		want.check(b, tab, 1000)

		m := db.Metrics()
		settled := height(b, tab)
		if settled > 3 {
			b.Errorf("%.1f rowsets high after compactions", settled)
		}
		b.ReportMetric(float64(rows)/took.Seconds(), "rows/s")
		b.ReportMetric(ms(longest), "longest-commit-ms")
		b.ReportMetric(float64(m.Stalls), "stalls")
		b.ReportMetric(ms(m.LongestStall), "longest-stall-ms")
		b.ReportMetric(loaded, "height-loaded")
		b.ReportMetric(settled, "height")
		b.ReportMetric(float64(m.RowSets), "rowsets")
		b.ReportMetric(m.WriteAmplification(), "amplification")
		b.ReportMetric(settling.Seconds(), "settle-s")
		mustClose(b, db)
	}
}

// timedCommit commits one batch of columns and returns the time that Commit took.
func timedCommit(b *testing.B, db *minikudu.DB, tab *minikudu.Table, op minikudu.Op, names []string, cols []*vector.Vector) time.Duration {
	b.Helper()
	var wb minikudu.WriteBatch
	if err := wb.AddColumns(tab, op, names, cols); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if _, err := db.Commit(ctx, &wb, nil); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// BenchmarkRandomUpdates sets one column of random rows, durably, and scans that column
// before, straight after, when the changes are in files and when compactions are done.
func BenchmarkRandomUpdates(b *testing.B) {
	rows, updates := sized(5_000_000, 100_000), sized(1_000_000, 20_000)
	batches := narrowBatches(rows)
	for _, batch := range []struct {
		name string
		rows int
	}{{"10k", 10_000}, {"1k", 1_000}} {
		b.Run(batch.name, func(b *testing.B) {
			options := smallOptions()
			if full() {
				options = nil
			}
			for b.Loop() {
				db := mustOpen(b, b.TempDir(), options)
				tab := narrowTable(b, db)
				load(b, db, tab, narrowNames, batches)
				want := newNarrowRows(rows, batches)
				settle(b, db, tab)
				before := want.scanTime(b, tab)
				took := want.update(b, db, tab, updates, batch.rows)
				after := want.scanTime(b, tab)
				if err := tab.FlushDeltas(ctx); err != nil {
					b.Fatal(err)
				}
				flushed := want.scanTime(b, tab)
				settling := settle(b, db, tab)
				settled := want.scanTime(b, tab)
				want.check(b, tab, 1000)

				b.ReportMetric(float64(updates)/took.Seconds(), "updates/s")
				b.ReportMetric(settling.Seconds(), "settle-s")
				b.ReportMetric(ms(before), "scan-before-ms")
				for _, s := range []struct {
					name string
					took time.Duration
				}{{"after", after}, {"flushed", flushed}, {"settled", settled}} {
					b.ReportMetric(ms(s.took), "scan-"+s.name+"-ms")
					b.ReportMetric(float64(s.took)/float64(before), "scan-"+s.name+"-x")
				}
				mustClose(b, db)
			}
		})
	}
}

// update sets the count of n random rows and returns the time of the commits.
func (w *narrowRows) update(b *testing.B, db *minikudu.DB, tab *minikudu.Table, n, batch int) (took time.Duration) {
	b.Helper()
	return w.updateFrom(rand.New(rand.NewPCG(7, 8)), b, db, tab, n, batch)
}

// updateFrom is update with the rows that r draws.
func (w *narrowRows) updateFrom(r *rand.Rand, b *testing.B, db *minikudu.DB, tab *minikudu.Table, n, batch int) (took time.Duration) {
	b.Helper()
	for from := 0; from < n; from += batch {
		ids, counts := make([]int64, batch), make([]int64, batch)
		for i := range ids {
			ids[i], counts[i] = r.Int64N(int64(len(w.counts))), r.Int64N(1000)
			w.counts[ids[i]] = counts[i]
		}
		took += timedCommit(b, db, tab, minikudu.OpUpdate, narrowNames[:2], []*vector.Vector{
			vector.FromFixed(schema.KindInt64, ids, nil), vector.FromFixed(schema.KindInt64, counts, nil)})
	}
	return took
}

// scanTime returns the median time of a scan of the counts, after one that is not timed,
// and checks the answers.
func (w *narrowRows) scanTime(b *testing.B, tab *minikudu.Table) time.Duration {
	b.Helper()
	want := w.sum()
	var times []time.Duration
	for range 6 {
		start := time.Now()
		rows, sum := scanSum(b, tab, minikudu.Query{Columns: []string{"count"}})
		times = append(times, time.Since(start))
		if rows != int64(len(w.counts)) || sum != want {
			b.Fatalf("%d rows with sum %d, want %d with %d", rows, sum, len(w.counts), want)
		}
	}
	times = times[1:]
	slices.Sort(times)
	return times[len(times)/2]
}

// BenchmarkTinyFlushes flushes after every batch of ten rows in random order of keys, with
// compactions in the background, and reads rows by key at each quarter.
func BenchmarkTinyFlushes(b *testing.B) {
	flushes := sized(20_000, 2_000)
	const rows = 10 // of a batch
	all := narrowBatches(flushes * rows)
	want := newNarrowRows(flushes*rows, all)
	for b.Loop() {
		db := openTiny(b)
		tab := narrowTable(b, db)
		most := 0
		var loading time.Duration
		var gets []time.Duration
		for n := range flushes {
			cols := part(all, n*rows, rows)
			start := time.Now()
			timedCommit(b, db, tab, minikudu.OpInsert, narrowNames, cols)
			if err := tab.Flush(ctx); err != nil {
				b.Fatal(err)
			}
			loading += time.Since(start)
			most = max(most, db.Metrics().RowSets)
			if (n+1)%(flushes/4) == 0 {
				gets = append(gets, want.getTime(b, tab, all, (n+1)*rows))
			}
		}
		settling := settle(b, db, tab)
		want.check(b, tab, 1000)

		m := db.Metrics()
		bound := 2*m.RowSetBytes/(32<<20) + 2
		if int64(m.RowSets) > bound {
			b.Errorf("%d rowsets after compactions, %d at most", m.RowSets, bound)
		}
		for i, d := range gets {
			b.ReportMetric(float64(d)/float64(time.Microsecond), []string{"get-1-us", "get-2-us", "get-3-us", "get-4-us"}[i])
		}
		b.ReportMetric(float64(flushes)/loading.Seconds(), "flushes/s")
		b.ReportMetric(loading.Seconds(), "load-s")
		b.ReportMetric(settling.Seconds(), "settle-s")
		b.ReportMetric(float64(most), "most-rowsets")
		b.ReportMetric(float64(m.RowSets), "rowsets")
		b.ReportMetric(float64(bound), "rowsets-bound")
		b.ReportMetric(m.WriteAmplification(), "amplification")
		b.ReportMetric(float64(m.WrittenBytes())/float64(m.FlushedBytes), "amplification-of-flushed")
		mustClose(b, db)
	}
}

// openTiny opens a store on disk for a full run, else in memory: syncs of a disk are most
// of a flush of ten rows.
func openTiny(b *testing.B) *minikudu.DB {
	if full() {
		return mustOpen(b, b.TempDir(), &minikudu.Options{Durability: minikudu.NoSync})
	}
	db, err := minikudu.OpenInMemory(nil)
	if err != nil {
		b.Fatal(err)
	}
	return db
}

// part returns n rows of the batches, which lie within one.
func part(batches [][]*vector.Vector, from, n int) []*vector.Vector {
	cols, at := batches[from/benchBatch], from%benchBatch
	return []*vector.Vector{
		vector.FromFixed(schema.KindInt64, cols[0].Int64s()[at:at+n], nil),
		vector.FromFixed(schema.KindInt64, cols[1].Int64s()[at:at+n], nil),
		vector.FromFixed(schema.KindFloat64, cols[2].Float64s()[at:at+n], nil)}
}

// getTime returns the time of a read by key of one of the first n rows.
func (w *narrowRows) getTime(b *testing.B, tab *minikudu.Table, batches [][]*vector.Vector, n int) time.Duration {
	b.Helper()
	r := rand.New(rand.NewPCG(11, uint64(n)))
	const reads = 2000
	ids := make([]int64, reads)
	for i := range ids {
		k := r.IntN(n)
		ids[i] = batches[k/benchBatch][0].Int64s()[k%benchBatch]
	}
	start := time.Now()
	for _, id := range ids {
		w.get(b, tab, id)
	}
	return time.Since(start) / reads
}
