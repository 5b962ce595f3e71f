package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// play runs a log through opens, appends, trims and closes on fs and returns the
// records that were acknowledged with the given mode and those that were appended. It
// stops at the first error.
func play(fs vfs.FS, mode Mode) (acked, appended []entry, err error) {
	var end Position
	for open := range 3 {
		o := small()
		o.End = end
		l, _, _, err := replay(fs, o)
		if err != nil {
			return acked, appended, err
		}
		if err := l.Start(bg); err != nil {
			_, _ = l.Close()
			return acked, appended, err
		}
		for i := range 6 {
			e := entry{mvcc.Timestamp(10*open + i + 1), text(10*open+i, 100+150*i)}
			pos, err := l.Append(&Record{Type: TypeBatch, Timestamp: e.ts, Payload: []byte(e.payload)})
			if err == nil {
				appended = append(appended, e)
				err = l.Wait(bg, pos, mode)
			}
			if err != nil {
				_, _ = l.Close()
				return acked, appended, err
			}
			acked = append(acked, e)
		}
		if end, err = l.Close(); err != nil {
			return acked, appended, err
		}
	}
	return acked, appended, nil
}

// checkPrefix requires that got is a prefix of appended and holds all of acked.
func checkPrefix(t *testing.T, got, acked, appended []entry) {
	t.Helper()
	if len(got) < len(acked) || len(got) > len(appended) {
		t.Fatalf("%d records, %d acknowledged, %d appended", len(got), len(acked), len(appended))
	}
	checkEntries(t, got, appended[:len(got)])
}

var errPower = errors.New("power cut")

// A power cut at every call that changes something, with nothing, or a random part,
// of what was not synced on the disk: acknowledged records are there, the rest is a
// prefix, and the log can be continued.
func TestItem118PowerCutUnderSync(t *testing.T) {
	cut := func(k int64, seed uint64) (done bool) {
		mem := vfs.NewMem()
		var calls atomic.Int64
		acked, appended, err := play(hooked(mem, func(errorfs.Op, string) error {
			if calls.Add(1) >= k {
				return errPower
			}
			return nil
		}), Sync)
		if err != nil && !errors.Is(err, errPower) {
			t.Fatal(err)
		}
		o := vfs.CrashOptions{}
		if seed > 0 {
			o.Rand = rand.New(rand.NewPCG(seed, uint64(k)))
		}
		after := mem.CrashClone(o)
		_, got, _, rerr := replay(after, small())
		if rerr != nil {
			t.Fatalf("call %d, seed %d: %v", k, seed, rerr)
		}
		checkPrefix(t, got, acked, appended)
		continueAfter(t, after, got, o)
		return err == nil
	}
	for seed := range uint64(4) {
		for k := int64(1); !cut(k, seed); k++ {
		}
	}
}

// continueAfter appends to a recovered log, cuts the power again and compares.
func continueAfter(t *testing.T, mem *vfs.Mem, want []entry, o vfs.CrashOptions) {
	t.Helper()
	l := start(t, mem, small())
	e := entry{1000, text(1, 1200)}
	add(t, l, e.ts, e.payload, Sync)
	checkReplay(t, mem.CrashClone(o), small(), append(slices.Clone(want), e))
	stop(t, l)
}

// Without syncs a power cut may lose the end, but never opens with an error or a hole.
func TestPowerCutUnderNoSync(t *testing.T) {
	for seed := range uint64(200) {
		mem := vfs.NewMem()
		r := rand.New(rand.NewPCG(seed, 3))
		l := start(t, mem, Options{Store: store, SegmentBytes: 8192})
		reopen := r.IntN(40)
		var all []entry
		for i := range 10 + r.IntN(60) {
			if i == reopen {
				stop(t, l)
				l = start(t, mem, Options{Store: store, SegmentBytes: 12000})
			}
			all = append(all, entry{mvcc.Timestamp(i), text(i, r.IntN(2000))})
			add(t, l, all[i].ts, all[i].payload, NoSync)
			if r.IntN(15) == 0 {
				must(t, l.SyncThrough(bg, mvcc.Timestamp(i)))
			}
		}
		_, durable := l.Durable()
		crash := vfs.CrashOptions{Rand: r}
		clone := mem.CrashClone(crash)
		_, got, _, err := replay(clone, small())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkEntries(t, got, all[:len(got)])
		if durable > 0 && len(got) <= int(durable) {
			t.Fatalf("%d records, durable through %d", len(got), durable)
		}
		continueAfter(t, clone, got, crash)
		stop(t, l)
	}
}

// A kill keeps what write(2) has taken.
func TestC69KillKeepsAcknowledged(t *testing.T) {
	for k := int64(1); ; k++ {
		mem := vfs.NewMem()
		var calls atomic.Int64
		acked, appended, err := play(hooked(mem, func(errorfs.Op, string) error {
			if calls.Add(1) >= k {
				return errPower
			}
			return nil
		}), Mode(k%3))
		_, got, _, rerr := replay(mem, small())
		must(t, rerr)
		checkPrefix(t, got, acked, appended)
		if err == nil {
			return
		}
	}
}

// The bytes of a log that was killed are not yet on the disk, and later records must
// not say so: Start writes and syncs them once more.
func TestC84StartHardensTheTail(t *testing.T) {
	mem := vfs.NewMem()
	l := start(t, mem, small())
	var want []entry
	for i := range 12 {
		want = append(want, entry{mvcc.Timestamp(i), text(i, 300)})
		add(t, l, want[i].ts, want[i].payload, NoSync)
	}
	l.kill() // and the file system wrote nothing
	rewritten := map[string]bool{}
	var mu sync.Mutex
	l = start(t, hooked(mem, func(op errorfs.Op, name string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == errorfs.OpWrite {
			rewritten[name] = true
		}
		if op == errorfs.OpSync && !rewritten[name] {
			t.Errorf("%s is synced without being written again", name)
		}
		return nil
	}), small())
	checkReplay(t, mem.CrashClone(vfs.CrashOptions{}), small(), want)
	stop(t, l)
}

// kill ends the goroutines and closes the files as the end of the process does.
func (l *Log) kill() {
	close(l.quit)
	l.alloc.close()
	l.background.Wait()
	l.closeFiles()
}

// After a failed write or sync nothing is taken for durable until the log is reopened.
func TestC84FailedSyncIsFinal(t *testing.T) {
	for _, op := range []errorfs.Op{errorfs.OpSync, errorfs.OpWrite} {
		for _, cause := range []error{syscall.EIO, syscall.EINVAL} {
			mem := vfs.NewMem()
			var fail atomic.Bool
			l := start(t, hooked(mem, func(o errorfs.Op, name string) error {
				if o == op && fail.Load() && strings.HasSuffix(name, "1.log") {
					return cause
				}
				return nil
			}), small())
			must(t, l.alloc.reserve(1))
			want := []entry{{1, "kept"}}
			add(t, l, 1, "kept", Sync)
			fail.Store(true)
			pos, err := l.Append(&Record{Type: TypeBatch, Timestamp: 2, Payload: []byte("lost")})
			must(t, err)
			if err := l.Wait(bg, pos, Sync); !errors.Is(err, cause) {
				t.Fatalf("%s: %v", op, err)
			}
			fail.Store(false) // the disk is well again: too late
			if err := l.Wait(bg, pos, Sync); !errors.Is(err, cause) {
				t.Fatalf("%s: %v", op, err)
			}
			if _, err := l.Append(&Record{Type: TypeBatch, Timestamp: 3}); !errors.Is(err, cause) {
				t.Fatalf("%s: %v", op, err)
			}
			if err := l.SyncThrough(bg, 9); !errors.Is(err, cause) {
				t.Fatalf("%s: %v", op, err)
			}
			if _, ts := l.Durable(); ts != 1 {
				t.Fatalf("%s: durable through %d", op, ts)
			}
			if _, err := l.Close(); !errors.Is(err, cause) {
				t.Fatalf("%s: %v", op, err)
			}
			if n := mem.OpenFiles(); n != 0 {
				t.Fatalf("%s: %d files open", op, n)
			}
			checkReplay(t, mem.CrashClone(vfs.CrashOptions{}), small(), want)
		}
	}
}

// When a segment cannot be made the record is refused, and taken once there is space.
func TestC80FullDisk(t *testing.T) {
	for _, op := range []errorfs.Op{errorfs.OpCreate, errorfs.OpPreallocate, errorfs.OpWrite, errorfs.OpSync, errorfs.OpSyncDir} {
		mem := vfs.NewMem()
		var full atomic.Bool
		l := start(t, hooked(mem, func(o errorfs.Op, name string) error {
			made := o == errorfs.OpSyncDir || !strings.HasSuffix(name, "1.log") && !strings.HasSuffix(name, "2.log")
			if o == op && made && full.Load() {
				return syscall.ENOSPC
			}
			return nil
		}), small())
		must(t, l.alloc.reserve(2))
		full.Store(true)
		var want []entry
		refused := 0
		for i := 1; refused < 3; i++ {
			e := entry{mvcc.Timestamp(i), text(i, 300)}
			pos, err := l.Append(&Record{Type: TypeBatch, Timestamp: e.ts, Payload: []byte(e.payload)})
			if err != nil {
				if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, vfs.ErrCorruption) {
					t.Fatalf("%s: %v", op, err)
				}
				refused++
				continue
			}
			want = append(want, e)
			must(t, l.Wait(bg, pos, Sync))
		}
		if len(want) < 4 {
			t.Fatalf("%s: only %d records fit in two segments", op, len(want))
		}
		checkReplay(t, mem.CrashClone(vfs.CrashOptions{}), small(), want)
		full.Store(false)
		for i := range 5 {
			want = append(want, entry{100 + mvcc.Timestamp(i), text(i, 300)})
			add(t, l, want[len(want)-1].ts, want[len(want)-1].payload, Sync)
		}
		stop(t, l)
		checkReplay(t, mem, small(), want)
	}
}

func TestC80FullDiskForReal(t *testing.T) {
	for capacity := int64(0); capacity < 12000; capacity += 499 {
		mem := vfs.NewMemOptions(vfs.MemOptions{Capacity: max(capacity, 1)})
		acked, appended, err := play(mem, Sync)
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("capacity %d: %v", capacity, err)
		}
		mem.SetCapacity(1 << 30)
		_, got, _, err := replay(mem, small())
		must(t, err)
		checkPrefix(t, got, acked, appended)
		continueAfter(t, mem, got, vfs.CrashOptions{})
	}
}

// C86: without any space the log starts, so that what it holds can be read, and refuses
// the first record.
func TestC86NoSpaceAtAll(t *testing.T) {
	mem := vfs.NewMem()
	want, _ := fill(t, mem, small(), 3, 100)
	mem.SetCapacity(1)
	l, got, _, err := replay(mem, small())
	must(t, err)
	checkEntries(t, got, want)
	must(t, l.Start(bg))
	if _, err := l.Append(&Record{Type: TypeBatch, Timestamp: 1000}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	_, err = l.Close()
	must(t, err)
	if n := mem.OpenFiles(); n != 0 {
		t.Fatalf("%d files open", n)
	}
	mem.SetCapacity(0)
	checkReplay(t, mem, small(), want)
}

// C72: a power cut while segments are made leaves files of no bytes, or of zeroes.
func TestC72FirstOpenCutShort(t *testing.T) {
	for k := int64(2); k < 12; k++ { // the first call makes the directory
		mem := vfs.NewMem()
		var calls atomic.Int64
		l, _, _, err := replay(hooked(mem, func(errorfs.Op, string) error {
			if calls.Add(1) >= k {
				return errPower
			}
			return nil
		}), small())
		must(t, err)
		_ = l.Start(bg)
		_, _ = l.Close()
		for seed := range uint64(10) {
			clone := mem.CrashClone(vfs.CrashOptions{Rand: rand.New(rand.NewPCG(seed, 0))})
			checkReplay(t, clone, small(), nil)
			continueAfter(t, clone, nil, vfs.CrashOptions{})
		}
	}
}

// A run without a record makes no file and syncs nothing but the directory above a new log.
func TestNoRecordNoSegment(t *testing.T) {
	mem := vfs.NewMem()
	_, end := fill(t, mem, small(), 20, 100)
	var calls []string
	l := start(t, hooked(mem, func(op errorfs.Op, name string) error {
		switch op {
		case errorfs.OpCreate, errorfs.OpWrite, errorfs.OpSync, errorfs.OpSyncDir, errorfs.OpRemove, errorfs.OpPreallocate:
			calls = append(calls, fmt.Sprint(op, " ", name))
		}
		return nil
	}), Options{Store: store, End: end})
	stop(t, l)
	if len(calls) > 0 {
		t.Fatal(calls)
	}
}

// Everything may be trimmed before the first record of a run, and numbers go on.
func TestTrimBeforeTheFirstRecord(t *testing.T) {
	mem := vfs.NewMem()
	_, end := fill(t, mem, small(), 20, 100)
	l := start(t, mem, Options{Store: store, SegmentBytes: small().SegmentBytes, End: end})
	first := l.KeepFrom(1000)
	if first != end.Segment+1 {
		t.Fatalf("keep from %d after %v", first, end)
	}
	if _, err := l.TrimBefore(first); err != nil {
		t.Fatal(err)
	}
	if names := logFiles(t, mem); len(names) != 0 || l.Segments() != 0 {
		t.Fatal(names, l.Segments())
	}
	if at := add(t, l, 1000, "x", Sync); at.Segment != first {
		t.Fatalf("the next record is at %v", at)
	}
	stop(t, l)
	checkReplay(t, mem, Options{Store: store, First: first}, []entry{{1000, "x"}})
}

// A log that is opened and closed leaves nothing behind, and one that is closed holds
// no more than its records.
func TestCloseLeavesOnlyTheLog(t *testing.T) {
	mem := vfs.NewMem()
	for range 3 {
		stop(t, start(t, mem, Options{Store: store}))
	}
	if names := logFiles(t, mem); len(names) != 0 {
		t.Fatal(names)
	}
	want, end := fill(t, mem, Options{Store: store}, 10, 1000)
	for range 3 {
		l := start(t, mem, Options{Store: store, End: end})
		if got := stop(t, l); got != end {
			t.Fatalf("ends at %v, not %v", got, end)
		}
	}
	names := logFiles(t, mem)
	if len(names) != 1 || len(read(t, mem, names[0])) > 12000 {
		t.Fatal(names)
	}
	checkReplay(t, mem, small(), want)
	// After a kill the open segment is cut by the next open.
	l := start(t, mem, Options{Store: store})
	add(t, l, 1000, "x", NoSync)
	l.kill()
	stop(t, start(t, mem, Options{Store: store}))
	for _, name := range logFiles(t, mem) {
		if n := len(read(t, mem, name)); n > 12000 {
			t.Errorf("%s has %d bytes", name, n)
		}
	}
}

// The first blocks of a new segment are lost and later ones are not: their claim says
// only that what lies before the segment is durable, and it is.
func TestTornLinkIsNotDamage(t *testing.T) {
	for segments := range 3 {
		mem := vfs.NewMem()
		want, end := fill(t, mem, Options{Store: store}, 5, 100)
		l := start(t, mem, Options{Store: store, SegmentBytes: 8192})
		first := add(t, l, 1000, text(0, 900), NoSync).Segment
		for i := 1; l.Metrics().Segments < int64(segments+2) || i < 5; i++ {
			add(t, l, 1000, text(i, 900), NoSync)
		}
		l.kill()
		name := "wal/" + segmentName(first)
		b := read(t, mem, name)
		clear(b[64:1500])
		put(t, mem, name, b)
		rec := checkReplay(t, mem, Options{End: end}, want)
		if rec.End != end || len(rec.Dropped) == 0 {
			t.Errorf("%+v", rec)
		}
		continueAfter(t, mem, want, vfs.CrashOptions{})
	}
}
