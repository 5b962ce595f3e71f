package diskrowset

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// pagedRows is the number of rows of the rowset that paged makes.
const pagedRows = 20_000

// paged returns a rowset whose column "val" has many pages and the number of the row in
// each cell.
func paged(t tb) (*store, *RowSet) {
	src := kv(t, pagedRows, schema.Column{Name: "val", Type: schema.Int64, BlockSize: 4096, Encoding: schema.EncodingPlain},
		func(i int) schema.Value { return i64(i) }).at(1)
	st := newStore(t, src.schema)
	return st, st.one(src)
}

// keptPages returns the pages of a column that are kept with changes, nil where there is none.
func keptPages(s *RowSet, col int) (out []*patchedPage) {
	for i := range s.columns[col].data.Load().patchedPlaces() {
		held, _ := s.columns[col].data.Load().patchedPlaces()[i].slot[0].Get()
		kept, _ := held.(*patchedPage)
		out = append(out, kept)
	}
	return out
}

// sumAt scans the column "val" at a time.
func sumAt(t tb, s *RowSet, at mvcc.Timestamp) (sum int64) {
	t.Helper()
	eachBatch(t, s, query{columns: []string{"val"}, spec: rowset.ScanSpec{Time: mvcc.At(at)}}.bind(t, s.env.Schema), func(b *rowset.Batch) {
		for _, x := range b.Columns[0].Int64s() {
			sum += x
		}
	})
	return sum
}

// TestPagesAreKeptWithChanges scans rows of which some changed: the second scan keeps the
// pages with changes and no others, the third one takes them, a change makes those anew
// that it is of, and each time has its own cells all along, in memory, in a file and after.
func TestPagesAreKeptWithChanges(t *testing.T) {
	st, s := paged(t)
	const base = pagedRows * (pagedRows - 1) / 2
	want := map[mvcc.Timestamp]int64{5: base, 10: base + 2000, 20: base + 2100, 30: base + 5100}
	check := func(at mvcc.Timestamp) {
		t.Helper()
		if got := sumAt(t, s, at); got != want[at] {
			t.Fatalf("sum %d at %d, want %d", got, at, want[at])
		}
	}
	count := func() (n int) {
		return pagedPages(s) - len(slices.DeleteFunc(keptPages(s, 1), func(p *patchedPage) bool { return p != nil }))
	}

	set(t, s, 10, 1, []rowset.RowID{100, 15_000}, i64(1100), i64(16_000))
	check(10)
	if count() != 0 {
		t.Fatal("the first scan keeps pages")
	}
	check(10)
	first := keptPages(s, 1)
	if count() != 2 {
		t.Fatalf("%d pages are kept", count())
	}
	check(5)
	check(5)
	check(10)
	if !slices.Equal(keptPages(s, 1), first) {
		t.Fatal("a scan of the past or of the same time replaced pages")
	}

	set(t, s, 20, 1, []rowset.RowID{15_001}, i64(15_101))
	for range 2 {
		check(20)
		check(10)
	}
	check(20)
	check(20)
	second := keptPages(s, 1)
	if changed := slices.IndexFunc(second, func(p *patchedPage) bool { return p != nil && p.from == 20 }); count() != 2 || first[changed] == nil || first[changed] == second[changed] {
		t.Fatalf("%d pages are kept", count())
	}
	if i := slices.IndexFunc(second, func(p *patchedPage) bool { return p != nil }); first[i] != second[i] || second[i].until.Load() != 20 {
		t.Fatal("a page without a new change was made anew")
	}

	for i := range 3 {
		set(t, s, mvcc.Timestamp(28+i), 1, []rowset.RowID{7}, i64(7+1000*(i+1)))
	}
	st.flush(s)
	for range 3 {
		for at := range want {
			check(at)
		}
	}
	set(t, s, 40, 1, []rowset.RowID{19_999}, i64(0))
	want[40] = want[30] - 19_999
	st.flush(s)
	st.merge(s)
	for range 3 {
		for at := range want {
			check(at)
		}
	}
	if count() != 3 {
		t.Fatalf("%d pages are kept", count())
	}
	s.Close()
	if b := st.env.Pages.Stats().Bytes; b != 0 {
		t.Fatalf("%d bytes left in the cache", b)
	}
}

func pagedPages(s *RowSet) int { return s.columns[1].data.Load().index.Pages() }

// TestChangesOfOneScanEach lets every scan find new changes: one in sixteen keeps pages.
func TestChangesOfOneScanEach(t *testing.T) {
	_, s := paged(t)
	want := int64(pagedRows * (pagedRows - 1) / 2)
	kept, made := []*patchedPage(nil), 0
	for i := range 4 * keepEvery {
		set(t, s, mvcc.Timestamp(10+i), 1, []rowset.RowID{50}, i64(50+i))
		if got := sumAt(t, s, mvcc.Max); got != want+int64(i) {
			t.Fatalf("sum %d, want %d", got, want+int64(i))
		}
		now := keptPages(s, 1)
		if !slices.Equal(now, kept) {
			kept = now
			made++
		}
	}
	if made != 1+4 { // to begin with, none is kept
		t.Fatalf("pages were kept %d times", made-1)
	}
}

// TestFewRowsKeepNoPage reads few rows again and again.
func TestFewRowsKeepNoPage(t *testing.T) {
	_, s := paged(t)
	set(t, s, 10, 1, []rowset.RowID{100}, i64(-1))
	q := query{columns: []string{"val"}, spec: rowset.ScanSpec{Lower: encodeKey(s.env.Schema, i32(99)), Upper: encodeKey(s.env.Schema, i32(102))}}
	for range 3 {
		got, _ := q.scan(t, s)
		equalLines(t, got, []string{"99", "-1", "101"})
	}
	if slices.ContainsFunc(keptPages(s, 1), func(p *patchedPage) bool { return p != nil }) {
		t.Fatal("a scan of three rows kept a page")
	}
	sumAt(t, s, 10)
	sumAt(t, s, 10)
	set(t, s, 11, 1, []rowset.RowID{101}, i64(-2))
	got, _ := q.scan(t, s) // takes the page and applies the change
	equalLines(t, got, []string{"99", "-1", "-2"})
	q.spec.Time = mvcc.At(10)
	got, _ = q.scan(t, s)
	equalLines(t, got, []string{"99", "-1", "101"})
}

// TestKeptPagesHaveABudget scans with a cache that is too small for the pages.
func TestKeptPagesHaveABudget(t *testing.T) {
	st, s := paged(t)
	st.env.Pages = cache.New[cache.Page](40 << 10)
	s = st.open(s.Meta())
	want := int64(pagedRows * (pagedRows - 1) / 2)
	for ts := range 3 {
		for row := ts; row < pagedRows; row += 100 {
			set(t, s, mvcc.Timestamp(10+ts), 1, []rowset.RowID{rowset.RowID(row)}, i64(row+1))
			want++
		}
		for range 3 {
			if got := sumAt(t, s, mvcc.Max); got != want {
				t.Fatalf("sum %d, want %d", got, want)
			}
			if x := st.env.Pages.Stats(); x.Bytes > x.Budget {
				t.Fatalf("%d bytes in a cache of %d", x.Bytes, x.Budget)
			}
		}
	}
}

// TestTimesBesideChanges scans at present and past times, several times each, while rows
// are changed and flushed: every commit sets all cells to its time.
func TestTimesBesideChanges(t *testing.T) {
	const rows, commits = 5000, 80
	src := kv(t, rows, schema.Column{Name: "val", Type: schema.Int64, BlockSize: 4096}, func(int) schema.Value { return i64(1) }).at(1)
	st := newStore(t, src.schema)
	s := st.one(src)
	var now atomic.Int64
	now.Store(1)
	var wg sync.WaitGroup
	for back := range int64(3) {
		wg.Go(func() {
			for now.Load() < commits && !t.Failed() {
				at := max(1, now.Load()-back)
				for range 3 {
					if got := sumAt(t, s, mvcc.Timestamp(at)); got != at*rows {
						t.Errorf("sum %d at %d", got, at)
					}
				}
			}
		})
	}
	all := make([]rowset.RowID, rows)
	for i := range all {
		all[i] = rowset.RowID(i)
	}
	for ts := 2; ts <= commits; ts++ {
		v := vector.New(schema.KindInt64, rows)
		must(t, v.AppendConst(i64(ts), rows))
		must(t, s.Apply(mvcc.Timestamp(ts), &rowset.Changes{Kind: rowset.ChangeSet, Rows: all, Columns: []int{1}, Values: []*vector.Vector{v}}))
		now.Store(int64(ts))
		if ts%9 == 0 {
			st.flush(s)
		}
	}
	wg.Wait()
}
