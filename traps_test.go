package minikudu_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// A reader that began after a commit sees it, whatever is rotated and flushed meanwhile.
func TestTrap1SnapshotBeforeStores(t *testing.T) {
	r := newRig(t, minikudu.Options{Durability: minikudu.NoSync}, kvSpec())
	var done atomic.Bool
	var flusher sync.WaitGroup
	flusher.Go(func() {
		for !done.Load() {
			if err := r.tab.Flush(ctx); err != nil {
				t.Error(err)
				return
			}
		}
	})
	rows := 300
	if testing.Short() {
		rows = 60
	}
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := range rows {
				k := w*rows + i
				var b minikudu.WriteBatch
				b.Insert(r.tab, k, k)
				if _, err := r.db.Commit(ctx, &b, nil); err != nil {
					t.Error(err)
					return
				}
				if _, err := r.tab.Get(ctx, k); err != nil {
					t.Errorf("get of %d after its commit: %v", k, err)
				}
				own, err := r.tab.Count(ctx, predicate.Between("key", w*rows, w*rows+rows-1))
				if err != nil || own != int64(i+1) {
					t.Errorf("%d rows after %d commits, %v", own, i+1, err)
					return
				}
			}
		})
	}
	writers.Wait()
	done.Store(true)
	flusher.Wait()
}

// Rows that are being added share bitmap words with published ones.
func TestTrap2ValidityBitsBesideAWriter(t *testing.T) {
	spec := table([]string{"k"}, col("k", schema.Int64), null(col("a", schema.Int32)), null(col("flag", schema.Bool)), null(col("s", schema.String)))
	r := newRig(t, minikudu.Options{Durability: minikudu.NoSync}, spec)
	n := 3000
	if testing.Short() {
		n = 500
	}
	cells := func(k int) []any {
		row := []any{int64(k), nil, nil, nil}
		if k%3 == 0 {
			row[1] = int64(k)
		}
		if k%2 == 0 {
			row[2] = k%4 == 0
		}
		if k%5 != 0 {
			row[3] = fmt.Sprint(k)
		}
		return row
	}
	var done atomic.Bool
	var readers sync.WaitGroup
	for _, o := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder} {
		readers.Go(func() {
			for !done.Load() {
				for b, err := range r.tab.Scan(ctx, minikudu.Query{Order: o}) {
					for i := 0; err == nil && i < b.Len(); i++ {
						if got, want := show(b.Row(i)), show(cells(int(b.Column(0).Int64s()[i]))); got != want {
							err = fmt.Errorf("row %s, want %s", got, want)
						}
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for k := range n {
		r.insert(cells(k))
	}
	done.Store(true)
	readers.Wait()
}

// Aggregates beside inserts and flushes: metadata must not count what a snapshot lacks.
func TestTrap3MetadataBesideInserts(t *testing.T) {
	r := newRig(t, minikudu.Options{Durability: minikudu.NoSync, FlushBytes: 4096}, kvSpec())
	var done atomic.Bool
	var reader sync.WaitGroup
	reader.Go(func() {
		for !done.Load() {
			b, err := r.tab.Aggregate(ctx, minikudu.Query{}, nil, minikudu.Count(), minikudu.Sum("val"), minikudu.Max("key"))
			if err != nil {
				t.Error(err)
				return
			}
			n := b.Column(0).Int64s()[0]
			if row := b.Row(0); n > 0 && (row[1] != n || row[2] != n-1) { // every row adds 1, keys ascend
				t.Errorf("aggregates %v", row)
				return
			}
		}
	})
	for k := range 2000 {
		r.insert([]any{k, 1})
	}
	done.Store(true)
	reader.Wait()
}

// failOnce returns a hook that fails the first call of an operation on a kind of file.
func failOnce(err error, op errorfs.Op, kind vfs.Kind) errorfs.Hook {
	return errorfs.Fail(err, 1, 1, func(c errorfs.Call) bool { return c.Op == op && c.Kind == kind })
}

// A manifest whose sync failed takes no edits; that must not make writers wait for
// memory that no flush can free, or pile up files.
func TestTrap5FailedSyncOfTheManifestStopsWrites(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem())
	r := newRig(t, minikudu.Options{FS: fs, MemoryBudget: 8 << 20, FlushBytes: 64 << 10}, textSpec())
	r.insert([]any{"first", "x", nil})
	fs.SetHook(failOnce(syscall.EIO, errorfs.OpSync, vfs.KindManifest))
	if err := r.tab.Flush(ctx); !errors.Is(err, syscall.EIO) {
		t.Fatalf("a flush whose publication failed: %v", err)
	}
	files := r.rowsetFiles()
	begin := time.Now()
	var err error
	for i := range 200 {
		var b minikudu.WriteBatch
		b.Insert(r.tab, fmt.Sprint(i), strings.Repeat("y", 60000), nil)
		if _, err = r.db.Commit(ctx, &b, nil); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.EIO) || time.Since(begin) > 5*time.Second {
		t.Fatalf("writes after a failed manifest: %v after %v", err, time.Since(begin))
	}
	if err := r.tab.Flush(ctx); !errors.Is(err, syscall.EIO) {
		t.Fatalf("a second flush: %v", err)
	}
	if n := r.rowsetFiles(); n > files+1 { // a background flush may have been waiting
		t.Fatalf("%d files, %d before", n, files)
	}
	_ = r.db.Close()
	r.reopen()
	if got := r.rows(minikudu.Query{Where: predicate.Eq("k", "first")}); len(got) != 1 {
		t.Fatalf("rows %v", got)
	}
	if n := count(t, r.tab, minikudu.Query{}); int64(n) != r.tab.Rows() {
		t.Fatalf("%d rows, %d by metadata", n, r.tab.Rows())
	}
}

// Resource errors are reported as such and go away by themselves.
func TestTrap5ResourceErrorsAreNoDamage(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem())
	r := newRig(t, minikudu.Options{FS: fs}, kvSpec())
	r.insert([]any{1, 1})
	for _, c := range []struct {
		op    errorfs.Op
		kind  vfs.Kind
		times int64
	}{{errorfs.OpCreate, vfs.KindRowSet, 1000}, {errorfs.OpWrite, vfs.KindRowSet, 1000}, {errorfs.OpWrite, vfs.KindManifest, 1}} {
		fs.SetHook(errorfs.Fail(syscall.ENOSPC, 1, c.times, func(call errorfs.Call) bool { return call.Op == c.op && call.Kind == c.kind }))
		err := r.tab.Flush(ctx) // the background may have been first, and met the only failure
		if !errors.Is(err, syscall.ENOSPC) && !(err == nil && c.times == 1) || errors.Is(err, minikudu.ErrCorruption) {
			t.Fatalf("%v of kind %v on a full disk: %v", c.op, c.kind, err)
		}
		fs.SetHook(nil)
		waitFor(t, "the files of failed flushes to go", func() bool { return r.rowsetFiles() == r.db.Metrics().RowSets })
		r.insert([]any{int(10+c.op) + int(c.kind)*100, 1})
	}
	r.flush()
	r.restart()
	fs.SetHook(errorfs.Fail(syscall.EMFILE, 1, 1, func(c errorfs.Call) bool { return c.Op == errorfs.OpOpen && c.Kind == vfs.KindRowSet }))
	if _, err := r.tab.Get(ctx, 1); err != nil && (!errors.Is(err, syscall.EMFILE) || errors.Is(err, minikudu.ErrCorruption) || errors.Is(err, minikudu.ErrNotFound)) {
		t.Fatalf("get without descriptors: %v", err)
	}
	if n := count(t, r.tab, minikudu.Query{}); n != 4 {
		t.Fatalf("%d rows, want 4", n)
	}
}

// Batches of wide cells are cut by bytes.
func TestTrap6BatchesAreCutByBytes(t *testing.T) {
	r := newRig(t, minikudu.Options{}, table([]string{"k"}, col("k", schema.Int32), col("s", schema.String), col("word", schema.String)))
	const n = 600 // of 64 KiB: 37 MiB
	for half := range 2 {
		for i := 0; i < n/2; i += 50 {
			var b minikudu.WriteBatch
			for k := i; k < i+50; k++ {
				b.Insert(r.tab, 2*k+half, strings.Repeat(string(rune('a'+k%26)), 65000)+fmt.Sprint(k), strings.Repeat("w", 60000))
			}
			r.commit(&b)
		}
		if half == 0 {
			r.flush()
		}
	}
	for _, o := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse} {
		rows, largest := 0, 0
		for b, err := range r.tab.Scan(ctx, minikudu.Query{Order: o}) {
			if err != nil {
				t.Fatal(err)
			}
			rows += b.Len()
			bytes := 0
			for k := range b.Len() {
				bytes += len(b.Column(1).BytesAt(k)) + len(b.Column(2).BytesAt(k))
			}
			largest = max(largest, bytes)
		}
		if rows != n || largest > 8<<20 {
			t.Errorf("order %v: %d rows, a batch of %d bytes", o, rows, largest)
		}
	}
}
