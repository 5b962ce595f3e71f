package diskrowset

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/minikudu/minikudu/compaction"
	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"pgregory.net/rapid"
)

var _ compaction.Input = (*Snapshot)(nil)

// checkSnapshot compares pieces of the rows as of a time with the model.
func (h *history) checkSnapshot(t *rapid.T, s *RowSet, ts mvcc.Timestamp) {
	now, live := h.at(t, ts)
	n, err := s.At(ts, ts)
	must(t, err)
	defer n.Close()
	if int(n.Rows()) != now.Rows() {
		t.Fatalf("%d rows, want %d", n.Rows(), now.Rows())
	}
	for range 12 {
		from := rapid.IntRange(0, now.Rows()-1).Draw(t, "from")
		to := rapid.IntRange(from+1, now.Rows()).Draw(t, "to")
		switch c := rapid.IntRange(-3, h.src.schema.Len()-1).Draw(t, "part"); c {
		case -3:
			keys := vector.New(schema.KindBytes, 0)
			must(t, n.Keys(bg, from, to, keys))
			if !vector.Equal(keys, now.keys.Slice(from, to)) {
				t.Fatalf("keys of rows %d to %d differ", from, to)
			}
		case -2:
			got, want := vector.NewBitmap(to-from), vector.NewBitmap(to-from)
			got.SetRange(0, to-from)
			must(t, n.Live(bg, from, to, got))
			if want.CopyRange(0, live, from, to-from); !slices.Equal(got, want) {
				t.Fatalf("live rows of %d to %d: %x, want %x", from, to, got, want)
			}
		case -1:
			times, err := n.InsertTimes(bg, from, to, nil)
			must(t, err)
			if !slices.Equal(times, now.times[from:to]) {
				t.Fatalf("insert times of rows %d to %d differ", from, to)
			}
		default:
			v, err := n.Cells(bg, c, from, to)
			must(t, err)
			if !vector.Equal(v, now.cols[c].Slice(from, to)) {
				t.Fatalf("cells of column %d, rows %d to %d, differ", c, from, to)
			}
		}
	}
}

// TestSnapshotModel applies random changes to random rows, some of which go into files,
// and compares what snapshots at times between them hold.
func TestSnapshotModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		src := drawRows(rt, drawSchema(rt))
		if rapid.Bool().Draw(rt, "one time") {
			src.at(1000)
		}
		st := newStore(rt, src.schema)
		defer st.finish()
		s, h := st.one(src), newHistory(src)
		h.now = slices.Max(src.times)
		for range rapid.IntRange(0, 6).Draw(rt, "steps") {
			h.step(rt, s)
			if s.MemoryBytes() > 0 && rapid.IntRange(0, 2).Draw(rt, "flush") == 0 {
				st.flush(s)
			}
		}
		for range 3 {
			h.checkSnapshot(rt, s, mvcc.Timestamp(rapid.IntRange(int(slices.Max(src.times)), int(h.now)+1).Draw(rt, "snapshot")))
		}
	})
}

// TestSnapshotLeavesCache reads a rowset as a merge does: the pages do not stay, and
// the files are open until the snapshot ends.
func TestSnapshotLeavesCache(t *testing.T) {
	src := kv(t, 10000, col("val", schema.Int64), func(i int) schema.Value { return i64(i) })
	st := newStore(t, src.schema)
	s := st.one(src)
	n, err := s.At(mvcc.Max, mvcc.Max)
	must(t, err)
	s.Close()
	for c := range 2 {
		if v, err := n.Cells(bg, c, 0, 10000); err != nil || !vector.Equal(v, src.cols[c]) {
			t.Fatal("cells differ", err)
		}
	}
	must(t, n.Keys(bg, 0, 10000, vector.New(schema.KindBytes, 0)))
	_, err = n.InsertTimes(bg, 0, 10000, nil)
	must(t, err)
	for _, c := range append(s.columns, s.times) {
		d := c.data.Load()
		for p := range d.slots {
			if _, ok := d.slots[p].Get(); ok {
				t.Fatalf("page %d of %s is in the cache", p, c.name)
			}
		}
	}
	n.Close()
	n.Close()
	if _, err := s.At(mvcc.Max, mvcc.Max); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// pick returns the given rows of a source.
func (r *rows) pick(t tb, which []int32) *rows {
	out := &rows{schema: r.schema, keys: vector.New(schema.KindBytes, 0)}
	must(t, out.keys.AppendRows(r.keys, which))
	for _, c := range r.cols {
		v := vector.New(c.Kind(), 0)
		must(t, v.AppendRows(c, which))
		out.cols = append(out.cols, v)
	}
	for _, i := range which {
		out.times = append(out.times, r.times[i])
	}
	return out
}

// scatter writes the rows into some rowsets. A row is live in one of them and may be
// deleted in others.
func scatter(t *rapid.T, st *store, src *rows) (sets []*RowSet, all []*history) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	which, ghosts := make([][]int32, rapid.IntRange(1, 4).Draw(t, "sets")), make([][]rowset.RowID, 4)
	stretch, owner := rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "stretch"), 0
	for i := range src.Rows() {
		if r.IntN(stretch) == 0 {
			owner = r.IntN(len(which))
		}
		if k := r.IntN(len(which)); k != owner && r.IntN(3) == 0 {
			ghosts[k] = append(ghosts[k], rowset.RowID(len(which[k])))
			which[k] = append(which[k], int32(i))
		}
		which[owner] = append(which[owner], int32(i))
	}
	for k, w := range which {
		if len(w) == 0 {
			continue
		}
		s, h := st.one(src.pick(t, w)), newHistory(src.pick(t, w))
		if h.now = 10_000; len(ghosts[k]) > 0 {
			del(t, s, h.now, ghosts[k]...)
		}
		for _, row := range ghosts[k] {
			h.deleted[int(row)] = h.now
		}
		sets, all = append(sets, s), append(all, h)
	}
	return sets, all
}

// liveRows returns the rows of all models that are live at a time, in key order, as text
// with their keys and insert times.
func liveRows(t tb, all []*history, ts mvcc.Timestamp) []string {
	type row struct {
		key  []byte
		text string
	}
	var out []row
	for _, h := range all {
		now, live := h.at(t, ts)
		for i := live.Next(0); i >= 0; i = live.Next(i + 1) {
			out = append(out, row{now.keys.BytesAt(i), fmt.Sprint(line(now.cols, i, now.keys), " at ", now.times[i])})
		}
	}
	slices.SortFunc(out, func(a, b row) int { return bytes.Compare(a.key, b.key) })
	var lines []string
	for _, r := range out {
		lines = append(lines, r.text)
	}
	return lines
}

// TestMergeRowSets merges rowsets with changes in files and in memory into new ones,
// which hold the live rows and nothing else.
func TestMergeRowSets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		src := drawRows(rt, drawSchema(rt))
		st := newStore(rt, src.schema)
		defer st.finish()
		st.env.Pages = cache.New[cache.Page](1 << 20)
		sets, all := scatter(rt, st, src)
		last := mvcc.Timestamp(0)
		for i, s := range sets {
			for range rapid.IntRange(0, 3).Draw(rt, "steps") {
				all[i].step(rt, s)
				if s.MemoryBytes() > 0 && rapid.Bool().Draw(rt, "flush") {
					st.flush(s)
				}
			}
			last = max(last, all[i].now)
		}
		ts := mvcc.Timestamp(rapid.IntRange(10_000, int(last)).Draw(rt, "time"))
		var in []compaction.Input
		for _, s := range sets {
			n, err := s.At(ts, ts)
			must(rt, err)
			defer n.Close()
			in = append(in, n)
		}
		m, err := compaction.Merge(bg, in, ts)
		must(rt, err)
		var got []string
		for _, s := range st.write(m, func(o *WriterOptions) { o.TargetBytes = rapid.SampledFrom([]int64{0, 8 << 10}).Draw(rt, "target") }) {
			got = append(got, storedRows(rt, s)...)
		}
		equalLines(rt, got, liveRows(rt, all, ts))
	})
}

// storedRows returns all rows of a rowset as liveRows does.
func storedRows(t *rapid.T, s *RowSet) []string {
	q := query{spec: rowset.ScanSpec{WithKeys: true}}
	lines, _ := q.scan(t, s)
	n, err := s.At(mvcc.Max, mvcc.Max)
	must(t, err)
	defer n.Close()
	times, err := n.InsertTimes(bg, 0, int(s.Rows()), nil)
	must(t, err)
	if len(lines) != len(times) {
		t.Fatalf("%d rows of %d are live", len(lines), len(times))
	}
	for i := range lines {
		lines[i] += fmt.Sprint(" at ", times[i])
	}
	return lines
}

func BenchmarkMergeRowSets(b *testing.B) {
	const n = 200_000
	src := kv(b, n, col("val", schema.Int64), func(i int) schema.Value { return i64(i) }).at(1)
	for _, x := range []struct {
		name string
		half func(i int) int
	}{{"interleaved", func(i int) int { return i & 1 }}, {"disjoint", func(i int) int { return i / (n / 2) }}} {
		var which [2][]int32
		for i := range n {
			k := x.half(i)
			which[k] = append(which[k], int32(i))
		}
		st := newStore(b, src.schema)
		sets := []*RowSet{st.one(src.pick(b, which[0])), st.one(src.pick(b, which[1]))}
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				benchmarkMerge(b, st, sets)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}

func benchmarkMerge(b *testing.B, st *store, sets []*RowSet) {
	var in []compaction.Input
	for _, s := range sets {
		n, err := s.At(mvcc.Max, mvcc.Max)
		must(b, err)
		defer n.Close()
		in = append(in, n)
	}
	m, err := compaction.Merge(bg, in, mvcc.Max)
	must(b, err)
	out, err := Write(bg, m, st.options())
	must(b, err)
	for _, w := range out {
		must(b, st.fs.Remove(st.fs.Join(dir, FileName(w.File))))
	}
}
