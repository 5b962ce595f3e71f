package memrowset

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// model is a map of rows by encoded key, with their insert times.
type model struct {
	schema *schema.Schema
	m      *MemRowSet
	rows   map[string]row
	times  map[string]mvcc.Timestamp
	now    mvcc.Timestamp
}

// drawRow draws a row of the mixed schema; few keys are possible.
func drawRow(t *rapid.T) row {
	host := rapid.SampledFrom([]string{"", "\x00", "a", "a\x00", "host-1", "host-2", "host-22", "very-long-host-name-1"}).Draw(t, "host")
	ts := rapid.IntRange(-20, 60).Draw(t, "ts")
	r := row{str(host), i64(ts), i32(ts * 3), boolean(ts%2 == 0), str(strings.Repeat("x", max(ts, 0))),
		schema.Int128Value(schema.Int128From(int64(-ts))), schema.Float64Value(float64(ts) / 4),
		schema.IntValue(schema.KindInt16, int64(ts)), schema.IntValue(schema.KindInt8, int64(ts))}
	nulls := rapid.IntRange(0, 15).Draw(t, "nulls")
	for c := range 3 {
		if nulls>>c&1 != 0 && nulls&8 != 0 {
			r[2+c] = schema.Null
		}
	}
	return r
}

// insert adds new rows in one batch, from vectors in either form.
func (x *model) insert(t *rapid.T) {
	var rows []row
	for range rapid.IntRange(1, 100).Draw(t, "rows") {
		r := drawRow(t)
		if k := encode(x.schema, r); x.rows[k] == nil {
			rows = append(rows, r)
			x.rows[k] = r
		}
	}
	x.now += mvcc.Timestamp(rapid.IntRange(0, 1).Draw(t, "tick"))
	for _, r := range rows {
		x.times[encode(x.schema, r)] = x.now
	}
	cols, keys := batch(t, x.schema, rows)
	if rapid.Bool().Draw(t, "dictionary") && len(rows) > 0 {
		cols[0], cols[4] = dictionary(cols[0]), dictionary(cols[4])
		keys.Columns = cols[:2]
	}
	if _, err := x.m.Append(x.now, cols, keys, nil); err != nil {
		t.Fatal(err)
	}
}

// seal makes the active tree a run, as if it were full.
func (x *model) seal(*rapid.T) {
	if idx := x.m.index.Load(); idx.active.len() > 0 {
		x.m.seal(idx)
	}
}

// bulk makes the active tree a recent run, as if its rows had come in one large batch.
func (x *model) bulk(t *rapid.T) {
	x.seal(t)
	idx := *x.m.index.Load()
	if n := len(idx.runs); n > 0 {
		idx.runs, idx.recent = idx.runs[:n-1], append(idx.recent, idx.runs[n-1])
		x.m.index.Store(&idx)
	}
}

// merge makes the recent runs one, as if they were many.
func (x *model) merge(*rapid.T) {
	idx := *x.m.index.Load()
	if len(idx.recent) > 0 {
		idx.recent = []*run{mergeRuns(idx.recent)}
		x.m.index.Store(&idx)
	}
}

// want returns the keys that a scan must deliver, ascending.
func (x *model) want(spec *rowset.ScanSpec, keep func(row) bool) []string {
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(x.rows)) {
		if spec.Time.Contains(x.times[k]) && (spec.Lower == nil || k >= string(spec.Lower)) &&
			(spec.Upper == nil || k < string(spec.Upper)) && keep(x.rows[k]) {
			keys = append(keys, k)
		}
	}
	return keys
}

func (x *model) scan(t *rapid.T) {
	spec := allColumns(x.schema, mvcc.Timestamp(rapid.IntRange(0, int(x.now)+1).Draw(t, "hi")))
	spec.Time.Lo = mvcc.Timestamp(rapid.IntRange(0, int(spec.Time.Hi)).Draw(t, "lo"))
	spec.Order = rapid.SampledFrom([]rowset.Order{rowset.Unordered, rowset.KeyOrder, rowset.KeyReverse}).Draw(t, "order")
	spec.MaxRows = rapid.SampledFrom([]int{0, 1, 7, 64}).Draw(t, "max rows")
	if rapid.Bool().Draw(t, "lower") {
		spec.Lower = []byte(encode(x.schema, drawRow(t)))
	}
	if rapid.Bool().Draw(t, "upper") {
		spec.Upper = []byte(encode(x.schema, drawRow(t)))
	}
	spec.WithKeys = true
	keep := func(row) bool { return true }
	if rapid.Bool().Draw(t, "filter") {
		n := rapid.IntRange(-60, 180).Draw(t, "n")
		spec.Filter, keep = lessThan(t, x.schema, n)
	}
	rows, keys := scanRows(t, x.m, spec)
	for i, k := range keys {
		if !equalRows(rows[i], x.rows[k]) {
			t.Fatalf("row %d is %v, want %v", i, rows[i], x.rows[k])
		}
	}
	switch spec.Order {
	case rowset.Unordered:
		slices.Sort(keys)
	case rowset.KeyReverse:
		slices.Reverse(keys)
	}
	if want := x.want(spec, keep); !slices.Equal(keys, want) {
		t.Fatalf("%d keys %q, want %d %q", len(keys), keys, len(want), want)
	}
	if n := spec.Stats.RowsSelected.Load(); n != int64(len(keys)) {
		t.Fatalf("%d rows counted, %d delivered", n, len(keys))
	}
}

// lessThan returns the filter "n < limit".
func lessThan(t *rapid.T, s *schema.Schema, limit int) (*predicate.Bound, func(row) bool) {
	f, err := predicate.Bind(predicate.Lt("n", limit), s)
	if err != nil {
		t.Fatal(err)
	}
	return f, func(r row) bool { return !r[2].IsNull() && r[2].Int() < int64(limit) }
}

func (x *model) lookup(t *rapid.T) {
	byKey := map[string]row{}
	for range rapid.IntRange(1, 150).Draw(t, "keys") {
		r := drawRow(t)
		byKey[encode(x.schema, r)] = r
	}
	rows := slices.Collect(maps.Values(byKey))
	found := lookup(t, x.m, rows...)
	columns, dst := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, make([]*vector.Vector, 9)
	for k := range byKey {
		f, ok := found[k]
		if ok != (x.rows[k] != nil) || ok && f.LastChange != x.times[k] {
			t.Fatalf("key %q: found is %v, %+v", k, ok, f)
		}
		if !ok {
			continue
		}
		got := row{}
		for c := range dst {
			dst[c] = vector.New(x.schema.Column(c).Kind(), 1)
		}
		if err := x.m.ReadRow(context.Background(), f.Row, x.now, columns, dst); err != nil {
			t.Fatal(err)
		}
		for c := range dst {
			got = append(got, dst[c].Value(0))
		}
		if !equalRows(got, x.rows[k]) {
			t.Fatalf("row read is %v, want %v", got, x.rows[k])
		}
	}
}

// source compares a source, read in pieces, with the model.
func (x *model) source(t *rapid.T) {
	at := mvcc.Timestamp(rapid.IntRange(0, int(x.now)+1).Draw(t, "at"))
	src := x.m.Source(at, at)
	want := x.want(&rowset.ScanSpec{Time: mvcc.At(at)}, func(row) bool { return true })
	if src.Rows() != len(want) {
		t.Fatalf("%d rows in the source, want %d", src.Rows(), len(want))
	}
	cols, keys, times := make([]*vector.Vector, x.schema.Len()), vector.New(schema.KindBytes, 0), []mvcc.Timestamp{}
	for c := range cols {
		cols[c] = vector.New(x.schema.Column(c).Kind(), 0)
	}
	for from := 0; from < src.Rows(); {
		to := min(from+rapid.IntRange(1, 90).Draw(t, "piece"), src.Rows())
		for c := range cols {
			if err := src.Column(context.Background(), c, from, to, cols[c]); err != nil {
				t.Fatal(err)
			}
		}
		if err := src.Keys(context.Background(), from, to, keys); err != nil {
			t.Fatal(err)
		}
		var err error
		if times, err = src.InsertTimes(context.Background(), from, to, times); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	for i, k := range want {
		got := row{}
		for c := range cols {
			got = append(got, cols[c].Value(i))
		}
		if string(keys.BytesAt(i)) != k || times[i] != x.times[k] || !equalRows(got, x.rows[k]) {
			t.Fatalf("row %d of the source is %q %v at %d", i, keys.BytesAt(i), got, times[i])
		}
	}
}

func TestModel(t *testing.T) {
	s := mixed(t)
	rapid.Check(t, func(t *rapid.T) {
		x := &model{schema: s, m: New(1, s), rows: map[string]row{}, times: map[string]mvcc.Timestamp{}, now: 1}
		t.Repeat(map[string]func(*rapid.T){
			"insert": x.insert, "seal": x.seal, "bulk": x.bulk, "merge": x.merge, "scan": x.scan, "scan again": x.scan, "lookup": x.lookup, "source": x.source,
			"": func(t *rapid.T) {
				if x.m.Rows() != int64(len(x.rows)) {
					t.Fatalf("%d rows, want %d", x.m.Rows(), len(x.rows))
				}
			},
		})
	})
}
