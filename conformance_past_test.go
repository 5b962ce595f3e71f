package minikudu_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/manifest"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// atCalls runs a job and calls do at its calls of files, with their numbers from 1, but for
// those that remove files: these come in the background too, and while do runs at one, the
// job goes on. It returns how many there were.
func (r *rig) atCalls(fs *errorfs.FS, job func(), do func(call int)) (calls int) {
	var busy sync.Mutex // held by do, whose own calls do not count
	over := false
	fs.SetHook(func(c errorfs.Call) error {
		if !c.Op.Writes() || c.Op == errorfs.OpRemove || c.Kind == vfs.KindLog || !busy.TryLock() {
			return nil
		}
		defer busy.Unlock()
		if !over {
			calls++
			do(calls)
		}
		return nil
	})
	job()
	fs.SetHook(nil)
	busy.Lock()
	defer busy.Unlock()
	over = true
	return calls
}

// A snapshot of a row that was deleted since keeps it through a compaction, of which it is
// let go at any call.
func TestC40SnapshotReleasedDuringACompaction(t *testing.T) {
	for k, calls := 0, 1; k <= calls; k++ { // 0: not at all
		fs := errorfs.Wrap(vfs.NewMem())
		r := newRig(t, minikudu.Options{FS: fs}, forgetful(kvSpec()))
		r.insert([]any{1, 1}, []any{2, 2})
		r.flush()
		r.insert([]any{0, 0}, []any{3, 3})
		r.flush()
		s, err := r.db.Snapshot()
		fatal(t, err)
		at := s.Timestamp()
		r.do(minikudu.OpUpdate, kv(2, 3))
		r.do(minikudu.OpDelete, key(1))
		r.flush()
		r.asOf(at, row(0, 0), row(1, 1), row(2, 2), row(3, 3))
		calls = r.atCalls(fs, func() { r.compact() }, func(call int) {
			if call == k {
				s.Close()
			}
		})
		if calls < 5 {
			t.Fatalf("a compaction of %d calls", calls)
		}
		r.is(row(0, 0), row(2, 3), row(3, 3))
		if k == 0 {
			r.asOf(at, row(0, 0), row(1, 1), row(2, 2), row(3, 3))
		}
		s.Close()
		r.expired(at)
		r.compact()
		r.is(row(0, 0), row(2, 3), row(3, 3))
		r.gone(0, 1)
		if n := r.rowsetFiles(); n != 1 {
			t.Fatalf("%d files once the snapshot was let go at call %d of %d", n, k, calls)
		}
	}
}

// A snapshot that is taken at any call of a flush, fold or compaction that keeps no other
// history holds what was there then.
func TestC40SnapshotTakenDuringACompaction(t *testing.T) {
	for name, job := range map[string]func(*rig){"flush": (*rig).flush, "fold": func(r *rig) { r.fold() }, "compaction": func(r *rig) { r.compact() }} {
		for k, calls := 1, 1; k <= calls; k++ {
			fs := errorfs.Wrap(vfs.NewMem())
			r := newRig(t, minikudu.Options{FS: fs}, forgetful(kvSpec()))
			r.insert([]any{1, 1}, []any{2, 2}, []any{3, 3})
			r.flush()
			r.do(minikudu.OpUpdate, kv(2, 20))
			r.do(minikudu.OpDelete, key(1))
			if name != "flush" {
				r.flush()
			}
			var s *minikudu.Snapshot
			calls = r.atCalls(fs, func() { job(r) }, func(call int) {
				if call == k {
					r.do(minikudu.OpInsert, kv(1, 10))
					var err error
					if s, err = r.db.Snapshot(); err != nil {
						t.Error(err)
					}
					r.do(minikudu.OpDelete, key(1))
					r.do(minikudu.OpUpdate, kv(2, 21))
				}
			})
			if s == nil {
				continue // a call fewer than the time before
			}
			for range 3 {
				r.is(row(2, 21), row(3, 3))
				r.asOf(s.Timestamp(), row(1, 10), row(2, 20), row(3, 3))
				r.compact()
			}
			s.Close()
			r.compact()
			r.is(row(2, 21), row(3, 3))
		}
	}
}

// Snapshots that are taken and let go at random, of a table that keeps no other history.
func TestC40ManyRandomSnapshots(t *testing.T) {
	type held struct {
		s    *minikudu.Snapshot
		rows [][]any
	}
	r := newRig(t, minikudu.Options{Durability: minikudu.NoSync}, forgetful(kvSpec()))
	dice := testkit.Rand(t)
	rows := map[int]int{}
	now := func() (out [][]any) {
		for _, k := range slices.Sorted(maps.Keys(rows)) {
			out = append(out, row(k, rows[k]))
		}
		return out
	}
	n := 1000
	if testing.Short() {
		n = 150
	}
	var all []held
	for i := range n {
		for range dice.IntN(4) {
			k := dice.IntN(6)
			if _, live := rows[k]; live && dice.IntN(2) == 0 {
				r.do(minikudu.OpDelete, key(k))
				delete(rows, k)
			} else {
				r.do(minikudu.OpUpsert, kv(k, i))
				rows[k] = i
			}
		}
		s, err := r.db.Snapshot()
		fatal(t, err)
		all = append(all, held{s, now()})
		switch dice.IntN(12) {
		case 0, 1:
			r.flush()
		case 2:
			r.fold()
		case 3:
			r.compact()
		}
		for len(all) > 1+dice.IntN(40) {
			k := dice.IntN(len(all))
			all[k].s.Close()
			all = slices.Delete(all, k, k+1)
		}
		h := all[dice.IntN(len(all))]
		r.asOf(h.s.Timestamp(), h.rows...)
	}
	r.is(now()...)
	for _, h := range all {
		r.asOf(h.s.Timestamp(), h.rows...)
		h.s.Close()
	}
	for range 3 {
		r.compact()
	}
	r.is(now()...)
	if files := r.deltaFiles(); files != 0 {
		t.Errorf("%d files of history that nobody needs", files)
	}
}

// Two live rows of one key, which cannot be, are planted by an edit of the manifest that
// forgets a deletion. What meets them fails and names the key and the rowsets; the rest
// of the store goes on.
func TestC33TwoLiveRowsOfAKey(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, minikudu.Options{FS: mem}, kvSpec())
	_, err := r.db.CreateTable(ctx, "other", kvSpec())
	fatal(t, err)
	for k := range 5 {
		r.insert([]any{k, k})
	}
	r.flush()
	r.do(minikudu.OpDelete, key(3))
	r.insert([]any{3, 30}, []any{9, 9})
	r.flush()
	r.is(row(0, 0), row(1, 1), row(2, 2), row(3, 30), row(4, 4), row(9, 9))
	mustClose(t, r.db)
	m, err := manifest.Open(mem, "db", false)
	fatal(t, err)
	var names []string
	for tablet, sets := range m.State().RowSets {
		for _, meta := range sets {
			names = append(names, fmt.Sprintf("%010d", meta.Files()[0]))
			if len(meta.Redo) == 0 {
				continue
			}
			c := *meta
			file := c.Redo[0].Section.File
			c.Redo, c.LiveRows = nil, c.Rows
			fatal(t, m.Apply(ctx, &manifest.Edit{UpdateRowSets: []manifest.TabletRowSet{{Tablet: tablet, Meta: &c}}, RemoveFiles: []rowset.FileNum{file}}))
		}
	}
	fatal(t, m.Close())
	r.reopen()
	_, err = r.tab.Compact(ctx)
	if !errors.Is(err, minikudu.ErrCorruption) {
		t.Fatalf("a compaction of two live rows of a key: %v", err)
	}
	keyBytes := "80000003"
	for _, part := range append(names, keyBytes, `"t"`) {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	other, err := r.db.Table("other")
	fatal(t, err)
	var b minikudu.WriteBatch
	b.Insert(other, 1, 1)
	r.commit(&b)
	fatal(t, other.Flush(ctx))
	if _, err := other.Compact(ctx); err != nil || other.Rows() != 1 {
		t.Errorf("%d rows of the other table, %v", other.Rows(), err)
	}
	if got, err := r.tab.Get(ctx, 1); err != nil || got.Value("val") != int64(1) {
		t.Errorf("another row: %v, %v", got, err)
	}
	if n, err := r.tab.Count(ctx, predicate.Eq("key", 9)); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// A merge does not drop an input for which a table without rows would be left by a delete
// that can still be read, and it drops one whose rows have all expired.
func TestC42MergesOfExpiredRows(t *testing.T) {
	c := newClocked(t, minikudu.Options{}, kvSpec())
	for k := range 3 {
		c.insert([]any{k, k})
		c.flush()
	}
	last := c.db.Now()
	for k := range 3 {
		c.do(minikudu.OpDelete, key(k))
	}
	c.compact()
	c.is()
	c.asOf(last, row(0, 0), row(1, 1), row(2, 2))
	if c.rowsetFiles() == 0 {
		t.Fatal("the rows of the past are gone")
	}
	c.pass(time.Hour)
	c.insert([]any{7, 7})
	if res := c.compact(); res.RowsDropped != 3 || c.rowsetFiles() != 1 {
		t.Fatalf("%+v, %d files", res, c.rowsetFiles())
	}
	c.expired(last)
	for range 2 {
		c.is(row(7, 7))
		c.restart()
	}
}

// One scan stays open while the table is rewritten many times. What only it needs goes
// when it ends, without new writes.
func TestC56RewritesBesideAnOpenScan(t *testing.T) {
	for _, order := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder} {
		r := newRig(t, minikudu.Options{RowSetBytes: 64 << 10}, forgetful(kvSpec()))
		const n = 5000
		r.updateUpsert(n, 0)
		r.flush()
		next, stop := iter.Pull2(r.tab.Scan(ctx, minikudu.Query{Order: order, BatchRows: 100}))
		defer stop()
		got := 0
		read := func() bool {
			b, err, more := next()
			fatal(t, err)
			if !more {
				return false
			}
			for i := range b.Len() {
				if b.Row(i)[1] != int64(0) {
					t.Fatalf("the scan sees %v", b.Row(i))
				}
			}
			got += b.Len()
			return true
		}
		read()
		settled := 0
		for round := range 20 {
			r.updateUpsert(n, round+1)
			r.insert([]any{-1 - round, 0}, []any{n + round, 0}) // a rowset over all keys, so that they are merged
			r.compact()
			if round == 0 {
				settled = r.rowsetFiles()
			}
		}
		during := r.rowsetFiles()
		for read() {
		}
		if got != n {
			t.Fatalf("the scan has %d rows", got)
		}
		waitFor(t, "the files that only the scan needed to go", func() bool { return r.rowsetFiles() < during })
		for range 2 { // its history goes with the next compaction
			r.compact()
		}
		if left := r.rowsetFiles(); left > settled {
			t.Errorf("%d files are left, %d while the scan was open, %d after the first rewrite", left, during, settled)
		}
		if n := r.deltaFiles(); n != 0 {
			t.Errorf("%d files of history are left", n)
		}
	}
}

// A count as of the past, groups and projections without columns of a table whose rows are
// all deleted now, and of one that was empty then.
func TestC61C62AggregatesOfThePast(t *testing.T) {
	var before, full, empty minikudu.Timestamp
	eachPast(t, kvSpec(), func(r *rig, step func()) {
		full = r.insert([]any{1, 10}, []any{2, 20}, []any{3, nil}).Timestamp
		before = full - 1
		step()
		for k := 1; k <= 3; k++ {
			empty = r.do(minikudu.OpDelete, key(k)).Timestamp
			step()
		}
	}, func(r *rig) {
		for at, want := range map[minikudu.Timestamp]string{before: "[0 0 <nil> <nil> <nil>]", full: "[3 2 10 20 30]", empty: "[0 0 <nil> <nil> <nil>]"} {
			b, err := r.tab.Aggregate(ctx, minikudu.Query{AsOf: at}, nil, minikudu.Count(), minikudu.CountOf("val"), minikudu.Min("val"), minikudu.Max("val"), minikudu.Sum("val"))
			if err != nil || fmt.Sprint(b.Row(0)) != want {
				r.Fatalf("as of %d: %v, %v, want %s", at, b.Row(0), err, want)
			}
			rows := 0
			for b, err := range r.tab.Scan(ctx, minikudu.Query{AsOf: at, Columns: []string{}}) {
				fatal(r, err)
				rows += b.Len()
			}
			if fmt.Sprint(rows) != want[1:2] {
				r.Fatalf("as of %d: %d rows without columns", at, rows)
			}
			g, err := r.tab.Aggregate(ctx, minikudu.Query{AsOf: at}, []string{"key"}, minikudu.Count())
			if err != nil || fmt.Sprint(g.Len()) != want[1:2] {
				r.Fatalf("as of %d: %v groups, %v", at, g, err)
			}
		}
	})
}

// After Close, and during it, calls that read the past are ErrClosed.
func TestC54ThePastAfterClose(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	at := r.insert([]any{1, 1}).Timestamp
	s, err := r.db.Snapshot()
	fatal(t, err)
	mustClose(t, r.db)
	s.Close() // of no consequence
	_, get := r.tab.GetAsOf(ctx, at, 1)
	_, snapshot := r.db.Snapshot()
	_, snapshotAt := r.db.SnapshotAt(at)
	_, pin := r.db.Pin(ctx, "p", 0)
	_, scan := collect(r.tab, minikudu.Query{AsOf: at})
	var diff error
	for _, err := range r.tab.Diff(ctx, minikudu.DiffQuery{From: at}) {
		diff = err
	}
	for what, err := range map[string]error{"get": get, "snapshot": snapshot, "snapshot of the past": snapshotAt, "pin": pin, "scan": scan, "diff": diff,
		"unpin": r.db.Unpin(ctx, "p"), "fold": r.tab.CompactDeltas(ctx)} {
		if !errors.Is(err, minikudu.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What was deleted or rewritten takes space as long as it is history, and no longer.
func TestC96SpaceOfExpiredHistory(t *testing.T) {
	c := newClocked(t, minikudu.Options{}, textSpec())
	bytes := func() (n int64) {
		for _, f := range c.files() {
			if strings.HasPrefix(f, "data/") {
				info, err := c.fs.Stat(c.fs.Join("db", f))
				fatal(t, err)
				n += info.Size()
			}
		}
		return n
	}
	dice := testkit.Rand(t)
	text := func(n int) string {
		out := make([]byte, n)
		for i := range out {
			out[i] = 'a' + byte(dice.IntN(26))
		}
		return string(out)
	}
	var b minikudu.WriteBatch
	for i := range 1000 {
		b.Insert(c.tab, fmt.Sprint("key", i), text(500), nil)
	}
	loaded := c.commit(&b).Timestamp
	c.flush()
	full := bytes()
	if _, err := c.db.DeleteWhere(ctx, c.tab, predicate.Ne("k", "key7"), nil); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		c.do(minikudu.OpUpdate, map[string]any{"k": "key7", "s": text(5000)})
		c.flush()
	}
	c.compact()
	if n := bytes(); n < full {
		t.Fatalf("%d bytes of %d, while all of it is history", n, full)
	}
	if n := len(c.rows(minikudu.Query{AsOf: loaded})); n != 1000 {
		t.Fatalf("%d rows before", n)
	}
	c.pass(minikudu.DefaultHistory + time.Second)
	c.do(minikudu.OpUpdate, map[string]any{"k": "key7", "s": text(5000)})
	c.pass(minikudu.DefaultHistory + time.Second)
	for range 2 {
		c.compact()
	}
	if n := bytes(); n > full/20 {
		t.Errorf("%d bytes for one row, %d when there were 1000", n, full)
	}
	if rows := c.tab.Rows(); rows != 1 {
		t.Errorf("%d rows", rows)
	}
}
