package minikudu_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// final reports whether a failure of the call ends writing until the store is opened
// again: what is on disk is then unknown.
func final(c errorfs.Call) bool {
	switch c.Kind {
	case vfs.KindLog, vfs.KindManifest:
		return c.Op == errorfs.OpWrite || c.Op == errorfs.OpSync || c.Op == errorfs.OpClose
	}
	return false
}

// faultRun plays the script with one fault and checks what it does.
type faultRun struct {
	mem     *vfs.Mem
	fs      *errorfs.FS
	journal *journal
	err     error // the fault
	hit     atomic.Pointer[errorfs.Call]

	powerCut bool // at the end
}

// newFaultRun returns a run in which the kth call that matches fails, once.
func newFaultRun(hook func(error, int64, int64, errorfs.Match) errorfs.Hook, err error, k int64, m errorfs.Match) *faultRun {
	r := &faultRun{mem: vfs.NewMem(), journal: newJournal(), err: err}
	r.fs = errorfs.Wrap(r.mem)
	inner := hook(err, k, k, m)
	r.fs.SetHook(func(c errorfs.Call) error {
		e := inner(c)
		if e != nil {
			r.hit.Store(&c)
		}
		return e
	})
	return r
}

// play runs all sessions, each opened again after a failure that ends writing.
func (r *faultRun) play() error {
	for i, steps := range script(r.journal, 8) {
		for len(steps) > 0 {
			rest, err := r.session(steps)
			if err != nil {
				return fmt.Errorf("session %d: %w", i, err)
			}
			steps = rest
		}
	}
	return r.recovered(r.mem)
}

func (r *faultRun) open() (*minikudu.DB, error) {
	o := tiny(r.fs)
	db, err := minikudu.Open("store", o)
	if err != nil && errors.Is(err, r.err) {
		if n := r.mem.OpenFiles(); n > 0 {
			return nil, fmt.Errorf("a failed open left %d files open: %w", n, err)
		}
		return minikudu.Open("store", o)
	}
	return db, err
}

// session runs steps until writing ends, and returns those still to be done.
func (r *faultRun) session(steps []func(*minikudu.DB) error) ([]func(*minikudu.DB) error, error) {
	db, err := r.open()
	if err != nil {
		return nil, err
	}
	for len(steps) > 0 {
		err := steps[0](db)
		if err == nil {
			steps = steps[1:]
			continue
		}
		if !errors.Is(err, r.err) {
			return nil, errors.Join(fmt.Errorf("not the fault: %w", err), db.Close())
		}
		if cerr := r.journal.check(db, whole); cerr != nil {
			return nil, errors.Join(fmt.Errorf("reads after %w: %w", err, cerr), db.Close())
		}
		if b, acked := r.journal.lastTried(); b >= 0 && !acked && !final(*r.hit.Load()) && r.journal.there(db, b) {
			return nil, errors.Join(fmt.Errorf("batch %d was refused with %w and is there", b, err), db.Close())
		}
		if again := steps[0](db); again == nil || errors.Is(again, minikudu.ErrAlreadyPresent) {
			if again != nil {
				return nil, errors.Join(fmt.Errorf("refused with %w, but done", err), db.Close())
			}
			steps = steps[1:]
			continue
		} else if !final(*r.hit.Load()) || !errors.Is(again, r.err) {
			return nil, errors.Join(fmt.Errorf("after %w writes did not resume: %w", err, again), db.Close())
		}
		if err := r.refuses(db); err != nil {
			return nil, errors.Join(err, db.Close())
		}
		break
	}
	begin := time.Now()
	if err := db.Close(); err != nil && !errors.Is(err, r.err) {
		return nil, fmt.Errorf("closing: %w", err)
	}
	if d := time.Since(begin); d > 5*time.Second {
		return nil, fmt.Errorf("closing took %v", d)
	}
	if n := r.mem.OpenFiles(); n > 0 {
		return nil, fmt.Errorf("%d files open after closing", n)
	}
	// A table whose creation failed late may be there now.
	for name, s := range r.journal.tables {
		if s == creating || s == dropping {
			if err := r.settle(name); err != nil {
				return nil, err
			}
		}
	}
	return steps, nil
}

// refuses requires that a store that failed takes no writes of any kind.
func (r *faultRun) refuses(db *minikudu.DB) error {
	writes := map[string]func() error{
		"create": func() error { _, err := db.CreateTable(ctx, "more", tagSpec()); return err },
		"drop":   func() error { return db.DropTable(ctx, "a") },
	}
	if tab, err := db.Table("a"); err == nil {
		writes["flush"] = func() error { return tab.Flush(ctx) }
		writes["commit"] = func() error {
			var wb minikudu.WriteBatch
			addTagged(&wb, tab, 5000, 1)
			_, err := db.Commit(ctx, &wb, nil)
			return err
		}
	}
	for what, write := range writes {
		if err := write(); !errors.Is(err, r.err) {
			return fmt.Errorf("%s in a store that failed: %w", what, err)
		}
	}
	return nil
}

// settle finds out what became of a change of the catalog that failed.
func (r *faultRun) settle(name string) error {
	db, err := minikudu.Open("store", tiny(r.mem))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Table(name)
	switch s := r.journal.tables[name]; {
	case err == nil && s == creating:
		return db.DropTable(ctx, name)
	case err != nil && s == dropping:
		return r.journal.create(db, name)
	}
	return nil
}

// recovered opens what the run left, as it is or after a power cut.
func (r *faultRun) recovered(mem *vfs.Mem) error {
	m := moment{fs: mem.KillClone(), journal: r.journal}
	if r.powerCut {
		m.fs = mem.CrashClone(vfs.CrashOptions{})
	}
	return m.recover(durable)
}

func shortHook(err error, n, _ int64, m errorfs.Match) errorfs.Hook { return errorfs.Short(err, n, m) }

// Every call fails once, in every way that calls of its kind fail. The caller gets the
// fault; what was there before is intact; writing goes on, at once or after an open.
func TestC80FailAtEveryCall(t *testing.T) {
	ops := errorfs.Ops
	for _, c := range []struct {
		name  string
		err   error
		hook  func(error, int64, int64, errorfs.Match) errorfs.Hook
		match errorfs.Match
	}{
		{"EIO", syscall.EIO, errorfs.Fail, errorfs.Any},
		{"ENOSPC", syscall.ENOSPC, errorfs.Fail, ops(errorfs.OpCreate, errorfs.OpWrite, errorfs.OpPreallocate, errorfs.OpMkdirAll)},
		{"short write", syscall.ENOSPC, shortHook, errorfs.Any},
		{"EMFILE", syscall.EMFILE, errorfs.Fail, ops(errorfs.OpCreate, errorfs.OpOpen, errorfs.OpOpenWrite, errorfs.OpList)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			step := int64(3)
			switch {
			case full():
				step = 1
			case testing.Short():
				step = 21
			}
			tried := 0
			for k := 1 + testkit.Rand(t).Int64N(step); ; k += step {
				r := newFaultRun(c.hook, c.err, k, c.match)
				r.powerCut = k/step%2 == 0
				err := r.play()
				hit := r.hit.Load()
				if err != nil {
					t.Fatalf("call %d, %v: %v", k, hit, err)
				}
				if hit == nil {
					break
				}
				tried++
			}
			t.Logf("%d calls failed", tried)
		})
	}
}

// Under Sync every group of commits is synced once, under NoSync the log never is.
func TestOneSyncForEachGroup(t *testing.T) {
	for _, d := range []minikudu.Durability{minikudu.Sync, minikudu.NoSync} {
		t.Run(d.String(), func(t *testing.T) {
			f := errorfs.Wrap(vfs.NewMem())
			o := tiny(f)
			o.FlushBytes, o.LogBytes, o.Durability = 1<<20, 64<<20, d
			db := mustOpen(t, "store", o)
			defer mustClose(t, db)
			j := newJournal()
			fatal(t, j.create(db, "a"))
			fatal(t, j.commit(db, 1000, map[string]int{"a": 1})) // begins the log
			synced := int64(1)
			if d == minikudu.NoSync {
				synced = 0
			}
			waitForSegment(t, f, synced)
			f.ResetCounts()
			for b := range int64(10) {
				fatal(t, j.commit(db, b, map[string]int{"a": 1}))
			}
			if got := f.Count(errorfs.OpSync, vfs.KindLog).Calls; got != 10*synced {
				t.Errorf("one writer: %d syncs for 10 commits, want %d", got, 10*synced)
			}
			f.ResetCounts()
			before := db.Metrics()
			f.SetHook(errorfs.Slow(errorfs.Disk{SyncLatency: 2 * time.Millisecond}))
			var wg sync.WaitGroup
			for w := range int64(16) {
				wg.Go(func() {
					for i := range int64(10) {
						if err := j.commit(db, 100+w*10+i, map[string]int{"a": 1}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			f.SetHook(nil)
			got, groups := f.Count(errorfs.OpSync, vfs.KindLog).Calls, db.Metrics().LogGroups-before.LogGroups
			switch {
			case d == minikudu.NoSync && got != 0:
				t.Errorf("%d syncs", got)
			case d == minikudu.Sync && (got > groups || got > 80):
				t.Errorf("16 writers: %d syncs, %d groups for 160 commits", got, groups)
			}
			t.Logf("160 commits of 16 writers: %d groups, %d syncs", groups, got)
		})
	}
}

// waitForSegment waits until the log has made its next segment ahead, after the given
// number of commits: a sync for each of two segments and for each commit have begun.
func waitForSegment(t *testing.T, f *errorfs.FS, commits int64) {
	t.Helper()
	for i := 0; f.Count(errorfs.OpSync, vfs.KindLog).Calls < 2+commits; i++ {
		if i == 1000 {
			t.Fatal("no segment is made ahead")
		}
		time.Sleep(time.Millisecond)
	}
}

// A flush that cannot make its file is tried again with longer and longer pauses; each
// try is one event, Close does not wait for the next, and when the fault is gone the
// flush succeeds.
func TestC81FailingFlushBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := errorfs.Wrap(vfs.NewMem())
		var events, flushed atomic.Int64
		o := tiny(f)
		o.LogBytes = 1 << 30
		o.Events = &minikudu.EventListener{
			BackgroundError: func(error) { events.Add(1) },
			FlushEnd: func(i minikudu.FlushInfo) {
				if i.Err == nil && i.Rows > 0 {
					flushed.Add(1)
				}
			}}
		db := mustOpen(t, "store", o)
		j := newJournal()
		fatal(t, j.create(db, "a"))
		f.SetHook(errorfs.Fail(syscall.ENOSPC, 1, 0, errorfs.And(errorfs.Ops(errorfs.OpCreate), errorfs.Kinds(vfs.KindRowSet))))
		b := int64(0)
		for ; events.Load() == 0; b++ {
			if b == 1000 {
				t.Fatal("no flush was tried")
			}
			fatal(t, j.commit(db, b, map[string]int{"a": 100}))
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		tries := f.Count(errorfs.OpCreate, vfs.KindRowSet).Calls
		if tries < 5 || tries > 20 || tries != events.Load() {
			t.Errorf("%d tries in a minute, %d events", tries, events.Load())
		}
		fatal(t, j.commit(db, b, map[string]int{"a": 1})) // writing goes on
		f.SetHook(nil)
		time.Sleep(15 * time.Second)
		if flushed.Load() == 0 {
			t.Error("no flush after the fault was gone")
		}
		fatal(t, j.check(db, durable))

		f.SetHook(errorfs.Fail(syscall.ENOSPC, 1, 0, errorfs.And(errorfs.Ops(errorfs.OpCreate), errorfs.Kinds(vfs.KindRowSet))))
		for events.Store(0); events.Load() < 1; b++ {
			fatal(t, j.commit(db, b+1, map[string]int{"a": 100}))
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		begin := time.Now()
		mustClose(t, db)
		if d := time.Since(begin); d > time.Second {
			t.Errorf("close took %v", d)
		}
	})
}

// On a full disk tables can be dropped, the error of a commit says what is wrong, and
// writing goes on once there is space.
func TestTrap7C80FullDisk(t *testing.T) {
	mem := vfs.NewMem()
	j := newJournal()
	db := mustOpen(t, "store", tiny(mem))
	defer func() { mustClose(t, db) }()
	fatal(t, j.create(db, "a"))
	fatal(t, j.create(db, "c"))
	fatal(t, j.commit(db, 0, map[string]int{"c": 500}))
	tab, err := db.Table("c")
	fatal(t, err)
	fatal(t, tab.Flush(ctx))
	mem.SetCapacity(1)
	b := int64(1)
	for ; ; b++ {
		if err = j.commit(db, b, map[string]int{"a": 50}); err != nil {
			break
		}
		if b > 10000 {
			t.Fatal("commits go on on a full disk")
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a commit on a full disk: %v", err)
	}
	fatal(t, j.check(db, durable))
	if err := j.drop(db, "c"); err != nil {
		t.Errorf("a drop on a full disk: %v", err)
	}
	mem.SetCapacity(0)
	fatal(t, j.commit(db, b, map[string]int{"a": 50}))
	fatal(t, checkGoesOn(db, 20000))
	delete(j.tables, "a") // checkGoesOn wrote to it
}

// A start without space is an ordinary error; nothing is broken by it.
func TestC86StartOnAFullDisk(t *testing.T) {
	for _, size := range []int64{1, 4 << 10} {
		mem := vfs.NewMemOptions(vfs.MemOptions{Capacity: size})
		if _, err := minikudu.Open("store", tiny(mem)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%d bytes free: %v", size, err)
		}
		mem.SetCapacity(0)
		db := mustOpen(t, "store", tiny(mem))
		fatal(t, checkGoesOn(db, 1))
		mustClose(t, db)
	}
}

// A directory that cannot be synced is an error that names it, not a panic.
func TestC84DirectorySyncFails(t *testing.T) {
	for _, err := range []error{syscall.EINVAL, syscall.EIO} {
		f := errorfs.Wrap(vfs.NewMem())
		f.SetHook(errorfs.Fail(err, 1, 0, errorfs.Ops(errorfs.OpSyncDir)))
		_, got := minikudu.Open("store", tiny(f))
		if !errors.Is(got, err) || !strings.Contains(got.Error(), "store") {
			t.Errorf("%v: %v", err, got)
		}
		f.SetHook(nil)
		db := mustOpen(t, "store", tiny(f))
		fatal(t, checkGoesOn(db, 1))
		mustClose(t, db)
	}
}

// After a failed sync of the log nothing is written until the store is opened again,
// even if later syncs succeed; what was acknowledged is there.
func TestTrap5FailedLogSync(t *testing.T) {
	f := errorfs.Wrap(vfs.NewMem())
	db := mustOpen(t, "store", tiny(f))
	j := newJournal()
	fatal(t, j.create(db, "a"))
	fatal(t, j.commit(db, 0, map[string]int{"a": 5}))
	waitForSegment(t, f, 1)
	f.SetHook(errorfs.Fail(syscall.EIO, 1, 1, errorfs.And(errorfs.Ops(errorfs.OpSync), errorfs.Kinds(vfs.KindLog))))
	if err := j.commit(db, 1, map[string]int{"a": 5}); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	for range 3 {
		if err := j.commit(db, 2, map[string]int{"a": 5}); !errors.Is(err, syscall.EIO) {
			t.Fatalf("a write after a failed sync: %v", err)
		}
	}
	tab, err := db.Table("a")
	fatal(t, err)
	if err := tab.Flush(ctx); !errors.Is(err, syscall.EIO) {
		t.Fatalf("a flush after a failed sync: %v", err)
	}
	if _, err := db.CreateTable(ctx, "b", tagSpec()); !errors.Is(err, syscall.EIO) {
		t.Fatalf("a new table after a failed sync: %v", err)
	}
	fatal(t, j.check(db, durable)) // reads go on
	if err := db.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("close: %v", err)
	}
	db = mustOpen(t, "store", tiny(f))
	defer mustClose(t, db)
	fatal(t, j.check(db, durable))
	fatal(t, checkGoesOn(db, 9))
}

// A flush whose publication is refused leaves no file behind, however often it is tried.
func TestC80RefusedFlushLeavesNoFile(t *testing.T) {
	mem := vfs.NewMem()
	f := errorfs.Wrap(mem)
	db := mustOpen(t, "store", tiny(f))
	defer func() { mustClose(t, db) }()
	j := newJournal()
	fatal(t, j.create(db, "a"))
	fatal(t, j.commit(db, 0, map[string]int{"a": 5}))
	tab, err := db.Table("a")
	fatal(t, err)
	var writes atomic.Int64
	f.SetHook(func(c errorfs.Call) error { // the edit fails, taking it back succeeds
		if c.Op == errorfs.OpWrite && c.Kind == vfs.KindManifest && writes.Add(1)%2 == 1 {
			return syscall.ENOSPC
		}
		return nil
	})
	for range 5 {
		if err := tab.Flush(ctx); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("flush: %v", err)
		}
	}
	f.SetHook(nil)
	if names, err := mem.List("store/data"); err != nil || len(names) > 0 {
		t.Errorf("files left: %v, %v", names, err)
	}
	fatal(t, checkGoesOn(db, 1))
}

// When the manifest has failed, a commit could go to a table whose drop is on disk: so
// there are none, and nothing is flushed in vain.
func TestManifestFailureEndsWriting(t *testing.T) {
	mem := vfs.NewMem()
	f := errorfs.Wrap(mem)
	db := mustOpen(t, "store", tiny(f))
	j := newJournal()
	fatal(t, j.create(db, "a"))
	fatal(t, j.create(db, "c"))
	f.SetHook(errorfs.Fail(syscall.EIO, 1, 0, errorfs.And(errorfs.Ops(errorfs.OpSync), errorfs.Kinds(vfs.KindManifest))))
	if err := j.drop(db, "c"); !errors.Is(err, syscall.EIO) {
		t.Fatalf("drop: %v", err)
	}
	f.SetHook(nil)
	for _, name := range []string{"a", "c"} {
		if err := j.commit(db, 0, map[string]int{name: 5}); !errors.Is(err, syscall.EIO) {
			t.Errorf("a commit to %s after the manifest failed: %v", name, err)
		}
	}
	if err := db.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("close: %v", err)
	}
	db = mustOpen(t, "store", tiny(f))
	defer mustClose(t, db)
	fatal(t, j.check(db, durable))
}
