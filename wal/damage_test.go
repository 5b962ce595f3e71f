package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/vfs"
)

// lives returns a log of four records of 300 bytes in two segments that was not
// closed: Sync, so that each record says that those before it were durable.
func lives(t testing.TB) (*vfs.Mem, []entry, []Position) {
	mem := vfs.NewMem()
	l := start(t, mem, small())
	var want []entry
	var at []Position
	for i := range 4 {
		want = append(want, entry{10, text(i, 300)})
		at = append(at, add(t, l, 10, want[i].payload, Sync))
	}
	clone := mem.CrashClone(vfs.CrashOptions{})
	stop(t, l)
	return clone, want, at
}

func TestItem110CloseAndReopen(t *testing.T) {
	mem := vfs.NewMem()
	l := start(t, mem, small())
	for i := range 2 { // one group
		_, err := l.Append(&Record{Type: TypeBatch, Timestamp: 1, Payload: []byte{byte(i)}})
		must(t, err)
	}
	// A reader of the log that is still open sees what is written, nothing else.
	checkReplay(t, mem, Options{ReadOnly: true}, nil)
	must(t, l.SyncThrough(bg, 1))
	want := []entry{{1, "\x00"}, {1, "\x01"}}
	checkReplay(t, mem, Options{ReadOnly: true}, want)
	end := stop(t, l)
	checkReplay(t, mem, Options{End: end}, want)
}

func TestItem111CutAndFlipped(t *testing.T) {
	_, want, at := lives(t)
	last := at[3]
	name := "wal/" + segmentName(last.Segment)
	for cut := last.Offset; cut <= last.Offset+frameHeaderSize+299; cut++ {
		mem, _, _ := lives(t)
		put(t, mem, name, read(t, mem, name)[:cut])
		rec := checkReplay(t, mem, small(), want[:3])
		if rec.End != last || (len(rec.Dropped) == 1) != (cut > last.Offset) {
			t.Fatalf("cut at %d: %+v", cut, rec)
		}
	}
	// Damage to the last record of a log that was closed is damage.
	mem := vfs.NewMem()
	_, end := fill(t, mem, small(), 4, 100)
	name = "wal/" + segmentName(end.Segment)
	flip(t, mem, name, end.Offset-frameHeaderSize-10)
	_, got, _, err := replay(mem, small())
	wantCorruption(t, err, name)
	if len(got) != 3 {
		t.Fatalf("%d records before the damage", len(got))
	}
	// So it is where the log was not closed but a later record was appended.
	mem, _, at = lives(t)
	name = "wal/" + segmentName(at[1].Segment)
	flip(t, mem, name, at[1].Offset+100)
	_, got, _, err = replay(mem, small())
	wantCorruption(t, err, name)
	if len(got) != 1 {
		t.Fatalf("%d records before the damage", len(got))
	}
}

func TestItem112Roll(t *testing.T) {
	mem := vfs.NewMem()
	l := start(t, mem, small())
	var want []entry
	for i := 0; l.Metrics().Segments < 4; i++ {
		want = append(want, entry{10, text(i, 100)})
		add(t, l, 10, want[i].payload, NoSync)
	}
	must(t, l.alloc.reserve(1))
	checkReplay(t, mem, Options{ReadOnly: true}, want) // with a segment made ahead
	stop(t, l)
	checkReplay(t, mem, small(), want)
	// The used length of the last segment is all that is left of it.
	names := logFiles(t, mem)
	if b := read(t, mem, names[len(names)-1]); len(b) > 500 || int64(len(b)) != l.End().Offset {
		t.Fatalf("last segment has %d bytes, log ends at %v", len(b), l.End())
	}
}

func TestItem113Retention(t *testing.T) {
	mem := vfs.NewMem()
	l := start(t, mem, Options{SegmentBytes: firstFrame + 5*(frameHeaderSize+200), Store: store})
	for i := range 25 {
		add(t, l, 10+mvcc.Timestamp(i), text(i, 200), Sync)
	}
	if n := l.Metrics().Segments; n != 5 {
		t.Fatalf("%d segments", n)
	}
	removed := 0
	for _, c := range []struct{ need, removed int }{{10, 0}, {14, 0}, {15, 1}, {24, 2}, {25, 3}, {34, 4}, {35, 4}, {1 << 30, 4}} {
		n, err := l.TrimBefore(l.KeepFrom(mvcc.Timestamp(c.need)))
		must(t, err)
		if removed += n; removed != c.removed {
			t.Fatalf("need %d: %d removed, want %d", c.need, removed, c.removed)
		}
	}
	first := l.KeepFrom(0)
	end := stop(t, l)
	_, got, _, err := replay(mem, Options{First: first, End: end})
	must(t, err)
	if len(got) != 5 || got[0].ts != 30 {
		t.Fatalf("%d records from %v on", len(got), got[0].ts)
	}
}

func TestItem114Anchors(t *testing.T) {
	mem := vfs.NewMem()
	l := start(t, mem, small())
	for i := range 10 {
		add(t, l, 10+mvcc.Timestamp(i), text(i, 700), NoSync) // records cross segments
	}
	if n, err := l.TrimBefore(99); n != 0 || err != nil {
		t.Fatalf("%d segments trimmed before they are durable, %v", n, err)
	}
	must(t, l.SyncThrough(bg, 99))
	for ts := mvcc.Timestamp(10); ts < 20; ts++ {
		first := l.KeepFrom(ts)
		_, err := l.TrimBefore(first)
		must(t, err)
		_, got, _, err := replay(mem, Options{First: first, ReadOnly: true})
		must(t, err)
		// All from ts on is there, although the oldest segment may begin with the rest
		// of a record that is not.
		i := slices.IndexFunc(got, func(e entry) bool { return e.ts == ts })
		if i < 0 || len(got)-i != int(20-ts) {
			t.Fatalf("anchor %d: %d records, it is number %d", ts, len(got), i)
		}
	}
	stop(t, l)
}

// What must be kept is known after a replay as it was before.
func TestKeepFromAfterReplay(t *testing.T) {
	mem := vfs.NewMem()
	l := start(t, mem, small())
	for i := range 10 {
		add(t, l, 10+mvcc.Timestamp(i), text(i, 1300), NoSync)
	}
	keep := map[mvcc.Timestamp]uint64{}
	for ts := mvcc.Timestamp(10); ts < 20; ts++ {
		keep[ts] = l.KeepFrom(ts)
	}
	size := l.ReplayBytes(15)
	stop(t, l)
	l = start(t, mem, small())
	for ts, want := range keep {
		if got := l.KeepFrom(ts); got != want {
			t.Errorf("from %d: segment %d, was %d", ts, got, want)
		}
	}
	if n := l.ReplayBytes(15); n < size || n > size+2*frameHeaderSize+firstFrame {
		t.Errorf("%d bytes, was %d", n, size)
	}
	stop(t, l)
}

func TestItem115ReplaySize(t *testing.T) {
	l := &Log{}
	l.mu.segments = []*segment{{used: 20, maxTS: 100}, {used: 15, maxTS: 200}, {used: 10, maxTS: 300}}
	for ts, want := range map[mvcc.Timestamp]int64{0: 45, 1: 45, 100: 45, 101: 25, 201: 10, 301: 0} {
		if n := l.ReplayBytes(ts); n != want {
			t.Errorf("from %d: %d bytes, want %d", ts, n, want)
		}
	}
	if l.Size() != 45 {
		t.Error(l.Size())
	}
}

func TestItem116LargeNumbers(t *testing.T) {
	mem := vfs.NewMem()
	o := small()
	o.First = 1<<40 - 2
	o.End = Position{1<<40 - 3, 500}
	l := start(t, mem, o)
	var want []entry
	for i := range 10 {
		want = append(want, entry{1<<62 + mvcc.Timestamp(i), text(i, 400)})
		add(t, l, want[i].ts, want[i].payload, Sync)
	}
	end := stop(t, l)
	if end.Segment < 1<<40 {
		t.Fatal(end)
	}
	checkReplay(t, mem, Options{First: 1<<40 - 2, End: end}, want)
}

func TestRecordLargerThanSegments(t *testing.T) {
	mem := vfs.NewMem()
	l := start(t, mem, Options{Store: store, SegmentBytes: 1 << 20})
	want := []entry{{1, text(1, 33<<20)}, {2, "x"}}
	add(t, l, 1, want[0].payload, NoSync)
	add(t, l, 2, want[1].payload, Sync)
	if cap(l.mu.spare.buf) > 16<<20 || cap(l.mu.pending.buf) > 16<<20 {
		t.Error("a buffer keeps the size of one huge record")
	}
	stop(t, l)
	checkReplay(t, mem, small(), want)
}

func TestC65DamageInTheMiddle(t *testing.T) {
	build := func() (*vfs.Mem, []entry, Position) {
		mem := vfs.NewMem()
		l := start(t, mem, small())
		var want []entry
		for i := range 15 {
			want = append(want, entry{10 + mvcc.Timestamp(i), text(i, 100)})
			add(t, l, want[i].ts, want[i].payload, Sync)
		}
		end := l.End()
		clone := mem.CrashClone(vfs.CrashOptions{})
		stop(t, l)
		return clone, want, end
	}
	_, all, end := build()
	const seg1, seg2, seg3 = "wal/00000001.log", "wal/00000002.log", "wal/00000003.log"
	for name, c := range map[string]struct {
		damage func(fs *vfs.Mem)
		path   string
	}{
		"middle of 1":  {func(m *vfs.Mem) { flip(t, m, seg1, 500) }, seg1},
		"last of 1":    {func(m *vfs.Mem) { flip(t, m, seg1, 980) }, seg1},
		"header of 1":  {func(m *vfs.Mem) { flip(t, m, seg1, 20) }, seg1},
		"link of 2":    {func(m *vfs.Mem) { flip(t, m, seg2, 70) }, seg2},
		"header of 3":  {func(m *vfs.Mem) { flip(t, m, seg3, 20) }, seg3},
		"cut 1":        {func(m *vfs.Mem) { put(t, m, seg1, read(t, m, seg1)[:600]) }, seg1},
		"zeroes in 1":  {func(m *vfs.Mem) { put(t, m, seg1, append(read(t, m, seg1)[:600], make([]byte, 390)...)) }, seg1},
		"remove 1":     {func(m *vfs.Mem) { must(t, m.Remove(seg1)) }, seg1},
		"remove 2":     {func(m *vfs.Mem) { must(t, m.Remove(seg2)) }, seg2},
		"empty 2":      {func(m *vfs.Mem) { put(t, m, seg2, nil) }, seg2},
		"other's 2":    {func(m *vfs.Mem) { put(t, m, seg2, read(t, m, seg3)) }, seg2},
		"last of 3":    {func(m *vfs.Mem) { flip(t, m, seg3, end.Offset-5) }, ""},
		"remove 3":     {func(m *vfs.Mem) { must(t, m.Remove(seg3)) }, ""},
		"cut 3 in two": {func(m *vfs.Mem) { put(t, m, seg3, read(t, m, seg3)[:end.Offset-5]) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			mem, _, _ := build()
			c.damage(mem)
			o := Options{First: 1}
			_, got, rec, err := replay(mem, o)
			if c.path != "" {
				wantCorruption(t, err, c.path)
			} else {
				must(t, err)
				if name != "remove 3" && (rec.End.Segment != 3 || len(rec.Dropped) != 1) {
					t.Errorf("%+v", rec)
				}
			}
			checkEntries(t, got, all[:len(got)])
			// With the end known, the loss of the last record is seen, too.
			o.End = end
			if _, _, _, err = replay(mem, o); !errors.Is(err, vfs.ErrCorruption) {
				t.Errorf("end known: %v", err)
			}
			salvage(t, mem, all, end)
		})
	}
}

// salvage checks that a salvage returns a part of want in order, all but at most eight
// records, and reports the rest.
func salvage(t *testing.T, mem vfs.FS, want []entry, end Position) {
	t.Helper()
	_, got, rec, err := replay(mem, Options{First: 1, End: end, Salvage: true, ReadOnly: true})
	must(t, err)
	rest := want
	for _, e := range got {
		i := slices.Index(rest, e)
		if i < 0 {
			t.Fatalf("salvaged a record that was not written")
		}
		rest = rest[i+1:]
	}
	if len(got) < len(want)-8 {
		t.Errorf("salvaged %d records of %d: %v", len(got), len(want), rec.Dropped)
	}
	if len(got) < len(want) && len(rec.Dropped) == 0 {
		t.Errorf("%d records lost and nothing reported", len(want)-len(got))
	}
}

func TestC66ZeroTail(t *testing.T) {
	for _, zeroes := range []int{1, 4 << 10, 64 << 20} {
		mem, want, at := lives(t)
		name := "wal/" + segmentName(at[3].Segment)
		put(t, mem, name, append(read(t, mem, name), make([]byte, zeroes)...))
		if rec := checkReplay(t, mem, small(), want); len(rec.Dropped) > 0 {
			t.Errorf("%d zeroes: %v", zeroes, rec.Dropped)
		}
	}
	mem, want, at := lives(t)
	name := "wal/" + segmentName(at[3].Segment)
	put(t, mem, name, append(read(t, mem, name), append(make([]byte, 5000), 1)...))
	rec := checkReplay(t, mem, small(), want)
	if len(rec.Dropped) != 1 || rec.Dropped[0].Path != name || !strings.Contains(rec.Dropped[0].String(), "dropped") {
		t.Errorf("%v", rec.Dropped)
	}
	// Segments that were never used: no bytes, zeroes, half a header, a header.
	h := binfmt.Header{Kind: binfmt.FileLog, Store: store, File: 77}
	for _, b := range [][]byte{nil, make([]byte, 990), h.AppendTo(nil)[:30], append(h.AppendTo(nil), make([]byte, 990)...)} {
		mem, want, _ := lives(t)
		put(t, mem, "wal/00000077.log", b)
		if rec := checkReplay(t, mem, small(), want); len(rec.Dropped) > 0 {
			t.Errorf("unused segment of %d bytes: %v", len(b), rec.Dropped)
		}
		l := start(t, mem, small())
		want = append(want, entry{1000, "x"})
		if at := add(t, l, 1000, "x", Sync); at.Segment != 78 {
			t.Errorf("a number was used again: %v", at)
		}
		stop(t, l)
		checkReplay(t, mem, small(), want)
		if slices.Contains(logFiles(t, mem), "wal/00000077.log") {
			t.Error("unused segment is still there")
		}
	}
}

func TestC74MissingSegments(t *testing.T) {
	mem := vfs.NewMem()
	_, end := fill(t, mem, small(), 20, 200)
	names := logFiles(t, mem)
	for i, name := range names {
		clone := mem.CrashClone(vfs.CrashOptions{})
		must(t, clone.Remove(name))
		_, _, _, err := replay(clone, Options{First: 1, End: end})
		wantCorruption(t, err, name)
		if !errors.Is(err, vfs.ErrCorruption) || i == 0 {
			continue
		}
	}
	for _, name := range names {
		must(t, mem.Remove(name))
	}
	_, _, _, err := replay(mem, Options{First: 1, End: end})
	wantCorruption(t, err, names[len(names)-1])
	// A segment of another store, or an older copy under another number.
	mem = vfs.NewMem()
	_, _ = fill(t, mem, small(), 20, 200)
	put(t, mem, names[1], read(t, mem, names[2]))
	_, _, _, err = replay(mem, small())
	wantCorruption(t, err, names[1])
}

func TestC79ShortFiles(t *testing.T) {
	mem := vfs.NewMem()
	want, end := fill(t, mem, small(), 20, 200)
	for _, name := range logFiles(t, mem) {
		size := len(read(t, mem, name))
		for _, n := range []int{0, 1, size / 2, size - 1} {
			clone := mem.CrashClone(vfs.CrashOptions{})
			put(t, clone, name, read(t, mem, name)[:n])
			_, got, _, err := replay(clone, Options{End: end})
			padding := allZero(read(t, mem, name)[n:])
			if !errors.Is(err, vfs.ErrCorruption) && !(err == nil && padding && len(got) == len(want)) {
				t.Errorf("%s cut to %d: %v", name, n, err)
			}
			checkEntries(t, got, want[:len(got)])
		}
	}
}

// Every bit of a log that is known to its end is protected, but for those that mean nothing.
func TestEveryBitFlipped(t *testing.T) {
	mem := vfs.NewMem()
	l := start(t, mem, Options{Store: store, SegmentBytes: MinSegmentBytes})
	var want []entry
	for i := range 4 {
		want = append(want, entry{10, text(i, 120)})
		add(t, l, 10, want[i].payload, Sync)
	}
	stop(t, l)
	for _, name := range logFiles(t, mem) {
		b := read(t, mem, name)
		for i := range len(b) * 8 {
			c := bytes.Clone(b)
			c[i/8] ^= 1 << (i % 8)
			put(t, mem, name, c)
			_, got, rec, err := replay(mem, Options{})
			var damage *vfs.CorruptionError
			switch {
			case errors.As(err, &damage):
				if damage.Path != name {
					t.Fatalf("%s bit %d: reported in %s", name, i, damage.Path)
				}
			case err != nil:
				t.Fatalf("%s bit %d: %v", name, i, err)
			case len(got) != len(want):
				t.Fatalf("%s bit %d: %d records without an error", name, i, len(got))
			case rec.End.Segment != uint64(len(logFiles(t, mem))) && len(rec.Dropped) == 0:
				t.Fatalf("%s bit %d: ends at %v", name, i, rec.End)
			}
			checkEntries(t, got, want[:len(got)])
		}
		put(t, mem, name, b)
	}
}

// A torn tail stays trimmed although later records say that the log before them was
// durable, and whatever lies behind it.
func TestTrimmedTailStaysTrimmed(t *testing.T) {
	mem, want, at := lives(t)
	name := "wal/" + segmentName(at[3].Segment)
	flip(t, mem, name, at[3].Offset+60)
	torn := read(t, mem, name)
	want = want[:3]
	for i := range 5 {
		l := start(t, mem, small())
		e := entry{20 + mvcc.Timestamp(i), text(i, 500)}
		add(t, l, e.ts, e.payload, Sync)
		want = append(want, e)
		stop(t, l)
		checkReplay(t, mem, small(), want)
		put(t, mem, name, torn) // as if the cut had not reached the disk
		checkReplay(t, mem, small(), want)
	}
}

func TestReadErrorIsNotDamage(t *testing.T) {
	mem, _, _ := lives(t)
	l, err := Open(bg, mem, "wal", small())
	must(t, err)
	broken := errors.New("broken cable")
	l.fs = failingReads{mem, broken}
	_, err = l.Replay(bg, func(*Record) error { return nil })
	if !errors.Is(err, broken) || errors.Is(err, vfs.ErrCorruption) {
		t.Fatal(err)
	}
}

type failingReads struct {
	vfs.FS
	err error
}

func (f failingReads) Open(string, vfs.Kind) (vfs.File, error) {
	return nil, fmt.Errorf("opening: %w", f.err)
}

func TestCallbackErrorEndsReplay(t *testing.T) {
	mem, _, _ := lives(t)
	l, err := Open(bg, mem, "wal", small())
	must(t, err)
	n := 0
	_, err = l.Replay(bg, func(*Record) error { n++; return fs.ErrInvalid })
	if n != 1 || !errors.Is(err, fs.ErrInvalid) {
		t.Fatal(n, err)
	}
	if err := l.Start(bg); err == nil {
		t.Fatal("started a log that is not replayed")
	}
}

func FuzzSegment(f *testing.F) {
	mem := vfs.NewMem()
	_, _ = fill(f, mem, small(), 5, 150)
	for _, name := range logFiles(f, mem) {
		b := read(f, mem, name)
		f.Add(b, b[:len(b)/2])
	}
	f.Add([]byte{}, make([]byte, 990))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		mem := vfs.NewMem()
		must(t, mem.MkdirAll("wal"))
		put(t, mem, "wal/00000001.log", a)
		put(t, mem, "wal/00000002.log", b)
		for _, o := range []Options{{ReadOnly: true}, {Salvage: true, First: 1}} { // no goroutines: they confuse the fuzzer
			_, _, rec, err := replay(mem, o)
			if o.Salvage && errors.Is(err, vfs.ErrCorruption) {
				t.Fatalf("salvage fails: %v", err)
			}
			if rec.End.Segment > 2 || rec.End.Offset > int64(max(len(a), len(b))) {
				t.Fatalf("%+v", rec)
			}
		}
	})
}

func TestFrameHeaders(t *testing.T) {
	pos := Position{3, 500}
	for name, c := range map[string]struct {
		change func(*frame)
		ok     bool
	}{
		"sound":             {func(f *frame) {}, true},
		"claims itself":     {func(f *frame) { f.synced = pos }, true},
		"claims the future": {func(f *frame) { f.synced = Position{3, 501} }, false},
		"next segment":      {func(f *frame) { f.synced = Position{4, 0} }, false},
		"no part":           {func(f *frame) { f.part = 0 }, false},
		"unknown part":      {func(f *frame) { f.part = 5 }, false},
		"no type":           {func(f *frame) { f.typ = 0 }, false},
		"whole, but longer": {func(f *frame) { f.total = 11 }, false},
		"first, but all":    {func(f *frame) { f.part = partFirst }, false},
		"part of a record":  {func(f *frame) { f.part, f.total = partFirst, 11 }, true},
		"fields too long":   {func(f *frame) { f.extensions = 11 }, false},
		"record too long":   {func(f *frame) { f.part, f.total = partFirst, MaxRecordBytes+1 }, false},
	} {
		f := frame{length: 10, total: 10, part: partWhole, typ: TypeBatch, extensions: 10, synced: Position{2, 9}}
		c.change(&f)
		var b [frameHeaderSize]byte
		f.put(b[:], 42, pos.Offset)
		got, ok := decodeFrame(b[:], 42, pos)
		if ok != c.ok || ok && got != f {
			t.Errorf("%s: %v, %+v", name, ok, got)
		}
		if _, ok := decodeFrame(b[:], 43, pos); ok {
			t.Errorf("%s: valid in another segment", name)
		}
		if _, ok := decodeFrame(b[:], 42, Position{3, 501}); ok {
			t.Errorf("%s: valid at another offset", name)
		}
	}
}

func TestHostileFrames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	mem := vfs.NewMem()
	want, _ := fill(t, mem, small(), 5, 150)
	names := logFiles(t, mem)
	for range 3000 { // headers with right checksums and wrong contents
		clone := mem.CrashClone(vfs.CrashOptions{})
		b := read(t, mem, names[0])
		fr := frame{
			dataCRC: r.Uint32(), length: r.Uint32N(2000), part: part(r.IntN(6)), typ: Type(r.IntN(3)), timestamp: mvcc.Timestamp(r.IntN(20)),
			synced: Position{r.Uint64N(3), r.Int64N(1000)}, extensions: r.Uint32N(300), total: r.Uint32N(3000) << r.IntN(20),
		}
		at := int64(firstFrame)
		if r.IntN(2) == 0 {
			at += frameHeaderSize + 150
		}
		if r.IntN(2) == 0 {
			fr.dataCRC = binfmt.UpdateCRC(segmentSeed(store, 1), b[min(int(at)+frameHeaderSize, len(b)):min(int(at)+frameHeaderSize+int(fr.length), len(b))])
		}
		fr.put(b[at:], segmentSeed(store, 1), at)
		put(t, clone, names[0], b)
		l, got, rec, err := replay(clone, small())
		if err == nil && len(got) < len(want) {
			t.Fatal("records lost without an error")
		}
		if err == nil {
			must(t, l.Start(bg))
			stop(t, l)
			checkReplay(t, clone, Options{End: rec.End}, got)
		}
	}
}
