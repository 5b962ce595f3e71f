package minikudu_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"pgregory.net/rapid"
)

// whereModel is a table of int32 key and value beside a map.
type whereModel struct {
	*rapid.T
	r    *rig
	rows map[int32]*int32
}

// filter draws a filter and what it means.
func (m *whereModel) filter() (minikudu.Expr, func(k int32, v *int32) bool) {
	lit := rapid.Int32Range(-2, 12).Draw(m.T, "literal")
	switch rapid.IntRange(0, 5).Draw(m.T, "filter") {
	case 0:
		return nil, func(int32, *int32) bool { return true }
	case 1:
		return predicate.Gt("key", lit), func(k int32, _ *int32) bool { return k > lit }
	case 2:
		return predicate.IsNull("val"), func(_ int32, v *int32) bool { return v == nil }
	case 3:
		return predicate.Or(), func(int32, *int32) bool { return false }
	case 4:
		return predicate.And(predicate.Lt("key", lit), predicate.Ne("val", 3)), func(k int32, v *int32) bool { return k < lit && v != nil && *v != 3 }
	}
	return predicate.Eq("val", lit), func(_ int32, v *int32) bool { return v != nil && *v == lit }
}

func (m *whereModel) step() {
	o := &minikudu.WhereOptions{BatchRows: rapid.IntRange(0, 4).Draw(m.T, "batch"), Atomic: rapid.Bool().Draw(m.T, "atomic")}
	var want int64
	var chosen func(int32, *int32) bool
	var res *minikudu.WhereResult
	var err error
	switch rapid.SampledFrom([]string{"upsert", "upsert", "update", "update", "delete", "flush", "compact", "restart"}).Draw(m.T, "op") {
	case "upsert":
		m.upsert()
		return
	case "flush":
		m.r.flush()
		return
	case "compact":
		if _, err := m.r.tab.Compact(ctx); err != nil {
			m.Fatal(err)
		}
		return
	case "restart":
		m.r.restart()
		return
	case "update":
		var where minikudu.Expr
		where, chosen = m.filter()
		var value *int32
		if v := rapid.Int32Range(0, 10).Draw(m.T, "value"); v > 0 {
			value = &v
		}
		res, err = m.r.db.UpdateWhere(ctx, m.r.tab, where, map[string]any{"val": value}, o)
		for k, v := range m.rows {
			if chosen(k, v) {
				m.rows[k] = value
				want++
			}
		}
	case "delete":
		var where minikudu.Expr
		where, chosen = m.filter()
		res, err = m.r.db.DeleteWhere(ctx, m.r.tab, where, o)
		for k, v := range m.rows {
			if chosen(k, v) {
				delete(m.rows, k)
				want++
			}
		}
	}
	if err != nil || res.Matched != want || res.Changed != want {
		m.Fatalf("result %+v, %v, want %d rows", res, err, want)
	}
}

func (m *whereModel) upsert() {
	var b minikudu.WriteBatch
	for range rapid.IntRange(1, 8).Draw(m.T, "rows") {
		k, v := rapid.Int32Range(0, 12).Draw(m.T, "key"), rapid.Int32Range(0, 10).Draw(m.T, "val")
		m.rows[k] = &v
		b.Upsert(m.r.tab, k, v)
	}
	m.r.commit(&b)
}

func TestWhereModel(t *testing.T) {
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			m := &whereModel{T: rt, r: newRig(t, minikudu.Options{}, kvSpec()), rows: map[int32]*int32{}}
			for range 25 {
				m.step()
				var want [][]any
				for k, v := range m.rows {
					if v == nil {
						want = append(want, []any{k, nil})
					} else {
						want = append(want, []any{k, *v})
					}
				}
				sameSet(t, "rows", m.r.rows(minikudu.Query{}), want)
			}
		})
	})
}

// fill inserts rows 0 to n-1 of kvSpec with the value 1.
func (r *rig) fill(n int) {
	r.Helper()
	var b minikudu.WriteBatch
	for k := range n {
		b.Insert(r.tab, k, 1)
	}
	r.commit(&b)
}

func TestWhereAtomicIsOneCommit(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	r.fill(5000)
	r.flush()
	before := r.db.Metrics().Commits
	res, err := r.db.UpdateWhere(ctx, r.tab, predicate.Lt("key", 4000), map[string]any{"val": 2}, &minikudu.WhereOptions{BatchRows: 100, Atomic: true})
	if err != nil || res.Changed != 4000 || r.db.Metrics().Commits != before+1 {
		t.Errorf("atomic: %+v, %v, %d commits", res, err, r.db.Metrics().Commits-before)
	}
	res, err = r.db.UpdateWhere(ctx, r.tab, predicate.Lt("key", 4000), map[string]any{"val": 3}, &minikudu.WhereOptions{BatchRows: 1500})
	if err != nil || res.Changed != 4000 || r.db.Metrics().Commits != before+4 {
		t.Errorf("batches of 1500: %+v, %v, %d commits", res, err, r.db.Metrics().Commits-before-1)
	}
	if res.Timestamp > r.db.Now() || res.Timestamp == 0 {
		t.Errorf("timestamp %d, now %d", res.Timestamp, r.db.Now())
	}
}

// Batches end early where the rows are large, and an atomic write that is too large does nothing.
func TestWhereRespectsMaxBatchBytes(t *testing.T) {
	r := newRig(t, minikudu.Options{MaxBatchBytes: 100_000}, textSpec())
	for k := range 40 {
		r.insert([]any{fmt.Sprintf("%04d%s", k, strings.Repeat("k", 3000)), "v", nil})
	}
	long := map[string]any{"s": strings.Repeat("s", 5000)}
	res, err := r.db.UpdateWhere(ctx, r.tab, nil, long, &minikudu.WhereOptions{Atomic: true})
	if !errors.Is(err, minikudu.ErrTooLarge) || res.Changed != 0 {
		t.Fatalf("too large: %+v, %v", res, err)
	}
	if n := len(r.rows(minikudu.Query{Where: predicate.Eq("s", "v")})); n != 40 {
		t.Fatalf("%d rows as before, want 40", n)
	}
	if res, err = r.db.UpdateWhere(ctx, r.tab, nil, long, nil); err != nil || res.Changed != 40 {
		t.Errorf("in batches: %+v, %v", res, err)
	}
	if n := len(r.rows(minikudu.Query{Where: predicate.Eq("s", long["s"])})); n != 40 {
		t.Errorf("%d rows set, want 40", n)
	}
	if res, err = r.db.DeleteWhere(ctx, r.tab, nil, &minikudu.WhereOptions{Atomic: true}); !errors.Is(err, minikudu.ErrTooLarge) {
		t.Errorf("atomic delete of all: %+v, %v", res, err)
	}
	if res, err = r.db.DeleteWhere(ctx, r.tab, nil, nil); err != nil || res.Changed != 40 || r.tab.Rows() != 0 {
		t.Errorf("delete of all: %+v, %v, %d rows left", res, err, r.tab.Rows())
	}
}

func TestWhereGeneratedIDs(t *testing.T) {
	spec := kvSpec()
	spec.NonUnique = true
	r := newRig(t, minikudu.Options{}, spec)
	r.insert([]any{1, 10}, []any{1, 10}, []any{1, 11}, []any{2, 10})
	id := predicate.Eq(schema.AutoIncrementName, 2)
	if res, err := r.db.DeleteWhere(ctx, r.tab, id, nil); err != nil || res.Changed != 1 {
		t.Fatalf("delete by id: %+v, %v", res, err)
	}
	if res, err := r.db.UpdateWhere(ctx, r.tab, predicate.Eq("key", 1), map[string]any{"val": 7}, nil); err != nil || res.Changed != 2 {
		t.Fatalf("update: %+v, %v", res, err)
	}
	sameSet(t, "rows", r.rows(minikudu.Query{Columns: []string{"key", schema.AutoIncrementName, "val"}}),
		[][]any{{int32(1), int64(1), int32(7)}, {int32(1), int64(3), int32(7)}, {int32(2), int64(4), int32(10)}})
}

func TestWhereRefusals(t *testing.T) {
	spec := table([]string{"b", "a"}, col("b", schema.Int32), col("a", schema.Int32), col("v", schema.Int32),
		minikudu.Column{Name: "fixed", Type: schema.Int32, Nullable: true, Immutable: true})
	r := newRig(t, minikudu.Options{}, spec)
	r.insert([]any{1, 2, 3, 4})
	update := func(set map[string]any) error {
		_, err := r.db.UpdateWhere(ctx, r.tab, nil, set, nil)
		return err
	}
	for name, test := range map[string]struct {
		err  error
		kind error
		text string
	}{
		"key columns":  {update(map[string]any{"a": 1, "b": 2, "v": 3}), minikudu.ErrInvalidArgument, "cannot set key columns: a, b"},
		"immutable":    {update(map[string]any{"fixed": 1}), minikudu.ErrImmutable, `"fixed"`},
		"unknown":      {update(map[string]any{"nope": 1}), minikudu.ErrInvalidArgument, `"nope"`},
		"wrong type":   {update(map[string]any{"v": "x"}), minikudu.ErrInvalidArgument, `"v"`},
		"null":         {update(map[string]any{"v": nil}), minikudu.ErrInvalidArgument, `"v"`},
		"nothing":      {update(nil), minikudu.ErrInvalidArgument, "nothing to update"},
		"other filter": {where(r, predicate.Eq("nope", 1), nil), minikudu.ErrInvalidArgument, `"nope"`},
		"batch rows":   {where(r, nil, &minikudu.WhereOptions{BatchRows: -1}), minikudu.ErrInvalidArgument, "-1"},
	} {
		if !errors.Is(test.err, test.kind) || !strings.Contains(test.err.Error(), test.text) {
			t.Errorf("%s: %v", name, test.err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := r.db.DeleteWhere(cancelled, r.tab, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	other := newRig(t, minikudu.Options{}, spec)
	if _, err := r.db.DeleteWhere(ctx, other.tab, nil, nil); !errors.Is(err, minikudu.ErrInvalidArgument) {
		t.Errorf("table of another DB: %v", err)
	}
	sameList(t, "rows", r.rows(minikudu.Query{}), [][]any{{int32(1), int32(2), int32(3), int32(4)}})
	if err := r.db.DropTable(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	if err := where(r, nil, nil); !errors.Is(err, minikudu.ErrNotFound) {
		t.Errorf("dropped table: %v", err)
	}
	mustClose(t, r.db)
	if err := where(r, nil, nil); !errors.Is(err, minikudu.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func where(r *rig, e minikudu.Expr, o *minikudu.WhereOptions) error {
	_, err := r.db.DeleteWhere(ctx, r.tab, e, o)
	return err
}

// A row that a writer took out of the filter's reach before the delete got to it is
// never deleted, and a reader never sees an atomic update in part.
func TestWhereBesideWriters(t *testing.T) {
	const rows = 3000
	r := newRig(t, minikudu.Options{FlushBytes: 64 << 10}, kvSpec())
	r.fill(rows)
	r.flush()
	saved := make([]atomic.Bool, rows)
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for k := w; k < rows; k += 7 {
				var b minikudu.WriteBatch
				b.Add(r.tab, minikudu.OpUpdateIgnore, map[string]any{"key": k, "val": 2})
				res, err := r.db.Commit(ctx, &b, &minikudu.CommitOptions{Durability: minikudu.NoSync})
				if err != nil {
					t.Error(err)
					return
				}
				saved[k].Store(res.Updated == 1)
			}
		})
	}
	writers.Go(func() {
		for range 5 {
			if err := r.tab.Flush(ctx); err != nil {
				t.Error(err)
			}
			if _, err := r.tab.Compact(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	res, err := r.db.DeleteWhere(ctx, r.tab, predicate.Eq("val", 1), &minikudu.WhereOptions{BatchRows: 50, Durability: minikudu.NoSync})
	if err != nil {
		t.Fatal(err)
	}
	writers.Wait()
	left := map[int64]bool{}
	for _, row := range r.rows(minikudu.Query{}) {
		left[row[0].(int64)] = true
		if row[1].(int64) != 2 {
			t.Errorf("row %v was to be deleted", row)
		}
	}
	want := 0
	for k := range saved {
		if saved[k].Load() {
			want++
			if !left[int64(k)] {
				t.Errorf("row %d was updated and then deleted", k)
			}
		}
	}
	if len(left) != want || res.Changed != int64(rows-want) {
		t.Errorf("%d rows left, want %d; %+v", len(left), want, res)
	}
}

func TestWhereAtomicBesideReaders(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	r.fill(2000)
	r.flush()
	done := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			b, err := r.tab.Aggregate(ctx, minikudu.Query{}, []string{"val"}, minikudu.Count())
			if err != nil || b.Len() != 1 {
				t.Errorf("a reader saw %d values, %v", b.Len(), err)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for v := range 30 {
		if _, err := r.db.UpdateWhere(ctx, r.tab, nil, map[string]any{"val": v}, &minikudu.WhereOptions{Atomic: true}); err != nil {
			t.Error(err)
		}
	}
	close(done)
	reader.Wait()
}
