package diskrowset

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// kv is the table of key int32 and a value; cell i of it is value(i).
func kv(t tb, n int, c schema.Column, value func(i int) schema.Value) *rows {
	s := newSchema(t, 1, col("key", schema.Int32), c)
	cells := make([][]schema.Value, n)
	for i := range cells {
		cells[i] = []schema.Value{i32(i), value(i)}
	}
	return newRows(t, s, cells)
}

func TestItem41ScanAndPresence(t *testing.T) {
	s := newSchema(t, 1, col("key", schema.String), col("val", schema.Int32))
	var cells [][]schema.Value
	for i := range 10000 {
		cells = append(cells, []schema.Value{str(fmt.Sprintf("row %06d", 2*i)), i32(i)})
	}
	src := newRows(t, s, cells)
	st := newStore(t, s)
	r := st.one(src)
	src.checkAll(t, r)
	for _, name := range []string{"key", "val"} {
		got, _ := query{columns: []string{name}}.scan(t, r)
		if len(got) != 10000 {
			t.Fatalf("%s alone: %d rows", name, len(got))
		}
	}
	absent := newRows(t, s, [][]schema.Value{{str(""), i32(0)}, {str("row 000001"), i32(0)},
		{str("row 010001"), i32(0)}, {str("row 019999"), i32(0)}, {str("zzz"), i32(0)}})
	found, err := resolve(r, absent.lookupKeys())
	must(t, err)
	for i, f := range found {
		if f.RowSet != nil {
			t.Errorf("absent key %d found: %+v", i, f)
		}
	}
}

func TestItem41ErrorIsNotAbsent(t *testing.T) {
	src := kv(t, 1000, col("val", schema.Int32), func(i int) schema.Value { return i32(i) })
	st := newStore(t, src.schema)
	st.damaged = true
	r := st.one(src)
	must(t, st.fs.Remove(dir+"/"+FileName(st.next)))
	if _, err := resolve(r, src.lookupKeys()); err == nil {
		t.Fatal("lookup in a missing file gave no error")
	}
	if _, err := collect(r, query{}.bind(t, src.schema)); err == nil {
		t.Fatal("scan of a missing file gave no error")
	}
}

func TestItem45RollingWriter(t *testing.T) {
	s := newSchema(t, 1, schema.Column{Name: "key", Type: schema.Int32, BlockSize: 4096},
		schema.Column{Name: "val", Type: schema.String, BlockSize: 4096, Encoding: schema.EncodingPlain, Compression: schema.CompressionNone})
	var cells [][]schema.Value
	for i := range 10000 {
		cells = append(cells, []schema.Value{i32(i), str(fmt.Sprintf("value %010d", i*7919))})
	}
	src := newRows(t, s, cells)
	st := newStore(t, s)
	sets := st.write(src, func(o *WriterOptions) { o.TargetBytes = 64 << 10 })
	if len(sets) < 3 {
		t.Fatalf("%d rowsets, want several", len(sets))
	}
	from := 0
	var last []byte
	for i, r := range sets {
		size := r.meta.EncodedBytes()
		if size > 70<<10 || i < len(sets)-2 && size < 50<<10 {
			t.Errorf("rowset %d of %d bytes", i, size)
		}
		min, max, _ := r.Bounds()
		if string(min) <= string(last) || string(max) < string(min) {
			t.Errorf("rowset %d: bounds %x %x after %x", i, min, max, last)
		}
		last = max
		n := int(r.Rows())
		got, _ := query{}.scan(t, r)
		equalLines(t, got, src.lines(nil)[from:from+n])
		row := []*vector.Vector{vector.New(schema.KindInt32, 1)}
		must(t, r.ReadRow(bg, 0, mvcc.Max, []int{0}, row)) // row ids restart at 0
		if got := vector.Values[int32](row[0])[0]; int(got) != from {
			t.Errorf("row 0 of rowset %d has key %d, want %d", i, got, from)
		}
		from += n
	}
	if from != 10000 {
		t.Errorf("%d rows in all", from)
	}
}

func TestItem60KeyRange(t *testing.T) {
	s := newSchema(t, 1, col("key", schema.Int32), col("val", schema.Int32))
	var cells [][]schema.Value
	for i := range 10000 {
		cells = append(cells, []schema.Value{i32(2 * i), i32(i)})
	}
	src := newRows(t, s, cells)
	r := newStore(t, s).one(src)
	got, stats := query{columns: []string{"val"}, where: predicate.And(predicate.Ge("key", 2000), predicate.Lt("key", 2010))}.scan(t, r)
	equalLines(t, got, []string{"1000", "1001", "1002", "1003", "1004"})
	for i := range stats.Columns {
		c := &stats.Columns[i]
		if n := c.Decoded.Load() + c.Cached.Load(); n > 1 {
			t.Errorf("column %d: %d pages", i, n)
		}
	}
	if n := stats.RowsConsidered.Load(); n != 5 {
		t.Errorf("%d rows considered", n)
	}
	count := func(lo, hi int, want int) {
		t.Helper()
		q := query{}
		if lo >= 0 {
			q.spec.Lower = key32(s, lo)
		}
		if hi >= 0 {
			q.spec.Upper = key32(s, hi)
		}
		if got, _ := q.scan(t, r); len(got) != want {
			t.Errorf("[%d, %d): %d rows, want %d", lo, hi, len(got), want)
		}
	}
	count(1999, 2011, 6)
	count(-1, 5, 3)
	count(19995, -1, 2)
	count(19998, 19999, 1)
	count(19999, -1, 0)
	count(20000, 30000, 0)
	count(-1, 0, 0)
	count(0, 1, 1)
	count(10, 10, 0)
	count(20, 10, 0)
	count(-1, -1, 10000)
}

func TestItem60MaxKeys(t *testing.T) {
	const max = 1<<31 - 1
	s := newSchema(t, 1, col("key", schema.Int32))
	var cells [][]schema.Value
	for i := range 10 {
		cells = append(cells, []schema.Value{i32(max - i)})
	}
	r := newStore(t, s).one(newRows(t, s, cells))
	all, _ := query{}.scan(t, r)
	some, _ := query{where: predicate.And(predicate.Ge("key", max-9), predicate.Lt("key", max))}.scan(t, r)
	if len(all) != 10 || len(some) != 9 {
		t.Fatalf("%d and %d rows", len(all), len(some))
	}
}

func TestItem78Pushdown(t *testing.T) {
	s := newSchema(t, 1, col("key", schema.Int32), col("int_val", schema.Int32), col("s", schema.String))
	var cells [][]schema.Value
	for i := range 2100 {
		cells = append(cells, []schema.Value{i32(i), i32(10 * i), str(fmt.Sprintf("%08d", i))})
	}
	src := newRows(t, s, cells)
	r := newStore(t, s).one(src)
	want := src.lines(func(i int) bool { return i >= 200 && i < 211 })
	got, _ := query{where: predicate.And(predicate.Ge("key", 200), predicate.Lt("key", 211))}.scan(t, r)
	equalLines(t, got, want)
	got, _ = query{where: predicate.And(predicate.Ge("int_val", 2000), predicate.Lt("int_val", 2101))}.scan(t, r)
	equalLines(t, got, want)
	q := query{columns: []string{}}
	q.spec.Lower, q.spec.Upper = key32(s, 200), key32(s, 211)
	got, _ = q.scan(t, r)
	equalLines(t, got, make([]string, 11))
}

func TestItem80Dictionary(t *testing.T) {
	for _, n := range []int{100, 5000, 100000} {
		for _, c := range []int{50, 1000, 50000} {
			testDictionary(t, n, c, 0)
		}
	}
	testDictionary(t, 5000, 50, 40)
	testDictionary(t, 100000, 50, 40)
	testDictionary(t, 5000, 50, 50)
}

// testDictionary has value i mod c in row i, null for those below nulls.
func testDictionary(t *testing.T, n, c, nulls int) {
	s := newSchema(t, 1, col("key", schema.Int32), nullable("val", schema.String))
	var cells [][]schema.Value
	for i := range n {
		v := str(fmt.Sprintf("%06d", i%c))
		if i%c < nulls {
			v = schema.Null
		}
		cells = append(cells, []schema.Value{i32(i), v})
	}
	src := newRows(t, s, cells)
	r := newStore(t, s).one(src)
	for _, x := range [][2]int{{0, 1}, {30, 50}, {c / 2, c}, {c, c + 5}, {0, c}} {
		lo, hi := max(x[0], nulls), x[1]
		var want []string
		for i := range n {
			if i%c >= lo && i%c < hi {
				want = append(want, strconv.Itoa(i))
			}
		}
		for _, plain := range []bool{false, true} {
			q := query{columns: []string{"key"}, where: predicate.And(predicate.Ge("val", fmt.Sprintf("%06d", x[0])), predicate.Lt("val", fmt.Sprintf("%06d", hi)))}
			q.spec.NoPrune = plain
			got, _ := q.scan(t, r)
			equalLines(t, got, want)
		}
	}
}

func TestItem80TwoColumns(t *testing.T) {
	s := newSchema(t, 1, col("key", schema.Int32), col("a", schema.String), col("b", schema.String))
	var cells [][]schema.Value
	for i := range 5000 {
		v := str(strconv.Itoa(i % 10))
		cells = append(cells, []schema.Value{i32(i), v, v})
	}
	src := newRows(t, s, cells)
	r := newStore(t, s).one(src)
	got, _ := query{where: predicate.And(predicate.Ge("a", "0"), predicate.Lt("a", "5"), predicate.Ge("b", "3"))}.scan(t, r)
	equalLines(t, got, src.lines(func(i int) bool { return i%10 == 3 || i%10 == 4 }))
}

func TestItem81OnePageReadOnce(t *testing.T) {
	src := kv(t, 400, nullable("val", schema.Int32), func(i int) schema.Value {
		if i%3 == 0 {
			return schema.Null
		}
		return i32(i % 200)
	})
	r := newStore(t, src.schema).one(src)
	q := query{where: predicate.Eq("val", 50)}
	q.spec.MaxRows = 16
	got, stats := q.scan(t, r)
	equalLines(t, got, []string{"50|50", "250|50"})
	for i := range stats.Columns {
		if n := stats.Columns[i].Decoded.Load(); n != 1 {
			t.Errorf("column %d: %d pages decoded", i, n)
		}
	}
}

func TestC61EmptyProjection(t *testing.T) {
	src := kv(t, 100000, col("val", schema.Int32), func(i int) schema.Value { return i32(i % 10) })
	r := newStore(t, src.schema).one(src)
	got, stats := query{columns: []string{}}.scan(t, r)
	if len(got) != 100000 {
		t.Errorf("%d rows", len(got))
	}
	for i := range stats.Columns {
		if stats.Columns[i].Pages.Load() != 0 || stats.Columns[i].Decoded.Load() != 0 {
			t.Errorf("column %d was read", i)
		}
	}
	got, stats = query{columns: []string{}, where: predicate.Eq("val", 3)}.scan(t, r)
	if len(got) != 10000 || stats.Columns[0].Pages.Load() != 0 {
		t.Errorf("%d rows, %d key pages", len(got), stats.Columns[0].Pages.Load())
	}
}

func key32(s *schema.Schema, n int) []byte { return encodeKey(s, i32(n)) }

func TestReferences(t *testing.T) {
	src := kv(t, 5000, col("val", schema.Int32), func(i int) schema.Value { return i32(i) })
	st := newStore(t, src.schema)
	r := st.one(src)
	it, err := r.Scan(bg, query{}.bind(t, src.schema))
	must(t, err)
	r.Drop()
	r.Drop()
	if b, err := it.Next(bg); err != nil || b == nil {
		t.Fatalf("scan in flight: %v, %v", b, err)
	}
	if names, _ := st.fs.List(dir); len(names) != 1 {
		t.Fatal("the file was deleted under an iterator")
	}
	it.Close()
	it.Close()
	if names, _ := st.fs.List(dir); len(names) != 0 {
		t.Fatalf("left behind: %v", names)
	}
	if _, err := r.Scan(bg, query{}.bind(t, src.schema)); !errors.Is(err, ErrClosed) {
		t.Errorf("scan after the end: %v", err)
	}
	if err := r.Lookup(bg, src.lookupKeys(), []int32{0}, make([]rowset.Found, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("lookup after the end: %v", err)
	}
}
