package diskrowset

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"testing"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// getter reads whole rows by key and compares them with the source.
type getter struct {
	src     *rows
	set     *RowSet
	keys    *rowset.Keys
	found   []rowset.Found
	which   []int32
	columns []int
	row     []*vector.Vector
}

func newGetter(src *rows, set *RowSet) *getter {
	g := &getter{src: src, set: set, keys: src.lookupKeys(), found: make([]rowset.Found, src.Rows()), which: make([]int32, 1)}
	for i, c := range src.cols {
		g.columns = append(g.columns, i)
		g.row = append(g.row, vector.New(c.Kind(), 1))
	}
	return g
}

func (g *getter) get(i int) error {
	g.which[0] = int32(i)
	if err := g.set.Lookup(bg, g.keys, g.which, g.found); err != nil {
		return err
	}
	if f := g.found[i]; f.RowSet != rowset.RowSet(g.set) || int(f.Row) != i {
		return fmt.Errorf("key %d found as %+v", i, f)
	}
	for k, v := range g.row {
		v.Reset(g.src.cols[k].Kind())
	}
	return g.set.ReadRow(bg, rowset.RowID(i), mvcc.Max, g.columns, g.row)
}

func (g *getter) check(i int) error {
	if err := g.get(i); err != nil {
		return err
	}
	if got, want := line(g.row, 0, nil), line(g.src.cols, i, nil); got != want {
		return fmt.Errorf("row %d: %s, want %s", i, got, want)
	}
	return nil
}

// forms counts the pages that are cached in each form.
func forms(s *RowSet) (decoded, packed int) {
	for _, c := range append([]*column{s.times}, s.columns...) {
		if c == nil || c.data.Load() == nil {
			continue
		}
		for i := range c.data.Load().slots {
			switch p, _ := c.data.Load().slots[i].Get(); p.(type) {
			case *vector.Vector:
				decoded++
			case *encoding.Packed:
				packed++
			}
		}
	}
	return decoded, packed
}

// events is a table of one key column, the given kind of cells, and columns of several
// shapes, nulls among them.
func events(t tb, typ schema.Type, n int, key func(i int) schema.Value) *rows {
	s := newSchema(t, 1, col("key", typ), nullable("small", schema.Int16), nullable("price", schema.Double),
		nullable("word", schema.String), col("text", schema.String), col("id", schema.Int64))
	r := rand.New(rand.NewPCG(7, 8))
	all := make([][]schema.Value, n)
	for i := range all {
		row := []schema.Value{key(i), schema.IntValue(schema.KindInt16, int64(i%100)), f64(float64(r.IntN(10000)) / 100),
			str(fmt.Sprint("word ", r.IntN(30))), str(fmt.Sprint("text ", i)), schema.IntValue(schema.KindInt64, int64(r.Uint64()>>1))}
		if r.IntN(200) == 0 {
			row[2] = f64(r.Float64())
		}
		for k := 1; k < 4; k++ {
			if r.IntN(10) == 0 {
				row[k] = schema.Null
			}
		}
		all[i] = row
	}
	return newRows(t, s, all)
}

// visits is a table of three key columns in short pages of different lengths.
func visits(t tb, n int) *rows {
	id, at := col("id", schema.Int32), col("at", schema.Int64)
	id.BlockSize, at.BlockSize = 1024, 2048
	s := newSchema(t, 3, col("host", schema.String), id, at, col("x", schema.Int64))
	r := rand.New(rand.NewPCG(15, 16))
	all := make([][]schema.Value, n)
	for i := range all {
		all[i] = []schema.Value{str(fmt.Sprint("host ", i/500)), i32(i / 50), i64(10*i + r.IntN(9)), i64(i % 77)}
	}
	return newRows(t, s, all)
}

// tables returns tables whose keys are packed in different ways.
func tables(t tb) map[string]*rows {
	r := rand.New(rand.NewPCG(9, 10))
	next := 0
	return map[string]*rows{
		"visits": visits(t, 4000),
		"random number": events(t, schema.Int64, 3000, func(int) schema.Value {
			next += 2 * (1 + r.IntN(1000))
			return i64(next)
		}),
		"equal steps": events(t, schema.Int32, 3000, func(i int) schema.Value { return i32(10*i - 20000) }),
		"string":      events(t, schema.String, 1000, func(i int) schema.Value { return str(fmt.Sprintf("key %05d", i)) }),
	}
}

func TestGetFromPackedPages(t *testing.T) {
	for name, src := range tables(t) {
		for _, budget := range []int64{0, 20 << 10, 64 << 20} {
			t.Run(fmt.Sprintf("%s/%d", name, budget), func(t *testing.T) {
				st := newStore(t, src.schema)
				st.env.Pages = cache.New[cache.Page](budget)
				s := st.one(src)
				g, r := newGetter(src, s), rand.New(rand.NewPCG(11, 12))
				for range 300 {
					must(t, g.check(r.IntN(src.Rows())))
				}
				if _, packed := forms(s); packed == 0 && budget > 1<<20 {
					t.Error("no page is cached packed")
				}
				src.checkAll(t, s)
			})
		}
	}
}

// A key that no row has is not found in packed pages either.
func TestAbsentKeysInPackedPages(t *testing.T) {
	for name, src := range tables(t) {
		st := newStore(t, src.schema)
		s := st.one(src, func(o *WriterOptions) { o.NoFilters = true })
		last := src.cols[src.schema.NumKey()-1]
		absent := &rows{schema: src.schema, cols: append([]*vector.Vector{}, src.cols...)}
		moved := vector.New(last.Kind(), last.Len())
		for i := range last.Len() {
			x := last.Value(i)
			if x.Kind() == schema.KindBytes {
				x = str(x.Str() + "x")
			} else {
				x = schema.IntValue(x.Kind(), x.Int()+1)
			}
			must(t, moved.Append(x))
		}
		absent.cols[src.schema.NumKey()-1] = moved
		absent.encode(t)
		found := make([]rowset.Found, absent.Rows())
		for i := range absent.Rows() / 7 {
			must(t, s.Lookup(bg, absent.lookupKeys(), []int32{int32(7 * i)}, found))
		}
		all, err := resolve(s, absent.lookupKeys())
		must(t, err)
		for i := range found {
			if found[i].RowSet != nil || all[i].RowSet != nil {
				t.Fatalf("%s: absent key %d is found", name, i)
			}
		}
		if _, packed := forms(s); packed == 0 && name != "string" { // texts are not packed
			t.Errorf("%s: keys were decoded", name)
		}
	}
}

// A row is read without decoding pages; a scan decodes them where they are.
func TestScanReplacesPackedPages(t *testing.T) {
	src := visits(t, 10000)
	st := newStore(t, src.schema)
	s := st.one(src, func(o *WriterOptions) { o.Horizon = mvcc.Max })
	g := newGetter(src, s)
	for i := 0; i < src.Rows(); i += 10 {
		must(t, g.check(i))
	}
	decoded, packed := forms(s)
	if decoded > 0 || packed == 0 {
		t.Fatalf("%d pages decoded, %d packed", decoded, packed)
	}
	bytes := st.env.Pages.Stats().Bytes
	for round := range 2 {
		_, stats := query{}.scan(t, s)
		var wasCached, wasDecoded, read int64
		for i := range stats.Columns {
			c := &stats.Columns[i]
			wasCached, wasDecoded, read = wasCached+c.Cached.Load(), wasDecoded+c.Decoded.Load(), read+c.Bytes.Load()
		}
		if round == 0 && (wasDecoded != int64(packed) || wasCached != 0) || round == 1 && wasDecoded != 0 || read != 0 {
			t.Errorf("scan %d: %d pages cached, %d decoded, %d bytes read", round, wasCached, wasDecoded, read)
		}
	}
	if decoded, left := forms(s); left != 0 || decoded != packed {
		t.Errorf("%d pages decoded, %d packed of %d", decoded, left, packed)
	}
	if now := st.env.Pages.Stats().Bytes; now <= bytes {
		t.Errorf("%d bytes cached, %d when packed", now, bytes)
	}
	must(t, g.check(77))
}

func TestGetFromPackedPagesDoesNotAllocate(t *testing.T) {
	for name, src := range tables(t) {
		st := newStore(t, src.schema)
		g := newGetter(src, st.one(src))
		i := 0
		n := testing.AllocsPerRun(1000, func() {
			i = (i + 7919) % src.Rows()
			if err := g.get(i); err != nil {
				t.Fatal(err)
			}
		})
		if n > 0 && !raceEnabled {
			t.Errorf("%s: %v allocations for a get", name, n)
		}
	}
}

func TestGetsBesideScans(t *testing.T) {
	src := visits(t, 10000)
	st := newStore(t, src.schema)
	st.env.Pages = cache.New[cache.Page](40 << 10)
	s := st.one(src)
	want := src.lines(nil)
	var wg sync.WaitGroup
	for k := range 3 {
		wg.Go(func() {
			g, r := newGetter(src, s), rand.New(rand.NewPCG(13, uint64(k)))
			for range 500 {
				if err := g.check(r.IntN(src.Rows())); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	spec := query{}.bind(t, src.schema)
	for range 5 {
		got, err := collect(s, spec)
		must(t, err)
		equalLines(t, got, want)
	}
	wg.Wait()
}

// Filters are not asked for keys that are there as long as the pages to be searched are cached,
// and again when some are not there.
func TestFiltersAreAskedWhileTheyPay(t *testing.T) {
	src := visits(t, 4000)
	st := newStore(t, src.schema)
	s := st.one(src)
	g := newGetter(src, s)
	if !s.filters.pays() {
		t.Fatal("filters are not asked to begin with")
	}
	for i := 0; s.filters.pays(); i++ {
		if i == 200*maxIdle {
			t.Fatalf("filters are asked though every key is there: %d", s.filters.idle.Load())
		}
		must(t, g.check(i%src.Rows()))
	}
	absent := visits(t, 4000)
	for i := range absent.Rows() {
		vector.Values[int64](absent.cols[2])[i] = 10*int64(i) + 9
	}
	absent.encode(t)
	find := func(i int) {
		if err := s.Lookup(bg, absent.lookupKeys(), []int32{int32(i)}, g.found); err != nil || g.found[i].RowSet != nil {
			t.Fatalf("absent key %d: %+v, %v", i, g.found[i], err)
		}
	}
	clear(g.found)
	for i := 0; !s.filters.pays(); i++ {
		if i == 1000 {
			t.Fatal("filters are not asked though every second key is absent")
		}
		find(i)
		must(t, g.check(i))
		clear(g.found)
	}
	// Where reading pages can be spared they are asked whatever came before.
	s = st.one(src)
	s.filters.idle.Store(maxIdle)
	refused := 0
	for i := range 100 {
		find(i)
		if decoded, packed := forms(s); decoded+packed == 0 {
			refused++
		} else {
			break
		}
	}
	if refused < 20 {
		t.Fatalf("pages were read after %d absent keys", refused)
	}
}

// A bound need not be the key of a row, nor a whole key.
func TestSeek(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	for name, src := range tables(t) {
		s := newStore(t, src.schema).one(src)
		for range 2000 {
			key := slices.Clone(src.keys.BytesAt(r.IntN(src.Rows())))
			switch r.IntN(5) {
			case 0:
				key = key[:r.IntN(len(key)+1)]
			case 1:
				key = append(key, byte(r.IntN(2)))
			case 2:
				key[r.IntN(len(key))] += byte(r.IntN(3) - 1)
			case 3:
				key[len(key)-1]++
			}
			want := sort.Search(src.Rows(), func(i int) bool { return bytes.Compare(src.keys.BytesAt(i), key) >= 0 })
			if row, err := s.seek(bg, key); err != nil || row != want {
				t.Fatalf("%s: %x is at row %d, want %d, %v", name, key, row, want, err)
			}
		}
	}
}
