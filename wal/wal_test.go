package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

// hooked calls hook before each call that changes something; its error is returned
// instead of doing the call, after half of it for a write.
func hooked(base vfs.FS, hook func(op errorfs.Op, name string) error) vfs.FS {
	fs := errorfs.Wrap(base)
	fs.SetHook(func(c errorfs.Call) error {
		if !c.Op.Writes() {
			return nil
		}
		err := hook(c.Op, c.Name)
		if err != nil && c.Op == errorfs.OpWrite {
			err = &errorfs.ShortError{N: c.Length / 2, Err: err}
		}
		return err
	})
	return fs
}

// entry is what the tests compare of a record.
type entry struct {
	ts      mvcc.Timestamp
	payload string
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var store = binfmt.UUID{1, 2, 3}

func small() Options { return Options{Store: store, SegmentBytes: 990} }

// replay opens the log and reads it.
func replay(fs vfs.FS, o Options) (l *Log, got []entry, rec Recovery, err error) {
	o.Store = store
	if l, err = Open(bg, fs, "wal", o); err != nil {
		return nil, nil, rec, err
	}
	rec, err = l.Replay(bg, func(r *Record) error {
		got = append(got, entry{r.Timestamp, string(r.Payload)})
		return nil
	})
	return l, got, rec, err
}

// start opens, replays and starts a log.
func start(t testing.TB, fs vfs.FS, o Options) *Log {
	t.Helper()
	l, _, _, err := replay(fs, o)
	must(t, err)
	must(t, l.Start(bg))
	return l
}

func add(t testing.TB, l *Log, ts mvcc.Timestamp, payload string, mode Mode) Position {
	t.Helper()
	pos, err := l.Append(&Record{Type: TypeBatch, Timestamp: ts, Payload: []byte(payload)})
	must(t, err)
	must(t, l.Wait(bg, pos, mode))
	return pos
}

// stop closes the log and returns its end.
func stop(t testing.TB, l *Log) Position {
	t.Helper()
	end, err := l.Close()
	must(t, err)
	return end
}

// text returns a payload of n bytes that no other ts has.
func text(ts, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(ts*31 + i*7 + i/251)
	}
	return string(b)
}

// fill starts a log, appends n records of the given size from timestamp 10 on and
// closes it.
func fill(t testing.TB, fs vfs.FS, o Options, n, size int) (want []entry, end Position) {
	t.Helper()
	l := start(t, fs, o)
	for i := range n {
		want = append(want, entry{mvcc.Timestamp(10 + i), text(10+i, size)})
		add(t, l, want[i].ts, want[i].payload, Sync)
	}
	return want, stop(t, l)
}

func checkEntries(t testing.TB, got, want []entry) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("record %d: ts %d, %d bytes; want ts %d, %d bytes", i, got[i].ts, len(got[i].payload), want[i].ts, len(want[i].payload))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
}

func checkReplay(t testing.TB, fs vfs.FS, o Options, want []entry) Recovery {
	t.Helper()
	_, got, rec, err := replay(fs, o)
	must(t, err)
	checkEntries(t, got, want)
	return rec
}

// logFiles returns the paths of the segments.
func logFiles(t testing.TB, fs vfs.FS) (paths []string) {
	t.Helper()
	names, err := fs.List("wal")
	must(t, err)
	for _, n := range names {
		paths = append(paths, fs.Join("wal", n))
	}
	return paths
}

func read(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name, vfs.KindLog)
	must(t, err)
	defer f.Close()
	n, err := f.Size()
	must(t, err)
	b := make([]byte, n)
	if n > 0 {
		_, err = f.ReadAt(b, 0)
		must(t, err)
	}
	return b
}

// put replaces the contents of a file.
func put(t testing.TB, fs vfs.FS, name string, b []byte) {
	t.Helper()
	_ = fs.Remove(name)
	f, err := fs.Create(name, vfs.KindLog)
	must(t, err)
	_, err = f.WriteAt(b, 0)
	must(t, err)
	must(t, f.Close())
}

func flip(t testing.TB, fs vfs.FS, name string, off int64) {
	t.Helper()
	b := read(t, fs, name)
	b[off] ^= 0x10
	put(t, fs, name, b)
}

func wantCorruption(t testing.TB, err error, path string) {
	t.Helper()
	var c *vfs.CorruptionError
	if !errors.As(err, &c) || c.Path != path {
		t.Fatalf("error %v, want corruption in %s", err, path)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewMem()
		var want []entry
		var ts mvcc.Timestamp
		end := Position{}
		o := Options{Store: store, SegmentBytes: rapid.Int64Range(MinSegmentBytes, 5000).Draw(t, "segment")}
		for range rapid.IntRange(1, 4).Draw(t, "opens") {
			o.End = end
			l, got, rec, err := replay(fs, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(want) || rec.Records != int64(len(want)) || rec.LastTimestamp != ts || len(rec.Dropped) > 0 {
				t.Fatalf("%d records, %+v, want %d", len(got), rec, len(want))
			}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("record %d differs", i)
				}
			}
			if err := l.Start(bg); err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 8).Draw(t, "records") {
				ts += mvcc.Timestamp(rapid.IntRange(0, 3).Draw(t, "step"))
				e := entry{ts, text(len(want), rapid.IntRange(0, 9000).Draw(t, "size"))}
				pos, err := l.Append(&Record{Type: TypeBatch, Timestamp: ts, Payload: []byte(e.payload)})
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, e)
				if rapid.Bool().Draw(t, "wait") {
					if err := l.Wait(bg, pos, Mode(rapid.IntRange(0, 2).Draw(t, "mode"))); err != nil {
						t.Fatal(err)
					}
				}
			}
			if end, err = l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if n := fs.OpenFiles(); n != 0 {
			t.Fatalf("%d files open", n)
		}
	})
}

func TestFieldsSurvive(t *testing.T) {
	fs := vfs.NewMem()
	l := start(t, fs, small())
	ext := binfmt.AppendUintField(binfmt.AppendUintField(nil, FieldTerm, 3), 4711*2, 9)
	in := Record{Type: TypeBatch, KeyEpoch: 7, Timestamp: 99, Extensions: ext, Payload: []byte(text(1, 3000))}
	add(t, l, 5, "before", Sync)
	durable, ts := l.Durable()
	if ts != 5 || durable != l.End() {
		t.Fatalf("durable %v %d", durable, ts)
	}
	pos, err := l.Append(&in)
	must(t, err)
	stop(t, l)
	l, err = Open(bg, fs, "wal", Options{ReadOnly: true, Store: store})
	must(t, err)
	_, err = l.Replay(bg, func(r *Record) error {
		if r.Timestamp == 5 {
			return nil
		}
		if r.Position != pos || r.SyncedThrough != durable || r.KeyEpoch != 7 || r.Type != TypeBatch ||
			!bytes.Equal(r.Extensions, ext) || !bytes.Equal(r.Payload, in.Payload) {
			t.Errorf("%+v", r)
		}
		return nil
	})
	must(t, err)
}

func TestReservedIsRefused(t *testing.T) {
	for name, r := range map[string]Record{
		"type":       {Type: TypePrepare},
		"flag":       {Type: TypeBatch, Flags: FlagCompressed},
		"odd field":  {Type: TypeBatch, Extensions: binfmt.AppendUintField(nil, 7, 1)},
		"bad fields": {Type: TypeBatch, Extensions: []byte{2, 200}},
	} {
		fs := vfs.NewMem()
		l := start(t, fs, small())
		_, err := l.Append(&r)
		must(t, err)
		stop(t, l)
		want := vfs.ErrNotSupported
		if name == "bad fields" {
			want = vfs.ErrCorruption
		}
		if _, _, _, err := replay(fs, small()); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAppendRefusesDisorder(t *testing.T) {
	fs := vfs.NewMem()
	l := start(t, fs, small())
	add(t, l, 5, "x", NoSync)
	if _, err := l.Append(&Record{Type: TypeBatch, Timestamp: 4}); err == nil {
		t.Fatal("timestamp went back")
	}
	stop(t, l)
	if _, err := l.Append(&Record{Type: TypeBatch, Timestamp: 6}); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := l.Wait(bg, Position{99, 0}, Sync); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if _, err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestGroupCommitSyncs(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem())
	l := start(t, fs, Options{Store: store, SegmentBytes: 1 << 20})
	add(t, l, 0, "x", NoSync)
	must(t, l.alloc.reserve(1)) // the one made ahead is made
	fs.ResetCounts()
	check := func(syncs, writes int64) {
		t.Helper()
		if s, w := fs.Count(errorfs.OpSync).Calls, fs.Count(errorfs.OpWrite).Calls; s != syncs || w != writes {
			t.Fatalf("%d syncs, %d writes; want %d, %d", s, w, syncs, writes)
		}
	}
	var last Position
	for i := range 50 {
		pos, err := l.Append(&Record{Type: TypeBatch, Timestamp: mvcc.Timestamp(i), Payload: []byte("x")})
		must(t, err)
		last = pos
	}
	must(t, l.Wait(bg, last, Sync))
	must(t, l.Wait(bg, last, Sync))
	check(1, 1)
	for i := range 10 {
		add(t, l, mvcc.Timestamp(100+i), "x", NoSync)
	}
	check(1, 11)
	must(t, l.SyncThrough(bg, 105))
	must(t, l.SyncThrough(bg, 1<<60))
	check(2, 11)
	if m := l.Metrics(); m.Records != 61 || m.LargestGroup != 50 || m.Groups != 12 || m.Syncs != 2 {
		t.Fatalf("%+v", m)
	}
	stop(t, l)
}

func TestConcurrentWritersShareSyncs(t *testing.T) {
	fs := vfs.NewMem()
	l := start(t, fs, Options{Store: store, SegmentBytes: 4096, MaxPending: 1000})
	var commit sync.Mutex
	ts := mvcc.Timestamp(0)
	var want []entry
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for range 100 {
				commit.Lock()
				ts++
				e := entry{ts, text(int(ts), r.IntN(300))}
				want = append(want, e)
				pos, err := l.Append(&Record{Type: TypeBatch, Timestamp: e.ts, Payload: []byte(e.payload)})
				commit.Unlock()
				if err == nil {
					ctx, cancel := context.WithCancel(bg)
					err = l.Wait(ctx, pos, Mode(r.IntN(3)))
					cancel()
				}
				if err != nil {
					t.Error(err)
				}
				if w == 0 {
					l.Metrics()
					l.ReplayBytes(e.ts)
					if _, err := l.TrimBefore(l.KeepFrom(0)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	end := stop(t, l)
	o := small()
	o.End = end
	checkReplay(t, fs, o, want)
}

func TestWaitGivesUp(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	block := false
	fs := hooked(vfs.NewMem(), func(op errorfs.Op, name string) error {
		if block && op == errorfs.OpSync {
			entered <- true
			<-release
		}
		return nil
	})
	l := start(t, fs, small())
	add(t, l, 1, "", NoSync)
	must(t, l.alloc.reserve(1)) // nothing more is made
	block = true
	a, err := l.Append(&Record{Type: TypeBatch, Timestamp: 1})
	must(t, err)
	done := make(chan error)
	go func() { done <- l.Wait(bg, a, Sync) }()
	<-entered
	ctx, cancel := context.WithCancel(bg)
	go func() { done <- l.Wait(ctx, a, Sync) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b, err := l.Append(&Record{Type: TypeBatch, Timestamp: 2})
	must(t, err)
	must(t, l.Wait(bg, b, NoSync)) // does not wait for the sync under way
	block = false
	release <- true
	must(t, <-done)
	stop(t, l)
}

func TestIntervalSyncs(t *testing.T) {
	fs := vfs.NewMem()
	synced := make(chan bool, 10)
	armed := false
	l := start(t, hooked(fs, func(op errorfs.Op, name string) error {
		if armed && op == errorfs.OpSync {
			synced <- true
		}
		return nil
	}), Options{Store: store, Interval: 1})
	must(t, l.alloc.reserve(1))
	armed = true
	pos, err := l.Append(&Record{Type: TypeBatch, Timestamp: 1, Payload: []byte("x")})
	must(t, err)
	must(t, l.Wait(bg, pos, Interval))
	<-synced
	must(t, l.Wait(bg, pos, Sync))
	checkReplay(t, fs.CrashClone(vfs.CrashOptions{}), small(), []entry{{1, "x"}})
	armed = false
	stop(t, l)
}

func TestAppendAllocates(t *testing.T) {
	l := start(t, vfs.NewMem(), Options{Store: store})
	r := Record{Type: TypeBatch, Payload: make([]byte, 1000)}
	step := func() {
		r.Timestamp++
		pos, err := l.Append(&r)
		if err != nil {
			t.Fatal(err)
		}
		if r.Timestamp%10 == 0 {
			must(t, l.Wait(bg, pos, NoSync))
		}
	}
	for range 100 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n > 0.2 {
		t.Fatalf("%v allocations", n)
	}
	stop(t, l)
}

func TestGolden(t *testing.T) {
	l := &Log{opts: Options{Store: store}, fs: vfs.NewMem(), dir: "wal"}
	s := l.newSegment(3)
	if s.name != "wal/00000003.log" {
		t.Fatal(s.name)
	}
	l.opts.SegmentBytes = 1000
	l.mu.pending = &group{}
	l.mu.durable = Position{3, binfmt.HeaderSize}
	l.mu.begun = true
	l.linkLocked(s, Position{2, 500})
	l.mu.appendTS = 0x1122
	f := frame{typ: TypeBatch, timestamp: 0x1122, epoch: 0, extensions: 3, total: 5}
	l.layLocked(&f, binfmt.AppendUintField(nil, FieldTerm, 9), []byte("hi"))
	got := fmt.Sprintf("%x", l.mu.pending.buf)
	if got != golden {
		t.Fatalf("bytes changed:\n%s", got)
	}
	if binary.LittleEndian.Uint32(l.mu.pending.buf[8:]) != 16 {
		t.Fatal("length")
	}
}

const golden = "0e3d5a9bda8352c510000000018000000000000000000000030000000000000040000000000000000000000010000000" +
	"0200000000000000f401000000000000" +
	"2cddf71080f15c7a05000000010100002211000000000000030000000000000040000000000000000300000005000000" +
	"0201096869"
