package minikudu

import (
	"context"
	"time"

	"github.com/minikudu/minikudu/compaction"
)

// Pause holds back the work in the background: no flush or compaction begins until Resume
// is called as often as Pause. It returns when those in progress have ended, or the DB
// closes. Flushes that free memory when it is short go on, so that writers do not wait for
// Resume; the log is kept, however long it grows. What is asked for (Table.Flush,
// Table.Compact and the like) is done as ever. It must not be called by an EventListener.
func (db *DB) Pause() {
	b := db.background
	b.hurry.Add(1)
	defer b.hurry.Add(-1)
	b.mu.Lock()
	b.paused++
	var before []*step
	for s := range b.running {
		before = append(before, s)
	}
	b.mu.Unlock()
	_ = b.wait(context.Background(), func() bool { return !b.anyRuns(before) })
}

// anyRuns reports whether one of the steps is in progress.
func (b *background) anyRuns(steps []*step) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range steps {
		if b.running[s] {
			return true
		}
	}
	return false
}

// Resume ends one call of Pause. Without one it does nothing.
func (db *DB) Resume() {
	b := db.background
	b.mu.Lock()
	b.paused = max(0, b.paused-1)
	b.mu.Unlock()
	b.note()
}

// WaitSettled waits until no work in the background is worth doing in any table, whatever
// it costs: it flushes nothing that would stay in memory otherwise, but compacts as if the
// store were not written to. While writers go on it may not end before ctx does. Paused
// work, and work that fails, is waited for. It returns ctx's error, ErrClosed, or why the
// store takes no writes. With compaction off (Options.CompactionWorkers) it waits for
// flushes only, in a read-only store for nothing.
func (db *DB) WaitSettled(ctx context.Context) error {
	if err := db.gate.enter(); err != nil {
		return err
	}
	defer db.gate.exit()
	if db.opts.ReadOnly {
		return nil
	}
	b := db.background
	b.settle(1)
	defer b.settle(-1)
	if err := b.wait(ctx, func() bool { return db.failed() != nil || b.settled() }); err != nil {
		return err
	}
	return db.failed()
}

func (b *background) settle(n int) {
	b.mu.Lock()
	b.settling += n
	b.mu.Unlock()
	b.note()
}

// settled reports whether nothing is done and nothing is worth doing.
func (b *background) settled() bool {
	if b.flushes.Load() > 0 || b.compactions.Load() > 0 {
		return false
	}
	for _, w := range b.workers() {
		if s, _ := w.pick(time.Now(), true); s != nil {
			return false
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.running) == 0
}

// wait waits until the condition holds, which is tested whenever there may be other work
// than before.
func (b *background) wait(ctx context.Context, holds func() bool) error {
	for {
		b.mu.Lock()
		changed := b.changed
		b.mu.Unlock()
		if holds() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-b.db.gate.shut:
			return ErrClosed
		}
	}
}

// takeTurn waits until the caller is the only one who compacts the table.
func (t *Table) takeTurn(ctx context.Context) error {
	t.db.background.hurry.Add(1)
	defer t.db.background.hurry.Add(-1)
	return t.turn.take(ctx, t.db.gate.shut)
}

// GC deletes what needs no rewriting: the rowsets of the table all of whose rows were
// deleted before its history begins, and the files of history that has expired. Deletions in
// memory count.
func (t *Table) GC(ctx context.Context) (*CompactResult, error) {
	res := &CompactResult{}
	return res, t.maintain(func() error {
		return t.compact(ctx, res, func() *step {
			upkeep, _ := t.tablet.Upkeep()
			if dead := deadSets(upkeep); len(dead) > 0 {
				return &step{kind: compaction.DropRowSet, plan: &mergePlan{inputs: dead}}
			}
			return t.expiredStep(upkeep)
		})
	})
}

// throttledKey marks the context of work whose writes are throttled.
type throttledKey struct{}

func throttled(ctx context.Context) context.Context {
	return context.WithValue(ctx, throttledKey{}, true)
}

// throttle makes n bytes that a compaction in the background writes wait for their turn at
// Options.CompactionRate, unless memory or the log is short of room or somebody waits for
// the end of a step.
func (db *DB) throttle(ctx context.Context, n int) error {
	if db.opts.CompactionRate == 0 || ctx.Value(throttledKey{}) == nil {
		return nil
	}
	const slice = 20 * time.Millisecond
	due := db.rate.reserve(time.Now(), int64(n), db.opts.CompactionRate)
	for left := time.Until(due); left > 0 && !db.hurries(); left = time.Until(due) {
		timer := time.NewTimer(min(left, slice))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return nil
}

// hurries reports whether compactions must end soon.
func (db *DB) hurries() bool {
	return db.background.hurry.Load() > 0 || db.memory.used.Load() > db.memory.limit/4*3 || db.log.Size() > 2*db.opts.LogBytes
}
