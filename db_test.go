package minikudu_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

var ctx = context.Background()

// cpuSpec is a table of metrics: key (host, ts), two values.
func cpuSpec() minikudu.TableSpec {
	return minikudu.TableSpec{Key: []string{"host", "ts"}, Columns: []minikudu.Column{
		{Name: "host", Type: schema.String}, {Name: "ts", Type: schema.Int64},
		{Name: "usage", Type: schema.Double, Nullable: true}, {Name: "n", Type: schema.Int32}}}
}

func mustOpen(t testing.TB, dir string, o *minikudu.Options) *minikudu.DB {
	t.Helper()
	db, err := minikudu.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func mustClose(t testing.TB, db *minikudu.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func count(t testing.TB, tab *minikudu.Table, q minikudu.Query) (n int) {
	t.Helper()
	for b, err := range tab.Scan(ctx, q) {
		if err != nil {
			t.Fatal(err)
		}
		n += b.Len()
	}
	return n
}

func TestInsertFlushReopen(t *testing.T) {
	for name, flush := range map[string]bool{"memory": false, "flushed": true} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			opts := &minikudu.Options{FS: mem}
			db := mustOpen(t, "db", opts)
			tab, err := db.CreateTable(ctx, "cpu", cpuSpec())
			if err != nil {
				t.Fatal(err)
			}
			fill(t, db, tab)
			if flush {
				if err := tab.Flush(ctx); err != nil {
					t.Fatal(err)
				}
			}
			check(t, tab)
			mustClose(t, db)
			db = mustOpen(t, "db", opts)
			defer mustClose(t, db)
			if tab, err = db.Table("cpu"); err != nil {
				t.Fatal(err)
			}
			check(t, tab)
		})
	}
}

func fill(t *testing.T, db *minikudu.DB, tab *minikudu.Table) {
	for i := range 10 {
		var b minikudu.WriteBatch
		for h := range 100 {
			b.Insert(tab, fmt.Sprintf("host%d", h), i, float64(h*i), int32(h))
		}
		b.Insert(tab, "host0", i, 0.0, 0) // duplicate
		res, err := db.Commit(ctx, &b, nil)
		if !errors.Is(err, minikudu.ErrRowsRejected) || !errors.Is(err, minikudu.ErrAlreadyPresent) {
			t.Fatalf("a duplicate gave %v", err)
		}
		if res.Inserted != 100 || res.Rejected != 1 {
			t.Fatalf("result %+v", res)
		}
	}
}

func check(t *testing.T, tab *minikudu.Table) {
	t.Helper()
	if n := count(t, tab, minikudu.Query{}); n != 1000 {
		t.Fatalf("%d rows, want 1000", n)
	}
	where := predicate.And(predicate.Eq("host", "host7"), predicate.Ge("ts", 5))
	if n := count(t, tab, minikudu.Query{Where: where}); n != 5 {
		t.Fatalf("%d rows, want 5", n)
	}
	r, err := tab.Get(ctx, "host9", 3)
	if err != nil || r.Value("usage") != 27.0 {
		t.Fatalf("get: %v, %v", r, err)
	}
	if _, err := tab.Get(ctx, "host9", 30); !errors.Is(err, minikudu.ErrNotFound) {
		t.Fatalf("get of a missing key: %v", err)
	}
	agg, err := tab.Aggregate(ctx, minikudu.Query{Where: predicate.Lt("ts", 2)}, nil, minikudu.Count(), minikudu.Sum("usage"), minikudu.Max("n"))
	if err != nil || agg.Column(0).Int64s()[0] != 200 || agg.Column(1).Float64s()[0] != 4950 || agg.Column(2).Int32s()[0] != 99 {
		t.Fatalf("aggregate: %v, %v", agg, err)
	}
	groups, err := tab.Aggregate(ctx, minikudu.Query{}, []string{"host"}, minikudu.Count())
	if err != nil || groups.Len() != 100 || groups.Column(1).Int64s()[5] != 10 {
		t.Fatalf("group by: %v, %v", groups, err)
	}
	last := ""
	for b, err := range tab.Scan(ctx, minikudu.Query{Order: minikudu.KeyOrder}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			k := fmt.Sprintf("%s/%d", b.Column(0).StringAt(i), b.Column(1).Int64s()[i])
			if k <= last {
				t.Fatalf("%s after %s", k, last)
			}
			last = k
		}
	}
}
