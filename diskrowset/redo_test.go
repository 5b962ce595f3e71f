package diskrowset

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/filecache"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
	"pgregory.net/rapid"
)

// flush writes the oldest unflushed changes into a file and swaps it in.
func (st *store) flush(s *RowSet) *rowset.Meta {
	st.t.Helper()
	m := s.FreezeDeltas()
	if m == nil {
		st.t.Fatal("nothing to flush")
	}
	w, err := WriteRedo(bg, m, st.options())
	must(st.t, err)
	b := st.read(path.Join(dir, DeltaName(w.File)))
	if int64(len(b)) != w.Size || binfmt.CRC(b) != w.Checksum {
		st.t.Fatalf("file of %d bytes, want %d, or another checksum", len(b), w.Size)
	}
	meta := s.MetaWith(m, &w)
	must(st.t, s.FlushedDeltas(m, &w, meta))
	return meta
}

// merge makes one file of all files of changes.
func (st *store) merge(s *RowSet) *rowset.Meta {
	st.t.Helper()
	w, n, err := s.MergeRedo(bg, st.options())
	must(st.t, err)
	meta := s.MetaMerged(n, &w)
	must(st.t, s.MergedDeltas(n, &w, meta))
	return meta
}

// fresh opens the rowset anew, with caches of its own. The caller closes it.
func (st *store) fresh(m *rowset.Meta) *RowSet {
	st.t.Helper()
	env := st.env
	env.Files, env.Pages = filecache.New(st.fs, 4), cache.New[cache.Page](64<<20)
	s, err := Open(m, env)
	must(st.t, err)
	return s
}

// set sets one column of rows to given values.
func set(t tb, s *RowSet, ts mvcc.Timestamp, col int, rows []rowset.RowID, vals ...schema.Value) {
	t.Helper()
	v := vector.New(s.env.Schema.Column(col).Kind(), len(vals))
	for _, x := range vals {
		must(t, v.Append(x))
	}
	must(t, s.Apply(ts, &rowset.Changes{Kind: rowset.ChangeSet, Rows: rows, Columns: []int{col}, Values: []*vector.Vector{v}}))
}

func del(t tb, s *RowSet, ts mvcc.Timestamp, rows ...rowset.RowID) {
	t.Helper()
	must(t, s.Apply(ts, &rowset.Changes{Kind: rowset.ChangeDel, Rows: rows}))
}

// history is what became of the rows of a source: a plain model of changes.
type history struct {
	src     *rows
	cells   map[[2]int][]version // by row and column, oldest first
	deleted map[int]mvcc.Timestamp
	last    map[int]mvcc.Timestamp
	now     mvcc.Timestamp
}

type version struct {
	ts mvcc.Timestamp
	v  schema.Value
}

func newHistory(src *rows) *history {
	return &history{src: src, cells: map[[2]int][]version{}, deleted: map[int]mvcc.Timestamp{},
		last: map[int]mvcc.Timestamp{}, now: src.times[0]}
}

// at returns the rows at a time, and which of them are live.
func (h *history) at(t tb, ts mvcc.Timestamp) (*rows, vector.Bitmap) {
	now := *h.src
	now.cols = slices.Clone(now.cols)
	changed := map[int]*vector.Vector{}
	for k := range h.cells {
		changed[k[1]] = nil
	}
	for c := range changed {
		v := vector.New(now.cols[c].Kind(), now.Rows())
		for i := range now.Rows() {
			x := now.cols[c].Value(i)
			for _, y := range h.cells[[2]int{i, c}] {
				if y.ts <= ts {
					x = y.v
				}
			}
			must(t, v.Append(x))
		}
		now.cols[c] = v
	}
	live := vector.NewBitmap(now.Rows())
	live.SetRange(0, now.Rows())
	for i, d := range h.deleted {
		if d <= ts {
			live.Clear(i)
		}
	}
	for i, x := range now.times {
		if x > ts {
			live.Clear(i)
		}
	}
	return &now, live
}

// step applies a random commit.
func (h *history) step(t *rapid.T, s *RowSet) {
	h.now += mvcc.Timestamp(rapid.IntRange(1, 3).Draw(t, "pause"))
	sch := h.src.schema
	c := &rowset.Changes{Kind: rowset.ChangeDel}
	if sch.Len() > sch.NumKey() && rapid.IntRange(0, 3).Draw(t, "delete") > 0 {
		c.Kind = rowset.ChangeSet
	}
	from, n := rapid.IntRange(0, h.src.Rows()-1).Draw(t, "row"), rapid.SampledFrom([]int{1, 5, 400}).Draw(t, "count")
	stride := rapid.SampledFrom([]int{1, 1, 2, 97}).Draw(t, "stride")
	for i := from; i < h.src.Rows() && len(c.Rows) < n; i += stride {
		if _, dead := h.deleted[i]; !dead {
			c.Rows = append(c.Rows, rowset.RowID(i))
		}
	}
	if len(c.Rows) == 0 {
		return
	}
	if rapid.Bool().Draw(t, "backwards") {
		slices.Reverse(c.Rows)
	}
	for i := sch.NumKey(); i < sch.Len() && c.Kind == rowset.ChangeSet; i++ {
		if i == sch.Len()-1 && len(c.Columns) == 0 || rapid.Bool().Draw(t, "column") {
			c.Columns = append(c.Columns, i)
			c.Values = append(c.Values, h.newCells(t, c.Rows, i))
		}
	}
	for _, row := range c.Rows {
		if h.last[int(row)] = h.now; c.Kind == rowset.ChangeDel {
			h.deleted[int(row)] = h.now
		}
	}
	must(t, s.Apply(h.now, c))
}

func (h *history) newCells(t *rapid.T, rows []rowset.RowID, i int) *vector.Vector {
	col := h.src.schema.Column(i)
	v := vector.New(col.Kind(), len(rows))
	seed := rapid.Int64Range(0, 1000).Draw(t, "seed")
	for k, row := range rows {
		x := value(col.Kind(), seed+int64(k%50))
		if col.Nullable && (seed+int64(k))%5 == 0 {
			x = schema.Null
		}
		must(t, v.Append(x))
		h.cells[[2]int{int(row), i}] = append(h.cells[[2]int{int(row), i}], version{h.now, x})
	}
	return v
}

// check compares scans, lookups and reads of rows with the model at a time.
func (h *history) check(t *rapid.T, s *RowSet, ts mvcc.Timestamp) {
	now, live := h.at(t, ts)
	q := query{spec: rowset.ScanSpec{Time: mvcc.At(ts), MaxRows: rapid.SampledFrom([]int{0, 7, 1000}).Draw(t, "max")}}
	if rapid.Bool().Draw(t, "filtered") {
		q.where = drawFilter(t, h.src.schema, now, 1)
	}
	want := live
	if spec := q.bind(t, h.src.schema); spec.Filter != nil {
		want = slices.Clone(live)
		must(t, spec.Filter.Eval(now.Rows(), want, func(col int) (*vector.Vector, error) { return now.cols[col], nil }))
	}
	lines := now.lines(want.Get)
	for _, q.spec.NoPrune = range []bool{false, true} {
		got, stats := q.scan(t, s)
		equalLines(t, got, lines)
		checkStats(t, stats, len(lines))
	}
	q.spec.Order = rowset.KeyReverse
	got, _ := q.scan(t, s)
	slices.Reverse(lines)
	equalLines(t, got, lines)
	h.checkRows(t, s, now, live, ts)
}

func (h *history) checkRows(t *rapid.T, s *RowSet, now *rows, live vector.Bitmap, ts mvcc.Timestamp) {
	found, err := resolve(s, now.lookupKeys())
	must(t, err)
	for i, f := range found {
		_, dead := h.deleted[i]
		if want := max(h.last[i], now.times[i]); f.RowSet == nil || f.Live == dead || f.LastChange != want {
			t.Fatalf("row %d: %+v, want a change at %d, deleted %v", i, f, want, dead)
		}
	}
	all := make([]int, h.src.schema.Len())
	for i := range all {
		all[i] = i
	}
	for range 20 {
		i := rapid.IntRange(0, now.Rows()-1).Draw(t, "point")
		var row []*vector.Vector
		for k := range all {
			row = append(row, vector.New(h.src.schema.Column(k).Kind(), 1))
		}
		must(t, s.ReadRow(bg, rowset.RowID(i), ts, all, row))
		if got, want := line(row, 0, nil), line(now.cols, i, nil); got != want {
			t.Fatalf("row %d at %d: %s, want %s", i, ts, got, want)
		}
	}
	if n := s.Live(); n != s.Rows()-int64(len(h.deleted)) {
		t.Fatalf("%d rows live, %d deleted of %d", n, len(h.deleted), s.Rows())
	}
}

// TestItem48ChangesModel applies random changes of random schemas, flushes some of them
// into files, opens the rowset anew, and compares every answer with the model at times
// between the commits.
func TestItem48ChangesModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sch := drawSchema(rt)
		src := drawRows(rt, sch).at(1000)
		st := newStore(rt, sch)
		defer st.finish()
		st.env.Pages = cache.New[cache.Page](rapid.SampledFrom([]int64{0, 16 << 10, 64 << 20}).Draw(rt, "cache"))
		s, h := st.one(src), newHistory(src)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			h.step(rt, s)
			if s.MemoryBytes() > 0 && rapid.IntRange(0, 2).Draw(rt, "flush") == 0 {
				meta := st.flush(s)
				if len(meta.Redo) > 1 && rapid.IntRange(0, 2).Draw(rt, "merge") == 0 {
					meta = st.merge(s)
				}
				if rapid.Bool().Draw(rt, "reopen") {
					s.Close()
					s = st.open(meta)
				}
			}
			if rapid.IntRange(0, 3).Draw(rt, "look") == 0 {
				h.check(rt, s, mvcc.Timestamp(rapid.IntRange(max(1000, int(h.now)-3), int(h.now)+1).Draw(rt, "present")))
			}
		}
		for range 3 {
			h.check(rt, s, mvcc.Timestamp(rapid.IntRange(1000, int(h.now)+1).Draw(rt, "snapshot")))
		}
	})
}

// TestItem42FlushedChangesKeepValues updates a tenth of the rows: what is in memory
// counts a thousand changes, and after the flush none, with the same values.
func TestItem42FlushedChangesKeepValues(t *testing.T) {
	src := kv(t, 10000, col("val", schema.Int64), func(i int) schema.Value { return i64(i) }).at(1)
	st := newStore(t, src.schema)
	s := st.one(src)
	var rows []rowset.RowID
	var vals []schema.Value
	for i := range 1000 {
		rows = append(rows, rowset.RowID(i*10))
		vals = append(vals, i64(-i))
	}
	set(t, s, 5, 1, rows, vals...)
	if n := s.deltas.Load().active.Entries(); n != 1000 || s.OldestChange() != 5 {
		t.Fatalf("%d changes, the oldest at %d", n, s.OldestChange())
	}
	want, _ := query{}.scan(t, s)
	meta := st.flush(s)
	if s.MemoryBytes() != 0 || s.OldestChange() != 0 || s.FreezeDeltas() != nil || !s.ChangedAt(mvcc.Max) {
		t.Fatal("changes are left in memory")
	}
	if d := meta.Redo[0]; d.MinTime != 5 || d.MaxTime != 5 || d.Deletes != 0 || d.Updates[11] != 1000 || len(d.Updates) != 1 || meta.DurableTo != 5 {
		t.Fatalf("%+v", d)
	}
	fresh := st.fresh(meta)
	defer fresh.Close()
	for _, s := range []*RowSet{s, fresh} {
		got, _ := query{}.scan(t, s)
		equalLines(t, got, want)
	}
}

// TestItem43DeletedRow deletes one of two rows: snapshots before see it, later ones do
// not, and its key resolves to a dead row, before and after the flush.
func TestItem43DeletedRow(t *testing.T) {
	src := kv(t, 2, col("val", schema.Int64), func(i int) schema.Value { return i64(i) }).at(1)
	st := newStore(t, src.schema)
	s := st.one(src)
	del(t, s, 5, 0)
	check := func() {
		t.Helper()
		for at, want := range map[mvcc.Timestamp]int{4: 2, 5: 1, 9: 1} {
			if got, _ := (query{spec: rowset.ScanSpec{Time: mvcc.At(at)}}).scan(t, s); len(got) != want {
				t.Errorf("%d rows at %d, want %d", len(got), at, want)
			}
		}
		found, err := resolve(s, src.lookupKeys())
		must(t, err)
		if found[0].Live || found[0].LastChange != 5 || !found[1].Live || s.Live() != 1 {
			t.Errorf("%+v, %d live", found, s.Live())
		}
	}
	check()
	m := s.FreezeDeltas()
	check()
	w, err := WriteRedo(bg, m, st.options())
	must(t, err)
	must(t, s.FlushedDeltas(m, &w, s.MetaWith(m, &w)))
	check()
	if s.Meta().LiveRows != 1 || s.Meta().Redo[0].Deletes != 1 {
		t.Errorf("%+v", s.Meta())
	}
}

// TestItem44Versions reads each of five versions of a row at its own snapshot.
func TestItem44Versions(t *testing.T) {
	src := kv(t, 1, col("val", schema.Int64), func(int) schema.Value { return i64(1) }).at(10)
	st := newStore(t, src.schema)
	s := st.one(src)
	for v := 2; v <= 5; v++ {
		set(t, s, mvcc.Timestamp(10*v), 1, []rowset.RowID{0}, i64(v))
	}
	for range 2 {
		for v := 1; v <= 5; v++ {
			got, _ := query{columns: []string{"val"}, spec: rowset.ScanSpec{Time: mvcc.At(mvcc.Timestamp(10*v + 9))}}.scan(t, s)
			equalLines(t, got, []string{fmt.Sprint(v)})
		}
		if s.MemoryBytes() > 0 {
			st.flush(s)
		}
	}
}

// TestItem46DenseChanges updates even rows and applies them over blocks of 100 rows
// from row 0 to past the last change, with small pages too.
func TestItem46DenseChanges(t *testing.T) {
	for _, block := range []int{0, 512} {
		src := kv(t, 30000, schema.Column{Name: "val", Type: schema.Int64, BlockSize: block}, func(i int) schema.Value { return i64(i) }).at(1)
		st := newStore(t, src.schema)
		s := st.one(src)
		var rows []rowset.RowID
		var vals []schema.Value
		for i := 3000; i < 27000; i += 2 {
			rows, vals = append(rows, rowset.RowID(i)), append(vals, i64(-i))
		}
		set(t, s, 5, 1, rows, vals...)
		f := st.flushedFile(s)
		if f.meta.Updates[11] != 12000 || f.HasLife() || f.Touches(0) || !f.Touches(1) {
			t.Fatalf("%+v", f.meta)
		}
		var cells delta.Overlay
		for from := 0; from < 30000; from += 100 {
			base := src.cols[1].Slice(from, from+100)
			cells.Reset(base)
			must(t, f.Patch(bg, mvcc.At(5), 1, from, from+100, &cells))
			got, err := cells.Result()
			must(t, err)
			changed := from >= 3000 && from < 27000
			if (got != base) != changed {
				t.Fatalf("rows from %d: copied %v", from, got != base)
			}
			for i, x := range got.Int64s() {
				want := int64(from + i)
				if changed && i%2 == 0 {
					want = -want
				}
				if x != want {
					t.Fatalf("row %d is %d", from+i, x)
				}
			}
		}
	}
}

// flushedFile flushes and returns the newest file.
func (st *store) flushedFile(s *RowSet) *deltaFile {
	st.t.Helper()
	st.flush(s)
	all := s.deltas.Load().files()
	return all[len(all)-1]
}

// TestItem47TimesSkipFiles checks that a snapshot before a file's first change does not
// read it, that others see what they must, and that an empty file is refused.
func TestItem47TimesSkipFiles(t *testing.T) {
	src := kv(t, 100, col("val", schema.Int64), func(i int) schema.Value { return i64(i) }).at(1)
	st := newStore(t, src.schema)
	s := st.one(src)
	for ts := mvcc.Timestamp(10); ts <= 20; ts++ {
		set(t, s, ts, 1, []rowset.RowID{3}, i64(int(ts)))
	}
	f := st.flushedFile(s)
	for at, want := range map[mvcc.Timestamp]int{9: 0, 10: 1, 15: 1, 21: 1} {
		if n := len(s.deltas.Load().visible(at)); n != want {
			t.Errorf("%d files at %d", n, at)
		}
	}
	got, _ := query{spec: rowset.ScanSpec{Time: mvcc.At(9)}}.scan(t, s)
	if equalLines(t, got, src.lines(nil)); f.data.Load() != nil {
		t.Error("a scan before the first change opened the file")
	}
	for at, want := range map[mvcc.Timestamp]int{15: 15, 21: 20} {
		got, _ := query{columns: []string{"val"}, spec: rowset.ScanSpec{Time: mvcc.At(at)}}.scan(t, s)
		if got[3] != fmt.Sprint(want) {
			t.Errorf("at %d: %s", at, got[3])
		}
	}
	before, _ := st.fs.List(dir)
	_, err := WriteRedo(bg, delta.NewMemStore(src.schema), st.options())
	if after, _ := st.fs.List(dir); !errors.Is(err, ErrNoChanges) || len(after) != len(before) {
		t.Errorf("empty file: %v, %v", err, after)
	}
}

// TestScanKeepsItsChanges flushes and changes rows while a scan is in progress.
func TestScanKeepsItsChanges(t *testing.T) {
	src := kv(t, 300, col("val", schema.Int64), func(i int) schema.Value { return i64(i) }).at(1)
	st := newStore(t, src.schema)
	s := st.one(src)
	set(t, s, 5, 1, []rowset.RowID{200}, i64(-1))
	it, err := s.Scan(bg, query{spec: rowset.ScanSpec{Time: mvcc.At(5), MaxRows: 100}}.bind(t, src.schema))
	must(t, err)
	defer it.Close()
	st.flush(s)
	set(t, s, 6, 1, []rowset.RowID{200}, i64(-2))
	del(t, s, 7, 250)
	n := 0
	for {
		b, err := it.Next(bg)
		must(t, err)
		if b == nil {
			break
		}
		if n == 200 && b.Columns[1].Int64s()[0] != -1 {
			t.Errorf("row 200 is %d", b.Columns[1].Int64s()[0])
		}
		n += b.Selected
	}
	if n != 300 || s.Live() != 299 || s.OldestChange() != 6 {
		t.Errorf("%d rows, %d live, oldest change at %d", n, s.Live(), s.OldestChange())
	}
}

// TestFailedFlushComesFirstAgain freezes, fails, changes more, and flushes in order.
func TestFailedFlushComesFirstAgain(t *testing.T) {
	src := kv(t, 10, col("val", schema.Int64), func(i int) schema.Value { return i64(i) }).at(1)
	st := newStore(t, src.schema)
	s := st.one(src)
	set(t, s, 5, 1, []rowset.RowID{1}, i64(-5))
	m := s.FreezeDeltas()
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := WriteRedo(ctx, m, st.options()); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	set(t, s, 6, 1, []rowset.RowID{1}, i64(-6))
	if again := s.FreezeDeltas(); again != m || s.OldestChange() != 5 {
		t.Fatal("later changes are flushed first")
	}
	if meta := st.flush(s); meta.DurableTo != 5 || s.OldestChange() != 6 {
		t.Fatalf("durable to %d, oldest change at %d", meta.DurableTo, s.OldestChange())
	}
	st.flush(s)
	got, _ := query{columns: []string{"val"}}.scan(t, s)
	if got[1] != "-6" || len(s.Meta().Redo) != 2 {
		t.Errorf("%v", got)
	}
}

// TestZonesHoldWhereNothingChanged changes a few rows: only their pages are read for a
// filter that no stored cell passes.
func TestZonesHoldWhereNothingChanged(t *testing.T) {
	src := kv(t, 50000, schema.Column{Name: "val", Type: schema.Int64, BlockSize: 4096}, func(i int) schema.Value { return i64(i) }).at(1)
	st := newStore(t, src.schema)
	s := st.one(src)
	set(t, s, 5, 1, []rowset.RowID{10, 40000}, i64(-1), i64(-2))
	st.flush(s)
	got, stats := query{columns: []string{"val"}, where: predicate.Lt("val", 0)}.scan(t, s)
	equalLines(t, got, []string{"-1", "-2"})
	if c := &stats.Columns[1]; c.Cached.Load()+c.Decoded.Load() != 2 || c.ByZone.Load() < 10 {
		t.Errorf("%d pages read, %d skipped", c.Cached.Load()+c.Decoded.Load(), c.ByZone.Load())
	}
}

// TestItem49MergedFiles merges three files with changes of the same rows and others:
// every value and time is kept, in order, and the old files go with their last reader.
func TestItem49MergedFiles(t *testing.T) {
	src := small(t, 60).at(1)
	st := newStore(t, src.schema)
	s := st.one(src)
	for k := range 3 {
		var rows []rowset.RowID
		var vals []schema.Value
		for i := range 10 {
			rows, vals = append(rows, rowset.RowID(5*k+i)), append(vals, f64(float64(100*k+i)))
		}
		set(t, s, mvcc.Timestamp(10*k+10), 2, rows, vals...)
		set(t, s, mvcc.Timestamp(10*k+11), 2, rows[:1], f64(-1))
		del(t, s, mvcc.Timestamp(10*k+12), rowset.RowID(50-k))
		st.flush(s)
	}
	answers := func(s *RowSet) (out [][]string) {
		for at := mvcc.Timestamp(9); at < 35; at++ {
			got, _ := query{spec: rowset.ScanSpec{Time: mvcc.At(at)}}.scan(t, s)
			out = append(out, got)
		}
		return out
	}
	want := answers(s)
	it, err := s.Scan(bg, query{}.bind(t, src.schema))
	must(t, err)
	meta := st.merge(s)
	if names, _ := st.fs.List(dir); len(names) != 5 {
		t.Errorf("under a scan: %v", names)
	}
	if b, err := it.Next(bg); err != nil || b.Selected != 57 {
		t.Errorf("%+v, %v", b, err)
	}
	it.Close()
	if names, _ := st.fs.List(dir); len(names) != 2 {
		t.Errorf("after it: %v", names)
	}
	fresh := st.fresh(meta)
	defer fresh.Close()
	for _, s := range []*RowSet{s, fresh} {
		for i, got := range answers(s) {
			equalLines(t, got, want[i])
		}
	}
	d := meta.Redo[0]
	if len(meta.Redo) != 1 || d.MinTime != 10 || d.MaxTime != 32 || d.Deletes != 3 || d.Updates[12] != 33 {
		t.Errorf("%+v", meta.Redo)
	}
	if _, _, err := s.MergeRedo(bg, st.options()); !errors.Is(err, ErrNoChanges) {
		t.Errorf("one file: %v", err)
	}
	f := s.deltas.Load().files()[0]
	_, p, err := f.changes(bg, 2)
	must(t, err)
	if i := p.find(10); !slices.Equal(p.rows[i:i+3], []int32{10, 10, 10}) {
		t.Errorf("rows %v at %v", p.rows[i:i+3], p.times[i:i+3])
	}
}

// TestRetiredFilesGoWithTheRowSet closes a rowset under a scan of files that were
// merged meanwhile: they are there until the scan ends, and then gone.
func TestRetiredFilesGoWithTheRowSet(t *testing.T) {
	src := small(t, 60).at(1)
	st := newStore(t, src.schema)
	s := st.one(src)
	for k := range 3 {
		del(t, s, mvcc.Timestamp(10+k), rowset.RowID(k))
		st.flush(s)
	}
	it, err := s.Scan(bg, query{}.bind(t, src.schema))
	must(t, err)
	st.merge(s)
	s.Close()
	if b, err := it.Next(bg); err != nil || b.Selected != 57 {
		t.Errorf("%+v, %v", b, err)
	}
	it.Close()
	if names, _ := st.fs.List(dir); len(names) != 2 {
		t.Errorf("left: %v", names)
	}
}

// TestReadersBesideFlushes scans and reads rows while they are changed, flushed and
// merged: a snapshot sees each commit as a whole.
func TestReadersBesideFlushes(t *testing.T) {
	src := kv(t, 3000, col("val", schema.Int64), func(int) schema.Value { return i64(1) }).at(1)
	st := newStore(t, src.schema)
	s := st.one(src)
	var now atomic.Int64
	now.Store(1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				at := now.Load()
				want := fmt.Sprint(at)
				got, err := collect(s, query{columns: []string{"val"}, spec: rowset.ScanSpec{Time: mvcc.At(mvcc.Timestamp(at))}}.bind(t, src.schema))
				if err != nil || len(got) != 3000 || slices.ContainsFunc(got, func(x string) bool { return x != want }) {
					t.Errorf("%d rows at %d, %v", len(got), at, err)
					return
				}
			}
		})
	}
	for ts := 2; ts < 60; ts++ {
		var rows []rowset.RowID
		var vals []schema.Value
		for i := range 3000 {
			rows, vals = append(rows, rowset.RowID(i)), append(vals, i64(ts))
		}
		set(t, s, mvcc.Timestamp(ts), 1, rows, vals...)
		now.Store(int64(ts))
		if ts%4 == 0 {
			if meta := st.flush(s); len(meta.Redo) == 3 {
				st.merge(s)
			}
		}
	}
	close(stop)
	wg.Wait()
	if names, _ := st.fs.List(dir); len(names) != 1+len(s.Meta().Redo) {
		t.Errorf("%d files of changes, %v", len(s.Meta().Redo), names)
	}
}

// TestDropRemovesChanges deletes the files of changes with the rowset.
func TestDropRemovesChanges(t *testing.T) {
	src := kv(t, 10, col("val", schema.Int64), func(i int) schema.Value { return i64(i) }).at(1)
	st := newStore(t, src.schema)
	st.damaged = true
	s := st.one(src)
	del(t, s, 5, 1)
	st.flush(s)
	it, err := s.Scan(bg, query{}.bind(t, src.schema))
	must(t, err)
	s.Drop()
	if names, _ := st.fs.List(dir); len(names) != 2 {
		t.Errorf("under a scan: %v", names)
	}
	if b, err := it.Next(bg); err != nil || b.Selected != 9 {
		t.Errorf("%+v, %v", b, err)
	}
	it.Close()
	if names, _ := st.fs.List(dir); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}

// smallChanged is a small rowset with a file of changes, and what its rows are.
func smallChanged(t tb) (st *store, s *RowSet, want []string) {
	src := small(t, 60).at(1)
	st = newStore(t, src.schema)
	st.damaged = true
	s = st.one(src)
	var rows []rowset.RowID
	var floats, texts []schema.Value
	for i := range 20 {
		rows = append(rows, rowset.RowID(i*2))
		floats, texts = append(floats, f64(float64(i))), append(texts, str(fmt.Sprint("tag", i%3)))
	}
	floats[3], texts[4] = schema.Null, schema.Null
	set(t, s, 1000, 2, rows, floats...)
	set(t, s, 2000, 3, rows, texts...)
	set(t, s, 3000, 2, rows[5:8], f64(1), f64(2), f64(3))
	del(t, s, 4000, 50, 3, 7)
	st.flush(s)
	want, _ = query{}.scan(t, s)
	if len(want) != 57 {
		t.Fatalf("%d rows", len(want))
	}
	return st, s, want
}

// replace writes other content into the file of changes.
func (st *store) replace(s *RowSet, content []byte) {
	st.t.Helper()
	name := path.Join(dir, DeltaName(s.Meta().Redo[0].Section.File))
	must(st.t, st.fs.Remove(name))
	f, err := st.fs.Create(name, vfs.KindDelta)
	must(st.t, err)
	_, err = f.WriteAt(content, 0)
	must(st.t, err)
	must(st.t, f.Close())
}

// readChanged reads all a user can of a rowset opened anew.
func readChanged(t tb, st *store, m *rowset.Meta) ([]string, *RowSet, error) {
	r := st.fresh(m)
	got, err := collect(r, query{}.bind(t, st.env.Schema))
	for row := rowset.RowID(0); row < 60 && err == nil; row++ {
		_, _, _, err = r.deltas.Load().last(bg, row)
	}
	return got, r, err
}

// TestEveryBitOfChangesFlipped flips each bit of a file of changes: reading or
// verification fails and names the file, or every answer is right.
func TestEveryBitOfChangesFlipped(t *testing.T) {
	st, s, want := smallChanged(t)
	name := path.Join(dir, DeltaName(s.Meta().Redo[0].Section.File))
	good := st.read(name)
	if len(good) > 4096 {
		t.Fatalf("file of %d bytes", len(good))
	}
	harmless := 0
	for bit := range 8 * len(good) {
		if testing.Short() && bit%8 != bit/8%8 {
			continue
		}
		bad := slices.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		st.replace(s, bad)
		got, r, err := readChanged(t, st, s.Meta())
		verr := r.Verify(bg)
		r.Close()
		switch {
		case err == nil && !slices.Equal(got, want):
			t.Fatalf("bit %d changed an answer", bit)
		case err != nil && verr == nil:
			t.Fatalf("bit %d: reading fails, verification does not: %v", bit, err)
		case verr == nil:
			harmless++
		}
		for _, err := range []error{err, verr} {
			var c *vfs.CorruptionError
			if err != nil && !errors.Is(err, vfs.ErrNotSupported) && (!errors.As(err, &c) || c.Path != name || c.Section == "") {
				t.Fatalf("bit %d: %v", bit, err)
			}
		}
	}
	if t.Logf("%d of %d bits are harmless", harmless, 8*len(good)); harmless*50 > 8*len(good) {
		t.Error("too many flipped bits unnoticed")
	}
	st.replace(s, good)
	_, r, err := readChanged(t, st, s.Meta())
	must(t, err)
	must(t, r.Verify(bg))
	r.Close()
}

// TestChangesTruncated cuts a file of changes at every length, and lengthens it.
func TestChangesTruncated(t *testing.T) {
	st, s, _ := smallChanged(t)
	good := st.read(path.Join(dir, DeltaName(s.Meta().Redo[0].Section.File)))
	for n := range len(good) {
		st.replace(s, good[:n])
		_, r, err := readChanged(t, st, s.Meta())
		if verr := r.Verify(bg); !errors.Is(err, vfs.ErrCorruption) || !errors.Is(verr, vfs.ErrCorruption) {
			t.Fatalf("%d bytes: %v; %v", n, err, verr)
		}
		r.Close()
	}
	st.replace(s, append(slices.Clone(good), 0))
	r := st.fresh(s.Meta())
	defer r.Close()
	if err := r.Verify(bg); !errors.Is(err, vfs.ErrCorruption) {
		t.Fatalf("longer file: %v", err)
	}
}

// TestChangesOfAnotherRowSet refuses a description that the file does not match.
func TestChangesOfAnotherRowSet(t *testing.T) {
	st, s, _ := smallChanged(t)
	for name, f := range map[string]func(*rowset.DeltaFile){
		"times":   func(d *rowset.DeltaFile) { d.MaxTime++ },
		"deletes": func(d *rowset.DeltaFile) { d.Deletes++ },
		"updates": func(d *rowset.DeltaFile) { d.Updates = map[schema.ColumnID]int64{12: 23, 13: 21} },
		"column":  func(d *rowset.DeltaFile) { d.Updates = map[schema.ColumnID]int64{12: 23, 14: 20} },
	} {
		m := *s.Meta()
		m.Redo = slices.Clone(m.Redo)
		f(&m.Redo[0])
		if _, r, err := readChanged(t, st, &m); !errors.Is(err, vfs.ErrCorruption) {
			t.Errorf("%s: %v", name, err)
		} else {
			r.Close()
		}
	}
	m := *s.Meta()
	m.Redo = append(slices.Clone(m.Redo), m.Redo[0])
	m.Redo[1].MinTime = 1
	if _, err := Open(&m, st.env); !errors.Is(err, vfs.ErrCorruption) {
		t.Errorf("files out of order: %v", err)
	}
	m = *s.Meta()
	m.Rows, m.LiveRows = 50, 50 // row 50 of the changes does not exist
	env := st.fresh(&m)
	defer env.Close()
	if err := env.deltas.Load().files()[0].verify(bg); !errors.Is(err, vfs.ErrCorruption) {
		t.Errorf("rows out of bounds: %v", err)
	}
}

// TestWriteRedoFaults fails every operation of a write in turn: no file is left.
func TestWriteRedoFaults(t *testing.T) {
	src := small(t, 60).at(1)
	st := newStore(t, src.schema)
	m := delta.NewMemStore(src.schema)
	must(t, m.Apply(5, &rowset.Changes{Kind: rowset.ChangeDel, Rows: []rowset.RowID{7}}))
	for n := int64(1); ; n++ {
		fs := errorfs.Wrap(st.fs)
		fs.SetHook(errorfs.Fail(errFault, n, n, errorfs.Ops(errorfs.OpCreate, errorfs.OpWrite, errorfs.OpSync, errorfs.OpClose)))
		o := st.options()
		o.FS = fs
		_, err := WriteRedo(bg, m, o)
		names, _ := st.fs.List(dir)
		if err == nil {
			if n < 4 || len(names) != 1 {
				t.Fatalf("after %d faults: %v", n-1, names)
			}
			return
		}
		if !errors.Is(err, errFault) || len(names) > 0 || st.fs.OpenFiles() > 0 {
			t.Fatalf("operation %d: %v; left %v", n, err, names)
		}
	}
}

// TestReadRedoFaults fails every read of a file of changes in turn: the call reports it,
// and the next one succeeds.
func TestReadRedoFaults(t *testing.T) {
	st, s, want := smallChanged(t)
	for n := int64(1); ; n++ {
		fs := errorfs.Wrap(st.fs)
		fs.SetHook(errorfs.Fail(errFault, n, n, errorfs.Ops(errorfs.OpOpen, errorfs.OpRead)))
		env := st.env
		env.Files = filecache.New(fs, 4)
		r, err := Open(s.Meta(), env)
		must(t, err)
		_, err = collect(r, query{}.bind(t, st.env.Schema))
		got, again := collect(r, query{}.bind(t, st.env.Schema))
		must(t, again)
		equalLines(t, got, want)
		r.Close()
		if err == nil {
			return
		}
		if !errors.Is(err, errFault) {
			t.Fatalf("fault %d: %v", n, err)
		}
	}
}

func TestPutIsNoChangeOfADiskRowSet(t *testing.T) {
	sch := newSchema(t, 1, col("k", schema.Int32))
	m := delta.NewMemStore(sch)
	must(t, m.Apply(5, &rowset.Changes{Kind: rowset.ChangePut, Rows: []rowset.RowID{7}}))
	st := newStore(t, sch)
	if _, err := WriteRedo(bg, m, st.options()); err == nil {
		t.Error("a revival was written")
	}
}

func TestDeltaNames(t *testing.T) {
	if n, ok := ParseDeltaName(DeltaName(42)); n != 42 || !ok || DeltaName(42) != "0000000042.delta" {
		t.Error(DeltaName(42), n, ok)
	}
	for _, name := range []string{FileName(42), "42.delta", "x0000000042.delta", "0000000042.deltas", ""} {
		if _, ok := ParseDeltaName(name); ok {
			t.Errorf("%q is a name", name)
		}
	}
}

func FuzzRedoDirectory(f *testing.F) {
	d := DeltaDirectory{MinTime: 3, MaxTime: 5, Deletes: DeltaList{Count: 1, Rows: rowset.Section{Length: 5}, Times: rowset.Section{Length: 6}},
		Columns: []DeltaColumn{{Column: schema.Column{Name: "v", Type: schema.Int32}, Values: rowset.Section{Length: 10},
			DeltaList: DeltaList{Count: 2, Rows: rowset.Section{Length: 7}, Times: rowset.Section{Length: 8}}}}}
	b := d.appendTo(nil)
	f.Add(b[:len(b)-trailerSize], int64(64+36))
	f.Fuzz(func(t *testing.T, b []byte, end int64) {
		var d, e DeltaDirectory
		if end < binfmt.HeaderSize || d.decode(b, end) != nil {
			return
		}
		again := d.appendTo(nil)
		if err := e.decode(again[:len(again)-trailerSize], end); err != nil || len(e.Columns) != len(d.Columns) {
			t.Fatal(err)
		}
	})
}

// BenchmarkScanChanged sums two columns of which a part of the rows was set by a file of
// changes, from cached pages.
func BenchmarkScanChanged(b *testing.B) {
	for _, every := range []int{0, 100, 10, 1} {
		b.Run(fmt.Sprintf("every%d", every), func(b *testing.B) {
			src := metrics(b, 400_000)
			st := newStore(b, src.schema)
			s := st.one(src, func(o *WriterOptions) { o.Horizon = mvcc.Max })
			ints, floats := src.schema.Find("i1"), src.schema.Find("d1")
			if every > 0 {
				c := &rowset.Changes{Kind: rowset.ChangeSet, Columns: []int{ints, floats}, Values: []*vector.Vector{src.cols[ints], src.cols[floats]}}
				for i := 0; i < src.Rows(); i += every {
					c.Rows, c.At = append(c.Rows, rowset.RowID(i)), append(c.At, int32(i))
				}
				must(b, s.Apply(5, c))
				st.flush(s)
			}
			q := query{columns: []string{"i1", "d1"}}
			sumScan(b, s, q.bind(b, src.schema))
			b.ReportAllocs()
			for b.Loop() {
				sumScan(b, s, q.bind(b, src.schema))
			}
			b.ReportMetric(float64(b.N)*float64(src.Rows())/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// BenchmarkWriteRedo flushes changes of two columns.
func BenchmarkWriteRedo(b *testing.B) {
	src := metrics(b, 200_000)
	st := newStore(b, src.schema)
	m := delta.NewMemStore(src.schema)
	ints, floats := src.schema.Find("i1"), src.schema.Find("d1")
	c := &rowset.Changes{Kind: rowset.ChangeSet, Columns: []int{ints, floats}, Values: []*vector.Vector{src.cols[ints], src.cols[floats]}}
	for i := range src.Rows() {
		c.Rows = append(c.Rows, rowset.RowID(i))
	}
	must(b, m.Apply(5, c))
	var size int64
	b.ReportAllocs()
	for b.Loop() {
		w, err := WriteRedo(bg, m, st.options())
		must(b, err)
		size = w.Size
		must(b, st.fs.Remove(path.Join(dir, DeltaName(w.File))))
	}
	b.ReportMetric(float64(b.N)*float64(src.Rows())/b.Elapsed().Seconds()/1e6, "Mchanges/s")
	b.ReportMetric(float64(size)/float64(src.Rows()), "B/change")
}
