package diskrowset

import (
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

// rewritten is a rowset that is rewritten now and then, beside a model of its rows.
type rewritten struct {
	*history
	st      *store
	set     *RowSet
	horizon mvcc.Timestamp
}

// raise draws a new horizon.
func (r *rewritten) raise(t *rapid.T) {
	r.horizon = mvcc.Timestamp(rapid.IntRange(int(r.horizon), int(r.now)).Draw(t, "horizon"))
}

// patch folds the changes of some columns that are in files into the base data.
func (r *rewritten) patch(t *rapid.T) {
	cols := slices.DeleteFunc(r.set.ChangedColumns(), func(int) bool { return rapid.IntRange(0, 3).Draw(t, "leave") == 0 })
	if len(cols) == 0 {
		return
	}
	r.raise(t)
	p, err := r.set.WritePatch(bg, cols, r.horizon, r.st.options())
	must(t, err)
	next := r.st.open(p.Meta)
	next.Inherit(r.set)
	r.set.Supersede(p.Gone)
	for _, n := range p.Gone {
		for _, name := range []string{FileName(n), DeltaName(n)} {
			if _, err := r.st.fs.Stat(r.st.fs.Join(dir, name)); err == nil {
				t.Fatalf("%s is still there", name)
			}
		}
	}
	r.set = next
}

// rewrite writes the whole rowset anew.
func (r *rewritten) rewrite(t *rapid.T) {
	r.raise(t)
	n, err := r.set.At(r.now, r.horizon)
	must(t, err)
	defer n.Close()
	m, err := compaction.Merge(bg, []compaction.Input{n}, r.horizon)
	must(t, err)
	to := m.Map(0)
	if m.Rows() == 0 {
		return // a rowset has rows
	}
	old := r.set
	r.set = r.st.one(m)
	old.Drop()
	r.history = r.history.moved(t, to)
}

// moved returns the model of the rows that became others, -1 for none.
func (h *history) moved(t tb, to []int32) *history {
	var which []int32
	for i, k := range to {
		if _, dead := h.deleted[i]; k < 0 && !dead {
			t.Fatalf("row %d is lost", i)
		}
		if k >= 0 {
			which = append(which, int32(i))
		}
	}
	next := newHistory(h.src.pick(t, which))
	next.now = h.now
	for k, vs := range h.cells {
		if to[k[0]] >= 0 {
			next.cells[[2]int{int(to[k[0]]), k[1]}] = vs
		}
	}
	for i, ts := range h.deleted {
		if to[i] >= 0 {
			next.deleted[int(to[i])] = ts
		}
	}
	return next
}

// checkAt compares scans at a time with the model.
func (r *rewritten) checkAt(t *rapid.T, ts mvcc.Timestamp) {
	now, live := r.at(t, ts)
	q := query{spec: rowset.ScanSpec{Time: mvcc.At(ts), MaxRows: rapid.SampledFrom([]int{0, 7}).Draw(t, "max")}}
	if rapid.Bool().Draw(t, "filtered") {
		q.where = drawFilter(t, r.src.schema, now, 1)
	}
	if spec := q.bind(t, r.src.schema); spec.Filter != nil {
		must(t, spec.Filter.Eval(now.Rows(), live, func(col int) (*vector.Vector, error) { return now.cols[col], nil }))
	}
	lines := now.lines(live.Get)
	for _, q.spec.Order = range []rowset.Order{rowset.Unordered, rowset.KeyReverse} {
		got, _ := q.scan(t, r.set)
		equalLines(t, got, lines)
		slices.Reverse(lines)
	}
}

// checkDiff compares what changed between two times with the model.
func (r *rewritten) checkDiff(t *rapid.T, in mvcc.Interval) {
	now, live := r.at(t, in.Hi)
	_, was := r.at(t, in.Lo)
	touched := func(i int) bool {
		for col := range now.cols {
			for _, v := range r.cells[[2]int{i, col}] {
				if in.Contains(v.ts) {
					return true
				}
			}
		}
		return in.Contains(now.times[i]) || in.Contains(r.deleted[i])
	}
	var want []string
	for i := range now.Rows() {
		if touched(i) && (live.Get(i) || was.Get(i)) {
			want = append(want, mark(!live.Get(i))+line(now.cols, i, nil))
		}
	}
	for _, order := range []rowset.Order{rowset.KeyOrder, rowset.KeyReverse} {
		spec := query{spec: rowset.ScanSpec{Time: in, Order: order}}.bind(t, r.src.schema)
		got := collectDiff(t, r.set, spec)
		equalLines(t, got, want)
		slices.Reverse(want)
	}
}

func mark(deleted bool) string {
	if deleted {
		return "-"
	}
	return "+"
}

// collectDiff runs a scan for changes.
func collectDiff(t tb, s *RowSet, spec *rowset.ScanSpec) (lines []string) {
	eachBatch(t, s, spec, func(b *rowset.Batch) {
		for _, i := range b.AppendSelected(nil) {
			lines = append(lines, mark(b.Deleted != nil && b.Deleted.Get(int(i)))+line(b.Columns, int(i), nil))
		}
	})
	return lines
}

// TestHistoryModel applies random changes to a rowset, flushes them, merges and folds
// files of changes, rewrites the rowset, raises the horizon, and compares scans and diffs
// after the horizon with the model.
func TestHistoryModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		src := drawRows(rt, drawSchema(rt))
		if rapid.Bool().Draw(rt, "one time") {
			src.at(1000)
		}
		st := newStore(rt, src.schema)
		defer st.finish()
		st.env.Pages = cache.New[cache.Page](rapid.SampledFrom([]int64{0, 64 << 20}).Draw(rt, "cache"))
		r := &rewritten{history: newHistory(src), st: st, set: st.one(src)}
		r.now = slices.Max(src.times)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			r.step(rt, r.set)
			if r.set.MemoryBytes() > 0 && rapid.Bool().Draw(rt, "flush") {
				if meta := st.flush(r.set); len(meta.Redo) > 1 && rapid.IntRange(0, 3).Draw(rt, "merge") == 0 {
					st.merge(r.set)
				}
			}
			switch rapid.IntRange(0, 5).Draw(rt, "rewrite") {
			case 0:
				r.rewrite(rt)
			case 1, 2:
				r.patch(rt)
			case 3:
				r.raise(rt)
				if meta, gone := r.set.MetaWithoutHistory(r.horizon); len(gone) > 0 {
					must(rt, r.set.DroppedHistory(gone, meta))
				}
			case 4:
				if r.set.MemoryBytes() == 0 {
					meta := r.set.Meta()
					r.set.Close()
					r.set = st.open(meta)
				}
			}
		}
		draw := func(from mvcc.Timestamp) mvcc.Timestamp {
			return mvcc.Timestamp(rapid.IntRange(int(from), int(r.now)+1).Draw(rt, "time"))
		}
		for range 3 {
			r.checkAt(rt, max(1, draw(r.horizon)))
			lo := max(1, draw(r.horizon))
			r.checkDiff(rt, mvcc.Interval{Lo: lo, Hi: draw(lo)})
		}
	})
}

// Sections that patches replace are counted as long as their file is in use.
func TestPatchCountsDeadSections(t *testing.T) {
	src := kv(t, 5000, col("val", schema.Int64), func(i int) schema.Value { return i64(i * 7919 % 5000) })
	st := newStore(t, src.schema)
	s := st.one(src.at(1))
	base := s.Meta().EncodedBytes()
	column, _ := s.Meta().Section(rowset.SectionColumn, src.schema.Column(1).ID)
	zones, _ := s.Meta().Section(rowset.SectionZoneMap, src.schema.Column(1).ID)
	for i := range 3 {
		set(t, s, mvcc.Timestamp(10+i), 1, []rowset.RowID{7}, i64(i))
		st.flush(s)
		p, err := s.WritePatch(bg, []int{1}, mvcc.Max, st.options())
		must(t, err)
		m := p.Meta
		if want := column.Length + zones.Length; m.Unused() != want || len(m.Dead) != 1 || m.Dead[column.File] != want {
			t.Fatalf("patch %d: %v bytes are dead, want %d", i, m.Dead, want)
		}
		if len(m.Files()) != 2 || m.EncodedBytes() < base/2 {
			t.Fatalf("patch %d: files %v, %d bytes", i, m.Files(), m.EncodedBytes())
		}
		next := st.open(m)
		next.Inherit(s)
		s.Supersede(p.Gone)
		s = next
	}
}
