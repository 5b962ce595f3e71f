package minikudu_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
)

// BenchmarkScanBetweenUpdates scans a column after each durable commit that sets cells of
// it, so that no scan finds what the one before found.
func BenchmarkScanBetweenUpdates(b *testing.B) {
	rows, updates := sized(1_000_000, 100_000), sized(100_000, 20_000)
	batches := narrowBatches(rows)
	for _, batch := range []struct {
		name string
		rows int
	}{{"1k", 1_000}, {"10", 10}} {
		b.Run(batch.name, func(b *testing.B) {
			for b.Loop() {
				db := mustOpen(b, b.TempDir(), nil)
				tab := narrowTable(b, db)
				load(b, db, tab, narrowNames, batches)
				want := newNarrowRows(rows, batches)
				settle(b, db, tab)
				before := want.aggregateTime(b, tab)
				var between []time.Duration
				r := rand.New(rand.NewPCG(7, 8))
				for range min(updates/batch.rows, 1000) {
					want.updateFrom(r, b, db, tab, batch.rows, batch.rows)
					between = append(between, want.aggregateOnce(b, tab))
				}
				after := want.aggregateTime(b, tab)
				slices.Sort(between)
				b.ReportMetric(ms(before), "scan-before-ms")
				b.ReportMetric(float64(between[len(between)/2])/float64(before), "scan-between-x")
				b.ReportMetric(float64(between[len(between)*9/10])/float64(before), "scan-between-90-x")
				b.ReportMetric(float64(after)/float64(before), "scan-after-x")
				mustClose(b, db)
			}
		})
	}
}

// aggregateTime returns the least time of several sums of the counts.
func (w *narrowRows) aggregateTime(b *testing.B, tab *minikudu.Table) time.Duration {
	b.Helper()
	least := w.aggregateOnce(b, tab)
	for range 20 {
		least = min(least, w.aggregateOnce(b, tab))
	}
	return least
}

// aggregateOnce returns the time of a sum of the counts, and checks it.
func (w *narrowRows) aggregateOnce(b *testing.B, tab *minikudu.Table) time.Duration {
	b.Helper()
	start := time.Now()
	got, err := tab.Aggregate(ctx, minikudu.Query{}, nil, minikudu.Sum("count"))
	took := time.Since(start)
	if err != nil {
		b.Fatal(err)
	}
	if sum := got.Column(0).Int64s()[0]; sum != w.sum() {
		b.Fatalf("sum %d, want %d", sum, w.sum())
	}
	return took
}
