package minikudu_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// eachChange runs check over what before and then change wrote: all in memory, flushed
// together, flushed between, flushed between and afterwards, compacted; and after a
// restart of each.
func eachChange(t *testing.T, spec minikudu.TableSpec, before, change func(r *rig), check func(t *testing.T, r *rig)) {
	t.Helper()
	for _, way := range []string{"memory", "flushed", "flushed, changed in memory", "changes flushed", "compacted"} {
		t.Run(way, func(t *testing.T) {
			r := newRig(t, minikudu.Options{}, spec)
			before(r)
			if strings.Contains(way, "change") || way == "compacted" {
				r.flush()
			}
			change(r)
			if way == "flushed" || way == "changes flushed" {
				r.flush()
			}
			if way == "compacted" {
				r.compact()
			}
			check(t, r)
			r.restart()
			check(t, r)
			r.compact()
			check(t, r)
		})
	}
}

func (r *rig) compact() *minikudu.CompactResult {
	r.Helper()
	res, err := r.tab.Compact(ctx)
	if err != nil {
		r.Fatal(err)
	}
	return res
}

// write commits one row.
func (r *rig) write(op minikudu.Op, row map[string]any) (*minikudu.Result, error) {
	var b minikudu.WriteBatch
	b.Add(r.tab, op, row)
	return r.db.Commit(ctx, &b, nil)
}

// do commits one row that must be accepted.
func (r *rig) do(op minikudu.Op, row map[string]any) *minikudu.Result {
	r.Helper()
	res, err := r.write(op, row)
	if err != nil {
		r.Fatal(err)
	}
	return res
}

// refused commits one row that must be refused for the cause, and do nothing.
func (r *rig) refused(op minikudu.Op, row map[string]any, cause error) {
	r.Helper()
	res, err := r.write(op, row)
	if !errors.Is(err, cause) || !errors.Is(err, minikudu.ErrRowsRejected) || res == nil || *res != (minikudu.Result{Timestamp: res.Timestamp, Rejected: 1}) {
		r.Fatalf("op %d of %v: %+v, %v, want %v", op, row, res, err, cause)
	}
}

func kv(k, v any) map[string]any { return map[string]any{"key": k, "val": v} }

func key(k any) map[string]any { return map[string]any{"key": k} }

// is fails unless the table holds the rows, by every way to read it.
func (r *rig) is(want ...[]any) {
	r.Helper()
	sameList(r, "rows", r.rows(minikudu.Query{Order: minikudu.KeyOrder}), want)
	backwards := r.rows(minikudu.Query{Order: minikudu.KeyReverse})
	slices.Reverse(backwards)
	sameList(r, "rows backwards", backwards, want)
	sameSet(r, "rows in storage order", r.rows(minikudu.Query{}), want)
	if n, err := r.tab.Count(ctx, nil); err != nil || n != int64(len(want)) || r.tab.Rows() != n {
		r.Fatalf("count %d, %d by metadata, want %d, %v", n, r.tab.Rows(), len(want), err)
	}
	nk := r.tab.Schema().NumKey()
	for _, row := range want {
		got, err := r.tab.Get(ctx, row[:nk]...)
		if err != nil {
			r.Fatalf("get of %v: %v", row[:nk], err)
		}
		for i, name := range r.tab.Schema().Names() {
			if got.Value(name) != row[i] {
				r.Fatalf("get of %v: %s is %v, want %v", row[:nk], name, got.Value(name), row[i])
			}
		}
	}
}

func (r *rig) absent(key ...any) {
	r.Helper()
	if row, err := r.tab.Get(ctx, key...); !errors.Is(err, minikudu.ErrNotFound) {
		r.Fatalf("get of %v: %v, %v", key, row, err)
	}
}

func nothing(*rig) {}

func TestItem30InsertOfALiveKeyUpdateOfAMissingOne(t *testing.T) {
	eachChange(t, kvSpec(), func(r *rig) { r.insert([]any{1, 10}, []any{2, 20}) }, nothing, func(t *testing.T, r *rig) {
		r.refused(minikudu.OpInsert, kv(1, 11), minikudu.ErrAlreadyPresent)
		r.refused(minikudu.OpUpdate, kv(3, 11), minikudu.ErrNotFound)
		if res := r.do(minikudu.OpUpdate, kv(2, 21)); *res != (minikudu.Result{Timestamp: res.Timestamp, Updated: 1}) {
			t.Fatalf("%+v", res)
		}
		r.is([]any{int64(1), int64(10)}, []any{int64(2), int64(21)})
		r.absent(3)
	})
}

func TestItem31DeleteAndInsertAgain(t *testing.T) {
	deletes := func(r *rig) {
		if res := r.do(minikudu.OpDelete, key(1)); *res != (minikudu.Result{Timestamp: res.Timestamp, Deleted: 1}) {
			r.Fatalf("%+v", res)
		}
		r.is()
	}
	eachChange(t, kvSpec(), func(r *rig) { r.insert([]any{1, 10}) }, deletes, func(t *testing.T, r *rig) {
		r.absent(1)
		r.refused(minikudu.OpDelete, key(1), minikudu.ErrNotFound)
		r.refused(minikudu.OpUpdate, kv(1, 11), minikudu.ErrNotFound)
		r.is()
		r.insert([]any{1, 12})
		r.is([]any{int64(1), int64(12)})
		r.do(minikudu.OpDelete, key(1))
		r.is()
	})
}

func TestItem36RowsThatLiveWithinABatchOnly(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	var b minikudu.WriteBatch
	b.Insert(r.tab, 1, 1)
	b.Delete(r.tab, 1)
	for range 2 {
		b.Insert(r.tab, 2, 1)
		b.Delete(r.tab, 2)
	}
	res := r.commit(&b)
	if *res != (minikudu.Result{Timestamp: res.Timestamp, Inserted: 3, Deleted: 3}) {
		t.Fatalf("%+v", res)
	}
	r.is()
	r.flush()
	if n := r.rowsetFiles(); n != 0 {
		t.Fatalf("%d files", n)
	}
	r.restart()
	r.is()
}

func TestItem38RowPutBackTakesDefaults(t *testing.T) {
	spec := minikudu.TableSpec{Key: []string{"k"}, Columns: []minikudu.Column{{Name: "k", Type: schema.Int32},
		{Name: "n", Type: schema.Int64, Default: schema.IntValue(schema.KindInt64, 7)}, {Name: "s", Type: schema.String, Nullable: true}}}
	for name, batches := range map[string]bool{"in one batch": false, "in batches": true} {
		t.Run(name, func(t *testing.T) {
			again := func(r *rig) {
				var b minikudu.WriteBatch
				for _, op := range []minikudu.Op{minikudu.OpDelete, minikudu.OpInsert} {
					b.Add(r.tab, op, map[string]any{"k": 1})
					if batches {
						r.commit(&b)
						b.Reset()
					}
				}
				r.commit(&b)
			}
			eachChange(t, spec, func(r *rig) { r.insert([]any{1, 1, "old"}) }, again, func(t *testing.T, r *rig) {
				r.is([]any{int64(1), int64(7), nil})
			})
		})
	}
}

func TestItem42UpdatesOfATenth(t *testing.T) {
	const rows = 10_000
	fill := func(r *rig) {
		var b minikudu.WriteBatch
		for k := range rows {
			b.Insert(r.tab, k, k)
		}
		r.commit(&b)
	}
	change := func(r *rig) {
		var b minikudu.WriteBatch
		for k := 3; k < rows; k += 10 {
			b.Add(r.tab, minikudu.OpUpdate, kv(k, -k))
		}
		if res := r.commit(&b); res.Updated != rows/10 {
			r.Fatalf("%+v", res)
		}
	}
	eachChange(t, kvSpec(), fill, change, func(t *testing.T, r *rig) {
		for i, row := range r.rows(minikudu.Query{Order: minikudu.KeyOrder}) {
			want := int64(i)
			if i%10 == 3 {
				want = -want
			}
			if row[0] != int64(i) || row[1] != want {
				t.Fatalf("row %d is %v", i, row)
			}
		}
		if n, err := r.tab.Count(ctx, predicate.Lt("val", 0)); err != nil || n != rows/10 {
			t.Fatalf("%d negative, %v", n, err)
		}
		r.refused(minikudu.OpUpdate, kv(rows, 1), minikudu.ErrNotFound)
		r.refused(minikudu.OpDelete, key(-1), minikudu.ErrNotFound)
		r.flush()
		if s, err := r.tab.Stats(ctx); err != nil || s.MemoryRows != 0 || r.db.Metrics().MemoryBytes != 0 {
			t.Fatalf("after a flush: %+v, %v, %d bytes", s, err, r.db.Metrics().MemoryBytes)
		}
	})
}

func TestItem43DeleteOfOneOfTwo(t *testing.T) {
	eachChange(t, kvSpec(), func(r *rig) { r.insert([]any{0, 1}, []any{1, 2}) }, func(r *rig) { r.do(minikudu.OpDelete, key(0)) }, func(t *testing.T, r *rig) {
		r.is([]any{int64(1), int64(2)})
		r.absent(0)
		r.refused(minikudu.OpDelete, key(0), minikudu.ErrNotFound)
		r.refused(minikudu.OpUpdate, kv(0, 1), minikudu.ErrNotFound)
	})
}

func TestItem44UpdatesOfOneRow(t *testing.T) {
	updates := func(r *rig) {
		for v := 2; v <= 5; v++ {
			r.do(minikudu.OpUpdate, kv(1, v))
			r.is([]any{int64(1), int64(v)})
		}
	}
	eachChange(t, kvSpec(), func(r *rig) { r.insert([]any{1, 1}) }, updates, func(t *testing.T, r *rig) { r.is([]any{int64(1), int64(5)}) })
	r := newRig(t, minikudu.Options{}, kvSpec())
	r.insert([]any{1, 1})
	for v := 2; v <= 5; v++ { // a file of changes for each
		r.flush()
		r.do(minikudu.OpUpdate, kv(1, v))
	}
	r.flush()
	r.is([]any{int64(1), int64(5)})
	r.restart()
	r.is([]any{int64(1), int64(5)})
}

func TestItem52DeletesAfterFlushedUpdates(t *testing.T) {
	r := newRig(t, minikudu.Options{}, forgetful(kvSpec()))
	for k := range 100 {
		r.insert([]any{k, k})
	}
	r.flush()
	if res, err := r.db.UpdateWhere(ctx, r.tab, nil, map[string]any{"val": 5}, nil); err != nil || res.Matched != 100 {
		t.Fatalf("%+v, %v", res, err)
	}
	r.flush()
	if n, err := r.tab.Count(ctx, predicate.Eq("val", 5)); err != nil || n != 100 {
		t.Fatal(n, err)
	}
	if _, err := r.db.DeleteWhere(ctx, r.tab, nil, nil); err != nil {
		t.Fatal(err)
	}
	r.is()
	r.flush()
	r.is()
	r.compact()
	r.is()
	if n := r.rowsetFiles(); n != 0 {
		t.Fatalf("%d files", n)
	}
}

// keyStates are ways in which keys 0 to 7 can be live, 8 to 15 be deleted and 16 to 23
// never have been. A live row is (k, 1, "old", 3).
var keyStates = []struct {
	name string
	make func(r *rig)
}{
	{"memory", func(r *rig) { r.lives(0, 16); r.deletes(8, 16) }},
	{"disk", func(r *rig) { r.lives(0, 16); r.deletes(8, 16); r.flush() }},
	{"disk, changes in memory", func(r *rig) { r.lives(0, 16); r.flush(); r.rewrites(0, 8); r.deletes(8, 16) }},
	{"disk, changes in a file", func(r *rig) { r.lives(0, 16); r.flush(); r.rewrites(0, 8); r.deletes(8, 16); r.flush() }},
	{"disk, files and memory", func(r *rig) {
		r.lives(0, 16)
		r.flush()
		r.rewrites(0, 8)
		r.deletes(8, 12)
		r.flush()
		r.rewrites(4, 8)
		r.deletes(12, 16)
	}},
	{"ghosts on disk, live in memory", func(r *rig) {
		r.lives(0, 16)
		r.flush()
		r.deletes(0, 16)
		r.lives(0, 16)
		r.deletes(8, 16)
	}},
	{"ghosts on disk in a file, live in memory", func(r *rig) {
		r.lives(0, 16)
		r.flush()
		r.deletes(0, 16)
		r.flush()
		r.lives(0, 16)
		r.deletes(8, 16)
	}},
	{"ghosts on disk, live on disk", func(r *rig) {
		r.lives(0, 16)
		r.flush()
		r.deletes(0, 16)
		r.lives(0, 16)
		r.flush()
		r.deletes(8, 16)
	}},
	{"compacted", func(r *rig) { r.lives(0, 16); r.flush(); r.rewrites(0, 8); r.deletes(8, 16); r.compact() }},
}

func (r *rig) each(from, to int, op minikudu.Op, cells map[string]any) {
	r.Helper()
	var b minikudu.WriteBatch
	for k := from; k < to; k++ {
		row := map[string]any{"k": k}
		for c, v := range cells {
			row[c] = v
		}
		b.Add(r.tab, op, row)
	}
	r.commit(&b)
}

func (r *rig) lives(from, to int) {
	r.Helper()
	r.each(from, to, minikudu.OpInsert, map[string]any{"n": 1, "s": "old", "c": 3})
}

func (r *rig) rewrites(from, to int) {
	r.Helper()
	r.each(from, to, minikudu.OpUpdate, map[string]any{"n": 2})
	r.each(from, to, minikudu.OpUpdate, map[string]any{"n": 1, "s": "old"})
}

func (r *rig) deletes(from, to int) {
	r.Helper()
	r.each(from, to, minikudu.OpDelete, nil)
}

// Every operation on a key in every state, in a batch of its own and in one batch with
// all others, wherever the rows are.
func TestItem61EveryOperationInEveryState(t *testing.T) {
	for _, state := range keyStates {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, together %v", state.name, together), func(t *testing.T) {
				r := newRig(t, minikudu.Options{}, mutableSpec())
				state.make(r)
				var want [][]any
				var b minikudu.WriteBatch
				var sum minikudu.Result
				for k := range 24 {
					op, live := ops[k%8], k < 8
					cells := map[string]any{"k": k}
					if op < minikudu.OpDelete {
						cells["n"] = 100
					}
					res, row, cause := outcome(op, live, k)
					if row != nil {
						want = append(want, row)
					}
					sum.Inserted, sum.Updated, sum.Deleted = sum.Inserted+res.Inserted, sum.Updated+res.Updated, sum.Deleted+res.Deleted
					sum.Ignored, sum.Rejected = sum.Ignored+res.Ignored, sum.Rejected+res.Rejected
					if together {
						b.Add(r.tab, op, cells)
						continue
					}
					got, err := r.write(op, cells)
					if !errors.Is(err, cause) || got == nil {
						t.Fatalf("op %d, live %v: %v, want %v", op, live, err, cause)
					}
					if res.Timestamp = got.Timestamp; *got != res {
						t.Fatalf("op %d, live %v: %+v, want %+v", op, live, got, res)
					}
				}
				if together {
					got, err := r.db.Commit(ctx, &b, nil)
					if sum.Timestamp = got.Timestamp; *got != sum || !errors.Is(err, minikudu.ErrRowsRejected) {
						t.Fatalf("%+v, %v, want %+v", got, err, sum)
					}
				}
				r.is(want...)
				r.restart()
				r.is(want...)
				r.flush()
				r.is(want...)
				r.restart()
				r.is(want...)
				r.compact()
				r.is(want...)
			})
		}
	}
}

// outcome is what an operation that sets n to 100 does to key k, and its row then.
func outcome(op minikudu.Op, live bool, k int) (one minikudu.Result, row []any, cause error) {
	old, fresh := []any{int64(k), int64(1), "old", int64(3)}, []any{int64(k), int64(100), nil, nil}
	changed := []any{int64(k), int64(100), "old", int64(3)}
	switch {
	case op == minikudu.OpInsert && live:
		one.Rejected = 1
		return one, old, minikudu.ErrAlreadyPresent
	case op == minikudu.OpInsertIgnore && live:
		one.Ignored = 1
		return one, old, nil
	case op <= minikudu.OpUpsertIgnore && !live:
		one.Inserted = 1
		return one, fresh, nil
	case op <= minikudu.OpUpdateIgnore && live:
		one.Updated = 1
		return one, changed, nil
	case live:
		one.Deleted = 1
		return one, nil, nil
	case op == minikudu.OpUpdate || op == minikudu.OpDelete:
		one.Rejected = 1
		return one, nil, minikudu.ErrNotFound
	}
	one.Ignored = 1
	return one, nil, nil
}

func TestItem62ErrorsByPosition(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	var b minikudu.WriteBatch
	b.Insert(r.tab, 1, 10)
	b.Insert(r.tab, 1, 11)
	b.Add(r.tab, minikudu.OpUpdate, kv(5, 1))
	b.Insert(r.tab, 2, 20)
	res, err := r.db.Commit(ctx, &b, nil)
	var rej *minikudu.RejectedError
	if !errors.As(err, &rej) || !rej.Applied || len(rej.Rows) != 2 || rej.Rows[0].Row != 1 || !errors.Is(&rej.Rows[0], minikudu.ErrAlreadyPresent) ||
		rej.Rows[1].Row != 2 || !errors.Is(&rej.Rows[1], minikudu.ErrNotFound) || res.Inserted != 2 || res.Rejected != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	r.is([]any{int64(1), int64(10)}, []any{int64(2), int64(20)})
	b.Reset()
	b.Insert(r.tab, 3, 30)
	b.Add(r.tab, minikudu.OpUpdate, kv(3, 31))
	b.Delete(r.tab, 3)
	b.Insert(r.tab, 3, 32)
	if res := r.commit(&b); res.Inserted != 2 || res.Updated != 1 || res.Deleted != 1 {
		t.Fatalf("%+v", res)
	}
	r.is([]any{int64(1), int64(10)}, []any{int64(2), int64(20)}, []any{int64(3), int64(32)})
	r.restart()
	r.is([]any{int64(1), int64(10)}, []any{int64(2), int64(20)}, []any{int64(3), int64(32)})
}

func TestItem63ValuesOfChanges(t *testing.T) {
	spec := table([]string{"key"}, col("key", schema.String), col("must", schema.Int32), null(col("s", schema.String)),
		minikudu.Column{Name: "d", Type: schema.Int32, Nullable: true, Default: schema.IntValue(schema.KindInt32, 4)})
	row := func(pairs ...any) map[string]any {
		m := map[string]any{"key": "a"}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	live := func(r *rig) { r.insert([]any{"a", 1, "x", 9}) }
	eachChange(t, spec, live, nothing, func(t *testing.T, r *rig) {
		bad := minikudu.ErrInvalidArgument
		for _, op := range []minikudu.Op{minikudu.OpUpsert, minikudu.OpUpsertIgnore, minikudu.OpUpdate, minikudu.OpUpdateIgnore} {
			r.refused(op, row("must", nil), bad)
			r.refused(op, row("must", 1, "key", nil), bad)
			r.refused(op, map[string]any{"must": 1}, bad)
			r.refused(op, row("must", 1, "s", strings.Repeat("x", 65_537)), bad)
			r.refused(op, row("must", 1, "what", 1), bad)
			r.refused(op, row("must", "no number"), bad)
			r.refused(op, row("must", int64(1)<<40), bad)
		}
		r.refused(minikudu.OpUpsert, row("s", "y"), bad) // the column must has no value, though the key is live
		r.refused(minikudu.OpUpdate, row(), bad)
		r.refused(minikudu.OpUpdateIgnore, row(), bad)
		for _, op := range []minikudu.Op{minikudu.OpDelete, minikudu.OpDeleteIgnore} {
			r.refused(op, row("s", nil), bad)
			r.refused(op, map[string]any{}, bad)
			r.refused(op, row("key", nil), bad)
		}
		long := strings.Repeat("k", 17_000)
		r.refused(minikudu.OpUpsert, row("key", long, "must", 1), bad)
		r.refused(minikudu.OpUpdate, row("key", long, "must", 1), minikudu.ErrNotFound)
		r.refused(minikudu.OpDelete, row("key", long), minikudu.ErrNotFound)
		if res := r.do(minikudu.OpDeleteIgnore, row("key", long)); res.Ignored != 1 {
			t.Fatalf("%+v", res)
		}
		r.is([]any{"a", int64(1), "x", int64(9)})
		full := strings.Repeat("x", 65_536)
		r.do(minikudu.OpUpsert, row("must", 1, "s", full, "d", nil)) // a null beats the default
		r.is([]any{"a", int64(1), full, nil})
		r.do(minikudu.OpUpsert, map[string]any{"key": "b", "must": 2, "d": nil})
		r.do(minikudu.OpUpsert, map[string]any{"key": "c", "must": 3})
		r.is([]any{"a", int64(1), full, nil}, []any{"b", int64(2), nil, nil}, []any{"c", int64(3), nil, int64(4)})
		r.do(minikudu.OpUpdate, row("s", "x", "d", 9))
		r.do(minikudu.OpDelete, map[string]any{"key": "b"})
		r.do(minikudu.OpDelete, map[string]any{"key": "c"})
	})
}

func TestItem65UpsertLeavesColumnsAlone(t *testing.T) {
	spec := minikudu.TableSpec{Key: []string{"k"}, Columns: []minikudu.Column{{Name: "k", Type: schema.Int32},
		{Name: "a", Type: schema.Int32, Default: schema.IntValue(schema.KindInt32, 5)}, {Name: "b", Type: schema.Int32, Nullable: true}}}
	change := func(r *rig) {
		if res := r.do(minikudu.OpUpsert, map[string]any{"k": 1, "b": 2}); res.Updated != 1 || res.Inserted != 0 {
			r.Fatalf("%+v", res)
		}
		res := r.do(minikudu.OpUpsert, map[string]any{"k": 1})
		if *res != (minikudu.Result{Timestamp: res.Timestamp, Unchanged: 1}) {
			r.Fatalf("%+v", res)
		}
	}
	eachChange(t, spec, func(r *rig) { r.insert([]any{1, 77, 1}) }, change, func(t *testing.T, r *rig) {
		r.is([]any{int64(1), int64(77), int64(2)})
	})
	keyOnly := table([]string{"k"}, col("k", schema.Int32))
	eachChange(t, keyOnly, nothing, func(r *rig) {
		var b minikudu.WriteBatch
		for _, op := range []minikudu.Op{minikudu.OpUpsert, minikudu.OpDelete, minikudu.OpUpsert, minikudu.OpUpsert} {
			b.Add(r.tab, op, map[string]any{"k": 1})
		}
		if res := r.commit(&b); res.Inserted != 2 || res.Deleted != 1 || res.Unchanged != 1 {
			r.Fatalf("%+v", res)
		}
	}, func(t *testing.T, r *rig) { r.is([]any{int64(1)}) })
}

func TestItem66ImmutableColumns(t *testing.T) {
	spec := minikudu.TableSpec{Key: []string{"k"}, Columns: []minikudu.Column{{Name: "k", Type: schema.Int32},
		{Name: "a", Type: schema.Int32, Nullable: true}, {Name: "c", Type: schema.Int32, Nullable: true, Immutable: true}}}
	row := func(a int) map[string]any { return map[string]any{"k": 1, "a": a, "c": 9} }
	onlyC := map[string]any{"k": 1, "c": 9}
	eachChange(t, spec, func(r *rig) { r.insert([]any{1, 1, 1}) }, nothing, func(t *testing.T, r *rig) {
		r.refused(minikudu.OpUpdate, row(2), minikudu.ErrImmutable)
		r.refused(minikudu.OpUpdate, onlyC, minikudu.ErrImmutable)
		r.refused(minikudu.OpUpsert, row(2), minikudu.ErrImmutable)
		r.refused(minikudu.OpUpdateIgnore, onlyC, minikudu.ErrInvalidArgument)
		r.is([]any{int64(1), int64(1), int64(1)})
		r.do(minikudu.OpUpdateIgnore, row(2))
		r.is([]any{int64(1), int64(2), int64(1)})
		r.do(minikudu.OpUpsertIgnore, row(3))
		r.is([]any{int64(1), int64(3), int64(1)})
		if res := r.do(minikudu.OpUpsertIgnore, onlyC); res.Updated != 0 || res.Unchanged != 1 {
			t.Fatalf("%+v", res)
		}
		r.do(minikudu.OpUpsert, map[string]any{"k": 2, "c": 4})
		r.is([]any{int64(1), int64(3), int64(1)}, []any{int64(2), nil, int64(4)})
		r.do(minikudu.OpUpdate, map[string]any{"k": 1, "a": 1})
		r.do(minikudu.OpDelete, map[string]any{"k": 2})
	})
}

func TestItem67UpsertsOfGeneratedIDs(t *testing.T) {
	id := schema.AutoIncrementName
	event := func(i any) map[string]any { return map[string]any{"host": "a", id: i, "v": 1} }
	r := newRig(t, minikudu.Options{}, eventSpec())
	for range 10 {
		r.insert([]any{"a", 1})
	}
	r.refused(minikudu.OpInsert, event(5), minikudu.ErrInvalidArgument)
	for _, op := range []minikudu.Op{minikudu.OpUpsert, minikudu.OpUpsertIgnore} {
		r.refused(op, map[string]any{"host": "a", "v": 1}, minikudu.ErrInvalidArgument)
		r.refused(op, event(nil), minikudu.ErrInvalidArgument)
		r.refused(op, event(-1), minikudu.ErrInvalidArgument)
	}
	minus := vector.FromFixed(schema.KindInt64, []int64{-1, 12}, nil)
	hosts := vector.New(schema.KindBytes, 2)
	_ = hosts.Append(schema.StringValue("a"))
	_ = hosts.Append(schema.StringValue("a"))
	var b minikudu.WriteBatch
	if err := b.AddColumns(r.tab, minikudu.OpUpsert, []string{"host", id}, []*vector.Vector{hosts, minus}); err != nil {
		t.Fatal(err)
	}
	if res, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrInvalidArgument) || res.Inserted != 1 || res.Rejected != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	for i := 11; i <= 20; i++ {
		r.do(minikudu.OpUpsert, event(i))
	}
	r.insert([]any{"a", 2})
	ids := r.ids()
	if len(ids) != 21 || ids[20] != 21 {
		t.Fatal(ids)
	}
	r.flush()
	r.do(minikudu.OpUpsert, event(30))
	r.restart() // the largest is in the log
	r.insert([]any{"a", 3})
	r.do(minikudu.OpUpdate, event(31))
	r.flush()
	r.restart() // the largest is on disk
	r.insert([]any{"a", 4})
	if ids := r.ids(); ids[len(ids)-1] != 32 || ids[len(ids)-2] != 31 || ids[len(ids)-3] != 30 {
		t.Fatal(ids)
	}
	r.do(minikudu.OpUpsert, event(int64(math.MaxInt64)))
	full := func() {
		t.Helper()
		b.Reset()
		b.Insert(r.tab, "a", 1)
		if _, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrIllegalState) {
			t.Fatal(err)
		}
	}
	full()
	r.do(minikudu.OpUpsert, event(100))
	full()
	r.restart()
	full()
}

func TestItem94LiveCountOfChanges(t *testing.T) {
	count := func(r *rig, want int) {
		r.Helper()
		if n, err := r.tab.Count(ctx, nil); err != nil || n != int64(want) || r.tab.Rows() != n || len(r.rows(minikudu.Query{Order: minikudu.KeyOrder})) != want {
			r.Fatalf("count %d, %d by metadata, want %d, %v", n, r.tab.Rows(), want, err)
		}
	}
	steps := map[string]func(r *rig){"nothing": nothing, "flush": (*rig).flush, "restart": (*rig).restart, "compact": func(r *rig) { r.compact() },
		"flush and restart": func(r *rig) { r.flush(); r.restart() }}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, minikudu.Options{}, kvSpec())
			for k := range 100 {
				r.insert([]any{k, k})
			}
			step(r)
			count(r, 100)
			for k := range 80 {
				r.do(minikudu.OpUpdate, kv(k, 1000))
			}
			step(r)
			count(r, 100)
			for k := 50; k < 100; k++ {
				r.do(minikudu.OpDelete, key(k))
			}
			step(r)
			count(r, 50)
			for k := 60; k < 70; k++ {
				r.insert([]any{k, k})
			}
			step(r)
			count(r, 60)
			for _, last := range []func(r *rig){(*rig).flush, (*rig).restart, func(r *rig) { r.compact() }, (*rig).restart} {
				last(r)
				count(r, 60)
			}
		})
	}
}
