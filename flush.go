package minikudu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/tablet"
)

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
	db.background.flushes.Add(1)
	defer db.background.flushes.Add(-1)
	info := FlushInfo{Job: db.background.jobs.Add(1), Table: t.name, Reason: reason}
	if f := db.opts.Events.FlushBegin; f != nil {
		f(info)
	}
	begin := time.Now()
	f, err := t.tablet.Flush(ctx)
	info.Rows, info.Memory, info.RowSets, info.Bytes = f.Rows, f.Memory, f.Files, f.Bytes
	info.Duration, info.Err = time.Since(begin), err
	if err == nil {
		db.metrics.flushed(f)
	}
	err = db.flushed(ctx, t, f, info.Duration, err)
	if end := db.opts.Events.FlushEnd; end != nil {
		end(info)
	}
	db.opts.Logger.Info("flush", "info", info.String())
	if err != nil {
		return fmt.Errorf("flushing: %w", t.tabletError(err))
	}
	return nil
}

// flushDeltas writes the changes of a disk rowset and reports it. Where there are none,
// or the rowset is being compacted, there is nothing to do or to report.
func (db *DB) flushDeltas(ctx context.Context, t *Table, rs *diskrowset.RowSet, reason string) error {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	if rs.MemoryBytes() == 0 || t.tablet.Busy(rs) {
		return nil
	}
	db.background.flushes.Add(1)
	defer db.background.flushes.Add(-1)
	info := DeltaFlushInfo{Job: db.background.jobs.Add(1), Table: t.name, Reason: reason, RowSet: uint64(rs.ID())}
	if f := db.opts.Events.DeltaFlushBegin; f != nil {
		f(info)
	}
	begin := time.Now()
	f, err := t.tablet.FlushDeltas(ctx, rs)
	info.Changes, info.Memory, info.Bytes = f.Rows, f.Memory, f.Bytes
	info.Duration, info.Err = time.Since(begin), err
	if err == nil && f.Files > 0 {
		db.metrics.deltaFlushes.Add(1)
		db.metrics.deltaBytes.Add(f.Bytes)
	}
	err = db.flushed(ctx, t, f, info.Duration, err)
	if end := db.opts.Events.DeltaFlushEnd; end != nil {
		end(info)
	}
	db.opts.Logger.Info("delta flush", "info", info.String())
	if err != nil {
		return fmt.Errorf("flushing changes: %w", t.tabletError(err))
	}
	return nil
}

// flushed does what follows every flush, given its error, and returns that or its own.
func (db *DB) flushed(ctx context.Context, t *Table, f tablet.Flushed, took time.Duration, err error) error {
	db.jobError(err)
	if err != nil {
		return err
	}
	db.memory.shrink(f.Memory, took)
	t.planner.earn(f.Bytes, time.Now())
	db.background.note()
	return db.trimLog(ctx)
}

// flushTable writes everything the table holds in memory now.
func (db *DB) flushTable(ctx context.Context, t *Table, reason string) error {
	db.rotate(t)
	for t.tablet.Memory().Rotated > 0 {
		if err := db.flushOne(ctx, t, reason); err != nil {
			return err
		}
	}
	return db.flushChanges(ctx, t, reason)
}

// flushChanges writes the changes of disk rowsets that the table holds in memory now.
// Those of the inputs of a compaction are written when it has ended.
func (db *DB) flushChanges(ctx context.Context, t *Table, reason string) error {
	now := db.snapshot()
	if err := db.flushChangesBeside(ctx, t, reason); err != nil {
		return err
	}
	if t.changedBefore(now) {
		if err := t.takeTurn(ctx); err != nil {
			return err
		}
		defer t.turn.give()
		if err := db.flushChangesBeside(ctx, t, reason); err != nil {
			return err
		}
	}
	return db.trimLog(ctx) // replay may have flushed everything and left the log
}

// flushChangesBeside writes the changes of disk rowsets that are not being compacted.
func (db *DB) flushChangesBeside(ctx context.Context, t *Table, reason string) error {
	for _, rs := range t.tablet.RowSets() {
		if err := db.flushDeltas(ctx, t, rs, reason); err != nil {
			return err
		}
	}
	return nil
}

// changedBefore reports whether a disk rowset has changes in memory up to the time.
func (t *Table) changedBefore(now Timestamp) bool {
	for _, rs := range t.tablet.RowSets() {
		if first := rs.OldestChange(); first > 0 && first <= now {
			return true
		}
	}
	return false
}

// Flush writes the rows and changes that the table holds in memory to files and frees
// the part of the log that kept them. It first waits for a compaction in progress whose
// inputs have changes in memory, or until ctx ends.
func (t *Table) Flush(ctx context.Context) error {
	return t.maintain(func() error { return t.db.flushTable(ctx, t, "asked") })
}

// FlushDeltas is Flush for the changes of rows in files only: rows in memory stay there.
func (t *Table) FlushDeltas(ctx context.Context) error {
	return t.maintain(func() error { return t.db.flushChanges(ctx, t, "asked") })
}

// maintain calls f, which works on the table's files.
func (t *Table) maintain(f func() error) error {
	if err := t.db.enterWrite(); err != nil {
		return err
	}
	defer t.db.gate.exit()
	if t.dropped.Load() {
		return fmt.Errorf("table %q: %w", t.name, ErrNotFound)
	}
	return f()
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
