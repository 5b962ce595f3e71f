//go:build !race

package minikudu_test

import (
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Under the race detector sync.Pool drops entries at random.

// measuredRig has 20,000 rows of (k int64, a int32, s string), half of them flushed.
func measuredRig(t *testing.T) *rig {
	r := newRig(t, minikudu.Options{Durability: minikudu.NoSync}, table([]string{"k"}, col("k", schema.Int64), col("a", schema.Int32), col("s", schema.String)))
	r.insertMany(0, 10000)
	r.flush()
	r.insertMany(10000, 10000)
	return r
}

func (r *rig) insertMany(from, n int) {
	r.Helper()
	var b minikudu.WriteBatch
	if err := b.InsertColumns(r.tab, []string{"k", "a", "s"}, manyColumns(from, n)); err != nil {
		r.Fatal(err)
	}
	r.commit(&b)
}

func manyColumns(from, n int) []*vector.Vector {
	k, a, s := make([]int64, n), make([]int32, n), vector.New(schema.KindBytes, n)
	for i := range n {
		k[i], a[i] = int64(from+i), int32(i%100)
		_ = s.AppendBytes([]byte("word"))
	}
	return []*vector.Vector{vector.FromFixed(schema.KindInt64, k, nil), vector.FromFixed(schema.KindInt32, a, nil), s}
}

// A get of cached pages allocates a few objects, whatever the size of the table.
func TestGetAllocatesLittle(t *testing.T) {
	r := measuredRig(t)
	names := []string{"a"}
	for where, key := range map[string]any{"disk": int64(5000), "memory": int64(15000)} {
		get := func() {
			if _, err := r.tab.GetColumns(ctx, names, key); err != nil {
				t.Fatal(err)
			}
		}
		get()
		if n := testing.AllocsPerRun(200, get); n > 3 {
			t.Errorf("a get of one column from %s makes %v allocations", where, n)
		}
	}
}

// A scan allocates to begin with, and for a batch no more than the heads of its columns.
func TestScanAllocatesLittlePerBatch(t *testing.T) {
	r := measuredRig(t)
	for name, q := range map[string]minikudu.Query{"all": {}, "filtered": {Where: predicate.Lt("a", 50)}, "ordered": {Order: minikudu.KeyOrder}} {
		scan := func(batchRows int) (allocs float64, batches int) {
			q.BatchRows = batchRows
			run := func() {
				batches = 0
				for _, err := range r.tab.Scan(ctx, q) {
					if err != nil {
						t.Fatal(err)
					}
					batches++
				}
			}
			run()
			return testing.AllocsPerRun(5, run), batches
		}
		few, n := scan(4000)
		many, m := scan(100)
		if perBatch := (many - few) / float64(m-n); perBatch > 4 {
			t.Errorf("%s: %v allocations in %d batches, %v in %d", name, few, n, many, m)
		}
	}
}

// A commit of many rows by column allocates for the batch, not for the rows.
func TestCommitAllocatesLittlePerRow(t *testing.T) {
	r := measuredRig(t)
	const rows = 2000
	next := 20000
	var b minikudu.WriteBatch
	names := []string{"k", "a", "s"}
	var prepared [][]*vector.Vector
	for range 12 {
		prepared = append(prepared, manyColumns(next, rows))
		next += rows
	}
	run := func() {
		columns := prepared[0]
		prepared = prepared[1:]
		b.Reset()
		if err := b.InsertColumns(r.tab, names, columns); err != nil {
			t.Fatal(err)
		}
		r.commit(&b)
	}
	if n := testing.AllocsPerRun(10, run); n > rows/10 {
		t.Errorf("a commit of %d rows makes %v allocations", rows, n)
	}
}
