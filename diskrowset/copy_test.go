package diskrowset

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/minikudu/minikudu/compaction"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

// neighbours writes rows into three rowsets that overlap only at their edges.
func neighbours(t *testing.T, st *store, src *rows, o ...func(*WriterOptions)) (sets []*RowSet) {
	t.Helper()
	var parts [3][]int32
	n, rnd := src.Rows(), rand.New(rand.NewPCG(1, 2))
	for i := range n {
		k := i * 3 / n
		if near := (i + n/60) * 3 / n; near != k && near < 3 && rnd.IntN(2) == 0 {
			k = near
		}
		parts[k] = append(parts[k], int32(i))
	}
	for _, rows := range parts {
		sets = append(sets, st.one(src.pick(t, rows), o...))
	}
	return sets
}

// manyPages returns rows of a text, a number, a double and a word, whose pages are small.
func manyPages(t *testing.T, n int) *rows {
	cols := []schema.Column{col("run", schema.Int32), col("event", schema.Int64), col("text", schema.String), nullable("number", schema.Int64),
		nullable("double", schema.Double), nullable("word", schema.String)}
	for i := range cols {
		cols[i].BlockSize = 4096
	}
	s := newSchema(t, 2, cols...)
	rnd := rand.New(rand.NewPCG(3, 4))
	var cells [][]schema.Value
	for i := range n {
		row := []schema.Value{i32(i / 1000), i64(i * 3), str(fmt.Sprintf("line %d of %x", i, rnd.Uint64())), i64(rnd.IntN(1 << 20)),
			f64(rnd.NormFloat64()), str(fmt.Sprint("word ", i%11))}
		for k := 3; k < 6; k++ {
			if i/2000%4 == k {
				row[k] = schema.Null
			}
		}
		cells = append(cells, row)
	}
	return newRows(t, s, cells)
}

// merged merges rowsets and counts the cells read.
func merged(t *testing.T, st *store, sets []*RowSet, o ...func(*WriterOptions)) (out []*RowSet, cells int64) {
	t.Helper()
	m, done := mergeOf(t, sets)
	defer done()
	var n atomic.Int64
	return st.write(counted{m, &n}, o...), n.Load()
}

func mergeOf(t *testing.T, sets []*RowSet) (*compaction.Merged, func()) {
	t.Helper()
	var in []compaction.Input
	var open []*Snapshot
	for _, s := range sets {
		n, err := s.At(mvcc.Max, mvcc.Max)
		must(t, err)
		in, open = append(in, n), append(open, n)
	}
	m, err := compaction.Merge(bg, in, mvcc.Max)
	must(t, err)
	return m, func() {
		for _, n := range open {
			n.Close()
		}
	}
}

// A merge copies the pages of rows that come from one rowset in a stretch, and reads the
// rest. The store of the test verifies what it made.
func TestMergeCopiesPages(t *testing.T) {
	const n = 30_000
	src := manyPages(t, n)
	st := newStore(t, src.schema)
	sets := neighbours(t, st, src)
	out, cells := merged(t, st, sets)
	got, _ := query{}.scan(t, out[0])
	equalLines(t, got, src.lines(nil))
	// Of six columns one, of words, is read. Of the others the edges are.
	if len(out) != 1 || cells < n || cells > n+n {
		t.Errorf("%d files, %d cells read of %d rows", len(out), cells, n)
	}
	again, cells := merged(t, st, out)
	got, _ = query{}.scan(t, again[0])
	equalLines(t, got, src.lines(nil))
	if cells > n+n/4 {
		t.Errorf("alone: %d cells read of %d rows", cells, n)
	}
	infos, err := out[0].Columns(bg)
	must(t, err)
	for i := range infos {
		if plain := plainBytes(src.cols[i]); infos[i].PlainBytes < plain*9/10 || infos[i].PlainBytes > plain*11/10 {
			t.Errorf("column %d: %d plain bytes, want about %d", i, infos[i].PlainBytes, plain)
		}
	}
}

// Columns whose cells were changed are read, the others are copied; rows that were deleted
// end a stretch.
func TestMergeCopiesUnchangedColumns(t *testing.T) {
	const n = 30_000
	src := manyPages(t, n)
	st := newStore(t, src.schema)
	sets := neighbours(t, st, src)
	const text, number = 2, 3
	set(t, sets[1], 50_000, text, []rowset.RowID{4000}, str("changed"))
	st.flush(sets[1])
	set(t, sets[0], 50_001, number, []rowset.RowID{10}, i64(-1))
	del(t, sets[2], 50_002, 5000, 5001)
	var want []string
	for _, s := range sets {
		lines, _ := query{spec: rowset.ScanSpec{WithKeys: true, Time: mvcc.Interval{Hi: mvcc.Max}}}.scan(t, s)
		want = append(want, lines...)
	}
	out, cells := merged(t, st, sets)
	got, _ := query{spec: rowset.ScanSpec{WithKeys: true}}.scan(t, out[0])
	sortByKey(want)
	equalLines(t, got, want)
	if len(got) != n-2 || !strings.Contains(strings.Join(got, "\n"), "changed") {
		t.Errorf("%d rows", len(got))
	}
	if cells < n+2*n/3 || cells > 3*n {
		t.Errorf("%d cells read of %d rows", cells, n)
	}
}

func sortByKey(lines []string) {
	key := func(s string) string { return s[strings.LastIndexByte(s, '#'):] }
	for i := 1; i < len(lines); i++ {
		for k := i; k > 0 && key(lines[k]) < key(lines[k-1]); k-- {
			lines[k], lines[k-1] = lines[k-1], lines[k]
		}
	}
}

// Pages of other encodings than the output is to have are read.
func TestMergeOfOtherPages(t *testing.T) {
	const n = 12_000
	src := manyPages(t, n)
	kudu := func(o *WriterOptions) { o.KuduCompatible = true }
	for name, x := range map[string][2][]func(*WriterOptions){
		"from Kudu's": {{kudu}, nil}, "to Kudu's": {nil, {kudu}}, "both Kudu's": {{kudu}, {kudu}},
	} {
		st := newStore(t, src.schema)
		out, cells := merged(t, st, neighbours(t, st, src, x[0]...), x[1]...)
		if cells != n*int64(src.schema.Len()) {
			t.Errorf("%s: %d cells of %d read", name, cells, n*src.schema.Len())
		}
		got, _ := query{}.scan(t, out[0])
		equalLines(t, got, src.lines(nil))
	}
}

// A damaged page ends the merge with an error that says where it is, and no file is left.
func TestMergeFindsDamage(t *testing.T) {
	src := manyPages(t, 30_000)
	st := newStore(t, src.schema)
	sets := neighbours(t, st, src)
	const text = 2
	d, err := sets[1].columns[text].open(bg)
	must(t, err)
	at := sets[1].columns[text].section.Offset + d.index.Offsets[d.index.Pages()/2]
	name := dir + "/" + FileName(sets[1].meta.Sections[0].File)
	b := st.read(name)
	b[at+100] ^= 4
	st.damaged = true
	sets[1] = st.reopened(sets[1], b)
	defer sets[1].env.Files.Close()
	defer sets[1].Close()
	before, _ := st.fs.List(dir)
	m, done := mergeOf(t, sets)
	defer done()
	_, err = Write(bg, m, st.options())
	var damage *vfs.CorruptionError
	if !errors.As(err, &damage) || !strings.HasSuffix(damage.Path, ".rowset") || damage.Section != "data block of column text" || damage.Offset != at || damage.Want == damage.Got {
		t.Fatalf("error %v", err)
	}
	if after, _ := st.fs.List(dir); len(after) != len(before) {
		t.Errorf("left %v, before %v", after, before)
	}
}
