package delta

import (
	"context"
	"maps"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

var bg = context.Background()

func twoColumns(t testing.TB) *schema.Schema {
	s, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int32}, {Name: "n", Type: schema.Int64, Nullable: true},
		{Name: "s", Type: schema.String, Nullable: true}}, []string{"k"}, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// model is the state of rows over time.
type model struct {
	live  map[int]bool
	cells [3]map[int]schema.Value // columns 1 and 2 that were set
}

func (m *model) clone() *model {
	c := &model{live: map[int]bool{}}
	for k, v := range m.live {
		c.live[k] = v
	}
	for i := range m.cells {
		c.cells[i] = map[int]schema.Value{}
		for k, v := range m.cells[i] {
			c.cells[i][k] = v
		}
	}
	return c
}

const modelRows = 9000 // three pages of heads

func drawRow(r *rapid.T) int {
	return rapid.SampledFrom([]int{0, 1, 63, 64, 65, 4095, 4096, 5000, modelRows - 1}).Draw(r, "row")
}

func drawCell(r *rapid.T, col int) schema.Value {
	switch {
	case rapid.IntRange(0, 4).Draw(r, "null") == 0:
		return schema.Null
	case col == 1:
		return schema.IntValue(schema.KindInt64, rapid.Int64().Draw(r, "n"))
	}
	return schema.StringValue(rapid.StringN(0, 5, 10).Draw(r, "s"))
}

// step applies a random commit to the store and the model.
func step(r *rapid.T, m *MemStore, s *model, ts mvcc.Timestamp) {
	c := &rowset.Changes{Kind: rapid.SampledFrom([]rowset.ChangeKind{rowset.ChangePut, rowset.ChangeSet, rowset.ChangeDel}).Draw(r, "kind")}
	cols := map[rowset.ChangeKind][]int{rowset.ChangePut: {1, 2}, rowset.ChangeSet: {rapid.IntRange(1, 2).Draw(r, "col")}}[c.Kind]
	for range rapid.IntRange(1, 4).Draw(r, "rows") {
		row := drawRow(r)
		alive, known := s.live[row]
		if (alive || !known) == (c.Kind == rowset.ChangePut) {
			continue // I2
		}
		dup := false
		for _, o := range c.Rows {
			dup = dup || int(o) == row
		}
		if !dup {
			c.Rows = append(c.Rows, rowset.RowID(row))
		}
	}
	c.Columns = cols
	reversed := rapid.Bool().Draw(r, "reversed")
	for i := range c.Rows {
		s.live[int(c.Rows[i])] = c.Kind != rowset.ChangeDel
		if reversed {
			c.At = append(c.At, int32(len(c.Rows)-1-i))
		}
	}
	for _, col := range cols {
		v := vector.New(schema.KindInt64, 0)
		if col == 2 {
			v = vector.New(schema.KindBytes, 0)
		}
		cells := make([]schema.Value, len(c.Rows))
		for i := range cells {
			cells[i] = drawCell(r, col)
			_ = v.Append(cells[i])
		}
		for i, row := range c.Rows {
			s.cells[col][int(row)] = cells[c.Cell(i)]
		}
		c.Values = append(c.Values, v)
	}
	if err := m.Apply(ts, c); err != nil {
		r.Fatal(err)
	}
}

// patched returns the cells of rows [from, to) at a time, v being those before.
func patched(m *MemStore, at mvcc.Timestamp, col, from, to int, v *vector.Vector, cells *Overlay) (*vector.Vector, error) {
	return patchedIn(m, mvcc.At(at), col, from, to, v, cells)
}

// patchedIn is patched for cells that are those at the lower end of an interval.
func patchedIn(m *MemStore, in mvcc.Interval, col, from, to int, v *vector.Vector, cells *Overlay) (*vector.Vector, error) {
	cells.Reset(v)
	if err := m.Patch(bg, in, col, from, to, cells); err != nil {
		return nil, err
	}
	return cells.Result()
}

func TestMemStoreModel(t *testing.T) {
	sch := twoColumns(t)
	base := vector.New(schema.KindInt64, modelRows)
	text := vector.New(schema.KindBytes, modelRows)
	for i := range modelRows {
		vector.AppendFixed(base, int64(i))
		_ = text.AppendBytes([]byte{byte(i)})
	}
	bases := []*vector.Vector{nil, base, text}
	rapid.Check(t, func(r *rapid.T) {
		m := NewMemStore(sch)
		states := []*model{(&model{}).clone()}
		times := []mvcc.Timestamp{5}
		for i := range rapid.IntRange(0, 12).Draw(r, "commits") {
			s := states[i].clone()
			step(r, m, s, mvcc.Timestamp(10+10*i))
			states, times = append(states, s), append(times, mvcc.Timestamp(10+10*i))
		}
		k := rapid.IntRange(0, len(states)-1).Draw(r, "snapshot")
		from := rapid.IntRange(0, modelRows-1).Draw(r, "from")
		to := rapid.IntRange(from+1, modelRows).Draw(r, "to")
		checkAt(r, m, states[k], times[k], from, to, bases)
		for earlier := range k {
			checkIn(r, m, mvcc.Interval{Lo: times[earlier], Hi: times[k]}, from, to, bases)
		}
	})
}

// checkIn compares cells that are brought to a time at once and in two steps.
func checkIn(r *rapid.T, m *MemStore, in mvcc.Interval, from, to int, bases []*vector.Vector) {
	for col := 1; col <= 2; col++ {
		want, err := patched(m, in.Hi, col, from, to, bases[col].Slice(from, to), new(Overlay))
		if err != nil {
			r.Fatal(err)
		}
		first, err := patched(m, in.Lo, col, from, to, bases[col].Slice(from, to), new(Overlay))
		if err != nil {
			r.Fatal(err)
		}
		got, err := patchedIn(m, in, col, from, to, first, new(Overlay))
		if err != nil {
			r.Fatal(err)
		}
		if m.LastSet(col) <= in.Lo && got != first {
			r.Fatalf("column %d was copied although nothing set it in %v", col, in)
		}
		if !equal(got, want) {
			r.Fatalf("column %d differs when brought through %v", col, in)
		}
	}
}

func equal(a, b *vector.Vector) bool {
	for i := range a.Len() {
		if a.Value(i) != b.Value(i) {
			return false
		}
	}
	return a.Len() == b.Len()
}

func checkAt(r *rapid.T, m *MemStore, s *model, at mvcc.Timestamp, from, to int, bases []*vector.Vector) {
	live := vector.NewBitmap(to - from)
	live.SetRange(0, to-from)
	if err := m.ApplyLife(bg, at, from, to, live); err != nil {
		r.Fatal(err)
	}
	for row := from; row < to; row++ {
		alive, known := s.live[row]
		if live.Get(row-from) != (alive || !known) {
			r.Fatalf("row %d at %d: live %v, want %v", row, at, live.Get(row-from), alive)
		}
	}
	for col := 1; col <= 2; col++ {
		v := bases[col].Slice(from, to)
		got, err := patched(m, at, col, from, to, v, new(Overlay))
		if err != nil || got.Len() != to-from {
			r.Fatalf("patch: %d cells, %v", got.Len(), err)
		}
		for row := from; row < to; row++ {
			want, set := s.cells[col][row]
			if !set {
				want = bases[col].Value(row)
			}
			if got.Value(row-from) != want {
				r.Fatalf("row %d column %d at %d: %v, want %v", row, col, at, got.Value(row-from), want)
			}
			one := vector.New(v.Kind(), 0)
			if done, err := m.PatchRow(bg, at, col, row, one); err != nil || done != set || done && one.Value(0) != want {
				r.Fatalf("row %d column %d: %v, %v", row, col, done, err)
			}
		}
	}
}

func TestLaterReturnsWhatCameAfter(t *testing.T) {
	m := NewMemStore(twoColumns(t))
	for ts := mvcc.Timestamp(1); ts <= 5; ts++ {
		v := vector.New(schema.KindInt64, 1)
		vector.AppendFixed(v, int64(ts))
		if err := m.Apply(ts, &rowset.Changes{Kind: rowset.ChangeSet, Rows: []rowset.RowID{7}, Columns: []int{1}, Values: []*vector.Vector{v}}); err != nil {
			t.Fatal(err)
		}
	}
	var got []mvcc.Timestamp
	moved := NewMemStore(twoColumns(t))
	if err := m.Later(3, func(ts mvcc.Timestamp, c *rowset.Changes) error {
		got = append(got, ts)
		return moved.Apply(ts, c)
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != 4 || got[1] != 5 || moved.MinTime() != 4 || moved.MaxTime() != 5 || moved.Updates(1) != 2 {
		t.Fatalf("later than 3: %v; moved %d..%d", got, moved.MinTime(), moved.MaxTime())
	}
}

func TestReadersBesideTheApplier(t *testing.T) {
	m := NewMemStore(twoColumns(t))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			v := vector.New(schema.KindInt64, 100)
			for range 100 {
				vector.AppendFixed(v, int64(-1))
			}
			var cells Overlay
			for {
				select {
				case <-stop:
					return
				default:
				}
				at := m.MaxTime()
				got, err := patched(m, at, 1, 4050, 4150, v, &cells)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range 100 { // a commit sets all hundred rows to its time
					if x := got.Int64s()[i]; x != int64(at) && at > 0 {
						t.Errorf("row %d is %d at %d", i, x, at)
						return
					}
				}
			}
		})
	}
	for ts := mvcc.Timestamp(1); ts < 500; ts++ {
		c := &rowset.Changes{Kind: rowset.ChangeSet, Columns: []int{1}, Values: []*vector.Vector{vector.New(schema.KindInt64, 100)}}
		for row := range 100 {
			c.Rows = append(c.Rows, rowset.RowID(4050+row))
			vector.AppendFixed(c.Values[0], int64(ts))
		}
		// A reader at time ts must see all rows of it: the store counts a commit last.
		if err := m.Apply(ts, c); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

func BenchmarkPatch(b *testing.B) {
	const rows = 32768
	sch := twoColumns(b)
	v := vector.New(schema.KindInt64, rows)
	for i := range rows {
		vector.AppendFixed(v, int64(i))
	}
	for name, every := range map[string]int{"1pct": 100, "all": 1} {
		m := NewMemStore(sch)
		c := &rowset.Changes{Kind: rowset.ChangeSet, Columns: []int{1}, Values: []*vector.Vector{vector.New(schema.KindInt64, rows)}}
		for row := 0; row < rows; row += every {
			c.Rows = append(c.Rows, rowset.RowID(row))
			vector.AppendFixed(c.Values[0], int64(row))
		}
		if err := m.Apply(1, c); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			var cells Overlay
			b.ReportAllocs()
			for b.Loop() {
				if _, err := patched(m, 1, 1, 0, rows, v, &cells); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(c.Rows)), "ns/change")
		})
	}
}

// Large commits whose rows ascend are patched run by run: the answer is that of the chains,
// for ranges in turn and in any order, and at any time.
func TestPatchRunsAgreesWithChains(t *testing.T) {
	const rows = 20_000
	base := vector.New(schema.KindInt64, rows)
	for i := range rows {
		vector.AppendFixed(base, int64(-i))
	}
	rapid.Check(t, func(r *rapid.T) {
		m := NewMemStore(twoColumns(t))
		var want []map[int]int64
		now := map[int]int64{}
		for ts := range rapid.IntRange(1, 8).Draw(r, "commits") {
			c := &rowset.Changes{Kind: rowset.ChangeSet, Columns: []int{1}, Values: []*vector.Vector{vector.New(schema.KindInt64, 0)}}
			stride := rapid.SampledFrom([]int{1, 7, 97}).Draw(r, "stride")
			for row := rapid.IntRange(0, rows/2).Draw(r, "first"); row < rows && len(c.Rows) < 300; row += stride {
				c.Rows = append(c.Rows, rowset.RowID(row))
				vector.AppendFixed(c.Values[0], int64(1000*ts+row))
				now[row] = int64(1000*ts + row)
			}
			if err := m.Apply(mvcc.Timestamp(ts+1), c); err != nil {
				r.Fatal(err)
			}
			want = append(want, maps.Clone(now))
		}
		if m.unsorted.Load() || m.numCommits.Load()*minRunRows > m.entries.Load() {
			r.Skip("not patched run by run")
		}
		at := rapid.IntRange(0, len(want)-1).Draw(r, "time")
		var cells, inTwo Overlay
		for from := 0; from < rows; {
			to := min(rows, from+rapid.SampledFrom([]int{1, 500, 5000}).Draw(r, "length"))
			if rapid.IntRange(0, 4).Draw(r, "jump") == 0 {
				from, to = 3000, 9000
			}
			got, err := patched(m, mvcc.Timestamp(at+1), 1, from, to, base.Slice(from, to), &cells)
			if err != nil {
				r.Fatal(err)
			}
			in := mvcc.Interval{Lo: mvcc.Timestamp(rapid.IntRange(0, at).Draw(r, "since")), Hi: mvcc.Timestamp(at + 1)}
			first, err := patched(m, in.Lo, 1, from, to, base.Slice(from, to), new(Overlay))
			if err != nil {
				r.Fatal(err)
			}
			if two, err := patchedIn(m, in, 1, from, to, first, &inTwo); err != nil || !equal(two, got) {
				r.Fatalf("rows from %d differ when brought through %v: %v", from, in, err)
			}
			for i, x := range got.Int64s() {
				v, ok := want[at][from+i]
				if !ok {
					v = int64(-from - i)
				}
				if x != v {
					r.Fatalf("row %d is %d, want %d", from+i, x, v)
				}
			}
			from = to
		}
	})
}
