package minikudu_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

func TestC26SecondUpsertInABatch(t *testing.T) {
	eachChange(t, kvSpec(), nothing, func(r *rig) {
		var b minikudu.WriteBatch
		b.Insert(r.tab, 1, 1)
		b.Insert(r.tab, 1, 2)
		if res, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrAlreadyPresent) || res.Inserted != 1 || res.Rejected != 1 {
			r.Fatalf("%+v, %v", res, err)
		}
		b.Reset()
		b.Upsert(r.tab, 1, 3)
		b.Upsert(r.tab, 1, 4)
		b.Upsert(r.tab, 2, 1)
		b.Upsert(r.tab, 2, 2)
		if res := r.commit(&b); res.Inserted != 1 || res.Updated != 3 {
			r.Fatalf("%+v", res)
		}
		b.Reset()
		b.Insert(r.tab, 3, 1)
		b.Add(r.tab, minikudu.OpUpdate, kv(3, 2))
		b.Upsert(r.tab, 3, 3)
		b.Delete(r.tab, 3)
		r.commit(&b)
	}, func(t *testing.T, r *rig) {
		r.is([]any{int64(1), int64(4)}, []any{int64(2), int64(2)})
		r.absent(3)
	})
}

func TestC27DeleteAndInsertInABatch(t *testing.T) {
	var past []minikudu.Timestamp // of the lives of key 2
	eachChange(t, kvSpec(), func(r *rig) { r.insert([]any{1, 0}, []any{2, 0}) }, func(r *rig) {
		past = nil
		var b minikudu.WriteBatch
		for i := range 5 {
			b.Delete(r.tab, 1)
			b.Insert(r.tab, 1, i+1)
		}
		if res := r.commit(&b); res.Deleted != 5 || res.Inserted != 5 {
			r.Fatalf("%+v", res)
		}
		for i := range 5 {
			r.do(minikudu.OpDelete, key(2))
			past = append(past, r.do(minikudu.OpInsert, kv(2, 10+i)).Timestamp)
		}
		b.Reset()
		b.Delete(r.tab, 3)
		b.Insert(r.tab, 3, 3)
		if res, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrNotFound) || res.Rejected != 1 || res.Inserted != 1 {
			r.Fatalf("%+v, %v", res, err)
		}
	}, func(t *testing.T, r *rig) {
		r.is([]any{int64(1), int64(5)}, []any{int64(2), int64(14)}, []any{int64(3), int64(3)})
		for i, at := range past { // older versions are visible to older snapshots, and to no other
			r.asOf(at, row(1, 5), row(2, 10+i))
			r.asOf(at-1, row(1, 5))
		}
	})
	n := int32(100_000)
	if testing.Short() {
		n = 10_000
	}
	r := newRig(t, minikudu.Options{}, kvSpec())
	keys, ones, twos := make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range n {
		keys[i], ones[i], twos[i] = i, 1, 2
	}
	names := []string{"key", "val"}
	vec := func(v []int32) *vector.Vector { return vector.FromFixed(schema.KindInt32, v, nil) }
	var b minikudu.WriteBatch
	if err := b.InsertColumns(r.tab, names, []*vector.Vector{vec(keys), vec(ones)}); err != nil {
		t.Fatal(err)
	}
	before := r.commit(&b).Timestamp
	r.flush()
	b.Reset()
	if err := errors.Join(b.AddColumns(r.tab, minikudu.OpDelete, names[:1], []*vector.Vector{vec(keys)}),
		b.InsertColumns(r.tab, names, []*vector.Vector{vec(keys), vec(twos)})); err != nil {
		t.Fatal(err)
	}
	if res := r.commit(&b); res.Deleted != int64(n) || res.Inserted != int64(n) {
		t.Fatalf("%+v", res)
	}
	for range 3 {
		if c, err := r.tab.Count(ctx, predicate.Eq("val", 2)); err != nil || c != int64(n) || r.tab.Rows() != c {
			t.Fatalf("%d rows, %d by metadata, %v", c, r.tab.Rows(), err)
		}
		old, err := r.tab.Aggregate(ctx, minikudu.Query{AsOf: before, Where: predicate.Eq("val", 1)}, nil, minikudu.Count())
		if err != nil || old.Column(0).Int64s()[0] != int64(n) {
			t.Fatalf("%v rows before, %v", old, err)
		}
		r.flush()
		r.restart()
	}
}

// life plays steps on one key: i(nsert), u(pdate), p (upsert), d(elete), f(lush),
// c(ompact), m(ajor delta compaction), r(estart); a digit is the key, 0 at first. It
// compares after each, the rows now and at every commit before.
func life(t *testing.T, steps string) {
	t.Helper()
	r := newRig(t, minikudu.Options{}, kvSpec())
	type moment struct {
		at   minikudu.Timestamp
		rows [][]any
	}
	var past []moment
	rows, k := map[int]int{}, 0
	for i, c := range steps {
		var at minikudu.Timestamp
		switch c {
		case 'i', 'u', 'p':
			rows[k] = i
			at = r.do(map[rune]minikudu.Op{'i': minikudu.OpInsert, 'u': minikudu.OpUpdate, 'p': minikudu.OpUpsert}[c], kv(k, i)).Timestamp
		case 'd':
			delete(rows, k)
			at = r.do(minikudu.OpDelete, key(k)).Timestamp
		case 'f':
			r.flush()
		case 'c':
			r.compact()
		case 'm':
			r.fold()
		case 'r':
			r.restart()
		default:
			k = int(c - '0')
		}
		var want [][]any
		for j := range 3 {
			if v, ok := rows[j]; ok {
				want = append(want, []any{int64(j), int64(v)})
			}
		}
		r.is(want...)
		if at > 0 {
			past = append(past, moment{at, want})
		}
		for _, m := range past {
			r.asOf(m.at, m.rows...)
		}
	}
}

func TestC28LivesOfAKey(t *testing.T) {
	for _, steps := range []string{"ifdifc", "idfidifcdc", "ifdidfc", "ifdifdifdifc", "ifufdfifufdfic", "ifdircfdrif", "if1if0dfi1c",
		"ifdfifdfifdfcrifc", "idiffrdic", "ifufufdrcifr",
		"ifufmdfmifufmdcic", "ifudifumdicfm", "if1if0udif1umdfcr"} {
		t.Run(steps, func(t *testing.T) { life(t, steps) })
	}
}

func TestC31UpsertsAreReplayed(t *testing.T) {
	life(t, "1ipfpdp0ifr1ur")
	r := newRig(t, minikudu.Options{}, kvSpec())
	r.insert([]any{1, 5})
	if res := r.do(minikudu.OpUpsert, key(1)); res.Unchanged != 1 {
		t.Fatalf("%+v", res)
	}
	r.restart()
	r.is([]any{int64(1), int64(5)})
	r.flush()
	r.do(minikudu.OpUpsert, key(1))
	r.restart()
	r.is([]any{int64(1), int64(5)})
}

func TestC32KeysOnly(t *testing.T) {
	r := newRig(t, minikudu.Options{}, table([]string{"key"}, col("key", schema.Int32)))
	for _, op := range []minikudu.Op{minikudu.OpUpsert, minikudu.OpDelete, minikudu.OpUpsert, minikudu.OpUpsert} {
		r.do(op, key(1))
	}
	r.refused(minikudu.OpUpdate, key(1), minikudu.ErrInvalidArgument)
	for _, step := range []func(){r.flush, func() { r.compact() }, r.restart} {
		step()
		r.is([]any{int64(1)})
	}
	r.do(minikudu.OpDelete, key(1))
	r.do(minikudu.OpUpsert, key(1))
	r.restart()
	r.is([]any{int64(1)})
	r.flush()
	r.is([]any{int64(1)})
}

func TestC35CompactionsLeaveDeletedRowsDeleted(t *testing.T) {
	r := newRig(t, minikudu.Options{RowSetBytes: 8 << 10}, metricSpec())
	const n = 5000
	load := func(from int) {
		var b minikudu.WriteBatch
		for i := from; i < from+n; i++ {
			b.Insert(r.tab, fmt.Sprintf("host%d", i%10), i, float64(i), "tag", i)
		}
		r.commit(&b)
		r.flush()
	}
	load(0)
	load(n)
	check := func(step string) {
		t.Helper()
		dead, err := r.tab.Count(ctx, predicate.Ge("n", n))
		if err != nil || dead != 0 || r.tab.Rows() != n || count(t, r.tab, minikudu.Query{Order: minikudu.KeyOrder}) != n {
			t.Fatalf("%s: %d deleted rows, %d rows, %v", step, dead, r.tab.Rows(), err)
		}
		for _, i := range []int{n, n + 1, 2*n - 1} {
			r.absent(fmt.Sprintf("host%d", i%10), i)
		}
	}
	if res, err := r.db.DeleteWhere(ctx, r.tab, predicate.Ge("n", n), nil); err != nil || res.Matched != n {
		t.Fatalf("%+v, %v", res, err)
	}
	check("deleted")
	r.flush()
	check("flushed")
	for range 3 {
		r.compact()
		check("compacted")
		r.restart()
		check("restarted")
	}
}

// Deletes only in the first page of a rowset, only in the last, or of one page whole.
func TestC37DeletesInOnePage(t *testing.T) {
	spec := kvSpec()
	for i := range spec.Columns {
		spec.Columns[i].BlockSize = 4096
		spec.Columns[i].Encoding = schema.EncodingPlain
	}
	const n, page = 10_000, 1000
	for _, dead := range [][2]int{{3, 9}, {n - 9, n - 3}, {0, page}, {2 * page, 4 * page}, {n - page, n}} {
		for _, neighbour := range []bool{false, true} {
			t.Run(fmt.Sprint(dead, neighbour), func(t *testing.T) {
				r := newRig(t, minikudu.Options{}, spec)
				var b minikudu.WriteBatch
				for k := range n {
					b.Insert(r.tab, k, k)
				}
				r.commit(&b)
				r.flush()
				want := n - (dead[1] - dead[0])
				if neighbour {
					r.insert([]any{n + 1, 1}, []any{n + 2, 2})
					r.flush()
					want += 2
				}
				b.Reset()
				for k := dead[0]; k < dead[1]; k++ {
					b.Delete(r.tab, k)
				}
				r.commit(&b)
				check := func() {
					t.Helper()
					gone, err := r.tab.Count(ctx, predicate.And(predicate.Ge("key", dead[0]), predicate.Lt("key", dead[1])))
					if err != nil || gone != 0 || int(r.tab.Rows()) != want || count(t, r.tab, minikudu.Query{}) != want {
						t.Fatalf("%d deleted rows, %d by metadata, want %d, %v", gone, r.tab.Rows(), want, err)
					}
				}
				for _, step := range []func(){r.flush, func() { r.compact() }, r.restart} {
					check()
					step()
				}
				check()
			})
		}
	}
}

// All rows of a host are deleted one by one.
func TestC38HostsDeletedWhole(t *testing.T) {
	hosts := []string{"aaa", "cpu", "mem", "zzz"}
	for _, dead := range [][]string{{"cpu"}, {"aaa"}, {"zzz"}, {"cpu", "mem"}, hosts} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			r := newRig(t, minikudu.Options{}, forgetful(metricSpec()))
			var want [][]any
			for _, h := range hosts {
				for i := range 20 {
					r.insert([]any{h, i, 1.5, "t", i})
				}
			}
			r.flush()
			gone := strings.Join(dead, " ")
			for _, row := range r.rows(minikudu.Query{Order: minikudu.KeyOrder}) {
				if !strings.Contains(gone, row[0].(string)) {
					want = append(want, row)
				}
			}
			for _, h := range dead {
				for i := range 20 {
					r.do(minikudu.OpDelete, map[string]any{"host": h, "ts": i})
				}
			}
			for _, step := range []func(){r.flush, func() { r.compact() }, r.restart, func() { r.compact() }} {
				r.is(want...)
				step()
			}
			r.is(want...)
			if files := r.rowsetFiles(); len(want) == 0 && files != 0 {
				t.Fatalf("%d files", files)
			}
		})
	}
}

func TestC42MergesWithoutOutput(t *testing.T) {
	r := newRig(t, minikudu.Options{}, forgetful(kvSpec()))
	for k := range 3 {
		r.insert([]any{k, k})
		r.flush()
	}
	for k := range 3 {
		r.do(minikudu.OpDelete, key(k))
	}
	if res := r.compact(); res.RowsDropped != 3 || res.Outputs != 0 || r.rowsetFiles() != 0 {
		t.Fatalf("%+v, %d files", res, r.rowsetFiles())
	}
	r.is()
	r.restart()
	r.is()
	r.insert([]any{1, 5})
	r.is([]any{int64(1), int64(5)})
	r.restart()
	r.is([]any{int64(1), int64(5)})
	r.flush()
	if res := r.compact(); res.Compactions != 0 {
		t.Fatalf("one rowset without changes was rewritten: %+v", res)
	}
}

func TestC45NothingToWriteLeavesNoFile(t *testing.T) {
	r := newRig(t, minikudu.Options{}, forgetful(kvSpec()))
	r.flush()
	before := r.rowsetFiles()
	rounds := 1000
	if testing.Short() {
		rounds = 50
	}
	for range rounds {
		r.flush()
		r.compact()
	}
	if after := r.rowsetFiles(); after != before {
		t.Fatalf("%d files before, %d after", before, after)
	}
	for i := range rounds {
		r.insert([]any{i, i})
		r.do(minikudu.OpDelete, key(i))
		r.flush()
		if n := r.rowsetFiles(); n != 0 {
			t.Fatalf("%d files", n)
		}
	}
	r.compact()
	r.restart()
	r.is()
	if n := r.rowsetFiles(); n != 0 {
		t.Fatalf("%d files", n)
	}
}

func TestC96DeletedAndRewrittenRowsFreeTheirSpace(t *testing.T) {
	r := newRig(t, minikudu.Options{}, forgetful(textSpec()))
	bytes := func() int64 {
		s, err := r.tab.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s.Bytes
	}
	var b minikudu.WriteBatch
	noise := uint32(1)
	text := func(n int) string {
		out := make([]byte, n)
		for i := range out {
			noise = noise*1664525 + 1013904223
			out[i] = 'a' + byte(noise>>24)%26
		}
		return string(out)
	}
	for i := range 2000 {
		b.Insert(r.tab, fmt.Sprint("key", i), text(1000), nil)
	}
	r.commit(&b)
	r.flush()
	full := bytes()
	if full < 1<<20 {
		t.Fatalf("%d bytes", full)
	}
	if _, err := r.db.DeleteWhere(ctx, r.tab, predicate.Ne("k", "key7"), nil); err != nil {
		t.Fatal(err)
	}
	r.flush()
	if res := r.compact(); res.RowsDropped != 1999 || bytes() > full/100 {
		t.Fatalf("%+v, %d bytes of %d are left", res, bytes(), full)
	}
	for range 50 {
		r.do(minikudu.OpUpdate, map[string]any{"k": "key7", "s": text(20_000)})
		r.flush()
	}
	if n := r.rowsetFiles(); n < 2 {
		t.Fatalf("%d files", n)
	}
	r.compact()
	if n := bytes(); n > 40_000 || r.rowsetFiles() != 1 {
		t.Fatalf("%d bytes for one row, %d files", n, r.rowsetFiles())
	}
}

func TestAllOrNothingOfMixedOperations(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	r.insert([]any{1, 1}, []any{2, 2})
	r.flush()
	var b minikudu.WriteBatch
	b.Insert(r.tab, 3, 3)
	b.Add(r.tab, minikudu.OpUpdate, kv(1, 9))
	b.Delete(r.tab, 2)
	b.Delete(r.tab, 7)
	b.Add(r.tab, minikudu.OpDeleteIgnore, key(8))
	res, err := r.db.Commit(ctx, &b, &minikudu.CommitOptions{AllOrNothing: true})
	var rej *minikudu.RejectedError
	if !errors.As(err, &rej) || rej.Applied || len(rej.Rows) != 1 || rej.Rows[0].Row != 3 || res.Rejected != 1 || res.Inserted+res.Updated+res.Deleted != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	r.is([]any{int64(1), int64(1)}, []any{int64(2), int64(2)})
	r.do(minikudu.OpUpdate, kv(2, 3)) // the keys are free again
	r.insert([]any{7, 7})
	if res, err = r.db.Commit(ctx, &b, &minikudu.CommitOptions{AllOrNothing: true}); err != nil ||
		*res != (minikudu.Result{Timestamp: res.Timestamp, Inserted: 1, Updated: 1, Deleted: 2, Ignored: 1}) {
		t.Fatalf("%+v, %v", res, err)
	}
	r.is([]any{int64(1), int64(9)}, []any{int64(3), int64(3)})
	r.restart()
	r.is([]any{int64(1), int64(9)}, []any{int64(3), int64(3)})
}

// Each operation by columns, on live, deleted and unknown keys, a key twice.
func TestOperationsByColumns(t *testing.T) {
	vec := func(v ...int32) *vector.Vector { return vector.FromFixed(schema.KindInt32, v, nil) }
	keys := func() *vector.Vector { return vec(1, 2, 3, 1) } // live, deleted, unknown, live
	want := map[minikudu.Op]struct {
		res  minikudu.Result
		rows string
	}{
		minikudu.OpInsert:       {minikudu.Result{Inserted: 2, Rejected: 2}, "[[1 10] [2 200] [3 300]]"},
		minikudu.OpInsertIgnore: {minikudu.Result{Inserted: 2, Ignored: 2}, "[[1 10] [2 200] [3 300]]"},
		minikudu.OpUpsert:       {minikudu.Result{Inserted: 2, Updated: 2}, "[[1 400] [2 200] [3 300]]"},
		minikudu.OpUpsertIgnore: {minikudu.Result{Inserted: 2, Updated: 2}, "[[1 400] [2 200] [3 300]]"},
		minikudu.OpUpdate:       {minikudu.Result{Updated: 2, Rejected: 2}, "[[1 400]]"},
		minikudu.OpUpdateIgnore: {minikudu.Result{Updated: 2, Ignored: 2}, "[[1 400]]"},
		minikudu.OpDelete:       {minikudu.Result{Deleted: 1, Rejected: 3}, "[]"},
		minikudu.OpDeleteIgnore: {minikudu.Result{Deleted: 1, Ignored: 3}, "[]"},
	}
	for _, op := range ops {
		t.Run(fmt.Sprint("operation ", op), func(t *testing.T) {
			eachChange(t, kvSpec(), func(r *rig) { r.insert([]any{1, 10}, []any{2, 20}) }, func(r *rig) {
				r.do(minikudu.OpDelete, key(2))
				names, columns := []string{"val", "key"}, []*vector.Vector{vec(100, 200, 300, 400), keys()}
				if op >= minikudu.OpDelete {
					names, columns = names[1:], columns[1:]
				}
				var b minikudu.WriteBatch
				if err := b.AddColumns(r.tab, op, names, columns); err != nil {
					r.Fatal(err)
				}
				res, err := r.db.Commit(ctx, &b, nil)
				w := want[op].res
				if w.Timestamp = res.Timestamp; *res != w || (w.Rejected > 0) != errors.Is(err, minikudu.ErrRowsRejected) {
					r.Fatalf("%+v, %v, want %+v", res, err, w)
				}
			}, func(t *testing.T, r *rig) {
				if got := fmt.Sprint(r.rows(minikudu.Query{Order: minikudu.KeyOrder})); got != want[op].rows {
					t.Fatalf("%s, want %s", got, want[op].rows)
				}
			})
		})
	}
}

func TestChangesThatDoNotFitTheTable(t *testing.T) {
	r := newRig(t, minikudu.Options{}, metricSpec())
	r.insert([]any{"a", 1, 1.5, "t", 1})
	var b minikudu.WriteBatch
	b.Delete(r.tab)
	b.Delete(r.tab, "a")
	b.Delete(r.tab, "a", 1, 1.5)
	b.Delete(r.tab, 1, "a")
	b.Upsert(r.tab, "a", 1)
	b.Add(r.tab, minikudu.OpUpdate, map[string]any{"host": "a", "v": 2.5}) // half a key
	b.Add(r.tab, minikudu.OpDelete, map[string]any{"host": "a", "ts": 1, "v": nil})
	res, err := r.db.Commit(ctx, &b, nil)
	var rej *minikudu.RejectedError
	if !errors.As(err, &rej) || len(rej.Rows) != 7 || res.Rejected != 7 || res.Inserted+res.Updated+res.Deleted != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	for i := range rej.Rows {
		if rej.Rows[i].Row != i || !errors.Is(&rej.Rows[i], minikudu.ErrInvalidArgument) {
			t.Errorf("row %d: %v", i, &rej.Rows[i])
		}
	}
	text := vector.New(schema.KindBytes, 1)
	_ = text.Append(schema.StringValue("a"))
	ts, v := vector.FromFixed(schema.KindInt64, []int64{1}, nil), vector.FromFixed(schema.KindFloat64, []float64{2}, nil)
	b.Reset()
	for what, err := range map[string]error{
		"update without columns": b.AddColumns(r.tab, minikudu.OpUpdate, []string{"host", "ts"}, []*vector.Vector{text, ts}),
		"update of half a key":   b.AddColumns(r.tab, minikudu.OpUpdate, []string{"host", "v"}, []*vector.Vector{text, v}),
		"delete with a value":    b.AddColumns(r.tab, minikudu.OpDelete, []string{"host", "ts", "v"}, []*vector.Vector{text, ts, v}),
		"delete of half a key":   b.AddColumns(r.tab, minikudu.OpDelete, []string{"host"}, []*vector.Vector{text}),
		"upsert without a key":   b.AddColumns(r.tab, minikudu.OpUpsert, []string{"v"}, []*vector.Vector{v}),
		"wrong kind":             b.AddColumns(r.tab, minikudu.OpUpsert, []string{"host", "ts"}, []*vector.Vector{text, v}),
	} {
		if !errors.Is(err, minikudu.ErrInvalidArgument) || b.Len() != 0 {
			t.Errorf("%s: %v, %d rows", what, err, b.Len())
		}
	}
	for _, column := range []string{"host", "what"} {
		if _, err := r.db.UpdateWhere(ctx, r.tab, nil, map[string]any{column: "b"}, nil); !errors.Is(err, minikudu.ErrInvalidArgument) {
			t.Errorf("update of column %s: %v", column, err)
		}
	}
	r.is([]any{"a", r.rows(minikudu.Query{Columns: []string{"ts"}})[0][0], 1.5, "t", int64(1)})
}

func TestUpsertStructs(t *testing.T) {
	type part struct {
		K int32  `minikudu:"k"`
		S string `minikudu:"s"`
	}
	eachChange(t, mutableSpec(), func(r *rig) { r.insert([]any{1, 1, "old", 3}) }, func(r *rig) {
		var b minikudu.WriteBatch
		if err := minikudu.UpsertStructs(&b, r.tab, part{1, "new"}, part{2, "two"}, part{2, "three"}); err != nil {
			r.Fatal(err)
		}
		if res := r.commit(&b); res.Updated != 2 || res.Inserted != 1 {
			r.Fatalf("%+v", res)
		}
	}, func(t *testing.T, r *rig) {
		r.is([]any{int64(1), int64(1), "new", int64(3)}, []any{int64(2), int64(7), "three", nil})
	})
	r := newRig(t, minikudu.Options{}, eventSpec())
	type event struct {
		Host string `minikudu:"host"`
		ID   int64  `minikudu:"auto_incrementing_id"`
		V    int64  `minikudu:"v"`
	}
	var b minikudu.WriteBatch
	if err := minikudu.UpsertStructs(&b, r.tab, event{"a", 5, 1}, event{"a", 5, 2}, event{"a", -5, 2}); err != nil {
		t.Fatal(err)
	}
	if res, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrInvalidArgument) || res.Inserted != 1 || res.Updated != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if got, err := minikudu.GetAs[event](ctx, r.tab, "a", 5); err != nil || got != (event{"a", 5, 2}) {
		t.Fatalf("%+v, %v", got, err)
	}
}

// A read-only open replays changes of rows in memory and on disk, and writes nothing.
func TestReadOnlyOpenSeesChanges(t *testing.T) {
	for _, state := range keyStates {
		t.Run(state.name, func(t *testing.T) {
			mem := vfs.NewMem()
			r := newRig(t, minikudu.Options{FS: mem}, mutableSpec())
			state.make(r)
			r.rewrites(2, 4)
			r.deletes(4, 6)
			r.lives(12, 14)
			want := r.rows(minikudu.Query{Order: minikudu.KeyOrder})
			if len(want) != 8 {
				t.Fatalf("%d rows", len(want))
			}
			for name, fs := range map[string]vfs.FS{"killed": mem.KillClone(), "closed": mem} {
				if name == "closed" {
					mustClose(t, r.db)
				}
				before := len(filesOf(t, fs))
				db := mustOpen(t, "db", &minikudu.Options{FS: fs, ReadOnly: true})
				tab, err := db.Table("t")
				if err != nil {
					t.Fatal(err)
				}
				sameList(t, name, scanRows(t, tab, minikudu.Query{Order: minikudu.KeyOrder}), want)
				if _, err := tab.Compact(ctx); !errors.Is(err, minikudu.ErrReadOnly) {
					t.Errorf("compaction: %v", err)
				}
				if _, err := db.DeleteWhere(ctx, tab, nil, nil); !errors.Is(err, minikudu.ErrReadOnly) {
					t.Errorf("delete: %v", err)
				}
				mustClose(t, db)
				if after := len(filesOf(t, fs)); after != before {
					t.Errorf("%d files, were %d", after, before)
				}
				if name == "killed" {
					continue
				}
				r.reopen()
				r.is(want...)
			}
		})
	}
}

func filesOf(t *testing.T, fs vfs.FS) (names []string) {
	t.Helper()
	return (&rig{TB: t, fs: fs}).files()
}
