package minikudu_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

// mutableSpec is a table of key k, a defaulted number, a nullable text and an
// immutable number.
func mutableSpec() minikudu.TableSpec {
	return minikudu.TableSpec{Key: []string{"k"}, Columns: []minikudu.Column{
		{Name: "k", Type: schema.Int32}, {Name: "n", Type: schema.Int64, Default: schema.IntValue(schema.KindInt64, 7)},
		{Name: "s", Type: schema.String, Nullable: true}, {Name: "c", Type: schema.Int64, Nullable: true, Immutable: true}}}
}

// mrow is a row of the model.
type mrow struct {
	n int64
	s any
	c any
}

// mutation is the model of one table.
type mutation struct {
	t    *rapid.T
	fs   *vfs.Mem
	db   *minikudu.DB
	tab  *minikudu.Table
	rows map[int]mrow
	seen map[string]int

	flushBytes int64
}

func (m *mutation) options() *minikudu.Options {
	return &minikudu.Options{FS: m.fs, Durability: minikudu.NoSync, RowSetBytes: 64 << 10, FlushBytes: m.flushBytes,
		LogBytes: max(32<<20, m.flushBytes)}
}

var ops = []minikudu.Op{minikudu.OpInsert, minikudu.OpInsertIgnore, minikudu.OpUpsert, minikudu.OpUpsertIgnore,
	minikudu.OpUpdate, minikudu.OpUpdateIgnore, minikudu.OpDelete, minikudu.OpDeleteIgnore}

// play does what an operation should and reports whether the row is accepted.
func (m *mutation) play(op minikudu.Op, k int, row map[string]any) bool {
	old, live := m.rows[k]
	_, hasC := row["c"]
	switch {
	case op <= minikudu.OpInsertIgnore && live:
		return op == minikudu.OpInsertIgnore
	case op >= minikudu.OpUpdate && !live:
		if op == minikudu.OpUpdate || op == minikudu.OpUpdateIgnore {
			if len(row) == 1 {
				return false // nothing to update
			}
		}
		return op == minikudu.OpUpdateIgnore || op == minikudu.OpDeleteIgnore
	case op >= minikudu.OpDelete:
		delete(m.rows, k)
		return true
	case live:
		if (op == minikudu.OpUpdate || op == minikudu.OpUpdateIgnore) && len(row) == 1 {
			return false
		}
		if hasC && (op == minikudu.OpUpdate || op == minikudu.OpUpsert) {
			return false
		}
		if op == minikudu.OpUpdateIgnore && hasC && len(row) == 2 {
			return false // only immutable columns
		}
		set(&old, row, false)
		m.rows[k] = old
		return true
	}
	fresh := mrow{n: 7}
	set(&fresh, row, true)
	m.rows[k] = fresh
	return true
}

func set(r *mrow, row map[string]any, all bool) {
	if v, ok := row["n"]; ok {
		r.n = v.(int64)
	}
	if v, ok := row["s"]; ok {
		r.s = v
	}
	if v, ok := row["c"]; ok && all {
		r.c = v
	}
}

// check compares scans in every order, a filter, an aggregate and gets with the model.
func (m *mutation) check() {
	for _, order := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse} {
		got := map[int]mrow{}
		last := -1
		for b, err := range m.tab.Scan(ctx, minikudu.Query{Order: order}) {
			if err != nil {
				m.t.Fatal(err)
			}
			for i := range b.Len() {
				k := int(b.Column(0).Int32s()[i])
				row := b.Row(i)
				if order != minikudu.Unordered && last >= 0 && (k > last) != (order == minikudu.KeyOrder) {
					m.t.Fatalf("key %d after %d", k, last)
				}
				last = k
				if _, twice := got[k]; twice {
					m.t.Fatalf("key %d twice", k)
				}
				got[k] = mrow{row[1].(int64), row[2], row[3]}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(m.rows) {
			m.t.Fatalf("order %d: %v, want %v", order, got, m.rows)
		}
	}
	m.checkFilters()
	for k := range 6 {
		want, live := m.rows[k]
		r, err := m.tab.Get(ctx, k)
		if live != (err == nil) || live && (r.Value("n") != want.n || fmt.Sprint(r.Value("s"), r.Value("c")) != fmt.Sprint(want.s, want.c)) {
			m.t.Fatalf("get %d: %v, %v; want %v, %v", k, r, err, want, live)
		}
	}
	if m.tab.Rows() != int64(len(m.rows)) {
		m.t.Fatalf("%d rows by metadata, want %d", m.tab.Rows(), len(m.rows))
	}
}

func (m *mutation) checkFilters() {
	limit := rapid.Int64Range(0, 99).Draw(m.t, "limit")
	var n, sum int64
	for _, r := range m.rows {
		if r.n >= limit {
			n, sum = n+1, sum+r.n
		}
	}
	for _, noPrune := range []bool{false, true} {
		agg, err := m.tab.Aggregate(ctx, minikudu.Query{Where: predicate.Ge("n", limit), NoPrune: noPrune}, nil, minikudu.Count(), minikudu.Sum("n"))
		if err != nil || agg.Column(0).Int64s()[0] != n || n > 0 && agg.Column(1).Int64s()[0] != sum {
			m.t.Fatalf("n >= %d: %v, %v, want %d rows, sum %d", limit, agg, err, n, sum)
		}
	}
	all, err := m.tab.Aggregate(ctx, minikudu.Query{}, nil, minikudu.Count(), minikudu.Max("n"), minikudu.CountOf("s"))
	if err != nil || all.Column(0).Int64s()[0] != int64(len(m.rows)) {
		m.t.Fatalf("count: %v, %v, want %d", all, err, len(m.rows))
	}
}
