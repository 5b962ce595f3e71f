package minikudu_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func narrowTable(b testing.TB, db *minikudu.DB) *minikudu.Table {
	tab, err := db.CreateTable(ctx, "narrow", minikudu.TableSpec{Key: []string{"id"}, Columns: []minikudu.Column{
		{Name: "id", Type: schema.Int64}, {Name: "count", Type: schema.Int64}, {Name: "value", Type: schema.Double}}})
	if err != nil {
		b.Fatal(err)
	}
	return tab
}

// narrowBatches returns rows whose keys are the numbers below rows in random order.
func narrowBatches(rows int) [][]*vector.Vector {
	r := rand.New(rand.NewPCG(5, 6))
	ids := r.Perm(rows)
	var out [][]*vector.Vector
	for from := 0; from < rows; from += benchBatch {
		id, count, value := make([]int64, benchBatch), make([]int64, benchBatch), make([]float64, benchBatch)
		for i := range id {
			id[i], count[i], value[i] = int64(ids[from+i]), r.Int64N(1000), r.Float64()
		}
		out = append(out, []*vector.Vector{vector.FromFixed(schema.KindInt64, id, nil),
			vector.FromFixed(schema.KindInt64, count, nil), vector.FromFixed(schema.KindFloat64, value, nil)})
	}
	return out
}

// BenchmarkInsertRandom loads rows of three numbers whose unique keys come in random
// order, from empty to the end of a final flush, NoSync.
func BenchmarkInsertRandom(b *testing.B) {
	rows := benchRows()
	batches := narrowBatches(rows)
	for b.Loop() {
		db := mustOpen(b, b.TempDir(), &minikudu.Options{Durability: minikudu.NoSync})
		tab := narrowTable(b, db)
		load(b, db, tab, []string{"id", "count", "value"}, batches)
		if err := tab.Flush(ctx); err != nil {
			b.Fatal(err)
		}
		mustClose(b, db)
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkInsertSynced is the workload of BenchmarkInsertRandom with every commit synced,
// in memory and the log alone: FlushBytes is larger than the rows.
func BenchmarkInsertSynced(b *testing.B) {
	rows := min(benchRows(), 1_000_000)
	batches := narrowBatches(rows)
	for b.Loop() {
		db := mustOpen(b, b.TempDir(), &minikudu.Options{FlushBytes: 256 << 20, LogBytes: 1 << 30})
		load(b, db, narrowTable(b, db), []string{"id", "count", "value"}, batches)
		mustClose(b, db)
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkInsertRows loads the workload of BenchmarkInsert row by row, as Go values.
func BenchmarkInsertRows(b *testing.B) {
	rows := min(benchRows(), 500_000)
	values := metricsRows(rows)
	b.ReportAllocs()
	for b.Loop() {
		db := mustOpen(b, b.TempDir(), &minikudu.Options{Durability: minikudu.NoSync})
		tab, _ := benchTable(b, db)
		var wb minikudu.WriteBatch
		for from := 0; from < rows; from += benchBatch {
			wb.Reset()
			for _, row := range values[from : from+benchBatch] {
				wb.Insert(tab, row...)
			}
			if _, err := db.Commit(ctx, &wb, nil); err != nil {
				b.Fatal(err)
			}
		}
		mustClose(b, db)
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// metricsRows returns rows of the workload as values for Insert.
func metricsRows(rows int) [][]any {
	out := make([][]any, 0, rows)
	for _, cols := range metricsBatches(rows) {
		for i := range benchBatch {
			row := make([]any, 0, len(cols))
			row = append(row, string(cols[0].BytesAt(i)), time.UnixMicro(cols[1].Int64s()[i]))
			for _, c := range cols[2:] {
				row = append(row, c.Int64s()[i])
			}
			out = append(out, row)
		}
	}
	return out
}

// BenchmarkCommitOne commits single rows of the narrow table, NoSync.
func BenchmarkCommitOne(b *testing.B) {
	db := mustOpen(b, b.TempDir(), &minikudu.Options{Durability: minikudu.NoSync})
	defer mustClose(b, db)
	tab := narrowTable(b, db)
	var wb minikudu.WriteBatch
	var row [3]any
	row[1], row[2] = 42, 4.2
	id := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		wb.Reset()
		row[0] = id
		wb.Insert(tab, row[:]...)
		if _, err := db.Commit(ctx, &wb, nil); err != nil {
			b.Fatal(err)
		}
		id++
	}
}
