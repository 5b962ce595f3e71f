package memrowset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func intTable(t testing.TB) *schema.Schema {
	return newSchema(t, 1, schema.Column{Name: "k", Type: schema.Int32},
		schema.Column{Name: "v", Type: schema.Int32, Nullable: true})
}

func TestItem29InsertOutOfOrder(t *testing.T) {
	s := newSchema(t, 2, schema.Column{Name: "a", Type: schema.String}, schema.Column{Name: "b", Type: schema.Int32})
	m := New(1, s)
	in := []row{{str("b"), i32(2)}, {str("a"), i32(9)}, {str("b"), i32(-1)}, {str("ab"), i32(0)}, {str(""), i32(5)}}
	for i, r := range in {
		cols, keys := batch(t, s, []row{r})
		if _, err := m.Append(mvcc.Timestamp(i+1), cols, keys, nil); err != nil {
			t.Fatal(err)
		}
		clobber(keys.Encoded.Data())
		clobber(cols[0].Data())
	}
	spec := allColumns(s, mvcc.Max)
	spec.Order = rowset.KeyOrder
	got, keys := scanRows(t, m, spec)
	want := []row{in[4], in[1], in[3], in[2], in[0]}
	if !slices.EqualFunc(got, want, equalRows) || m.Rows() != 5 || !slices.IsSorted(keys) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func clobber(b []byte) {
	for i := range b {
		b[i] = 0xee
	}
}

func TestItem30InsertOfALiveKey(t *testing.T) {
	m := New(1, intTable(t))
	insert(t, m, 1, row{i32(1), i32(10)}, row{i32(2), i32(20)})
	f, ok := lookup(t, m, row{i32(1), i32(0)}, row{i32(3), i32(0)})[encode(m.Schema(), row{i32(1)})]
	if !ok || !f.Live || f.RowSet != m || f.LastChange != 1 {
		t.Fatalf("lookup of a live key: %+v", f)
	}
	cols, keys := batch(t, m.Schema(), []row{{i32(0), i32(5)}, {i32(1), i32(99)}})
	if _, err := m.Append(2, cols, keys, nil); !errors.Is(err, ErrDuplicateKey) {
		t.Fatalf("second insert: %v", err)
	}
	cols, keys = batch(t, m.Schema(), []row{{i32(7), i32(7)}})
	if _, err := m.Append(3, cols, keys, nil); !errors.Is(err, ErrDuplicateKey) {
		t.Fatalf("insert after a failed one: %v", err)
	}
	for _, order := range []rowset.Order{rowset.Unordered, rowset.KeyOrder, rowset.KeyReverse} {
		spec := allColumns(m.Schema(), mvcc.Max)
		spec.Order = order
		rows, _ := scanRows(t, m, spec)
		if len(rows) != 2 || rows[0][1].Int()+rows[1][1].Int() != 30 {
			t.Errorf("order %d: rows are %v", order, rows)
		}
	}
	if n := len(lookup(t, m, row{i32(0)}, row{i32(1)}, row{i32(2)}, row{i32(7)})); n != 2 {
		t.Errorf("%d keys found, want 2", n)
	}
}

func TestItem32SnapshotPerInsert(t *testing.T) {
	m := New(1, intTable(t))
	for i := 1; i <= 5; i++ {
		insert(t, m, mvcc.Timestamp(10*i), row{i32(-i), i32(i)})
	}
	for i := 0; i <= 5; i++ {
		for _, at := range []int{10 * i, 10*i + 9} {
			for _, order := range []rowset.Order{rowset.Unordered, rowset.KeyOrder} {
				spec := allColumns(m.Schema(), mvcc.Timestamp(at))
				spec.Order = order
				if rows, _ := scanRows(t, m, spec); len(rows) != i {
					t.Errorf("snapshot %d sees %d rows, want %d", at, len(rows), i)
				}
			}
		}
		spec := allColumns(m.Schema(), 0)
		spec.Time = mvcc.Interval{Lo: mvcc.Timestamp(10 * i), Hi: 40}
		if rows, _ := scanRows(t, m, spec); len(rows) != max(4-i, 0) {
			t.Errorf("interval from %d sees %d rows", 10*i, len(rows))
		}
	}
}

func TestItem33EmptyAndFullSnapshot(t *testing.T) {
	m := New(1, intTable(t))
	var rows []row
	for i := range 10_000 {
		rows = append(rows, row{i32(i * 7 % 10_000), i32(i)})
	}
	insert(t, m, 5, rows...)
	for at, want := range map[mvcc.Timestamp]int{0: 0, 4: 0, 5: 10_000, mvcc.Max: 10_000} {
		if got, _ := scanRows(t, m, allColumns(m.Schema(), at)); len(got) != want {
			t.Errorf("snapshot %d sees %d rows, want %d", at, len(got), want)
		}
		if n := m.Source(at, at).Rows(); n != want {
			t.Errorf("source at %d has %d rows, want %d", at, n, want)
		}
	}
}

// The anchor is the oldest timestamp for as long as the memrowset exists; timestamps
// come in order, so an older one later is refused.
func TestItem39Anchor(t *testing.T) {
	m := New(1, intTable(t))
	if _, ok := m.MinTime(); ok {
		t.Error("an empty memrowset anchors the log")
	}
	insert(t, m, 5, row{i32(1), i32(1)})
	insert(t, m, 7, row{i32(2), i32(1)})
	insert(t, m, 7, row{i32(3), i32(1)})
	insert(t, m, 9, row{i32(4), i32(1)})
	cols, keys := batch(t, m.Schema(), []row{{i32(5), i32(5)}})
	if _, err := m.Append(8, cols, keys, nil); err == nil {
		t.Error("a timestamp going back is accepted")
	}
	m.Source(mvcc.Max, mvcc.Max)
	lo, _ := m.MinTime()
	if hi, _ := m.MaxTime(); lo != 5 || hi != 9 {
		t.Errorf("times are %d to %d, want 5 to 9", lo, hi)
	}
}

func TestC04ZeroIsNotNull(t *testing.T) {
	s := newSchema(t, 1, schema.Column{Name: "k", Type: schema.Int32},
		schema.Column{Name: "i", Type: schema.Int64, Nullable: true}, schema.Column{Name: "b", Type: schema.Bool, Nullable: true},
		schema.Column{Name: "s", Type: schema.String, Nullable: true})
	for _, n := range []int{1, 63, 64, 65, 1025} {
		m := New(1, s)
		var want []row
		for i := range n {
			r := row{i32(i), i64(7), boolean(true), str("x")}
			switch {
			case i == 30 || i >= 62 && i <= 64:
				r = row{i32(i), i64(0), boolean(false), str("")}
			case i%3 == 1:
				r = row{i32(i), schema.Null, schema.Null, schema.Null}
			}
			want = append(want, r)
		}
		insert(t, m, 1, want[:n/2]...)
		insert(t, m, 2, want[n/2:]...)
		for _, order := range []rowset.Order{rowset.Unordered, rowset.KeyOrder} {
			spec := allColumns(s, mvcc.Max)
			spec.Order = order
			if got, _ := scanRows(t, m, spec); !slices.EqualFunc(got, want, equalRows) {
				t.Errorf("%d rows, order %d: cells differ", n, order)
			}
		}
		dst := []*vector.Vector{vector.New(schema.KindBool, 0), vector.New(schema.KindBytes, 0)}
		for _, r := range want {
			f := lookup(t, m, r)[encode(s, r)]
			if err := m.ReadRow(context.Background(), f.Row, mvcc.Max, []int{2, 3}, dst); err != nil {
				t.Fatal(err)
			}
		}
		for i, r := range want {
			if dst[0].Value(i) != r[2] || dst[1].Value(i) != r[3] {
				t.Errorf("row %d read as %v, %v", i, dst[0].Value(i), dst[1].Value(i))
			}
		}
	}
}

func TestC14KeysWithZeroBytes(t *testing.T) {
	s := newSchema(t, 2, schema.Column{Name: "a", Type: schema.String}, schema.Column{Name: "b", Type: schema.String})
	words := []string{"foo", "foo\x00", "foo\x00bar", "\x00", "\x00\x00", "\x00\x01", "\x00\x02", ""}
	m := New(1, s)
	var rows []row
	for _, a := range words {
		for _, b := range words {
			rows = append(rows, row{str(a), str(b)})
			insert(t, m, mvcc.Timestamp(len(rows)), rows[len(rows)-1])
		}
	}
	found := lookup(t, m, rows...)
	for i, r := range rows {
		if f := found[encode(s, r)]; f.RowSet == nil || int(f.Row) != i {
			t.Errorf("key %d found as row %d", i, f.Row)
		}
	}
	if f := lookup(t, m, row{str("fo"), str("")}, row{str("foo\x00\x00"), str("")}, row{str("\x00"), str("foo\x00b")}); len(f) != 0 {
		t.Errorf("%d absent keys found", len(f))
	}
}

// A key is found whichever part of the memrowset holds it, and however it was written:
// row by row, in batches, from vectors in dictionary form.
func TestC16EveryKeyIsFound(t *testing.T) {
	s := newSchema(t, 1, schema.Column{Name: "k", Type: schema.String}, schema.Column{Name: "v", Type: schema.Int64})
	m := New(1, s)
	key := func(i int) string {
		switch i {
		case 0:
			return ""
		case 1:
			return strings.Repeat("x", 100<<10)
		}
		return fmt.Sprintf("key-%07d", i*7919%1_000_003)
	}
	const n = 2*treeRows + 15_000
	var rows []row
	for i := range n {
		rows = append(rows, row{str(key(i)), i64(i)})
	}
	for at, size := 0, 1; at < n; {
		k := min(size, n-at)
		cols, keys := batch(t, s, rows[at:at+k])
		if size > 100 {
			cols[0] = dictionary(cols[0])
			keys.Columns = cols[:1]
		}
		if _, err := m.Append(mvcc.Timestamp(at+1), cols, keys, nil); err != nil {
			t.Fatal(err)
		}
		at += k
		size = min(size+1+size/8, 9000)
	}
	x := m.index.Load()
	if len(x.runs) == 0 || len(x.recent) == 0 || x.active.len() == 0 {
		t.Fatalf("%d runs, %d recent ones and %d rows in the tree: one of them is not tested", len(x.runs), len(x.recent), x.active.len())
	}
	checkOrder(t, m)
	if found := lookup(t, m, rows...); len(found) != n {
		t.Errorf("%d of %d keys found together", len(found), n)
	}
	for i := 0; i < n; i += 97 {
		if len(lookup(t, m, rows[i])) != 1 {
			t.Errorf("key %d not found alone", i)
		}
		if len(lookup(t, m, row{str(key(i) + "!"), i64(0)})) != 0 {
			t.Errorf("a longer key than %d is found", i)
		}
	}
}

// checkOrder checks that a flush gets every row once, in key order.
func checkOrder(t *testing.T, m *MemRowSet) {
	t.Helper()
	src := m.Source(mvcc.Max, mvcc.Max)
	if int64(src.Rows()) != m.Rows() {
		t.Fatalf("source of %d rows, want %d", src.Rows(), m.Rows())
	}
	for i := 1; i < src.Rows(); i++ {
		if bytes.Compare(m.keys.at(src.rows[i-1]), m.keys.at(src.rows[i])) >= 0 {
			t.Fatalf("rows %d and %d do not ascend", i-1, i)
		}
	}
}

// Many batches of the smallest size that makes a run: they are merged when they are
// many, and again when they are large enough.
func TestRecentRunsAreMerged(t *testing.T) {
	s := newSchema(t, 1, schema.Column{Type: schema.Int64})
	m := New(1, s)
	largest := 0
	for i := range treeRows/bulkRows + maxRecent {
		var rows []row
		for k := range bulkRows {
			rows = append(rows, row{i64(k*100_003 + i)})
		}
		cols, keys := batch(t, s, rows)
		if _, err := m.Append(mvcc.Timestamp(i+1), cols, keys, nil); err != nil {
			t.Fatal(err)
		}
		largest = max(largest, len(m.index.Load().recent))
	}
	if x := m.index.Load(); len(x.runs) != 1 || largest != maxRecent-1 {
		t.Errorf("%d runs, %d recent ones at most", len(x.runs), largest)
	}
	checkOrder(t, m)
}

// dictionary returns v in dictionary form.
func dictionary(v *vector.Vector) *vector.Vector {
	codes := make([]uint32, v.Len())
	for i := range codes {
		codes[i] = uint32(v.Len() - 1 - i)
	}
	words := vector.New(schema.KindBytes, v.Len())
	for i := range v.Len() {
		if err := words.AppendBytes(v.BytesAt(v.Len() - 1 - i)); err != nil {
			panic(err)
		}
	}
	return vector.FromCodes(codes, words, v.Valid())
}

// A source taken after rotation holds every row while scans go on.
func TestC43ScansDuringFlush(t *testing.T) {
	m := New(1, intTable(t))
	for i := range 20 {
		insert(t, m, mvcc.Timestamp(i+1), row{i32(i), i32(i)})
	}
	src := m.Source(mvcc.Max, mvcc.Max)
	dst := vector.New(schema.KindInt32, 0)
	for at := 0; at < src.Rows(); at += 3 {
		if err := src.Column(context.Background(), 0, at, min(at+3, src.Rows()), dst); err != nil {
			t.Fatal(err)
		}
		if rows, _ := scanRows(t, m, allColumns(m.Schema(), mvcc.Max)); len(rows) != 20 {
			t.Fatalf("%d rows during the flush", len(rows))
		}
		if len(lookup(t, m, row{i32(at), i32(0)})) != 1 {
			t.Fatalf("key %d is gone during the flush", at)
		}
	}
	for i, k := range vector.Values[int32](dst) {
		if int(k) != i {
			t.Fatalf("row %d of the source is %d", i, k)
		}
	}
}

func TestAppendOfSomeKeys(t *testing.T) {
	m := New(1, intTable(t))
	cols, keys := batch(t, m.Schema(), []row{{i32(3), i32(30)}, {i32(1), i32(10)}, {i32(2), schema.Null}, {i32(4), i32(40)}})
	first, err := m.Append(7, cols, keys, []int32{1, 3})
	if err != nil || first != 0 {
		t.Fatal(first, err)
	}
	rows, _ := scanRows(t, m, allColumns(m.Schema(), 7))
	if want := []row{{i32(2), schema.Null}, {i32(4), i32(40)}}; !slices.EqualFunc(rows, want, equalRows) {
		t.Errorf("got %v", rows)
	}
	if first, err := m.Append(8, cols, keys, []int32{0}); err != nil || first != 2 {
		t.Errorf("second append begins at %d, %v", first, err)
	}
}

func TestReadRowRefusesWhatIsNotThere(t *testing.T) {
	m := New(1, intTable(t))
	insert(t, m, 5, row{i32(1), i32(2)})
	dst := []*vector.Vector{vector.New(schema.KindInt32, 1)}
	if err := m.ReadRow(context.Background(), 1, mvcc.Max, []int{1}, dst); err == nil {
		t.Error("a row past the end is read")
	}
	if err := m.ReadRow(context.Background(), 0, 4, []int{1}, dst); err == nil {
		t.Error("a row is read before its insert")
	}
	if dst[0].Len() != 0 {
		t.Error("cells were delivered with an error")
	}
}

func TestWaitUnpinned(t *testing.T) {
	m := New(1, intTable(t))
	if err := m.WaitUnpinned(context.Background()); err != nil {
		t.Fatal(err)
	}
	m.Pin()
	m.Pin()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.WaitUnpinned(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("wait with a cancelled context: %v", err)
	}
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- m.WaitUnpinned(context.Background()) }()
	}
	m.Unpin()
	select {
	case <-done:
		t.Fatal("a wait ended while a pin was held")
	case <-time.After(time.Millisecond):
	}
	m.Unpin()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// What the memrowset says it holds is what the heap grew by, within a fifth.
func TestMemoryIsCharged(t *testing.T) {
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	g := newIngest(t, 100)
	before := heap()
	m := New(1, g.schema)
	for range 150 {
		g.append(t, m)
	}
	grown, said := heap()-before, m.MemoryBytes()
	if said < grown*8/10 || said > grown*12/10 {
		t.Errorf("%d rows: MemoryBytes %d, heap grew by %d", m.Rows(), said, grown)
	}
	if b := m.BytesPerRow(); b < 88 || b > 104 {
		t.Errorf("%d bytes a row", b)
	}
	runtime.KeepAlive(m)
	small := New(2, g.schema)
	insert(t, small, 1, g.row(0))
	if n := small.MemoryBytes(); n > 64<<10 {
		t.Errorf("one row holds %d bytes", n)
	}
}

// A memrowset that expects rows makes its hash table once, and not before they come.
func TestExpect(t *testing.T) {
	g := newIngest(t, 100)
	m := New(1, g.schema)
	m.Expect(20 * ingestRows)
	if n := m.MemoryBytes(); n > 64<<10 {
		t.Errorf("an empty one holds %d bytes", n)
	}
	places := map[int]bool{}
	var batches []*rowset.Keys
	for ts := range mvcc.Timestamp(20) {
		cols, keys := g.batch()
		_, err := m.Append(ts+1, cols, keys, nil)
		if err != nil {
			t.Fatal(err)
		}
		places[len(*m.table.places.Load())], batches = true, append(batches, keys)
	}
	if len(places) != 3 { // two batches are less than an eighth
		t.Errorf("sizes of the table on the way: %v", places)
	}
	found := 0
	for _, keys := range batches {
		m.table.find(keys, all(keys.Len()), rowset.RowID(m.Rows()), func(int32, rowset.RowID) { found++ })
	}
	if found != int(m.Rows()) {
		t.Errorf("%d of %d rows found", found, m.Rows())
	}
}

func TestItem40ReadersBesideAWriter(t *testing.T) {
	const n, readers = 100_000, 8
	s := newSchema(t, 1, schema.Column{Name: "k", Type: schema.Int64}, schema.Column{Name: "a", Type: schema.Int64, Nullable: true},
		schema.Column{Name: "s", Type: schema.String}, schema.Column{Name: "b", Type: schema.Bool})
	m := New(1, s)
	var visible mvccMark
	done := make(chan struct{})
	errs := make(chan error, readers)
	for r := range readers {
		go func() { errs <- readUntil(m, &visible, done, rowset.Order(r%3)) }()
	}
	rng := rand.New(rand.NewPCG(1, 40))
	perm := rng.Perm(n)
	for at, ts := 0, mvcc.Timestamp(1); at < n; ts++ {
		k := min(1+rng.IntN(400), n-at)
		var rows []row
		for _, i := range perm[at : at+k] {
			r := row{i64(i), i64(-i), str(fmt.Sprint(i)), boolean(i%2 == 1)}
			if i%5 == 0 {
				r[1] = schema.Null
			}
			rows = append(rows, r)
		}
		insert(t, m, ts, rows...)
		visible.Store(uint64(ts))
		at += k
	}
	close(done)
	for range readers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// readUntil scans again and again, checking each row, and once more after done.
func readUntil(m *MemRowSet, visible *mvccMark, done chan struct{}, order rowset.Order) error {
	seen := 0
	for last := false; !last; {
		select {
		case <-done:
			last = true
		default:
		}
		n, err := checkScan(m, mvcc.Timestamp(visible.Load()), order)
		if err != nil {
			return err
		}
		if n < seen || last && n != 100_000 {
			return fmt.Errorf("order %d: %d rows after %d", order, n, seen)
		}
		seen = n
		runtime.Gosched()
	}
	return nil
}

func checkScan(m *MemRowSet, at mvcc.Timestamp, order rowset.Order) (int, error) {
	spec := &rowset.ScanSpec{Schema: m.Schema(), Time: mvcc.At(at), Columns: []int{0, 1, 2, 3}, Order: order, WithKeys: true,
		Stats: rowset.NewStats(4)}
	it, err := m.Scan(context.Background(), spec)
	if err != nil {
		return 0, err
	}
	defer it.Close()
	n, prev := 0, []byte(nil)
	for {
		b, err := it.Next(context.Background())
		if b == nil || err != nil {
			return n, err
		}
		for i := range b.Rows {
			k := vector.Values[int64](b.Columns[0])[i]
			null := b.Columns[1].IsNull(i)
			switch key := b.Keys.BytesAt(i); {
			case order != rowset.Unordered && prev != nil && bytes.Compare(prev, key) < 0 != (order == rowset.KeyOrder):
				return 0, fmt.Errorf("order %d: keys out of order", order)
			case null != (k%5 == 0) || !null && vector.Values[int64](b.Columns[1])[i] != -k,
				string(b.Columns[2].BytesAt(i)) != fmt.Sprint(k), b.Columns[3].Bits().Get(i) != (k%2 == 1):
				return 0, fmt.Errorf("row of key %d is half-written", k)
			default:
				prev = append(prev[:0], key...)
			}
		}
		n += b.Rows
	}
}

// Sixty-four scans of different shapes, a third of them cancelled, and lookups.
func TestC20ManyScansAtOnce(t *testing.T) {
	g := newIngest(t, 50)
	m := New(1, g.schema)
	for range 80 {
		g.append(t, m)
	}
	var want [3]int
	for order := range want {
		want[order] = sumOf(t, context.Background(), m, rowset.Order(order))
	}
	done := make(chan error)
	for i := range 64 {
		go func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%3 == 0 {
				cancel()
			}
			got := sumOf(t, ctx, m, rowset.Order(i%4%3))
			if i%3 == 0 && got != -1 || i%3 != 0 && got != want[i%4%3] {
				done <- fmt.Errorf("scan %d sums to %d", i, got)
				return
			}
			done <- nil
		}()
	}
	for range 64 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// sumOf adds up a column, -1 when the scan fails.
func sumOf(t *testing.T, ctx context.Context, m *MemRowSet, order rowset.Order) int {
	spec := allColumns(m.Schema(), mvcc.Max)
	spec.Order, spec.MaxRows = order, 700
	it, err := m.Scan(ctx, spec)
	if err != nil {
		t.Error(err)
		return -1
	}
	defer it.Close()
	sum := 0
	for {
		b, err := it.Next(ctx)
		if err != nil {
			return -1
		}
		if b == nil {
			return sum
		}
		for _, x := range vector.Values[int64](b.Columns[1]) {
			sum += int(x)
		}
	}
}

func TestReadsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("pools drop what they hold under the race detector")
	}
	g := newIngest(t, 100)
	m := New(1, g.schema)
	for range 80 {
		g.append(t, m)
	}
	_, keys := batch(t, g.schema, []row{g.row(5), g.row(70_000), g.row(1 << 25)})
	which, found := all(3), make([]rowset.Found, 3)
	columns, dst := []int{0, 3}, []*vector.Vector{vector.New(schema.KindBytes, 1), vector.New(schema.KindFloat64, 1)}
	ctx := context.Background()
	zero := func(what string, f func()) {
		t.Helper()
		if n := testing.AllocsPerRun(50, f); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	zero("lookup", func() {
		if err := m.Lookup(ctx, keys, which, found); err != nil || found[0].RowSet == nil {
			t.Fatal(err)
		}
	})
	zero("read row", func() {
		dst[0].Reset(schema.KindBytes)
		dst[1].Reset(schema.KindFloat64)
		if err := m.ReadRow(ctx, 77, mvcc.Max, columns, dst); err != nil {
			t.Fatal(err)
		}
	})
	for _, order := range []rowset.Order{rowset.Unordered, rowset.KeyOrder} {
		spec := allColumns(g.schema, mvcc.Max)
		spec.Order, spec.MaxRows = order, 500
		it, err := m.Scan(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		zero(fmt.Sprintf("batch in order %d", order), func() {
			if b, err := it.Next(ctx); b == nil || err != nil {
				t.Fatal(b, err)
			}
		})
	}
}
