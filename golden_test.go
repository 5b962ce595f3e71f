package minikudu_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
)

// updateGolden is the environment variable that makes TestGoldenStoreOpens write the
// golden store of the present format before it reads all of them. A store of a
// released format is never written again.
const updateGolden = "MINIKUDU_UPDATE_GOLDEN"

// goldenFormat is the format that this program writes.
const goldenFormat = "testdata/format/1"

// TestGoldenStoreOpens opens a copy of the store of every format there has been,
// verifies it, and compares its answers with the text beside it.
func TestGoldenStoreOpens(t *testing.T) {
	if os.Getenv(updateGolden) != "" {
		writeGolden(t, goldenFormat)
	}
	formats, err := filepath.Glob("testdata/format/*")
	if err != nil || len(formats) == 0 {
		t.Fatalf("no golden stores: %v", err)
	}
	for _, dir := range formats {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			testkit.CheckLeaks(t)
			want, err := os.ReadFile(filepath.Join(dir, "rows.txt"))
			if err != nil {
				t.Fatal(err)
			}
			store := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(store, os.DirFS(filepath.Join(dir, "store"))); err != nil {
				t.Fatal(err)
			}
			for _, o := range []minikudu.Options{{ReadOnly: true}, {}} { // the second writes
				db := mustOpen(t, store, &o)
				checkGolden(t, db, string(want))
				mustClose(t, db)
			}
			db := mustOpen(t, store, nil)
			defer mustClose(t, db)
			flushAll(t, db)
			checkGolden(t, db, string(want))
		})
	}
}

func flushAll(t *testing.T, db *minikudu.DB) {
	t.Helper()
	for _, tab := range db.Tables() {
		if err := tab.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// checkGolden compares everything that the store can be asked with the rows it has.
func checkGolden(t *testing.T, db *minikudu.DB, want string) {
	t.Helper()
	if r, err := db.Verify(ctx); err != nil || len(r.Damage) > 0 {
		t.Fatalf("verify: %+v, %v", r, err)
	}
	var got strings.Builder
	for _, tab := range db.Tables() {
		rows := allRows(t, tab, minikudu.Query{Order: minikudu.KeyOrder})
		printRows(&got, tab.Name(), tab.Schema().Columns(), rows)
		checkReads(t, tab, rows)
	}
	if got.String() != want {
		t.Fatalf("the rows differ from rows.txt:\n%s", firstDifference(got.String(), want))
	}
}

// checkReads compares the other ways to read a table with its rows in key order.
func checkReads(t *testing.T, tab *minikudu.Table, rows [][]schema.Value) {
	t.Helper()
	key := tab.Schema().NumKey()
	reverse := allRows(t, tab, minikudu.Query{Order: minikudu.KeyReverse})
	slices.Reverse(reverse)
	unordered := allRows(t, tab, minikudu.Query{})
	slices.SortFunc(unordered, func(a, b []schema.Value) int {
		return slices.CompareFunc(a[:key], b[:key], schema.Value.Compare)
	})
	if !slices.EqualFunc(rows, reverse, slices.Equal) || !slices.EqualFunc(rows, unordered, slices.Equal) {
		t.Fatalf("table %s: the orders of a scan give different rows", tab.Name())
	}
	for _, want := range rows {
		var args []any
		for _, v := range want[:key] {
			args = append(args, v)
		}
		r, err := tab.Get(ctx, args...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if r.Cell(i) != want[i] {
				t.Fatalf("get from %s: column %d differs", tab.Name(), i)
			}
		}
	}
	for i, c := range tab.Schema().Columns() {
		checkColumn(t, tab, i, &c, rows)
	}
}

// checkColumn compares aggregates and an equality filter on a column with the rows.
func checkColumn(t *testing.T, tab *minikudu.Table, i int, c *schema.Column, rows [][]schema.Value) {
	t.Helper()
	var lo, hi schema.Value
	var cells, equal int64
	probe := rows[len(rows)/2][i]
	for _, r := range rows {
		v := r[i]
		if v.IsNull() {
			continue
		}
		if cells++; v.IsNaN() {
			continue
		}
		if lo.IsNull() || v.Compare(lo) < 0 {
			lo = v
		}
		if hi.IsNull() || v.Compare(hi) > 0 {
			hi = v
		}
		if !probe.IsNull() && v.Compare(probe) == 0 {
			equal++
		}
	}
	b, err := tab.Aggregate(ctx, minikudu.Query{}, nil, minikudu.Count(), minikudu.CountOf(c.Name), minikudu.Min(c.Name), minikudu.Max(c.Name))
	if err != nil {
		t.Fatal(err)
	}
	if b.Column(0).Int64s()[0] != int64(len(rows)) || b.Column(1).Int64s()[0] != cells ||
		b.Column(2).Value(0).Compare(lo) != 0 || b.Column(3).Value(0).Compare(hi) != 0 {
		t.Fatalf("aggregates of column %s of %s: %v", c.Name, tab.Name(), b.Row(0))
	}
	if n, err := tab.Count(ctx, predicate.Eq(c.Name, probe)); err != nil || n != equal {
		t.Fatalf("%d rows of %s equal in column %s, want %d: %v", n, tab.Name(), c.Name, equal, err)
	}
}

// allRows returns the rows of a scan, with all columns.
func allRows(t *testing.T, tab *minikudu.Table, q minikudu.Query) (rows [][]schema.Value) {
	t.Helper()
	q.Columns = tab.Schema().Names()
	for b, err := range tab.Scan(ctx, q) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			row := make([]schema.Value, b.NumColumns())
			for k := range row {
				row[k] = b.Column(k).Value(i)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// printRows writes a table as text: a line of its name and columns, a line a row.
func printRows(w *strings.Builder, name string, columns []schema.Column, rows [][]schema.Value) {
	fmt.Fprintf(w, "table %s\n", name)
	for i := range columns {
		fmt.Fprintf(w, "column %s\n", columns[i].String())
	}
	for _, r := range rows {
		for i, v := range r {
			if i > 0 {
				w.WriteByte(' ')
			}
			w.WriteString(cellText(&columns[i], v))
		}
		w.WriteByte('\n')
	}
}

func cellText(c *schema.Column, v schema.Value) string {
	switch {
	case v.IsNull():
		return "NULL"
	case c.Kind() == schema.KindBytes:
		return fmt.Sprintf("%+q", v.Str())
	}
	return string(c.Format(nil, v))
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d: got  %s\n         want %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// goldenTable is a table of the golden store: its rows are put in three commits, of
// which the first two are flushed and the third stays in the log.
type goldenTable struct {
	name  string
	spec  minikudu.TableSpec
	rows  int
	order int // row i of the order of insertion is row i*order mod rows in key order
}

func goldenTables() []goldenTable {
	return []goldenTable{
		{"cpu", minikudu.TableSpec{Key: []string{"host", "ts"}, Columns: parseColumns(
			"host string, ts unixtime_micros, load double compression zlib encoding plain page 512, n int32 encoding rle, " +
				"small int64 compression snappy encoding plain, path string encoding prefix compression zstd page 512, " +
				"state string null encoding dict compression lz4, raw binary null encoding plain default '0x6e6f'")}, 600, 7},
		{"events", minikudu.TableSpec{NonUnique: true, Key: []string{"kind"}, Columns: parseColumns("kind int16, v int64 null")}, 30, 1},
		{"types", minikudu.TableSpec{Key: []string{"k"}, Columns: typeColumns()}, 120, 11},
	}
}

func parseColumns(text string) []schema.Column {
	columns, err := schema.ParseColumns(text)
	if err != nil {
		panic(err)
	}
	return columns
}

// typeColumns is an int64 key and two columns of every type, one that may be null.
func typeColumns() []schema.Column {
	text := "k int64"
	for i, typ := range []string{"int8", "int16", "int32", "int64", "string", "bool", "float", "double", "binary", "unixtime_micros",
		"decimal(9,2)", "decimal(18,4)", "decimal(38,10)", "varchar(20)", "date"} {
		text += fmt.Sprintf(", a%d %s, b%d %s null", i, typ, i, typ)
	}
	return parseColumns(text)
}

// goldenRow returns row i in key order, without the generated id.
func (g *goldenTable) goldenRow(i int) []schema.Value {
	out := make([]schema.Value, len(g.spec.Columns))
	for k := range out {
		c := &g.spec.Columns[k]
		switch {
		case c.Name == "host":
			out[k] = schema.StringValue(fmt.Sprintf("host-%02d", i/60))
		case c.Name == "ts":
			out[k] = schema.IntValue(schema.KindInt64, 1_700_000_000_000_000+int64(i%60)*1_000_000)
		case c.Name == "kind":
			out[k] = schema.IntValue(schema.KindInt16, int64(i/5))
		case c.Name == "k":
			out[k] = schema.IntValue(schema.KindInt64, int64(i-10)<<40)
		case c.Nullable && i%5 == 0:
			out[k] = schema.Null
		default:
			out[k] = goldenValue(c, i+k)
		}
	}
	return out
}

// goldenValue returns a value of the column: now and then an extreme one.
func goldenValue(c *schema.Column, i int) schema.Value {
	switch k := c.Kind(); k {
	case schema.KindBool:
		return schema.BoolValue(i%3 == 0)
	case schema.KindFloat32:
		return schema.Float32Value(float32(goldenFloat(i)))
	case schema.KindFloat64:
		return schema.Float64Value(goldenFloat(i))
	case schema.KindBytes:
		texts := []string{"", "a", "ab", "Zürich", "north/station/" + fmt.Sprint(i%10), "x\x00y"}
		return schema.StringValue(texts[i%len(texts)])
	case schema.KindInt128:
		return schema.Int128Value([]schema.Int128{schema.Int128From(int64(i)), {Lo: 687399551400673279, Hi: 5421010862427522170},
			{Lo: 17759344522308878337, Hi: -5421010862427522171}}[i%3])
	default:
		hi := int64(1)<<(8*k.Width()-1) - 1
		lo := -hi - 1
		switch {
		case c.Type.IsDecimal():
			hi = int64(math.Pow10(int(c.Precision))) - 1
			lo = -hi
		case c.Type == schema.Date:
			lo, hi = schema.MinDate, schema.MaxDate
		}
		return schema.IntValue(k, []int64{lo, hi, 0, int64(i % 100), int64(i%100) - 50}[i%5])
	}
}

func goldenFloat(i int) float64 {
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat32, math.SmallestNonzeroFloat32}
	if i%10 < len(special) {
		return special[i%10]
	}
	return float64(i) / 8
}

// writeGolden writes the golden store and the text of its rows. The text comes from
// the rows that were put in, not from the store.
func writeGolden(t *testing.T, dir string) {
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "store")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	db := mustOpen(t, store, &minikudu.Options{LogBytes: 64 << 10, RowSetBytes: 64 << 10})
	var text strings.Builder
	tables := goldenTables()
	for i := range tables {
		g := &tables[i]
		tab, err := db.CreateTable(ctx, g.name, g.spec)
		if err != nil {
			t.Fatal(err)
		}
		printRows(&text, g.name, tab.Schema().Columns(), g.sorted(tab.Schema()))
	}
	dropped, err := db.CreateTable(ctx, "dropped", minikudu.TableSpec{Key: []string{"k"}, Columns: parseColumns("k int32")})
	if err != nil {
		t.Fatal(err)
	}
	for part := range 3 {
		var b minikudu.WriteBatch
		for i := range tables {
			tables[i].insert(t, db, &b, part)
		}
		b.Insert(dropped, part)
		if _, err := db.Commit(ctx, &b, nil); err != nil {
			t.Fatal(err)
		}
		if part < 2 {
			flushAll(t, db)
		}
	}
	if err := db.DropTable(ctx, "dropped"); err != nil {
		t.Fatal(err)
	}
	mustClose(t, db)
	err = os.WriteFile(filepath.Join(dir, "rows.txt"), []byte(text.String()), 0o644)
	if err = errors.Join(err, os.Truncate(filepath.Join(store, "LOCK"), 0)); err != nil {
		t.Fatal(err)
	}
}

// insert adds a third of the table's rows to the batch.
func (g *goldenTable) insert(t *testing.T, db *minikudu.DB, b *minikudu.WriteBatch, part int) {
	tab, err := db.Table(g.name)
	if err != nil {
		t.Fatal(err)
	}
	for i := part * g.rows / 3; i < (part+1)*g.rows/3; i++ {
		row := g.goldenRow(i * g.order % g.rows)
		args := make([]any, 0, len(row))
		for k := range tab.Schema().Len() {
			if k == tab.Schema().AutoIncrement() {
				continue
			}
			name := tab.Schema().Column(k).Name
			args = append(args, row[slices.IndexFunc(g.spec.Columns, func(c schema.Column) bool { return c.Name == name })])
		}
		b.Insert(tab, args...)
	}
}

// sorted returns all rows in key order, with generated ids.
func (g *goldenTable) sorted(s *schema.Schema) (rows [][]schema.Value) {
	for i := range g.rows {
		row := g.goldenRow(i)
		if auto := s.AutoIncrement(); auto >= 0 { // rows of such a table are put in key order
			row = slices.Insert(row, auto, schema.IntValue(schema.KindInt64, int64(i+1)))
		}
		rows = append(rows, row)
	}
	return rows
}
