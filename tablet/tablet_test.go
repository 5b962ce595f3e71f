package tablet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/filecache"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

var bg = context.Background()

// store stands for the owner of one tablet of (k int64, v int64 null).
type store struct {
	testing.TB
	fs      *errorfs.FS
	t       *Tablet
	state   State
	now     mvcc.Timestamp
	nextID  rowset.ID
	nextNum rowset.FileNum
	publish func(p *Publication) error // nil: succeeds
	sync    func(through mvcc.Timestamp) error
	keep    mvcc.Timestamp // history after it is kept; 0 keeps none
}

func newStore(t testing.TB, auto bool) *store {
	t.Helper()
	cols := []schema.Column{{Name: "k", Type: schema.Int64, ID: 0}, {Name: "v", Type: schema.Int64, Nullable: true, ID: 1}}
	key := []string{"k"}
	if auto {
		cols = append(cols, schema.Column{Name: schema.AutoIncrementName, Type: schema.Int64, ID: 2})
		key = append(key, schema.AutoIncrementName)
	}
	sch, err := schema.New(cols, key, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s := &store{TB: t, fs: errorfs.Wrap(vfs.NewMem()), now: 100, state: State{ID: 1, Schema: sch, SchemaVersion: 1}}
	if err := s.fs.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	s.open()
	t.Cleanup(func() { s.t.Close() })
	return s
}

// open opens the tablet as it was published last.
func (s *store) open() {
	s.Helper()
	env := Env{
		Disk:      diskrowset.Env{FS: s.fs, Files: filecache.New(s.fs, 2), Pages: cache.New[cache.Page](1 << 20), Dir: "data"},
		Writer:    diskrowset.WriterOptions{FS: s.fs, Dir: "data", TargetBytes: 4096, NewFile: func() rowset.FileNum { s.nextNum++; return s.nextNum }},
		NewRowSet: func() rowset.ID { s.nextID++; return s.nextID },
		SyncLog: func(_ context.Context, through mvcc.Timestamp) error {
			if s.sync != nil {
				return s.sync(through)
			}
			return nil
		},
		Visible: func() mvcc.Timestamp { return s.now },
		Quiesce: func(f func()) { f() },
		Horizon: func(raise func(mvcc.Timestamp)) {
			if s.keep == 0 {
				raise(s.now)
			} else {
				raise(min(s.keep, s.now))
			}
		},
		Replaying: func() bool { return false },
		Publish: func(_ context.Context, p *Publication) error {
			if s.publish != nil {
				if err := s.publish(p); err != nil {
					return err
				}
			}
			s.state.I, s.state.MaxM, s.state.H, s.state.LastID = p.I, p.MaxM, p.H, p.LastID
			for i, m := range s.state.RowSets {
				if p.Update != nil && m.ID == p.Update.ID {
					s.state.RowSets[i] = p.Update
				}
			}
			s.state.RowSets = slices.DeleteFunc(s.state.RowSets, func(m *rowset.Meta) bool { return slices.Contains(p.Remove, m) })
			for _, w := range p.Add {
				s.state.RowSets = append(s.state.RowSets, w.Meta)
			}
			return nil
		},
	}
	var err error
	if s.t, err = Open(env, s.state); err != nil {
		s.Fatal(err)
	}
}

// insert commits rows (k, 10k) at the next timestamp and returns it.
func (s *store) insert(keys ...int64) mvcc.Timestamp {
	s.Helper()
	op := s.resolve(keys...)
	defer op.Release()
	op.Pin()
	s.now++
	if err := op.Apply(s.now); err != nil {
		s.Fatal(err)
	}
	return s.now
}

func (s *store) resolve(keys ...int64) *Op {
	s.Helper()
	op, err := s.t.Resolve(bg, s.columns(keys), 1000)
	if err != nil {
		s.Fatal(err)
	}
	return op
}

func (s *store) columns(keys []int64) []*vector.Vector {
	cols := make([]*vector.Vector, s.state.Schema.Len())
	values := vector.New(schema.KindInt64, len(keys))
	for _, k := range keys {
		vector.AppendFixed(values, 10*k)
	}
	for i := range cols {
		switch i {
		case s.state.Schema.Find("k"):
			cols[i] = vector.FromFixed(schema.KindInt64, slices.Clone(keys), nil)
		case s.state.Schema.Find("v"):
			cols[i] = values
		default:
			cols[i] = vector.New(schema.KindInt64, 0)
		}
	}
	return cols
}

func (s *store) flush() {
	s.Helper()
	s.t.Rotate()
	for s.t.Memory().Rotated > 0 {
		if _, err := s.t.Flush(bg); err != nil {
			s.Fatal(err)
		}
	}
}

// scan returns the keys of an interval, after checking that each has its value.
func (s *store) scan(time mvcc.Interval, o rowset.Order) (keys []int64) {
	s.Helper()
	spec := &rowset.ScanSpec{Schema: s.state.Schema, Time: time, Order: o, Columns: []int{s.state.Schema.Find("k"), s.state.Schema.Find("v")}, Stats: rowset.NewStats(s.state.Schema.Len())}
	it, err := s.t.Scan(bg, spec)
	if err != nil {
		s.Fatal(err)
	}
	defer it.Close()
	for {
		b, err := it.Next(bg)
		if err != nil {
			s.Fatal(err)
		}
		if b == nil {
			return keys
		}
		for i := range b.Rows {
			if b.Sel != nil && !b.Sel.Get(i) {
				continue
			}
			k := b.Columns[0].Int64s()[i]
			if v := b.Columns[1].Int64s()[i]; v != 10*k {
				s.Fatalf("key %d has the value %d", k, v)
			}
			keys = append(keys, k)
		}
	}
}

// get reports whether the key is there at the snapshot.
func (s *store) get(at mvcc.Timestamp, k int64) bool {
	s.Helper()
	keys := &rowset.Keys{Encoded: vector.New(schema.KindBytes, 1), Columns: []*vector.Vector{vector.FromFixed(schema.KindInt64, []int64{k}, nil)}}
	if err := encoding.AppendKeys(keys.Encoded, keys.Columns, 0, 1); err != nil {
		s.Fatal(err)
	}
	v := vector.New(schema.KindInt64, 1)
	now := s.now
	defer func() { s.now = now }()
	if s.now = at; !slices.Contains(s.scan(mvcc.At(at), rowset.Unordered), k) {
		return false // of an older snapshot: a get reads the newest
	}
	s.now = now
	ok, err := s.t.Get(bg, keys, []int{1}, []*vector.Vector{v})
	if err != nil {
		s.Fatal(err)
	}
	if ok && v.Int64s()[0] != 10*k {
		s.Fatalf("key %d has the value %d", k, v.Int64s()[0])
	}
	return ok
}

// everywhere calls check with the rows in memory, rotated, flushed and opened again.
func (s *store) everywhere(check func(where string)) {
	check("memory")
	s.t.Rotate()
	check("rotated")
	s.flush()
	check("flushed")
	s.t.Close()
	s.open()
	check("opened again")
}

func TestItem32And70SnapshotsHoldWhatWasCommittedUpToThem(t *testing.T) {
	s := newStore(t, false)
	var at []mvcc.Timestamp
	for k := range int64(5) {
		at = append(at, s.insert(k))
	}
	s.everywhere(func(where string) {
		for i, ts := range at {
			want := []int64{0, 1, 2, 3, 4}[:i+1]
			if got := s.scan(mvcc.At(ts), rowset.KeyOrder); !slices.Equal(got, want) {
				t.Fatalf("%s: snapshot %d has %v, want %v", where, ts, got, want)
			}
			if got := s.scan(mvcc.At(ts-1), rowset.Unordered); len(got) != i {
				t.Fatalf("%s: the snapshot before %d has %v", where, ts, got)
			}
			if !s.get(ts, int64(i)) || s.get(ts-1, int64(i)) {
				t.Fatalf("%s: key %d at %d: %v, before it: %v", where, i, ts, s.get(ts, int64(i)), s.get(ts-1, int64(i)))
			}
		}
	})
}

func TestItem33EmptyAndAllInclusiveSnapshot(t *testing.T) {
	s := newStore(t, false)
	keys := make([]int64, 10000)
	for i := range keys {
		keys[i] = int64(i)
	}
	s.insert(keys...)
	s.everywhere(func(where string) {
		for _, o := range []rowset.Order{rowset.Unordered, rowset.KeyOrder, rowset.KeyReverse} {
			if none, all := len(s.scan(mvcc.At(0), o)), len(s.scan(mvcc.At(mvcc.Max), o)); none != 0 || all != 10000 {
				t.Fatalf("%s: %d rows at 0, %d at the end of time", where, none, all)
			}
		}
	})
}

// A scan of an interval gives what was inserted within it, across a flush.
func TestIntervalAcrossStores(t *testing.T) {
	s := newStore(t, false)
	var at []mvcc.Timestamp
	for k := range int64(9) {
		at = append(at, s.insert(k))
		if k == 2 || k == 5 {
			s.flush()
		}
	}
	s.everywhere(func(where string) {
		for lo := range at {
			for hi := range at {
				got := s.scan(mvcc.Interval{Lo: at[lo], Hi: at[hi]}, rowset.KeyOrder)
				if want := max(0, hi-lo); len(got) != want || want > 0 && got[0] != int64(lo+1) {
					t.Fatalf("%s: (%d, %d] gave %v", where, at[lo], at[hi], got)
				}
			}
		}
	})
}

func TestItem39TheOldestRowInMemoryAnchorsTheLog(t *testing.T) {
	s := newStore(t, false)
	if m := s.t.Memory(); m.Oldest != 0 {
		t.Fatalf("an empty tablet anchors %d", m.Oldest)
	}
	first := s.insert(1)
	s.insert(2)
	s.t.Rotate()
	second := s.insert(3)
	if m := s.t.Memory(); m.Oldest != first || m.Rotated != 1 {
		t.Fatalf("%+v, want the anchor %d", m, first)
	}
	if _, err := s.t.Flush(bg); err != nil {
		t.Fatal(err)
	}
	if m := s.t.Memory(); m.Oldest != second || m.Rotated != 0 {
		t.Fatalf("%+v, want the anchor %d", m, second)
	}
	s.flush()
	if m := s.t.Memory(); m.Oldest != 0 || s.t.Watermark() != second {
		t.Fatalf("%+v, watermark %d", m, s.t.Watermark())
	}
}

// A snapshot shows the same rows at every step of a flush that began after it.
func TestItem72SnapshotDuringAFlush(t *testing.T) {
	s := newStore(t, false)
	var want []int64
	for k := range int64(600) {
		s.insert(k)
		want = append(want, k)
	}
	at := s.now
	steps, inside := 0, false
	look := func(step string) {
		if inside {
			return
		}
		inside = true
		defer func() { inside = false }()
		steps++
		s.insert(10000 + int64(steps))
		if got := s.scan(mvcc.At(at), rowset.KeyOrder); !slices.Equal(got, want) {
			t.Errorf("%s: %d rows of the snapshot, want %d", step, len(got), len(want))
		}
		if got := s.scan(mvcc.At(s.now), rowset.Unordered); len(got) != len(want)+steps {
			t.Errorf("%s: %d rows now, want %d", step, len(got), len(want)+steps)
		}
		if !s.get(at, 300) || s.get(at, 10000+int64(steps)) || !s.get(s.now, 10000+int64(steps)) {
			t.Errorf("%s: gets are wrong", step)
		}
	}
	s.fs.SetHook(func(c errorfs.Call) error {
		if c.Op.Writes() {
			look(c.String())
		}
		return nil
	})
	s.sync = func(mvcc.Timestamp) error { look("sync of the log"); return nil }
	s.publish = func(*Publication) error { look("publish"); return nil }
	s.t.Rotate()
	look("rotated")
	if _, err := s.t.Flush(bg); err != nil {
		t.Fatal(err)
	}
	look("flushed")
	if steps < 8 {
		t.Fatalf("%d steps", steps)
	}
}

// A flush that fails at any call leaves the tablet as it was, and its files go.
func TestFailedFlushChangesNothing(t *testing.T) {
	broken := errors.New("no more")
	for n := int64(1); ; n++ {
		s := newStore(t, false)
		for k := range int64(600) {
			s.insert(k)
		}
		s.t.Rotate()
		s.fs.SetHook(errorfs.Fail(broken, n, n, func(c errorfs.Call) bool { return c.Op.Writes() && c.Op != errorfs.OpRemove }))
		_, err := s.t.Flush(bg)
		s.fs.SetHook(nil)
		if err == nil {
			if n < 5 {
				t.Fatalf("a flush of %d calls", n)
			}
			return
		}
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
		names, listErr := s.fs.List("data")
		if listErr != nil || len(names) != 0 || len(s.state.RowSets) != 0 || s.t.Memory().Rotated != 1 {
			t.Fatalf("call %d: files %v, %d rowsets published, %+v", n, names, len(s.state.RowSets), s.t.Memory())
		}
		if _, err := s.t.Flush(bg); err != nil {
			t.Fatalf("call %d: a second flush: %v", n, err)
		}
		if got := s.scan(mvcc.At(s.now), rowset.KeyOrder); len(got) != 600 {
			t.Fatalf("call %d: %d rows", n, len(got))
		}
	}
}

// Files whose publication failed go, unless the edit may be on disk.
func TestFailedPublication(t *testing.T) {
	broken := errors.New("no more")
	s := newStore(t, false)
	s.insert(1, 2, 3)
	s.t.Rotate()
	for files, err := range []error{broken, fmt.Errorf("%w: %w", ErrUncertain, broken)} {
		s.publish = func(*Publication) error { return err }
		if _, err := s.t.Flush(bg); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		if names, _ := s.fs.List("data"); len(names) != files || s.t.Watermark() != 0 {
			t.Fatalf("after %v: files %v, watermark %d", err, names, s.t.Watermark())
		}
	}
	s.publish = nil
	s.flush()
	if got := s.scan(mvcc.At(s.now), rowset.KeyOrder); !slices.Equal(got, []int64{1, 2, 3}) {
		t.Fatalf("rows %v", got)
	}
}

// R4: the log is durable through the newest commit before a flush is published.
func TestFlushSyncsTheLogBeforeItPublishes(t *testing.T) {
	s := newStore(t, false)
	synced := mvcc.Timestamp(0)
	s.sync = func(through mvcc.Timestamp) error { synced = through; return nil }
	s.publish = func(p *Publication) error {
		if synced < p.I || len(p.Add) == 0 {
			t.Errorf("published through %d, the log is durable through %d", p.I, synced)
		}
		for _, w := range p.Add {
			if w.Meta.DurableTo != p.I || w.Meta.ID == 0 {
				t.Errorf("rowset %+v published through %d", w.Meta, p.I)
			}
		}
		return nil
	}
	s.insert(1)
	last := s.insert(2)
	s.flush()
	if s.t.Watermark() != last {
		t.Fatalf("watermark %d, want %d", s.t.Watermark(), last)
	}
}

func TestResolveReportsWriteRows(t *testing.T) {
	s := newStore(t, false)
	s.insert(1, 5)
	s.everywhere(func(where string) {
		for _, c := range []struct {
			keys    []int64
			present []int32
			rows    int
		}{
			{[]int64{1, 2, 5, 6}, []int32{0, 2}, 2},
			{[]int64{6, 5, 2, 1}, []int32{1, 3}, 2},
			{[]int64{9, 9, 1, 9, 5, 7, 7}, []int32{1, 2, 3, 4, 6}, 2},
			{[]int64{5, 5, 5}, []int32{0, 1, 2}, 0},
			{[]int64{3, 3}, []int32{1}, 1},
			{[]int64{3}, nil, 1},
		} {
			op := s.resolve(c.keys...)
			if !slices.Equal(op.Present, c.present) || op.Rows() != c.rows {
				t.Errorf("%s: %v has the live rows %v and puts %d, want %v, %d", where, c.keys, op.Present, op.Rows(), c.present, c.rows)
			}
			if op.Columns[0].Len() != c.rows || op.Columns[1].Len() != c.rows {
				t.Errorf("%s: %v puts columns of %d rows", where, c.keys, op.Columns[0].Len())
			}
			op.Release()
		}
	})
}

// An unfinished write blocks only those with a common key.
func TestKeysStayLockedUntilRelease(t *testing.T) {
	s := newStore(t, false)
	first := s.resolve(1, 2)
	s.insert(3)
	waiting := make(chan []int32)
	go func() {
		op, err := s.t.Resolve(bg, s.columns([]int64{2, 4}), 1000)
		if err != nil {
			t.Error(err)
		}
		defer op.Release()
		waiting <- op.Present
	}()
	select {
	case <-waiting:
		t.Fatal("two writes hold a key")
	default:
	}
	first.Pin()
	s.now++
	if err := first.Apply(s.now); err != nil {
		t.Fatal(err)
	}
	first.Release()
	first.Release()
	if got := <-waiting; !slices.Equal(got, []int32{0}) {
		t.Fatalf("the second write found %v live", got)
	}
}

// A flush waits for a commit that is between its log record and memory.
func TestFlushWaitsForPins(t *testing.T) {
	s := newStore(t, false)
	s.insert(1)
	op := s.resolve(2)
	op.Pin()
	s.t.Rotate()
	stopped, cancel := context.WithCancel(bg)
	cancel()
	if _, err := s.t.Flush(stopped); !errors.Is(err, context.Canceled) {
		t.Fatalf("a flush beside a pin: %v", err)
	}
	s.now++
	if err := op.Apply(s.now); err != nil {
		t.Fatal(err)
	}
	op.Release()
	s.flush()
	if s.t.Watermark() != s.now || s.t.Memory().Oldest != 0 {
		t.Fatalf("watermark %d, want %d", s.t.Watermark(), s.now)
	}
}

// ids returns the generated ids in order.
func (s *store) ids() (out []int64) {
	s.Helper()
	spec := &rowset.ScanSpec{Schema: s.state.Schema, Time: mvcc.At(mvcc.Max), Columns: []int{1}, Stats: rowset.NewStats(3)}
	it, err := s.t.Scan(bg, spec)
	if err != nil {
		s.Fatal(err)
	}
	defer it.Close()
	for b, err := it.Next(bg); b != nil || err != nil; b, err = it.Next(bg) {
		if err != nil {
			s.Fatal(err)
		}
		out = append(out, b.Columns[0].Int64s()...)
	}
	slices.Sort(out)
	return out
}

func TestItem67GeneratedIDs(t *testing.T) {
	s := newStore(t, true)
	s.insert(7, 7, 7)
	op := s.resolve(7, 7)
	op.Release() // given up: a hole
	s.insert(7)
	s.everywhere(func(where string) {
		if got := s.ids(); !slices.Equal(got, []int64{1, 2, 3, 6}) {
			t.Fatalf("%s: ids %v", where, got)
		}
	})
	s.insert(7)
	if got := s.ids(); got[4] <= 6 {
		t.Fatalf("ids %v", got)
	}
}

func TestItem67IDsRunOut(t *testing.T) {
	s := newStore(t, true)
	s.state.LastID = math.MaxInt64 - 3
	s.open()
	if _, err := s.t.Resolve(bg, s.columns([]int64{1, 1, 1, 1}), 1000); !errors.Is(err, ErrIllegalState) {
		t.Fatalf("four of three ids: %v", err)
	}
	s.insert(1, 1)
	s.insert(1)
	for range 3 {
		if _, err := s.t.Resolve(bg, s.columns([]int64{1}), 1000); !errors.Is(err, ErrIllegalState) {
			t.Fatalf("an insert after the last id: %v", err)
		}
	}
	s.flush()
	s.t.Close()
	s.open()
	if _, err := s.t.Resolve(bg, s.columns([]int64{1}), 1000); !errors.Is(err, ErrIllegalState) {
		t.Fatalf("an insert after the last id, opened again: %v", err)
	}
	if got := s.ids(); !slices.Equal(got, []int64{math.MaxInt64 - 2, math.MaxInt64 - 1, math.MaxInt64}) {
		t.Fatalf("ids %v", got)
	}
}

// Replayed rows that a flush made durable are skipped, and ids go on above them.
func TestReplay(t *testing.T) {
	s := newStore(t, true)
	cols := s.columns([]int64{1, 2})
	cols[1] = vector.FromFixed(schema.KindInt64, []int64{41, 42}, nil)
	s.state.I = 200
	s.open()
	for ts, want := range map[mvcc.Timestamp]int{150: 0, 200: 0, 201: 2} {
		if n, err := s.replay(ts, cols); err != nil || n != want {
			t.Fatalf("replay at %d applied %d rows, want %d, %v", ts, n, want, err)
		}
	}
	s.now = 300
	s.insert(5)
	if got := s.t.lastID.Load(); got != 43 {
		t.Fatalf("last id %d, want 43", got)
	}
	cols[0] = vector.FromFixed(schema.KindInt64, []int64{1, 1}, nil)
	cols[1] = vector.FromFixed(schema.KindInt64, []int64{50, 50}, nil)
	if _, err := s.replay(400, cols); !errors.Is(err, vfs.ErrCorruption) {
		t.Fatalf("a record with one key twice was replayed: %v", err)
	}
	cols[0] = vector.FromFixed(schema.KindInt64, []int64{9, 1}, nil)
	cols[1] = vector.FromFixed(schema.KindInt64, []int64{41, 41}, nil)
	if _, err := s.replay(400, cols); !errors.Is(err, vfs.ErrCorruption) {
		t.Fatalf("a key that is live was put again: %v", err)
	}
}

// replay puts rows as the log does.
func (s *store) replay(ts mvcc.Timestamp, cols []*vector.Vector) (int, error) {
	p, err := s.t.Prepare(ts, &Logged{Kind: rowset.ChangePut, Columns: []int{0, 1, 2}, Values: cols})
	if err != nil {
		return 0, err
	}
	return s.t.Replay(bg, ts, p)
}

// A part of a scan answers from metadata only if the snapshot holds all of it.
func TestTrap3MetadataOfLaterRows(t *testing.T) {
	s := newStore(t, false)
	first := s.insert(1)
	last := s.insert(2)
	s.flush()
	for ts, want := range map[mvcc.Timestamp]bool{first: false, last - 1: false, last: true, mvcc.Max: true} {
		spec := &rowset.ScanSpec{Schema: s.state.Schema, Time: mvcc.At(ts), Stats: rowset.NewStats(2)}
		parts, release, err := s.t.Parts(spec)
		if err != nil || len(parts) != 1 {
			t.Fatalf("%d parts, %v", len(parts), err)
		}
		if _, _, ok := parts[0].Whole(); ok != want {
			t.Errorf("metadata answers at %d: %v, want %v", ts, ok, want)
		}
		release()
	}
}

// Readers hold what they read beyond a drop, and reads that begin later fail.
func TestDropBesideReaders(t *testing.T) {
	for _, o := range []rowset.Order{rowset.Unordered, rowset.KeyOrder} {
		s := newStore(t, false)
		for k := range int64(4) {
			s.insert(k)
			s.flush()
		}
		spec := &rowset.ScanSpec{Schema: s.state.Schema, Time: mvcc.At(mvcc.Max), Order: o, Columns: []int{0}, Stats: rowset.NewStats(2)}
		it, err := s.t.Scan(bg, spec)
		if err != nil {
			t.Fatal(err)
		}
		s.t.Drop()
		rows := 0
		for b, err := it.Next(bg); b != nil || err != nil; b, err = it.Next(bg) {
			if err != nil {
				t.Fatal(err)
			}
			rows += b.Selected
		}
		if names, _ := s.fs.List("data"); rows != 4 || len(names) != 4 {
			t.Fatalf("%d rows, files %v", rows, names)
		}
		it.Close()
		it.Close()
		if names, _ := s.fs.List("data"); len(names) != 0 {
			t.Fatalf("files %v stayed", names)
		}
		if _, err := s.t.Scan(bg, spec); !errors.Is(err, ErrClosed) {
			t.Fatalf("a scan of a dropped tablet: %v", err)
		}
		if _, _, err := s.t.Parts(spec); !errors.Is(err, ErrClosed) {
			t.Fatalf("parts of a dropped tablet: %v", err)
		}
	}
}
