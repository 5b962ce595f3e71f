package minikudu

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minikudu/minikudu/compaction"
	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/tablet"
)

// background does what nobody asked for: one worker flushes, so that it is always free
// when memory is short; the others compact.
type background struct {
	db        *DB
	opened    time.Time
	ctx       context.Context
	cancel    context.CancelFunc
	done      sync.WaitGroup
	flusher   *worker
	compacter *worker // nil: nothing is compacted in the background

	jobs                 atomic.Int64 // steps begun
	flushes, compactions atomic.Int64 // steps in progress, those asked for included
	hurry                atomic.Int64 // who wait for a step's end: compactions are not throttled

	mu       sync.Mutex
	running  map[*step]bool // steps of the workers
	paused   int            // calls of Pause without one of Resume
	settling int            // calls of WaitSettled
	changed  chan struct{}  // closed and replaced when there may be other work than before
}

// worker is one goroutine or several that do steps of some kinds.
type worker struct {
	kick chan struct{} // a token for each goroutine: look for work
	// idle says that nothing is in memory that will be flushed sooner or later, so that
	// the first commit must wake the flusher.
	idle atomic.Bool
	// pick returns the step to do now, nil for none, and then after how long there may be
	// one without anybody waking, 0 if that is not known. With all it also returns what may
	// not begin yet: since it failed lately, is paused, or another step is in progress.
	pick func(now time.Time, all bool) (*step, time.Duration)
}

// step is work that was chosen.
type step struct {
	kind    compaction.Kind
	table   *Table
	reason  string
	score   float64
	rotate  bool               // flush the memory rowset that takes writes
	rowset  *diskrowset.RowSet // whose changes are flushed or merged
	columns []int              // of a major delta compaction; nil: those that changed
	plan    *mergePlan         // of a merge
}

func newBackground(db *DB) *background {
	b := &background{db: db, opened: time.Now(), running: map[*step]bool{}, changed: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.flusher = &worker{kick: make(chan struct{}, 1), pick: b.pickFlush}
	if n := db.opts.CompactionWorkers; n > 0 {
		b.compacter = &worker{kick: make(chan struct{}, n), pick: b.pickCompaction}
	}
	return b
}

func (b *background) start() {
	if b.db.opts.ReadOnly {
		return
	}
	for _, w := range b.workers() {
		for range cap(w.kick) {
			b.done.Go(func() { b.run(w) })
		}
	}
}

func (b *background) workers() []*worker {
	if b.compacter == nil {
		return []*worker{b.flusher}
	}
	return []*worker{b.flusher, b.compacter}
}

// writing is how long after a commit another one is expected.
const writing = 100 * time.Millisecond

// workers returns how many goroutines may encode a file. While rows are committed a
// processor is left to that: a goroutine that has waited for the disk would wait for one of
// those again, up to ten milliseconds.
func (db *DB) workers() int {
	n := runtime.GOMAXPROCS(0)
	if last := time.Duration(db.lastCommit.Load()); last > 0 && time.Since(db.background.opened)-last < writing {
		n--
	}
	return max(1, n)
}

// stop ends the work and waits for the steps in progress to notice.
func (b *background) stop() {
	b.cancel()
	b.done.Wait()
}

// wake asks the flusher for a look; it never waits.
func (b *background) wake() { b.flusher.wake() }

// stir wakes the flusher if nothing was in memory.
func (b *background) stir() {
	if f := b.flusher; f.idle.Load() && f.idle.CompareAndSwap(true, false) {
		f.wake()
	}
}

// wake asks all goroutines for a look.
func (w *worker) wake() {
	for {
		select {
		case w.kick <- struct{}{}:
		default:
			return
		}
	}
}

// note says that there may be other work than before.
func (b *background) note() {
	b.mu.Lock()
	close(b.changed)
	b.changed = make(chan struct{})
	b.mu.Unlock()
	for _, w := range b.workers() {
		w.wake()
	}
}

// run does what is to be done whenever it is woken, or its time has come. A store that
// failed publishes nothing more, so it rests.
func (b *background) run(w *worker) {
	for b.ctx.Err() == nil {
		var s *step
		var wait time.Duration
		w.idle.Store(true) // before the look: a commit after it must wake
		if b.db.failed() == nil {
			s, wait = w.pick(time.Now(), false)
		}
		if s != nil || wait > 0 {
			w.idle.Store(false)
		}
		if s == nil || !b.perform(s) {
			w.rest(b.ctx, wait)
		}
	}
}

// rest waits to be woken, for the given time at most; 0 is for ever.
func (w *worker) rest(ctx context.Context, d time.Duration) {
	var due <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-ctx.Done():
	case <-w.kick:
	case <-due:
	}
}

// perform does a step, unless it may not begin any more.
func (b *background) perform(s *step) bool {
	ctx := b.ctx
	if compacts(s.kind) {
		held, ok := s.table.turn.try(ctx)
		if !ok {
			return false // who has the turn wakes us at its end
		}
		defer b.note()
		defer s.table.turn.give()
		if s.stale() {
			return true
		}
		ctx = throttled(held)
	}
	if !b.begin(s) {
		return false
	}
	defer b.end(s)
	err := b.db.do(ctx, s)
	interrupted := ctx.Err() != nil || s.table.dropped.Load() // there is nothing to be retried
	if interrupted {
		err = nil
	}
	s.table.planner.ended(s.kind, err, time.Now())
	if err != nil {
		b.db.backgroundError(err)
	}
	return true
}

// stale reports whether rowsets of the step left the table since it was picked.
func (s *step) stale() bool {
	here := setOf(s.table.tablet.RowSets())
	if s.plan == nil {
		return !here[s.rowset]
	}
	return slices.ContainsFunc(s.plan.inputs, func(rs *diskrowset.RowSet) bool { return !here[rs] })
}

func compacts(k compaction.Kind) bool { return k != compaction.Flush && k != compaction.FlushDeltas }

// do does a step.
func (db *DB) do(ctx context.Context, s *step) error {
	switch s.kind {
	case compaction.Flush:
		if s.rotate {
			db.rotate(s.table)
		}
		return db.flushOne(ctx, s.table, s.reason)
	case compaction.FlushDeltas:
		return db.flushDeltas(ctx, s.table, s.rowset, s.reason)
	case compaction.CompactMinor:
		return db.mergeDeltas(ctx, s)
	case compaction.CompactMajor:
		_, err := db.foldDeltas(ctx, s)
		return err
	case compaction.DropHistory:
		_, err := db.dropHistory(ctx, s)
		return err
	default: // CompactRowSet and DropRowSet
		_, err := db.merge(ctx, s)
		return err
	}
}

// begin registers a step, unless the work is paused.
func (b *background) begin(s *step) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paused > 0 && s.reason != string(compaction.ReasonMemory) {
		return false
	}
	b.running[s] = true
	return true
}

func (b *background) end(s *step) {
	b.mu.Lock()
	delete(b.running, s)
	b.mu.Unlock()
	b.note()
}

// candidates is work that could be done.
type candidates struct {
	now   time.Time
	all   bool // list what failed lately, too
	ops   []compaction.Op
	steps []*step
	wait  time.Duration // until there is more, without anybody waking; 0: not known
}

// add lists a step. One that failed lately is not runnable.
func (c *candidates) add(s *step, op compaction.Op) {
	if rest := s.table.planner.rests(s.kind, c.now); rest > 0 && !c.all {
		c.after(rest)
		op.Runnable = false
	}
	op.Kind = s.kind
	c.ops, c.steps = append(c.ops, op), append(c.steps, s)
}

// after notes that there may be more work after the given time.
func (c *candidates) after(d time.Duration) {
	if d > 0 && (c.wait == 0 || d < c.wait) {
		c.wait = d
	}
}

// choose returns the step to do now, nil for none.
func (c *candidates) choose(state compaction.State) (*step, time.Duration) {
	d := compaction.Choose(c.ops, state)
	if d.Op < 0 {
		return nil, c.wait
	}
	s := c.steps[d.Op]
	s.score = c.ops[d.Op].Gain
	if s.reason == "" || d.Reason == compaction.ReasonMemory || d.Reason == compaction.ReasonLog {
		s.reason = string(d.Reason)
	}
	return s, 0
}

// pickFlush returns the flush that is needed most.
func (b *background) pickFlush(now time.Time, all bool) (*step, time.Duration) {
	db := b.db
	c := candidates{now: now, all: all}
	oldest, anchor := -1, Timestamp(0)
	for _, t := range db.tableList() {
		b.addFlushes(&c, t, func(s *step, first Timestamp, op compaction.Op) {
			c.add(s, op)
			if oldest < 0 || first < anchor {
				oldest, anchor = len(c.ops)-1, first
			}
		})
	}
	if size := db.log.Size(); oldest >= 0 && size > db.opts.LogBytes { // else the most memory is freed first
		c.ops[oldest].Log = size
	}
	s, wait := c.choose(compaction.State{Memory: db.memory.used.Load(), MemoryMark: db.memory.limit / 4 * 3, LogTarget: db.opts.LogBytes + 1})
	if s != nil && !all && s.reason != string(compaction.ReasonMemory) && b.isPaused() {
		return nil, 0
	}
	return s, wait
}

// addFlushes lists the flushes of a table, each with the oldest commit that it writes.
func (b *background) addFlushes(c *candidates, t *Table, add func(s *step, first Timestamp, op compaction.Op)) {
	limit, m := b.db.opts.FlushBytes, t.tablet.Memory()
	score := func(bytes, limit int64, oldest Timestamp) (gain float64, reason string) {
		age := b.db.opts.Now().Sub(oldest.Time())
		age = min(age, time.Since(b.opened))
		c.after(compaction.FlushAfter - age + time.Millisecond)
		if reason = "size"; bytes < limit {
			reason = "age"
		}
		return compaction.FlushScore(bytes, limit, age), reason
	}
	first, gain, reason := m.ActiveOldest, 0.0, "size"
	if first > 0 {
		gain, reason = score(m.ActiveBytes, limit, first)
	}
	if m.Rotated > 0 {
		first, gain, reason = m.Oldest, float64(max(limit, m.Bytes)), "size" // nothing else is more urgent
	}
	if first > 0 {
		add(&step{kind: compaction.Flush, table: t, reason: reason, rotate: m.Rotated == 0}, first, compaction.Op{Runnable: true, Memory: m.Bytes - m.DeltaBytes, Gain: gain})
	}
	if m.DeltaBytes == 0 {
		return
	}
	for _, rs := range t.tablet.RowSets() {
		if n := rs.MemoryBytes(); n > 0 {
			gain, reason := score(n, limit/4, rs.OldestChange())
			add(&step{kind: compaction.FlushDeltas, table: t, rowset: rs, reason: reason}, rs.OldestChange(),
				compaction.Op{Runnable: !t.tablet.Busy(rs), Memory: n, Gain: gain})
		}
	}
}

// pickCompaction returns the compaction that gains most.
func (b *background) pickCompaction(now time.Time, all bool) (*step, time.Duration) {
	if b.isPaused() && !all {
		return nil, 0
	}
	db, c := b.db, candidates{now: now, all: all}
	for _, t := range db.tableList() {
		if t.turn.taken() && !all {
			continue
		}
		upkeep, next := t.tablet.Upkeep()
		c.after(db.untilAncient(t, next, now))
		b.addDrop(&c, t, upkeep)
		b.addHistory(&c, t, upkeep)
		b.addMajor(&c, t, upkeep)
		b.addMinor(&c, t)
		b.addMerge(&c, t)
	}
	return c.choose(compaction.State{}) // no coin: what lists garbage costs next to nothing
}

// untilAncient returns how long it takes until the table's history mark passes a time; 0
// when it never does.
func (db *DB) untilAncient(t *Table, at Timestamp, now time.Time) time.Duration {
	if at == 0 || t.history == 0 || t.history == AllHistory {
		return 0
	}
	// A reader may hold the horizon back longer than that. Who lets go of one looks again.
	return max(at.Time().Add(t.history).Sub(db.opts.Now()), time.Second)
}

// addHistory lists the deletion of the history that has expired.
func (b *background) addHistory(c *candidates, t *Table, upkeep []tablet.Upkeep) {
	for _, u := range upkeep {
		if u.Expired > 0 {
			c.add(&step{kind: compaction.DropHistory, table: t, rowset: u.Set}, compaction.Op{Runnable: true, Garbage: u.Expired})
			return
		}
	}
}

// addMajor lists the folding of the changes of the rowset that gains most by it.
func (b *background) addMajor(c *candidates, t *Table, upkeep []tablet.Upkeep) {
	var best tablet.Upkeep
	var score float64
	quiet := b.isSettling() || t.planner.isQuiet(c.now)
	for _, u := range upkeep {
		if gain := compaction.MajorScore(u.Redo, u.Base, u.Columns, quiet); gain > score {
			best, score = u, gain
		}
	}
	if score == 0 {
		return
	}
	if wait := t.planner.affords(best.Base+best.Redo, c.now); wait > 0 && !b.isSettling() {
		c.after(wait)
		return
	}
	c.add(&step{kind: compaction.CompactMajor, table: t, rowset: best.Set}, compaction.Op{Runnable: true, Gain: score})
}

// addDrop lists the deletion of the table's rowsets without live rows.
func (b *background) addDrop(c *candidates, t *Table, upkeep []tablet.Upkeep) {
	var bytes int64
	dead := deadSets(upkeep)
	for _, rs := range dead {
		bytes += rs.Meta().EncodedBytes()
	}
	if len(dead) > 0 {
		c.add(&step{kind: compaction.DropRowSet, table: t, plan: &mergePlan{inputs: dead}}, compaction.Op{Runnable: true, Garbage: bytes})
	}
}

// deadSets returns the rowsets all of whose rows are gone, also for readers of the past.
func deadSets(upkeep []tablet.Upkeep) (dead []*diskrowset.RowSet) {
	for _, u := range upkeep {
		if u.Dead {
			dead = append(dead, u.Set)
		}
	}
	return dead
}

// addMinor lists the merge of the files of changes of the rowset that has most.
func (b *background) addMinor(c *candidates, t *Table) {
	var most *diskrowset.RowSet
	files := minorFiles - 1
	for _, rs := range t.tablet.RowSets() {
		if n := len(rs.Meta().Redo); n > files {
			most, files = rs, n
		}
	}
	if most == nil {
		return
	}
	if wait := t.planner.affords(deltaBytes(most.Meta().Redo), c.now); wait > 0 && !b.isSettling() {
		c.after(wait)
	} else {
		c.add(&step{kind: compaction.CompactMinor, table: t, rowset: most}, compaction.Op{Runnable: true, Gain: compaction.MinorScore(files)})
	}
}

// addMerge lists the merge of rowsets that the policy finds best.
func (b *background) addMerge(c *candidates, t *Table) {
	var pl *mergePlan
	if b.isSettling() {
		pl = t.planner.settle(t)
	} else {
		var wait time.Duration
		pl, wait = t.planner.next(t, c.now)
		c.after(wait)
	}
	if pl == nil {
		return
	}
	s := &step{kind: compaction.CompactRowSet, table: t, plan: pl}
	if pl.waste {
		s.reason = "waste"
	}
	c.add(s, compaction.Op{Runnable: true, Gain: pl.score})
}

func (b *background) isPaused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.paused > 0
}

func (b *background) isSettling() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.settling > 0
}
