package bench

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

var ctx = context.Background()

// newRunner returns a runner over a new store with the table of a workload.
func newRunner(t *testing.T, c Config) *Runner {
	t.Helper()
	dir := t.TempDir()
	c.Open = func() (*minikudu.DB, error) { return minikudu.Open(dir, nil) }
	db, err := c.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.CreateTable(ctx, c.Workload.TableName(), c.Workload.Spec); err != nil {
		t.Fatal(err)
	}
	r, err := New(c, db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// Shares differ by at most one row, over rounds of any size, every row is dealt once,
// and batches are no larger than asked for.
func TestSharesDifferByAtMostOne(t *testing.T) {
	for threads := 1; threads <= 5; threads++ {
		for _, rounds := range [][]int{{0}, {1}, {7}, {7, 2, 9}, {100, 1, 1, 3}} {
			got, first := make([][]int64, threads), int64(0)
			for _, n := range rounds {
				v := vector.New(schema.KindInt64, n)
				for i := range n {
					vector.AppendFixed(v, first+int64(i))
				}
				shares, err := deal([]*vector.Vector{v}, inOrder(n), first, threads, 3)
				if err != nil {
					t.Fatal(err)
				}
				for thread, share := range shares {
					for _, b := range share {
						if b.rows > 3 || b.rows != b.columns[0].Len() {
							t.Fatalf("a batch of %d rows", b.rows)
						}
						got[thread] = append(got[thread], b.columns[0].Int64s()...)
					}
				}
				first += int64(n)
			}
			all := slices.Sorted(slices.Values(slices.Concat(got...)))
			if int64(len(all)) != first || len(slices.Compact(all)) != len(all) {
				t.Errorf("%d threads, rounds %v: rows %v", threads, rounds, all)
			}
			for _, share := range got {
				if d := len(got[0]) - len(share); d < 0 || d > 1 {
					t.Errorf("%d threads, rounds %v: shares %v", threads, rounds, got)
				}
			}
		}
	}
}

// Rounds are of full batches, however little memory there is for inputs.
func TestRounds(t *testing.T) {
	for memory, want := range map[int64]int64{0: 60, 1: 60, 128 * 59: 60, 128 * 119: 60, 128 * 120: 120, 128 * 130: 120} {
		r := &Runner{Config: Config{Workload: narrow(), Threads: 3, BatchRows: 20, Memory: memory}}
		if got := r.roundRows(); got != want {
			t.Errorf("memory %d: %d rows, want %d", memory, got, want)
		}
		if r.op = "get"; r.roundRows() != 60 {
			t.Errorf("memory %d: %d keys", memory, r.roundRows())
		}
	}
}

func TestPermutation(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 4, 5, 17, 1000, 4096} {
		p := newPermutation(n, 3)
		seen := make([]bool, n)
		ascending := 0
		for i := range n {
			x := p.at(i)
			if seen[x] {
				t.Fatalf("%d of %d comes twice", x, n)
			}
			seen[x] = true
			if i > 0 && x > p.at(i-1) {
				ascending++
			}
		}
		if n >= 1000 && (ascending < int(n)/3 || ascending > 2*int(n)/3) {
			t.Errorf("%d of %d follow a smaller one", ascending, n)
		}
	}
}

// Every workload goes through every operation, in rounds, and the counts are right.
func TestOperations(t *testing.T) {
	const n = 250
	for _, w := range Workloads() {
		t.Run(w.Name, func(t *testing.T) {
			r := newRunner(t, Config{Workload: w, Rows: n, Threads: 3, BatchRows: 20, Memory: int64(2 * 70 * w.rowBytes)})
			rows := int64(0) // of the table
			for _, op := range Ops {
				res, err := r.Run(ctx, op)
				if err != nil {
					t.Fatal(err)
				}
				want := Result{Operations: n, Rows: rows, Threads: 3, Timed: 15} // rounds of 60, 60, 60, 60 and 10 rows
				switch op {
				case "insert":
					want.Rows = n
				case "upsert":
					want.Rows = n + n/2
				case "delete":
					want.Rows = rows - n
				case "get":
					want.Timed = n
				case "scan", "count":
					want.Operations, want.Timed = repeats, repeats
				case "open":
					want.Operations, want.Timed, want.Threads = repeats, repeats, 1
				case "flush", "compact":
					want.Operations, want.Timed, want.Threads = 1, 1, 1
				}
				if got := (Result{Operations: res.Operations, Rows: res.Rows, Threads: res.Threads, Timed: res.Timed}); got != want {
					t.Errorf("%s: %+v, want %+v", op, got, want)
				}
				if res.RowsBefore != rows || res.Op != op || res.Workload != w.Name || res.Per == "" {
					t.Errorf("%+v", res)
				}
				if res.Max < res.P999 || res.P999 < res.P99 || res.P99 < res.P50 || res.P50 <= 0 || res.Average > res.Max {
					t.Errorf("times %+v", res)
				}
				rows = res.Rows
			}
		})
	}
}

// An empty table is filled before an operation that needs rows, and is not where it has
// rows; more gets than rows read rows again, more deletions than rows delete all.
func TestFill(t *testing.T) {
	for _, op := range Ops[1:] {
		t.Run(op, func(t *testing.T) {
			r := newRunner(t, Config{Workload: narrow(), Rows: 40, Threads: 2, BatchRows: 7, Memory: 1 << 20})
			res, err := r.Run(ctx, op)
			if err != nil {
				t.Fatal(err)
			}
			if res.RowsBefore != 40 {
				t.Errorf("%d rows", res.RowsBefore)
			}
			if op == "flush" && res.RowsPerSec == 0 {
				t.Error("nothing was flushed")
			}
			r.Rows = 100
			if res, err = r.Run(ctx, "get"); op != "delete" && (err != nil || res.Operations != 100 || res.RowsBefore != res.Rows) {
				t.Errorf("get: %+v, %v", res, err)
			}
			before := r.table.Rows()
			if res, err = r.Run(ctx, "delete"); err != nil || res.Operations != before || res.Rows != 0 {
				t.Errorf("delete: %+v, %v", res, err)
			}
		})
	}
}

// A compaction finds several files.
func TestFillForCompaction(t *testing.T) {
	r := newRunner(t, Config{Workload: narrow(), Rows: 400, Threads: 1, BatchRows: 100, Memory: 1 << 20})
	r.db.Pause()
	if err := r.fill(ctx, "compact"); err != nil {
		t.Fatal(err)
	}
	if sets, err := r.table.Layout(ctx); err != nil || len(sets) != mergeParts || r.table.Rows() != 400 {
		t.Errorf("%d rowsets of %d rows, %v", len(sets), r.table.Rows(), err)
	}
}

// Rows go on after those that are there, also when some of them are missing.
func TestRowsGoOn(t *testing.T) {
	for _, w := range Workloads() {
		t.Run(w.Name, func(t *testing.T) {
			r := newRunner(t, Config{Workload: w, Rows: 30, Threads: 2, BatchRows: 10, Memory: 1 << 20})
			for _, op := range []string{"insert", "delete", "insert", "upsert", "insert"} {
				if r.Rows = 30; op == "delete" {
					r.Rows = 10
				}
				if _, err := r.Run(ctx, op); err != nil {
					t.Fatal(err)
				}
			}
			if n := r.table.Rows(); n != 30-10+30+15+30 {
				t.Errorf("%d rows", n)
			}
		})
	}
}

// Of the rows of an upsert half are there, on every thread.
func TestUpsertsAreMixed(t *testing.T) {
	r := newRunner(t, Config{Workload: narrow(), Rows: 2000, Threads: 2, BatchRows: 1000, Memory: 1 << 20})
	if _, err := r.Run(ctx, "insert"); err != nil {
		t.Fatal(err)
	}
	columns, order, err := r.inputs("upsert")(ctx, 2000)
	if err != nil {
		t.Fatal(err)
	}
	var there [2]int
	for i := range order {
		if columns[0].Int64s()[i] < 4000 { // keys are even
			there[i%2]++
		}
	}
	if there[0]+there[1] != 1000 || there[0] < 400 || there[1] < 400 {
		t.Errorf("%d of the rows are there", there)
	}
}

func TestAgain(t *testing.T) {
	for n, want := range map[int][]int32{2: {4, 5, 6}, 3: {4, 5, 6}, 4: {4, 5, 6, 4}, 8: {4, 5, 6, 4, 5, 6, 4, 5}} {
		if got := again([]int32{4, 5, 6}, n); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
	if got := again(nil, 5); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// No flush begins while inputs are made, although the memory for rows is full; one does
// afterwards.
func TestBackgroundWaitsForInputs(t *testing.T) {
	db, err := minikudu.Open(t.TempDir(), &minikudu.Options{FlushBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	w := narrow()
	if _, err := db.CreateTable(ctx, w.TableName(), w.Spec); err != nil {
		t.Fatal(err)
	}
	r, err := New(Config{Workload: w, Rows: 10, Threads: 1, BatchRows: 1000, Memory: 1 << 20}, db)
	if err != nil {
		t.Fatal(err)
	}
	input := func(context.Context, int64) ([]*vector.Vector, []int32, error) {
		var b minikudu.WriteBatch
		for id := int64(0); db.Metrics().MemoryBytes < 1<<20+1<<18; b.Reset() {
			for range 1000 {
				b.Insert(r.table, id, id, 0.5)
				id++
			}
			if _, err := db.Commit(ctx, &b, nil); err != nil {
				return nil, nil, err
			}
		}
		time.Sleep(50 * time.Millisecond)
		if n := db.Metrics().Flushes; n != 0 {
			t.Errorf("%d flushes", n)
		}
		return nil, nil, nil
	}
	if _, err := r.round(ctx, 10, input); err != nil {
		t.Fatal(err)
	}
	for db.Metrics().Flushes == 0 {
		time.Sleep(time.Millisecond)
	}
}

func TestProgress(t *testing.T) {
	var calls atomic.Int64
	c := Config{Workload: narrow(), Rows: 20_000, Threads: 2, BatchRows: 10, Memory: 1 << 20, Interval: time.Microsecond}
	c.Progress = func(p Progress) {
		calls.Add(1)
		if p.Op != "insert" || p.Operations < 0 || p.Operations > 20_000 || p.Rows > 20_000 || p.Seconds < 0 {
			t.Errorf("%+v", p)
		}
	}
	if _, err := newRunner(t, c).Run(ctx, "insert"); err != nil {
		t.Fatal(err)
	}
	if calls.Load() == 0 {
		t.Error("no progress")
	}
}

// A table of other columns is refused, and a batch that the engine refuses ends the
// operation.
func TestFaults(t *testing.T) {
	r := newRunner(t, Config{Workload: narrow(), Rows: 10, Threads: 2, BatchRows: 10, Memory: 1 << 20})
	other := *cpu()
	other.Name = "narrow"
	if _, err := New(Config{Workload: &other}, r.db); err == nil {
		t.Error("a table of other columns was taken")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := r.Run(ended, "insert"); err == nil {
		t.Error("it ran after its context ended")
	}
}

func TestReadSizes(t *testing.T) {
	dir := t.TempDir()
	db, err := minikudu.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var got []int64
	if err := ReadSizes(ctx, db, 2, time.Microsecond, func(r *ReadSize) error {
		got = append(got, r.Bytes)
		if r.FileReads < 2*readLeast || r.ScanReads < 2*readLeast || r.FileRate <= 0 || r.ScanRate <= 0 || r.CacheHits < 0 || r.CacheHits > 1 {
			t.Errorf("%+v", r)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, readSizes) {
		t.Errorf("sizes %v", got)
	}
}
