package compaction

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
	"pgregory.net/rapid"
)

var bg = context.Background()

// asOf is after all commits. As the horizon it says that no history is kept.
const asOf = mvcc.Timestamp(1 << 40)

// The columns of a fake.
const (
	intCell  = iota // number of the row in the test, never null
	textCell        // its text, null for every seventh
)

// fake is an input in memory. What it returns is overwritten by its next call.
type fake struct {
	name  string
	keys  *vector.Vector
	dead  map[int]bool // not kept
	cells []*vector.Vector
	times []mvcc.Timestamp // of insertion
	past  *fakeHistory     // nil: none
	out   [2]vector.Vector
	fail  string // method that fails

	stored rowset.StoredColumn // of all columns

	keyRows    int // rows whose keys were read
	widestKeys int // by one call
	widestCell int // rows of one call
}

var errFake = errors.New("fake failure")

func newFake(name string) *fake {
	return &fake{name: name, keys: vector.New(schema.KindBytes, 0), dead: map[int]bool{},
		cells: []*vector.Vector{vector.New(schema.KindInt64, 0), vector.New(schema.KindBytes, 0)}}
}

// add appends the row of the given number.
func (f *fake) add(t testing.TB, key []byte, number int, dead bool) {
	f.addRow(t, key, mvcc.Timestamp(number+1000), number, number)
	if dead {
		f.dead[f.keys.Len()-1] = true
	}
}

// addRow appends a row that has the cells of the given numbers.
func (f *fake) addRow(t testing.TB, key []byte, born mvcc.Timestamp, numbers ...int) {
	err := f.keys.AppendBytes(key)
	for col, n := range numbers {
		err = errors.Join(err, appendCell(f.cells[col], col, n))
	}
	if err != nil {
		t.Fatal(err)
	}
	f.times = append(f.times, born)
}

// appendCell appends the cell that a row of the given number has in a column.
func appendCell(dst *vector.Vector, col, number int) error {
	switch {
	case col == intCell:
		return dst.Append(schema.IntValue(schema.KindInt64, int64(number)))
	case number%7 == 0:
		dst.AppendNull()
		return nil
	}
	return dst.AppendBytes(fmt.Append(nil, "row ", number))
}

func (f *fake) failing(method string) error {
	if f.fail == method {
		return errFake
	}
	return nil
}

func (f *fake) String() string { return f.name }

func (f *fake) Rows() int64 { return int64(f.keys.Len()) }

func (f *fake) Fork() rowset.MergeInput { return f }

func (f *fake) Keys(_ context.Context, from, to int, dst *vector.Vector) error {
	f.keyRows += to - from
	f.widestKeys = max(f.widestKeys, to-from)
	return errors.Join(f.failing("Keys"), dst.AppendRange(f.keys, from, to))
}

func (f *fake) Live(_ context.Context, from, to int, live vector.Bitmap) error {
	if len(f.dead) > 0 {
		for row := from; row < to; row++ {
			if f.dead[row] {
				live.Clear(row - from)
			}
		}
	}
	return f.failing("Live")
}

func (f *fake) Cells(_ context.Context, col, from, to int) (*vector.Vector, error) {
	f.widestCell = max(f.widestCell, to-from)
	out := &f.out[col]
	out.Reset(f.cells[col].Kind())
	return out, errors.Join(f.failing("Cells"), out.AppendRange(f.cells[col], from, to))
}

func (f *fake) Measure(_ context.Context, from, to int) (float64, error) {
	if err := f.failing("Measure"); err != nil {
		return 0, err
	}
	sum := 0.0
	for row := from; row < to; row++ {
		sum += float64(len(f.keys.BytesAt(row)))
	}
	return sum, nil
}

func (f *fake) Stored(context.Context, int) (rowset.StoredColumn, error) {
	return f.stored, f.failing("Stored")
}

func (f *fake) InsertTimes(_ context.Context, from, to int, dst []mvcc.Timestamp) ([]mvcc.Timestamp, error) {
	return append(dst, f.times[from:to]...), f.failing("InsertTimes")
}

func (f *fake) History() rowset.History {
	if f.past == nil {
		return nil
	}
	return f.past
}

// key returns a key that sorts as its number, of varying length.
func key(n int) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(n)), "padding"[:n%7]...)
}

func inputs(all []*fake) (out []Input) {
	for _, f := range all {
		out = append(out, f)
	}
	return out
}

// place is where a live row is.
type place struct{ input, row, number int }

// drawInputs draws inputs and returns them with the places of the live rows in key order.
// A key may be dead in any number of inputs.
func drawInputs(t *rapid.T, tb testing.TB) ([]*fake, []place) {
	all := make([]*fake, rapid.IntRange(1, 6).Draw(t, "inputs"))
	for i := range all {
		all[i] = newFake(fmt.Sprint("rowset ", i))
	}
	var want []place
	number := 0
	for range rapid.IntRange(0, 40).Draw(t, "stretches") {
		owner := rapid.IntRange(0, len(all)-1).Draw(t, "input")
		other := rapid.IntRange(0, len(all)-1).Draw(t, "input of dead rows")
		ghosts := rapid.SampledFrom([]int{0, 0, 1, 2, 50}).Draw(t, "ghosts") // every so many
		dying := rapid.SampledFrom([]int{0, 0, 0, 1, 3, 100}).Draw(t, "dead")
		for range rapid.SampledFrom([]int{1, 1, 1, 2, 70, 300, 5000}).Draw(t, "rows") {
			k := key(number)
			if ghosts > 0 && number%ghosts == 0 && other != owner {
				all[other].add(tb, k, number, true)
			}
			dead := dying > 0 && number%dying == 0
			if !dead {
				want = append(want, place{owner, all[owner].keys.Len(), number})
			}
			all[owner].add(tb, k, number, dead)
			number++
		}
	}
	return all, want
}

// checkMerged compares a merge with the live rows in key order.
func checkMerged(t *rapid.T, m *Merged, all []*fake, want []place) {
	if m.Rows() != len(want) {
		t.Fatalf("%d rows, want %d", m.Rows(), len(want))
	}
	maps := make([][]int32, len(all))
	for i, f := range all {
		if maps[i] = m.Map(i); len(maps[i]) != f.keys.Len() {
			t.Fatalf("map of %d rows, want %d", len(maps[i]), f.keys.Len())
		}
	}
	for i, p := range want {
		if in, row := m.RowOf(i); in != p.input || int(row) != p.row {
			t.Fatalf("row %d is row %d of %d, want %+v", i, row, in, p)
		}
		if maps[p.input][p.row] != int32(i) {
			t.Fatalf("row %+v is mapped to %d, want %d", p, maps[p.input][p.row], i)
		}
		maps[p.input][p.row] = -1
	}
	for i := range maps {
		if slices.ContainsFunc(maps[i], func(x int32) bool { return x != -1 }) {
			t.Fatal("a dead row is mapped")
		}
	}
	checkCells(t, m, want)
}

func checkCells(t *rapid.T, m *Merged, want []place) {
	ints, texts, keys := vector.New(schema.KindInt64, 0), vector.New(schema.KindBytes, 0), vector.New(schema.KindBytes, 0)
	var times []mvcc.Timestamp
	for from := 0; from < len(want); {
		to := min(len(want), from+rapid.SampledFrom([]int{1, 10, 1000, 20000}).Draw(t, "piece"))
		var err error
		times, err = m.InsertTimes(bg, from, to, times)
		if err = errors.Join(err, m.Column(bg, intCell, from, to, ints), m.Keys(bg, from, to, keys), m.Column(bg, textCell, from, to, texts)); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	for i, p := range want {
		text := ""
		if p.number%7 != 0 {
			text = fmt.Sprint("row ", p.number)
		}
		if ints.Int64s()[i] != int64(p.number) || !bytes.Equal(keys.BytesAt(i), key(p.number)) || times[i] != mvcc.Timestamp(p.number+1000) ||
			texts.IsNull(i) != (p.number%7 == 0) || !texts.IsNull(i) && texts.StringAt(i) != text {
			t.Fatalf("row %d is %d %v at %d, want row %d", i, ints.Int64s()[i], texts.Value(i), times[i], p.number)
		}
	}
}

func TestMergeModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all, want := drawInputs(rt, t)
		m, err := Merge(bg, inputs(all), asOf)
		if err != nil {
			rt.Fatal(err)
		}
		for _, f := range all {
			if f.widestKeys > maxBlock {
				rt.Fatalf("%d keys were read at once", f.widestKeys)
			}
		}
		checkMerged(rt, m, all, want)
	})
}

// TestC33TwoLiveRows makes a second row of a key live, at any place.
func TestC33TwoLiveRows(t *testing.T) {
	for _, at := range []int{0, 1, 500, 998, 999} {
		for _, rest := range []int{0, 1, 2} { // other rows of the second input
			a, b := newFake("rowset 7"), newFake("rowset 9")
			for n := range 1000 {
				a.add(t, key(2*n), n, n%3 == 2 && n != at)
			}
			for n := max(0, at-rest); n <= at+rest; n++ {
				k := key(2*n + 1)
				if n == at {
					k = key(2 * n)
				}
				b.add(t, k, n, false)
			}
			m, err := Merge(bg, []Input{b, a}, asOf)
			if m != nil || !errors.Is(err, vfs.ErrCorruption) {
				t.Fatalf("at %d: %v", at, err)
			}
			for _, part := range []string{fmt.Sprintf("%x", key(2*at)), "rowset 7", "rowset 9", fmt.Sprint("row ", at)} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %s", err, part)
				}
			}
		}
	}
}

func TestMergeNothing(t *testing.T) {
	dead := newFake("rowset 1")
	for n := range 300 {
		dead.add(t, key(n), n, true)
	}
	other := newFake("rowset 2")
	other.add(t, key(5), 5, true)
	for _, in := range [][]Input{nil, {newFake("rowset 3")}, {dead}, {dead, newFake("rowset 3"), other}} {
		m, err := Merge(bg, in, asOf)
		if err != nil || m.Rows() != 0 {
			t.Fatalf("%d rows, %v", m.Rows(), err)
		}
		if err := m.Column(bg, intCell, 0, 0, vector.New(schema.KindInt64, 0)); err != nil {
			t.Error(err)
		}
		for i := range in {
			for _, x := range m.Map(i) {
				if x != -1 {
					t.Fatal("a dead row is mapped")
				}
			}
		}
	}
}

// TestMergeDisjoint merges inputs that do not overlap: no keys are read but the ends,
// and a run is kept for each.
func TestMergeDisjoint(t *testing.T) {
	all := make([]*fake, 3)
	for i := range all {
		all[i] = newFake(fmt.Sprint("rowset ", i))
		for n := range 100_000 {
			all[i].add(t, key((2-i)*100_000+n), n, false)
		}
	}
	m, err := Merge(bg, inputs(all), asOf)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.segments) != 3 || len(m.from) != 0 || m.Rows() != 300_000 {
		t.Errorf("%d segments, %d mixed rows, %d rows", len(m.segments), len(m.from), m.Rows())
	}
	if err := m.Column(bg, intCell, 0, m.Rows(), vector.New(schema.KindInt64, 0)); err != nil {
		t.Error(err)
	}
	for _, f := range all {
		if f.keyRows != 2 || f.widestCell > maxSpan {
			t.Errorf("%d keys were read, %d cells at once", f.keyRows, f.widestCell)
		}
	}
}

// TestMergeLongKeys reads long keys in smaller blocks.
func TestMergeLongKeys(t *testing.T) {
	all := []*fake{newFake("rowset 1"), newFake("rowset 2")}
	for n := range 4000 {
		all[n%2].add(t, append(key(n), make([]byte, 4000)...), n, false)
	}
	m, err := Merge(bg, inputs(all), asOf)
	if err != nil || m.Rows() != 4000 || len(m.segments) != 1 || len(m.from) != 4000 {
		t.Fatal(err, m.Rows(), len(m.segments))
	}
	if n := all[0].widestKeys; n > firstBlock {
		t.Errorf("%d keys were read at once", n)
	}
}

// TestMergeGaps reads few of the dead rows between live ones.
func TestMergeGaps(t *testing.T) {
	all := []*fake{newFake("rowset 1"), newFake("rowset 2")}
	for n := range 100_000 {
		all[n%2].add(t, key(n), n, n%500 > 1)
	}
	m, err := Merge(bg, inputs(all), asOf)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Column(bg, intCell, 0, m.Rows(), vector.New(schema.KindInt64, 0)); err != nil || m.Rows() != 400 {
		t.Fatal(err, m.Rows())
	}
	if n := all[0].widestCell; n > maxGap {
		t.Errorf("%d rows were read at once", n)
	}
}

func TestMergeErrors(t *testing.T) {
	fakes := func(fail string) []Input {
		all := []*fake{newFake("rowset 1"), newFake("rowset 2")}
		for n := range 100 {
			all[n%2].add(t, key(n), n, false)
		}
		all[1].fail = fail
		return inputs(all)
	}
	for _, fail := range []string{"Keys", "Live"} {
		if _, err := Merge(bg, fakes(fail), asOf); !errors.Is(err, errFake) {
			t.Errorf("%s: %v", fail, err)
		}
	}
	m, err := Merge(bg, fakes("Cells"), asOf)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Column(bg, intCell, 0, 100, vector.New(schema.KindInt64, 0)); !errors.Is(err, errFake) {
		t.Error(err)
	}
	if m, err = Merge(bg, fakes("InsertTimes"), asOf); err != nil {
		t.Fatal(err)
	}
	if _, err := m.InsertTimes(bg, 0, 100, nil); !errors.Is(err, errFake) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := Merge(ctx, fakes(""), asOf); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Merge(bg, []Input{huge{newFake("a")}, huge{newFake("b")}}, asOf); err == nil {
		t.Error("merge of more rows than a row number can count")
	}
}

// huge says that it has more rows than it has.
type huge struct{ *fake }

func (huge) Rows() int64 { return 1 << 30 }

func benchmarkInputs(b *testing.B, owner func(n int) int) []Input {
	all := []*fake{newFake("rowset 1"), newFake("rowset 2")}
	for n := range 400_000 {
		all[owner(n)].add(b, key(n), n, false)
	}
	return inputs(all)
}

func BenchmarkMerge(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, x := range []struct {
		name  string
		owner func(n int) int
	}{
		{"interleaved", func(int) int { return r.IntN(2) }},
		{"disjoint", func(n int) int { return n / 200_000 }},
	} {
		in := benchmarkInputs(b, x.owner)
		b.Run(x.name+"/keys", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Merge(bg, in, asOf); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/400_000, "ns/row")
		})
		for col, name := range []string{"int64", "text"} {
			b.Run(x.name+"/"+name, func(b *testing.B) { benchmarkColumn(b, in, col) })
		}
	}
}

func benchmarkColumn(b *testing.B, in []Input, col int) {
	m, err := Merge(bg, in, asOf)
	if err != nil {
		b.Fatal(err)
	}
	kind := in[0].(*fake).cells[col].Kind()
	dst := vector.New(kind, 0)
	b.ReportAllocs()
	for b.Loop() {
		for from := 0; from < m.Rows(); from += 1 << 16 {
			dst.Reset(kind)
			if err := m.Column(bg, col, from, min(from+1<<16, m.Rows()), dst); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/400_000, "ns/row")
}

// What rows take in the inputs adds up, in runs and in mixtures.
func TestMeasure(t *testing.T) {
	a, b, c := newFake("a"), newFake("b"), newFake("c")
	for i := range 3000 {
		a.add(t, fmt.Appendf(nil, "%06d", i), i, false)
		b.add(t, fmt.Appendf(nil, "%06dbbbb", i+2500), 10000+i, false)
		c.add(t, fmt.Appendf(nil, "%06d", i+90000), 20000+i, false)
	}
	m, err := Merge(bg, []Input{a, b, c}, asOf)
	if err != nil {
		t.Fatal(err)
	}
	measure := func(from, to int) float64 {
		t.Helper()
		n, err := m.Measure(bg, from, to)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, at := range []int{1, 2400, 2600, 2999, 3500, 7000} {
		if n := measure(0, at) + measure(at, 9000); math.Abs(n-6*6000-10*3000) > 1 {
			t.Errorf("cut at %d: %f bytes", at, n)
		}
	}
	if n := measure(2600, 2800); n != 100*6+100*10 {
		t.Errorf("mixture: %f bytes", n)
	}
	a.fail = "Measure"
	if _, err := m.Measure(bg, 0, 9000); !errors.Is(err, errFake) {
		t.Errorf("error %v", err)
	}
}

// column is a stored column of a test.
type column string

func (column) Pages() int { return 1 }

// The parts of a merge that lie in one input are told, with the rows there.
func TestStored(t *testing.T) {
	a, b := newFake("a"), newFake("b")
	a.stored, b.stored = column("a"), column("b")
	for i := range 3000 {
		a.add(t, fmt.Appendf(nil, "%06d", i), i, i == 1000)
		b.add(t, fmt.Appendf(nil, "%06db", i+2500), 10000+i, false)
	}
	m, err := Merge(bg, []Input{a, b}, asOf)
	if err != nil {
		t.Fatal(err)
	}
	var runs []string
	for from := 0; from < m.Rows(); {
		file, at, n, err := m.Stored(bg, intCell, from, m.Rows())
		if err != nil || n < 1 {
			t.Fatal(n, err)
		}
		if file == nil {
			runs = append(runs, fmt.Sprint("mixture of ", n))
		} else {
			runs = append(runs, fmt.Sprint(file, " ", at, " ", n))
			if input, row := m.RowOf(from); in(m, input).stored != file || int(row) != at {
				t.Errorf("row %d is row %d of %s", from, row, in(m, input))
			}
		}
		from += n
	}
	if want := "[a 0 1000 a 1001 1500 mixture of 998 b 499 2501]"; fmt.Sprint(runs) != want {
		t.Errorf("runs %v, want %v", runs, want)
	}
	if file, at, n, err := m.Stored(bg, intCell, 1200, 1500); file != column("a") || at != 1201 || n != 300 || err != nil {
		t.Errorf("%v, %d, %d, %v", file, at, n, err)
	}
	b.fail = "Stored"
	if _, _, _, err := m.Stored(bg, intCell, m.Rows()-1, m.Rows()); !errors.Is(err, errFake) {
		t.Errorf("error %v", err)
	}
}

func in(m *Merged, input int) *fake { return m.inputs[input].(*fake) }

// Where inputs overlap at their edges only, few keys are read.
func TestMergeSkipsKeys(t *testing.T) {
	const n = 100_000
	inputs := []*fake{newFake("a"), newFake("b"), newFake("c")}
	want := 0
	for k, f := range inputs {
		for i := range n {
			dead := i%1000 == 7
			f.add(t, fmt.Appendf(nil, "%09d%c", k*(n-500)+i, 'a'+k), i, dead)
			if !dead {
				want++
			}
		}
	}
	m, err := Merge(bg, []Input{inputs[2], inputs[0], inputs[1]}, asOf)
	if err != nil {
		t.Fatal(err)
	}
	keys := vector.New(schema.KindBytes, 0)
	for _, f := range inputs {
		if f.keyRows > n/4 {
			t.Errorf("%s: %d keys read of %d", f, f.keyRows, n)
		}
	}
	if err := m.Keys(bg, 0, m.Rows(), keys); err != nil || m.Rows() != want {
		t.Fatalf("%d rows, want %d, %v", m.Rows(), want, err)
	}
	for i := 1; i < keys.Len(); i++ {
		if bytes.Compare(keys.BytesAt(i-1), keys.BytesAt(i)) >= 0 {
			t.Fatalf("key %d does not ascend", i)
		}
	}
}
