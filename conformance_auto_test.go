package minikudu_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// eventSpec is a table whose named key is not unique.
func eventSpec() minikudu.TableSpec {
	s := table([]string{"host"}, col("host", schema.String), null(col("v", schema.Int64)))
	s.NonUnique = true
	return s
}

// ids returns the generated ids, ascending.
func (r *rig) ids() []int64 {
	r.Helper()
	ids := column[int64](r.rows(minikudu.Query{Columns: []string{schema.AutoIncrementName}}), 0)
	slices.Sort(ids)
	return ids
}

func TestItem67GeneratedIDsCountFromOne(t *testing.T) {
	rows := [][]any{{"b", 1}, {"a", 2}, {"a", 2}, {"a", nil}, {"c", 3}, {"a", 4}, {"b", 5}, {"b", 5}, {"b", 6}, {"d", 7}}
	eachWay(t, eventSpec(), rows, func(t *testing.T, r *rig) {
		if got := r.ids(); !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
			t.Fatalf("ids %v", got)
		}
		got := r.rows(minikudu.Query{Order: minikudu.KeyOrder, Where: predicate.Eq("host", "a")})
		sameList(t, "one key, in order of insert", got, [][]any{{"a", int64(2)}, {"a", int64(2)}, {"a", nil}, {"a", int64(4)}})
		row, err := r.tab.Get(ctx, "a", 3)
		if err != nil || row.Value(schema.AutoIncrementName) != int64(3) || row.Value("v") != int64(2) {
			t.Fatalf("get by generated id: %v, %v", row, err)
		}
		if _, err := r.tab.Get(ctx, "b", 3); !errors.Is(err, minikudu.ErrNotFound) {
			t.Fatal(err)
		}
		if n, err := r.tab.Count(ctx, predicate.Gt(schema.AutoIncrementName, 7)); err != nil || n != 3 {
			t.Fatalf("%d rows, %v", n, err)
		}
	})
}

func TestItem67ValuesForGeneratedIDsAreRefused(t *testing.T) {
	r := newRig(t, minikudu.Options{}, eventSpec())
	type event struct {
		Host string `minikudu:"host"`
		ID   int64  `minikudu:"auto_incrementing_id"`
	}
	var b minikudu.WriteBatch
	b.InsertMap(r.tab, map[string]any{"host": "a", schema.AutoIncrementName: 5})
	b.Insert(r.tab, "a", 5, 1)
	if _, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrInvalidArgument) || r.tab.Rows() != 0 {
		t.Fatalf("%d rows, %v", r.tab.Rows(), err)
	}
	one := vector.FromFixed(schema.KindInt64, []int64{5}, nil)
	if err := b.InsertColumns(r.tab, []string{schema.AutoIncrementName}, []*vector.Vector{one}); !errors.Is(err, minikudu.ErrInvalidArgument) {
		t.Fatal(err)
	}
	// A struct that scans can fill leaves the id to the engine when it inserts.
	b.Reset()
	if err := minikudu.InsertStructs(&b, r.tab, event{"a", 99}, event{"a", 99}); err != nil {
		t.Fatal(err)
	}
	r.commit(&b)
	got, err := minikudu.GetAs[event](ctx, r.tab, "a", 2)
	if err != nil || got != (event{"a", 2}) {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestItem67IDsGoOnAfterRestarts(t *testing.T) {
	r := newRig(t, minikudu.Options{}, eventSpec())
	n := int64(0)
	for round := range 12 {
		r.insert([]any{"a", nil}, []any{"b", nil})
		n += 2
		var b minikudu.WriteBatch
		b.Insert(r.tab, "too", "wrong") // a rejected row takes no id from others
		if _, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrInvalidArgument) {
			t.Fatal(err)
		}
		if round%3 == 0 {
			r.flush()
		}
		if round%2 == 0 {
			r.restart()
		}
		got := r.ids()
		if distinct := slices.Compact(slices.Clone(got)); int64(len(got)) != n || len(distinct) != len(got) || got[0] != 1 {
			t.Fatalf("round %d: ids %v", round, got)
		}
	}
}

// After a power cut the ids that are handed out differ from all that survived.
func TestItem67IDsAfterACrash(t *testing.T) {
	mem := vfs.NewMem()
	r := newRig(t, minikudu.Options{FS: mem, Durability: minikudu.NoSync}, eventSpec())
	for round := range 10 {
		r.insert([]any{"a", round}, []any{"b", round})
		if round%4 == 1 {
			r.flush()
		}
		clone := mem.CrashClone(vfs.CrashOptions{})
		o := minikudu.Options{FS: clone}
		db := mustOpen(t, "db", &o)
		tab, err := db.Table("t")
		if err != nil {
			t.Fatal(err)
		}
		survived := tab.Rows()
		var b minikudu.WriteBatch
		b.Insert(tab, "a", 0)
		b.Insert(tab, "b", 0)
		if _, err := db.Commit(ctx, &b, nil); err != nil {
			t.Fatal(err)
		}
		ids := column[int64](scanRows(t, tab, minikudu.Query{Columns: []string{schema.AutoIncrementName}}), 0)
		slices.Sort(ids)
		if got := slices.Compact(ids); int64(len(got)) != survived+2 {
			t.Fatalf("round %d: ids %v after %d rows survived", round, ids, survived)
		}
		mustClose(t, db)
	}
}
