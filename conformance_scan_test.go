package minikudu_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"pgregory.net/rapid"
)

// bothPrunings runs f with and without pruning.
func bothPrunings(q minikudu.Query, f func(q minikudu.Query)) {
	for _, q.NoPrune = range []bool{false, true} {
		f(q)
	}
}

func TestItem78Pushdown(t *testing.T) {
	spec := table([]string{"key"}, col("key", schema.Int32), col("int_val", schema.Int32), col("string_val", schema.String))
	for _, way := range []string{"memory", "flushed after row 205", "flushed"} {
		t.Run(way, func(t *testing.T) {
			r := newRig(t, minikudu.Options{}, spec)
			var b minikudu.WriteBatch
			for i := range 2100 {
				b.Insert(r.tab, i, 10*i, fmt.Sprintf("%08d", i))
				if i == 205 && way != "memory" {
					r.commit(&b)
					b.Reset()
					r.flush()
				}
			}
			r.commit(&b)
			if way == "flushed" {
				r.flush()
			}
			var want [][]any
			for i := int64(200); i < 211; i++ {
				want = append(want, []any{i, 10 * i, fmt.Sprintf("%08d", i)})
			}
			for range 2 {
				for name, where := range map[string]minikudu.Expr{
					"key":     predicate.And(predicate.Ge("key", 200), predicate.Lt("key", 211)),
					"int_val": predicate.And(predicate.Ge("int_val", 2000), predicate.Lt("int_val", 2101)),
					"string":  predicate.Between("string_val", "00000200", "00000210"),
				} {
					bothPrunings(minikudu.Query{Where: where}, func(q minikudu.Query) {
						sameSet(t, name, r.rows(q), want)
						q.Columns = []string{}
						if n := count(t, r.tab, q); n != 11 {
							t.Fatalf("%s: %d empty rows, want 11", name, n)
						}
					})
				}
				var e minikudu.Explain
				count(t, r.tab, minikudu.Query{Where: predicate.Between("key", 200, 210), Explain: &e})
				if way == "flushed" && e.RowsConsidered != 11 {
					t.Errorf("%d rows considered for a key range of 11", e.RowsConsidered)
				}
				r.restart()
			}
		})
	}
}

func TestItem79CompositeKeyCounts(t *testing.T) {
	spec := table([]string{"year", "month", "day", "host"}, col("year", schema.Int16), col("month", schema.Int8), col("day", schema.Int8), col("host", schema.String))
	var rows [][]any
	for year := 2000; year <= 2010; year++ {
		for month := 1; month <= 12; month++ {
			for day := 1; day <= 28; day++ {
				for _, host := range []string{"foo", "foobar", "baz"} {
					rows = append(rows, []any{year, month, day, host})
				}
			}
		}
	}
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	eq := predicate.Eq
	date := predicate.And(eq("year", 2001), eq("month", 9), eq("day", 7))
	month := predicate.And(eq("year", 2001), eq("month", 9))
	cases := []struct {
		where minikudu.Expr
		want  int
	}{
		{predicate.And(date, eq("host", "foo")), 1},
		{predicate.And(date, predicate.Le("host", "foo")), 2},
		{date, 3},
		{month, 84},
		{eq("year", 2001), 1008},
		{predicate.And(month, predicate.Ge("day", 1), predicate.Lt("day", 16)), 45},
		{predicate.And(month, predicate.Ge("day", 1)), 84},
		{predicate.And(eq("year", 2001), predicate.Ge("month", 9), predicate.Lt("month", 12)), 252},
		{predicate.And(eq("year", 2001), predicate.Lt("month", 9)), 672},
		{predicate.And(predicate.Ge("year", 2001), predicate.Lt("year", 2004)), 3024},
		{predicate.Ge("year", 2001), 10080},
		{predicate.Lt("year", 2004), 4032},
	}
	eachWay(t, spec, rows, func(t *testing.T, r *rig) {
		for _, c := range cases {
			for _, o := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse} {
				bothPrunings(minikudu.Query{Where: c.where, Order: o, Columns: []string{"host"}}, func(q minikudu.Query) {
					if n := count(t, r.tab, q); n != c.want {
						t.Errorf("%v, order %v, no pruning %v: %d rows, want %d", c.where, o, q.NoPrune, n, c.want)
					}
				})
			}
		}
	})
}

// dictionaryTable inserts rows whose text is i mod c, null below nulls.
func dictionaryTable(t *testing.T, n, c, nulls int) *rig {
	r := newRig(t, minikudu.Options{}, table([]string{"k"}, col("k", schema.Int32), null(col("s", schema.String))))
	if n == 0 {
		return r
	}
	keys, text := make([]int32, n), vector.New(schema.KindBytes, n)
	for i := range n {
		keys[i] = int32(i)
		if i%c < nulls {
			text.AppendNull()
		} else if err := text.AppendBytes(fmt.Appendf(nil, "%08d", i%c)); err != nil {
			t.Fatal(err)
		}
	}
	var b minikudu.WriteBatch
	if err := b.InsertColumns(r.tab, []string{"k", "s"}, []*vector.Vector{vector.FromFixed(schema.KindInt32, keys, nil), text}); err != nil {
		t.Fatal(err)
	}
	r.commit(&b)
	return r
}

func TestItem80DictionaryColumns(t *testing.T) {
	large := 100000
	if testing.Short() {
		large = 6000
	}
	for _, n := range []int{0, 100, 5000, large} {
		for _, c := range []int{50, 1000, 50000} {
			for _, nulls := range []int{0, 40, c} {
				t.Run(fmt.Sprintf("%d rows, %d words, nulls below %d", n, c, nulls), func(t *testing.T) {
					r := dictionaryTable(t, n, c, nulls)
					checkDictionary(t, r, n, c, nulls)
					r.flush()
					checkDictionary(t, r, n, c, nulls)
				})
			}
		}
	}
}

func checkDictionary(t *testing.T, r *rig, n, c, nulls int) {
	t.Helper()
	for _, span := range [][2]int{{0, 5}, {30, 50}, {c, c + 5}, {c - 3, c}, {0, c}} {
		want := 0
		for i := range n {
			if w := i % c; w >= span[0] && w < span[1] && w >= nulls {
				want++
			}
		}
		where := predicate.And(predicate.Ge("s", fmt.Sprintf("%08d", span[0])), predicate.Lt("s", fmt.Sprintf("%08d", span[1])))
		bothPrunings(minikudu.Query{Where: where}, func(q minikudu.Query) {
			got := 0
			for b, err := range r.tab.Scan(ctx, q) {
				if err != nil {
					t.Fatal(err)
				}
				got += b.Len()
				for i, k := range b.Column(0).Int32s() {
					if s := b.Column(1).StringAt(i); s != fmt.Sprintf("%08d", int(k)%c) {
						t.Fatalf("key %d has %q", k, s)
					}
				}
			}
			if got != want {
				t.Errorf("%v: %d rows, want %d (no pruning: %v)", where, got, want, q.NoPrune)
			}
		})
	}
}

func TestItem80CellsOfTwoDictionaryColumnsAreAligned(t *testing.T) {
	spec := table([]string{"k"}, col("k", schema.Int32), col("a", schema.String), col("b", schema.String))
	var rows [][]any
	for i := range 1000 {
		w := fmt.Sprintf("%08d", i%10)
		rows = append(rows, []any{i, w, w})
	}
	where := predicate.And(predicate.Ge("a", "00000000"), predicate.Lt("a", "00000005"), predicate.Ge("b", "00000003"), predicate.Lt("b", "00000010"))
	eachWay(t, spec, rows, func(t *testing.T, r *rig) {
		got := r.rows(minikudu.Query{Where: where})
		if len(got) != 200 {
			t.Fatalf("%d rows, want 200", len(got))
		}
		for _, row := range got {
			if k := row[0].(int64) % 10; k != 3 && k != 4 || row[1] != row[2] || row[1] != fmt.Sprintf("%08d", k) {
				t.Fatalf("row %v", row)
			}
		}
	})
}

func TestItem81EachPageIsReadOnce(t *testing.T) {
	var rows [][]any
	for i := range 400 {
		var val any = i % 200
		if i%3 == 0 {
			val = nil
		}
		rows = append(rows, []any{i, val})
	}
	eachWay(t, kvSpec(), rows, func(t *testing.T, r *rig) {
		bothPrunings(minikudu.Query{Where: predicate.Eq("val", 50), Order: minikudu.KeyOrder}, func(q minikudu.Query) {
			for _, q.BatchRows = range []int{0, 1, 7, 128} {
				q.Explain = &minikudu.Explain{}
				if got := column[int64](r.rows(q), 0); !slices.Equal(got, []int64{50, 250}) {
					t.Fatalf("keys %v", got)
				}
				for _, c := range q.Explain.Columns {
					if c.Decoded > c.Pages || c.Decoded+c.Cached > c.Pages || c.Pages > 2 {
						t.Errorf("batches of %d: %+v", q.BatchRows, c)
					}
				}
			}
		})
	})
}

// edge draws an int8 near the ends and the middle of its range.
func edge(t *rapid.T, label string) int {
	return rapid.SampledFrom([]int{-128, -127, -126, -1, 0, 1, 125, 126, 127}).Draw(t, label)
}

// drawExpr draws a predicate over the int8 columns a, b, c, and n, which may be null.
func drawExpr(t *rapid.T, depth int) minikudu.Expr {
	if depth > 0 && rapid.IntRange(0, 2).Draw(t, "nested") > 0 {
		switch rapid.IntRange(0, 3).Draw(t, "logic") {
		case 0:
			return predicate.Or(drawExpr(t, depth-1), drawExpr(t, depth-1))
		case 1:
			return predicate.Not(drawExpr(t, depth-1))
		}
		return predicate.And(drawExpr(t, depth-1), drawExpr(t, depth-1))
	}
	c := rapid.SampledFrom([]string{"a", "a", "b", "b", "c", "n"}).Draw(t, "column")
	v := edge(t, "literal")
	switch rapid.IntRange(0, 8).Draw(t, "op") {
	case 0, 1:
		return predicate.Eq(c, v)
	case 2:
		return predicate.Ne(c, v)
	case 3:
		return predicate.Lt(c, v)
	case 4:
		return predicate.Le(c, v)
	case 5:
		return predicate.Gt(c, v)
	case 6:
		return predicate.Ge(c, v)
	case 7:
		return predicate.In(c, v, edge(t, "second"), edge(t, "third"))
	}
	return predicate.IsNull(c)
}

// truth is the three-valued result of an expression over a row: 1, 0, or -1 for unknown.
func truth(e minikudu.Expr, row map[string]any) int {
	switch e := e.(type) {
	case *predicate.Negation:
		if t := truth(e.Part, row); t >= 0 {
			return 1 - t
		}
		return -1
	case *predicate.Logic:
		out, stop := 1, 0
		if e.Or {
			out, stop = 0, 1
		}
		for _, p := range e.Parts {
			switch t := truth(p, row); t {
			case stop:
				return stop
			case -1:
				out = -1
			}
		}
		return out
	case *predicate.Compare:
		return compareTruth(e, row[e.Column])
	}
	panic("unknown expression")
}

func compareTruth(e *predicate.Compare, cell any) int {
	is := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	if e.Op == predicate.OpIsNull {
		return is(cell == nil)
	}
	if cell == nil {
		return -1
	}
	if e.Op == predicate.OpLike { // of the patterns, only those of a prefix
		return is(strings.HasPrefix(cell.(string), strings.TrimSuffix(e.Args[0].(string), "%")))
	}
	c := order(cell, e.Args[0])
	switch e.Op {
	case predicate.OpEq:
		return is(c == 0)
	case predicate.OpNe:
		return is(c != 0)
	case predicate.OpLt:
		return is(c == -1)
	case predicate.OpLe:
		return is(c == -1 || c == 0)
	case predicate.OpGt:
		return is(c == 1)
	case predicate.OpGe:
		return is(c == 1 || c == 0)
	}
	return is(slices.ContainsFunc(e.Args, func(arg any) bool { return order(cell, arg) == 0 }))
}

// order compares a cell with a literal of its type: -1, 0, 1, or 2 for a NaN.
func order(cell, arg any) int {
	switch v := cell.(type) {
	case int64:
		if i, ok := arg.(int); ok {
			arg = int64(i)
		}
		return cmp.Compare(v, arg.(int64))
	case float64:
		if a := arg.(float64); v != v || a != a {
			return 2
		}
		return cmp.Compare(v, arg.(float64))
	case bool:
		b := map[bool]int{true: 1}
		return cmp.Compare(b[v], b[arg.(bool)])
	}
	return strings.Compare(cell.(string), arg.(string))
}

// A scan gives the rows that a filter over all rows gives, by whatever path.
func TestItem82And83ScansAgreeWithAFilter(t *testing.T) {
	spec := table([]string{"a", "b", "c"}, col("a", schema.Int8), col("b", schema.Int8), col("c", schema.Int8), null(col("n", schema.Int8)))
	r := newRig(t, minikudu.Options{RowSetBytes: 1500}, spec)
	var rows []map[string]any
	edges := []int{-128, -127, -1, 0, 1, 126, 127}
	for i, a := range edges {
		for _, b := range edges {
			for k, c := range edges {
				row := map[string]any{"a": int64(a), "b": int64(b), "c": int64(c), "n": nil}
				if k%3 != 0 {
					row["n"] = int64(edges[(i+k)%7])
				}
				rows = append(rows, row)
				r.insert([]any{a, b, c, row["n"]})
			}
		}
		if i%2 == 0 {
			r.flush()
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		where := drawExpr(t, 3)
		var want [][]any
		for _, row := range rows {
			if truth(where, row) == 1 {
				want = append(want, []any{row["a"], row["b"], row["c"], row["n"]})
			}
		}
		q := minikudu.Query{Where: where, BatchRows: rapid.SampledFrom([]int{0, 1, 3, 64}).Draw(t, "batch rows"),
			Order: rapid.SampledFrom([]minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse}).Draw(t, "order")}
		bothPrunings(q, func(q minikudu.Query) {
			got := scanRows(r, r.tab, q)
			what := fmt.Sprintf("%v (order %v, no pruning %v)", where, q.Order, q.NoPrune)
			switch q.Order {
			case minikudu.KeyOrder:
				sameList(r, what, got, want)
			case minikudu.KeyReverse:
				slices.Reverse(got)
				sameList(r, what, got, want)
			default:
				sameSet(r, what, got, want)
			}
		})
		if n, err := r.tab.Count(ctx, where); err != nil || n != int64(len(want)) {
			r.Fatalf("%v: count %d, want %d, %v", where, n, len(want), err)
		}
	})
}

func TestC01NaNUnderPruning(t *testing.T) {
	spec := table([]string{"id"}, col("id", schema.Int64), null(col("x", schema.Double)))
	nan, inf := math.NaN(), math.Inf(1)
	xs := []any{3.0, nan, 3.0, inf, -inf, nan, nil}
	var rows [][]any
	for i, x := range xs {
		rows = append(rows, []any{i, x})
	}
	cases := []struct {
		where minikudu.Expr
		want  []int64
	}{
		{predicate.Ne("x", 3), []int64{1, 3, 4, 5}},
		{predicate.Gt("x", 10), []int64{3}},
		{predicate.Not(predicate.Lt("x", 10)), []int64{1, 3, 5}},
		{predicate.Eq("x", nan), nil},
		{predicate.Not(predicate.Eq("x", nan)), []int64{0, 1, 2, 3, 4, 5}},
		{predicate.In("x", nan), nil},
		{predicate.In("x", nan, 3.0), []int64{0, 2}},
		{predicate.Ge("x", inf), []int64{3}},
		{predicate.Le("x", -inf), []int64{4}},
		{predicate.IsNull("x"), []int64{6}},
	}
	eachWay(t, spec, rows, func(t *testing.T, r *rig) {
		for _, c := range cases {
			bothPrunings(minikudu.Query{Where: c.where, Order: minikudu.KeyOrder, Columns: []string{"id"}}, func(q minikudu.Query) {
				if got := column[int64](r.rows(q), 0); !slices.Equal(got, c.want) {
					t.Errorf("%v: ids %v, want %v (no pruning: %v)", c.where, got, c.want, q.NoPrune)
				}
			})
		}
		agg, err := r.tab.Aggregate(ctx, minikudu.Query{}, nil, minikudu.Min("x"), minikudu.Max("x"), minikudu.CountOf("x"))
		if err != nil || show(agg.Row(0)) != show([]any{-inf, inf, int64(6)}) {
			t.Errorf("aggregates %v, %v", agg.Row(0), err)
		}
	})
}

func TestC02NaNIsNoBound(t *testing.T) {
	spec := table([]string{"id"}, col("id", schema.Int64), null(col("x", schema.Double)))
	for _, at := range []int{0, 50, 100} {
		var rows [][]any
		for i := range 100 {
			if i == at {
				rows = append(rows, []any{len(rows), math.NaN()})
			}
			rows = append(rows, []any{len(rows), float64(i + 1)})
		}
		if at == 100 {
			rows = append(rows, []any{len(rows), math.NaN()})
		}
		eachWay(t, spec, rows, func(t *testing.T, r *rig) {
			bothPrunings(minikudu.Query{Where: predicate.Lt("x", 50)}, func(q minikudu.Query) {
				if n := count(t, r.tab, q); n != 49 {
					t.Errorf("NaN at %d: %d rows below 50, want 49", at, n)
				}
			})
			bothPrunings(minikudu.Query{Where: predicate.Gt("x", 50)}, func(q minikudu.Query) {
				if n := count(t, r.tab, q); n != 50 {
					t.Errorf("NaN at %d: %d rows above 50, want 50", at, n)
				}
			})
		})
	}
}

func TestC06AllNullColumn(t *testing.T) {
	var rows [][]any
	for i := range 5000 {
		rows = append(rows, []any{"h", i, nil, nil, nil})
	}
	eachWay(t, metricSpec(), rows, func(t *testing.T, r *rig) {
		aggs := []minikudu.Aggregate{minikudu.Count(), minikudu.CountOf("v"), minikudu.Min("v"), minikudu.Max("v"), minikudu.Sum("v"), minikudu.Avg("v"),
			minikudu.Min("tag"), minikudu.Sum("n")}
		agg, err := r.tab.Aggregate(ctx, minikudu.Query{}, nil, aggs...)
		if err != nil || show(agg.Row(0)) != show([]any{int64(5000), int64(0), nil, nil, nil, nil, nil, nil}) {
			t.Fatalf("aggregates %v, %v", agg, err)
		}
		for _, c := range []string{"v", "tag", "n"} {
			groups, err := r.tab.Aggregate(ctx, minikudu.Query{}, []string{c}, minikudu.Count())
			if err != nil || groups.Len() != 1 || show(groups.Row(0)) != show([]any{nil, int64(5000)}) {
				t.Fatalf("groups of %s: %v, %v", c, groups, err)
			}
			bothPrunings(minikudu.Query{Where: predicate.IsNull(c)}, func(q minikudu.Query) {
				if n := count(t, r.tab, q); n != 5000 {
					t.Fatalf("%s is null: %d rows", c, n)
				}
			})
		}
		bothPrunings(minikudu.Query{Where: predicate.Or(predicate.Gt("v", 1), predicate.Like("tag", "%"), predicate.Ne("n", 0))}, func(q minikudu.Query) {
			if n := count(t, r.tab, q); n != 0 {
				t.Fatalf("%d rows pass a comparison with null", n)
			}
		})
	})
}

func TestC06OneRowsetAllNull(t *testing.T) {
	var rows [][]any
	for i := range 200 {
		row := []any{"h", i, nil, nil, nil}
		if i >= 100 {
			row = []any{"h", i, float64(i), fmt.Sprint("t", i%3), i}
		}
		rows = append(rows, row)
	}
	eachWay(t, metricSpec(), rows, func(t *testing.T, r *rig) {
		agg, err := r.tab.Aggregate(ctx, minikudu.Query{}, nil, minikudu.CountOf("v"), minikudu.Min("v"), minikudu.Max("n"), minikudu.Min("tag"), minikudu.Sum("n"))
		if err != nil || show(agg.Row(0)) != show([]any{int64(100), 100.0, int64(199), "t0", int64(14950)}) {
			t.Fatalf("aggregates %v, %v", agg.Row(0), err)
		}
		groups, err := r.tab.Aggregate(ctx, minikudu.Query{}, []string{"tag"}, minikudu.Count())
		if err != nil || groups.Len() != 4 {
			t.Fatalf("%d groups, %v", groups.Len(), err)
		}
		bothPrunings(minikudu.Query{Where: predicate.IsNull("tag")}, func(q minikudu.Query) {
			if n := count(t, r.tab, q); n != 100 {
				t.Fatalf("%d rows with a null tag", n)
			}
		})
	})
}

// Batches are never empty, and an empty run of pages in the middle is no end.
func TestC58MatchesInFirstAndLastPageOnly(t *testing.T) {
	val := col("val", schema.Int32)
	val.BlockSize, val.Encoding = 512, schema.EncodingPlain
	spec := table([]string{"key"}, col("key", schema.Int32), val)
	var rows [][]any
	for i := range 50 * 128 {
		v := i % 1000
		if i == 3 || i == 50*128-3 {
			v = 5000
		}
		rows = append(rows, []any{i, v})
	}
	eachWay(t, spec, rows, func(t *testing.T, r *rig) {
		bothPrunings(minikudu.Query{Where: predicate.Eq("val", 5000)}, func(q minikudu.Query) {
			for _, q.Order = range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse} {
				for _, q.BatchRows = range []int{0, 1, 100} {
					if got := r.rows(q); len(got) != 2 {
						t.Fatalf("order %v, batches of %d: %v", q.Order, q.BatchRows, got)
					}
				}
			}
		})
		for b, err := range r.tab.Scan(ctx, minikudu.Query{BatchRows: 1, Limit: 20}) {
			if err != nil || b.Len() != 1 {
				t.Fatalf("a batch of %d rows, %v", b.Len(), err)
			}
		}
	})
}

func TestC59ReverseIsForwardReversed(t *testing.T) {
	spec := table([]string{"k"}, col("k", schema.String), col("n", schema.Int32))
	for _, n := range []int{0, 1, 1000} {
		var rows [][]any
		for i := range n {
			rows = append(rows, []any{fmt.Sprintf("%s%04d", []string{"my_key", "a", "b", "zz"}[i%4], i*7919%1000), i})
		}
		eachWay(t, spec, rows, func(t *testing.T, r *rig) {
			for _, where := range []minikudu.Expr{nil, predicate.Like("k", "my_key%"), predicate.And(predicate.Ge("k", "a"), predicate.Lt("k", "b")),
				predicate.And(predicate.Gt("k", "a0000"), predicate.Le("k", "b0001")), predicate.Ge("k", "my_key"), predicate.Lt("k", "my_key"), predicate.Gt("k", "zzz")} {
				forward := r.rows(minikudu.Query{Where: where, Order: minikudu.KeyOrder})
				if where == nil && len(forward) != n {
					t.Fatalf("%d rows", len(forward))
				}
				slices.Reverse(forward)
				for _, batch := range []int{0, 1, 7} {
					sameList(t, fmt.Sprint("reverse of ", where), r.rows(minikudu.Query{Where: where, Order: minikudu.KeyReverse, BatchRows: batch}), forward)
				}
				for _, limit := range []int{1, 10} {
					want := forward[:min(limit, len(forward))]
					sameList(t, fmt.Sprintf("the last %d of %v", limit, where), r.rows(minikudu.Query{Where: where, Order: minikudu.KeyReverse, Limit: int64(limit)}), want)
				}
			}
		})
	}
}

func TestC61EmptyProjectionCounts(t *testing.T) {
	var rows [][]any
	for i := range 3000 {
		rows = append(rows, []any{i, i % 10})
	}
	eachWay(t, kvSpec(), rows, func(t *testing.T, r *rig) {
		for _, o := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse} {
			var e minikudu.Explain
			q := minikudu.Query{Columns: []string{}, Order: o, Explain: &e}
			if n := count(t, r.tab, q); n != 3000 {
				t.Fatalf("%d rows, want 3000", n)
			}
			if o == minikudu.Unordered {
				for _, c := range e.Columns {
					if c.Decoded+c.Cached > 0 {
						t.Errorf("an empty projection read %+v", c)
					}
				}
			}
			q.Where = predicate.Eq("val", 3)
			if n := count(t, r.tab, q); n != 300 {
				t.Fatalf("%d rows, want 300", n)
			}
			q.Limit = 123
			if n := count(t, r.tab, q); n != 123 {
				t.Fatalf("%d rows, want 123", n)
			}
			for b, err := range r.tab.Scan(ctx, q) {
				if err != nil || b.NumColumns() != 0 || len(b.Row(0)) != 0 {
					t.Fatalf("%d columns, %v", b.NumColumns(), err)
				}
				if b.Detach().Len() != b.Len() {
					t.Fatal("a detached batch has another length")
				}
			}
		}
	})
	r := newRig(t, minikudu.Options{}, kvSpec())
	if n := count(t, r.tab, minikudu.Query{Columns: []string{}}); n != 0 {
		t.Fatalf("%d rows of an empty table", n)
	}
}

func TestC62AggregatesOfNothing(t *testing.T) {
	aggs := []minikudu.Aggregate{minikudu.Count(), minikudu.CountOf("v"), minikudu.Sum("v"), minikudu.Min("tag"), minikudu.Max("n"), minikudu.Avg("n")}
	check := func(t *testing.T, r *rig, where minikudu.Expr) {
		t.Helper()
		bothPrunings(minikudu.Query{Where: where}, func(q minikudu.Query) {
			b, err := r.tab.Aggregate(ctx, q, nil, aggs...)
			if err != nil || b.Len() != 1 || show(b.Row(0)) != show([]any{int64(0), int64(0), nil, nil, nil, nil}) {
				t.Fatalf("%v: %v, %v", where, b, err)
			}
			if b, err = r.tab.Aggregate(ctx, q, []string{"host", "tag"}, aggs...); err != nil || b.Len() != 0 {
				t.Fatalf("%v: %d groups, %v", where, b.Len(), err)
			}
		})
	}
	check(t, newRig(t, minikudu.Options{}, metricSpec()), nil)
	eachWay(t, metricSpec(), [][]any{{"a", 1, 1.0, "x", 1}, {"b", 2, nil, nil, nil}}, func(t *testing.T, r *rig) {
		check(t, r, predicate.Eq("host", "c"))
		check(t, r, predicate.Gt("v", 5))
		check(t, r, predicate.And(predicate.Gt("host", "b"), predicate.Lt("host", "a")))
		b, err := r.tab.Aggregate(ctx, minikudu.Query{Where: predicate.Eq("host", "a")}, []string{"tag"}, aggs...)
		if err != nil || b.Len() != 1 || show(b.Row(0)) != show([]any{"x", int64(1), int64(1), 1.0, "x", int64(1), 1.0}) {
			t.Fatalf("one group: %v, %v", b.Row(0), err)
		}
	})
}

func TestC63UnknownColumns(t *testing.T) {
	r := newRig(t, minikudu.Options{}, metricSpec())
	type wrong struct {
		Host string `minikudu:"Host"`
	}
	scan := func(q minikudu.Query) error {
		for _, err := range r.tab.Scan(ctx, q) {
			return err
		}
		return nil
	}
	_, get := r.tab.GetColumns(ctx, []string{"nosuch"}, "a", 1)
	_, agg := r.tab.Aggregate(ctx, minikudu.Query{}, nil, minikudu.Sum("nosuch"))
	_, group := r.tab.Aggregate(ctx, minikudu.Query{}, []string{"nosuch"}, minikudu.Count())
	_, counted := r.tab.Count(ctx, predicate.Eq("nosuch", 1))
	_, as := minikudu.GetAs[wrong](ctx, r.tab, "a", 1)
	var b minikudu.WriteBatch
	var scanAs error
	for _, err := range minikudu.ScanAs[wrong](ctx, r.tab, minikudu.Query{}) {
		scanAs = err
	}
	for name, err := range map[string]error{
		"projection": scan(minikudu.Query{Columns: []string{"host", "nosuch"}}), "wrong case": scan(minikudu.Query{Columns: []string{"HOST"}}),
		"predicate": scan(minikudu.Query{Where: predicate.Eq("nosuch", 1)}), "get": get, "aggregate": agg, "group by": group, "count": counted,
		"struct": as, "scan as": scanAs, "insert structs": minikudu.InsertStructs(&b, r.tab, wrong{"a"}),
	} {
		if !errors.Is(err, minikudu.ErrInvalidArgument) {
			t.Fatalf("%s: %v", name, err)
		}
		for _, known := range []string{"host", "ts", "v", "tag", "n"} {
			if !strings.Contains(err.Error(), known) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	r.insert([]any{"a", 1, nil, "x", 5})
	if got := r.rows(minikudu.Query{Columns: []string{"n", "host", "n"}}); show(got[0]) != show([]any{int64(5), "a", int64(5)}) {
		t.Errorf("a column named twice: %v", got)
	}
	if got, err := r.tab.GetColumns(ctx, []string{"n", "host", "n"}, "a", 1); err != nil || show(got) != show([]any{int64(5), "a", int64(5)}) {
		t.Errorf("a column named twice: %v, %v", got, err)
	}
}

// Many scans of one rowset beside each other, some cancelled, give what one gives; a
// batch that was detached does not change.
func TestC20ConcurrentScansOfOneRowset(t *testing.T) {
	spec := table([]string{"k"}, col("k", schema.Int32), null(col("s", schema.String)), col("n", schema.Int32))
	r := newRig(t, minikudu.Options{MaxOpenFiles: 1}, spec)
	var b minikudu.WriteBatch
	for i := range 8000 {
		var s any = fmt.Sprint("word ", i%300)
		if i%7 == 0 {
			s = nil
		}
		b.Insert(r.tab, i, s, i%50)
	}
	r.commit(&b)
	r.flush()
	queries := []minikudu.Query{{}, {Where: predicate.Like("s", "word 1%")}, {Where: predicate.Eq("n", 7), Columns: []string{"s"}},
		{Where: predicate.IsNull("s"), Order: minikudu.KeyReverse}, {Where: predicate.Gt("k", 4000), Columns: []string{"s", "s"}, BatchRows: 100}, {Columns: []string{"n"}, Order: minikudu.KeyOrder}}
	var want [][][]any
	for _, q := range queries {
		want = append(want, r.rows(q))
	}
	goroutines := 64
	if testing.Short() {
		goroutines = 12
	}
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			scanDetached(t, r.tab, queries[g%len(queries)], want[g%len(queries)], g%3 == 2)
		})
	}
	all.Wait()
}

// scanDetached compares a scan with the rows it should give. A cancelled one must give
// the first of them.
func scanDetached(t *testing.T, tab *minikudu.Table, q minikudu.Query, want [][]any, stop bool) {
	c, cancel := context.WithCancel(ctx)
	defer cancel()
	var kept []*minikudu.Batch
	for b, err := range tab.Scan(c, q) {
		if err != nil {
			if !stop || !errors.Is(err, context.Canceled) {
				t.Error(err)
				return
			}
			break
		}
		kept = append(kept, b.Detach())
		if stop && len(kept) == 2 {
			cancel()
		}
	}
	at := 0
	for _, b := range kept {
		for i := range b.Len() {
			if show(b.Row(i)) != show(want[at]) {
				t.Errorf("row %d is %v, want %v", at, b.Row(i), want[at])
				return
			}
			at++
		}
	}
	if !stop && at != len(want) {
		t.Errorf("%d rows, want %d", at, len(want))
	}
}

func TestItem60KeyRanges(t *testing.T) {
	const n = 10000
	r := newRig(t, minikudu.Options{}, kvSpec())
	keys := make([]int32, n)
	for i := range keys {
		keys[i] = int32(2 * i)
	}
	var b minikudu.WriteBatch
	if err := b.InsertColumns(r.tab, []string{"key"}, []*vector.Vector{vector.FromFixed(schema.KindInt32, keys, nil)}); err != nil {
		t.Fatal(err)
	}
	r.commit(&b)
	for _, where := range []string{"memory", "disk"} {
		for _, c := range []struct {
			where minikudu.Expr
			want  int
		}{
			{predicate.And(predicate.Ge("key", 2000), predicate.Lt("key", 2010)), 5},
			{predicate.And(predicate.Gt("key", 2000), predicate.Le("key", 2010)), 5},
			{predicate.Between("key", 1999, 2009), 5},
			{predicate.Lt("key", 0), 0}, {predicate.Le("key", 0), 1}, {predicate.Lt("key", -5), 0},
			{predicate.Ge("key", 2*n-2), 1}, {predicate.Gt("key", 2*n-2), 0}, {predicate.Ge("key", 2*n-3), 1}, {predicate.Lt("key", 2*n), n},
			{predicate.Eq("key", 777), 0}, {predicate.Eq("key", 778), 1}, {predicate.In("key", 0, 1, 2, 2*n-2, 2*n), 3},
			{predicate.Le("key", math.MaxInt32), n}, {predicate.Ge("key", math.MinInt32), n}, {predicate.Gt("key", math.MaxInt32), 0},
		} {
			for _, o := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse} {
				bothPrunings(minikudu.Query{Where: c.where, Order: o}, func(q minikudu.Query) {
					if got := count(t, r.tab, q); got != c.want {
						t.Errorf("%s: %v gave %d rows, want %d", where, c.where, got, c.want)
					}
				})
			}
		}
		r.flush()
	}
	var e minikudu.Explain
	count(t, r.tab, minikudu.Query{Where: predicate.And(predicate.Ge("key", 2000), predicate.Lt("key", 2010)), Explain: &e})
	if e.RowsConsidered != 5 {
		t.Errorf("%d rows considered for a range of 5", e.RowsConsidered)
	}
	for _, c := range e.Columns {
		if c.Pages > 1 {
			t.Errorf("%+v for a range of 5 rows", c)
		}
	}
}

func TestItem60TenRowsEndingAtTheLargestKey(t *testing.T) {
	var rows [][]any
	for i := range 10 {
		rows = append(rows, []any{math.MaxInt32 - 9 + i, i})
	}
	eachWay(t, kvSpec(), rows, func(t *testing.T, r *rig) {
		for where, want := range map[minikudu.Expr]int{nil: 10, predicate.And(predicate.Ge("key", math.MaxInt32-9), predicate.Lt("key", math.MaxInt32)): 9,
			predicate.Ge("key", math.MaxInt32): 1, predicate.Gt("key", math.MaxInt32-1): 1} {
			bothPrunings(minikudu.Query{Where: where}, func(q minikudu.Query) {
				if n := count(t, r.tab, q); n != want {
					t.Errorf("%v: %d rows, want %d", where, n, want)
				}
			})
		}
	})
}
