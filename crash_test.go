package minikudu_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// script is everything that writes, as one writer does it in four sessions: create,
// commit, flush, roll and trim of the log, drop, close, reopen.
func script(j *journal, batches int) [][]func(*minikudu.DB) error {
	b := int64(0)
	commit := func(n int) func(*minikudu.DB) error {
		done := 0
		return func(db *minikudu.DB) error {
			for ; done < n; done++ {
				if err := j.commit(db, b, tagRows(b)); err != nil {
					return err
				}
				b++
			}
			return nil
		}
	}
	commitC := func(db *minikudu.DB) error {
		if err := j.commit(db, b, map[string]int{"c": 30}); err != nil {
			return err
		}
		b++
		return nil
	}
	create := func(name string) func(*minikudu.DB) error {
		return func(db *minikudu.DB) error { return j.create(db, name) }
	}
	flush := func(name string) func(*minikudu.DB) error {
		return func(db *minikudu.DB) error {
			tab, err := db.Table(name)
			if err != nil {
				return err
			}
			return tab.Flush(ctx)
		}
	}
	dropC := func(db *minikudu.DB) error { return j.drop(db, "c") }
	return [][]func(*minikudu.DB) error{
		{create("a"), create("b"), commit(6), flush("a"), commit(4), create("c"), commitC, flush("c"), commitC, flush("b"),
			commit(batches), dropC, flush("a"), flush("b"), commit(3)},
		{flush("b"), commit(3), flush("a")}, // begins with a flush before anything is logged
		{flush("b"), flush("a")},            // nothing is logged at all
		nil,
	}
}

// play runs the script.
func play(fs vfs.FS, j *journal, o *minikudu.Options) error {
	for _, steps := range script(j, 90) {
		if err := session(fs, o, steps); err != nil {
			return err
		}
	}
	return nil
}

// session opens the store, runs the steps until one fails, and closes it.
func session(fs vfs.FS, o *minikudu.Options, steps []func(*minikudu.DB) error) error {
	opts := *o
	opts.FS = fs
	db, err := minikudu.Open("store", &opts)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if err := step(db); err != nil {
			db.Close()
			return err
		}
	}
	return db.Close()
}

// moment is the store as a crash at some call would leave it.
type moment struct {
	call    errorfs.Call
	fs      *vfs.Mem
	journal *journal
}

// moments plays the script and takes a clone at every call that changes something.
func moments(t testing.TB, o *minikudu.Options, clone func(*vfs.Mem, errorfs.Call) *vfs.Mem) []moment {
	t.Helper()
	mem, j := vfs.NewMem(), newJournal()
	wrapped := errorfs.Wrap(mem)
	var out []moment
	stop := watch(wrapped, func(c errorfs.Call) { out = append(out, moment{c, clone(mem, c), j.clone()}) })
	fatal(t, play(wrapped, j, o))
	stop()
	out = append(out, moment{errorfs.Call{Name: "the end"}, clone(mem, errorfs.Call{}), j.clone()})
	return out
}

// recover opens the clone, compares, goes on with it, and opens it once more.
func (m *moment) recover(p promise) error {
	o := tiny(m.fs)
	db, err := minikudu.Open("store", o)
	if err != nil {
		return err
	}
	err = m.journal.check(db, p)
	if err == nil {
		err = checkGoesOn(db, 1000) // verifies as well
	}
	if cerr := db.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if db, err = minikudu.Open("store", o); err != nil {
		return fmt.Errorf("second open: %w", err)
	}
	defer db.Close()
	return checkGet(db, "a", 1000, true)
}

// A power cut at every call that changes something on disk, with nothing or a random
// part of what was not synced surviving.
func TestItem118C71PowerCutAtEveryCall(t *testing.T) {
	for _, c := range []struct {
		name       string
		durability minikudu.Durability
		promise    promise
		seeds      []uint64
		step       int
	}{
		{"sync, all is lost", minikudu.Sync, durable, []uint64{0}, 1},
		{"sync, some survives", minikudu.Sync, durable, []uint64{1}, 3},
		{"nosync", minikudu.NoSync, prefix, []uint64{1}, 3},
		{"interval", minikudu.Interval, prefix, []uint64{0}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if full() {
				c.seeds = []uint64{0, 1, 2, 3, 4, 5, 6, 7}
			}
			o := tiny(nil)
			o.Durability = c.durability
			for _, seed := range c.seeds {
				all := moments(t, o, func(m *vfs.Mem, call errorfs.Call) *vfs.Mem { return powerCut(m, seed, uint64(call.N)) })
				if c.durability == minikudu.Sync && len(all) < 500 {
					t.Errorf("%d calls, want 500", len(all))
				}
				recoverAll(t, all, c.promise, c.step)
				t.Logf("seed %d: power cut at %d calls", seed, len(all))
			}
		})
	}
}

// recoverAll recovers every stepth moment, fewer in a short run.
func recoverAll(t *testing.T, all []moment, p promise, step int) {
	t.Helper()
	switch {
	case full():
		step = 1
	case testing.Short():
		step *= 10
	}
	for i := testkit.Rand(t).IntN(step); i < len(all); i += step {
		if err := all[i].recover(p); err != nil {
			t.Fatalf("moment %d of %d, before %s: %v", i, len(all), all[i].call, err)
		}
		all[i].fs = nil // give the memory back
	}
}

// powerCut is what a power cut leaves; seed 0 loses everything that was not synced.
func powerCut(m *vfs.Mem, seed, k uint64) *vfs.Mem {
	o := vfs.CrashOptions{}
	if seed > 0 {
		o.Rand = rand.New(rand.NewPCG(seed, k))
	}
	return m.CrashClone(o)
}

// killed returns a store whose process was killed: its log was written but not synced,
// and part of what it holds was flushed before.
func killed(t testing.TB, j *journal) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	o := tiny(mem)
	o.FlushBytes, o.LogBytes, o.Durability = 1<<20, 1<<20, minikudu.NoSync
	db, err := minikudu.Open("store", o)
	fatal(t, err)
	defer db.Close()
	fatal(t, j.create(db, "a"))
	fatal(t, j.create(db, "b"))
	for b := range int64(60) {
		fatal(t, j.commit(db, b, tagRows(b)))
		if b == 10 { // from here on, b has flushed past what a has
			tab, err := db.Table("b")
			fatal(t, err)
			fatal(t, tab.Flush(ctx))
		}
	}
	return mem.KillClone()
}

// A crash at every call of an open that replays, and flushes on the way because the
// log holds more than memory may.
func TestR10CrashDuringReplayAndItsFlushes(t *testing.T) {
	j := newJournal()
	base := killed(t, j)
	for _, c := range []struct {
		name    string
		promise promise
		clone   func(m *vfs.Mem, k uint64) *vfs.Mem
	}{
		{"killed again", durable, func(m *vfs.Mem, _ uint64) *vfs.Mem { return m.KillClone() }},
		{"power cut", prefix, func(m *vfs.Mem, k uint64) *vfs.Mem { return powerCut(m, 0, k) }},
		{"power cut, some survives", prefix, func(m *vfs.Mem, k uint64) *vfs.Mem { return powerCut(m, 1, k) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []moment
			mem := base.KillClone()
			wrapped := errorfs.Wrap(mem)
			stop := watch(wrapped, func(call errorfs.Call) { all = append(all, moment{call, c.clone(mem, uint64(call.N)), j}) })
			flushes := 0
			o := tiny(wrapped)
			o.FlushBytes = 40 << 10
			o.Events = &minikudu.EventListener{Replayed: func(i minikudu.ReplayInfo) { flushes = i.Flushes; stop() }}
			db := mustOpen(t, "store", o)
			fatal(t, j.check(db, durable))
			mustClose(t, db)
			if flushes < 2 || len(all) < 20 {
				t.Fatalf("%d flushes, %d calls: too few for this test", flushes, len(all))
			}
			recoverAll(t, all, c.promise, 1)
			t.Logf("%d flushes, crash at %d calls", flushes, len(all))
		})
	}
}

// Two writers and flushes in the background, and a power cut at every call.
func TestItem118PowerCutUnderConcurrentCommits(t *testing.T) {
	mem, j := vfs.NewMem(), newJournal()
	f := errorfs.Wrap(mem)
	o := tiny(f)
	o.FlushBytes = 32 << 10
	db := mustOpen(t, "store", o)
	fatal(t, j.create(db, "a"))
	fatal(t, j.create(db, "b"))
	var mu sync.Mutex
	var all []moment
	seen, every := 0, 3
	if full() {
		every = 1
	}
	f.SetHook(func(c errorfs.Call) error {
		if !c.Op.Writes() {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen%every == 0 {
			acked := j.clone().acked // before the clone: these must be there
			m := moment{c, powerCut(mem, uint64(seen/every%3), uint64(seen)), nil}
			m.journal = j.clone() // after it: nothing else can be there
			m.journal.acked = acked
			all = append(all, m)
		}
		return nil
	})
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for b := next.Add(1); b < 100; b = next.Add(1) {
				if err := j.commit(db, b, tagRows(b)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	flushes := db.Metrics().Flushes
	mustClose(t, db)
	if flushes == 0 || len(all) < 50/every {
		t.Fatalf("%d flushes, %d calls: too few for this test", flushes, len(all))
	}
	recoverAll(t, all, durable, 1)
	t.Logf("%d flushes, power cut at %d of %d calls", flushes, len(all), seen)
}
