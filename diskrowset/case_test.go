package diskrowset

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// pages makes a table of key int32 and x with small pages, 64 doubles each.
func pages(t tb, x []schema.Value, typ schema.Type) (*rows, *RowSet) {
	s := newSchema(t, 1, col("key", schema.Int32), schema.Column{Name: "x", Type: typ, Nullable: true,
		BlockSize: 512, Encoding: schema.EncodingPlain, Compression: schema.CompressionNone})
	var cells [][]schema.Value
	for i, v := range x {
		cells = append(cells, []schema.Value{i32(i), v})
	}
	src := newRows(t, s, cells)
	return src, newStore(t, s).one(src)
}

// prunedAsPlain compares a filter with pruning on and off and with the count wanted (-1: any).
func prunedAsPlain(t *testing.T, r *RowSet, e predicate.Expr, want int) {
	t.Helper()
	q := query{where: e}
	pruned, _ := q.scan(t, r)
	q.spec.NoPrune = true
	plain, _ := q.scan(t, r)
	equalLines(t, pruned, plain)
	if want >= 0 && len(pruned) != want {
		t.Errorf("%s: %d rows, want %d", e, len(pruned), want)
	}
}

func TestC01NaNAndZones(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	var x []schema.Value
	for range 64 {
		x = append(x, f64(3), f64(nan), f64(3))
	}
	for range 64 {
		x = append(x, f64(inf), f64(-inf), f64(nan))
	}
	for range 64 {
		x = append(x, f64(nan))
	}
	_, r := pages(t, x, schema.Double)
	prunedAsPlain(t, r, predicate.Ne("x", 3.0), 64+192+64)
	prunedAsPlain(t, r, predicate.Gt("x", 10.0), 64)
	prunedAsPlain(t, r, predicate.Not(predicate.Lt("x", 10.0)), 64+64+64+64)
	prunedAsPlain(t, r, predicate.Eq("x", nan), 0)
	prunedAsPlain(t, r, predicate.In("x", nan), 0)
	prunedAsPlain(t, r, predicate.Ge("x", inf), 64)
	prunedAsPlain(t, r, predicate.Le("x", -inf), 64)
}

func TestC02NaNFirstAndLast(t *testing.T) {
	var x []schema.Value
	x = append(x, f64(math.NaN()))
	for i := 1; i <= 100; i++ {
		x = append(x, f64(float64(i)))
	}
	for i := 1; i <= 100; i++ {
		x = append(x, f64(float64(i)))
	}
	x = append(x, f64(math.NaN()))
	_, r := pages(t, x, schema.Double)
	prunedAsPlain(t, r, predicate.Lt("x", 50.0), 98)
	prunedAsPlain(t, r, predicate.Ge("x", 50.0), 102)
}

func TestC06AllNull(t *testing.T) {
	x := make([]schema.Value, 5000)
	_, r := pages(t, x, schema.Double)
	prunedAsPlain(t, r, predicate.Gt("x", 1.0), 0)
	prunedAsPlain(t, r, predicate.IsNull("x"), 5000)
	prunedAsPlain(t, r, predicate.IsNotNull("x"), 0)
	z, ok, err := r.Zone(bg, 1)
	if err != nil || !ok || z.Nulls != 5000 || !z.Min.IsNull() || !z.Max.IsNull() {
		t.Errorf("zone %+v, %v, %v", z, ok, err)
	}
}

func TestC07ColumnAddedLater(t *testing.T) {
	src := kv(t, 100, col("v", schema.Int32), func(i int) schema.Value { return i32(i) })
	st := newStore(t, src.schema)
	old := st.one(src)
	cols := append(src.schema.Columns(), schema.Column{Name: "z", Type: schema.Int32, Nullable: true, ID: 50},
		schema.Column{Name: "d", Type: schema.String, ID: 51, ReadDefault: str("none")})
	wider, err := schema.New(cols, []string{"key"}, schema.Limits{})
	must(t, err)
	st.env.Schema = wider
	for _, r := range []*RowSet{old, st.open(old.meta)} { // known by id before and after it is reopened
		count := func(e predicate.Expr, want int, skipped int64) {
			t.Helper()
			for _, plain := range []bool{false, true} {
				q := query{where: e, spec: rowset.ScanSpec{NoPrune: plain}}
				spec := q.bind(t, wider)
				got, err := collect(r, spec)
				must(t, err)
				if len(got) != want {
					t.Errorf("%s: %d rows, want %d", e, len(got), want)
				}
				if n := spec.Stats.RowSetsByZone.Load(); !plain && n != skipped {
					t.Errorf("%s: %d rowsets skipped, want %d", e, n, skipped)
				}
			}
		}
		count(predicate.IsNull("z"), 100, 0)
		count(predicate.IsNotNull("z"), 0, 1)
		count(predicate.Eq("z", 1), 0, 1)
		count(predicate.Not(predicate.Eq("z", 1)), 0, 1)
		count(predicate.Eq("d", "none"), 100, 0)
		count(predicate.Ne("d", "none"), 0, 1)
	}
	r := st.open(old.meta)
	row := []*vector.Vector{vector.New(schema.KindInt32, 1), vector.New(schema.KindBytes, 1)}
	must(t, r.ReadRow(bg, 3, mvcc.Max, []int{2, 3}, row))
	if got := line(row, 0, nil); got != `NULL|"none"` {
		t.Errorf("row %s", got)
	}
}

func TestC12LongBounds(t *testing.T) {
	prefix := strings.Repeat("p", 64)
	ff := strings.Repeat("\xff", 8) + "\xaa"
	long := strings.Repeat("\xff", 40)
	vals := []string{prefix + "a", prefix + "b", prefix + "z", ff, ff + "\x00", long, long + "a"}
	var x []schema.Value
	for i := range 2000 {
		x = append(x, str(vals[i*len(vals)/2000]))
	}
	_, r := pages(t, x, schema.Binary)
	for _, v := range vals {
		want := 0
		for _, w := range x {
			if w.Str() == v {
				want++
			}
		}
		prunedAsPlain(t, r, predicate.Eq("x", []byte(v)), want)
		for _, e := range []predicate.Expr{predicate.Gt("x", []byte(v)), predicate.Ge("x", []byte(v)), predicate.Lt("x", []byte(v)),
			predicate.Gt("x", []byte(v+"\x00")), predicate.Gt("x", []byte(v[:len(v)-1]))} {
			prunedAsPlain(t, r, e, -1)
		}
	}
	// The same values in a key, where lookups trust the bounds.
	s := newSchema(t, 2, col("a", schema.String), col("b", schema.Binary))
	var cells [][]schema.Value
	for _, v := range vals[3:] {
		cells = append(cells, []schema.Value{str("x"), str(v)})
	}
	src := newRows(t, s, cells)
	src.checkAll(t, newStore(t, s).one(src))
}

func TestC14ZeroBytesInKeys(t *testing.T) {
	words := []string{"foo", "foo\x00", "foo\x00bar", "\x00", "\x00\x00", "\x00\x01", "\x00\x02", ""}
	s := newSchema(t, 2, col("a", schema.String), col("b", schema.String), col("n", schema.Int32))
	var cells [][]schema.Value
	for i, a := range words {
		for j, b := range words {
			cells = append(cells, []schema.Value{str(a), str(b), i32(i*10 + j)})
		}
	}
	src := newRows(t, s, cells)
	src.checkAll(t, newStore(t, s).one(src))
	one := newSchema(t, 1, col("a", schema.String))
	cells = nil
	for _, a := range words {
		cells = append(cells, []schema.Value{str(a)})
	}
	src = newRows(t, one, cells)
	src.checkAll(t, newStore(t, one).one(src))
}

func TestC16FilterHoldsEveryKey(t *testing.T) {
	s := newSchema(t, 1, schema.Column{Name: "k", Type: schema.String, Encoding: schema.EncodingDict})
	cells := [][]schema.Value{{str("")}, {str(strings.Repeat("long", 25<<10))}}
	for i := range 10000 {
		cells = append(cells, []schema.Value{str(fmt.Sprint("key", i))})
	}
	src := newRows(t, s, cells)
	r := newStore(t, s).one(src)
	src.checkAll(t, r)
	cells = nil
	for i := range 10000 {
		cells = append(cells, []schema.Value{str(fmt.Sprint("key", i, "x"))})
	}
	absent := newRows(t, s, cells)
	which := make([]int32, absent.Rows())
	for i := range which {
		which[i] = int32(i)
	}
	maybe, err := r.filtered(bg, absent.lookupKeys(), which)
	must(t, err)
	if len(maybe) > 200 {
		t.Errorf("%d of 10000 absent keys pass the filter", len(maybe))
	}
}

func TestC20ManyScans(t *testing.T) {
	src := small(t, 20000)
	st := newStore(t, src.schema)
	r := st.one(src)
	want := src.lines(nil)
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(g)))
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			if g%3 == 0 {
				cancel()
			}
			lo := rnd.IntN(20)
			q := query{where: predicate.Ge("tag", fmt.Sprint(lo%5)), spec: rowset.ScanSpec{MaxRows: rnd.IntN(5000), WithKeys: g%2 == 0}}
			it, err := r.Scan(ctx, q.bind(t, src.schema))
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			defer it.Close()
			checkScan(t, ctx, it, src, lo%5, want)
		})
	}
	wg.Wait()
}

// checkScan checks a scan of the rows of small whose tag is at least lo.
func checkScan(t *testing.T, ctx context.Context, it rowset.Iterator, src *rows, lo int, want []string) {
	row := 0
	matches := func() bool {
		tag := src.cols[3].Value(row)
		return !tag.IsNull() && tag.Str() >= fmt.Sprint(lo)
	}
	for {
		b, err := it.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return
		}
		if b == nil {
			break
		}
		for i := range b.Rows {
			if b.Sel != nil && !b.Sel.Get(i) {
				continue
			}
			for !matches() {
				row++
			}
			if got := line(b.Columns, i, nil); got != want[row] {
				t.Errorf("row %d: got %s, want %s", row, got, want[row])
				return
			}
			row++
		}
	}
	for ; row < src.Rows(); row++ {
		if matches() {
			t.Errorf("row %d is missing", row)
			return
		}
	}
}
