package minikudu_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

func TestItem29InsertOutOfOrder(t *testing.T) {
	spec := table([]string{"a", "b"}, col("a", schema.String), col("b", schema.Int32))
	var rows, sorted [][]any
	for i := range int64(60) {
		k := i * 37 % 60
		rows = append(rows, []any{fmt.Sprint(k / 10), k % 10})
		sorted = append(sorted, []any{fmt.Sprint(i / 10), i % 10})
	}
	eachWay(t, spec, rows, func(t *testing.T, r *rig) {
		sameList(t, "key order", r.rows(minikudu.Query{Order: minikudu.KeyOrder}), sorted)
		if r.tab.Rows() != 60 {
			t.Fatalf("%d rows, want 60", r.tab.Rows())
		}
	})
}

func TestItem29CallersBufferMayBeReused(t *testing.T) {
	r := newRig(t, minikudu.Options{}, textSpec())
	buf := []byte("aaa")
	v := vector.New(schema.KindBytes, 1)
	var b minikudu.WriteBatch
	b.Insert(r.tab, buf, "1", buf)
	copy(buf, "bbb")
	b.Insert(r.tab, buf, "2", buf)
	if err := v.AppendBytes([]byte("ccc")); err != nil {
		t.Fatal(err)
	}
	if err := b.InsertColumns(r.tab, []string{"k"}, []*vector.Vector{v}); err != nil {
		t.Fatal(err)
	}
	copy(v.Data(), "xxx")
	copy(buf, "zzz")
	r.commit(&b)
	b.Reset()
	b.Insert(r.tab, "ddd", "reused", nil)
	r.commit(&b)
	want := [][]any{{"aaa", "1", []byte("aaa")}, {"bbb", "2", []byte("bbb")}, {"ccc", nil, nil}, {"ddd", "reused", nil}}
	sameList(t, "rows", r.rows(minikudu.Query{Order: minikudu.KeyOrder}), want)
}

// inserting says what an insert onto a key does.
func TestItem30And61InsertOntoLiveAndAbsentKeys(t *testing.T) {
	eachWay(t, kvSpec(), [][]any{{1, 10}, {3, 30}}, func(t *testing.T, r *rig) {
		var b minikudu.WriteBatch
		b.Insert(r.tab, 1, 11)
		b.InsertIgnore(r.tab, 3, 33)
		res, err := r.db.Commit(ctx, &b, nil)
		var rejected *minikudu.RejectedError
		if !errors.As(err, &rejected) || len(rejected.Rows) != 1 || rejected.Rows[0].Row != 0 || !errors.Is(&rejected.Rows[0], minikudu.ErrAlreadyPresent) {
			t.Fatalf("insert onto a live key: %v", err)
		}
		if *res != (minikudu.Result{Timestamp: res.Timestamp, Ignored: 1, Rejected: 1}) {
			t.Fatalf("result %+v", *res)
		}
		sameSet(t, "after inserts onto live keys", r.rows(minikudu.Query{Where: predicate.In("key", 1, 3)}), [][]any{{int64(1), int64(10)}, {int64(3), int64(30)}})
		// An absent key, once by each operation; the keys differ in each round of checks.
		base := 100 * int(r.tab.Rows())
		b.Reset()
		b.Insert(r.tab, base, 1)
		b.InsertIgnore(r.tab, base+1, 2)
		if res := r.commit(&b); res.Inserted != 2 || res.Ignored != 0 {
			t.Fatalf("result %+v", *res)
		}
		if row, err := r.tab.Get(ctx, base+1); err != nil || row.Value("val") != int64(2) {
			t.Fatalf("get: %v, %v", row, err)
		}
	})
}

func TestItem37ProjectionOfSubsets(t *testing.T) {
	spec := table([]string{"key"}, col("key", schema.Int32), null(col("a", schema.Int32)), null(col("b", schema.String)), null(col("c", schema.Double)))
	eachWay(t, spec, [][]any{{7, 1, "x", 0.5}, {8, nil, nil, nil}}, func(t *testing.T, r *rig) {
		full := map[string][2]any{"key": {int64(7), int64(8)}, "a": {int64(1), nil}, "b": {"x", nil}, "c": {0.5, nil}}
		for _, names := range [][]string{{"key", "a"}, {"b", "key"}, {"key", "c"}, {"key"}, {"c", "a", "b"}, {"a", "a"}} {
			var want [2][]any
			for _, n := range names {
				want[0], want[1] = append(want[0], full[n][0]), append(want[1], full[n][1])
			}
			for _, o := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse} {
				got := r.rows(minikudu.Query{Columns: names, Order: o})
				sameSet(t, strings.Join(names, ","), got, want[:])
			}
		}
	})
}

func TestItem40ReadersBesideAWriter(t *testing.T) {
	n := 20000
	if testing.Short() {
		n = 4000
	}
	r := newRig(t, minikudu.Options{FlushBytes: 64 << 10, RowSetBytes: 64 << 10}, table([]string{"k"}, col("k", schema.Int64), col("twice", schema.Int64), col("text", schema.String)))
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			seen := 0
			for !done.Load() {
				seen = readWhole(t, r.tab, seen)
			}
		})
	}
	var b minikudu.WriteBatch
	for i := range n {
		k := i * 7919 % n // n and 7919 have no common divisor
		b.Insert(r.tab, k, 2*k, fmt.Sprint(k))
		if b.Len() == 50 || i == n-1 {
			r.commit(&b)
			b.Reset()
		}
	}
	done.Store(true)
	readers.Wait()
	if got := readWhole(t, r.tab, 0); got != n {
		t.Fatalf("%d rows, want %d", got, n)
	}
}

// readWhole reads the table in key order and returns its rows, at least as many as
// were seen before.
func readWhole(t testing.TB, tab *minikudu.Table, before int) (n int) {
	last := int64(-1)
	for b, err := range tab.Scan(ctx, minikudu.Query{Order: minikudu.KeyOrder}) {
		if err != nil {
			t.Error(err)
			return n
		}
		keys, twice := b.Column(0).Int64s(), b.Column(1).Int64s()
		for i, k := range keys {
			if k <= last || twice[i] != 2*k || b.Column(2).StringAt(i) != fmt.Sprint(k) {
				t.Errorf("row (%d, %d, %s) after key %d", k, twice[i], b.Column(2).StringAt(i), last)
				return n
			}
			last = k
		}
		n += b.Len()
	}
	if n < before {
		t.Errorf("%d rows, %d were there before", n, before)
	}
	return n
}

func TestItem41PresenceAndErrors(t *testing.T) {
	n := int32(10000)
	fs := errorfs.Wrap(vfs.NewMem())
	r := newRig(t, minikudu.Options{FS: fs}, kvSpec())
	keys, vals := make([]int32, n), make([]int32, n)
	for i := range n {
		keys[i], vals[i] = 2*i, i
	}
	var b minikudu.WriteBatch
	if err := b.InsertColumns(r.tab, []string{"key", "val"}, []*vector.Vector{
		vector.FromFixed(schema.KindInt32, keys, nil), vector.FromFixed(schema.KindInt32, vals, nil)}); err != nil {
		t.Fatal(err)
	}
	r.commit(&b)
	for _, where := range []string{"memory", "flushed", "restarted"} {
		if got := count(t, r.tab, minikudu.Query{}); got != int(n) {
			t.Fatalf("%s: %d rows", where, got)
		}
		for _, names := range [][]string{{"key"}, {"val"}} {
			if got := count(t, r.tab, minikudu.Query{Columns: names}); got != int(n) {
				t.Fatalf("%s: %d rows of %v", where, got, names)
			}
		}
		for _, k := range []int{-1, 2 * int(n), 777} {
			if _, err := r.tab.Get(ctx, k); !errors.Is(err, minikudu.ErrNotFound) {
				t.Fatalf("%s: get of the absent key %d: %v", where, k, err)
			}
		}
		for _, k := range []int{0, 2*int(n) - 2, 776} {
			if row, err := r.tab.Get(ctx, k); err != nil || row.Value("val") != int64(k/2) {
				t.Fatalf("%s: get of key %d: %v, %v", where, k, row, err)
			}
		}
		if where == "memory" {
			r.flush()
		} else {
			r.restart()
		}
	}
	broken := errors.New("the disk is gone")
	fs.SetHook(func(c errorfs.Call) error {
		if c.Kind == vfs.KindRowSet && (c.Op == errorfs.OpRead || c.Op == errorfs.OpOpen) {
			return broken
		}
		return nil
	})
	if _, err := r.tab.Get(ctx, 776); !errors.Is(err, broken) || errors.Is(err, minikudu.ErrNotFound) {
		t.Fatalf("get with a broken disk: %v", err)
	}
	var one minikudu.WriteBatch
	one.Insert(r.tab, 776, 0)
	if _, err := r.db.Commit(ctx, &one, nil); !errors.Is(err, broken) || errors.Is(err, minikudu.ErrAlreadyPresent) {
		t.Fatalf("insert with a broken disk: %v", err)
	}
	fs.SetHook(nil)
	if got := count(t, r.tab, minikudu.Query{}); got != int(n) {
		t.Fatalf("%d rows after the failed insert", got)
	}
	if _, err := r.db.Commit(ctx, &one, nil); !errors.Is(err, minikudu.ErrAlreadyPresent) {
		t.Fatalf("insert after the disk came back: %v", err)
	}
}

func TestItem62BatchReportsPositions(t *testing.T) {
	eachWay(t, kvSpec(), [][]any{{1, 1}, {2, 2}}, func(t *testing.T, r *rig) {
		k := 1000 + 10*int(r.tab.Rows())
		var b minikudu.WriteBatch
		b.Insert(r.tab, k, 1)
		b.Insert(r.tab, k, 2)
		b.Insert(r.tab, 2, 0)
		b.Insert(r.tab, k+1, 3)
		b.InsertIgnore(r.tab, k+1, 4)
		res, err := r.db.Commit(ctx, &b, nil)
		var rejected *minikudu.RejectedError
		if !errors.As(err, &rejected) || !rejected.Applied || len(rejected.Rows) != 2 {
			t.Fatalf("error %v", err)
		}
		for i, row := range []int{1, 2} {
			if e := &rejected.Rows[i]; e.Row != row || e.Table != "t" || !errors.Is(e, minikudu.ErrAlreadyPresent) {
				t.Fatalf("rejection %d: %+v", i, *e)
			}
		}
		if res.Inserted != 2 || res.Ignored != 1 || res.Rejected != 2 {
			t.Fatalf("result %+v", *res)
		}
		want := [][]any{{int64(k), int64(1)}, {int64(k + 1), int64(3)}}
		sameList(t, "the first of each key", r.rows(minikudu.Query{Where: predicate.Ge("key", k), Order: minikudu.KeyOrder}), want)
	})
}

// defaultsSpec has columns of every combination of nullable and default.
func defaultsSpec() minikudu.TableSpec {
	withDefault := func(c minikudu.Column, v int64) minikudu.Column {
		c.Default = schema.IntValue(schema.KindInt32, v)
		return c
	}
	return table([]string{"k"}, col("k", schema.Int32), null(col("plain", schema.Int32)), withDefault(null(col("dflt", schema.Int32)), 7),
		withDefault(col("must", schema.Int32), 8), col("bare", schema.Int32))
}

func TestItem63ValidationOfInserts(t *testing.T) {
	eachWay(t, defaultsSpec(), [][]any{{1, 1, 1, 1, 1}, {2, nil, nil, 2, 2}}, func(t *testing.T, r *rig) {
		k := 100 * int(r.tab.Rows())
		good := []struct {
			row  map[string]any
			want []any
		}{
			{map[string]any{"k": k, "bare": 1}, []any{int64(k), nil, int64(7), int64(8), int64(1)}},
			{map[string]any{"k": k + 1, "bare": 1, "dflt": nil}, []any{int64(k + 1), nil, nil, int64(8), int64(1)}},
			{map[string]any{"k": k + 2, "bare": 0, "must": 0, "plain": 0}, []any{int64(k + 2), int64(0), int64(7), int64(0), int64(0)}},
		}
		var b minikudu.WriteBatch
		for _, g := range good {
			b.InsertMap(r.tab, g.row)
		}
		r.commit(&b)
		for _, g := range good {
			row, err := r.tab.Get(ctx, g.row["k"])
			if err != nil || show(row.Values()) != show(g.want) {
				t.Fatalf("%v became %v, want %v (%v)", g.row, row.Values(), g.want, err)
			}
		}
		bad := []struct {
			row    map[string]any
			column string
		}{
			{map[string]any{"k": k + 10}, "bare"},
			{map[string]any{"k": k + 10, "bare": nil}, "bare"},
			{map[string]any{"k": k + 10, "bare": 1, "must": nil}, "must"},
			{map[string]any{"bare": 1}, "k"},
			{map[string]any{"k": nil, "bare": 1}, "k"},
			{map[string]any{"k": k + 10, "bare": 1, "nosuch": 1}, "nosuch"},
			{map[string]any{"k": k + 10, "bare": int64(1) << 40}, "bare"},
			{map[string]any{"k": k + 10, "bare": "1"}, "bare"},
		}
		for _, c := range bad {
			b.Reset()
			b.InsertMap(r.tab, c.row)
			_, err := r.db.Commit(ctx, &b, nil)
			var v *schema.ValueError
			if !errors.As(err, &v) || v.Column != c.column || v.Row != 0 || !errors.Is(err, minikudu.ErrInvalidArgument) {
				t.Errorf("%v gave %v", c.row, err)
			}
		}
		if _, err := r.tab.Get(ctx, k+10); !errors.Is(err, minikudu.ErrNotFound) {
			t.Errorf("a rejected row was stored: %v", err)
		}
	})
}

func TestItem63UnknownColumnFailsTheWholeCall(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	ints := func(x ...int32) *vector.Vector { return vector.FromFixed(schema.KindInt32, x, nil) }
	var b minikudu.WriteBatch
	for name, call := range map[string]error{
		"unknown":  b.InsertColumns(r.tab, []string{"key", "nosuch"}, []*vector.Vector{ints(1, 2), ints(1, 2)}),
		"kind":     b.InsertColumns(r.tab, []string{"key", "val"}, []*vector.Vector{ints(1, 2), vector.FromFixed(schema.KindInt64, []int64{1, 2}, nil)}),
		"lengths":  b.InsertColumns(r.tab, []string{"key", "val"}, []*vector.Vector{ints(1, 2), ints(1)}),
		"names":    b.InsertColumns(r.tab, []string{"key", "val"}, []*vector.Vector{ints(1, 2)}),
		"twice":    b.InsertColumns(r.tab, []string{"key", "key"}, []*vector.Vector{ints(1, 2), ints(1, 2)}),
		"omission": b.InsertColumns(r.tab, []string{"val"}, []*vector.Vector{ints(1, 2)}),
	} {
		if !errors.Is(call, minikudu.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, call)
		}
	}
	if b.Len() != 0 {
		t.Fatalf("the batch has %d rows", b.Len())
	}
}

func TestItem64Limits(t *testing.T) {
	r := newRig(t, minikudu.Options{}, textSpec())
	text := func(n int) string { return strings.Repeat("x", n) }
	var b minikudu.WriteBatch
	b.Insert(r.tab, "a", text(65536), []byte(text(65536)))
	b.Insert(r.tab, "b", text(65537), nil)
	b.Insert(r.tab, "c", nil, []byte(text(65537)))
	b.Insert(r.tab, "d"+text(16383), "longest key", nil)
	b.Insert(r.tab, "e"+text(16384), "too long a key", nil)
	b.Insert(r.tab, "f", "last", nil)
	res, err := r.db.Commit(ctx, &b, nil)
	var rejected *minikudu.RejectedError
	if !errors.As(err, &rejected) || res.Inserted != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	var at []int
	for i := range rejected.Rows {
		at = append(at, rejected.Rows[i].Row)
		var v *schema.ValueError
		if !errors.As(&rejected.Rows[i], &v) || v.Row != rejected.Rows[i].Row {
			t.Errorf("rejection %+v", rejected.Rows[i])
		}
	}
	if !slices.Equal(at, []int{1, 2, 4}) {
		t.Fatalf("rejected rows %v", at)
	}
	if len(err.Error()) > 1000 {
		t.Errorf("a message of %d bytes", len(err.Error()))
	}
	for range 3 {
		if got := column[string](r.rows(minikudu.Query{Columns: []string{"s"}, Order: minikudu.KeyOrder}), 0); len(got) != 3 || len(got[0]) != 65536 || got[1] != "longest key" {
			t.Fatalf("%d rows", len(got))
		}
		if row, err := r.tab.Get(ctx, "d"+text(16383)); err != nil || row.Value("s") != "longest key" {
			t.Fatal(err)
		}
		if _, err := r.tab.Get(ctx, "e"+text(16384)); !errors.Is(err, minikudu.ErrNotFound) {
			t.Fatalf("get of a key over the limit: %v", err)
		}
		r.flush()
		r.restart()
	}
}

func TestItem64KeyLimitCountsEncodedBytes(t *testing.T) {
	r := newRig(t, minikudu.Options{Limits: schema.Limits{MaxKeyBytes: 20}}, table([]string{"a", "b"}, col("a", schema.String), col("b", schema.Int32)))
	var b minikudu.WriteBatch
	b.Insert(r.tab, strings.Repeat("a", 14), 1)    // 14 + 2 + 4
	b.Insert(r.tab, strings.Repeat("b", 15), 1)    // 21
	b.Insert(r.tab, strings.Repeat("\x00", 7), 1)  // 7*2 + 2 + 4
	b.Insert(r.tab, strings.Repeat("\x00", 8), 1)  // 22
	b.Insert(r.tab, strings.Repeat("\x00", 8), 1)  // again: both are too long, not duplicates
	b.Insert(r.tab, strings.Repeat("a", 14), 1)    // a duplicate
	b.Insert(r.tab, strings.Repeat("a", 14)+"", 2) // fits
	_, err := r.db.Commit(ctx, &b, nil)
	var rejected *minikudu.RejectedError
	if !errors.As(err, &rejected) {
		t.Fatal(err)
	}
	want := map[int]error{1: minikudu.ErrInvalidArgument, 3: minikudu.ErrInvalidArgument, 4: minikudu.ErrInvalidArgument, 5: minikudu.ErrAlreadyPresent}
	if len(rejected.Rows) != len(want) {
		t.Fatalf("%v", err)
	}
	for i := range rejected.Rows {
		if e := &rejected.Rows[i]; !errors.Is(e, want[e.Row]) {
			t.Errorf("row %d: %v", e.Row, e)
		}
	}
}

func TestItem94LiveCount(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	live := func(want int64) {
		t.Helper()
		n, err := r.tab.Count(ctx, nil)
		if err != nil || n != want || r.tab.Rows() != want || int64(count(t, r.tab, minikudu.Query{})) != want {
			t.Fatalf("count %d, metadata %d, want %d (%v)", n, r.tab.Rows(), want, err)
		}
		s, err := r.tab.Stats(ctx)
		if err != nil || s.Rows != want {
			t.Fatalf("stats %+v, %v", s, err)
		}
	}
	live(0)
	for i := range 4 {
		var b minikudu.WriteBatch
		for k := range 100 {
			b.InsertIgnore(r.tab, i*50+k, k)
		}
		r.commit(&b)
		live(int64(100 + i*50))
		if i%2 == 0 {
			r.flush()
			live(int64(100 + i*50))
		}
		r.restart()
		live(int64(100 + i*50))
	}
}
