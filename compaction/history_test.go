package compaction

import (
	"context"
	"errors"
	"fmt"
	"iter"
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

// fakeHistory is the history of a fake.
type fakeHistory struct {
	of                     *fake
	versions               [2][]fakeVersion // by column
	deaths, births, ghosts []rowset.Event
	failAfter              int // elements of the sequence that of.fail names
	open                   int // sequences that are being read
}

// fakeVersion is the cell of a row of the given number.
type fakeVersion struct {
	rowset.Event
	number int
}

// Versions yields cells that are overwritten by the next one.
func (h *fakeHistory) Versions(_ context.Context, col int) iter.Seq2[rowset.Version, error] {
	return func(yield func(rowset.Version, error) bool) {
		h.open++
		defer func() { h.open-- }()
		cells := vector.New(h.of.cells[col].Kind(), 1)
		for i, v := range h.versions[col] {
			if i == h.failAfter && h.of.fail == "Versions" {
				break
			}
			cells.Reset(cells.Kind())
			cells.AppendNull()
			err := appendCell(cells, col, v.number)
			if !yield(rowset.Version{Event: v.Event, Cells: cells, At: 1}, err) {
				return
			}
		}
		if err := h.of.failing("Versions"); err != nil {
			yield(rowset.Version{}, err)
		}
	}
}

func (h *fakeHistory) Deaths(context.Context) iter.Seq2[rowset.Event, error] {
	return h.yield("Deaths", h.deaths)
}

func (h *fakeHistory) Births(context.Context) iter.Seq2[rowset.Event, error] {
	return h.yield("Births", h.births)
}

func (h *fakeHistory) Ghosts(context.Context) iter.Seq2[rowset.Event, error] {
	return h.yield("Ghosts", h.ghosts)
}

func (h *fakeHistory) yield(method string, events []rowset.Event) iter.Seq2[rowset.Event, error] {
	return func(yield func(rowset.Event, error) bool) {
		h.open++
		defer func() { h.open-- }()
		for i, e := range events {
			if i == h.failAfter && h.of.fail == method {
				break
			}
			if !yield(e, nil) {
				return
			}
		}
		if err := h.of.failing(method); err != nil {
			yield(rowset.Event{}, err)
		}
	}
}

// modelLife is what is known of one life of a key, in one input.
type modelLife struct {
	input      int
	born, died mvcc.Timestamp // died is 0 for a live row
	cells      [2]int         // numbers of the row's first cells
	updates    []update
}

type update struct {
	at          mvcc.Timestamp
	col, number int
}

// last returns the numbers of the last cells.
func (l *modelLife) last() [2]int {
	cells := l.cells
	for _, u := range l.updates {
		cells[u.col] = u.number
	}
	return cells
}

// model is the lives of keys, in order of time, by key in ascending order.
type model [][]modelLife

// insert stores the lives of a key in the inputs. A row that lived before in the same
// input has the earlier lives as history.
func (m *model) insert(t testing.TB, all []*fake, horizon mvcc.Timestamp, lives []modelLife) {
	k := key(len(*m))
	*m = append(*m, lives)
	for i, f := range all {
		var own []modelLife
		for _, l := range lives {
			if l.input == i {
				own = append(own, l)
			}
		}
		if len(own) == 0 {
			continue
		}
		row, present := f.keys.Len(), &own[len(own)-1]
		cells := present.last()
		f.addRow(t, k, reported(present.born, horizon), cells[0], cells[1])
		past := record{row: rowset.RowID(row), horizon: horizon, of: f}
		past.add(own)
		if present.died > 0 && present.died <= horizon {
			f.dead[row] = true
		}
	}
}

// reported returns the insert time that an input reports: some that are not after the
// horizon are 0.
func reported(born, horizon mvcc.Timestamp) mvcc.Timestamp {
	if born <= horizon && born%2 == 0 {
		return 0
	}
	return born
}

// record notes the history of a row.
type record struct {
	row     rowset.RowID
	horizon mvcc.Timestamp
	of      *fake
}

// add notes what commits after the horizon did in the lives of the row.
func (r *record) add(lives []modelLife) {
	for i, l := range lives {
		cells := l.cells
		for _, u := range l.updates {
			r.version(u.col, u.at, cells[u.col])
			cells[u.col] = u.number
		}
		switch {
		case i+1 < len(lives):
			r.version(intCell, l.died, cells[intCell])
			r.version(textCell, l.died, cells[textCell])
			r.event(func(h *fakeHistory) *[]rowset.Event { return &h.deaths }, l.died)
			r.event(func(h *fakeHistory) *[]rowset.Event { return &h.births }, l.born)
		case l.died > 0:
			r.event(func(h *fakeHistory) *[]rowset.Event { return &h.ghosts }, l.died)
		}
	}
}

func (r *record) history() *fakeHistory {
	if r.of.past == nil {
		r.of.past = &fakeHistory{of: r.of}
	}
	return r.of.past
}

func (r *record) version(col int, at mvcc.Timestamp, number int) {
	if at > r.horizon {
		h := r.history()
		h.versions[col] = append(h.versions[col], fakeVersion{rowset.Event{Row: r.row, Time: at}, number})
	}
}

func (r *record) event(list func(*fakeHistory) *[]rowset.Event, at mvcc.Timestamp) {
	if at > r.horizon {
		l := list(r.history())
		*l = append(*l, rowset.Event{Row: r.row, Time: at})
	}
}

// merged returns what a merge makes of the model: one input, and its rows by key, -1
// for a key that is gone.
func (m model) merged(t testing.TB, horizon mvcc.Timestamp) (*fake, []int) {
	f := newFake("merged")
	f.past = &fakeHistory{of: f}
	rows := make([]int, len(m))
	for i, lives := range m {
		present := &lives[len(lives)-1]
		if rows[i] = -1; present.died > 0 && present.died <= horizon {
			continue
		}
		rows[i] = f.keys.Len()
		past := record{row: rowset.RowID(rows[i]), horizon: horizon, of: f}
		past.add(lives)
		cells := present.last()
		f.addRow(t, key(i), reported(present.born, horizon), cells[0], cells[1])
	}
	return f, rows
}

// drawModel draws lives of keys and inputs that store them, and a horizon.
func drawModel(t *rapid.T, tb testing.TB) (m model, all []*fake, horizon mvcc.Timestamp) {
	all = make([]*fake, rapid.IntRange(1, 5).Draw(t, "inputs"))
	for i := range all {
		all[i] = newFake(fmt.Sprint("rowset ", i))
	}
	horizon = mvcc.Timestamp(rapid.IntRange(0, 40).Draw(t, "horizon"))
	for range rapid.IntRange(0, 30).Draw(t, "keys") {
		m.insert(tb, all, horizon, drawLives(t, len(all)))
		plain := modelLife{input: rapid.IntRange(0, len(all)-1).Draw(t, "input of a stretch"), born: 3}
		for range rapid.SampledFrom([]int{0, 0, 0, 0, 1, 10, 300, 5000}).Draw(t, "stretch") {
			plain.cells = [2]int{len(m), len(m)}
			m.insert(tb, all, horizon, []modelLife{plain})
		}
	}
	return m, all, horizon
}

// drawLives draws the lives of a key.
func drawLives(t *rapid.T, inputs int) (lives []modelLife) {
	now := mvcc.Timestamp(0)
	later := func(atLeast int) mvcc.Timestamp {
		now += mvcc.Timestamp(rapid.IntRange(atLeast, 9).Draw(t, "later"))
		return now
	}
	later(1)
	for range rapid.IntRange(1, 5).Draw(t, "lives") {
		l := modelLife{input: rapid.IntRange(0, inputs-1).Draw(t, "input"), born: later(0)}
		number := rapid.IntRange(0, 1000)
		l.cells = [2]int{number.Draw(t, "int"), number.Draw(t, "text")}
		for range rapid.IntRange(0, 3).Draw(t, "updates") {
			l.updates = append(l.updates, update{later(1), rapid.IntRange(0, 1).Draw(t, "column"), number.Draw(t, "new")})
		}
		l.died = later(1)
		lives = append(lives, l)
	}
	if rapid.Bool().Draw(t, "live") {
		lives[len(lives)-1].died = 0
	}
	return lives
}

// dump returns the rows of a source and what is known of their history, read in pieces
// of at most the given number of rows.
func dump(t fatal, s rowset.Source, piece int) []string {
	ints, texts, keys := vector.New(schema.KindInt64, 0), vector.New(schema.KindBytes, 0), vector.New(schema.KindBytes, 0)
	var times []mvcc.Timestamp
	var out []string
	for from := 0; from < s.Rows(); from += piece {
		to := min(s.Rows(), from+piece)
		var err error
		times, err = s.InsertTimes(bg, from, to, times)
		err = errors.Join(err, s.Column(bg, intCell, from, to, ints), s.Column(bg, textCell, from, to, texts), s.Keys(bg, from, to, keys))
		if err != nil {
			t.Fatal(err)
		}
		if h := s.History(from, to); h != nil {
			out = append(out, dumpHistory(t, h, from)...)
		}
	}
	for i := range s.Rows() {
		out = append(out, fmt.Sprintf("row %d: %x %v %v @%d", i, keys.BytesAt(i), cell(ints, i), cell(texts, i), times[i]))
	}
	slices.SortStableFunc(out, func(a, b string) int { return strings.Compare(a[:3], b[:3]) })
	return out
}

// cell returns a cell as text.
func cell(v *vector.Vector, i int) string {
	switch {
	case v.IsNull(i):
		return "NULL"
	case v.Kind() == schema.KindBytes:
		return v.StringAt(i)
	}
	return fmt.Sprint(v.Int64s()[i])
}

// fatal is a test.
type fatal interface{ Fatal(args ...any) }

// dumpHistory returns what a history yields, with rows numbered from a first one.
func dumpHistory(t fatal, h rowset.History, first int) (out []string) {
	for col, name := range []string{"int", "text"} {
		for v, err := range h.Versions(bg, col) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s of %d @%d: %v", name, int(v.Row)+first, v.Time, cell(v.Cells, v.At)))
		}
	}
	events := map[string]iter.Seq2[rowset.Event, error]{"death": h.Deaths(bg), "birth": h.Births(bg), "ghost": h.Ghosts(bg)}
	for name, seq := range events {
		for e, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s of %d @%d", name, int(e.Row)+first, e.Time))
		}
	}
	return out
}

// whole is a fake as a source.
type whole struct{ *fake }

func (w whole) Rows() int { return w.keys.Len() }

func (w whole) Column(_ context.Context, col, from, to int, dst *vector.Vector) error {
	return dst.AppendRange(w.cells[col], from, to)
}

func (w whole) Fork() rowset.Source { return w }

func (w whole) History(from, to int) rowset.History {
	if from > 0 || to < w.Rows() {
		panic("only the history of all rows")
	}
	return w.fake.History()
}

// TestGhostMergeModel compares merges with a model of the lives of each key.
func TestGhostMergeModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lives, all, horizon := drawModel(rt, t)
		m, err := Merge(bg, inputs(all), horizon)
		if err != nil {
			rt.Fatal(err)
		}
		want, rows := lives.merged(t, horizon)
		got := dump(rt, m, rapid.SampledFrom([]int{1000, 3000, 1 << 20}).Draw(rt, "piece"))
		if expected := dump(rt, whole{want}, 1<<30); !slices.Equal(got, expected) {
			rt.Fatalf("horizon %d: %s", horizon, difference(got, expected))
		}
		checkMaps(rt, m, lives, rows)
		stopEarly(rt, m)
		kept := false
		for _, f := range all {
			kept = kept || f.past != nil
			if f.past != nil && f.past.open != 0 {
				rt.Fatal("a sequence was not ended")
			}
		}
		if h := m.History(0, m.Rows()); (h != nil) != kept {
			rt.Fatalf("history %v", h)
		}
	})
}

// stopEarly reads one version and one death.
func stopEarly(t *rapid.T, m *Merged) {
	h := m.History(0, m.Rows())
	if h == nil {
		return
	}
	for _, err := range h.Versions(bg, intCell) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	for _, err := range h.Deaths(bg) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
}

// difference returns the first lines that differ.
func difference(got, want []string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	return fmt.Sprintf("%d lines, want %d; from line %d:\n%s\nwant\n%s", len(got), len(want), i,
		strings.Join(got[i:min(i+5, len(got))], "\n"), strings.Join(want[i:min(i+5, len(want))], "\n"))
}

// checkMaps compares what became of the rows of the inputs with the output rows of keys.
func checkMaps(t *rapid.T, m *Merged, lives model, rows []int) {
	next := make([]int, len(m.inputs))
	maps := make([][]int32, len(m.inputs))
	for i := range maps {
		maps[i] = m.Map(i)
	}
	for k := range lives {
		newest := lives[k][len(lives[k])-1].input
		for i := range maps {
			if !slices.ContainsFunc(lives[k], func(l modelLife) bool { return l.input == i }) {
				continue
			}
			want := -1
			if i == newest {
				want = rows[k]
			}
			if got := int(maps[i][next[i]]); got != want {
				t.Fatalf("row %d of %d is mapped to %d, want %d", next[i], i, got, want)
			}
			next[i]++
		}
	}
}

// equalDump compares the rows and the history of a merge.
func equalDump(t *testing.T, m *Merged, want ...string) {
	t.Helper()
	if got := dump(t, m, 1<<30); !slices.Equal(got, want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// mergeLives merges inputs, one for each life of one key.
func mergeLives(t *testing.T, horizon mvcc.Timestamp, lives ...modelLife) (*Merged, []*fake, error) {
	t.Helper()
	var all []*fake
	for i := range lives {
		lives[i].input = i
		all = append(all, newFake(fmt.Sprint("rowset ", i)))
	}
	var m model
	m.insert(t, all, horizon, lives)
	merged, err := Merge(bg, inputs(all), horizon)
	return merged, all, err
}

// threeLives are 0 from 1 to 11; 0 from 21, 1 from 31 to 41; 0 from 51, 2 from 61 on.
func threeLives() []modelLife {
	return []modelLife{
		{born: 1, died: 11},
		{born: 21, died: 41, updates: []update{{31, intCell, 1}}},
		{born: 51, updates: []update{{61, intCell, 2}}},
	}
}

// TestItem103GhostMergeExample merges three rowsets that hold one key, of which one is live.
func TestItem103GhostMergeExample(t *testing.T) {
	m, _, err := mergeLives(t, 0, threeLives()...)
	if err != nil {
		t.Fatal(err)
	}
	equalDump(t, m,
		"birth of 0 @1", "birth of 0 @21",
		"death of 0 @11", "death of 0 @41",
		"int of 0 @11: 0", "int of 0 @31: 0", "int of 0 @41: 1", "int of 0 @61: 0",
		fmt.Sprintf("row 0: %x 2 NULL @51", key(0)),
		"text of 0 @11: NULL", "text of 0 @41: NULL",
	)
	for i, want := range []int32{-1, -1, 0} {
		if got := m.Map(i); got[0] != want {
			t.Errorf("rowset %d: %d", i, got[0])
		}
	}
}

// TestItem103AncientGhosts keeps nothing of ghosts that died before the horizon.
func TestItem103AncientGhosts(t *testing.T) {
	for _, horizon := range []mvcc.Timestamp{50, 100} {
		m, _, err := mergeLives(t, horizon, modelLife{born: 1, died: 11}, modelLife{born: 21, died: 31, cells: [2]int{1, 1}},
			modelLife{born: 41, died: 50, cells: [2]int{2, 2}}, modelLife{born: 50, cells: [2]int{3, 3}})
		if err != nil {
			t.Fatal(err)
		}
		if m.History(0, 1) != nil {
			t.Error("there is history")
		}
		want := fmt.Sprintf("row 0: %x 3 row 3 @0", key(0))
		equalDump(t, m, want)
	}
}

// TestItem103RecentUpdate drops ghosts with updates and keeps the live row's update,
// which is after the horizon.
func TestItem103RecentUpdate(t *testing.T) {
	m, _, err := mergeLives(t, 41, threeLives()...)
	if err != nil {
		t.Fatal(err)
	}
	equalDump(t, m, "int of 0 @61: 0", fmt.Sprintf("row 0: %x 2 NULL @51", key(0)))
}

// TestGhostMergeNoHistory keeps nothing when the horizon is the time of the merge.
func TestGhostMergeNoHistory(t *testing.T) {
	m, _, err := mergeLives(t, 61, threeLives()...)
	if err != nil {
		t.Fatal(err)
	}
	if m.History(0, 1) != nil {
		t.Error("there is history")
	}
	equalDump(t, m, fmt.Sprintf("row 0: %x 2 NULL @51", key(0)))
}

// TestGhostMergeOnlyGhosts merges ghosts of one key: the last one is the row.
func TestGhostMergeOnlyGhosts(t *testing.T) {
	m, _, err := mergeLives(t, 5, threeLives()[:2]...)
	if err != nil {
		t.Fatal(err)
	}
	equalDump(t, m,
		"death of 0 @11",
		"ghost of 0 @41",
		"int of 0 @11: 0", "int of 0 @31: 0",
		fmt.Sprintf("row 0: %x 1 NULL @21", key(0)),
		"text of 0 @11: NULL",
	)
}

// TestGhostMergeMany merges more older ghosts than are read at a time.
func TestGhostMergeMany(t *testing.T) {
	const n = 3*imageBlock + 5
	all := []*fake{newFake("rowset 0"), newFake("rowset 1"), newFake("rowset 2")}
	var lives model
	for i := range n {
		lives.insert(t, all, 1, []modelLife{
			{input: i % 2, born: 2, died: 10, cells: [2]int{i, i}}, {input: 2, born: 20, cells: [2]int{2 * i, 3 * i}},
		})
	}
	m, err := Merge(bg, inputs(all), 1)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := lives.merged(t, 1)
	for _, piece := range []int{100, n} {
		if got, expected := dump(t, m, piece), dump(t, whole{want}, n); !slices.Equal(got, expected) {
			t.Fatal(difference(got, expected))
		}
	}
	for _, f := range all[:2] {
		if f.widestCell > 2*imageBlock {
			t.Errorf("%d cells were read at once", f.widestCell)
		}
	}
}

// TestGhostMergeFarRows does not read the history of inputs whose rows are elsewhere.
func TestGhostMergeFarRows(t *testing.T) {
	all := []*fake{newFake("rowset 0"), newFake("rowset 1")}
	var lives model
	for i := range 1000 {
		lives.insert(t, all, 1, []modelLife{{input: i / 500, born: 2, updates: []update{{5, intCell, 1}}}})
	}
	all[1].fail = "Versions"
	m, err := Merge(bg, inputs(all), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(m.History(0, 500).Versions(bg, intCell)); err != nil {
		t.Error(err)
	}
	if _, err := read(m.History(1, 501).Versions(bg, intCell)); !errors.Is(err, errFake) {
		t.Error(err)
	}
}

// read counts the elements of a sequence before its end or an error.
func read[T any](seq iter.Seq2[T, error]) (n int, err error) {
	for _, err := range seq {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// TestItem106C33WrongHistory merges lives of a key that cannot be.
func TestItem106C33WrongHistory(t *testing.T) {
	for _, x := range []struct {
		says  string
		lives []modelLife
	}{
		{"is live in", []modelLife{{born: 1}, {born: 5}}},
		{"is live in", []modelLife{{born: 10}, {born: 1, died: 9}, {born: 20}}},
		{"inserted before, at 20", []modelLife{{born: 11, died: 30}, {born: 20}}},
		{"inserted before, at 20", []modelLife{{born: 40}, {born: 11, died: 30}, {born: 20, died: 31}}},
		{"was deleted at 9 in", []modelLife{{died: 9}, {died: 9}, {born: 20}}},
		{"was deleted before", []modelLife{{born: 12, died: 11}, {born: 20}}},
	} {
		m, all, err := mergeLives(t, 0, x.lives...)
		if m != nil || !errors.Is(err, vfs.ErrCorruption) {
			t.Fatalf("%s: %v", x.says, err)
		}
		for _, part := range []string{x.says, fmt.Sprintf("%x", key(0)), "row 0", "rowset "} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not name %s", err, part)
			}
		}
		for i, f := range all {
			if f.keys.Len() != 1 || f.times[0] != x.lives[i].born || f.past != nil && f.past.open > 0 {
				t.Errorf("%s: rowset %d was changed", x.says, i)
			}
		}
	}
}

// TestItem106WrongSequences reads sequences that cannot be.
func TestItem106WrongSequences(t *testing.T) {
	lives := func() []modelLife {
		return []modelLife{{born: 1, died: 20}, {born: 0, updates: []update{{30, intCell, 1}}}}
	}
	m, all, err := mergeLives(t, 0, lives()...)
	if err != nil {
		t.Fatal(err)
	}
	version := &all[1].past.versions[intCell][0]
	version.Time = 20 // as the ghost's death
	wrong := func(says string) {
		_, err := read(m.History(0, 1).Versions(bg, intCell))
		if !errors.Is(err, vfs.ErrCorruption) || !strings.Contains(err.Error(), says) {
			t.Error(err)
		}
	}
	wrong("rowset 1, row 0")
	version.Row = 1
	wrong("there is no row 1")
}

// TestGhostMergeErrors makes each method of an input fail, and each sequence after any
// number of elements.
func TestGhostMergeErrors(t *testing.T) {
	build := func(fail string, after int) []Input {
		all := []*fake{newFake("rowset 0"), newFake("rowset 1")}
		var lives model
		for range 10 {
			lives.insert(t, all, 0, []modelLife{
				{input: 0, born: 1, died: 2}, {input: 1, born: 3, died: 4}, {input: 0, born: 5, died: 6}, {input: 1, born: 7, died: 8},
			})
		}
		all[1].fail, all[1].past.failAfter = fail, after
		return inputs(all)
	}
	for _, fail := range []string{"Keys", "Live", "InsertTimes", "Ghosts"} {
		if m, err := Merge(bg, build(fail, 0), 0); m != nil || !errors.Is(err, errFake) {
			t.Errorf("%s: %v", fail, err)
		}
	}
	if _, err := Merge(bg, build("Ghosts", 3), 0); !errors.Is(err, errFake) {
		t.Error(err)
	}
	for after := range 10 {
		for _, fail := range []string{"Versions", "Deaths", "Births"} {
			m, err := Merge(bg, build(fail, after), 0)
			if err != nil {
				t.Fatal(err)
			}
			h := m.History(0, m.Rows())
			_, v := read(h.Versions(bg, textCell))
			_, d := read(h.Deaths(bg))
			_, b := read(h.Births(bg))
			_, g := read(h.Ghosts(bg))
			got := map[string]error{"Versions": v, "Deaths": d, "Births": b, "Ghosts": g}
			for name, err := range got {
				if errors.Is(err, errFake) != (name == fail) {
					t.Errorf("%s of %s after %d: %v", name, fail, after, err)
				}
			}
		}
	}
	in := build("", 0)
	m, err := Merge(bg, in, 0)
	if err != nil {
		t.Fatal(err)
	}
	in[0].(*fake).fail, in[1].(*fake).fail = "Cells", "Ghosts"
	h := m.History(0, m.Rows())
	if _, err := read(h.Versions(bg, intCell)); !errors.Is(err, errFake) {
		t.Error(err)
	}
	if _, err := read(h.Ghosts(bg)); !errors.Is(err, errFake) {
		t.Error(err)
	}
}

// BenchmarkMergeGhosts merges ghosts with rows of the same keys that were inserted later.
func BenchmarkMergeGhosts(b *testing.B) {
	const n = 200_000
	all := []*fake{newFake("rowset 0"), newFake("rowset 1")}
	var lives model
	for range n {
		lives.insert(b, all, 1, []modelLife{
			{input: 0, born: 2, died: 20, updates: []update{{10, intCell, 1}}},
			{input: 1, born: 21, updates: []update{{30, intCell, 2}}},
		})
	}
	in := inputs(all)
	b.Run("keys", func(b *testing.B) {
		for b.Loop() {
			if _, err := Merge(bg, in, 1); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
	})
	m, err := Merge(bg, in, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("versions", func(b *testing.B) {
		for b.Loop() {
			if k, err := read(m.History(0, n).Versions(bg, intCell)); k != 3*n || err != nil {
				b.Fatal(k, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(3*n), "ns/version")
	})
}
