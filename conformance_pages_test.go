package minikudu_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
)

// wideSpec has a column of each way to store cells, in small pages.
func wideSpec() minikudu.TableSpec {
	columns := []minikudu.Column{col("k", schema.Int32), null(col("word", schema.String)), null(col("d", schema.Double)),
		null(col("i", schema.Int64)), null(col("b", schema.Bool)), null(col("plain", schema.String)), null(col("run", schema.Int32))}
	columns[5].Encoding, columns[6].Encoding = schema.EncodingPlain, schema.EncodingRLE
	for i := range columns {
		columns[i].BlockSize = 1024
	}
	return table([]string{"k"}, columns...)
}

// wide plays rounds of changes on many rows against a map.
type wide struct {
	*rig
	rnd  *rand.Rand
	rows map[int][]any
}

func (w *wide) cell(name string) any {
	if w.rnd.IntN(8) == 0 {
		return nil
	}
	switch n := w.rnd.IntN(20); name {
	case "word", "plain":
		return fmt.Sprint("word", n)
	case "d":
		return float64(n) / 2
	case "b":
		return n%2 == 0
	default:
		return int64(n)
	}
}

// round changes a run of keys or scattered ones, with one operation.
func (w *wide) round(keys int) {
	var b minikudu.WriteBatch
	names := w.tab.Schema().Names()
	op := []minikudu.Op{minikudu.OpUpsert, minikudu.OpUpdateIgnore, minikudu.OpUpdateIgnore, minikudu.OpDeleteIgnore, minikudu.OpInsertIgnore}[w.rnd.IntN(5)]
	from, step := w.rnd.IntN(keys), 1+w.rnd.IntN(2)*w.rnd.IntN(50)
	given := []int{1 + w.rnd.IntN(len(names)-1)}
	if w.rnd.IntN(2) == 0 {
		given = append(given, 1+w.rnd.IntN(len(names)-1))
	}
	for n, k := 0, from; n < 1+keys/8 && k < keys; n, k = n+1, k+step {
		row := map[string]any{"k": k}
		old, live := w.rows[k]
		image := make([]any, len(names))
		if live {
			image = slices.Clone(old)
		}
		image[0] = int64(k)
		if op < minikudu.OpDelete {
			for _, c := range given {
				row[names[c]] = w.cell(names[c])
				image[c] = row[names[c]]
			}
		}
		switch {
		case op == minikudu.OpDeleteIgnore:
			delete(w.rows, k)
		case live && op != minikudu.OpInsertIgnore, !live && op != minikudu.OpUpdateIgnore:
			w.rows[k] = image
		}
		b.Add(w.tab, op, row)
	}
	w.commit(&b)
}

// check compares scans, filters on every column with and without pruning, and groups.
func (w *wide) check() {
	w.Helper()
	keys := make([]int, 0, len(w.rows))
	for k := range w.rows {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	all := make([][]any, len(keys))
	for i, k := range keys {
		all[i] = w.rows[k]
	}
	for c, name := range w.tab.Schema().Names() {
		lit := w.cell(name)
		for lit == nil {
			lit = w.cell(name)
		}
		for what, f := range map[string]struct {
			where minikudu.Expr
			is    func(v any) bool
		}{
			"equal":    {predicate.Eq(name, lit), func(v any) bool { return v == lit }},
			"null":     {predicate.IsNull(name), func(v any) bool { return v == nil }},
			"not null": {predicate.IsNotNull(name), func(v any) bool { return v != nil }},
			"unequal":  {predicate.Ne(name, lit), func(v any) bool { return v != nil && v != lit }},
		} {
			var want [][]any
			for _, row := range all {
				if f.is(row[c]) {
					want = append(want, row)
				}
			}
			for _, noPrune := range []bool{false, true} {
				what := fmt.Sprintf("%s %s %v, no prune %v", name, what, lit, noPrune)
				sameList(w, what, w.rig.rows(minikudu.Query{Where: f.where, Order: minikudu.KeyOrder, NoPrune: noPrune}), want)
			}
			if n, err := w.tab.Count(ctx, f.where); err != nil || n != int64(len(want)) {
				w.Fatalf("count of %s %s: %d, want %d, %v", name, what, n, len(want), err)
			}
		}
	}
	sameSet(w, "rows", w.rig.rows(minikudu.Query{}), all)
	w.checkGroups(all)
	for range 20 {
		k := w.rnd.IntN(keys[len(keys)-1] + 1)
		row, err := w.tab.Get(ctx, k)
		want, live := w.rows[k]
		if live != (err == nil) || live && row.Value("word") != want[1] {
			w.Fatalf("get of %d: %v, %v, want %v", k, row, err, want)
		}
	}
}

func (w *wide) checkGroups(all [][]any) {
	w.Helper()
	count, sum := map[any]int64{}, map[any]int64{}
	var least, most any
	for _, row := range all {
		count[row[1]]++
		if i, ok := row[3].(int64); ok {
			sum[row[1]] += i
			if least == nil || i < least.(int64) {
				least = i
			}
			if most == nil || i > most.(int64) {
				most = i
			}
		}
	}
	groups, err := w.tab.Aggregate(ctx, minikudu.Query{}, []string{"word"}, minikudu.Count(), minikudu.Sum("i"))
	if err != nil || groups.Len() != len(count) {
		w.Fatalf("%v groups, want %d, %v", groups, len(count), err)
	}
	for i := range groups.Len() {
		row := groups.Row(i)
		if s, _ := row[2].(int64); row[1] != count[row[0]] || s != sum[row[0]] {
			w.Fatalf("group %v, want %d and %d", row, count[row[0]], sum[row[0]])
		}
	}
	ends, err := w.tab.Aggregate(ctx, minikudu.Query{}, nil, minikudu.Min("i"), minikudu.Max("i"), minikudu.CountOf("d"))
	if err != nil || ends.Row(0)[0] != least || ends.Row(0)[1] != most {
		w.Fatalf("%v, want %v and %v, %v", ends.Row(0), least, most, err)
	}
}

// Changes over many pages of every encoding, in memory, in files and merged.
func TestChangesOverManyPages(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &wide{rig: newRig(t, minikudu.Options{RowSetBytes: 16 << 10 << (seed % 3 * 3)}, wideSpec()), rnd: rand.New(rand.NewPCG(seed, 1)), rows: map[int][]any{}}
			const keys = 3000
			var b minikudu.WriteBatch
			for k := range keys {
				row := []any{int64(k)}
				for _, name := range w.tab.Schema().Names()[1:] {
					row = append(row, w.cell(name))
				}
				if w.rows[k] = row; k%7 == 0 {
					delete(w.rows, k)
					continue
				}
				b.Insert(w.tab, row...)
			}
			w.commit(&b)
			for range 12 {
				for range 1 + w.rnd.IntN(4) {
					w.round(keys + 100)
				}
				switch w.rnd.IntN(6) {
				case 0, 1, 2:
					w.flush()
				case 3:
					w.compact()
				case 4:
					w.restart()
				}
				w.check()
			}
			if r, err := w.db.Verify(ctx); err != nil || len(r.Damage) > 0 {
				t.Fatalf("%+v, %v", r, err)
			}
		})
	}
}
