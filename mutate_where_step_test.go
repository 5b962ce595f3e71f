package minikudu

import (
	"context"
	"fmt"
	"testing"

	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

// stepper runs an update or delete by predicate in steps: the rows are chosen, then
// other things happen, then the batches are committed.
type stepper struct {
	*testing.T
	db *DB
	t  *Table
}

func newStepper(t *testing.T) *stepper {
	t.Helper()
	db, err := Open("db", &Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := &stepper{T: t, db: db}
	s.t, err = db.CreateTable(context.Background(), "t", TableSpec{Key: []string{"k"}, Columns: []Column{
		{Name: "k", Type: schema.Int64}, {Name: "a", Type: schema.Int64, Nullable: true}, {Name: "b", Type: schema.String, Nullable: true}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stepper) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stepper) write(op Op, rows ...map[string]any) {
	s.Helper()
	var b WriteBatch
	for _, r := range rows {
		b.Add(s.t, op, r)
	}
	_, err := s.db.Commit(context.Background(), &b, nil)
	s.must(err)
}

// choose scans, and returns what commits the chosen rows.
func (s *stepper) choose(w *whereWrite, where Expr, o *WhereOptions) (commit func() WhereResult) {
	s.Helper()
	w.db, w.table = s.db, s.t
	s.must(w.bind(where, o))
	ready := make(chan *WriteBatch, 100)
	s.must(w.scan(context.Background(), ready))
	close(ready)
	return func() WhereResult {
		s.Helper()
		for b := range ready {
			s.must(w.commit(context.Background(), b))
		}
		return w.result
	}
}

// state returns the rows as text, by key.
func (s *stepper) state() string {
	s.Helper()
	out := ""
	for b, err := range s.t.Scan(context.Background(), Query{Order: KeyOrder}) {
		s.must(err)
		for i := range b.Len() {
			out += fmt.Sprint(b.Row(i)...) + ";"
		}
	}
	return out
}

// A row that another commit changed after the rows were chosen is tested again, wherever
// it is stored then, and by filters on columns that the change did and did not touch.
func TestWhereTestsChangedRowsAgain(t *testing.T) {
	row := func(k, a int64, b any) map[string]any { return map[string]any{"k": k, "a": a, "b": b} }
	flush := func(s *stepper) { s.must(s.t.Flush(context.Background())) }
	nothing := func(*stepper) {}
	compact := func(s *stepper) {
		_, err := s.t.Compact(context.Background())
		s.must(err)
	}
	places := map[string][3]func(*stepper){ // before the choice, between choice and changes, after the changes
		"memory":                {nothing, nothing, nothing},
		"disk":                  {flush, nothing, nothing},
		"flushed between":       {nothing, flush, nothing},
		"flushed after":         {nothing, nothing, flush},
		"disk, flushed after":   {flush, nothing, flush},
		"flushed between twice": {nothing, flush, flush},
		"disk, compacted after": {flush, nothing, compact},
		"compacted twice":       {flush, compact, compact},
	}
	for name, place := range places {
		for _, rows := range []int{1, 2, 100} {
			t.Run(fmt.Sprint(name, rows), func(t *testing.T) {
				s := newStepper(t)
				s.write(OpInsert, row(1, 1, "x"), row(2, 1, "x"), row(3, 1, "x"), row(4, 1, "x"), row(5, 1, "x"), row(6, 1, "x"), row(7, 2, "x"))
				place[0](s)
				commit := s.choose(&whereWrite{op: OpUpdateIgnore, names: []string{"b"}, cells: []schema.Value{schema.StringValue("new")}},
					predicate.Eq("a", 1), &WhereOptions{BatchRows: rows})
				place[1](s)
				s.write(OpUpdate, map[string]any{"k": 1, "a": 2})   // no longer qualifies
				s.write(OpUpdate, map[string]any{"k": 2, "a": nil}) // likewise: unknown
				s.write(OpUpdate, map[string]any{"k": 3, "b": "y"}) // changed, qualifies
				s.write(OpDelete, map[string]any{"k": 4})           // gone
				s.write(OpDelete, map[string]any{"k": 5})           // put back, does not qualify
				s.write(OpInsert, row(5, 9, "z"))
				s.write(OpUpdate, map[string]any{"k": 7, "a": 1}) // qualifies now, was not chosen
				place[2](s)
				res := commit()
				if res.Matched != 6 || res.Changed != 2 || res.Timestamp != s.db.snapshot() {
					t.Errorf("result %+v", res)
				}
				if got, want := s.state(), "1 2x;2 <nil> x;3 1new;5 9z;6 1new;7 1x;"; clean(got) != clean(want) {
					t.Errorf("rows %s", got)
				}
			})
		}
	}
}

// clean drops blanks: fmt.Sprint puts some between operands that are not text.
func clean(s string) (out string) {
	for _, r := range s {
		if r != ' ' {
			out += string(r)
		}
	}
	return out
}

// Deletes of a changed row follow the same rule; without a filter every live row
// qualifies.
func TestWhereDeletesOnlyWhatStillQualifies(t *testing.T) {
	s := newStepper(t)
	for k := range int64(4) {
		s.write(OpInsert, map[string]any{"k": k, "a": 1})
	}
	some := s.choose(&whereWrite{op: OpDeleteIgnore}, predicate.Eq("a", 1), &WhereOptions{Atomic: true})
	all := s.choose(&whereWrite{op: OpDeleteIgnore}, nil, nil)
	s.write(OpUpdate, map[string]any{"k": 2, "a": 5})
	s.write(OpInsert, map[string]any{"k": 9, "a": 1})
	if res := some(); res.Matched != 4 || res.Changed != 3 {
		t.Errorf("delete where: %+v", res)
	}
	if got := clean(s.state()); got != "25<nil>;91<nil>;" {
		t.Errorf("rows %s", got)
	}
	if res := all(); res.Matched != 4 || res.Changed != 1 {
		t.Errorf("delete of all: %+v", res)
	}
	if got := clean(s.state()); got != "91<nil>;" {
		t.Errorf("rows %s", got)
	}
}
