package minikudu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/tablet"
)

// background flushes memory rowsets when there is a reason to, one at a time.
type background struct {
	db     *DB
	kick   chan struct{} // one token: look for work
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	jobs   atomic.Int64
}

const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 10 * time.Second
)

func newBackground(db *DB) *background {
	ctx, cancel := context.WithCancel(context.Background())
	return &background{db: db, kick: make(chan struct{}, 1), ctx: ctx, cancel: cancel}
}

func (b *background) start() { b.done.Go(b.run) }

// stop ends the work and waits for the step in progress to notice.
func (b *background) stop() {
	b.cancel()
	b.done.Wait()
}

// wake asks for a look; it never waits.
func (b *background) wake() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// run does what is to be done whenever it is woken. After a failure it pauses, ever
// longer while failures go on. A store that failed publishes nothing more, so it rests.
func (b *background) run() {
	backoff := firstBackoff
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.kick:
		}
		for b.ctx.Err() == nil && b.db.failed() == nil {
			worked, err := b.step()
			if err == nil {
				backoff = firstBackoff
				if !worked {
					break
				}
				continue
			}
			if b.ctx.Err() != nil {
				return
			}
			b.db.backgroundError(err)
			b.pause(backoff)
			backoff = min(2*backoff, lastBackoff)
		}
	}
}

func (b *background) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-b.ctx.Done():
	}
}

// step does what is needed most, if anything is.
func (b *background) step() (worked bool, err error) {
	w := b.pick()
	switch {
	case w.table == nil:
		return false, nil
	case w.deltas != nil:
		err = b.db.flushDeltas(b.ctx, w.table, w.deltas, w.reason)
	default:
		b.db.rotate(w.table)
		err = b.db.flushOne(b.ctx, w.table, w.reason)
	}
	if w.table.dropped.Load() {
		err = nil // there is nothing to be retried
	}
	return true, err
}

// work is a step of the background: a flush of a table's oldest memory rowset, or of the
// changes of one of its disk rowsets.
type work struct {
	table  *Table
	deltas *diskrowset.RowSet
	reason string
}

// pick returns what to do, no table for nothing.
func (b *background) pick() work {
	var full, largest, oldest work
	var fullBytes, largestBytes int64
	var anchor Timestamp
	consider := func(w work, bytes int64, first Timestamp, limit int64) {
		if bytes >= limit && bytes > fullBytes {
			full, fullBytes = w, bytes
		}
		if first > 0 && bytes > largestBytes {
			largest, largestBytes = w, bytes
		}
		if first > 0 && (oldest.table == nil || first < anchor) {
			oldest, anchor = w, first
		}
	}
	for _, t := range b.db.tableList() {
		m := t.tablet.Memory()
		if m.Rotated > 0 {
			return work{table: t, reason: "size"}
		}
		consider(work{table: t}, m.ActiveBytes, m.ActiveOldest, b.db.opts.FlushBytes)
		if m.DeltaBytes == 0 {
			continue
		}
		for _, rs := range t.tablet.RowSets() {
			if t.tablet.Busy(rs) {
				continue
			}
			consider(work{table: t, deltas: rs}, rs.MemoryBytes(), rs.OldestChange(), b.db.opts.FlushBytes/4)
		}
	}
	switch {
	case full.table != nil:
		full.reason = "size"
		return full
	case largest.table != nil && b.db.memory.used.Load() > b.db.memory.limit/4*3:
		largest.reason = "memory"
		return largest
	case oldest.table != nil && b.db.log.Size() > b.db.opts.LogBytes:
		oldest.reason = "log"
		return oldest
	}
	return work{}
}

// quiesce calls f while no commit is between the log and memory.
func (db *DB) quiesce(f func()) {
	db.commit.Lock()
	defer db.commit.Unlock()
	db.apply.Lock()
	defer db.apply.Unlock()
	f()
}

// rotate makes a new memory rowset in the table, leaving the old one to be flushed.
func (db *DB) rotate(t *Table) bool {
	db.commit.Lock()
	defer db.commit.Unlock()
	return t.tablet.Rotate()
}

// flushOne flushes the table's oldest rotated memory rowset and reports it. When another
// call has flushed it meanwhile there is nothing to do or to report.
func (db *DB) flushOne(ctx context.Context, t *Table, reason string) error {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	if t.tablet.Memory().Rotated == 0 {
		return nil
	}
	info := FlushInfo{Job: db.background.jobs.Add(1), Table: t.name, Reason: reason}
	if f := db.opts.Events.FlushBegin; f != nil {
		f(info)
	}
	begin := time.Now()
	f, err := t.tablet.Flush(ctx)
	db.jobError(err)
	info.Rows, info.Memory, info.RowSets, info.Bytes = f.Rows, f.Memory, f.Files, f.Bytes
	info.Duration, info.Err = time.Since(begin), err
	if err == nil {
		db.memory.shrink(f.Memory, info.Duration)
		db.metrics.flushed(f)
		err = db.trimLog(ctx)
	}
	if end := db.opts.Events.FlushEnd; end != nil {
		end(info)
	}
	db.opts.Logger.Info("flush", "info", info.String())
	if err != nil {
		return fmt.Errorf("flushing: %w", t.tabletError(err))
	}
	return nil
}

// flushDeltas writes the changes of a disk rowset and reports it.
func (db *DB) flushDeltas(ctx context.Context, t *Table, rs *diskrowset.RowSet, reason string) error {
	begin := time.Now()
	f, err := t.tablet.FlushDeltas(ctx, rs)
	db.jobError(err)
	if err == nil {
		db.memory.shrink(f.Memory, time.Since(begin))
		db.metrics.deltaFlushes.Add(1)
		db.metrics.deltaBytes.Add(f.Bytes)
		err = db.trimLog(ctx)
	}
	db.opts.Logger.Info("flush of changes", "table", t.name, "reason", reason, "changes", f.Rows, "bytes", f.Bytes,
		"duration", time.Since(begin), "error", err)
	if err != nil {
		return fmt.Errorf("flushing changes: %w", t.tabletError(err))
	}
	return nil
}

// flushTable writes everything the table holds in memory now.
func (db *DB) flushTable(ctx context.Context, t *Table, reason string) error {
	db.rotate(t)
	for t.tablet.Memory().Rotated > 0 {
		if err := db.flushOne(ctx, t, reason); err != nil {
			return err
		}
	}
	for _, rs := range t.tablet.RowSets() {
		if rs.MemoryBytes() > 0 {
			if err := db.flushDeltas(ctx, t, rs, reason); err != nil {
				return err
			}
		}
	}
	return db.trimLog(ctx) // replay may have flushed everything and left the log
}

// Flush writes the rows and changes that the table holds in memory to files and frees
// the part of the log that kept them.
func (t *Table) Flush(ctx context.Context) error {
	if err := t.db.enterWrite(); err != nil {
		return err
	}
	defer t.db.gate.exit()
	if t.dropped.Load() {
		return fmt.Errorf("table %q: %w", t.name, ErrNotFound)
	}
	return t.db.flushTable(ctx, t, "asked")
}

// anchor returns the oldest commit that only the log makes durable (R9).
func (db *DB) anchor() Timestamp {
	// Commits on their way are above visible; take it first, so that one that becomes
	// visible meanwhile is seen in its memory rowset.
	anchor := db.snapshot() + 1
	for _, t := range db.tableList() {
		if m := t.tablet.Memory(); m.Oldest > 0 {
			anchor = min(anchor, m.Oldest)
		}
	}
	return anchor
}

// jobError takes note of an error of a flush or compaction, which may be nil. When the
// tablet's memory may not be what the manifest says, no write is taken until the store
// is opened again.
func (db *DB) jobError(err error) {
	if errors.Is(err, tablet.ErrUncertain) {
		_ = db.fail(err)
	}
}

// backgroundError reports a failed step.
func (db *DB) backgroundError(err error) {
	db.metrics.backgroundErrors.Add(1)
	db.opts.Logger.Error("background step failed, it will be retried", "error", err)
	if f := db.opts.Events.BackgroundError; f != nil {
		f(err)
	}
}
