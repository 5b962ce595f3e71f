package minikudu_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

func TestC04ZeroAndEmptyAreNotNull(t *testing.T) {
	type metric struct {
		Host string    `minikudu:"host"`
		TS   time.Time `minikudu:"ts"`
		V    *float64  `minikudu:"v"`
		Tag  *string   `minikudu:"tag"`
		N    *int64    `minikudu:"n"`
	}
	zero, empty, none := 0.0, "", int64(0)
	special := map[int]bool{0: true, 30: true, 62: true, 63: true, 64: true, 1024: true}
	for _, n := range []int{1, 63, 64, 65, 1025} {
		for _, by := range []string{"position", "map", "struct", "columns"} {
			r := newRig(t, minikudu.Options{}, metricSpec())
			var b minikudu.WriteBatch
			var want [][]any
			ts, v, tag, num, host := vector.New(schema.KindInt64, n), vector.New(schema.KindFloat64, n), vector.New(schema.KindBytes, n), vector.New(schema.KindInt64, n), vector.New(schema.KindBytes, n)
			for i := range n {
				at := time.UnixMicro(int64(i)).UTC()
				row := []any{"", at, nil, nil, nil}
				m := metric{Host: "", TS: at}
				_ = host.AppendBytes(nil)
				vector.AppendFixed(ts, int64(i))
				if special[i] {
					row = []any{"", at, 0.0, "", int64(0)}
					m.V, m.Tag, m.N = &zero, &empty, &none
					vector.AppendFixed(v, 0.0)
					_ = tag.AppendBytes(nil)
					vector.AppendFixed(num, int64(0))
				} else {
					v.AppendNull()
					tag.AppendNull()
					num.AppendNull()
				}
				want = append(want, row)
				switch by {
				case "position":
					b.Insert(r.tab, row...)
				case "map":
					b.InsertMap(r.tab, map[string]any{"host": row[0], "ts": row[1], "v": row[2], "tag": row[3], "n": row[4]})
				case "struct":
					if err := minikudu.InsertStructs(&b, r.tab, m); err != nil {
						t.Fatal(err)
					}
				}
			}
			if by == "columns" {
				if err := b.InsertColumns(r.tab, []string{"host", "ts", "v", "tag", "n"}, []*vector.Vector{host, ts, v, tag, num}); err != nil {
					t.Fatal(err)
				}
			}
			r.commit(&b)
			for range 3 {
				sameList(t, fmt.Sprintf("%d rows by %s", n, by), r.rows(minikudu.Query{Order: minikudu.KeyOrder}), want)
				row, err := minikudu.GetAs[metric](ctx, r.tab, "", time.UnixMicro(0))
				if err != nil || row.V == nil || *row.V != 0 || row.Tag == nil || *row.Tag != "" || row.N == nil {
					t.Fatalf("%d rows by %s: %+v, %v", n, by, row, err)
				}
				r.flush()
				r.restart()
			}
		}
	}
}

func TestC08ByteSlices(t *testing.T) {
	type text struct {
		K string `minikudu:"k"`
		B []byte `minikudu:"b"`
	}
	r := newRig(t, minikudu.Options{Limits: schema.Limits{MaxCellBytes: 4 << 20}}, textSpec())
	big := bytes.Repeat([]byte("0123456789abcdef"), 3<<16)
	cells := map[string][]byte{"nil": nil, "empty": {}, "test": []byte("test"), "big": big}
	var b minikudu.WriteBatch
	for name, c := range cells {
		if err := minikudu.InsertStructs(&b, r.tab, text{name, c}); err != nil {
			t.Fatal(err)
		}
		b.Insert(r.tab, "by position "+name, nil, c)
	}
	r.commit(&b)
	for range 3 {
		for name, c := range cells {
			for _, key := range []string{name, "by position " + name} {
				row, err := minikudu.GetAs[text](ctx, r.tab, key)
				if err != nil || !bytes.Equal(row.B, c) || (row.B == nil) != (c == nil) {
					t.Fatalf("%s came back as %d bytes (nil: %v), %v", key, len(row.B), row.B == nil, err)
				}
			}
		}
		for p, err := range minikudu.ScanAs[text](ctx, r.tab, minikudu.Query{}) {
			name := strings.TrimPrefix(p.K, "by position ")
			if err != nil || !bytes.Equal(p.B, cells[name]) || (p.B == nil) != (cells[name] == nil) {
				t.Fatalf("%s scanned as %d bytes, %v", p.K, len(p.B), err)
			}
		}
		r.flush()
		r.restart()
	}
}

func TestC10LargeCells(t *testing.T) {
	limits := schema.Limits{MaxCellBytes: 1 << 20}
	sizes := []int{0, 1, 64 << 10, 1 << 20}
	cell := func(n int) string { return strings.Repeat("x", n) }
	r := newRig(t, minikudu.Options{Limits: limits}, textSpec())
	for i, n := range sizes {
		r.insert([]any{fmt.Sprint(i), cell(n), []byte(cell(n))})
	}
	var b minikudu.WriteBatch
	b.Insert(r.tab, "too large", cell(1<<20+1), nil)
	_, err := r.db.Commit(ctx, &b, nil)
	var v *schema.ValueError
	if !errors.As(err, &v) || v.Column != "s" || !strings.Contains(err.Error(), "1048576") {
		t.Fatalf("a cell over the limit: %v", err)
	}
	b.Reset()
	for i := range 50 {
		b.Insert(r.tab, fmt.Sprint("many ", i), cell(1<<20), nil)
	}
	if _, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrTooLarge) {
		t.Fatalf("50 MiB in one batch: %v", err)
	}
	for range 3 {
		for _, o := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse} {
			got := r.rows(minikudu.Query{Order: o})
			if len(got) != len(sizes) {
				t.Fatalf("%d rows, want %d", len(got), len(sizes))
			}
			for _, row := range got {
				n := sizes[row[0].(string)[0]-'0']
				if row[1] != cell(n) || string(row[2].([]byte)) != cell(n) {
					t.Fatalf("a cell of %d bytes came back with %d", n, len(row[1].(string)))
				}
			}
		}
		r.flush()
		r.restart()
	}
}

func TestC12LongStringBounds(t *testing.T) {
	prefix := strings.Repeat("p", 64)
	top := strings.Repeat("\xff", 8) + "\xaa"
	var texts, bins []string
	for i := range 200 {
		texts = append(texts, fmt.Sprintf("%s%03d", prefix, i))
		bins = append(bins, prefix+string([]byte{byte(i), 0xff, byte(i)}))
	}
	bins[199], bins[198], bins[197] = top, strings.Repeat("\xff", 40), strings.Repeat("\xff", 8)
	var rows [][]any
	for i := range texts {
		rows = append(rows, []any{fmt.Sprintf("%03d", i), texts[i], []byte(bins[i])})
	}
	eachWay(t, textSpec(), rows, func(t *testing.T, r *rig) {
		for c, cells := range map[string][]string{"s": texts, "b": bins} {
			for _, at := range []string{cells[0], cells[100], cells[196], cells[197], cells[198], cells[199], prefix, prefix + "\xff", prefix + "199" + "\x00", strings.Repeat("\xff", 64), ""} {
				if c == "s" && !strings.HasPrefix(at, prefix) {
					continue
				}
				for op, pass := range map[string]func(x string) bool{"=": func(x string) bool { return x == at }, ">": func(x string) bool { return x > at },
					">=": func(x string) bool { return x >= at }, "<": func(x string) bool { return x < at }} {
					want := 0
					for _, x := range cells {
						if pass(x) {
							want++
						}
					}
					where := map[string]minikudu.Expr{"=": predicate.Eq(c, []byte(at)), ">": predicate.Gt(c, []byte(at)), ">=": predicate.Ge(c, []byte(at)), "<": predicate.Lt(c, []byte(at))}[op]
					bothPrunings(minikudu.Query{Where: where}, func(q minikudu.Query) {
						if n := count(t, r.tab, q); n != want {
							t.Errorf("%s %s %q: %d rows, want %d (no pruning %v)", c, op, at, n, want, q.NoPrune)
						}
					})
				}
			}
		}
		agg, err := r.tab.Aggregate(ctx, minikudu.Query{}, nil, minikudu.Min("s"), minikudu.Max("s"), minikudu.Max("b"))
		if err != nil || show(agg.Row(0)) != show([]any{texts[0], texts[199], []byte(bins[198])}) {
			t.Errorf("aggregates %q, %v", agg.Row(0), err)
		}
	})
}

func TestC14KeysWithZeroBytes(t *testing.T) {
	spec := table([]string{"a", "b"}, col("a", schema.String), col("b", schema.String), col("n", schema.Int32))
	parts := []string{"foo", "foo\x00", "foo\x00bar", "\x00", "\x00\x00", "\x00\x01", "\x00\x02", ""}
	var rows, sorted [][]any
	for _, a := range parts {
		for _, b := range parts {
			rows = append(rows, []any{a, b, int64(len(rows))})
		}
	}
	sorted = append(sorted, rows...)
	slices.SortFunc(sorted, func(x, y []any) int {
		if c := strings.Compare(x[0].(string), y[0].(string)); c != 0 {
			return c
		}
		return strings.Compare(x[1].(string), y[1].(string))
	})
	eachWay(t, spec, rows, func(t *testing.T, r *rig) {
		sameList(t, "key order", r.rows(minikudu.Query{Order: minikudu.KeyOrder}), sorted)
		var b minikudu.WriteBatch
		for _, row := range rows {
			got, err := r.tab.Get(ctx, row[0], row[1])
			if err != nil || show(got.Values()) != show(row) {
				t.Fatalf("get of %q: %v, %v", row[:2], got, err)
			}
			where := predicate.And(predicate.Eq("a", row[0]), predicate.Eq("b", row[1]))
			sameList(t, "scan of one key", r.rows(minikudu.Query{Where: where}), [][]any{row})
			b.Insert(r.tab, row...)
		}
		if res, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrAlreadyPresent) || res.Rejected != 64 || res.Inserted != 0 {
			t.Fatalf("inserted again: %+v, %v", res, err)
		}
	})
}

func TestC16EveryWritePathIsFound(t *testing.T) {
	n := 2500 // by each path
	if testing.Short() {
		n = 300
	}
	long := strings.Repeat("k", 100_000)
	r := newRig(t, minikudu.Options{Limits: schema.Limits{MaxCellBytes: 200_000, MaxKeyBytes: 200_000}}, textSpec())
	type text struct {
		K string `minikudu:"k"`
	}
	key := func(path string, i int) string { return fmt.Sprintf("%s %d", path, i) }
	paths := []string{"row", "map", "struct", "columns", "ignore"}
	fill := func(b *minikudu.WriteBatch) {
		v := vector.New(schema.KindBytes, n)
		for i := range n {
			b.Insert(r.tab, key("row", i), nil, nil)
			b.InsertMap(r.tab, map[string]any{"k": key("map", i)})
			if err := minikudu.InsertStructs(b, r.tab, text{key("struct", i)}); err != nil {
				t.Fatal(err)
			}
			_ = v.AppendBytes([]byte(key("columns", i)))
			b.InsertIgnore(r.tab, key("ignore", i), nil, nil)
		}
		if err := b.InsertColumns(r.tab, []string{"k"}, []*vector.Vector{v}); err != nil {
			t.Fatal(err)
		}
		b.Insert(r.tab, "", nil, nil)
		b.Insert(r.tab, long, nil, nil)
	}
	var b minikudu.WriteBatch
	fill(&b)
	if res := r.commit(&b); res.Inserted != int64(5*n+2) {
		t.Fatalf("result %+v", *res)
	}
	for range 3 {
		b.Reset()
		fill(&b)
		res, err := r.db.Commit(ctx, &b, nil)
		if !errors.Is(err, minikudu.ErrAlreadyPresent) || res == nil || res.Inserted != 0 || res.Ignored != int64(n) || res.Rejected != int64(4*n+2) {
			t.Fatalf("a second insert: %+v, %v", res, err)
		}
		for i := 0; i < n; i += 7 {
			for _, p := range paths {
				if _, err := r.tab.Get(ctx, key(p, i)); err != nil {
					t.Fatalf("get of %q: %v", key(p, i), err)
				}
			}
		}
		for _, k := range []string{"", long} {
			if _, err := r.tab.Get(ctx, k); err != nil {
				t.Fatalf("get of a key of %d bytes: %v", len(k), err)
			}
		}
		if _, err := r.tab.Get(ctx, long+"k"); !errors.Is(err, minikudu.ErrNotFound) {
			t.Fatal(err)
		}
		r.flush()
		r.restart()
	}
}

// encoded returns a column of each encoding that the type supports.
func encodedColumns(types ...schema.Type) (out []minikudu.Column) {
	for _, typ := range types {
		for _, e := range []schema.Encoding{schema.EncodingPlain, schema.EncodingPrefix, schema.EncodingRLE, schema.EncodingDict, schema.EncodingBitShuffle} {
			if e.Supports(typ.Kind()) {
				c := null(col(fmt.Sprintf("%s_%s", typ, e), typ))
				c.Encoding, c.BlockSize = e, 2048
				out = append(out, c)
			}
		}
	}
	return out
}

func TestC17WideJumps(t *testing.T) {
	columns := encodedColumns(schema.Int64, schema.Int32, schema.Int16, schema.Int8, schema.UnixtimeMicros)
	spec := table([]string{"id"}, append([]minikudu.Column{col("id", schema.Int64)}, columns...)...)
	patterns := [][]func(lo, hi int64) int64{
		{func(lo, hi int64) int64 { return lo }, func(lo, hi int64) int64 { return hi }, func(lo, hi int64) int64 { return lo }, func(lo, hi int64) int64 { return 0 },
			func(lo, hi int64) int64 { return hi }, func(lo, hi int64) int64 { return -1 }, func(lo, hi int64) int64 { return 1 }, func(lo, hi int64) int64 { return lo + 1 }},
		{func(lo, hi int64) int64 { return lo }, func(lo, hi int64) int64 { return hi }},
		{func(lo, hi int64) int64 { return 1 }, func(lo, hi int64) int64 { return 0 }, func(lo, hi int64) int64 { return 2 }},
	}
	var rows [][]any
	for i := range 3000 {
		p := patterns[i/1000]
		row := []any{int64(i)}
		for _, c := range columns {
			bits := 8 * c.Kind().Width()
			v := p[i%len(p)](-1<<(bits-1), 1<<(bits-1)-1)
			if c.Type == schema.UnixtimeMicros {
				row = append(row, time.UnixMicro(v).UTC())
			} else {
				row = append(row, v)
			}
		}
		rows = append(rows, row)
	}
	eachWay(t, spec, rows, func(t *testing.T, r *rig) {
		sameList(t, "rows", r.rows(minikudu.Query{Order: minikudu.KeyOrder}), rows)
	})
}

func TestC18ConstantColumns(t *testing.T) {
	types := []schema.Type{schema.Bool, schema.Int8, schema.Int64, schema.Float, schema.Double, schema.String, schema.Binary, schema.Date}
	columns := encodedColumns(types...)
	spec := table([]string{"id"}, append([]minikudu.Column{col("id", schema.Int64)}, columns...)...)
	constant := func(c *minikudu.Column) any {
		switch c.Type {
		case schema.Bool:
			return true
		case schema.Float:
			return float32(math.NaN())
		case schema.Double:
			return math.NaN()
		case schema.String:
			return "constant"
		case schema.Binary:
			return []byte("")
		case schema.Date:
			return time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
		}
		return int64(5)
	}
	for _, n := range []int{1, 2, 3000} {
		for _, nulls := range []bool{false, true} {
			var rows [][]any
			for i := range n {
				row := []any{int64(i)}
				for k := range columns {
					v := constant(&columns[k])
					if nulls && i%3 == 1 {
						v = nil
					}
					row = append(row, v)
				}
				rows = append(rows, row)
			}
			eachWay(t, spec, rows, func(t *testing.T, r *rig) {
				sameList(t, fmt.Sprintf("%d rows", n), r.rows(minikudu.Query{Order: minikudu.KeyOrder}), rows)
			})
		}
	}
}

func TestC21TinyAndCutRowsetFiles(t *testing.T) {
	for _, size := range []int64{0, 8, 40, 200} {
		mem := vfs.NewMem()
		r := newRig(t, minikudu.Options{FS: mem}, kvSpec())
		r.insert([]any{1, 1}, []any{2, 2})
		r.flush()
		mustClose(t, r.db)
		names, err := mem.List("db/data")
		if err != nil || len(names) != 1 {
			t.Fatalf("%v, %v", names, err)
		}
		f, err := mem.OpenWrite("db/data/"+names[0], vfs.KindRowSet)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			t.Fatal(err)
		}
		r.db, err = minikudu.Open("db", &r.opts)
		if err == nil {
			var tab *minikudu.Table
			if tab, err = r.db.Table("t"); err != nil {
				t.Fatal(err)
			}
			_, err = tab.Get(ctx, 1)
			if !errors.Is(err, minikudu.ErrCorruption) {
				t.Errorf("get in a file cut to %d bytes: %v", size, err)
			}
			for _, err = range tab.Scan(ctx, minikudu.Query{}) {
			}
			if report, err := r.db.Verify(ctx); err != nil || len(report.Damage) != 1 {
				t.Errorf("verify of a file cut to %d bytes: %+v, %v", size, report, err)
			}
			mustClose(t, r.db)
		}
		var damage *vfs.CorruptionError
		if !errors.As(err, &damage) || damage.Path == "" {
			t.Errorf("a file cut to %d bytes: %v", size, err)
		}
	}
}

func TestC24TimesRoundTrip(t *testing.T) {
	spec := table([]string{"at"}, col("at", schema.UnixtimeMicros), col("day", schema.Date), null(col("again", schema.UnixtimeMicros)))
	zone := time.FixedZone("+05:30", 5*3600+1800)
	summer := time.FixedZone("summer", 7200)
	var instants []time.Time
	for _, s := range []string{"0001-01-01T00:00:00Z", "1677-09-21T00:12:43Z", "1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.999998Z", "1970-01-01T00:00:00Z",
		"2262-04-12T00:00:00Z", "2025-03-30T02:30:00Z", "9999-12-31T23:59:59.999999Z"} {
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		instants = append(instants, at)
	}
	instants = append(instants, time.Now(), time.Date(2025, 3, 30, 2, 59, 59, 999, summer))
	var rows, want [][]any
	for i, at := range instants {
		floor := at.UTC().Truncate(time.Microsecond) // counts from year 1, so it floors
		day := floor.Truncate(24 * time.Hour)
		if i%2 == 0 {
			at = at.In(zone)
		}
		rows = append(rows, []any{at, at, at})
		want = append(want, []any{floor, day, floor})
	}
	eachWay(t, spec, rows, func(t *testing.T, r *rig) {
		got := r.rows(minikudu.Query{})
		if len(got) != len(want) {
			t.Fatalf("%d rows, want %d", len(got), len(want))
		}
		for i, at := range instants {
			row, err := r.tab.Get(ctx, at)
			if err != nil {
				t.Fatalf("get at %v: %v", at, err)
			}
			for k, name := range []string{"at", "day", "again"} {
				if v := row.Value(name).(time.Time); !v.Equal(want[i][k].(time.Time)) {
					t.Errorf("%s of %v is %v, want %v", name, at, v, want[i][k])
				}
			}
			if n := count(t, r.tab, minikudu.Query{Where: predicate.Eq("at", at)}); n != 1 {
				t.Errorf("%d rows at %v", n, at)
			}
		}
	})
	r := newRig(t, minikudu.Options{}, spec)
	var b minikudu.WriteBatch
	b.Insert(r.tab, 0, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), nil)
	b.Insert(r.tab, time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC), 0, nil)
	_, err := r.db.Commit(ctx, &b, nil)
	var rejected *minikudu.RejectedError
	if !errors.As(err, &rejected) || len(rejected.Rows) != 2 || !strings.Contains(rejected.Rows[0].Error(), `"day"`) || !strings.Contains(rejected.Rows[1].Error(), `"at"`) {
		t.Errorf("instants out of range: %v", err)
	}
}

func TestC52InvalidTables(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	before := r.files()
	k := col("k", schema.Int32)
	many := []minikudu.Column{k}
	for i := range 10000 {
		many = append(many, col(fmt.Sprint("c", i), schema.Int32))
	}
	encoded := col("v", schema.Double)
	encoded.Encoding = schema.EncodingDict
	huge := col("v", schema.Int32)
	huge.BlockSize = 1 << 30
	wrongDefault := col("v", schema.Int32)
	wrongDefault.Default = schema.StringValue("x")
	for name, c := range map[string]struct {
		spec minikudu.TableSpec
		says string
	}{
		"no columns":     {table([]string{"k"}), "column"},
		"no key":         {table(nil, k), "key"},
		"unknown key":    {table([]string{"x"}, k), `"x"`},
		"key twice":      {table([]string{"k", "k"}, k), `"k"`},
		"duplicates":     {table([]string{"k"}, k, k), `"k"`},
		"nullable key":   {table([]string{"k"}, null(k)), `"k"`},
		"float key":      {table([]string{"k"}, col("k", schema.Float)), `"k"`},
		"bool key":       {table([]string{"k"}, col("k", schema.Bool)), `"k"`},
		"empty name":     {table([]string{"k"}, k, col("", schema.Int8)), "empty"},
		"long name":      {table([]string{"k"}, k, col(strings.Repeat("x", 1<<20), schema.Int8)), "256"},
		"NUL in name":    {table([]string{"k"}, k, col("a\x00b", schema.Int8)), "NUL"},
		"not UTF-8":      {table([]string{"k"}, k, col("a\xff", schema.Int8)), "UTF-8"},
		"10000 columns":  {table([]string{"k"}, many...), "300"},
		"unknown type":   {table([]string{"k"}, k, col("v", 99)), `"v"`},
		"varchar":        {table([]string{"k"}, k, col("v", schema.Varchar)), `"v"`},
		"decimal":        {table([]string{"k"}, k, col("v", schema.Decimal32)), `"v"`},
		"encoding":       {table([]string{"k"}, k, encoded), `"v"`},
		"page size":      {table([]string{"k"}, k, huge), `"v"`},
		"default":        {table([]string{"k"}, k, wrongDefault), `"v"`},
		"reserved name":  {table([]string{"k"}, k, col(schema.AutoIncrementName, schema.Int64)), schema.AutoIncrementName},
		"reserved, auto": {minikudu.TableSpec{Key: []string{"k"}, Columns: []minikudu.Column{k, col(schema.AutoIncrementName, schema.Int64)}, NonUnique: true}, schema.AutoIncrementName},
	} {
		_, err := r.db.CreateTable(ctx, "bad", c.spec)
		var s *schema.SchemaError
		if !errors.As(err, &s) || !errors.Is(err, minikudu.ErrInvalidArgument) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", 1<<20), "a\x00b", "\xff"} {
		if _, err := r.db.CreateTable(ctx, name, kvSpec()); !errors.Is(err, minikudu.ErrInvalidArgument) || len(err.Error()) > 500 {
			t.Errorf("a table named %q: %v", clip(name), err)
		}
	}
	if _, err := r.db.CreateTable(ctx, "t", kvSpec()); !errors.Is(err, minikudu.ErrAlreadyPresent) {
		t.Errorf("a second table of the name: %v", err)
	}
	r.restart()
	if len(r.db.Tables()) != 1 || len(r.files()) > len(before)+1 {
		t.Errorf("tables %v, files %v", r.db.Tables(), r.files())
	}
	for _, name := range []string{"T", "a/b", "..", "t ", "Tabelle Ä", "x\ny"} { // names are only names
		tab, err := r.db.CreateTable(ctx, name, table([]string{"k"}, k, col("K", schema.Int8)))
		if err != nil || tab.Name() != name {
			t.Errorf("a table named %q: %v", name, err)
		}
	}
}

func TestC94BatchTooLarge(t *testing.T) {
	r := newRig(t, minikudu.Options{MaxBatchBytes: 100_000}, kvSpec())
	var b minikudu.WriteBatch
	for i := range 100_000 {
		b.Insert(r.tab, i, i)
	}
	before := r.db.Metrics()
	_, err := r.db.Commit(ctx, &b, nil)
	if !errors.Is(err, minikudu.ErrTooLarge) || !strings.Contains(err.Error(), "100000") || !strings.Contains(err.Error(), "MaxBatchBytes") {
		t.Fatalf("error %v", err)
	}
	if after := r.db.Metrics(); after.Commits != before.Commits || after.LogGroups != before.LogGroups || r.tab.Rows() != 0 {
		t.Fatalf("something was done: %+v", after)
	}
	b.Reset()
	for i := 0; i < 100_000; { // the same rows, cut by size
		b.Insert(r.tab, i, i)
		if i++; b.Size() > 90_000 || i == 100_000 {
			r.commit(&b)
			b.Reset()
		}
	}
	if r.tab.Rows() != 100_000 {
		t.Fatalf("%d rows", r.tab.Rows())
	}
}

func TestC99ErrorsNameRowColumnAndTypes(t *testing.T) {
	spec := table([]string{"k"}, col("k", schema.Int32), col("small", schema.Int8), null(minikudu.Column{Name: "short", Type: schema.Varchar, Length: 3}), null(col("d", schema.Double)))
	r := newRig(t, minikudu.Options{}, spec)
	for name, c := range map[string]struct {
		row  []any
		says []string
	}{
		"wrong type":    {[]any{1, "x", nil, nil}, []string{`"small"`, "int8", "string"}},
		"null":          {[]any{1, nil, nil, nil}, []string{`"small"`, "int8"}},
		"overflow":      {[]any{1, 300, nil, nil}, []string{`"small"`, "int8", "300"}},
		"NaN into key":  {[]any{math.NaN(), 1, nil, nil}, []string{`"k"`, "int32", "float64"}},
		"too long":      {[]any{1, 1, "four", nil}, []string{`"short"`, "varchar(3)", "four"}},
		"long value":    {[]any{1, 1, strings.Repeat("y", 5000), nil}, []string{`"short"`}},
		"null key":      {[]any{nil, 1, nil, nil}, []string{`"k"`}},
		"missing value": {[]any{1, 1, nil}, []string{"3 values for 4 columns"}},
		"extra value":   {[]any{1, 1, nil, nil, 1}, []string{"5 values for 4 columns"}},
	} {
		var b minikudu.WriteBatch
		b.Insert(r.tab, len(name)+1000, 1, nil, nil)
		b.Insert(r.tab, c.row...)
		_, err := r.db.Commit(ctx, &b, &minikudu.CommitOptions{AllOrNothing: true})
		if err == nil || len(err.Error()) > 300 || !strings.Contains(err.Error(), "row 1") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %q is not in %v", name, s, err)
			}
		}
	}
	if r.tab.Rows() != 0 {
		t.Fatalf("%d rows of batches that must apply nothing", r.tab.Rows())
	}
	keys, small := make([]int32, 10000), make([]int8, 10000)
	valid := vector.NewBitmap(10000)
	for i := range keys {
		keys[i] = int32(i)
		if i != 5001 {
			valid.Set(i)
		}
	}
	var b minikudu.WriteBatch
	b.Insert(r.tab, -1, 1, nil, nil)
	if err := b.InsertColumns(r.tab, []string{"k", "small"}, []*vector.Vector{vector.FromFixed(schema.KindInt32, keys, nil), vector.FromFixed(schema.KindInt8, small, valid)}); err != nil {
		t.Fatal(err)
	}
	res, err := r.db.Commit(ctx, &b, nil)
	var rejected *minikudu.RejectedError
	if !errors.As(err, &rejected) || !rejected.Applied || len(rejected.Rows) != 1 || rejected.Rows[0].Row != 5002 || res.Inserted != 10000 {
		t.Fatalf("%+v, %v", res, err)
	}
	if !strings.Contains(err.Error(), "row 5002") || !strings.Contains(err.Error(), `"small"`) {
		t.Errorf("error %v", err)
	}
	if _, err := r.tab.Get(ctx, 5001); !errors.Is(err, minikudu.ErrNotFound) {
		t.Errorf("the bad row: %v", err)
	}
	if _, err := r.tab.Get(ctx, 5002); err != nil {
		t.Errorf("the row after it: %v", err)
	}
}
