package minikudu_test

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// ruleCase is a job of which every call is an instant of a crash. Once, at the first call
// that at accepts, act happens.
type ruleCase struct {
	setup func(d *during) error
	job   func(d *during) error
	at    func(c errorfs.Call) bool
	act   func(d *during) error
	step  int // recover one of so many crashes; 0 for 8
}

// clones are what a crash leaves.
var clones = []struct {
	name  string
	clone func(m *vfs.Mem, k uint64) *vfs.Mem
}{
	{"killed", func(m *vfs.Mem, _ uint64) *vfs.Mem { return m.KillClone() }},
	{"power cut, all is lost", func(m *vfs.Mem, k uint64) *vfs.Mem { return powerCut(m, 0, k) }},
	{"power cut, some survives", func(m *vfs.Mem, k uint64) *vfs.Mem { return powerCut(m, 1, k) }},
}

// check plays the case and recovers each of the crashes.
func (c ruleCase) check(t *testing.T) {
	t.Helper()
	for _, cl := range clones {
		d, err := newDuring(c.setup)
		fatal(t, err)
		acted := false
		var failure error
		in := &instants{mem: d.mem, story: d.story, acked: true, clone: cl.clone}
		var busy sync.Mutex // held over the act; guards acted and failure
		d.fs.SetHook(func(call errorfs.Call) error {
			_ = in.hook(call)
			if c.act == nil || call.Kind == vfs.KindLog || !call.Op.Writes() || !c.at(call) || !busy.TryLock() {
				return nil
			}
			defer busy.Unlock()
			if acted {
				return nil
			}
			acted = true
			d.call = call
			if failure = c.act(d); failure == nil {
				failure = d.check()
			}
			return nil
		})
		err = c.job(d)
		d.fs.SetHook(nil)
		busy.Lock() // the act may be at a call of the background
		err = errors.Join(err, failure)
		busy.Unlock()
		fatal(t, err)
		if c.act != nil && !acted {
			t.Fatalf("%s: nothing happened during the job", cl.name)
		}
		fatal(t, d.check())
		in.take("the end")
		fatal(t, d.finish())
		recoverEach(t, in.all, cmp.Or(c.step, 8), &minikudu.Options{})
		t.Logf("%s: %d instants of a crash", cl.name, len(in.all))
	}
}

// then returns a job of several steps.
func then(steps ...func(*during) error) func(*during) error {
	return func(d *during) error {
		for _, f := range steps {
			if err := f(d); err != nil {
				return err
			}
		}
		return nil
	}
}

// on returns a job on another table.
func on(name string, job func(*during) error) func(*during) error {
	return func(d *during) (err error) {
		before := d.tab
		defer func() { d.tab = before }()
		if d.tab, err = d.db.Table(name); err != nil {
			return err
		}
		return job(d)
	}
}

func calls(op errorfs.Op, kind vfs.Kind) func(errorfs.Call) bool {
	return func(c errorfs.Call) bool { return c.Op == op && c.Kind == kind }
}

// removal is the first call after a publication: a file of an input goes.
func removal(c errorfs.Call) bool {
	return c.Op == errorfs.OpRemove && strings.Contains(c.Name, "data")
}

// batch commits the operations as one batch.
func batch(ops ...mop) func(*during) error {
	return func(d *during) error { return d.story.commit(d.db, ops...) }
}

func TestR5InsertFlushedLaterUpdateInMemory(t *testing.T) {
	ruleCase{
		setup: then(commits(ins("a", 1, 1), ins("a", 2, 2), ins("a", 3, 3)), (*during).flush),
		job: then(commits(upd("a", 1, 10), del("a", 2), upd("a", 1, 11)), (*during).flush,
			commits(upd("a", 1, 12), ins("a", 2, 20), upd("a", 2, 21), del("a", 3))),
	}.check(t)
}

func TestR5R6UpdateDuringAFlush(t *testing.T) {
	act := commits(upd("a", 1, 100), del("a", 2), upd("a", 31, 101), ins("a", 33, 102))
	for name, setup := range map[string]func(*during) error{"of rows": inMemory, "of changes": onDisk} {
		for _, kind := range []vfs.Kind{vfs.KindRowSet, vfs.KindDelta, vfs.KindManifest} {
			if kind == vfs.KindRowSet && name == "of changes" || kind == vfs.KindDelta && name == "of rows" {
				continue
			}
			for _, op := range []errorfs.Op{errorfs.OpWrite, errorfs.OpSync} {
				t.Run(fmt.Sprint(name, ", ", op, " of kind ", kind), func(t *testing.T) {
					ruleCase{setup: setup, job: (*during).flush, at: calls(op, kind), act: act}.check(t)
				})
			}
		}
	}
}

// Changes move to the outputs of a compaction. Each is replayed to exactly one row,
// whether the crash comes before the publication or after it, when the rowset that the
// log names is gone.
func TestR7Item119ChangesAroundThePublicationOfACompaction(t *testing.T) {
	act := commits(upd("a", 31, 1), del("a", 5), ins("a", 5, 2), upd("a", 5, 3), del("a", 0), del("a", 6), ins("a", 6, 4), del("a", 6))
	for name, at := range map[string]func(errorfs.Call) bool{
		"outputs begun":    calls(errorfs.OpCreate, vfs.KindRowSet),
		"outputs written":  calls(errorfs.OpSync, vfs.KindRowSet),
		"edit not written": calls(errorfs.OpWrite, vfs.KindManifest),
		"edit not durable": calls(errorfs.OpSync, vfs.KindManifest),
		"published":        removal,
	} {
		t.Run(name, func(t *testing.T) {
			ruleCase{setup: withHistory, job: (*during).compact, at: at, act: act}.check(t)
		})
	}
}

// While a compaction runs rows are flushed. Changes of its inputs wait for its end, and are
// flushed where they are then.
func TestR6R7FlushDuringACompaction(t *testing.T) {
	act := then(commits(upd("a", 31, 1), ins("a", 35, 2), del("a", 5)), (*during).flushBeside, commits(upd("a", 31, 3), upd("a", 35, 4), ins("a", 5, 5)), (*during).flushBeside)
	for name, setup := range map[string]func(*during) error{"changes in memory": onDisk, "changes in files": withFiles, "history": withHistory} {
		t.Run(name, func(t *testing.T) {
			ruleCase{setup: setup, job: then((*during).compact, (*during).join), at: calls(errorfs.OpWrite, vfs.KindRowSet), act: act}.check(t)
		})
	}
}

// A ghost's bytes go in a compaction during which its key lives again.
func TestR7GhostCollectedMeanwhile(t *testing.T) {
	for _, tab := range []string{"a", "b"} { // with history that expires, and without
		setup := on(tab, then(commits(ins(tab, 1, 1), ins(tab, 2, 2), ins(tab, 3, 3)), (*during).flush, commits(del(tab, 1), del(tab, 2)), (*during).flush,
			func(d *during) error { d.story.pass(time.Hour); return nil }, commits(upd(tab, 3, 4))))
		act := commits(ins(tab, 1, 10), upd(tab, 1, 11), ins(tab, 2, 12), del(tab, 2), upd(tab, 3, 13))
		for name, at := range map[string]func(errorfs.Call) bool{
			"outputs begun":    calls(errorfs.OpCreate, vfs.KindRowSet),
			"edit not durable": calls(errorfs.OpSync, vfs.KindManifest),
			"published":        removal,
		} {
			t.Run(tab+", "+name, func(t *testing.T) {
				ruleCase{setup: setup, job: on(tab, then((*during).compact, (*during).flush)), at: at, act: act}.check(t)
			})
		}
	}
}

// Without history insert times are not kept. The log still finds the life that each of
// its changes was made to.
func TestR8R10NoHistoryAndZeroedInsertTimes(t *testing.T) {
	lives := commits(upd("b", 1, 10), del("b", 1), ins("b", 1, 11), upd("b", 1, 12), del("b", 2), ins("b", 2, 13), del("b", 2))
	zeroed := on("b", then(commits(ins("b", 1, 1), ins("b", 2, 2), ins("b", 3, 3)), (*during).flush, commits(upd("b", 3, 4)), (*during).flush, (*during).compact))
	for name, job := range map[string]func(*during) error{
		"flush":              then(lives, (*during).flush, lives),
		"compaction":         then(lives, (*during).compact, lives),
		"flush of both":      then(lives, (*during).flush, lives, (*during).flush, lives),
		"nothing":            lives,
		"flush of the other": then(lives, on("a", (*during).flush), lives),
	} {
		t.Run(name, func(t *testing.T) { ruleCase{setup: zeroed, job: on("b", job)}.check(t) })
	}
}

// A row without history is deleted while a compaction writes it, lives again in memory
// and is flushed, all before its deletion is in a file. The rowset that the log names is
// gone then, and only the time at which each life began tells the two rows apart.
func TestR8R10LivesMovedByACompactionWithoutHistory(t *testing.T) {
	setup := on("b", then(commits(ins("b", 1, 1), ins("b", 2, 2), ins("b", 3, 3)), (*during).flush, commits(upd("b", 1, 4), upd("b", 2, 5), upd("b", 3, 6)), (*during).flush))
	for name, act := range map[string]func(*during) error{
		"second life":           commits(del("b", 1), ins("b", 1, 10), upd("b", 1, 11)),
		"second life that ends": commits(del("b", 1), ins("b", 1, 10), del("b", 1), del("b", 2), ins("b", 2, 12)),
	} {
		t.Run(name, func(t *testing.T) {
			ruleCase{setup: setup, job: on("b", then((*during).compact, (*during).flush)), at: calls(errorfs.OpWrite, vfs.KindRowSet), act: act, step: 2}.check(t)
		})
	}
}

func TestR10BatchOverTwoTablesOneFlushedPastChanges(t *testing.T) {
	both := then(batch(ins("a", 1, 1), ins("b", 1, 1), ins("a", 2, 2), ins("b", 2, 2)), batch(upd("a", 1, 3), upd("b", 1, 3), del("b", 2)))
	again := then(batch(upd("a", 1, 4), del("b", 1), ins("b", 2, 4)), batch(del("a", 1), ins("b", 1, 5)), batch(ins("a", 1, 6), upd("b", 1, 6), upd("b", 2, 6)))
	for _, tab := range []string{"a", "b"} {
		t.Run(tab, func(t *testing.T) {
			ruleCase{setup: both, job: then(on(tab, (*during).flush), again, on(tab, (*during).flush), again, on(tab, (*during).compact), again)}.check(t)
		})
	}
}

func TestR5InsertAndDeleteInOneMemRowSet(t *testing.T) {
	for _, tab := range []string{"a", "b"} {
		t.Run(tab, func(t *testing.T) {
			lives := then(commits(ins(tab, 1, 1), del(tab, 1), ins(tab, 2, 2), del(tab, 2), ins(tab, 2, 3), upd(tab, 2, 4), ins(tab, 3, 5), del(tab, 3)),
				batch(ins(tab, 4, 6), del(tab, 4)))
			ruleCase{setup: lives, job: on(tab, then((*during).flush, commits(ins(tab, 1, 7), del(tab, 2)), (*during).flush)),
				at: calls(errorfs.OpSync, vfs.KindRowSet), act: commits(ins(tab, 3, 8), del(tab, 3), upd(tab, 2, 9))}.check(t)
		})
	}
}

// What a batch made of a row that it left out is not found out again when the log is
// replayed: it could succeed then.
func TestItem117R2RejectedRowsAreNotReplayed(t *testing.T) {
	mem := vfs.NewMem()
	fs := errorfs.Wrap(mem)
	r := newRig(t, minikudu.Options{FS: fs}, kvSpec())
	r.insert([]any{1, 1}, []any{4, 4})
	reject := func(op minikudu.Op, cells map[string]any) {
		t.Helper()
		var b minikudu.WriteBatch
		b.Add(r.tab, op, cells)
		b.Upsert(r.tab, 9, int(op))
		if _, err := r.db.Commit(ctx, &b, nil); !errors.Is(err, minikudu.ErrRowsRejected) {
			t.Fatalf("op %d of %v: %v", op, cells, err)
		}
	}
	reject(minikudu.OpInsert, kv(1, 100)) // is there
	reject(minikudu.OpUpdate, kv(2, 100)) // are not there
	reject(minikudu.OpDelete, key(3))
	before := r.db.Now()
	r.do(minikudu.OpDelete, key(1))
	r.insert([]any{2, 2}, []any{3, 3})
	after := r.db.Now()
	var all []*vfs.Mem
	stop := watch(fs, func(errorfs.Call) { all = append(all, mem.KillClone()) })
	r.flush()
	stop()
	all = append(all, mem.KillClone())
	for i, m := range all {
		again := &rig{TB: t, fs: m, opts: minikudu.Options{FS: m}, name: "t"}
		again.reopen()
		again.is(row(2, 2), row(3, 3), row(4, 4), row(9, int(minikudu.OpDelete)))
		again.asOf(before, row(1, 1), row(4, 4), row(9, int(minikudu.OpDelete)))
		again.diff(before, after, "-[1 1]", "[2 2]", "[3 3]")
		if mustClose(t, again.db); len(all) < 5 {
			t.Fatalf("a flush of %d calls, instant %d", len(all), i)
		}
	}
}

// Commits are visible in the order of their timestamps: a scan as of a time sees those up
// to it, none missing, whoever writes meanwhile and wherever rows go.
func TestItem68R1CommitsBecomeVisibleInOrder(t *testing.T) {
	r := newRig(t, minikudu.Options{Durability: minikudu.NoSync}, kvSpec())
	const writers = 4
	commits := 300
	if testing.Short() {
		commits = 60
	}
	times := make([]map[int]minikudu.Timestamp, writers)
	type look struct {
		at   minikudu.Timestamp
		keys []int
	}
	var looks []look
	var done atomic.Bool
	var writing, reading sync.WaitGroup
	for w := range writers {
		times[w] = map[int]minikudu.Timestamp{}
		writing.Go(func() {
			for i := range commits {
				var b minikudu.WriteBatch
				b.Insert(r.tab, i*writers+w, i)
				res, err := r.db.Commit(ctx, &b, nil)
				if err != nil {
					t.Error(err)
					return
				}
				times[w][i*writers+w] = res.Timestamp
			}
		})
	}
	reading.Go(func() {
		for i := 0; !done.Load() || i < 10; i++ {
			at := r.db.Now() // above all commits so far
			l := look{at: at}
			for b, err := range r.tab.Scan(ctx, minikudu.Query{AsOf: at, Order: minikudu.Order(i % 3)}) {
				if err != nil {
					t.Error(err)
					return
				}
				for k := range b.Len() {
					l.keys = append(l.keys, int(b.Column(0).Int32s()[k]))
				}
			}
			looks = append(looks, l)
			if i%4 == 3 {
				if err := r.tab.Flush(ctx); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	writing.Wait()
	done.Store(true)
	reading.Wait()
	for _, l := range looks {
		var want []int
		for _, m := range times {
			for k, at := range m {
				if at <= l.at {
					want = append(want, k)
				}
			}
		}
		slices.Sort(want)
		slices.Sort(l.keys)
		if !slices.Equal(l.keys, want) {
			t.Fatalf("as of %d: %d rows, %d commits up to then", l.at, len(l.keys), len(want))
		}
	}
}

// A read as of the present, above the newest commit, waits for no commit that is being
// made durable, and no later commit enters its time.
func TestItem69ReadOfThePresentWaitsForNoOne(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem())
	c := newClocked(t, minikudu.Options{FS: fs}, kvSpec())
	c.insert([]any{1, 1})
	free := make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	defer release() // when the test fails too
	fs.SetHook(func(call errorfs.Call) error {
		if call.Op == errorfs.OpSync && call.Kind == vfs.KindLog {
			<-free
		}
		return nil
	})
	before := c.db.Metrics().Commits
	var writer sync.WaitGroup
	writer.Go(func() {
		var b minikudu.WriteBatch
		b.Insert(c.tab, 2, 2)
		if _, err := c.db.Commit(ctx, &b, nil); err != nil {
			t.Error(err)
		}
	})
	waitFor(t, "the commit in memory", func() bool { return c.db.Metrics().Commits > before })
	c.pass(time.Second) // it is logged, not durable
	at := c.db.Now()
	c.asOf(at, row(1, 1), row(2, 2))
	release()
	writer.Wait()
	fs.SetHook(nil)
	c.pass(-time.Second) // the clock falls back
	later := c.insert([]any{3, 3}).Timestamp
	if later <= at {
		t.Fatalf("commit at %d, read as of %d", later, at)
	}
	for range 2 {
		c.asOf(at, row(1, 1), row(2, 2))
		c.diff(at, later, "[3 3]")
		c.flush()
		c.compact()
	}
}

// A reader that began before a compaction decided what has expired keeps its history.
func TestR8Trap1ReaderBeforeTheHorizon(t *testing.T) {
	for _, spec := range []minikudu.TableSpec{kvSpec(), forgetful(kvSpec())} {
		c := newClocked(t, minikudu.Options{}, spec)
		for k := range 30 {
			c.insert([]any{k, k})
		}
		c.flush()
		want := c.rows(minikudu.Query{Order: minikudu.KeyOrder})
		next, stop := iter.Pull2(c.tab.Scan(ctx, minikudu.Query{Order: minikudu.KeyOrder, BatchRows: 5}))
		defer stop()
		first, err, ok := next()
		if err != nil || !ok {
			t.Fatal(err)
		}
		got := [][]any{}
		for i := range first.Len() {
			got = append(got, first.Row(i))
		}
		s, err := c.db.Snapshot()
		fatal(t, err)
		c.updateAll(30, 77)
		for k := 0; k < 30; k += 3 {
			c.do(minikudu.OpDelete, key(k))
		}
		c.pass(time.Hour)
		for range 2 {
			c.compact()
			sameList(t, "the snapshot", c.rows(minikudu.Query{AsOf: s.Timestamp(), Order: minikudu.KeyOrder}), want)
		}
		for {
			b, err, ok := next()
			fatal(t, err)
			if !ok {
				break
			}
			for i := range b.Len() {
				got = append(got, b.Row(i))
			}
		}
		stop()
		sameList(t, "the scan", got, want)
		at := s.Timestamp()
		s.Close()
		s.Close()
		c.expired(at)
		c.compact()
		if n := c.deltaFiles(); n != 0 || c.tab.Rows() != 20 {
			t.Errorf("%d files of history, %d rows", n, c.tab.Rows())
		}
	}
}

// Snapshots that begin at any moment beside compactions that keep no history are
// repeatable.
func TestR8Trap1SnapshotsBesideTheHorizon(t *testing.T) {
	r := newRig(t, minikudu.Options{Durability: minikudu.NoSync}, forgetful(kvSpec()))
	r.updateUpsert(50, 0)
	var done atomic.Bool
	var busy sync.WaitGroup
	busy.Go(func() {
		for !done.Load() {
			if _, err := r.tab.Compact(ctx); err != nil {
				t.Error(err)
				return
			}
		}
	})
	busy.Go(func() {
		for i := 1; !done.Load(); i++ {
			var b minikudu.WriteBatch
			for k := range 50 {
				b.Add(r.tab, minikudu.OpDeleteIgnore, key(k))
				if (k+i)%2 == 0 {
					b.Upsert(r.tab, k, i)
				}
			}
			if _, err := r.db.Commit(ctx, &b, nil); err != nil {
				t.Error(err)
				return
			}
		}
	})
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	for range rounds {
		s, err := r.db.Snapshot()
		if err != nil {
			t.Error(err)
			break
		}
		first := texts(r.rows(minikudu.Query{AsOf: s.Timestamp(), Order: minikudu.KeyOrder}))
		for range 2 {
			if again := texts(r.rows(minikudu.Query{AsOf: s.Timestamp(), Order: minikudu.KeyOrder})); !slices.Equal(again, first) || len(first) < 25 {
				t.Errorf("%v, before %v", again, first)
			}
		}
		s.Close()
	}
	done.Store(true)
	busy.Wait()
}

// updateUpsert upserts the keys [0, n) in one batch.
func (r *rig) updateUpsert(n, val int) {
	r.Helper()
	var b minikudu.WriteBatch
	for k := range n {
		b.Upsert(r.tab, k, val)
	}
	r.commit(&b)
}

// The horizon is durable before files lack history: opened after a crash with a clock by
// which nothing has expired, the past is right or refused, and refused once it is gone.
func TestR8HorizonIsDurableBeforeHistoryGoes(t *testing.T) {
	for name, job := range map[string]func(c *clocked){
		"compaction": func(c *clocked) { c.compact() },
		"fold":       func(c *clocked) { c.fold() },
		"flush":      func(c *clocked) { c.flush() },
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			fs := errorfs.Wrap(mem)
			c := newClocked(t, minikudu.Options{FS: fs}, kvSpec())
			early := c.now()
			first := c.insert([]any{1, 1}, []any{2, 2}).Timestamp
			if name != "flush" {
				c.flush()
			}
			c.do(minikudu.OpUpdate, kv(1, 10))
			second := c.do(minikudu.OpDelete, key(2)).Timestamp
			if name != "flush" {
				c.flush()
			}
			c.pass(time.Hour)
			c.do(minikudu.OpInsert, kv(3, 3))
			var all []*vfs.Mem
			stop := watch(fs, func(call errorfs.Call) {
				if call.Kind != vfs.KindLog {
					all = append(all, mem.KillClone(), mem.CrashClone(vfs.CrashOptions{}))
				}
			})
			job(c)
			stop()
			all = append(all, mem.KillClone(), mem.CrashClone(vfs.CrashOptions{}))
			refused := 0
			for i, m := range all {
				again := &clocked{clock: newClock(early)}
				again.rig = &rig{TB: t, fs: m, opts: minikudu.Options{FS: m, Now: again.now}, name: "t"}
				again.reopen()
				again.is(row(1, 10), row(3, 3))
				expired := 0
				for at, want := range map[minikudu.Timestamp]string{first: "[[1 1] [2 2]]", second: "[[1 10]]", second - 1: "[[1 10] [2 2]]"} {
					got, err := collect(again.tab, minikudu.Query{AsOf: at, Order: minikudu.KeyOrder})
					switch {
					case errors.Is(err, minikudu.ErrHistoryExpired):
						expired++
					case err != nil || fmt.Sprint(got) != want:
						t.Fatalf("instant %d, as of %d: %v, %v, want %s", i, at, got, err, want)
					}
				}
				mustClose(t, again.db)
				if expired > 0 {
					refused++
				}
				if i >= len(all)-2 && expired != 3 {
					t.Errorf("%d of 3 reads are refused once the history is gone", expired)
				}
			}
			if len(all) < 8 || refused == len(all) {
				t.Errorf("%d instants, %d with a horizon", len(all), refused)
			}
		})
	}
}
