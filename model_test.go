package minikudu_test

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
	"pgregory.net/rapid"
)

// modelOps is the number of operations of one run of the model test, raised by
// MINIKUDU_MODEL_OPS.
func modelOps() int {
	if n, err := strconv.Atoi(os.Getenv("MINIKUDU_MODEL_OPS")); err == nil {
		return n
	}
	if testing.Short() {
		return 20
	}
	return 60
}

// modelSpec is a table and the values that its columns take.
type modelSpec struct {
	spec    minikudu.TableSpec
	numKey  int
	names   []string
	domains [][]any
	groups  [][]string // of aggregates
	sum     string
	max     string
}

var modelSpecs = map[string]*modelSpec{
	"a": {
		spec: table([]string{"h", "t"}, col("h", schema.String), col("t", schema.Int32), null(col("v", schema.Double)), null(col("s", schema.String)), col("n", schema.Int64)),
		domains: [][]any{{"", "a", "a\x00", "a\x00b", "b", "\xff"}, {int64(-2), int64(-1), int64(0), int64(1), int64(2), int64(3), int64(math.MaxInt32)},
			{nil, 0.0, 1.5, -3.0, math.NaN(), math.Inf(1)}, {nil, "", "x", "xy", "y", strings.Repeat("long", 20)}, {int64(-1), int64(0), int64(5), int64(1) << 40}},
		numKey: 2, names: []string{"h", "t", "v", "s", "n"}, groups: [][]string{nil, {"s"}, {"h", "s"}, {"v"}}, sum: "n", max: "v",
	},
	"b": {
		spec: table([]string{"k"}, col("k", schema.Int64), minikudu.Column{Name: "x", Type: schema.Int32, Nullable: true, Default: schema.IntValue(schema.KindInt32, 7)},
			minikudu.Column{Name: "u", Type: schema.Varchar, Length: 5}, null(col("flag", schema.Bool))),
		domains: [][]any{nil, {nil, int64(-5), int64(7), int64(100)}, {"", "u", "uu", "uuuuu"}, {nil, true, false}},
		numKey:  1, names: []string{"k", "x", "u", "flag"}, groups: [][]string{nil, {"flag"}, {"x", "u"}}, sum: "x", max: "u",
	},
}

func init() {
	for k := range 40 {
		modelSpecs["b"].domains[0] = append(modelSpecs["b"].domains[0], int64(k*k-100))
	}
}

// modelTable is a table of the store beside the rows it must hold.
type modelTable struct {
	*modelSpec
	tab  *minikudu.Table
	rows [][]any // in key order
}

func (m *modelTable) compare(a, b []any) int {
	for i := range m.numKey {
		if c := order(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func (m *modelTable) find(row []any) (at int, found bool) {
	return slices.BinarySearchFunc(m.rows, row, m.compare)
}

// named returns the row by column names.
func (m *modelTable) named(row []any) map[string]any {
	out := map[string]any{}
	for i, n := range m.names {
		out[n] = row[i]
	}
	return out
}

// held is a scan in progress and what it must deliver.
type held struct {
	table     *modelTable
	q         minikudu.Query
	next      func() (*minikudu.Batch, error, bool)
	stop      func()
	got, want [][]any
}

// machine drives a store and its model.
type machine struct {
	*rapid.T
	opts   minikudu.Options
	db     *minikudu.DB
	tables map[string]*modelTable
	scans  []*held
	log    []string
}

func (m *machine) fatalf(format string, args ...any) {
	m.Helper()
	m.Fatalf("%s\nafter %s", fmt.Sprintf(format, args...), strings.Join(m.log, "; "))
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{T: t, tables: map[string]*modelTable{}}
		pick := func(name string, sizes ...int64) int64 { return rapid.SampledFrom(sizes).Draw(t, name) }
		m.opts = minikudu.Options{FS: vfs.NewMem(), MemoryBudget: pick("budget", 8<<20, 0), FlushBytes: pick("flush bytes", 1, 2000, 0), RowSetBytes: pick("rowset bytes", 1, 1000, 0),
			MaxOpenFiles: int(pick("open files", 1, 4, 0)), Durability: minikudu.Durability(pick("durability", 0, 2, 3)), LogBytes: pick("log bytes", 1, 0)}
		m.open()
		defer func() { _ = m.db.Close() }()
		m.create("a")
		m.create("b")
		for range modelOps() {
			m.step()
		}
		m.drain()
		m.restart()
		for name := range m.tables {
			m.scan(name)
			m.aggregate(name)
		}
	})
}

// step does one random operation.
func (m *machine) step() {
	name := rapid.SampledFrom([]string{"a", "a", "b"}).Draw(m.T, "table")
	op := rapid.SampledFrom([]string{"write", "write", "write", "flush", "restart", "recreate", "scan", "scan", "get", "aggregate", "hold", "advance"}).Draw(m.T, "op")
	m.log = append(m.log, op+" "+name)
	switch op {
	case "write":
		m.write()
	case "flush":
		if err := m.tables[name].tab.Flush(ctx); err != nil {
			m.fatalf("flush: %v", err)
		}
	case "restart":
		m.restart()
	case "recreate":
		if name == "b" {
			m.recreate(name)
		}
	case "scan":
		m.scan(name)
	case "get":
		m.get(name)
	case "aggregate":
		m.aggregate(name)
	case "hold":
		m.hold(name)
	case "advance":
		for _, h := range m.scans {
			m.advance(h)
		}
	}
}

func (m *machine) open() {
	db, err := minikudu.Open("db", &m.opts)
	if err != nil {
		m.fatalf("open: %v", err)
	}
	m.db = db
	for name, mt := range m.tables {
		if mt.tab, err = db.Table(name); err != nil {
			m.fatalf("%v", err)
		}
	}
}

func (m *machine) restart() {
	m.drain()
	if err := m.db.Close(); err != nil {
		m.fatalf("close: %v", err)
	}
	m.open()
}

func (m *machine) create(name string) {
	tab, err := m.db.CreateTable(ctx, name, modelSpecs[name].spec)
	if err != nil {
		m.fatalf("create: %v", err)
	}
	m.tables[name] = &modelTable{modelSpec: modelSpecs[name], tab: tab}
}

func (m *machine) recreate(name string) {
	if err := m.db.DropTable(ctx, name); err != nil {
		m.fatalf("drop: %v", err)
	}
	m.create(name)
}

// rowOf draws a row.
func (m *machine) rowOf(mt *modelTable) []any {
	row := make([]any, len(mt.names))
	for i, d := range mt.domains {
		row[i] = rapid.SampledFrom(d).Draw(m.T, mt.names[i])
	}
	return row
}

// write commits a batch over both tables.
func (m *machine) write() {
	var b minikudu.WriteBatch
	var res minikudu.Result
	var rejected []int
	after := map[string][][]any{}
	for name, mt := range m.tables {
		after[name] = slices.Clone(mt.rows)
	}
	put := func(name string, row []any, ignore, bad bool) {
		mt := &modelTable{modelSpec: m.tables[name].modelSpec, rows: after[name]}
		at, present := mt.find(row)
		switch {
		case bad || present && !ignore:
			res.Rejected++
			rejected = append(rejected, b.Len()-1)
		case present:
			res.Ignored++
		default:
			res.Inserted++
			after[name] = slices.Insert(after[name], at, row)
		}
	}
	for range rapid.IntRange(1, 12).Draw(m.T, "rows") {
		name := rapid.SampledFrom([]string{"a", "b"}).Draw(m.T, "into")
		mt := m.tables[name]
		row := m.rowOf(mt)
		switch rapid.IntRange(0, 9).Draw(m.T, "path") {
		case 0:
			bad := slices.Clone(row)
			bad[len(bad)-1] = []int{1}
			b.Insert(mt.tab, bad...)
			put(name, row, false, true)
		case 1, 2:
			b.InsertIgnore(mt.tab, row...)
			put(name, row, true, false)
		case 3:
			named := mt.named(row)
			if name == "b" {
				delete(named, "x")
				row[1] = int64(7)
			}
			b.InsertMap(mt.tab, named)
			put(name, row, false, false)
		case 4:
			rows := [][]any{row, m.rowOf(mt), m.rowOf(mt)}
			m.insertColumns(&b, mt, rows)
			for i, row := range rows { // positions are those of the whole call
				n := len(rejected)
				put(name, row, false, false)
				if len(rejected) > n {
					rejected[n] = b.Len() - len(rows) + i
				}
			}
		default:
			b.Insert(mt.tab, row...)
			put(name, row, false, false)
		}
	}
	all := rapid.IntRange(0, 4).Draw(m.T, "all or nothing") == 0
	got, err := m.db.Commit(ctx, &b, &minikudu.CommitOptions{AllOrNothing: all})
	if all && len(rejected) > 0 {
		res = minikudu.Result{Rejected: res.Rejected}
		after = nil
	}
	m.checkCommit(got, err, res, rejected)
	for name, rows := range after {
		m.tables[name].rows = rows
	}
}

func (m *machine) checkCommit(got *minikudu.Result, err error, want minikudu.Result, rejected []int) {
	var r *minikudu.RejectedError
	if errors.As(err, &r) != (len(rejected) > 0) || got == nil {
		m.fatalf("commit: %+v, %v, want %d rejected", got, err, len(rejected))
	}
	want.Timestamp = got.Timestamp
	if *got != want {
		m.fatalf("commit: %+v, want %+v", *got, want)
	}
	if r != nil {
		for i := range r.Rows {
			if r.Rows[i].Row != rejected[i] {
				m.fatalf("row %d rejected, want %v", r.Rows[i].Row, rejected)
			}
		}
	}
}

// insertColumns adds rows by column.
func (m *machine) insertColumns(b *minikudu.WriteBatch, mt *modelTable, rows [][]any) {
	vectors := make([]*vector.Vector, len(mt.names))
	for i := range vectors {
		c := mt.tab.Schema().Column(i)
		vectors[i] = vector.New(c.Kind(), len(rows))
		for _, row := range rows {
			x, err := c.Convert(row[i])
			if err == nil {
				err = vectors[i].Append(x)
			}
			if err != nil {
				m.fatalf("%v", err)
			}
		}
	}
	if err := b.InsertColumns(mt.tab, mt.names, vectors); err != nil {
		m.fatalf("%v", err)
	}
}

// expr draws a predicate over the table's columns.
func (m *machine) expr(mt *modelTable, depth int) minikudu.Expr {
	if depth > 0 && rapid.Bool().Draw(m.T, "nested") {
		switch rapid.IntRange(0, 3).Draw(m.T, "logic") {
		case 0:
			return predicate.Or(m.expr(mt, depth-1), m.expr(mt, depth-1))
		case 1:
			return predicate.Not(m.expr(mt, depth-1))
		}
		return predicate.And(m.expr(mt, depth-1), m.expr(mt, depth-1))
	}
	i := rapid.IntRange(0, len(mt.names)-1).Draw(m.T, "column")
	literal := func() any {
		return rapid.SampledFrom(mt.domains[i]).Filter(func(v any) bool { return v != nil }).Draw(m.T, "literal")
	}
	c := mt.names[i]
	v := literal()
	if s, ok := v.(string); ok && rapid.IntRange(0, 5).Draw(m.T, "like") == 0 && strings.IndexByte(s, 0xff) < 0 {
		return predicate.Like(c, s+"%")
	}
	switch rapid.IntRange(0, 7).Draw(m.T, "comparison") {
	case 0:
		return predicate.Eq(c, v)
	case 1:
		return predicate.Ne(c, v)
	case 2:
		return predicate.Lt(c, v)
	case 3:
		return predicate.Le(c, v)
	case 4:
		return predicate.Gt(c, v)
	case 5:
		return predicate.Ge(c, v)
	case 6:
		return predicate.In(c, v, literal())
	}
	return predicate.IsNull(c)
}

// query draws a query and returns it with the rows it selects, in key order.
func (m *machine) query(mt *modelTable) (q minikudu.Query, want [][]any) {
	if rapid.IntRange(0, 3).Draw(m.T, "filtered") > 0 {
		q.Where = m.expr(mt, 2)
	}
	q.Order = rapid.SampledFrom([]minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse}).Draw(m.T, "order")
	q.BatchRows = rapid.SampledFrom([]int{0, 1, 2, 5, 1000}).Draw(m.T, "batch rows")
	q.NoPrune = rapid.Bool().Draw(m.T, "no pruning")
	var columns []int
	for i := range mt.names {
		columns = append(columns, i)
	}
	if rapid.Bool().Draw(m.T, "projected") {
		columns = rapid.SliceOfN(rapid.IntRange(0, len(mt.names)-1), 0, 4).Draw(m.T, "columns")
		q.Columns = []string{}
		for _, i := range columns {
			q.Columns = append(q.Columns, mt.names[i])
		}
	}
	for _, row := range mt.rows {
		if q.Where == nil || truth(q.Where, mt.named(row)) == 1 {
			out := make([]any, len(columns))
			for k, i := range columns {
				out[k] = row[i]
			}
			want = append(want, out)
		}
	}
	if q.Order == minikudu.KeyReverse {
		slices.Reverse(want)
	}
	return q, want
}

// scan compares a random scan with the model, with and without pruning.
func (m *machine) scan(name string) {
	mt := m.tables[name]
	q, want := m.query(mt)
	limit := rapid.SampledFrom([]int64{0, 0, 1, 3}).Draw(m.T, "limit")
	bothPrunings(q, func(q minikudu.Query) {
		got, err := collect(mt.tab, q)
		m.compareRows(fmt.Sprintf("scan of %s %+v", name, q), q.Order, got, want, err)
		if q.Limit = limit; limit == 0 {
			return
		}
		got, err = collect(mt.tab, q)
		if n := min(int(limit), len(want)); q.Order != minikudu.Unordered {
			m.compareRows(fmt.Sprintf("scan of %s %+v", name, q), q.Order, got, want[:n], err)
		} else if len(got) != n || err != nil {
			m.fatalf("scan of %s %+v: %d rows, want %d, %v", name, q, len(got), n, err)
		}
	})
}

func collect(tab *minikudu.Table, q minikudu.Query) (out [][]any, err error) {
	for b, err := range tab.Scan(ctx, q) {
		switch {
		case err != nil:
			return out, err
		case b.Len() == 0, q.BatchRows > 0 && b.Len() > q.BatchRows:
			return out, fmt.Errorf("a batch of %d rows", b.Len())
		}
		for i := range b.Len() {
			out = append(out, b.Row(i))
		}
	}
	return out, nil
}

func (m *machine) compareRows(what string, o minikudu.Order, got, want [][]any, err error) {
	m.Helper()
	if err != nil {
		m.fatalf("%s: %v", what, err)
	}
	g, w := texts(got), texts(want)
	if o == minikudu.Unordered {
		slices.Sort(g)
		slices.Sort(w)
	}
	if !slices.Equal(g, w) {
		m.fatalf("%s: got\n%s\nwant\n%s", what, strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
}

func (m *machine) get(name string) {
	mt := m.tables[name]
	row := m.rowOf(mt)
	at, found := mt.find(row)
	got, err := mt.tab.Get(ctx, row[:mt.numKey]...)
	switch {
	case !found:
		if !errors.Is(err, minikudu.ErrNotFound) {
			m.fatalf("get of the absent key %q: %v, %v", row[:mt.numKey], got, err)
		}
	case err != nil || show(got.Values()) != show(mt.rows[at]):
		m.fatalf("get of %q: %v, %v", row[:mt.numKey], got, err)
	}
}

// aggregate compares counts and aggregates with the model.
func (m *machine) aggregate(name string) {
	mt := m.tables[name]
	q, _ := m.query(mt)
	groupBy := rapid.SampledFrom(mt.groups).Draw(m.T, "group by")
	groups := map[string]*modelGroup{}
	if len(groupBy) == 0 {
		groups[""] = &modelGroup{}
	}
	n := 0
	for _, row := range mt.rows {
		named := mt.named(row)
		if q.Where != nil && truth(q.Where, named) != 1 {
			continue
		}
		n++
		var key []any
		for _, c := range groupBy {
			key = append(key, named[c])
		}
		k := ""
		if len(key) > 0 {
			k = show(key)
		}
		if groups[k] == nil {
			groups[k] = &modelGroup{key: key}
		}
		groups[k].add(named[mt.sum], named[mt.max])
	}
	var want [][]any
	for _, g := range groups {
		want = append(want, append(slices.Clone(g.key), g.count, g.cells, g.sum, g.max))
	}
	b, err := mt.tab.Aggregate(ctx, minikudu.Query{Where: q.Where, NoPrune: q.NoPrune}, groupBy,
		minikudu.Count(), minikudu.CountOf(mt.sum), minikudu.Sum(mt.sum), minikudu.Max(mt.max))
	if err != nil {
		m.fatalf("aggregate: %v", err)
	}
	var got [][]any
	for i := range b.Len() {
		got = append(got, b.Row(i))
	}
	m.compareRows(fmt.Sprintf("aggregates of %s by %v where %v", name, groupBy, q.Where), minikudu.Unordered, got, want, nil)
	if c, err := mt.tab.Count(ctx, q.Where); err != nil || c != int64(n) {
		m.fatalf("count of %s where %v: %d, want %d, %v", name, q.Where, c, n, err)
	}
	if mt.tab.Rows() != int64(len(mt.rows)) {
		m.fatalf("%d rows by metadata, want %d", mt.tab.Rows(), len(mt.rows))
	}
}

// modelGroup is the aggregates of a group.
type modelGroup struct {
	key          []any
	count, cells int64
	sum, max     any
}

func (g *modelGroup) add(sum, top any) {
	g.count++
	if sum != nil {
		g.cells++
		before, _ := g.sum.(int64)
		g.sum = before + sum.(int64)
	}
	if f, ok := top.(float64); top == nil || ok && f != f {
		return
	}
	if g.max == nil || order(top, g.max) > 0 {
		g.max = top
	}
}

// hold begins a scan that goes on beside other operations.
func (m *machine) hold(name string) {
	if len(m.scans) == 3 {
		return
	}
	mt := m.tables[name]
	h := &held{table: mt}
	h.q, h.want = m.query(mt)
	h.next, h.stop = iter.Pull2(mt.tab.Scan(ctx, h.q))
	m.scans = append(m.scans, h)
	m.advance(h) // the snapshot is taken now
}

// advance reads a batch of a held scan and reports whether there is more.
func (m *machine) advance(h *held) bool {
	b, err, ok := h.next()
	if err != nil {
		m.fatalf("held scan %+v: %v", h.q, err)
	}
	for i := 0; ok && i < b.Len(); i++ {
		h.got = append(h.got, b.Row(i))
	}
	return ok
}

// drain reads the held scans to their ends.
func (m *machine) drain() {
	for _, h := range m.scans {
		for m.advance(h) {
		}
		h.stop()
		m.compareRows(fmt.Sprintf("held scan %+v", h.q), h.q.Order, h.got, h.want, nil)
	}
	m.scans = nil
}
