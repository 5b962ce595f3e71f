package minikudu_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// changeSpec is a table of key k, a number n and a text s.
func changeSpec() minikudu.TableSpec {
	return minikudu.TableSpec{Key: []string{"k"}, Columns: []minikudu.Column{{Name: "k", Type: schema.Int32},
		{Name: "n", Type: schema.Int64}, {Name: "s", Type: schema.String, Nullable: true}}}
}

// mop is an operation on one row; n is its new number, and an s of "" is not given.
type mop struct {
	tab string
	op  minikudu.Op
	k   int
	n   int64
	s   string
}

// Short forms: an operation that finds its key in another state does nothing.
func ins(tab string, k int, n int64) mop { return mop{tab, minikudu.OpInsertIgnore, k, n, "new"} }
func ups(tab string, k int, n int64) mop { return mop{tab, minikudu.OpUpsert, k, n, ""} }
func upd(tab string, k int, n int64) mop { return mop{tab, minikudu.OpUpdateIgnore, k, n, ""} }
func del(tab string, k int) mop          { return mop{tab: tab, op: minikudu.OpDeleteIgnore, k: k} }

// cells is a row of the model.
type cells struct {
	n int64
	s string
}

// image is the rows of every table.
type image map[string]map[int]cells

func (m image) clone() image {
	out := image{}
	for name, rows := range m {
		out[name] = maps.Clone(rows)
	}
	return out
}

// play plays an operation and reports whether it changed something.
func (m image) play(o mop) bool {
	if m[o.tab] == nil {
		m[o.tab] = map[int]cells{}
	}
	row, live := m[o.tab][o.k]
	switch {
	case o.op == minikudu.OpDeleteIgnore:
		delete(m[o.tab], o.k)
		return live
	case live && o.op == minikudu.OpInsertIgnore, !live && o.op == minikudu.OpUpdateIgnore:
		return false
	}
	row.n = o.n
	if o.s != "" {
		row.s = o.s
	}
	m[o.tab][o.k] = row
	return true
}

// chapter is the rows from a batch on.
type chapter struct {
	rows    image
	touched map[string]map[int]bool // the keys that the batch changed, by table
	at      minikudu.Timestamp      // of the commit; 0 as long as it is not acknowledged
}

// after returns the chapter that a batch leads to.
func (c *chapter) after(ops []mop) chapter {
	next := chapter{rows: c.rows.clone(), touched: map[string]map[int]bool{}}
	for _, o := range ops {
		if next.touched[o.tab] == nil {
			next.touched[o.tab] = map[int]bool{}
		}
		if next.rows.play(o) {
			next.touched[o.tab][o.k] = true
		}
	}
	for tab, keys := range next.touched {
		maps.DeleteFunc(keys, func(k int, _ bool) bool { // what lived within the batch only was never there
			_, before := c.rows[tab][k]
			_, now := next.rows[tab][k]
			return !before && !now
		})
	}
	return next
}

// story is what a single writer did: the state after every batch it began, how many of
// them were acknowledged, and the tables and pins there are.
type story struct {
	mu       sync.Mutex
	chapters []chapter
	acked    int
	tables   map[string]tableState
	pins     map[string]pinned
	held     []minikudu.Timestamp // of snapshots in use
	ahead    time.Duration        // how far the store's clock is ahead
}

func newStory() *story {
	return &story{chapters: []chapter{{rows: image{}}}, tables: map[string]tableState{}, pins: map[string]pinned{}}
}

// fixed returns a story that begins with a state.
func fixed(m image) *story {
	return &story{chapters: []chapter{{rows: m}}, pins: map[string]pinned{}}
}

// time is the store's clock.
func (s *story) time() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

// pass lets time pass.
func (s *story) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

// span is the part of a story that a crash may leave: one of its states, the tables, and
// the pins that must be there.
type span struct {
	story    *story
	from, to int
	tables   map[string]tableState
	pins     map[string]pinned
	ahead    time.Duration
}

// span returns the states from the last one acknowledged, or from the first, to the
// last one begun.
func (s *story) span(acked bool) span {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := span{story: s, to: len(s.chapters), tables: maps.Clone(s.tables), pins: maps.Clone(s.pins), ahead: s.ahead}
	if acked {
		p.from = s.acked
	}
	return p
}

// until returns the chapters up to the end of the span.
func (p span) until() []chapter {
	p.story.mu.Lock()
	defer p.story.mu.Unlock()
	return p.story.chapters[:p.to]
}

// last returns the state after the last batch begun.
func (s *story) last() chapter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chapters[len(s.chapters)-1]
}

func (s *story) setTable(name string, state tableState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables[name] = state
}

// create makes tables; "b" keeps no history.
func (s *story) create(db *minikudu.DB, names ...string) error {
	for _, name := range names {
		s.setTable(name, creating)
		spec := changeSpec()
		if name == "b" {
			spec = forgetful(spec)
		}
		if _, err := db.CreateTable(ctx, name, spec); err != nil {
			return err
		}
		s.setTable(name, present)
	}
	return nil
}

func (s *story) drop(db *minikudu.DB, name string) error {
	s.setTable(name, dropping)
	if err := db.DropTable(ctx, name); err != nil {
		return err
	}
	s.setTable(name, absent)
	return nil
}

// commit commits the operations as one batch.
func (s *story) commit(db *minikudu.DB, ops ...mop) error {
	var b minikudu.WriteBatch
	last := s.last()
	for _, o := range ops {
		tab, err := db.Table(o.tab)
		if err != nil {
			return err
		}
		row := map[string]any{"k": o.k}
		if o.op != minikudu.OpDeleteIgnore {
			row["n"] = o.n
			if o.s != "" {
				row["s"] = o.s
			}
		}
		b.Add(tab, o.op, row)
	}
	s.mu.Lock()
	s.chapters = append(s.chapters, last.after(ops))
	number := len(s.chapters) - 1
	s.mu.Unlock()
	res, err := db.Commit(ctx, &b, nil)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked = number
	s.chapters[number].at = res.Timestamp
	return nil
}

// readImage returns the rows of a table by a scan, and checks that gets and the count from
// metadata say the same.
func readImage(tab *minikudu.Table) (map[int]cells, error) {
	got := map[int]cells{}
	for b, err := range tab.Scan(ctx, minikudu.Query{Order: minikudu.KeyOrder}) {
		if err != nil {
			return nil, err
		}
		for i := range b.Len() {
			row := b.Row(i)
			k := int(b.Column(0).Int32s()[i])
			if _, twice := got[k]; twice {
				return nil, fmt.Errorf("table %s: key %d is there twice", tab.Name(), k)
			}
			s, _ := row[2].(string)
			got[k] = cells{row[1].(int64), s}
		}
	}
	if n := tab.Rows(); n != int64(len(got)) {
		return nil, fmt.Errorf("table %s: %d rows by metadata, %d by a scan", tab.Name(), n, len(got))
	}
	return got, nil
}

// checkGets requires that gets of the keys [0, n) find what is wanted.
func checkGets(tab *minikudu.Table, n int, want map[int]cells) error {
	for k := range n {
		w, live := want[k]
		r, err := tab.Get(ctx, k)
		if err != nil && !errors.Is(err, minikudu.ErrNotFound) {
			return err
		}
		if live != (err == nil) || live && r.Value("n") != w.n {
			return fmt.Errorf("table %s: get %d: %v, %v; want %v, %v", tab.Name(), k, r, err, w, live)
		}
	}
	return nil
}

// check requires that the store is in one of the states, now and at times of the past,
// and returns it.
func (s span) check(db *minikudu.DB) (image, error) {
	got, last, err := s.checkNow(db)
	if err != nil {
		return nil, err
	}
	return got, s.checkPast(db, last)
}

// checkNow requires that the store is in one of the states, and returns it and the first
// chapter that it can be.
func (s span) checkNow(db *minikudu.DB) (got image, at int, err error) {
	got = image{}
	for _, name := range []string{"a", "b", "c"} {
		tab, err := db.Table(name)
		there := err == nil
		if st, known := s.tables[name]; known && (st == present && !there || st == absent && there) {
			return nil, 0, fmt.Errorf("table %s: there %v, but its state is %d", name, there, st)
		}
		if !there {
			continue
		}
		if got[name], err = readImage(tab); err != nil {
			return nil, 0, err
		}
		if err := checkGets(tab, 40, got[name]); err != nil {
			return nil, 0, err
		}
	}
	var diffs []string
	chapters := s.until()
	for i := s.from; i < s.to; i++ {
		d := difference(got, chapters[i].rows)
		if d == "" {
			return got, i, nil
		}
		diffs = append(diffs, d)
	}
	return nil, 0, fmt.Errorf("not one of the %d states; up to the last one: %s", s.to-s.from, strings.Join(diffs[max(0, len(diffs)-2):], "; or "))
}

// difference says how the tables that are there differ from what is wanted.
func difference(got, want image) string {
	var out []string
	for name, rows := range got {
		for k, w := range want[name] {
			if g, ok := rows[k]; !ok || g != w {
				out = append(out, fmt.Sprintf("%s[%d] is %.20v %v, want %.20v", name, k, g, ok, w))
			}
		}
		for k, g := range rows {
			if _, ok := want[name][k]; !ok {
				out = append(out, fmt.Sprintf("%s[%d] is %.20v, want none", name, k, g))
			}
		}
	}
	return strings.Join(out, ", ")
}

// instant is the store as a crash would leave it, and what it may hold.
type instant struct {
	call string
	fs   *vfs.Mem
	span span
}

// recover opens the clone, compares, changes it, compacts it, and opens it once more.
func (m *instant) recover(o *minikudu.Options) error {
	opts := *o
	st := &story{ahead: m.span.ahead}
	opts.FS, opts.Now = m.fs, st.time
	db, err := minikudu.Open("store", &opts)
	if err != nil {
		return err
	}
	err = m.goOn(db, st)
	if cerr := db.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if db, err = minikudu.Open("store", &opts); err != nil {
		return fmt.Errorf("second open: %w", err)
	}
	defer db.Close()
	if _, err := st.span(true).check(db); err != nil {
		return fmt.Errorf("second open: %w", err)
	}
	return checkVerify(db)
}

// goOn compares, and requires that the recovered store takes changes of every kind. st
// becomes the story from there on.
func (m *instant) goOn(db *minikudu.DB, st *story) error {
	now, at, err := m.span.checkNow(db)
	if err != nil {
		return err
	}
	st.chapters = append(slices.Clone(m.span.until()[:at]), chapter{rows: now, touched: m.span.until()[at].touched, at: m.span.until()[at].at})
	st.acked, st.pins = at, map[string]pinned{}
	for _, p := range db.Pins() {
		st.pins[p.Name] = pinned{p.Timestamp, -1}
	}
	for name, want := range m.span.pins {
		if got := st.pins[name]; got.at != want.at {
			return fmt.Errorf("pin %s: %d, want %d", name, got.at, want.at)
		}
		st.pins[name] = pinned{want.at, min(want.chapter, at)}
	}
	if err := st.span(true).checkPast(db, at); err != nil {
		return err
	}
	if err := checkVerify(db); err != nil {
		return err
	}
	tab, err := db.Table("a")
	if errors.Is(err, minikudu.ErrNotFound) {
		tab, err = db.CreateTable(ctx, "a", changeSpec())
	}
	if err != nil {
		return err
	}
	steps := [][]mop{
		{ups("a", 1, 9001), upd("a", 2, 9002), del("a", 3), ins("a", 4, 9004), ups("a", 39, 9039)},
		{del("a", 1), ups("a", 3, 9003), upd("a", 5, 9005)},
	}
	for i, ops := range steps {
		if err := st.commit(db, ops...); err != nil {
			return err
		}
		if _, err := st.span(true).check(db); err != nil {
			return fmt.Errorf("after more changes: %w", err)
		}
		if i == 0 {
			err = errors.Join(tab.Flush(ctx), tab.CompactDeltas(ctx))
		} else {
			_, err = tab.Compact(ctx)
		}
		if err != nil {
			return err
		}
		if _, err := st.span(true).check(db); err != nil {
			return fmt.Errorf("after flush or compaction: %w", err)
		}
	}
	st.pass(time.Hour)
	if err := st.commit(db, upd("a", 1, 9100), ups("a", 2, 9101)); err != nil {
		return err
	}
	if _, err := tab.Compact(ctx); err != nil {
		return err
	}
	if _, err := st.span(true).check(db); err != nil {
		return fmt.Errorf("after history expired: %w", err)
	}
	return checkVerify(db)
}

// instants collects clones at calls of a wrapped file system.
type instants struct {
	mu    sync.Mutex
	mem   *vfs.Mem
	story *story
	acked bool // acknowledged batches are there
	clone func(m *vfs.Mem, k uint64) *vfs.Mem
	all   []instant
}

// hook takes a clone at every call that changes something.
func (in *instants) hook(c errorfs.Call) error {
	if c.Op.Writes() {
		in.take(c.String())
	}
	return nil
}

func (in *instants) take(what string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	before := in.story.span(in.acked) // what is acknowledged now must be there
	fs := in.clone(in.mem, uint64(len(in.all)))
	after := in.story.span(in.acked)
	before.to = after.to // nothing that began later can be there
	maps.DeleteFunc(before.pins, func(name string, _ pinned) bool { _, ok := after.pins[name]; return !ok })
	in.all = append(in.all, instant{what, fs, before})
}

// recoverEach recovers every stepth instant.
func recoverEach(t *testing.T, all []instant, step int, o *minikudu.Options) {
	t.Helper()
	switch {
	case full():
		step = 1
	case testing.Short():
		step *= 10
	}
	first := testkit.Rand(t).IntN(step)
	for i := range all {
		if i%step == first || i == len(all)-1 {
			if err := all[i].recover(o); err != nil {
				t.Fatalf("instant %d of %d, before %s: %v", i, len(all), all[i].call, err)
			}
		}
		all[i].fs = nil // give the memory back
	}
}

// changeScript is everything that changes rows, what is kept of their past, and the clock, as one
// writer does it in four sessions.
func changeScript(s *story) [][]func(*minikudu.DB) error {
	rnd := rand.New(rand.NewPCG(1, 2))
	next := int64(0)
	commit := func(ops ...mop) func(*minikudu.DB) error {
		return func(db *minikudu.DB) error { return s.commit(db, ops...) }
	}
	batches := func(n int, tables ...string) func(*minikudu.DB) error {
		return func(db *minikudu.DB) error {
			for range n {
				var ops []mop
				for range 1 + rnd.IntN(6) {
					next++
					tab, k := tables[rnd.IntN(len(tables))], rnd.IntN(16)
					o := []mop{ins(tab, k, next), ups(tab, k, next), upd(tab, k, next), del(tab, k)}[rnd.IntN(4)]
					if o.s == "" && o.op == minikudu.OpUpdateIgnore && rnd.IntN(2) == 0 {
						o.s = strings.Repeat(fmt.Sprint("t", next), 60)
					}
					ops = append(ops, o)
				}
				if err := s.commit(db, ops...); err != nil {
					return err
				}
			}
			return nil
		}
	}
	on := func(name string, f func(*minikudu.Table) error) func(*minikudu.DB) error {
		return func(db *minikudu.DB) error {
			tab, err := db.Table(name)
			if err != nil {
				return err
			}
			return f(tab)
		}
	}
	flush := func(name string) func(*minikudu.DB) error {
		return on(name, func(t *minikudu.Table) error { return t.Flush(ctx) })
	}
	compact := func(name string) func(*minikudu.DB) error {
		return on(name, func(t *minikudu.Table) error { _, err := t.Compact(ctx); return err })
	}
	minor := func(name string) func(*minikudu.DB) error {
		return on(name, func(t *minikudu.Table) error { return t.CompactMinor(ctx) })
	}
	fold := func(name string, columns ...string) func(*minikudu.DB) error {
		return on(name, func(t *minikudu.Table) error { return t.CompactDeltas(ctx, columns...) })
	}
	pin := func(name string) func(*minikudu.DB) error {
		return func(db *minikudu.DB) error { return s.pin(db, name) }
	}
	unpin := func(name string) func(*minikudu.DB) error {
		return func(db *minikudu.DB) error { return s.unpin(db, name) }
	}
	expire := func(*minikudu.DB) error { s.pass(time.Hour); return nil }
	check := func(db *minikudu.DB) error { _, err := s.span(true).check(db); return err }
	create := func(name string) func(*minikudu.DB) error {
		return func(db *minikudu.DB) error { return s.create(db, name) }
	}
	return [][]func(*minikudu.DB) error{
		{create("a"), create("b"), commit(ins("a", 0, 1), ins("a", 1, 1), ins("a", 2, 1), ins("b", 0, 1)),
			commit(upd("a", 0, 2)), commit(del("a", 1)), commit(ins("a", 1, 3)), flush("a"), // revived in the active memory
			commit(del("a", 2)), commit(ins("a", 2, 4)), commit(upd("a", 2, 5), upd("b", 0, 5)), flush("a"), // lives again beside a ghost on disk
			fold("a", "n"), commit(upd("a", 0, 6)), flush("a"), fold("a"), check,
			commit(del("a", 2), ins("a", 2, 7)), commit(del("a", 0)), flush("a"), compact("a"), pin("early"),
			batches(12, "a", "b"), flush("b"), fold("b"), batches(12, "a", "b"), flush("a"), minor("a"), fold("a", "s"), compact("a"), create("c"), batches(6, "a", "c"), flush("c"),
			batches(6, "b", "c"), compact("b"), batches(4, "a", "b", "c"), compact("c"), check,
			func(db *minikudu.DB) error { return s.drop(db, "c") }, batches(10, "a", "b"), flush("a"), batches(10, "a", "b")},
		{check, compact("a"), batches(8, "a", "b"), flush("a"), fold("a"), pin("late"), flush("b"), batches(3, "a", "b"), check},
		{flush("a"), minor("a"), expire, check, batches(3, "a", "b"), flush("a"), fold("a"), check, compact("b"), compact("a"), check,
			unpin("early"), batches(3, "a"), check, compact("a"), check},
		{check},
	}
}

// small are options under which a few changes make new log segments.
func small(durability minikudu.Durability) *minikudu.Options {
	return &minikudu.Options{MemoryBudget: 8 << 20, FlushBytes: 24 << 10, LogBytes: 16 << 10, RowSetBytes: 64 << 10, Durability: durability}
}

// changeInstants plays the script and takes a clone at every call.
func changeInstants(t *testing.T, o *minikudu.Options, acked bool, clone func(*vfs.Mem, uint64) *vfs.Mem) []instant {
	t.Helper()
	s, mem := newStory(), vfs.NewMem()
	in := &instants{mem: mem, story: s, acked: acked, clone: clone}
	fs := errorfs.Wrap(mem)
	fs.SetHook(in.hook)
	opts := *o
	opts.Now = s.time
	for _, steps := range changeScript(s) {
		fatal(t, session(fs, &opts, steps))
	}
	fs.SetHook(nil)
	in.take("the end")
	return in.all
}

// A power cut at every call of a run that changes, flushes and compacts.
func TestR10PowerCutAtEveryCallOfChanges(t *testing.T) {
	for _, c := range []struct {
		name       string
		durability minikudu.Durability
		seed       uint64
		step       int
	}{
		{"sync, all is lost", minikudu.Sync, 0, 9},
		{"sync, some survives", minikudu.Sync, 1, 11},
		{"nosync, all is lost", minikudu.NoSync, 0, 11},
		{"nosync, some survives", minikudu.NoSync, 2, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := small(c.durability)
			all := changeInstants(t, o, c.durability == minikudu.Sync, func(m *vfs.Mem, k uint64) *vfs.Mem { return powerCut(m, c.seed, k) })
			recoverEach(t, all, c.step, o)
			t.Logf("%d calls", len(all))
		})
	}
}

// A row on disk is deleted and its key lives and dies again in memory, whose flush leaves
// nothing of it. When the log is replayed the later life's changes are not those of the
// row on disk, although only the log knows that it was deleted.
func TestR10ReplayOfALifeThatAFlushDropped(t *testing.T) {
	mem := vfs.NewMem()
	fs := errorfs.Wrap(mem)
	db := mustOpen(t, "store", &minikudu.Options{FS: fs})
	s := newStory()
	fatal(t, s.create(db, "a", "b"))
	fatal(t, s.commit(db, ins("a", 1, 1), ins("a", 2, 2), ins("b", 1, 1)))
	tab, err := db.Table("a")
	fatal(t, err)
	fatal(t, tab.Flush(ctx))
	for _, o := range []mop{del("a", 1), ins("a", 1, 3), upd("a", 1, 4), del("a", 1)} {
		fatal(t, s.commit(db, o))
	}
	fs.SetHook(errorfs.Fail(syscall.EIO, 1, 0, errorfs.Kinds(vfs.KindDelta)))
	if err := tab.Flush(ctx); !errors.Is(err, syscall.EIO) {
		t.Fatalf("flush of changes: %v", err)
	}
	m := instant{"the end", mem.KillClone(), s.span(true)}
	fs.SetHook(nil)
	mustClose(t, db)
	fatal(t, m.recover(&minikudu.Options{}))
}

// A crash at every call of an open that replays changes, and flushes rows and changes on
// the way because the log holds more than memory may.
func TestR10CrashDuringReplayOfChangesAndItsFlushes(t *testing.T) {
	mem, s := vfs.NewMem(), newStory()
	o := &minikudu.Options{FS: mem, Durability: minikudu.NoSync}
	db := mustOpen(t, "store", o)
	fatal(t, s.create(db, "a", "b"))
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range 400 {
		var ops []mop
		for range 5 {
			tab, k := []string{"a", "b"}[rnd.IntN(2)], rnd.IntN(30)
			o := []mop{ins(tab, k, int64(i)), ups(tab, k, int64(i)), upd(tab, k, int64(i)), del(tab, k)}[rnd.IntN(4)]
			if o.op == minikudu.OpUpdateIgnore {
				o.s = strings.Repeat(fmt.Sprint("t", i), 400)
			}
			ops = append(ops, o)
		}
		fatal(t, s.commit(db, ops...))
		if i%90 == 40 { // "b" has flushed past what "a" has
			tab, err := db.Table([]string{"b", "b", "a", "b"}[i/90])
			fatal(t, err)
			fatal(t, tab.Flush(ctx))
		}
	}
	base := mem.KillClone()
	mustClose(t, db)
	for _, c := range []struct {
		name  string
		acked bool
		clone func(m *vfs.Mem, k uint64) *vfs.Mem
	}{
		{"killed again", true, func(m *vfs.Mem, _ uint64) *vfs.Mem { return m.KillClone() }},
		{"power cut", false, func(m *vfs.Mem, k uint64) *vfs.Mem { return powerCut(m, 0, k) }},
		{"power cut, some survives", false, func(m *vfs.Mem, k uint64) *vfs.Mem { return powerCut(m, 1, k) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &instants{mem: base.KillClone(), story: s, acked: c.acked, clone: c.clone}
			fs := errorfs.Wrap(in.mem)
			fs.SetHook(in.hook)
			flushes := 0
			o := &minikudu.Options{FS: fs, FlushBytes: 80 << 10}
			o.Events = &minikudu.EventListener{Replayed: func(i minikudu.ReplayInfo) { flushes = i.Flushes; fs.SetHook(nil) }}
			db := mustOpen(t, "store", o)
			deltas := db.Metrics().DeltaFlushes
			_, err := s.span(true).check(db)
			fatal(t, err)
			mustClose(t, db)
			if deltas == 0 || int(deltas) == flushes {
				t.Fatalf("%d flushes, %d of them of changes: too few for this test", flushes, deltas)
			}
			recoverEach(t, in.all, 7, &minikudu.Options{FlushBytes: 150 << 10})
			t.Logf("%d flushes, %d of them of changes, crash at %d calls", flushes, deltas, len(in.all))
		})
	}
}
