package minikudu_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// asOf returns the rows of a table at a time, by key, and checks that the other ways to
// read them agree.
func asOf(t *testing.T, tab *minikudu.Table, at minikudu.Timestamp) string {
	t.Helper()
	rows := fmt.Sprint(scanRows(t, tab, minikudu.Query{AsOf: at, Order: minikudu.KeyOrder}))
	back := scanRows(t, tab, minikudu.Query{AsOf: at, Order: minikudu.KeyReverse})
	slices.Reverse(back)
	if fmt.Sprint(back) != rows {
		t.Fatalf("as of %d: in reverse there are other rows", at)
	}
	n, err := tab.Aggregate(ctx, minikudu.Query{AsOf: at}, nil, minikudu.Count())
	if err != nil || int(n.Column(0).Int64s()[0]) != len(back) {
		t.Fatalf("as of %d: count %v, %v, want %d", at, n, err, len(back))
	}
	return rows
}

// A held snapshot gives the same answer before, during and after flushes, updates and
// deletes of every row, every compaction, and by its timestamp after a restart.
func TestHeldSnapshotThroughEverything(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem())
	r := newRig(t, minikudu.Options{FS: fs, MemoryBudget: 16 << 20, RowSetBytes: 64 << 10}, changeSpec())
	const n = 1500
	var b minikudu.WriteBatch
	for k := range n {
		b.Add(r.tab, minikudu.OpUpsert, map[string]any{"k": k, "n": int64(k), "s": fmt.Sprint("text ", k%7)})
	}
	r.commit(&b)
	if _, err := r.db.DeleteWhere(ctx, r.tab, predicate.Lt("k", 10), nil); err != nil {
		t.Fatal(err)
	}
	s, err := r.db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	at := s.Timestamp()
	want := asOf(t, r.tab, at)
	calls := 0
	stop := watch(fs, func(c errorfs.Call) {
		if c.Kind == vfs.KindRowSet || c.Kind == vfs.KindDelta || c.Kind == vfs.KindManifest {
			if calls++; calls%5 == 0 && fmt.Sprint(scanRows(t, r.tab, minikudu.Query{AsOf: at, Order: minikudu.KeyOrder})) != want {
				t.Errorf("at %s the snapshot is another", c)
			}
		}
	})
	update := func(v int64) {
		t.Helper()
		if res, err := r.db.UpdateWhere(ctx, r.tab, nil, map[string]any{"n": v, "s": nil}, nil); err != nil || res.Matched == 0 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	compact := func() { r.compact() }
	fold := func() {
		if err := r.tab.CompactDeltas(ctx); err != nil {
			t.Fatal(err)
		}
	}
	steps := []func(){
		r.flush, func() { update(1) }, r.flush, fold, func() { update(2) }, compact, func() { update(3) }, r.flush, func() { update(4) }, r.flush, compact,
		func() {
			if _, err := r.db.DeleteWhere(ctx, r.tab, predicate.Ge("k", 100), nil); err != nil {
				t.Fatal(err)
			}
		}, r.flush, compact,
		func() {
			b.Reset()
			for k := range n {
				b.Add(r.tab, minikudu.OpUpsert, map[string]any{"k": k, "n": int64(-k)})
			}
			r.commit(&b)
		}, r.flush, compact, fold, func() { update(5) }, compact,
	}
	for i, step := range steps {
		step()
		if asOf(t, r.tab, at) != want {
			t.Fatalf("after step %d the snapshot is another", i)
		}
	}
	stop()
	s.Close()
	r.restart()
	if asOf(t, r.tab, at) != want {
		t.Fatal("after a restart the snapshot is another")
	}
	compact()
	if asOf(t, r.tab, at) != want || calls < 50 {
		t.Fatalf("in the end the snapshot is another, or there were only %d calls", calls)
	}
}

// What is older than the table's history is refused, unless a snapshot or pin holds it; a
// pin holds it over restarts.
func TestHistoryExpires(t *testing.T) {
	clock := newClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	spec := kvSpec()
	spec.History = time.Minute
	r := newRig(t, minikudu.Options{Now: clock.now}, spec)
	first := r.insert([]any{1, 1}).Timestamp
	if _, err := r.db.Pin(ctx, "first", first); err != nil {
		t.Fatal(err)
	}
	if _, err := r.db.Pin(ctx, "first", 0); !errors.Is(err, minikudu.ErrAlreadyPresent) {
		t.Fatal(err)
	}
	want := asOf(t, r.tab, first)
	clock.pass(time.Second)
	r.do(minikudu.OpUpdate, map[string]any{"key": 1, "val": 2})
	clock.pass(time.Hour)
	second := r.do(minikudu.OpUpdate, map[string]any{"key": 1, "val": 3}).Timestamp
	for _, step := range []func(){func() {}, r.flush, func() { r.compact() }, r.restart, func() { r.compact() }} {
		step()
		if asOf(t, r.tab, first) != want {
			t.Fatal("the pinned state is another")
		}
	}
	if p := r.db.Pins(); len(p) != 1 || p[0] != (minikudu.Pin{Name: "first", Timestamp: first}) {
		t.Fatal(p)
	}
	if err := r.db.Unpin(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	if err := r.db.Unpin(ctx, "first"); !errors.Is(err, minikudu.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := r.db.SnapshotAt(first); !errors.Is(err, minikudu.ErrHistoryExpired) {
		t.Fatal(err)
	}
	for range r.tab.Scan(ctx, minikudu.Query{AsOf: second}) {
	}
	if _, err := r.tab.GetAsOf(ctx, first, 1); !errors.Is(err, minikudu.ErrHistoryExpired) {
		t.Fatal(err)
	}
	if _, err := r.db.SnapshotAt(minikudu.TimestampAt(clock.now().Add(time.Second))); !errors.Is(err, minikudu.ErrInvalidArgument) {
		t.Fatal(err)
	}
}

// History that only a reader keeps is counted.
func TestPinnedHistoryIsCounted(t *testing.T) {
	clock := newClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	spec := kvSpec()
	spec.History = time.Minute
	r := newRig(t, minikudu.Options{Now: clock.now}, spec)
	at := r.insert([]any{1, 1}).Timestamp
	if _, err := r.db.Pin(ctx, "p", at); err != nil {
		t.Fatal(err)
	}
	r.do(minikudu.OpUpdate, map[string]any{"key": 1, "val": 2})
	r.flush()
	if m := r.db.Metrics(); m.HistoryBytes == 0 || m.PinnedBytes != 0 || m.OldestReader >= time.Minute {
		t.Fatalf("%+v", m)
	}
	clock.pass(time.Hour)
	r.insert([]any{2, 2})
	r.compact()
	if m := r.db.Metrics(); m.PinnedBytes == 0 || m.PinnedBytes > m.HistoryBytes || m.OldestReader < time.Hour {
		t.Fatalf("%+v", m)
	}
	if err := r.db.Unpin(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	r.compact()
	if m := r.db.Metrics(); m.PinnedBytes != 0 || m.HistoryBytes != 0 || m.OldestReader != 0 {
		t.Fatalf("%+v", m)
	}
}

// A read as of now, asked again, gives the same answer whatever was written meanwhile.
func TestReadAsOfNowIsRepeatable(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	r.insert([]any{1, 1})
	at := minikudu.TimestampAt(time.Now())
	want := asOf(t, r.tab, at)
	for k := 2; k < 20; k++ {
		if ts := r.insert([]any{k, k}).Timestamp; ts <= at {
			t.Fatalf("a commit at %d after a read at %d", ts, at)
		}
		if asOf(t, r.tab, at) != want {
			t.Fatal("the answer is another")
		}
	}
}
