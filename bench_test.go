package minikudu_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// The workload: metrics of 100 hosts every 10 seconds in time order, key (host, ts),
// 10 numeric columns, batches of 1,000 rows.
const (
	benchHosts   = 100
	benchMetrics = 10
	benchBatch   = 1000
)

func metricsSpec() (spec minikudu.TableSpec, names []string) {
	spec = minikudu.TableSpec{Key: []string{"host", "ts"}, Columns: []minikudu.Column{
		{Name: "host", Type: schema.String}, {Name: "ts", Type: schema.UnixtimeMicros}}}
	for i := range benchMetrics {
		spec.Columns = append(spec.Columns, minikudu.Column{Name: fmt.Sprintf("m%d", i), Type: schema.Int64})
	}
	for _, c := range spec.Columns {
		names = append(names, c.Name)
	}
	return spec, names
}

// metricsBatch returns rows [from, from+benchBatch) of the workload.
func metricsBatch(r *rand.Rand, from int) []*vector.Vector {
	cols := []*vector.Vector{vector.New(schema.KindBytes, benchBatch), vector.New(schema.KindInt64, benchBatch)}
	for range benchMetrics {
		cols = append(cols, vector.New(schema.KindInt64, benchBatch))
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	for i := from; i < from+benchBatch; i++ {
		_ = cols[0].AppendBytes(fmt.Appendf(nil, "host_%03d", i%benchHosts))
		vector.AppendFixed(cols[1], start+int64(i/benchHosts)*10_000_000)
		for m := range benchMetrics {
			vector.AppendFixed(cols[2+m], int64(r.IntN(101)))
		}
	}
	return cols
}

func metricsBatches(rows int) [][]*vector.Vector {
	r := rand.New(rand.NewPCG(1, 2))
	var out [][]*vector.Vector
	for from := 0; from < rows; from += benchBatch {
		out = append(out, metricsBatch(r, from))
	}
	return out
}

func load(b testing.TB, db *minikudu.DB, tab *minikudu.Table, names []string, batches [][]*vector.Vector) {
	var wb minikudu.WriteBatch
	for _, cols := range batches {
		wb.Reset()
		if err := wb.InsertColumns(tab, names, cols); err != nil {
			b.Fatal(err)
		}
		if _, err := db.Commit(ctx, &wb, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func benchTable(b testing.TB, db *minikudu.DB) (*minikudu.Table, []string) {
	spec, names := metricsSpec()
	tab, err := db.CreateTable(ctx, "cpu", spec)
	if err != nil {
		b.Fatal(err)
	}
	return tab, names
}

func benchRows() int {
	if testing.Short() {
		return 20_000
	}
	return 2_000_000
}

// BenchmarkInsert loads the workload from empty to the last commit, with the flushes
// that happen on the way and a final one, unique key enforced, NoSync.
func BenchmarkInsert(b *testing.B) {
	rows := benchRows()
	batches := metricsBatches(rows)
	var flushes, bytes int64
	for b.Loop() {
		db := mustOpen(b, b.TempDir(), &minikudu.Options{Durability: minikudu.NoSync})
		tab, names := benchTable(b, db)
		load(b, db, tab, names, batches)
		if err := tab.Flush(ctx); err != nil {
			b.Fatal(err)
		}
		m := db.Metrics()
		flushes, bytes = m.Flushes, m.RowSetBytes
		mustClose(b, db)
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(flushes), "flushes")
	b.ReportMetric(float64(bytes)/float64(rows), "bytes/row")
}

// loaded opens a store with the workload flushed.
func loaded(b *testing.B) (*minikudu.DB, *minikudu.Table, int) {
	rows := benchRows()
	db := mustOpen(b, b.TempDir(), &minikudu.Options{Durability: minikudu.NoSync})
	b.Cleanup(func() { mustClose(b, db) })
	tab, names := benchTable(b, db)
	load(b, db, tab, names, metricsBatches(rows))
	if err := tab.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	return db, tab, rows
}

func BenchmarkGet(b *testing.B) {
	_, tab, rows := loaded(b)
	getRandom(b, tab, rows)
}

// BenchmarkGetSmallCache reads rows at random with a page cache of 32 MiB, for 180 MB of
// cells.
func BenchmarkGetSmallCache(b *testing.B) {
	rows := benchRows()
	dir := b.TempDir()
	db := mustOpen(b, dir, &minikudu.Options{Durability: minikudu.NoSync})
	tab, names := benchTable(b, db)
	load(b, db, tab, names, metricsBatches(rows))
	if err := tab.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	mustClose(b, db)
	db = mustOpen(b, dir, &minikudu.Options{ReadOnly: true, MemoryBudget: 64 << 20})
	defer mustClose(b, db)
	tab, err := db.Table("cpu")
	if err != nil {
		b.Fatal(err)
	}
	getRandom(b, tab, rows)
	b.ReportMetric(float64(db.Metrics().PageCache.Misses)/float64(b.N), "misses/row")
}

// getRandom reads rows at random.
func getRandom(b *testing.B, tab *minikudu.Table, rows int) {
	r := rand.New(rand.NewPCG(3, 4))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	hosts := make([]string, benchHosts)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("host_%03d", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		i := r.IntN(rows)
		if _, err := tab.Get(ctx, hosts[i%benchHosts], start+int64(i/benchHosts)*10_000_000); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkGetMany looks a hundred keys up together.
func BenchmarkGetMany(b *testing.B) {
	_, tab, rows := loaded(b)
	r := rand.New(rand.NewPCG(3, 4))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	keys := make([][]any, 100)
	for b.Loop() {
		for k := range keys {
			i := r.IntN(rows)
			keys[k] = []any{fmt.Sprintf("host_%03d", i%benchHosts), start + int64(i/benchHosts)*10_000_000}
		}
		found, err := tab.GetMany(ctx, keys)
		if err != nil || slices.Contains(found, nil) {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(keys)*b.N)/b.Elapsed().Seconds(), "rows/s")
}

// scanSum runs a scan and sums a column of the result.
func scanSum(b *testing.B, tab *minikudu.Table, q minikudu.Query) (n, sum int64) {
	for batch, err := range tab.Scan(ctx, q) {
		if err != nil {
			b.Fatal(err)
		}
		n += int64(batch.Len())
		for _, x := range batch.Column(0).Int64s() {
			sum += x
		}
	}
	return n, sum
}

func BenchmarkScan(b *testing.B) {
	_, tab, rows := loaded(b)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		q    minikudu.Query
	}{
		{"full", minikudu.Query{Columns: []string{"m0"}}},
		{"filtered", minikudu.Query{Columns: []string{"m0"}, Where: predicate.Gt("m1", 90)}},
		{"ranged", minikudu.Query{Columns: []string{"m0"}, Where: predicate.And(predicate.Eq("host", "host_042"),
			predicate.Ge("ts", start), predicate.Lt("ts", start.Add(time.Hour)))}},
	} {
		b.Run(c.name, func(b *testing.B) {
			scanSum(b, tab, c.q) // fill the page cache
			b.ReportAllocs()
			for b.Loop() {
				scanSum(b, tab, c.q)
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkAggregate sums one column where another passes a predicate, inside the
// scan, from cached pages, on one core.
func BenchmarkAggregate(b *testing.B) {
	_, tab, rows := loaded(b)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, c := range []struct {
		name  string
		where minikudu.Expr
	}{{"1pct", predicate.Gt("m1", 99)}, {"10pct", predicate.Gt("m1", 90)}, {"50pct", predicate.Ge("m1", 50)}} {
		b.Run(c.name, func(b *testing.B) {
			sum := func() {
				if _, err := tab.Aggregate(ctx, minikudu.Query{Where: c.where}, nil, minikudu.Sum("m0")); err != nil {
					b.Fatal(err)
				}
			}
			sum() // fill the page cache
			b.ReportAllocs()
			for b.Loop() {
				sum()
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func BenchmarkFlush(b *testing.B) {
	rows := min(benchRows(), 500_000)
	batches := metricsBatches(rows)
	for b.Loop() {
		b.StopTimer()
		db := mustOpen(b, b.TempDir(), &minikudu.Options{Durability: minikudu.NoSync, FlushBytes: 1 << 30})
		tab, names := benchTable(b, db)
		load(b, db, tab, names, batches)
		b.StartTimer()
		if err := tab.Flush(ctx); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		mustClose(b, db)
		b.StartTimer()
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	db := mustOpen(b, dir, &minikudu.Options{Durability: minikudu.NoSync})
	tab, names := benchTable(b, db)
	load(b, db, tab, names, metricsBatches(benchRows()))
	if err := tab.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	mustClose(b, db)
	for b.Loop() {
		mustClose(b, mustOpen(b, dir, nil))
	}
}

// BenchmarkReplay opens a store whose rows are all in the log.
func BenchmarkReplay(b *testing.B) {
	rows := min(benchRows(), 400_000)
	dir, o := b.TempDir(), &minikudu.Options{Durability: minikudu.NoSync, FlushBytes: 256 << 20, LogBytes: 1 << 30}
	db := mustOpen(b, dir, o)
	tab, names := benchTable(b, db)
	load(b, db, tab, names, metricsBatches(rows))
	mustClose(b, db)
	b.ReportAllocs()
	for b.Loop() {
		db := mustOpen(b, dir, o)
		if tab, err := db.Table("cpu"); err != nil || tab.Rows() != int64(rows) {
			b.Fatalf("%v, %v", tab, err)
		}
		mustClose(b, db)
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
