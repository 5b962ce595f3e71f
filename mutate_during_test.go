package minikudu_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// during is a run in which something happens between the calls of a flush or compaction.
type during struct {
	story *story
	mem   *vfs.Mem
	fs    *errorfs.FS
	db    *minikudu.DB
	tab   *minikudu.Table
	clone func(*vfs.Mem, uint64) *vfs.Mem
	call  errorfs.Call   // at which something happens
	after []func() error // to be done once the job has ended
}

// options have room for everything, so that nothing runs in the background.
func (d *during) options() *minikudu.Options {
	return &minikudu.Options{FS: d.fs, Now: d.story.time, CompactionWorkers: -1}
}

func newDuring(setup func(d *during) error) (*during, error) {
	d := &during{story: newStory(), mem: vfs.NewMem()}
	d.fs = errorfs.Wrap(d.mem)
	var err error
	if d.db, err = minikudu.Open("store", d.options()); err != nil {
		return nil, err
	}
	if err = d.story.create(d.db, "a", "b"); err != nil {
		return nil, err
	}
	if d.tab, err = d.db.Table("a"); err != nil {
		return nil, err
	}
	return d, setup(d)
}

// commit commits each of the operations on its own.
func (d *during) commit(ops ...mop) error {
	for _, o := range ops {
		if err := d.story.commit(d.db, o); err != nil {
			return err
		}
	}
	return nil
}

func (d *during) flush() error { return d.tab.Flush(ctx) }

// flushBeside begins a flush and waits until rows in memory are flushed. The changes of the
// inputs of a compaction in progress follow it: join waits for them.
func (d *during) flushBeside() error {
	before := d.db.Metrics().Flushes
	done := make(chan error, 1)
	d.after = append(d.after, func() error { return <-done })
	go func() { done <- d.tab.Flush(ctx) }()
	for d.db.Metrics().Flushes == before {
		select {
		case err := <-done:
			return fmt.Errorf("a flush of no rows: %w", err)
		default:
			time.Sleep(10 * time.Microsecond)
		}
	}
	return nil
}

// join does what was left until the job has ended.
func (d *during) join() (err error) {
	for _, f := range d.after {
		err = errors.Join(err, f())
	}
	d.after = nil
	return err
}

func (d *during) compact() error {
	_, err := d.tab.Compact(ctx)
	return err
}

func (d *during) minor() error { return d.tab.CompactMinor(ctx) }

func (d *during) fold() error { return d.tab.CompactDeltas(ctx) }

func (d *during) foldOne() error { return d.tab.CompactDeltas(ctx, "n") }

func (d *during) check() error {
	_, err := d.story.span(true).check(d.db)
	return err
}

// run calls job; act is called at the calls of files that job makes, with their numbers.
// From the first action on that changed something, every call is an instant of a crash.
func (d *during) run(job func(*during) error, act func(d *during, call int) (acted bool, err error)) (calls int, all []instant, err error) {
	in := &instants{mem: d.mem, story: d.story, acked: true, clone: d.clone}
	var begun atomic.Bool
	var busy sync.Mutex // files are also made and removed in the background
	var over bool
	var failure error
	d.fs.SetHook(func(c errorfs.Call) error {
		if begun.Load() {
			_ = in.hook(c)
		}
		if c.Kind == vfs.KindLog || !c.Op.Writes() || !busy.TryLock() {
			return nil
		}
		defer busy.Unlock()
		if over {
			return nil
		}
		calls++
		d.call = c
		acted, err := act(d, calls)
		if err == nil && acted {
			err = d.check()
		}
		if acted {
			begun.Store(true)
		}
		if err != nil && failure == nil {
			failure = fmt.Errorf("at %s: %w", c, err)
		}
		return nil
	})
	err = job(d)
	d.fs.SetHook(nil)
	busy.Lock()
	over = true
	busy.Unlock()
	if err == nil {
		err = failure
	}
	if jerr := d.join(); err == nil {
		err = jerr
	}
	if err == nil {
		err = d.check()
	}
	in.take("the end")
	return calls, in.all, err
}

// finish checks that what was changed can be flushed, and that the store goes on after
// a kill.
func (d *during) finish() error {
	if err := d.flush(); err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	if err := checkVerify(d.db); err != nil {
		return err
	}
	m := instant{"", d.mem.KillClone(), d.story.span(true)}
	if err := d.db.Close(); err != nil {
		return err
	}
	return m.recover(&minikudu.Options{})
}

// inMemory leaves rows in memory, some of them changed there.
func inMemory(d *during) error {
	for k := range 30 {
		if err := d.commit(ins("a", k, int64(k))); err != nil {
			return err
		}
	}
	return d.commit(upd("a", 0, 100), del("a", 1), del("a", 2), ins("a", 2, 200))
}

// onDisk leaves two rowsets that overlap and hold two lives of some keys, with changes
// of both in memory.
func onDisk(d *during) error {
	for k := range 30 {
		if err := d.commit(ins("a", k, int64(k))); err != nil {
			return err
		}
	}
	if err := d.flush(); err != nil {
		return err
	}
	if err := d.commit(del("a", 2), del("a", 3), ins("a", 2, 200), ins("a", 31, 31), ins("a", 32, 32)); err != nil {
		return err
	}
	if err := d.flush(); err != nil {
		return err
	}
	return d.commit(upd("a", 0, 100), upd("a", 31, 100), del("a", 4), del("a", 32))
}

// withFiles is onDisk with the changes in files.
func withFiles(d *during) error {
	if err := onDisk(d); err != nil {
		return err
	}
	return d.flush()
}

// withManyFiles is withFiles with several files of changes each, and changes in memory.
func withManyFiles(d *during) error {
	if err := withFiles(d); err != nil {
		return err
	}
	for i := range 2 {
		if err := d.commit(upd("a", 0, int64(300+i)), upd("a", 31, int64(400+i)), del("a", 10+i), upd("a", 20+i, 500)); err != nil {
			return err
		}
		if err := d.flush(); err != nil {
			return err
		}
	}
	return d.commit(upd("a", 0, 600), del("a", 20))
}

// withHistory is withFiles with some of the changes folded into the base data, and later
// ones of both lives in files and in memory.
func withHistory(d *during) error {
	if err := withFiles(d); err != nil {
		return err
	}
	if err := d.fold(); err != nil {
		return err
	}
	if err := d.commit(upd("a", 0, 300), upd("a", 31, 300), del("a", 7), upd("a", 2, 301), ins("a", 4, 302)); err != nil {
		return err
	}
	if err := d.flush(); err != nil {
		return err
	}
	return d.commit(upd("a", 31, 303), del("a", 9), del("a", 2))
}

// withExpired is withHistory after so long that the history has expired, except for what
// a pin needs.
func withExpired(d *during) error {
	if err := withHistory(d); err != nil {
		return err
	}
	if err := d.story.pin(d.db, "old"); err != nil {
		return err
	}
	if err := d.commit(upd("a", 31, 306), del("a", 10), upd("a", 10, 307)); err != nil {
		return err
	}
	d.story.pass(time.Hour)
	return d.commit(upd("a", 31, 304), ins("a", 9, 305))
}

var duringCases = []struct {
	name  string
	setup func(*during) error
	job   func(*during) error
}{
	{"flush of rows", inMemory, (*during).flush},
	{"flush of changes", onDisk, (*during).flush},
	{"compaction of memory", inMemory, (*during).compact},
	{"compaction", onDisk, (*during).compact},
	{"compaction of files of changes", withFiles, (*during).compact},
	{"minor compaction", withManyFiles, (*during).minor},
	{"fold", withFiles, (*during).fold},
	{"fold of one column, later changes in memory", withHistory, (*during).foldOne},
	{"compaction of history", withHistory, (*during).compact},
	{"fold after history expired", withExpired, (*during).fold},
	{"compaction after history expired", withExpired, (*during).compact},
}

// commits makes an act of single commits.
func commits(ops ...mop) func(*during) error {
	return func(d *during) error { return d.commit(ops...) }
}

// acts are what happens during a flush or compaction.
var acts = map[string]func(*during) error{
	"update":              commits(upd("a", 31, 1001), upd("a", 5, 1001), upd("a", 31, 1002), upd("a", 0, 1003)),
	"delete":              commits(del("a", 31), del("a", 5), del("a", 0)),
	"delete and insert":   commits(del("a", 31), del("a", 5), ins("a", 5, 1004), ins("a", 31, 1005), upd("a", 5, 1006)),
	"life and death":      commits(del("a", 31), del("a", 6), ins("a", 6, 1007), upd("a", 6, 1008), del("a", 6)),
	"all of it, new keys": commits(upd("a", 7, 1009), del("a", 8), ins("a", 35, 1010), upd("a", 35, 1011), ins("a", 36, 1012), del("a", 36)),
	"reads of the past":   (*during).readPast,
	"pins":                (*during).pinAndExpire,
}

// readPast changes rows between two batches of a scan of the past; the scan goes on when
// the job has ended, its history having expired meanwhile but for the scan.
func (d *during) readPast() error {
	want := d.story.last()
	held, err := d.db.Snapshot()
	if err != nil {
		return err
	}
	at := held.Timestamp()
	d.story.hold(at)
	next, stop := iter.Pull2(d.tab.Scan(ctx, minikudu.Query{AsOf: at, Order: minikudu.KeyOrder, BatchRows: 7}))
	got := map[int]cells{}
	read := func() (bool, error) {
		b, err, more := next()
		if err != nil || !more {
			return false, err
		}
		for i := range b.Len() {
			k, row := rowCells(b, i)
			got[k] = row
		}
		return true, nil
	}
	d.after = append(d.after, func() error {
		defer held.Close()
		defer d.story.release(at)
		defer stop()
		for {
			if more, err := read(); err != nil {
				return fmt.Errorf("the scan of the past: %w", err)
			} else if !more {
				break
			}
		}
		if diff := difference(image{"a": got}, want.rows); diff != "" {
			return fmt.Errorf("the scan of the past: %s", diff)
		}
		return nil
	})
	if _, err := read(); err != nil {
		return err
	}
	d.story.pass(time.Hour)
	return d.commit(upd("a", 0, 1013), del("a", 5), ins("a", 5, 1014), del("a", 31))
}

// pinAndExpire pins the present unless the manifest is being written, which a pin waits for,
// and lets all other history expire.
func (d *during) pinAndExpire() error {
	if err := d.commit(upd("a", 0, 1015), del("a", 5)); err != nil {
		return err
	}
	if d.call.Kind != vfs.KindManifest && d.call.Kind != vfs.KindDir {
		if err := d.story.pin(d.db, "new"); err != nil {
			return err
		}
	}
	d.story.pass(time.Hour)
	return d.commit(ins("a", 5, 1016), upd("a", 0, 1017), del("a", 31))
}

// Rows are changed at one call of a flush or compaction, whichever it is. Nothing is
// lost: not in the running store, not by a crash at any later call.
func TestR5R7Item71ChangesAtACallOfFlushAndCompaction(t *testing.T) {
	for _, c := range duringCases {
		t.Run(c.name, func(t *testing.T) {
			crashes, step := 0, 9
			switch {
			case full():
				step = 1
			case testing.Short():
				step = 25
			}
			for name, act := range acts {
				for k, calls := 1+rand.IntN(step), 100; k <= calls; k += step {
					d, err := newDuring(c.setup)
					fatal(t, err)
					d.clone = func(m *vfs.Mem, i uint64) *vfs.Mem { return powerCut(m, i%3, i) }
					var all []instant
					calls, all, err = d.run(c.job, func(d *during, call int) (bool, error) {
						if call != k {
							return false, nil
						}
						return true, act(d)
					})
					if err == nil {
						err = d.finish()
					}
					if err != nil {
						t.Fatalf("%s at call %d of %d: %v", name, k, calls, err)
					}
					recoverEach(t, all, 9, &minikudu.Options{})
					crashes += len(all)
				}
			}
			t.Logf("%d instants of a crash", crashes)
		})
	}
}

// At every call of a flush or compaction a row is deleted, one is updated and one
// inserted.
func TestItem71C41ChangesAtEveryCallOfFlushAndCompaction(t *testing.T) {
	for _, c := range duringCases {
		t.Run(c.name, func(t *testing.T) {
			d, err := newDuring(func(d *during) error {
				for k := 100; k < 400; k++ {
					if err := d.commit(ins("a", k, 1)); err != nil {
						return err
					}
				}
				return c.setup(d)
			})
			fatal(t, err)
			d.clone = func(m *vfs.Mem, i uint64) *vfs.Mem { return powerCut(m, i%2, i) }
			calls, all, err := d.run(c.job, func(d *during, call int) (bool, error) {
				return true, d.commit(del("a", 100+call), upd("a", 200+call, int64(1000+call)), ins("a", 400+call, int64(call)))
			})
			fatal(t, err)
			fatal(t, d.finish())
			recoverEach(t, all, 11, &minikudu.Options{})
			t.Logf("%d calls, %d instants of a crash", calls, len(all))
		})
	}
}
