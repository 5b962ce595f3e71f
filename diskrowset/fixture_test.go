package diskrowset

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/filecache"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

const dir = "db"

var bg = context.Background()

// tb is what testing.T, testing.B and rapid.T have in common.
type tb interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// store is a directory of rowset files. At its end every rowset is verified and no
// file may be open.
type store struct {
	t       tb
	fs      *vfs.Mem
	env     Env
	next    rowset.FileNum
	sets    []*RowSet
	damaged bool // skip the verification at the end
}

func newStore(t tb, s *schema.Schema) *store {
	m := vfs.NewMem()
	if err := m.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	st := &store{t: t, fs: m, env: Env{FS: m, Files: filecache.New(m, 8), Pages: cache.New[cache.Page](256 << 20),
		Dir: dir, StoreID: binfmt.UUID{1, 2, 3}, Schema: s}}
	if c, ok := t.(interface{ Cleanup(func()) }); ok {
		c.Cleanup(st.finish)
	}
	return st
}

func (st *store) finish() {
	for _, s := range st.sets {
		if !st.damaged && s.refs.Load() > 0 {
			if err := s.Verify(bg); err != nil {
				st.t.Error(err)
			}
		}
		s.Close()
		if n := s.refs.Load(); n != 0 {
			st.t.Errorf("%d references left", n)
		}
	}
	if err := st.env.Files.Close(); err != nil {
		st.t.Error(err)
	}
	if n := st.fs.OpenFiles(); n != 0 {
		st.t.Errorf("%d files left open", n)
	}
}

func (st *store) options() WriterOptions {
	return WriterOptions{FS: st.fs, Dir: dir, StoreID: st.env.StoreID, Schema: st.env.Schema, SchemaVersion: 7,
		NewFile: func() rowset.FileNum { st.next++; return st.next }}
}

// write writes the source and opens the files.
func (st *store) write(src rowset.Source, set ...func(*WriterOptions)) []*RowSet {
	st.t.Helper()
	o := st.options()
	for _, f := range set {
		f(&o)
	}
	all, err := Write(bg, src, o)
	if err != nil {
		st.t.Fatal(err)
	}
	var out []*RowSet
	for i, w := range all {
		w.Meta.ID = rowset.ID(i + 1)
		st.checkFile(w)
		out = append(out, st.open(w.Meta))
	}
	return out
}

func (st *store) checkFile(w Written) {
	st.t.Helper()
	b := st.read(path.Join(dir, FileName(w.File)))
	if int64(len(b)) != w.Size || binfmt.CRC(b) != w.Checksum {
		st.t.Fatalf("file of %d bytes, want %d, or another checksum", len(b), w.Size)
	}
}

func (st *store) read(name string) []byte {
	st.t.Helper()
	f, err := st.fs.Open(name, vfs.KindRowSet)
	if err != nil {
		st.t.Fatal(err)
	}
	defer f.Close()
	n, err := f.Size()
	if err != nil {
		st.t.Fatal(err)
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, 0); err != nil {
		st.t.Fatal(err)
	}
	return b
}

func (st *store) open(m *rowset.Meta) *RowSet {
	st.t.Helper()
	s, err := Open(m, st.env)
	if err != nil {
		st.t.Fatal(err)
	}
	st.sets = append(st.sets, s)
	return s
}

// one writes the source into a single rowset.
func (st *store) one(src rowset.Source, set ...func(*WriterOptions)) *RowSet {
	st.t.Helper()
	all := st.write(src, set...)
	if len(all) != 1 {
		st.t.Fatalf("%d rowsets, want 1", len(all))
	}
	return all[0]
}

// rows is a Source in memory.
type rows struct {
	schema *schema.Schema
	cols   []*vector.Vector
	keys   *vector.Vector
	times  []mvcc.Timestamp
	fail   func() error // called by Column
}

func (r *rows) Rows() int { return r.keys.Len() }

func (r *rows) Column(_ context.Context, col, from, to int, dst *vector.Vector) error {
	if r.fail != nil {
		if err := r.fail(); err != nil {
			return err
		}
	}
	return dst.AppendRange(r.cols[col], from, to)
}

func (r *rows) Fork() rowset.Source { return r }

func (r *rows) Keys(_ context.Context, from, to int, dst *vector.Vector) error {
	return dst.AppendRange(r.keys, from, to)
}

func (r *rows) InsertTimes(_ context.Context, from, to int, dst []mvcc.Timestamp) ([]mvcc.Timestamp, error) {
	return append(dst, r.times[from:to]...), nil
}

// newRows sorts the given rows by key. Row i is inserted at time 1000+i in given order.
func newRows(t tb, s *schema.Schema, cells [][]schema.Value) *rows {
	type row struct {
		key   []byte
		cells []schema.Value
		time  mvcc.Timestamp
	}
	all := make([]row, len(cells))
	for i, c := range cells {
		all[i] = row{encoding.AppendKeyValues(nil, c[:s.NumKey()], s.NumKey()), c, mvcc.Timestamp(1000 + i)}
	}
	slices.SortFunc(all, func(a, b row) int { return bytes.Compare(a.key, b.key) })
	r := &rows{schema: s, keys: vector.New(schema.KindBytes, len(all))}
	for i := range s.Len() {
		r.cols = append(r.cols, vector.New(s.Column(i).Kind(), len(all)))
	}
	for _, x := range all {
		must(t, r.keys.AppendBytes(x.key))
		r.times = append(r.times, x.time)
		for i, v := range x.cells {
			must(t, r.cols[i].Append(v))
		}
	}
	return r
}

// at gives every row the same insert time.
func (r *rows) at(t mvcc.Timestamp) *rows {
	for i := range r.times {
		r.times[i] = t
	}
	return r
}

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newSchema(t tb, key int, cols ...schema.Column) *schema.Schema {
	t.Helper()
	var names []string
	for i := range cols {
		cols[i].ID = schema.ColumnID(10 + i)
		if i < key {
			names = append(names, cols[i].Name)
		}
	}
	s, err := schema.New(cols, names, schema.Limits{MaxColumns: 1000})
	must(t, err)
	return s
}

func col(name string, typ schema.Type) schema.Column { return schema.Column{Name: name, Type: typ} }

func nullable(name string, typ schema.Type) schema.Column {
	return schema.Column{Name: name, Type: typ, Nullable: true}
}

func i32(n int) schema.Value     { return schema.IntValue(schema.KindInt32, int64(n)) }
func i64(n int) schema.Value     { return schema.IntValue(schema.KindInt64, int64(n)) }
func str(s string) schema.Value  { return schema.StringValue(s) }
func f64(f float64) schema.Value { return schema.Float64Value(f) }

// query is a scan of a test; the zero query reads everything.
type query struct {
	columns []string // nil: all
	where   predicate.Expr
	spec    rowset.ScanSpec
}

// bind returns the query's spec for a schema.
func (q query) bind(t tb, s *schema.Schema) *rowset.ScanSpec {
	t.Helper()
	spec := q.spec
	spec.Schema, spec.Stats = s, rowset.NewStats(s.Len())
	if spec.Time.Hi == 0 {
		spec.Time.Hi = mvcc.Max
	}
	if q.columns == nil {
		q.columns = s.Names()
	}
	for _, name := range q.columns {
		i := s.Find(name)
		if i < 0 {
			t.Fatalf("no column %q", name)
		}
		spec.Columns = append(spec.Columns, i)
	}
	b, err := predicate.Bind(q.where, s)
	must(t, err)
	spec.Filter = b
	return &spec
}

// scan returns the selected rows as text, one line per row, and the counters.
func (q query) scan(t tb, s *RowSet) ([]string, *rowset.Stats) {
	t.Helper()
	spec := q.bind(t, s.env.Schema)
	lines, err := collect(s, spec)
	must(t, err)
	return lines, spec.Stats
}

// eachBatch runs a scan that must not fail.
func eachBatch(t tb, s *RowSet, spec *rowset.ScanSpec, fn func(b *rowset.Batch)) {
	t.Helper()
	it, err := s.Scan(bg, spec)
	must(t, err)
	defer it.Close()
	for {
		b, err := it.Next(bg)
		must(t, err)
		if b == nil {
			return
		}
		fn(b)
	}
}

// collect runs a scan.
func collect(s *RowSet, spec *rowset.ScanSpec) ([]string, error) {
	it, err := s.Scan(bg, spec)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var lines []string
	for {
		b, err := it.Next(bg)
		if err != nil {
			return nil, err
		}
		if b == nil {
			return lines, nil
		}
		n := 0
		for i := range b.Rows {
			if b.Sel == nil || b.Sel.Get(i) {
				lines = append(lines, line(b.Columns, i, b.Keys))
				n++
			}
		}
		if n != b.Selected || n == 0 {
			return nil, fmt.Errorf("batch says %d rows, has %d", b.Selected, n)
		}
	}
}

func line(cols []*vector.Vector, i int, keys *vector.Vector) string {
	var few [128]byte
	b := few[:0]
	for k, c := range cols {
		if k > 0 {
			b = append(b, '|')
		}
		b = appendText(b, c, i)
	}
	if keys != nil {
		b = fmt.Appendf(b, "#%x", keys.BytesAt(i))
	}
	return string(b)
}

func appendText(b []byte, c *vector.Vector, i int) []byte {
	switch k := c.Kind(); {
	case c.IsNull(i):
		return append(b, "NULL"...)
	case k == schema.KindBytes:
		return append(append(append(b, '"'), c.BytesAt(i)...), '"')
	case k.IsFloat():
		return strconv.AppendUint(append(b, 'f'), math.Float64bits(c.Value(i).Float()), 16)
	case k == schema.KindInt128:
		v := c.Value(i).Int128()
		return strconv.AppendUint(append(strconv.AppendInt(b, v.Hi, 16), ':'), v.Lo, 16)
	}
	return strconv.AppendInt(b, c.Value(i).Int(), 10)
}

// lines returns the source's rows as scan does.
func (r *rows) lines(keep func(i int) bool) []string {
	var out []string
	for i := range r.Rows() {
		if keep == nil || keep(i) {
			out = append(out, line(r.cols, i, nil))
		}
	}
	return out
}

// lookupKeys returns the rows of the source as keys to be resolved.
func (r *rows) lookupKeys() *rowset.Keys {
	return &rowset.Keys{Encoded: r.keys, Columns: r.cols[:r.schema.NumKey()]}
}

// resolve looks all keys up.
func resolve(s *RowSet, k *rowset.Keys) ([]rowset.Found, error) {
	which := make([]int32, k.Len())
	for i := range which {
		which[i] = int32(i)
	}
	out := make([]rowset.Found, len(which))
	return out, s.Lookup(bg, k, which, out)
}

// checkAll compares a full scan and a lookup of every key with the source.
func (r *rows) checkAll(t tb, s *RowSet) {
	t.Helper()
	got, _ := query{}.scan(t, s)
	equalLines(t, got, r.lines(nil))
	found, err := resolve(s, r.lookupKeys())
	must(t, err)
	for i, f := range found {
		if f.RowSet != rowset.RowSet(s) || int(f.Row) != i || !f.Live {
			t.Fatalf("key %d: %+v", i, f)
		}
	}
}

func equalLines(t tb, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("row %d of %d: got %s, want %s", i, len(got), got[i], want[i])
		}
	}
	t.Fatalf("%d rows, want %d", len(got), len(want))
}

func encodeKey(s *schema.Schema, vals ...schema.Value) []byte {
	return encoding.AppendKeyValues(nil, vals, s.NumKey())
}

// encode fills the keys in from the key columns, whose rows are in key order.
func (r *rows) encode(t tb) {
	r.keys = vector.New(schema.KindBytes, 0)
	must(t, encoding.AppendKeys(r.keys, r.cols[:r.schema.NumKey()], 0, r.cols[0].Len()))
}

// History returns nil: no history is kept.
func (r *rows) History(from, to int) rowset.History { return nil }
