package minikudu_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// flushStep reports whether a call is a step of a flush at which the log is not held.
func flushStep(c errorfs.Call) bool {
	switch c.Op {
	case errorfs.OpCreate, errorfs.OpWrite, errorfs.OpSync, errorfs.OpSyncDir, errorfs.OpClose, errorfs.OpRemove:
		return c.Kind == vfs.KindRowSet || c.Kind == vfs.KindManifest || c.Kind == vfs.KindDir
	}
	return false
}

// At each step of a flush a row is inserted and everything is read, by a get, a scan
// and a count.
func TestItem71InsertsAtEachStepOfAFlush(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem())
	r := newRig(t, minikudu.Options{FS: fs, RowSetBytes: 4096}, kvSpec())
	for k := range 1000 {
		r.insert([]any{k, k})
	}
	next := 1000
	var busy sync.Mutex
	fs.SetHook(func(c errorfs.Call) error {
		if !flushStep(c) || !busy.TryLock() {
			return nil
		}
		defer busy.Unlock()
		r.insert([]any{next, next})
		next++
		var b minikudu.WriteBatch
		b.Insert(r.tab, next%1000, 0)
		if _, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrAlreadyPresent) {
			t.Errorf("at %v: a live key inserted again: %v", c, err)
		}
		if n, err := r.tab.Count(ctx, nil); err != nil || n != int64(next) {
			t.Errorf("at %v: count %d, want %d, %v", c, n, next, err)
		}
		if n := count(t, r.tab, minikudu.Query{}); n != next {
			t.Errorf("at %v: scan of %d rows, want %d", c, n, next)
		}
		for _, k := range []int{0, 500, 999, next - 1} {
			if row, err := r.tab.Get(ctx, k); err != nil || row.Value("val") != int64(k) {
				t.Errorf("at %v: get of %d: %v, %v", c, k, row, err)
			}
		}
		return nil
	})
	r.flush()
	fs.SetHook(nil)
	busy.Lock() // until a call of the background has ended
	defer busy.Unlock()
	if next < 1006 {
		t.Fatalf("the flush had only %d steps", next-1000)
	}
	check := func(when string) {
		t.Helper()
		got := r.rows(minikudu.Query{Order: minikudu.KeyOrder})
		if len(got) != next {
			t.Fatalf("%s: %d rows, want %d", when, len(got), next)
		}
		for k, row := range got {
			if row[0] != int64(k) || row[1] != int64(k) {
				t.Fatalf("%s: row %d is %v", when, k, row)
			}
		}
	}
	check("after the flush")
	r.restart()
	check("after a restart")
	r.flush()
	check("after a second flush")
}

// A scan in progress returns the rows of its snapshot whatever happens meanwhile.
func TestItem72ScanKeepsItsSnapshot(t *testing.T) {
	for _, o := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			r := newRig(t, minikudu.Options{RowSetBytes: 4096, MaxOpenFiles: 4}, kvSpec())
			for k := range 300 {
				if k == 100 {
					r.flush()
				}
				r.insert([]any{2 * k, k})
			}
			want := r.rows(minikudu.Query{Order: o})
			for _, at := range []int{0, 1, 5, 29} { // batches read before the change
				next, stop := iter.Pull2(r.tab.Scan(ctx, minikudu.Query{Order: o, BatchRows: 10}))
				var got [][]any
				for i := 0; ; i++ {
					if i == at+1 {
						odd := int(r.tab.Rows())*2 + 1001
						r.insert([]any{odd, 0}, []any{-odd, 0}, []any{2*i + 1 + 100*at, 0})
						r.flush()
					}
					b, err, ok := next()
					if err != nil {
						t.Fatal(err)
					}
					if !ok {
						break
					}
					for k := range b.Len() {
						got = append(got, b.Row(k))
					}
				}
				stop()
				sameList(t, fmt.Sprintf("a scan with a flush after batch %d", at), got, want)
				want = r.rows(minikudu.Query{Order: o})
			}
		})
	}
}

func TestItem85ResumedOrderedScan(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	for set := range 5 { // overlapping rowsets
		for i := range 40 {
			r.insert([]any{set*20 + i*7*5 + set, set})
		}
		r.flush()
	}
	for i := range 40 {
		r.insert([]any{-1 - 3*i, i})
	}
	whole := r.rows(minikudu.Query{Order: minikudu.KeyOrder})
	if len(whole) != 240 {
		t.Fatalf("%d rows", len(whole))
	}
	var resumed [][]any
	var where minikudu.Expr
	for i := 0; ; i++ {
		part := r.rows(minikudu.Query{Order: minikudu.KeyOrder, Limit: 7, Where: where})
		resumed = append(resumed, part...)
		if len(part) < 7 {
			break
		}
		where = predicate.Gt("key", part[6][0])
		if i == 10 {
			r.flush()
		}
	}
	sameList(t, "batches of 7", resumed, whole)
	sameList(t, "limit 10", r.rows(minikudu.Query{Order: minikudu.KeyOrder, Limit: 10}), whole[:10])
	slices.Reverse(whole)
	sameList(t, "limit 10 in reverse", r.rows(minikudu.Query{Order: minikudu.KeyReverse, Limit: 10}), whole[:10])
	for _, limit := range []int64{1, 239, 240, 241} {
		if n := count(t, r.tab, minikudu.Query{Limit: limit}); int64(n) != min(limit, 240) {
			t.Errorf("limit %d gave %d rows", limit, n)
		}
	}
}

// Readers beside a flush on a slow disk never miss a row.
func TestC43ReadsDuringASlowFlush(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem())
	r := newRig(t, minikudu.Options{FS: fs, RowSetBytes: 2048}, kvSpec())
	const n = 500
	for k := range n {
		r.insert([]any{k, k})
	}
	var done atomic.Bool
	var looks [3]int
	var readers sync.WaitGroup
	loop := func(i int, look func() (int, error)) {
		readers.Go(func() {
			for ; !done.Load(); looks[i]++ {
				if got, err := look(); err != nil || got != n {
					t.Errorf("reader %d found %d rows, want %d (%v)", i, got, n, err)
					return
				}
			}
		})
	}
	loop(0, func() (int, error) { c, err := r.tab.Count(ctx, nil); return int(c), err })
	loop(1, func() (found int, err error) {
		for b, err := range r.tab.Scan(ctx, minikudu.Query{Order: minikudu.KeyOrder, BatchRows: 50}) {
			if err != nil {
				return found, err
			}
			found += b.Len()
		}
		return found, nil
	})
	loop(2, func() (int, error) {
		for k := range n {
			if _, err := r.tab.Get(ctx, k); err != nil {
				return k, err
			}
		}
		return n, nil
	})
	fs.SetHook(func(c errorfs.Call) error {
		if flushStep(c) {
			time.Sleep(2 * time.Millisecond)
		}
		return nil
	})
	r.flush()
	done.Store(true)
	readers.Wait()
	for i, k := range looks {
		if k < 2 {
			t.Errorf("reader %d looked %d times only", i, k)
		}
	}
}

func TestC45FlushesOfNothingLeaveNoFile(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	grew := func(rowsets, segments int) {
		t.Helper()
		if n := r.rowsetFiles(); n != rowsets {
			t.Fatalf("%d rowset files, want %d", n, rowsets)
		}
		// The manifest, its lock, the log's segment in use and the one made ahead.
		if n := len(r.files()) - rowsets; n > 4+2+segments {
			t.Fatalf("files %v", r.files())
		}
	}
	for range 1000 {
		r.flush()
	}
	grew(0, 0)
	r.insert([]any{1, 1})
	for range 100 {
		r.flush()
	}
	grew(1, 0)
	for range 5 {
		r.restart()
		r.flush()
	}
	grew(1, 1)
	sameSet(t, "rows", r.rows(minikudu.Query{}), [][]any{{int64(1), int64(1)}})
}

// Files that a scan reads outlive a drop of their table, and no longer than the scan.
func TestC56DroppedFilesGoWithTheirLastReader(t *testing.T) {
	r := newRig(t, minikudu.Options{RowSetBytes: 2048, MaxOpenFiles: 4}, kvSpec())
	for k := range 2000 {
		r.insert([]any{k, k})
	}
	r.flush()
	next, stop := iter.Pull2(r.tab.Scan(ctx, minikudu.Query{BatchRows: 100}))
	first, err, ok := next()
	if !ok || err != nil {
		t.Fatal(err)
	}
	rows := first.Len()
	if err := r.db.DropTable(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	for {
		b, err, ok := next()
		if err != nil {
			t.Fatalf("the scan of a dropped table failed after %d rows: %v", rows, err)
		}
		if !ok {
			break
		}
		rows += b.Len()
	}
	stop()
	if rows != 2000 {
		t.Fatalf("%d rows of the dropped table, want 2000", rows)
	}
	waitFor(t, "the files of the dropped table to go", func() bool { return r.rowsetFiles() == 0 })
	if got := r.db.Metrics(); got.OpenFiles != 0 || got.RowSetBytes != 0 {
		t.Errorf("metrics %+v", got)
	}
}

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for range 10_000 {
		if done() {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}

// Many small flushes keep working: few open files, every key found.
func TestC95ManySmallFlushes(t *testing.T) {
	flushes := 150
	if testing.Short() {
		flushes = 40
	}
	r := newRig(t, minikudu.Options{MaxOpenFiles: 4}, kvSpec())
	for i := range flushes {
		var b minikudu.WriteBatch
		for k := range 10 {
			b.Insert(r.tab, k*flushes+i, i)
		}
		r.commit(&b)
		r.flush()
	}
	check := func() {
		t.Helper()
		if n := count(t, r.tab, minikudu.Query{}); n != 10*flushes {
			t.Fatalf("%d rows, want %d", n, 10*flushes)
		}
		if open := r.db.Metrics().OpenFiles; open > 4 {
			t.Fatalf("%d open files", open)
		}
		for k := 0; k < 10*flushes; k += 37 {
			if row, err := r.tab.Get(ctx, k); err != nil || row.Value("val") != int64(k%flushes) {
				t.Fatalf("get of %d: %v, %v", k, row, err)
			}
		}
	}
	check()
	r.restart()
	check()
}
