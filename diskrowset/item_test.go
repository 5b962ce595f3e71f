package diskrowset

import (
	"strings"
	"testing"

	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Two scans of one rowset share its decoded pages: the second decodes none.
func TestItem27SecondReaderHitsTheCache(t *testing.T) {
	src := kv(t, 5000, col("v", schema.Int32), func(i int) schema.Value { return i32(i) })
	st := newStore(t, src.schema)
	r := st.one(src)
	scan := func() (decoded, cached int64) {
		q := query{spec: rowset.ScanSpec{}}
		spec := q.bind(t, src.schema)
		if got, err := collect(r, spec); err != nil || len(got) != 5000 {
			t.Fatalf("%d rows, %v", len(got), err)
		}
		for i := range spec.Stats.Columns {
			c := &spec.Stats.Columns[i]
			decoded, cached = decoded+c.Decoded.Load(), cached+c.Cached.Load()
		}
		return decoded, cached
	}
	if decoded, _ := scan(); decoded == 0 {
		t.Fatal("the first reader decoded nothing")
	}
	if decoded, cached := scan(); decoded != 0 || cached == 0 {
		t.Fatalf("the second reader decoded %d pages and found %d", decoded, cached)
	}
}

// A column without data reads as its default, in a nullable column or not, as null
// where there is none; strings included.
func TestItem28MissingColumn(t *testing.T) {
	src := kv(t, 64, col("v", schema.Int32), func(i int) schema.Value { return i32(i) })
	st := newStore(t, src.schema)
	old := st.one(src)
	cols := append(src.schema.Columns(),
		schema.Column{Name: "a", Type: schema.Int32, ID: 50, ReadDefault: i32(7)},
		schema.Column{Name: "b", Type: schema.Int32, Nullable: true, ID: 51, ReadDefault: i32(8)},
		schema.Column{Name: "c", Type: schema.Int32, Nullable: true, ID: 52},
		schema.Column{Name: "d", Type: schema.String, ID: 53, ReadDefault: str("text")})
	wider, err := schema.New(cols, []string{"key"}, schema.Limits{})
	must(t, err)
	st.env.Schema = wider
	q := query{spec: rowset.ScanSpec{Columns: []int{2, 3, 4, 5}}}
	got, err := collect(st.open(old.meta), q.bind(t, wider))
	must(t, err)
	if len(got) != 64 {
		t.Fatalf("%d rows", len(got))
	}
	for _, row := range got {
		if !strings.Contains(row, `7|8|NULL|"text"`) {
			t.Fatalf("row %s", row)
		}
	}
}

// Key pages that are loaded while a filter is asked count only when it lets the key pass.
func TestPagesLoadedInVainAreNotCounted(t *testing.T) {
	var cells [][]schema.Value
	for i := range 5000 {
		cells = append(cells, []schema.Value{i32(2 * i), i32(i)})
	}
	src := newRows(t, newSchema(t, 1, col("key", schema.Int32), col("v", schema.Int32)), cells)
	st := newStore(t, src.schema)
	r := st.one(src)
	find := func(n int) bool {
		encoded, column := vector.New(schema.KindBytes, 1), vector.New(schema.KindInt32, 1)
		must(t, encoded.AppendBytes(encodeKey(src.schema, i32(n))))
		vector.AppendFixed(column, int32(n))
		found, err := resolve(r, &rowset.Keys{Encoded: encoded, Columns: []*vector.Vector{column}})
		must(t, err)
		return found[0].RowSet != nil
	}
	hits := func(first int) int64 {
		before := st.env.Pages.Stats().Hits
		for i := range 200 {
			if n := first + 2*i; find(n) != (n%2 == 0) {
				t.Fatalf("key %d", n)
			}
		}
		return st.env.Pages.Stats().Hits - before
	}
	hits(0)
	if n := hits(1001); n > 20 {
		t.Errorf("%d pages were asked for 200 absent keys", n)
	}
	if n := hits(1000); n < 200 {
		t.Errorf("%d pages were asked for 200 keys", n)
	}
}
