package diskrowset

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/minikudu/minikudu/compaction"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"pgregory.net/rapid"
)

func TestVisibility(t *testing.T) {
	src := kv(t, 3000, col("v", schema.Int32), func(i int) schema.Value { return i32(i) }) // row i at 1000+i
	st := newStore(t, src.schema)
	r := st.one(src)
	fresh := st.one(src, func(o *WriterOptions) { o.Horizon = 1500 })
	same := st.one(kv(t, 10, col("v", schema.Int32), func(i int) schema.Value { return i32(i) }).at(2000))
	count := func(r *RowSet, lo, hi mvcc.Timestamp, want int, skipped int64) {
		t.Helper()
		got, stats := query{spec: rowset.ScanSpec{Time: mvcc.Interval{Lo: lo, Hi: hi}}}.scan(t, r)
		if len(got) != want || stats.RowSetsByTime.Load() != skipped {
			t.Errorf("(%d, %d]: %d rows, want %d; %d skipped", lo, hi, len(got), want, stats.RowSetsByTime.Load())
		}
	}
	count(r, 0, 999, 0, 1)
	count(r, 0, 1000, 1, 0)
	count(r, 0, 2000, 1001, 0)
	count(r, 0, 3999, 3000, 0)
	count(r, 1000, 1002, 2, 0)
	count(r, 999, 5000, 3000, 0)
	count(r, 3999, 5000, 0, 1)
	count(fresh, 0, 1499, 500, 0) // stored as 0, always visible
	count(fresh, 0, 1500, 501, 0)
	count(fresh, 1499, 1501, 2, 0)
	if fresh.meta.MinInsert != 0 || fresh.meta.MaxInsert != 3999 {
		t.Errorf("insert times %d..%d", fresh.meta.MinInsert, fresh.meta.MaxInsert)
	}
	if _, ok := same.meta.Section(rowset.SectionInsertTimes, -1); ok || same.meta.MinInsert != 2000 {
		t.Error("equal insert times are stored")
	}
	count(same, 0, 1999, 0, 1)
	count(same, 0, 2000, 10, 0)
	count(same, 1999, 2000, 10, 0)
	count(same, 2000, 3000, 0, 1)
}

// TestRollingKeepsTheTarget writes sources whose rows change their size on the way.
func TestRollingKeepsTheTarget(t *testing.T) {
	s := newSchema(t, 2, col("host", schema.String), col("ts", schema.Int64), col("v", schema.Double), col("msg", schema.String))
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return string(b)
	}
	shapes := map[string]func(i int) int{
		"even":    func(int) int { return 40 },
		"growing": func(i int) int { return i / 200 },
		"lumps":   func(i int) int { return 300 * (i / 4000 % 2) },
		"rare":    func(i int) int { return 20000 * (1 - min(i%500, 1)) },
	}
	for name, size := range shapes {
		t.Run(name, func(t *testing.T) {
			var cells [][]schema.Value
			for i := range 30000 {
				cells = append(cells, []schema.Value{str(fmt.Sprintf("host%d", i/1000)), i64(i * 100), f64(float64(i % 100)), str(noise(size(i)))})
			}
			src := newRows(t, s, cells)
			st := newStore(t, s)
			const target = 512 << 10
			sets := st.write(src, func(o *WriterOptions) { o.TargetBytes = target })
			total, rows := 0, 0
			for i, r := range sets {
				n := len(st.read(dir + "/" + FileName(r.meta.Sections[0].File)))
				if n > target*11/10 || i < len(sets)-2 && n < target/2 {
					t.Errorf("file %d of %d has %d bytes", i, len(sets), n)
				}
				total += n
				rows += int(r.Rows())
			}
			if rows != src.Rows() {
				t.Errorf("%d rows of %d", rows, src.Rows())
			}
			t.Logf("%d files of %d KiB on average, %d numbers used", len(sets), total/len(sets)>>10, st.next)
		})
	}
}

// counted is a source that counts the cells read of it.
type counted struct {
	rowset.FromFiles
	cells *atomic.Int64
}

func (c counted) Fork() rowset.Source {
	return counted{c.FromFiles.Fork().(rowset.FromFiles), c.cells}
}

func (c counted) Column(ctx context.Context, col, from, to int, dst *vector.Vector) error {
	c.cells.Add(int64(to - from))
	return c.FromFiles.Column(ctx, col, from, to, dst)
}

// TestMergeKeepsTheTarget: a merge cuts files by what its inputs take, and reads no cell for
// that.
func TestMergeKeepsTheTarget(t *testing.T) {
	const n, target = 40_000, 2 << 20
	rnd := rand.New(rand.NewPCG(5, 6))
	for name, size := range map[string]func(i int) int{
		"even":    func(int) int { return 400 },
		"growing": func(i int) int { return i / 30 },
		"lumps":   func(i int) int { return 1600 * (i / 4000 % 2) },
	} {
		t.Run(name, func(t *testing.T) {
			src := kv(t, n, col("msg", schema.String), func(i int) schema.Value {
				b := make([]byte, size(i))
				for k := range b {
					b[k] = byte(rnd.Uint32())
				}
				return str(string(b))
			})
			var parts [3][]int32
			for i := range n {
				k := i * 3 / n
				if i > n/2 {
					k = rnd.IntN(3)
				}
				parts[k] = append(parts[k], int32(i))
			}
			st := newStore(t, src.schema)
			var in []compaction.Input
			for _, rows := range parts {
				for _, s := range st.write(src.pick(t, rows)) {
					snapshot, err := s.At(mvcc.Max, mvcc.Max)
					must(t, err)
					defer snapshot.Close()
					in = append(in, snapshot)
				}
			}
			m, err := compaction.Merge(bg, in, mvcc.Max)
			must(t, err)
			var cells atomic.Int64
			first := st.next
			sets := st.write(counted{m, &cells}, func(o *WriterOptions) { o.TargetBytes = target })
			for i, s := range sets {
				if b := s.meta.EncodedBytes(); b > target*11/10 || i < len(sets)-2 && b < target*2/3 {
					t.Errorf("file %d of %d has %d bytes", i, len(sets), b)
				}
			}
			if begun := int(st.next - first); begun > len(sets)+1 || begun == len(sets) && cells.Load() > 2*n {
				t.Errorf("%d files of %d, %d cells of %d read", begun, len(sets), cells.Load(), 2*n)
			}
		})
	}
}

func TestC10LargeCells(t *testing.T) {
	s := newSchema(t, 1, col("k", schema.Int32), nullable("s", schema.String))
	var cells [][]schema.Value
	for i, n := range []int{0, 1, 64 << 10, 1 << 20, 12 << 20} {
		cells = append(cells, []schema.Value{i32(i), str(strings.Repeat("x", n))})
	}
	src := newRows(t, s, cells)
	st := newStore(t, s)
	at := 0
	for _, r := range st.write(src, func(o *WriterOptions) { o.TargetBytes = 1 << 20 }) {
		got, _ := query{}.scan(t, r)
		equalLines(t, got, src.lines(nil)[at:at+len(got)])
		at += len(got)
	}
	if at != 5 {
		t.Fatalf("%d rows", at)
	}
}

func TestWriteFailureLeavesNothing(t *testing.T) {
	src := small(t, 10000)
	for k := 0; ; k += 1 + k/3 {
		st := newStore(t, src.schema)
		var calls atomic.Int64
		failure := errors.New("source failed")
		src.fail = func() error {
			if calls.Add(1) > int64(k) {
				return failure
			}
			return nil
		}
		o := st.options()
		o.TargetBytes = 32 << 10
		all, err := Write(bg, src, o)
		names, _ := st.fs.List(dir)
		if err == nil {
			if len(names) != len(all) {
				t.Fatalf("%d files, %d named", len(names), len(all))
			}
			return
		}
		if len(names) > 0 || all != nil {
			t.Fatalf("after %d calls: left %v", k, names)
		}
		if !errors.Is(err, failure) {
			t.Fatalf("after %d calls: %v", k, err)
		}
	}
}

// However many processors make the parts of a file, its bytes are the same.
func TestPartsMadeBesideEachOther(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	src := small(t, 20000)
	var want Written
	for _, n := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(n)
		got, err := Write(bg, src, newStore(t, src.schema).options())
		must(t, err)
		if n == 1 {
			want = got[0]
		}
		if len(got) != 1 || got[0].Checksum != want.Checksum || got[0].Size != want.Size {
			t.Fatalf("with %d processors %d files, the first of %d bytes, want %d", n, len(got), got[0].Size, want.Size)
		}
	}
}

// timed is a source that counts the insert times read of it.
type timed struct {
	*rows
	times *atomic.Int64
}

func (c timed) Fork() rowset.Source { return c }

func (c timed) InsertTimes(ctx context.Context, from, to int, dst []mvcc.Timestamp) ([]mvcc.Timestamp, error) {
	c.times.Add(int64(to - from))
	return c.rows.InsertTimes(ctx, from, to, dst)
}

// Insert times are read once, whether they turn out to be the same or not.
func TestTimesAreReadOnce(t *testing.T) {
	src := small(t, 5000)
	st := newStore(t, src.schema)
	for _, same := range []bool{false, true} {
		if same {
			src.at(2000)
		}
		var n atomic.Int64
		r := st.one(timed{src, &n})
		if _, stored := r.meta.Section(rowset.SectionInsertTimes, -1); n.Load() != 5000 || stored == same {
			t.Errorf("%d times read, stored: %t", n.Load(), stored)
		}
	}
}

// Habits are learnt by column, and change no answer.
func TestWritersShareHabits(t *testing.T) {
	src := small(t, 20000)
	st := newStore(t, src.schema)
	var h Habits
	use := func(o *WriterOptions) { o.Habits = &h }
	want, _ := query{}.scan(t, st.one(src))
	for range 2 {
		got, _ := query{}.scan(t, st.one(src, use))
		equalLines(t, got, want)
	}
	if len(h.columns) != src.schema.Len()+1 {
		t.Errorf("habits of %d columns, want those of %d and the insert times", len(h.columns), src.schema.Len())
	}
	got, _ := query{}.scan(t, st.one(src, use, func(o *WriterOptions) { o.KuduCompatible = true }))
	equalLines(t, got, want)
}

// A file that is given up since its context ends says so, whichever part notices.
func TestWriteIsCancelled(t *testing.T) {
	src := small(t, 10000)
	st := newStore(t, src.schema)
	ctx, cancel := context.WithCancel(bg)
	src.fail = func() error { cancel(); return nil }
	if _, err := Write(ctx, src, st.options()); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if names, _ := st.fs.List(dir); len(names) > 0 {
		t.Fatalf("left %v", names)
	}
}

func TestWriteOnFullDisk(t *testing.T) {
	src := small(t, 20000)
	for capacity := int64(0); ; capacity += 100 << 10 {
		st := newStore(t, src.schema)
		st.fs.SetCapacity(capacity)
		o := st.options()
		o.TargetBytes = 32 << 10
		if _, err := Write(bg, src, o); err == nil {
			return
		}
		if names, _ := st.fs.List(dir); len(names) > 0 {
			t.Fatalf("left %v", names)
		}
	}
}

func TestUnorderedSourceIsRefused(t *testing.T) {
	src := small(t, 1000)
	k := vector.New(schema.KindBytes, 0)
	must(t, k.AppendRange(src.keys, 0, 500))
	must(t, k.AppendRange(src.keys, 499, 999))
	src.keys = k
	st := newStore(t, src.schema)
	if _, err := Write(bg, src, st.options()); err == nil || !strings.Contains(err.Error(), "ascend") {
		t.Fatalf("error %v", err)
	}
}

func TestEmptySource(t *testing.T) {
	src := kv(t, 0, col("v", schema.Int32), nil)
	st := newStore(t, src.schema)
	if all, err := Write(bg, src, st.options()); err != nil || len(all) != 0 {
		t.Fatalf("%v, %v", all, err)
	}
}

func TestFileNames(t *testing.T) {
	for _, n := range []rowset.FileNum{0, 1, 1<<40 + 5} {
		if got, ok := ParseFileName(FileName(n)); !ok || got != n {
			t.Errorf("%s gives %d, %v", FileName(n), got, ok)
		}
	}
	for _, name := range []string{"", "1.rowset", "0000000001.row", "x0000000001.rowset", "0000000001.rowset2", "-000000001.rowset"} {
		if _, ok := ParseFileName(name); ok {
			t.Errorf("%q is taken for a rowset file", name)
		}
	}
}

func TestRunsFind(t *testing.T) {
	keys := []string{"", "a", "a\x00", "a\x00\x00", "ab", "abcdefgh", "abcdefgh\x00", "abcdefghi", "b"}
	for from := range keys {
		v := vector.New(schema.KindBytes, 0)
		for _, k := range keys[from:] {
			must(t, v.AppendBytes([]byte(k)))
		}
		x := newRuns(v)
		for _, k := range append(slices.Clone(keys), "A", "abcdefgg", "abcdefgi", "c", "abc") {
			want := -1
			for i, have := range keys[from:] {
				if have <= k {
					want = i
				}
			}
			for at := -1; at <= want; at++ {
				if got := x.find([]byte(k), at); got != want {
					t.Errorf("find(%q, %d) in %q: got %d, want %d", k, at, keys[from:], got, want)
				}
			}
		}
	}
}

// Runs are found whatever their keys have in common.
func TestRunsFindModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		part := rapid.SampledFrom([]string{"", "a", "b", "\x00", "0123456789abcdef", "fedcba987654321"})
		key := rapid.Map(rapid.SliceOfN(part, 0, 4), func(p []string) string { return strings.Join(p, "") })
		keys := rapid.SliceOfNDistinct(key, 1, 100, rapid.ID[string]).Draw(r, "keys")
		slices.Sort(keys)
		v := vector.New(schema.KindBytes, 0)
		for _, k := range keys {
			must(t, v.AppendBytes([]byte(k)))
		}
		k := rapid.OneOf(key, rapid.SampledFrom(keys)).Draw(r, "key")
		want, _ := slices.BinarySearch(keys, k+"\x00")
		if got := newRuns(v).find([]byte(k), -1); got != want-1 {
			r.Fatalf("find(%q) in %q: got %d, want %d", k, keys, got, want-1)
		}
	})
}

// TestFormatExample pins the directory of the example in the format's description.
func TestFormatExample(t *testing.T) {
	src := kv(t, 3, col("val", schema.String), func(i int) schema.Value { return str("abc"[i : i+1]) })
	st := newStore(t, src.schema)
	st.one(src.at(4096), func(o *WriterOptions) { o.KuduCompatible = true })
	b := st.read(dir + "/" + FileName(1))
	const want = "0703" + "0480000000" + "0480000002" + "80208020" + "0102" + "14036b65790500000000" + "160376616c0800000000" +
		"05" + "011440d401" + "01169402d401" + "0514e8032a" + "0516920422" + "0401b4046f" + "4100000055edf0a8" + "6d6b726f77736574"
	if len(b) != 756 || fmt.Sprintf("%x", b[0x2a3:]) != want {
		t.Errorf("file of %d bytes ends with %x", len(b), b[max(0, len(b)-81):])
	}
	if got := fmt.Sprintf("%x", b[0x294:0x2a3]); got != "0160"+"0480000000"+"07000000"+"ffc2e6ed" {
		t.Errorf("filter directory %s", got)
	}
}

// TestRollingOfSeries: columns that are small by their differences do not make the first
// file small.
func TestRollingOfSeries(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	at := 0
	src := kv(t, 200_000, col("at", schema.Int64), func(int) schema.Value {
		at += 1000 + rnd.IntN(100)
		return i64(at)
	})
	st := newStore(t, src.schema)
	const target = 256 << 10
	sets := st.write(src, func(o *WriterOptions) { o.TargetBytes, o.NoFilters = target, true })
	if n := sets[0].meta.EncodedBytes(); len(sets) == 1 && n < target/4 || len(sets) > 1 && n < target*2/3 {
		t.Errorf("%d files, the first of %d bytes, want %d", len(sets), n, target)
	}
	t.Logf("%d files, the first of %d bytes", len(sets), sets[0].meta.EncodedBytes())
}
