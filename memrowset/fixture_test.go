package memrowset

import (
	"bytes"
	"context"
	"fmt"
	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"slices"
)

// row is a row of a test table, in column order; key columns first.
type row []schema.Value

func i64(v int) schema.Value      { return schema.IntValue(schema.KindInt64, int64(v)) }
func i32(v int) schema.Value      { return schema.IntValue(schema.KindInt32, int64(v)) }
func str(s string) schema.Value   { return schema.StringValue(s) }
func boolean(b bool) schema.Value { return schema.BoolValue(b) }

// fataler is what the helpers need of a test, a benchmark or a property.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newSchema(t fataler, numKey int, cols ...schema.Column) *schema.Schema {
	t.Helper()
	var key []string
	for i := range cols {
		if cols[i].Name == "" {
			cols[i].Name = fmt.Sprintf("c%d", i)
		}
		cols[i].ID = schema.ColumnID(i)
		if i < numKey {
			key = append(key, cols[i].Name)
		}
	}
	s, err := schema.New(cols, key, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mixed is a schema of a two-column key and a nullable column of several kinds.
func mixed(t fataler) *schema.Schema {
	return newSchema(t, 2,
		schema.Column{Name: "host", Type: schema.String},
		schema.Column{Name: "ts", Type: schema.Int64},
		schema.Column{Name: "n", Type: schema.Int32, Nullable: true},
		schema.Column{Name: "b", Type: schema.Bool, Nullable: true},
		schema.Column{Name: "s", Type: schema.String, Nullable: true},
		schema.Column{Name: "d", Type: schema.Decimal128, Precision: 38},
		schema.Column{Name: "f", Type: schema.Double},
		schema.Column{Name: "w", Type: schema.Int16},
		schema.Column{Name: "t", Type: schema.Int8})
}

func encode(s *schema.Schema, r row) string {
	return string(encoding.AppendKeyValues(nil, r[:s.NumKey()], s.NumKey()))
}

// batch returns the rows as vectors and their keys in ascending order. Rows may be keys
// alone, for a lookup.
func batch(t fataler, s *schema.Schema, rows []row) ([]*vector.Vector, *rowset.Keys) {
	t.Helper()
	cols := make([]*vector.Vector, s.Len())
	for c := range cols {
		cols[c] = vector.New(s.Column(c).Kind(), len(rows))
		for _, r := range rows {
			if c >= len(r) {
				continue
			}
			if err := cols[c].Append(r[c]); err != nil {
				t.Fatal(err)
			}
		}
	}
	enc := vector.New(schema.KindBytes, len(rows))
	for _, r := range rows {
		if err := enc.AppendBytes([]byte(encode(s, r))); err != nil {
			t.Fatal(err)
		}
	}
	keys := &rowset.Keys{Encoded: vector.New(schema.KindBytes, len(rows)), Columns: cols[:s.NumKey()], Row: sortedRows(enc)}
	if err := keys.Encoded.AppendRows(enc, keys.Row); err != nil {
		t.Fatal(err)
	}
	return cols, keys
}

// sortedRows returns the positions of the keys in ascending order.
func sortedRows(enc *vector.Vector) []int32 {
	rows := all(enc.Len())
	slices.SortFunc(rows, func(a, b int32) int { return bytes.Compare(enc.BytesAt(int(a)), enc.BytesAt(int(b))) })
	return rows
}

func insert(t fataler, m *MemRowSet, ts mvcc.Timestamp, rows ...row) {
	t.Helper()
	cols, keys := batch(t, m.Schema(), rows)
	if _, err := m.Append(ts, cols, keys, nil); err != nil {
		t.Fatal(err)
	}
}

func all(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// lookup resolves rows by key and returns what was found, by encoded key.
func lookup(t fataler, m *MemRowSet, rows ...row) map[string]rowset.Found {
	t.Helper()
	_, keys := batch(t, m.Schema(), rows)
	out := make([]rowset.Found, keys.Len())
	if err := m.Lookup(context.Background(), keys, all(keys.Len()), out); err != nil {
		t.Fatal(err)
	}
	found := map[string]rowset.Found{}
	for i, f := range out {
		if f.RowSet != nil {
			found[string(keys.At(i))] = f
		}
	}
	return found
}

// allColumns returns the spec of a scan of every column at a snapshot.
func allColumns(s *schema.Schema, at mvcc.Timestamp) *rowset.ScanSpec {
	spec := &rowset.ScanSpec{Schema: s, Time: mvcc.At(at), Stats: rowset.NewStats(s.Len()), WithKeys: true}
	for c := range s.Len() {
		spec.Columns = append(spec.Columns, c)
	}
	return spec
}

// scanRows returns the rows of a scan, in its order, and their keys.
func scanRows(t fataler, m *MemRowSet, spec *rowset.ScanSpec) (rows []row, keys []string) {
	t.Helper()
	it, err := m.Scan(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for {
		b, err := it.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			return rows, keys
		}
		rows, keys = appendBatch(t, spec, b, rows, keys)
	}
}

func appendBatch(t fataler, spec *rowset.ScanSpec, b *rowset.Batch, rows []row, keys []string) ([]row, []string) {
	t.Helper()
	n := 0
	for i := range b.Rows {
		if b.Sel != nil && !b.Sel.Get(i) {
			continue
		}
		n++
		var r row
		for _, v := range b.Columns {
			if v.Len() != b.Rows {
				t.Fatalf("a vector of %d cells in a batch of %d rows", v.Len(), b.Rows)
			}
			r = append(r, v.Value(i))
		}
		rows = append(rows, r)
		if spec.WithKeys {
			keys = append(keys, string(b.Keys.BytesAt(i)))
		}
	}
	if n != b.Selected || n == 0 || spec.MaxRows > 0 && b.Rows > spec.MaxRows {
		t.Fatalf("batch of %d rows, %d selected, says %d", b.Rows, n, b.Selected)
	}
	return rows, keys
}

func equalRows(a, b row) bool {
	return slices.EqualFunc(a, b, func(x, y schema.Value) bool { return x.Kind() == y.Kind() && x.Compare(y) == 0 })
}
