package minikudu_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/compaction"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// upkeep is a store whose background work is watched.
type upkeep struct {
	*testing.T
	mem *vfs.Mem
	fs  *errorfs.FS
	db  *minikudu.DB
	tab *minikudu.Table

	mu     sync.Mutex
	begun  []minikudu.CompactionInfo
	ended  []minikudu.CompactionInfo
	deltas []minikudu.DeltaFlushInfo
	errs   atomic.Int64

	whenFlushed func() // called at the end of each flush
}

// newUpkeep opens a store with a table of keys and numbers.
func newUpkeep(t *testing.T, o minikudu.Options) *upkeep {
	t.Helper()
	u := &upkeep{T: t, mem: vfs.NewMem()}
	u.fs = errorfs.Wrap(u.mem)
	o.FS = u.fs
	o.Events = &minikudu.EventListener{
		CompactionBegin: func(i minikudu.CompactionInfo) {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.begun = append(u.begun, i)
		},
		CompactionEnd: func(i minikudu.CompactionInfo) {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.ended = append(u.ended, i)
		},
		DeltaFlushEnd: func(i minikudu.DeltaFlushInfo) {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.deltas = append(u.deltas, i)
		},
		FlushEnd: func(minikudu.FlushInfo) {
			if u.whenFlushed != nil {
				u.whenFlushed()
			}
		},
		BackgroundError: func(error) { u.errs.Add(1) },
	}
	u.db = mustOpen(t, "store", &o)
	t.Cleanup(func() { _ = u.db.Close() })
	var err error
	u.tab, err = u.db.CreateTable(ctx, "t", forgetful(kvSpec()))
	fatal(t, err)
	return u
}

// compactions returns those that have ended.
func (u *upkeep) compactions() []minikudu.CompactionInfo {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ended
}

// started returns those that have begun.
func (u *upkeep) started() []minikudu.CompactionInfo {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.begun
}

// flushed upserts the keys and flushes them.
func (u *upkeep) flushed(keys ...int) {
	u.Helper()
	u.upsert(keys...)
	fatal(u, u.tab.Flush(ctx))
}

func (u *upkeep) upsert(keys ...int) {
	u.Helper()
	var b minikudu.WriteBatch
	for _, k := range keys {
		b.Upsert(u.tab, k, k)
	}
	_, err := u.db.Commit(ctx, &b, nil)
	fatal(u, err)
}

// overlapping flushes n rowsets of the same key range.
func (u *upkeep) overlapping(from, n int) {
	u.Helper()
	for k := from; k < from+n; k++ {
		u.flushed(k, 1000+k)
	}
}

// keys returns n keys from a first one on.
func keys(from, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = from + i
	}
	return out
}

func (u *upkeep) settle() {
	u.Helper()
	fatal(u, u.db.WaitSettled(ctx))
}

func (u *upkeep) rowsets() int { return u.db.Metrics().RowSets }

// files returns the number of files of rows and changes.
func (u *upkeep) files() int {
	u.Helper()
	names, err := dataFiles(u.mem)
	fatal(u, err)
	return len(names)
}

func (u *upkeep) delete(where predicate.Expr) {
	u.Helper()
	_, err := u.db.DeleteWhere(ctx, u.tab, where, nil)
	fatal(u, err)
}

// A table that is written to is merged when a look-up is spared three rowsets; once it
// is quiet, whenever that gains anything.
func TestSchedulerWaitsForAGain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpkeep(t, minikudu.Options{})
		u.overlapping(0, 3)
		time.Sleep(5 * time.Second)
		if n := u.compactions(); len(n) > 0 {
			t.Fatalf("written to: %v", n)
		}
		time.Sleep(6 * time.Second)
		all := u.compactions()
		if len(all) != 1 || all[0].Kind != compaction.CompactRowSet || all[0].Reason != "gain" || all[0].Inputs != 3 || all[0].Outputs != 1 ||
			all[0].Table != "t" || all[0].Score < 1 || all[0].Err != nil || all[0].Job == 0 || all[0].BytesOut == 0 || !strings.Contains(all[0].String(), "rowset compaction") {
			t.Fatalf("quiet: %+v", all)
		}
		u.overlapping(10, 5) // with what was merged the height is 6
		synctest.Wait()
		if all = u.compactions(); len(all) != 2 || u.rowsets() > 3 {
			t.Fatalf("four at once: %v, %d rowsets", all, u.rowsets())
		}
		time.Sleep(time.Minute)
		if n := u.rowsets(); n != 1 {
			t.Errorf("%d rowsets in the end", n)
		}
		if b := u.started(); len(b) != len(u.compactions()) || b[0].Job != all[0].Job {
			t.Errorf("begun: %v", b)
		}
	})
}

// A merge in the background would take a part of what Compact is about to merge: none
// begins while Compact flushes.
func TestCompactMergesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpkeep(t, minikudu.Options{})
		u.db.Pause()
		u.overlapping(0, 6)
		u.upsert(7, 2000)
		u.whenFlushed = func() {
			u.db.Resume()
			time.Sleep(time.Minute)
		}
		_, err := u.tab.Compact(ctx)
		fatal(t, err)
		if all := u.compactions(); len(all) != 1 || all[0].Reason != "asked" || all[0].Inputs != 7 {
			t.Errorf("compactions: %v", all)
		}
		u.whenFlushed = nil
		u.overlapping(10, 6)
		time.Sleep(time.Minute)
		if n := u.rowsets(); n != 1 {
			t.Errorf("%d rowsets: merges in the background did not go on", n)
		}
	})
}

// What a merge of a table that is written to costs is covered by what was flushed; what
// one costs that is quiet, by time.
func TestSchedulerCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpkeep(t, minikudu.Options{})
		u.db.Pause()
		for i := range 3 { // these earn credit, which their merge spends
			big := make([]int, 0, 100_000)
			for k := range 100_000 {
				big = append(big, 10*k+i)
			}
			u.flushed(big...)
		}
		u.db.Resume()
		u.settle()
		for { // spend what is left
			m := u.db.Metrics()
			if m.CompactedBytes > 5*m.FlushedBytes {
				break
			}
			_, err := u.tab.CompactAll(ctx)
			fatal(t, err)
		}
		base := u.db.Metrics()
		for k := range 200 {
			u.flushed(10*k+5, 900_005+10*k)
			synctest.Wait()
			if n := u.rowsets(); n > 40 {
				t.Fatalf("%d rowsets", n)
			}
		}
		m := u.db.Metrics()
		if read, earned := m.CompactedBytes-base.CompactedBytes, 4*(m.FlushedBytes-base.FlushedBytes)+4*base.FlushedBytes; read > earned {
			t.Errorf("%d bytes read by merges, %d paid for", read, earned)
		}
		if m.Compactions-base.Compactions < 10 {
			t.Errorf("%d merges", m.Compactions-base.Compactions)
		}
		time.Sleep(time.Hour)
		if n := u.rowsets(); n != 1 {
			t.Errorf("%d rowsets after an hour", n)
		}
	})
}

// Waste, dead rowsets and many files of changes are reasons of their own.
func TestSchedulerReasons(t *testing.T) {
	for _, c := range []struct {
		name, reason string
		kind         compaction.Kind
		act          func(u *upkeep)
	}{
		{"waste", "waste", compaction.CompactRowSet, func(u *upkeep) {
			u.flushed(keys(0, 1000)...)
			u.delete(predicate.Lt("key", 500))
		}},
		{"nothing lives", "garbage", compaction.DropRowSet, func(u *upkeep) {
			u.flushed(keys(0, 1000)...)
			u.delete(predicate.Lt("key", 1000))
		}},
		{"files of changes", "gain", compaction.CompactMinor, func(u *upkeep) {
			u.flushed(keys(0, 200_000)...)
			for k := range 8 {
				u.upsert(k)
				fatal(u, u.tab.FlushDeltas(ctx))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUpkeep(t, minikudu.Options{})
				c.act(u)
				fatal(t, u.tab.Flush(ctx))
				time.Sleep(time.Minute)
				all := u.compactions()
				if len(all) != 1 || all[0].Kind != c.kind || all[0].Reason != c.reason || all[0].Err != nil || all[0].Inputs == 0 {
					t.Fatalf("%+v", all)
				}
				if c.kind == compaction.DropRowSet {
					if all[0].RowsDropped != 1000 || u.files() != 0 || u.db.Metrics().RowSetDrops != 1 {
						t.Errorf("%+v, %d files", all[0], u.files())
					}
					return
				}
				if c.kind == compaction.CompactMinor {
					if m := u.db.Metrics(); all[0].Inputs != 8 || all[0].Outputs != 1 || m.MinorCompactions != 1 || m.DeltaFiles != 1 ||
						m.ChangeBytes != m.MinorCompactionBytes || m.MinorCompactedBytes != m.DeltaBytes {
						t.Errorf("%+v, %+v", all[0], m)
					}
					if u.files() != 2 {
						t.Errorf("%d files", u.files())
					}
				}
				if len(u.deltas) == 0 || u.deltas[0].Changes == 0 || u.deltas[0].Bytes == 0 || u.deltas[0].Table != "t" || !strings.Contains(u.deltas[0].String(), `"t"`) {
					t.Errorf("flushes of changes: %+v", u.deltas)
				}
			})
		})
	}
}

// A compaction that fails is tried again with longer and longer pauses, and flushes go on.
func TestSchedulerFailureBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpkeep(t, minikudu.Options{})
		u.db.Pause()
		u.overlapping(0, 6)
		u.fs.SetHook(errorfs.Fail(syscall.EIO, 1, 0, errorfs.And(errorfs.Ops(errorfs.OpOpen, errorfs.OpRead), errorfs.Kinds(vfs.KindRowSet))))
		u.db.Resume()
		time.Sleep(time.Minute)
		all := u.compactions()
		if n := int64(len(all)); n < 5 || n > 20 || n != u.errs.Load() || !errors.Is(all[0].Err, syscall.EIO) || !strings.Contains(all[0].String(), "failed") {
			t.Fatalf("%d tries in a minute, %d events: %v", n, u.errs.Load(), all)
		}
		before := u.db.Metrics()
		u.flushed(5000, 5001) // in no rowset's range, so that nothing is read
		if m := u.db.Metrics(); m.Flushes != before.Flushes+1 || m.Compactions != 0 {
			t.Errorf("%+v", m)
		}
		over, cancel := context.WithTimeout(ctx, time.Minute)
		if err := u.db.WaitSettled(over); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("settled while work fails: %v", err)
		}
		cancel()
		u.fs.SetHook(nil)
		u.settle()
		if n := u.rowsets(); n != 1 {
			t.Errorf("%d rowsets", n)
		}
	})
}

// Close ends a compaction that would take hours, and so does a drop of its table; none
// leaves a file.
func TestSchedulerAbandons(t *testing.T) {
	for _, drop := range []bool{false, true} {
		t.Run(fmt.Sprint("drop ", drop), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUpkeep(t, minikudu.Options{CompactionRate: 1, MemoryBudget: 64 << 20})
				u.db.Pause()
				for i := range 6 {
					var some []int
					for k := range 100_000 {
						some = append(some, 6*k+i)
					}
					u.flushed(some...)
				}
				files := u.files()
				u.db.Resume()
				time.Sleep(time.Minute)
				if len(u.started()) != 1 || len(u.compactions()) != 0 || u.db.Metrics().RunningCompactions != 1 {
					t.Fatalf("begun %v, ended %v", u.started(), u.compactions())
				}
				begin := time.Now() // of the bubble, which does not depend on speed
				if drop {
					fatal(t, u.db.DropTable(ctx, "t"))
					files = 0
				}
				mustClose(t, u.db)
				if d := time.Since(begin); d > time.Second {
					t.Errorf("it took %v", d)
				}
				if all := u.compactions(); len(all) != 1 || !errors.Is(all[0].Err, context.Canceled) || u.errs.Load() > 0 {
					t.Errorf("%v, %d errors", all, u.errs.Load())
				}
				if n := u.files(); n != files {
					t.Errorf("%d files, were %d", n, files)
				}
				db := mustOpen(t, "store", &minikudu.Options{FS: u.mem})
				fatal(t, checkVerify(db))
				mustClose(t, db)
			})
		})
	}
}

// Writes of compactions in the background are spread over time, others are not.
func TestSchedulerRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpkeep(t, minikudu.Options{CompactionRate: 100 << 10})
		u.db.Pause()
		begin := time.Now()
		for i := range 6 {
			var some []int
			for k := range 100_000 {
				some = append(some, 6*k+i)
			}
			u.flushed(some...)
		}
		if d := time.Since(begin); d > time.Second {
			t.Errorf("flushes took %v", d)
		}
		u.db.Resume()
		u.settle()
		if m, d := u.db.Metrics(), time.Since(begin); m.CompactionBytes < 1<<19 || d < time.Duration(m.CompactionBytes/(100<<10))*time.Second || d > time.Minute {
			t.Errorf("%d bytes in %v", m.CompactionBytes, d)
		}
		begin = time.Now()
		_, err := u.tab.CompactAll(ctx)
		fatal(t, err)
		if d := time.Since(begin); d > time.Second {
			t.Errorf("a compaction that was asked for took %v", d)
		}
	})
}

// Between Pause and Resume nothing begins but flushes for memory.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpkeep(t, minikudu.Options{MemoryBudget: 8 << 20, FlushBytes: 1 << 20, LogBytes: 1 << 20, Durability: minikudu.NoSync})
		u.db.Pause()
		u.db.Pause()
		u.overlapping(0, 20)
		for k := 0; u.db.Metrics().MemoryBytes < 9<<17; k += 1000 { // more than FlushBytes
			u.upsert(keys(10_000+k, 1000)...)
		}
		u.db.Resume()
		time.Sleep(time.Minute)
		m := u.db.Metrics()
		if m.Compactions != 0 || m.Flushes != 20 {
			t.Fatalf("while paused: %d compactions, %d flushes", m.Compactions, m.Flushes)
		}
		for k := range 400 { // several times the limit of memory: writers go on
			u.upsert(keys(1_000_000+1000*k, 1000)...)
			if m := u.db.Metrics(); m.MemoryBytes > m.MemoryLimit+1<<20 {
				t.Fatalf("%d bytes, limit %d", m.MemoryBytes, m.MemoryLimit)
			}
		}
		if m = u.db.Metrics(); m.Compactions != 0 || m.Flushes == 20 {
			t.Fatalf("while paused and short of memory: %d compactions, %d flushes", m.Compactions, m.Flushes)
		}
		over, cancel := context.WithTimeout(ctx, time.Minute)
		if err := u.db.WaitSettled(over); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("settled while paused: %v", err)
		}
		cancel()
		u.db.Resume()
		u.db.Resume() // one too many changes nothing
		u.settle()
		if m = u.db.Metrics(); m.Compactions == 0 || m.MemoryBytes > 1<<20 {
			t.Errorf("%+v", m)
		}
		fatal(t, checkVerify(u.db))
	})
}

// Pause waits for the step in progress.
func TestPauseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpkeep(t, minikudu.Options{})
		release := u.blockedCompaction()
		paused := make(chan struct{})
		go func() {
			u.db.Pause()
			close(paused)
		}()
		synctest.Wait()
		select {
		case <-paused:
			t.Error("paused while a step runs")
		default:
		}
		close(release)
		<-paused
		if len(u.compactions()) != 1 {
			t.Errorf("%v", u.compactions())
		}
		u.db.Resume()
	})
}

// blockedCompaction begins one in the background, which waits until release is closed.
func (u *upkeep) blockedCompaction() (release chan struct{}) {
	u.Helper()
	u.db.Pause()
	u.overlapping(0, 6)
	release = make(chan struct{})
	u.fs.SetHook(func(c errorfs.Call) error {
		if c.Op == errorfs.OpCreate && c.Kind == vfs.KindRowSet {
			<-release
		}
		return nil
	})
	u.db.Resume()
	synctest.Wait()
	if len(u.started()) != 1 || len(u.compactions()) != 0 {
		u.Fatalf("begun %v", u.started())
	}
	return release
}

// A flush leaves no change in memory, though a compaction of its rowset runs.
func TestFlushWaitsForCompaction(t *testing.T) {
	for _, f := range map[string]func(*minikudu.Table) error{
		"flush":        func(tab *minikudu.Table) error { return tab.Flush(ctx) },
		"delta flush":  func(tab *minikudu.Table) error { return tab.FlushDeltas(ctx) },
		"is cancelled": nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			u := newUpkeep(t, minikudu.Options{})
			release := u.blockedCompaction()
			u.upsert(0, 3)
			if f == nil {
				over, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if err := u.tab.FlushDeltas(over); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("cancelled: %v", err)
				}
				close(release)
				return
			}
			done := make(chan error, 1)
			go func() { done <- f(u.tab) }()
			synctest.Wait()
			if len(done) > 0 {
				t.Error("it did not wait")
			}
			close(release)
			fatal(t, <-done)
			if m := u.db.Metrics(); m.DeltaFlushes == 0 {
				t.Errorf("%+v", m)
			}
			l, err := u.tab.Layout(ctx)
			fatal(t, err)
			for _, rs := range l {
				if rs.DeltaEntries > 0 {
					t.Errorf("changes in memory: %+v", rs)
				}
			}
		})
	}
}

func TestWaitSettledErrors(t *testing.T) {
	u := newUpkeep(t, minikudu.Options{CompactionWorkers: -1})
	u.overlapping(0, 6)
	u.settle() // nothing is done by anybody
	if n := u.rowsets(); n != 6 {
		t.Errorf("%d rowsets with compaction off", n)
	}
	mustClose(t, u.db)
	if err := u.db.WaitSettled(ctx); !errors.Is(err, minikudu.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	db := mustOpen(t, "store", &minikudu.Options{FS: u.mem, ReadOnly: true})
	defer mustClose(t, db)
	fatal(t, db.WaitSettled(ctx))
}

// Close ends a wait for a store that does not settle.
func TestCloseEndsWaitSettled(t *testing.T) {
	u := newUpkeep(t, minikudu.Options{})
	u.db.Pause()
	u.overlapping(0, 6)
	done := make(chan error, 1)
	go func() { done <- u.db.WaitSettled(ctx) }()
	mustClose(t, u.db)
	if err := <-done; !errors.Is(err, minikudu.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// A store settles whatever the size of its rowsets, even one that no file can have.
func TestSettlesAtAnySize(t *testing.T) {
	for _, size := range []int64{1, 500, 1000, 2048, 64 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			u := newUpkeep(t, minikudu.Options{RowSetBytes: size, Durability: minikudu.NoSync})
			r := rand.New(rand.NewPCG(1, uint64(size)))
			for range 12 {
				var some []int
				for range 20 {
					some = append(some, r.IntN(1<<30))
				}
				u.flushed(some...)
			}
			u.settle()
			u.settle()
			fatal(t, checkVerify(u.db))
		})
	}
}

// Thousands of tiny batches, each flushed, never leave thousands of rowsets, and a get
// asks few of them.
func TestTinyFlushesSettle(t *testing.T) {
	for name, next := range map[string]func(r *rand.Rand, k int) int{
		"random":   func(r *rand.Rand, _ int) int { return r.IntN(1 << 30) },
		"in order": func(_ *rand.Rand, k int) int { return k },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUpkeep(t, minikudu.Options{Durability: minikudu.NoSync})
				r := rand.New(rand.NewPCG(1, 2))
				rowsets, height := 0, 0.0
				for k := range 2000 {
					u.flushed(next(r, 2*k), next(r, 2*k+1))
					synctest.Wait() // so that the number does not depend on speed
					if k%50 > 0 {
						continue
					}
					l, err := u.tab.Layout(ctx)
					fatal(t, err)
					h := 0.0
					for _, rs := range l {
						h += rs.End - rs.Start
					}
					rowsets, height = max(rowsets, len(l)), max(height, h)
				}
				if rowsets > 70 || height > 40 {
					t.Errorf("%d rowsets, height %.1f", rowsets, height)
				}
				u.settle()
				m := u.db.Metrics()
				if int64(m.RowSets) > 2*m.RowSetBytes/u.db.Options().RowSetBytes+2 {
					t.Errorf("%d rowsets of %d bytes", m.RowSets, m.RowSetBytes)
				}
				if moved := m.CompactedBytes; moved > 5*m.FlushedBytes {
					t.Errorf("%d bytes merged of %d flushed", moved, m.FlushedBytes)
				}
				t.Logf("at most %d rowsets, height %.1f, %d merges of %d bytes, %d flushed", rowsets, height, m.Compactions, m.CompactedBytes, m.FlushedBytes)
			})
		})
	}
}

// Deleted rows and history go by themselves once they are older than the table's history,
// and what a snapshot holds goes when that is closed.
func TestHistoryGoesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpkeep(t, minikudu.Options{})
		spec := kvSpec()
		spec.History = time.Hour
		tab, err := u.db.CreateTable(ctx, "kept", spec)
		fatal(t, err)
		u.tab = tab
		u.flushed(keys(0, 1000)...)
		_, err = u.db.UpdateWhere(ctx, tab, nil, map[string]any{"val": 7}, nil)
		fatal(t, err)
		fatal(t, tab.Flush(ctx))
		fatal(t, u.db.WaitSettled(ctx))
		m := u.db.Metrics()
		if m.MajorCompactions != 1 || m.HistoryBytes == 0 || m.ChangeBytes != 0 {
			t.Fatalf("changes are not folded: %+v", m)
		}
		time.Sleep(50 * time.Minute)
		if synctest.Wait(); u.db.Metrics().HistoryBytes != m.HistoryBytes {
			t.Fatal("history is gone too early")
		}
		time.Sleep(20 * time.Minute)
		if synctest.Wait(); u.db.Metrics().HistoryBytes != 0 || u.db.Metrics().HistoryDrops != 1 {
			t.Fatalf("history is still there: %+v", u.db.Metrics())
		}
		held, err := u.db.Snapshot()
		fatal(t, err)
		u.delete(nil)
		fatal(t, tab.Flush(ctx))
		time.Sleep(2 * time.Hour)
		if synctest.Wait(); u.files() == 0 || count(t, tab, minikudu.Query{AsOf: held.Timestamp()}) != 1000 {
			t.Fatal("a held snapshot lost its rows")
		}
		if age := u.db.Metrics().OldestReader; age < 2*time.Hour {
			t.Errorf("the oldest reader is %v old", age)
		}
		held.Close()
		time.Sleep(time.Minute)
		if synctest.Wait(); u.files() != 0 || u.db.Metrics().RowSetDrops != 1 {
			t.Fatalf("%d files are left", u.files())
		}
	})
}

// What is in memory for long is flushed however little it is, rows and changes of rows.
func TestOldStoresAreFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var reasons []string
		note := func(reason string) {
			mu.Lock()
			defer mu.Unlock()
			reasons = append(reasons, reason)
		}
		noted := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(reasons)
		}
		o := minikudu.Options{FS: vfs.NewMem(), Events: &minikudu.EventListener{
			FlushEnd:      func(i minikudu.FlushInfo) { note("rows: " + i.Reason) },
			DeltaFlushEnd: func(i minikudu.DeltaFlushInfo) { note("changes: " + i.Reason) },
		}}
		db := mustOpen(t, "store", &o)
		defer mustClose(t, db)
		tab, err := db.CreateTable(ctx, "t", kvSpec())
		fatal(t, err)
		var b minikudu.WriteBatch
		for k := range 2 {
			b.Reset()
			b.Add(tab, minikudu.OpUpsert, map[string]any{"key": 1, "val": k})
			_, err = db.Commit(ctx, &b, nil)
			fatal(t, err)
			time.Sleep(100 * time.Second)
			synctest.Wait()
			if early := noted(); len(early) != k {
				t.Fatalf("flushed too early: %v", early)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		if reasons := noted(); len(reasons) != 2 || reasons[0] != "rows: age" || reasons[1] != "changes: age" || db.Metrics().MemoryBytes != 0 {
			t.Fatalf("flushes: %v, %d bytes in memory", reasons, db.Metrics().MemoryBytes)
		}
	})
}

// A reader that is too old ends, and what it kept goes.
func TestC56ReadersMayBeTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpkeep(t, minikudu.Options{MaxReaderAge: time.Minute})
		u.flushed(keys(0, 1000)...)
		held, err := u.db.Snapshot()
		fatal(t, err)
		batches := 0
		for _, err := range u.tab.Scan(ctx, minikudu.Query{BatchRows: 100}) {
			if batches++; batches == 3 {
				time.Sleep(2 * time.Minute)
			}
			if err != nil {
				if batches != 4 || !errors.Is(err, minikudu.ErrReaderExpired) {
					t.Fatalf("batch %d: %v", batches, err)
				}
				break
			}
		}
		if batches != 4 {
			t.Fatalf("%d batches", batches)
		}
		u.delete(nil)
		fatal(t, u.tab.Flush(ctx))
		fatal(t, u.db.WaitSettled(ctx))
		if n := u.files(); n != 0 || u.db.Metrics().OldestReader != 0 {
			t.Errorf("%d files are left", n)
		}
		if _, err := u.db.SnapshotAt(held.Timestamp()); !errors.Is(err, minikudu.ErrHistoryExpired) {
			t.Errorf("the snapshot is still held: %v", err)
		}
		held.Close()
	})
}

// Flushes of rows that are dead already leave nothing.
func TestEmptyFlushesLeaveNoFile(t *testing.T) {
	u := newUpkeep(t, minikudu.Options{Durability: minikudu.NoSync})
	for k := range 1000 {
		u.upsert(k)
		u.delete(predicate.Eq("key", k))
		fatal(t, u.tab.Flush(ctx))
	}
	u.settle()
	if n := u.files(); n != 0 || u.tab.Rows() != 0 {
		t.Errorf("%d files, %d rows", n, u.tab.Rows())
	}
}

// A load in random order ends in a low table that was written few times over.
func TestRandomLoadSettles(t *testing.T) {
	if testing.Short() {
		t.Skip("loads a million rows")
	}
	db := mustOpen(t, "store", &minikudu.Options{FS: vfs.NewMem(), Durability: minikudu.NoSync, MemoryBudget: 16 << 20})
	defer mustClose(t, db)
	tab := narrowTable(t, db)
	load(t, db, tab, []string{"id", "count", "value"}, narrowBatches(1_000_000))
	fatal(t, tab.Flush(ctx))
	fatal(t, db.WaitSettled(ctx))
	st, err := tab.Stats(ctx)
	fatal(t, err)
	m := db.Metrics()
	t.Logf("height %.2f, write amplification %.2f, %d rowsets, %d merges", st.Height, m.WriteAmplification(), m.RowSets, m.Compactions)
	if st.Height > 3 || m.WriteAmplification() > 8 || m.SpaceAmplification() > 1.01 || tab.Rows() != 1_000_000 {
		t.Errorf("height %.2f, %+v", st.Height, m)
	}
	if m.UserBytes < 16_000_000 || m.Flushes < 10 {
		t.Errorf("%d bytes of batches, %d flushes", m.UserBytes, m.Flushes)
	}
}

// CompactAll leaves one sorted run, GC deletes the dead and touches nothing else.
func TestCompactAllAndGC(t *testing.T) {
	u := newUpkeep(t, minikudu.Options{CompactionWorkers: -1})
	u.overlapping(0, 3)
	u.flushed(keys(5000, 100)...)
	u.flushed(keys(6000, 100)...)
	u.delete(predicate.And(predicate.Ge("key", 5000), predicate.Lt("key", 5100)))
	res, err := u.tab.GC(ctx)
	fatal(t, err)
	if res.Inputs != 1 || res.Outputs != 0 || res.RowsDropped != 100 || u.rowsets() != 4 {
		t.Errorf("GC: %+v, %d rowsets", res, u.rowsets())
	}
	if res, err = u.tab.GC(ctx); err != nil || *res != (minikudu.CompactResult{}) {
		t.Errorf("second GC: %+v, %v", res, err)
	}
	u.upsert(1, 7)
	u.delete(predicate.Eq("key", 6000))
	if res, err = u.tab.CompactAll(ctx); err != nil || res.Inputs != 5 || res.RowsDropped != 1 {
		t.Errorf("CompactAll: %+v, %v", res, err)
	}
	st, err := u.tab.Stats(ctx)
	fatal(t, err)
	if m := u.db.Metrics(); st.Height > 1 || m.WasteBytes != 0 || u.tab.Rows() != 6+99+1 || m.MemoryBytes != 0 {
		t.Errorf("height %v, %d rows, %+v", st.Height, u.tab.Rows(), m)
	}
	if all := u.compactions(); len(all) != 2 || all[0].Kind != compaction.DropRowSet || all[0].Reason != "asked" || all[1].Reason != "asked" {
		t.Errorf("%+v", all)
	}
	fatal(t, u.db.DropTable(ctx, "t"))
	if _, err := u.tab.GC(ctx); !errors.Is(err, minikudu.ErrNotFound) {
		t.Errorf("GC of a dropped table: %v", err)
	}
}

// FlushDeltas leaves rows where they are.
func TestFlushDeltas(t *testing.T) {
	u := newUpkeep(t, minikudu.Options{})
	u.flushed(1, 2)
	u.upsert(1, 3)
	fatal(t, u.tab.FlushDeltas(ctx))
	st, err := u.tab.Stats(ctx)
	fatal(t, err)
	if m := u.db.Metrics(); m.DeltaFlushes != 1 || m.Flushes != 1 || st.MemoryRows != 1 {
		t.Errorf("%+v, %d rows in memory", m, st.MemoryRows)
	}
}

// While rows are committed, encoding leaves a processor to that.
func TestEncodingLeavesAProcessorToCommits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	r := newRig(t, minikudu.Options{}, kvSpec())
	if n := r.db.Workers(); n != 4 {
		t.Fatalf("%d before any commit", n)
	}
	k := 0
	waitFor(t, "three", func() bool { k++; r.insert([]any{k, k}); return r.db.Workers() == 3 })
	waitFor(t, "four", func() bool { return r.db.Workers() == 4 })
}
