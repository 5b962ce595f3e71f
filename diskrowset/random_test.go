package diskrowset

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"pgregory.net/rapid"
)

var allTypes = []schema.Type{schema.Int8, schema.Int16, schema.Int32, schema.Int64, schema.String, schema.Bool,
	schema.Float, schema.Double, schema.Binary, schema.UnixtimeMicros, schema.Decimal32, schema.Decimal64,
	schema.Decimal128, schema.Varchar, schema.Date}

var keyTypes = slices.DeleteFunc(slices.Clone(allTypes), func(t schema.Type) bool { return !t.KeyCapable() })

// drawColumn draws a column of one of the types.
func drawColumn(t *rapid.T, name string, types []schema.Type, key bool) schema.Column {
	c := schema.Column{Name: name, Type: rapid.SampledFrom(types).Draw(t, "type"), Length: 100}
	switch c.Type {
	case schema.Decimal32:
		c.Precision = 9
	case schema.Decimal64:
		c.Precision = 18
	case schema.Decimal128:
		c.Precision = 38
	}
	c.Nullable = !key && rapid.Bool().Draw(t, "nullable")
	var encodings []schema.Encoding
	for e := range schema.EncodingBitShuffle + 1 {
		if _, known := schema.ParseEncoding(e.String()); known && e.Supports(c.Kind()) {
			encodings = append(encodings, e)
		}
	}
	c.Encoding = rapid.SampledFrom(encodings).Draw(t, "encoding")
	c.Compression = schema.Compression(rapid.IntRange(0, 4).Draw(t, "compression"))
	if rapid.Bool().Draw(t, "paged") {
		c.Encoding, c.Compression = schema.EncodingAuto, schema.CompressionDefault
	}
	c.BlockSize = rapid.SampledFrom([]int{0, 512, 4096}).Draw(t, "block size")
	return c
}

func drawSchema(t *rapid.T) *schema.Schema {
	key := rapid.IntRange(1, 3).Draw(t, "key columns")
	var cols []schema.Column
	for i := range key {
		cols = append(cols, drawColumn(t, fmt.Sprintf("k%d", i), keyTypes, true))
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "columns") {
		cols = append(cols, drawColumn(t, fmt.Sprintf("c%d", i), allTypes, false))
	}
	return newSchema(t, key, cols...)
}

// value makes a value from a small or large number, so that keys collide sometimes.
func value(k schema.Kind, n int64) schema.Value {
	switch k {
	case schema.KindBool:
		return schema.BoolValue(n&1 == 1)
	case schema.KindInt8:
		return schema.IntValue(k, int64(int8(n)))
	case schema.KindInt16:
		return schema.IntValue(k, int64(int16(n)))
	case schema.KindInt32:
		return schema.IntValue(k, int64(int32(n)))
	case schema.KindInt64:
		return schema.IntValue(k, n)
	case schema.KindInt128:
		return schema.Int128Value(schema.Int128{Lo: uint64(n) * 0x9e3779b97f4a7c15, Hi: n >> 3})
	case schema.KindFloat32:
		return schema.Float32Value(float32(odd(n)))
	case schema.KindFloat64:
		return schema.Float64Value(odd(n))
	}
	return schema.BytesValue(bytes.Repeat([]byte{byte(n), byte(n >> 8), 0}, int(uint64(n)%5)))
}

// odd makes a float, some of them special.
func odd(n int64) float64 {
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0}
	if i := int(uint64(n) % 16); i < len(special) {
		return special[i]
	}
	return float64(n) / 4
}

func drawRows(t *rapid.T, s *schema.Schema) *rows {
	n := rapid.SampledFrom([]int{1, 2, 127, 128, 129, 1000, 3000}).Draw(t, "rows")
	spread := rapid.SampledFrom([]int64{100, 1 << 40}).Draw(t, "spread")
	seed := rapid.Uint64().Draw(t, "seed")
	next := func() int64 {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int64(seed>>20) % spread
	}
	seen := map[string]bool{}
	var cells [][]schema.Value
	for range n {
		row := make([]schema.Value, s.Len())
		for i := range row {
			c := s.Column(i)
			if row[i] = value(c.Kind(), next()); c.Nullable && next()%4 == 0 {
				row[i] = schema.Null
			}
		}
		if k := string(encodeKey(s, row[:s.NumKey()]...)); !seen[k] {
			seen[k] = true
			cells = append(cells, row)
		}
	}
	return newRows(t, s, cells)
}

// TestRoundTrip writes random rows of random schemas, reads them back in every order
// and looks every key up.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSchema(rt)
		src := drawRows(rt, s)
		st := newStore(rt, s)
		defer st.finish()
		st.env.Pages = cache.New[cache.Page](rapid.SampledFrom([]int64{0, 16 << 10, 64 << 20}).Draw(rt, "cache"))
		target := rapid.SampledFrom([]int64{0, 8 << 10}).Draw(rt, "target")
		filters := rapid.Bool().Draw(rt, "filters")
		sets := st.write(src, func(o *WriterOptions) { o.TargetBytes, o.NoFilters = target, !filters })
		want, from := src.lines(nil), 0
		for _, r := range sets {
			n := int(r.Rows())
			part := want[from : from+n]
			got, _ := query{}.scan(rt, r)
			equalLines(rt, got, part)
			q := query{spec: rowset.ScanSpec{Order: rowset.KeyReverse, WithKeys: true, MaxRows: rapid.IntRange(0, 300).Draw(rt, "max")}}
			got, _ = q.scan(rt, r)
			reversed := make([]string, n)
			for i := range part {
				reversed[n-1-i] = fmt.Sprintf("%s#%x", part[i], src.keys.BytesAt(from+i))
			}
			equalLines(rt, got, reversed)
			checkLookups(rt, src, r, from)
			from += n
		}
		if from != src.Rows() {
			rt.Fatalf("%d rows of %d", from, src.Rows())
		}
	})
}

// checkLookups looks all keys of the source up in a rowset that holds those from a row on.
func checkLookups(t tb, src *rows, r *RowSet, from int) {
	t.Helper()
	found, err := resolve(r, src.lookupKeys())
	must(t, err)
	all := make([]int, src.schema.Len())
	for i := range all {
		all[i] = i
	}
	for i, f := range found {
		inside := i >= from && i < from+int(r.Rows())
		if (f.RowSet != nil) != inside || inside && int(f.Row) != i-from {
			t.Fatalf("key %d: %+v, rows from %d", i, f, from)
		}
		if !inside {
			continue
		}
		if f.LastChange != src.times[i] {
			t.Fatalf("key %d: last change %d, want %d", i, f.LastChange, src.times[i])
		}
		var row []*vector.Vector
		for k := range all {
			row = append(row, vector.New(src.schema.Column(k).Kind(), 1))
		}
		must(t, r.ReadRow(bg, f.Row, mvcc.Max, all, row))
		if got, want := line(row, 0, nil), line(src.cols, i, nil); got != want {
			t.Fatalf("row %d: got %s, want %s", i, got, want)
		}
	}
}

// drawFilter draws a predicate over the columns of a schema.
func drawFilter(t *rapid.T, s *schema.Schema, src *rows, depth int) predicate.Expr {
	if depth > 0 && rapid.Bool().Draw(t, "logic") {
		a, b := drawFilter(t, s, src, depth-1), drawFilter(t, s, src, depth-1)
		switch rapid.IntRange(0, 2).Draw(t, "connective") {
		case 0:
			return predicate.And(a, b)
		case 1:
			return predicate.Or(a, b)
		}
		return predicate.Not(a)
	}
	i := rapid.IntRange(0, s.Len()-1).Draw(t, "column")
	c := s.Column(i)
	v := src.cols[i].Value(rapid.IntRange(0, src.Rows()-1).Draw(t, "row"))
	op := rapid.SampledFrom([]predicate.Op{predicate.OpEq, predicate.OpNe, predicate.OpLt, predicate.OpLe, predicate.OpGt,
		predicate.OpGe, predicate.OpIn, predicate.OpIsNull}).Draw(t, "op")
	if op == predicate.OpIsNull {
		return predicate.IsNull(c.Name)
	}
	if v.IsNull() {
		return predicate.IsNotNull(c.Name)
	}
	return &predicate.Compare{Column: c.Name, Op: op, Args: []any{v}}
}

// TestPruningChangesNoAnswer compares scans with and without pruning under random
// filters, bounds, snapshots and batch sizes.
func TestPruningChangesNoAnswer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSchema(rt)
		src := drawRows(rt, s)
		st := newStore(rt, s)
		defer st.finish()
		r := st.one(src)
		for range 4 {
			q := query{where: drawFilter(rt, s, src, 2)}
			q.spec.MaxRows = rapid.SampledFrom([]int{0, 1, 100}).Draw(rt, "max rows")
			q.spec.Order = rapid.SampledFrom([]rowset.Order{rowset.Unordered, rowset.KeyOrder, rowset.KeyReverse}).Draw(rt, "order")
			q.spec.WithKeys = rapid.Bool().Draw(rt, "keys")
			hi := src.times[rapid.IntRange(0, src.Rows()-1).Draw(rt, "snapshot")]
			q.spec.Time = mvcc.Interval{Lo: mvcc.Timestamp(rapid.SampledFrom([]int{0, 0, 1000, 1100}).Draw(rt, "lo")), Hi: hi}
			if rapid.Bool().Draw(rt, "bounded") {
				q.spec.Lower = src.keys.BytesAt(rapid.IntRange(0, src.Rows()-1).Draw(rt, "lower"))
				q.spec.Upper = src.keys.BytesAt(rapid.IntRange(0, src.Rows()-1).Draw(rt, "upper"))
			}
			pruned, stats := q.scan(rt, r)
			q.spec.NoPrune = true
			plain, _ := q.scan(rt, r)
			equalLines(rt, pruned, plain)
			checkStats(rt, stats, len(pruned))
		}
	})
}

// checkStats checks that every page of a finished scan was counted once.
func checkStats(t tb, s *rowset.Stats, rows int) {
	t.Helper()
	if n := s.RowsSelected.Load(); n != int64(rows) {
		t.Fatalf("%d rows selected, want %d", n, rows)
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		sum := c.ByZone.Load() + c.BySelection.Load() + c.Cached.Load() + c.Decoded.Load()
		if sum != c.Pages.Load() {
			t.Fatalf("column %d: %d pages, of which %d by zone, %d by selection, %d cached, %d decoded", i, c.Pages.Load(),
				c.ByZone.Load(), c.BySelection.Load(), c.Cached.Load(), c.Decoded.Load())
		}
	}
}
