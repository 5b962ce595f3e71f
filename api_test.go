package minikudu_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

func TestBatchOverTwoTables(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	other, err := r.db.CreateTable(ctx, "other", textSpec())
	if err != nil {
		t.Fatal(err)
	}
	r.insert([]any{1, 1})
	var b minikudu.WriteBatch
	b.Insert(r.tab, 2, 2)             // 0
	b.Insert(other, "a", nil, nil)    // 1
	b.Insert(r.tab, 1, 0)             // 2: live
	b.Insert(other, "b", 5, nil)      // 3: wrong type
	b.Insert(other, "a", "x", nil)    // 4: live since row 1
	b.InsertIgnore(r.tab, 2, 0)       // 5: ignored
	b.Insert(r.tab, 3, 3, "too much") // 6
	if b.Len() != 7 || b.Size() == 0 {
		t.Fatalf("%d rows, %d bytes", b.Len(), b.Size())
	}
	for _, all := range []bool{true, false} {
		before := r.db.Metrics()
		res, err := r.db.Commit(ctx, &b, &minikudu.CommitOptions{AllOrNothing: all})
		var rejected *minikudu.RejectedError
		if !errors.As(err, &rejected) || rejected.Applied == all || !errors.Is(err, minikudu.ErrRowsRejected) ||
			!errors.Is(err, minikudu.ErrAlreadyPresent) || !errors.Is(err, minikudu.ErrInvalidArgument) {
			t.Fatalf("all or nothing %v: %v", all, err)
		}
		var at []string
		for i := range rejected.Rows {
			at = append(at, fmt.Sprint(rejected.Rows[i].Row, rejected.Rows[i].Table))
		}
		if got := strings.Join(at, " "); got != "2t 3other 4other 6t" {
			t.Fatalf("rejected %s", got)
		}
		if strings.Contains(err.Error(), "nothing committed") != all || !strings.HasPrefix(err.Error(), "4 rows rejected") || !strings.HasSuffix(err.Error(), "…") {
			t.Fatalf("message %q", err)
		}
		want := minikudu.Result{Timestamp: res.Timestamp, Inserted: 2, Ignored: 1, Rejected: 4}
		if all {
			want = minikudu.Result{Timestamp: res.Timestamp, Rejected: 4}
		}
		if *res != want || res.Timestamp == 0 {
			t.Fatalf("result %+v, want %+v", *res, want)
		}
		if after := r.db.Metrics(); all && after.LogGroups != before.LogGroups {
			t.Fatal("a refused batch was logged")
		}
	}
	if r.tab.Rows() != 2 || other.Rows() != 1 {
		t.Fatalf("%d and %d rows", r.tab.Rows(), other.Rows())
	}
}

func TestBatchIsReused(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	other, err := r.db.CreateTable(ctx, "other", kvSpec())
	if err != nil {
		t.Fatal(err)
	}
	var b minikudu.WriteBatch
	if res := r.commit(&b); res.Inserted != 0 {
		t.Fatalf("an empty batch: %+v", res)
	}
	b.Insert(r.tab, 1, 1)
	b.Insert(other, 1, 1)
	b.Insert(r.tab, "bad", 1)
	if _, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrInvalidArgument) {
		t.Fatal(err)
	}
	b.Reset()
	if b.Len() != 0 {
		t.Fatalf("%d rows after Reset", b.Len())
	}
	if err := r.db.DropTable(ctx, "other"); err != nil {
		t.Fatal(err)
	}
	b.Insert(r.tab, 2, 2)
	if res := r.commit(&b); res.Inserted != 1 || res.Rejected != 0 {
		t.Fatalf("result %+v", *res)
	}
	if _, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrAlreadyPresent) { // without Reset it is the same batch
		t.Fatal(err)
	}
	b.Reset()
	b.Insert(other, 2, 2)
	if _, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrNotFound) {
		t.Fatalf("rows for a dropped table: %v", err)
	}
	second, err := minikudu.OpenInMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, second)
	b.Reset()
	b.Insert(r.tab, 9, 9)
	if _, err := second.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrInvalidArgument) || !strings.Contains(err.Error(), "another DB") {
		t.Fatalf("rows for another DB: %v", err)
	}
	sameSet(t, "rows", r.rows(minikudu.Query{}), [][]any{{int64(1), int64(1)}, {int64(2), int64(2)}})
}

func TestInsertColumnsRejectsBadCells(t *testing.T) {
	spec := table([]string{"k"}, col("k", schema.Int32), null(minikudu.Column{Name: "short", Type: schema.Varchar, Length: 2}), null(col("day", schema.Date)),
		null(minikudu.Column{Name: "d", Type: schema.Decimal32, Precision: 3, Scale: 1}), minikudu.Column{Name: "dflt", Type: schema.Int8, Default: schema.IntValue(schema.KindInt8, 4)})
	r := newRig(t, minikudu.Options{}, spec)
	short := vector.New(schema.KindBytes, 5)
	for _, s := range []string{"ab", "äö", "abc", "", "x"} {
		_ = short.AppendBytes([]byte(s))
	}
	names := []string{"d", "k", "short", "day"}
	columns := []*vector.Vector{vector.FromFixed(schema.KindInt32, []int32{0, -999, 1, 1000, 5}, nil), vector.FromFixed(schema.KindInt32, []int32{0, 1, 2, 3, 4}, nil),
		short, vector.FromFixed(schema.KindInt32, []int32{0, 1, 2, 3, 1 << 30}, nil)}
	var b minikudu.WriteBatch
	if err := b.InsertColumns(r.tab, names, columns); err != nil {
		t.Fatal(err)
	}
	if err := b.InsertIgnoreColumns(r.tab, names, columns); err != nil {
		t.Fatal(err)
	}
	if err := b.InsertColumns(r.tab, nil, nil); b.Len() != 10 {
		t.Fatalf("%d rows, %v", b.Len(), err)
	}
	res, err := r.db.Commit(ctx, &b, nil)
	var rejected *minikudu.RejectedError
	if !errors.As(err, &rejected) || res.Inserted != 2 || res.Ignored != 2 || res.Rejected != 6 {
		t.Fatalf("%+v, %v", res, err)
	}
	for i, want := range []struct {
		row    int
		column string
	}{{2, "short"}, {3, "d"}, {4, "day"}, {7, "short"}, {8, "d"}, {9, "day"}} {
		var v *schema.ValueError
		if e := &rejected.Rows[i]; e.Row != want.row || !errors.As(e, &v) || v.Column != want.column || v.Row != want.row {
			t.Errorf("rejection %d: %v, want row %d, column %s", i, e, want.row, want.column)
		}
	}
	day := func(n int64) time.Time { return time.Unix(n*86400, 0).UTC() }
	sameSet(t, "rows", r.rows(minikudu.Query{}), [][]any{{int64(0), "ab", day(0), "0.0", int64(4)}, {int64(1), "äö", day(1), "-99.9", int64(4)}})
}

func TestInsertColumnsTakesDictionariesAndSlices(t *testing.T) {
	r := newRig(t, minikudu.Options{}, textSpec())
	words := vector.New(schema.KindBytes, 2)
	_ = words.AppendBytes([]byte("yes"))
	_ = words.AppendBytes([]byte("no"))
	valid := vector.NewBitmap(4)
	for _, i := range []int{0, 1, 3} {
		valid.Set(i)
	}
	keys := vector.New(schema.KindBytes, 4)
	for _, k := range []string{"0", "1", "2", "3"} {
		_ = keys.AppendBytes([]byte(k))
	}
	codes := vector.FromCodes([]uint8{0, 1, 0, 0}, words, valid)
	var b minikudu.WriteBatch
	if err := b.InsertColumns(r.tab, []string{"k", "s", "b"}, []*vector.Vector{keys.Slice(1, 4), codes.Slice(1, 4), codes.Slice(0, 3)}); err != nil {
		t.Fatal(err)
	}
	r.commit(&b)
	sameSet(t, "rows", r.rows(minikudu.Query{}), [][]any{{"1", "no", []byte("yes")}, {"2", nil, []byte("no")}, {"3", "yes", nil}})
}

// GetMany is Get for each key, wherever its row is, given how often.
func TestGetManyIsGetForEach(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	rnd := testkit.Rand(t)
	change := func() {
		for range 60 {
			k := rnd.IntN(100)
			r.do(minikudu.OpUpsert, kv(k, rnd.IntN(1000)))
			if rnd.IntN(3) == 0 {
				r.do(minikudu.OpDelete, key(k))
			}
		}
	}
	check := func(when string) {
		t.Helper()
		keys := make([][]any, rnd.IntN(200))
		for i := range keys {
			keys[i] = []any{rnd.IntN(120)}
		}
		got, err := r.tab.GetMany(ctx, keys)
		if err != nil || len(got) != len(keys) {
			t.Fatalf("%s: %d rows, %v", when, len(got), err)
		}
		for i, k := range keys {
			want, err := r.tab.Get(ctx, k...)
			switch {
			case errors.Is(err, minikudu.ErrNotFound) && got[i] == nil:
			case err != nil || got[i] == nil || fmt.Sprint(got[i].Values()) != fmt.Sprint(want.Values()):
				t.Fatalf("%s: key %v is %v, want %v, %v", when, k, got[i], want, err)
			}
		}
	}
	for _, step := range []struct {
		name string
		do   func()
	}{{"in memory", func() {}}, {"flushed", r.flush}, {"changed", change}, {"flushed again", r.flush}, {"changed again", change},
		{"compacted", func() { r.compact() }}, {"opened again", r.restart}} {
		if step.name == "in memory" {
			change()
		}
		step.do()
		check(step.name)
	}
	var bad *schema.ValueError
	if _, err := r.tab.GetMany(ctx, [][]any{{1}, {"one"}}); !errors.As(err, &bad) || bad.Row != 1 || bad.Column != "key" {
		t.Errorf("a key of another type: %v", err)
	}
	if _, err := r.tab.GetMany(ctx, [][]any{{1}, {2}, {3, 4}}); !errors.As(err, &bad) || bad.Row != 2 {
		t.Errorf("a key too long: %v", err)
	}
	if rows, err := r.tab.GetMany(ctx, nil); err != nil || len(rows) != 0 {
		t.Errorf("no keys: %v, %v", rows, err)
	}
}

// Rows that change all the time are read whole, at one commit each.
func TestGetManyBesideCommits(t *testing.T) {
	r := newRig(t, minikudu.Options{}, table([]string{"k"}, col("k", schema.Int32), col("a", schema.Int64), col("b", schema.Int64)))
	put := func(v int) {
		var b minikudu.WriteBatch
		for k := range 20 {
			b.Upsert(r.tab, k, v, v)
		}
		r.commit(&b)
	}
	put(0)
	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		defer close(done)
		for v := 1; v <= 300; v++ {
			put(v)
			if v%100 == 0 {
				r.flush()
			}
		}
	})
	keys := [][]any{{3}, {19}, {0}, {3}}
	for last := int64(0); ; {
		rows, err := r.tab.GetMany(ctx, keys)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			if row == nil || row.Value("a") != row.Value("b") || row.Value("a").(int64) < last {
				t.Fatalf("key %v is %v after %d", keys[i], row, last)
			}
		}
		last = rows[0].Value("a").(int64)
		select {
		case <-done:
			writer.Wait()
			return
		default:
		}
	}
}

func TestGetErrors(t *testing.T) {
	r := newRig(t, minikudu.Options{}, metricSpec())
	r.insert([]any{"a", 1, 1.5, nil, 3})
	for name, key := range map[string][]any{"too few": {"a"}, "too many": {"a", 1, 2}, "none": nil, "wrong type": {"a", "x"}, "null": {nil, 1}} {
		if _, err := r.tab.Get(ctx, key...); !errors.Is(err, minikudu.ErrInvalidArgument) || errors.Is(err, minikudu.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.tab.Get(ctx, "a", 2); !errors.Is(err, minikudu.ErrNotFound) || !strings.Contains(err.Error(), `"t"`) {
		t.Errorf("a missing row: %v", err)
	}
	row, err := r.tab.Get(ctx, "a", 1)
	if err != nil || row.Value("nosuch") != nil || row.Value("tag") != nil || row.Cell(4).Int() != 3 || len(row.Values()) != 5 {
		t.Errorf("row %v, %v", row, err)
	}
	cells, err := r.tab.GetColumns(ctx, nil, "a", 1)
	if err != nil || len(cells) != 5 {
		t.Errorf("all columns: %v, %v", cells, err)
	}
	if cells, err = r.tab.GetColumns(ctx, []string{}, "a", 1); err != nil || len(cells) != 0 {
		t.Errorf("no columns: %v, %v", cells, err)
	}
	for range 2 { // what one call wanted is not what the next one gets
		for _, names := range [][]string{{"tag", "n"}, {"host"}, nil, {}, {"n", "host", "n"}, {"ts", "n", "host"}} {
			cells, err := r.tab.GetColumns(ctx, names, "a", 1)
			want := row.Values()
			if names != nil {
				want = []any{}
			}
			for _, name := range names {
				want = append(want, row.Value(name))
			}
			if err != nil || show(cells) != show(want) {
				t.Errorf("columns %q: %v, %v, want %v", names, cells, err, want)
			}
		}
	}
	kept := row.Values()
	for range 10 { // a row stays valid
		if _, err := r.tab.Get(ctx, "a", 1); err != nil {
			t.Fatal(err)
		}
	}
	if show(row.Values()) != show(kept) {
		t.Error("a row changed")
	}
}

func TestQueryArguments(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	for k := range 100 {
		r.insert([]any{k, k})
		if k == 50 {
			r.flush()
		}
	}
	for _, o := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse} {
		for b, err := range r.tab.Scan(ctx, minikudu.Query{BatchRows: 7, Order: o}) {
			if err != nil || b.Len() > 7 {
				t.Fatalf("a batch of %d rows, %v", b.Len(), err)
			}
		}
	}
	for _, q := range []minikudu.Query{{Limit: -1}, {BatchRows: -1}, {Order: 9}} {
		failed := false
		for _, err := range r.tab.Scan(ctx, q) {
			failed = errors.Is(err, minikudu.ErrInvalidArgument)
		}
		if !failed {
			t.Errorf("the query %+v was accepted", q)
		}
	}
	for _, err := range r.tab.Scan(ctx, minikudu.Query{Where: predicate.Eq("val", "x")}) {
		if !errors.Is(err, minikudu.ErrInvalidArgument) {
			t.Errorf("a literal of the wrong type: %v", err)
		}
	}
	if b, err := r.tab.Aggregate(ctx, minikudu.Query{}, []string{"val"}); err != nil || b.Len() != 100 || b.NumColumns() != 1 {
		t.Errorf("distinct values: %v, %v", b, err)
	}
	if _, err := r.tab.Aggregate(ctx, minikudu.Query{}, []string{"key", "key"}, minikudu.Count()); err != nil {
		t.Errorf("grouped by a column twice: %v", err)
	}
}

func TestDetachedBatchStays(t *testing.T) {
	r := newRig(t, minikudu.Options{}, textSpec())
	for i := range 200 {
		r.insert([]any{fmt.Sprintf("%03d", i), fmt.Sprint("word ", i%3), nil})
		if i == 100 {
			r.flush()
		}
	}
	want := r.rows(minikudu.Query{Order: minikudu.KeyOrder})
	var kept []*minikudu.Batch
	for b, err := range r.tab.Scan(ctx, minikudu.Query{Order: minikudu.KeyOrder, BatchRows: 9}) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, b.Detach())
	}
	r.flush()
	mustClose(t, r.db)
	var got [][]any
	for _, b := range kept {
		for i := range b.Len() {
			got = append(got, b.Row(i))
		}
	}
	sameList(t, "detached batches", got, want)
}

func TestOptions(t *testing.T) {
	bad := &minikudu.Options{MaxBatchBytes: -1, FlushBytes: -2, RowSetBytes: -3, LogBytes: -4, MaxOpenFiles: -5, SyncInterval: -6, MemoryBudget: 1, Durability: 9,
		CompactionWorkers: 1000, CompactionRate: -7, MaxReaderAge: -8}
	err := bad.Validate()
	if !errors.Is(err, minikudu.ErrInvalidArgument) {
		t.Fatalf("error %v", err)
	}
	for _, name := range []string{"MaxBatchBytes", "FlushBytes", "RowSetBytes", "LogBytes", "MaxOpenFiles", "SyncInterval", "MemoryBudget", "Durability", "CompactionWorkers", "CompactionRate", "MaxReaderAge"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in %v", name, err)
		}
	}
	bad.FS = vfs.NewMem()
	if _, err := minikudu.Open("db", bad); !errors.Is(err, minikudu.ErrInvalidArgument) {
		t.Errorf("open with bad options: %v", err)
	}
	if names, err := bad.FS.List("db"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused open made %v", names)
	}
	s := (&minikudu.Options{Durability: minikudu.Interval, MemoryBudget: 64 << 20}).String()
	for _, want := range []string{"durability: interval", "memory budget: 67108864", "flush bytes: 8388608", "compaction workers: 1\n", "compaction rate: 0\n"} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is not in %q", want, s)
		}
	}
	given := minikudu.Options{FS: vfs.NewMem()}
	db := mustOpen(t, "db", &given)
	defer mustClose(t, db)
	if given.MemoryBudget != 0 || db.Options().MemoryBudget == 0 || db.Options().Durability != minikudu.Sync || db.Dir() != "db" {
		t.Errorf("effective options %+v, given %+v", db.Options(), given)
	}
}

func TestReadOnlyHandles(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	r.insert([]any{1, 1})
	r.flush()
	r.insert([]any{2, 2})
	ro := r.opts
	ro.ReadOnly = true
	if _, err := minikudu.Open("db", &ro); !errors.Is(err, minikudu.ErrLocked) {
		t.Fatalf("a reader beside a writer: %v", err)
	}
	mustClose(t, r.db)
	before := r.files()
	a, b := mustOpen(t, "db", &ro), mustOpen(t, "db", &ro)
	if _, err := minikudu.Open("db", &r.opts); !errors.Is(err, minikudu.ErrLocked) {
		t.Fatalf("a writer beside readers: %v", err)
	}
	for _, db := range []*minikudu.DB{a, b} {
		tab, err := db.Table("t")
		if err != nil {
			t.Fatal(err)
		}
		sameSet(t, "rows", scanRows(t, tab, minikudu.Query{}), [][]any{{int64(1), int64(1)}, {int64(2), int64(2)}})
		var batch minikudu.WriteBatch
		batch.Insert(tab, 3, 3)
		_, commit := db.Commit(ctx, &batch, nil)
		_, create := db.CreateTable(ctx, "x", kvSpec())
		for name, err := range map[string]error{"commit": commit, "create": create, "drop": db.DropTable(ctx, "t"), "flush": tab.Flush(ctx)} {
			if !errors.Is(err, minikudu.ErrReadOnly) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if report, err := db.Verify(ctx); err != nil || len(report.Damage) > 0 || report.Tables != 1 || report.RowSets != 1 || report.Rows != 1 {
			t.Errorf("verify: %+v, %v", report, err)
		}
		mustClose(t, db)
	}
	if after := r.files(); !slices.Equal(before, after) {
		t.Errorf("files %v became %v", before, after)
	}
	for _, o := range []minikudu.Options{{FS: vfs.NewMem(), ReadOnly: true}, {FS: vfs.NewMem(), ErrorIfMissing: true}} {
		if _, err := minikudu.Open("none", &o); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open of nothing: %v", err)
		}
	}
	r.reopen()
}

func TestTablesByName(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	for _, name := range []string{"b", "a", "Z"} {
		if _, err := r.db.CreateTable(ctx, name, kvSpec()); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (out []string) {
		for _, tab := range r.db.Tables() {
			out = append(out, tab.Name())
		}
		return out
	}
	if got := names(); !slices.Equal(got, []string{"Z", "a", "b", "t"}) {
		t.Fatalf("tables %v", got)
	}
	_, err := r.db.Table("nosuch")
	if !errors.Is(err, minikudu.ErrNotFound) || !strings.Contains(err.Error(), "a") || !strings.Contains(err.Error(), "Z") {
		t.Fatalf("an unknown table: %v", err)
	}
	if err := r.db.DropTable(ctx, "nosuch"); !errors.Is(err, minikudu.ErrNotFound) {
		t.Fatal(err)
	}
	old, err := r.db.Table("a")
	if err != nil {
		t.Fatal(err)
	}
	var b minikudu.WriteBatch
	b.Insert(old, 1, 1)
	r.commit(&b)
	if err := r.db.DropTable(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	_, get := old.Get(ctx, 1)
	_, counted := old.Count(ctx, nil)
	_, stats := old.Stats(ctx)
	var scan error
	for _, scan = range old.Scan(ctx, minikudu.Query{}) {
	}
	for name, err := range map[string]error{"get": get, "count": counted, "stats": stats, "scan": scan, "flush": old.Flush(ctx)} {
		if !errors.Is(err, minikudu.ErrNotFound) {
			t.Errorf("%s of a dropped table: %v", name, err)
		}
	}
	again, err := r.db.CreateTable(ctx, "a", textSpec())
	if err != nil || again.Rows() != 0 {
		t.Fatalf("made again: %v, %v", again, err)
	}
	r.restart()
	if got := names(); !slices.Equal(got, []string{"Z", "a", "b", "t"}) {
		t.Fatalf("tables %v", got)
	}
	if again, err = r.db.Table("a"); err != nil || again.Rows() != 0 || again.Schema().Len() != 3 {
		t.Fatalf("table %v, %v", again, err)
	}
}

func TestClosedHandles(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	r.insert([]any{1, 1}, []any{2, 2}, []any{3, 3})
	next, stop := iter.Pull2(r.tab.Scan(ctx, minikudu.Query{BatchRows: 1}))
	defer stop()
	if _, err, _ := next(); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- r.db.Close() }()
	var err error
	for ok := true; ok && err == nil; time.Sleep(time.Millisecond) {
		_, err, ok = next()
	}
	stop()
	if e := <-closed; e != nil {
		t.Fatal(e)
	}
	if err != nil && !errors.Is(err, minikudu.ErrClosed) {
		t.Fatalf("a scan beside Close: %v", err)
	}
	var b minikudu.WriteBatch
	b.Insert(r.tab, 9, 9)
	_, commit := r.db.Commit(ctx, &b, nil)
	_, create := r.db.CreateTable(ctx, "x", kvSpec())
	_, tab := r.db.Table("t")
	_, get := r.tab.Get(ctx, 1)
	_, counted := r.tab.Count(ctx, nil)
	_, verify := r.db.Verify(ctx)
	_, stats := r.tab.Stats(ctx)
	for name, err := range map[string]error{"commit": commit, "create": create, "table": tab, "get": get, "count": counted, "verify": verify, "stats": stats,
		"close": r.db.Close(), "drop": r.db.DropTable(ctx, "t"), "flush": r.tab.Flush(ctx)} {
		if !errors.Is(err, minikudu.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	r.reopen()
}

func TestContexts(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	r.insert([]any{1, 1})
	r.flush()
	over, cancel := context.WithCancel(ctx)
	cancel()
	var b minikudu.WriteBatch
	b.Insert(r.tab, 2, 2)
	if _, err := r.db.Commit(over, &b, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("commit: %v", err)
	}
	if _, err := r.tab.Count(over, predicate.Ge("val", 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("count: %v", err)
	}
	if n := r.tab.Rows(); n != 1 {
		t.Errorf("%d rows", n)
	}
	r.commit(&b)
}

// Events and the log tell of flushes and replays.
func TestEvents(t *testing.T) {
	var begins, ends, replays atomic.Int64
	var text bytes.Buffer
	var mu sync.Mutex
	o := minikudu.Options{Logger: slog.New(slog.NewTextHandler(lockedWriter{&mu, &text}, nil)), Events: &minikudu.EventListener{
		FlushBegin: func(minikudu.FlushInfo) { begins.Add(1) },
		FlushEnd: func(i minikudu.FlushInfo) {
			ends.Add(1)
			if i.Err != nil || i.Rows != 2 || i.RowSets != 1 || i.Table != "t" || i.Bytes == 0 || !strings.Contains(i.String(), `"t"`) {
				t.Errorf("flush %+v", i)
			}
		},
		Replayed: func(i minikudu.ReplayInfo) { replays.Store(i.Rows) },
	}}
	r := newRig(t, o, kvSpec())
	r.insert([]any{1, 1}, []any{2, 2})
	r.flush()
	r.insert([]any{3, 3}, []any{4, 4}, []any{5, 5})
	r.restart()
	if begins.Load() != 1 || ends.Load() != 1 || replays.Load() != 3 {
		t.Errorf("%d flushes begun, %d ended, %d rows replayed", begins.Load(), ends.Load(), replays.Load())
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(text.String(), "flush") {
		t.Errorf("log %q", text.String())
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Many goroutines do everything at once; meant for the race detector.
func TestEverythingAtOnce(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	r := newRig(t, minikudu.Options{FlushBytes: 8 << 10, RowSetBytes: 8 << 10, MaxOpenFiles: 3, MemoryBudget: 8 << 20, Durability: minikudu.NoSync}, metricSpec())
	var inserted atomic.Int64
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range rounds {
				if err := doSomething(r, g, i, rnd, &inserted); err != nil {
					t.Errorf("goroutine %d, round %d: %v", g, i, err)
					return
				}
			}
		})
	}
	all.Wait()
	if n := count(t, r.tab, minikudu.Query{Order: minikudu.KeyOrder}); int64(n) != inserted.Load() {
		t.Errorf("%d rows, %d were inserted", n, inserted.Load())
	}
	r.restart()
	if n, err := r.tab.Count(ctx, nil); err != nil || n != inserted.Load() {
		t.Errorf("%d rows after a restart, %d were inserted, %v", n, inserted.Load(), err)
	}
	if report, err := r.db.Verify(ctx); err != nil || len(report.Damage) > 0 {
		t.Errorf("verify: %+v, %v", report, err)
	}
}

func doSomething(r *rig, g, i int, rnd *rand.Rand, inserted *atomic.Int64) error {
	switch g % 8 {
	case 0, 1, 2, 3:
		var b minikudu.WriteBatch
		for range 30 {
			b.InsertIgnore(r.tab, fmt.Sprint("host", rnd.IntN(5)), rnd.IntN(400), rnd.Float64(), fmt.Sprint("tag", i%4), nil)
		}
		res, err := r.db.Commit(ctx, &b, nil)
		if err == nil {
			inserted.Add(res.Inserted)
		}
		return err
	case 4:
		last := ""
		for b, err := range r.tab.Scan(ctx, minikudu.Query{Order: minikudu.KeyOrder, BatchRows: 50}) {
			if err != nil {
				return err
			}
			for k := range b.Len() {
				key := fmt.Sprintf("%s %010d", b.Column(0).StringAt(k), b.Column(1).Int64s()[k])
				if key <= last {
					return fmt.Errorf("key %s after %s", key, last)
				}
				last = key
			}
		}
		return nil
	case 5:
		_, err := r.tab.Get(ctx, fmt.Sprint("host", rnd.IntN(5)), rnd.IntN(400))
		if errors.Is(err, minikudu.ErrNotFound) {
			return nil
		}
		return err
	case 6:
		groups, err := r.tab.Aggregate(ctx, minikudu.Query{Where: predicate.Like("tag", "tag%")}, []string{"host"}, minikudu.Count(), minikudu.Max("v"))
		if err == nil && groups.Len() > 5 {
			err = fmt.Errorf("%d groups", groups.Len())
		}
		return err
	}
	if g == 7 {
		return r.tab.Flush(ctx)
	}
	name := fmt.Sprint("passing ", i)
	tab, err := r.db.CreateTable(ctx, name, kvSpec())
	if err != nil {
		return err
	}
	var b minikudu.WriteBatch
	b.Insert(tab, i, i)
	if _, err := r.db.Commit(ctx, &b, nil); err != nil {
		return err
	}
	r.db.Metrics()
	if _, err := tab.Stats(ctx); err != nil {
		return err
	}
	return r.db.DropTable(ctx, name)
}

func TestStructs(t *testing.T) {
	type Key struct {
		K int32 `minikudu:"k"`
	}
	type full struct {
		Key
		Plain  *int32 `minikudu:"plain"`
		Dflt   schema.Value
		Must   int64 `minikudu:"must"`
		Bare   int8  `minikudu:"bare"`
		hidden int
		Left   map[string]int `minikudu:"-"`
	}
	type noDefault struct {
		K int32 `minikudu:"k"`
	}
	type wrongType struct {
		K []string `minikudu:"k"`
	}
	type notNull struct {
		K     int32 `minikudu:"k"`
		Plain int32 `minikudu:"plain"`
		Bare  int32 `minikudu:"bare"`
	}
	type narrow struct {
		K    int32 `minikudu:"k"`
		Bare int8  `minikudu:"bare"`
	}
	spec := defaultsSpec()
	spec.Columns[2].Name = "Dflt"
	r := newRig(t, minikudu.Options{}, spec)
	seven := int32(7)
	var b minikudu.WriteBatch
	if err := minikudu.InsertStructs(&b, r.tab, full{Key: Key{1}, Plain: &seven, Dflt: schema.Null, Must: 3, Bare: 4, hidden: 9}, full{Key: Key{2}, Must: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	if err := minikudu.InsertStructs(&b, r.tab, noDefault{3}); err != nil {
		t.Fatal(err)
	}
	if err := minikudu.InsertStructs(&b, r.tab, narrow{4, 5}); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"field type": minikudu.InsertStructs(&b, r.tab, wrongType{}), "no struct": minikudu.InsertStructs(&b, r.tab, 5),
		"empty": minikudu.InsertStructs(&b, r.tab, struct{}{})} {
		if !errors.Is(err, minikudu.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	res, err := r.db.Commit(ctx, &b, nil)
	var rejected *minikudu.RejectedError
	if !errors.As(err, &rejected) || res.Inserted != 2 || len(rejected.Rows) != 2 || rejected.Rows[0].Row != 1 || rejected.Rows[1].Row != 2 ||
		!strings.Contains(err.Error(), `"must"`) || !strings.Contains(err.Error(), `"bare"`) {
		t.Fatalf("%+v, %v", res, err)
	}
	r.insert([]any{9, nil, nil, 8, 1000})
	got, err := minikudu.GetAs[full](ctx, r.tab, 1)
	if err != nil || got.K != 1 || got.Plain == nil || *got.Plain != 7 || !got.Dflt.IsNull() || got.Must != 3 || got.Bare != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	four, err := minikudu.GetAs[full](ctx, r.tab, 4)
	if err != nil || four.Plain != nil || four.Dflt.Int() != 7 || four.Must != 8 || four.Bare != 5 {
		t.Errorf("%+v, %v", four, err)
	}
	if _, err := minikudu.GetAs[notNull](ctx, r.tab, 4); !errors.Is(err, minikudu.ErrInvalidArgument) || !strings.Contains(err.Error(), `"plain"`) {
		t.Errorf("null in an int32: %v", err)
	}
	if _, err := minikudu.GetAs[narrow](ctx, r.tab, 9); !errors.Is(err, minikudu.ErrInvalidArgument) || !strings.Contains(err.Error(), `"bare"`) {
		t.Errorf("1000 in an int8: %v", err)
	}
	if _, err := minikudu.GetAs[full](ctx, r.tab, 77); !errors.Is(err, minikudu.ErrNotFound) {
		t.Errorf("a missing row: %v", err)
	}
	seen, failed := 0, 0
	for row, err := range minikudu.ScanAs[narrow](ctx, r.tab, minikudu.Query{Order: minikudu.KeyOrder, Columns: []string{"nosuch"}}) {
		switch {
		case err != nil:
			failed++
		case row.K != []int32{1, 4}[seen]:
			t.Errorf("row %+v", row)
		default:
			seen++
		}
	}
	if seen != 2 || failed != 1 {
		t.Errorf("%d rows and %d errors", seen, failed)
	}
	for range minikudu.ScanAs[narrow](ctx, r.tab, minikudu.Query{}) {
		break
	}
}

// Timestamps of commits increase over clock steps backward and restarts.
func TestTimestampsIncrease(t *testing.T) {
	clock := newClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	r := newRig(t, minikudu.Options{Now: clock.now}, kvSpec())
	last := minikudu.Timestamp(0)
	for i, step := range []time.Duration{0, time.Second, -time.Hour, time.Minute, 0, -24 * time.Hour} {
		clock.pass(step)
		res := r.insert([]any{i, i})
		if res.Timestamp <= last {
			t.Fatalf("commit %d at %d, after %d", i, res.Timestamp, last)
		}
		last = res.Timestamp
		if empty := r.commit(&minikudu.WriteBatch{}); empty.Timestamp != last {
			t.Fatalf("an empty commit at %d, the newest is %d", empty.Timestamp, last)
		}
		if r.db.Now() < last {
			t.Fatalf("now is %d, the newest commit %d", r.db.Now(), last)
		}
		if i%2 == 0 {
			r.flush()
		}
		r.restart()
	}
}

// A table dropped while it is flushed leaves nothing, and no complaint.
func TestDropBesideFlush(t *testing.T) {
	var complaints atomic.Int64
	o := minikudu.Options{Durability: minikudu.NoSync, FlushBytes: 2048, Events: &minikudu.EventListener{BackgroundError: func(err error) {
		complaints.Add(1)
		t.Log(err)
	}}}
	r := newRig(t, o, kvSpec())
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	for i := range rounds {
		tab, err := r.db.CreateTable(ctx, "passing", kvSpec())
		if err != nil {
			t.Fatal(err)
		}
		for k := range 5 {
			var b minikudu.WriteBatch
			for j := range 20 {
				b.Insert(tab, 20*k+j, j)
			}
			r.commit(&b)
		}
		flushed := make(chan error)
		go func() { flushed <- tab.Flush(ctx) }()
		time.Sleep(time.Duration(i%10) * 50 * time.Microsecond)
		if err := r.db.DropTable(ctx, "passing"); err != nil {
			t.Fatal(err)
		}
		if err := <-flushed; err != nil && !errors.Is(err, minikudu.ErrNotFound) {
			t.Fatalf("a flush of a table that is dropped: %v", err)
		}
	}
	waitFor(t, "memory and files to go", func() bool {
		return r.db.Metrics().MemoryBytes == 0 && r.rowsetFiles() == 0
	})
	if n := complaints.Load(); n > 0 {
		t.Errorf("%d background errors", n)
	}
	r.restart()
	if r.rowsetFiles() != 0 {
		t.Errorf("files %v", r.files())
	}
}

// What was stored under larger limits stays readable under smaller ones.
func TestLimitsMayShrink(t *testing.T) {
	large := strings.Repeat("x", 200_000)
	r := newRig(t, minikudu.Options{Limits: schema.Limits{MaxCellBytes: 300_000, MaxKeyBytes: 300_000, MaxNameBytes: 1000, MaxColumns: 400}}, textSpec())
	spec := table([]string{"k"}, col("k", schema.Int32))
	for i := range 350 {
		spec.Columns = append(spec.Columns, null(col(fmt.Sprintf("%s%d", strings.Repeat("c", 300), i), schema.Int8)))
	}
	if _, err := r.db.CreateTable(ctx, strings.Repeat("wide", 100), spec); err != nil {
		t.Fatal(err)
	}
	r.insert([]any{large, large, nil}, []any{"small", nil, nil})
	r.flush()
	r.insert([]any{large + "y", large, nil})
	r.opts.Limits = schema.Limits{}
	for range 2 {
		r.restart()
		for _, k := range []string{large, large + "y"} {
			if row, err := r.tab.Get(ctx, k); err != nil || row.Value("s") != large {
				t.Fatalf("a row of before: %v", err)
			}
		}
		if n := count(t, r.tab, minikudu.Query{}); n != 3 || len(r.db.Tables()) != 2 {
			t.Fatalf("%d rows, %d tables", n, len(r.db.Tables()))
		}
		var b minikudu.WriteBatch
		b.Insert(r.tab, "k", large, nil)
		if _, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrInvalidArgument) {
			t.Fatalf("a cell over the present limit: %v", err)
		}
		r.flush()
	}
}
