package minikudu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/minikudu/minikudu/internal/manifest"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/record"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/tablet"
	"github.com/minikudu/minikudu/wal"
)

// Timestamp is the time of a commit, and a snapshot: see package mvcc. It is
// microseconds since 1970 times 4096, plus a counter.
type Timestamp = mvcc.Timestamp

// CommitOptions vary one commit. A nil *CommitOptions is the zero value.
type CommitOptions struct {
	// Durability of this commit; DurabilityDefault is the DB's.
	Durability Durability
	// AllOrNothing commits nothing when any row would be rejected.
	AllOrNothing bool
}

// Result says what a commit did.
type Result struct {
	Timestamp Timestamp // of the commit; of the newest visible one when nothing was written
	Inserted  int64     // rows put
	Ignored   int64     // insert-ignore rows whose key was live
	Rejected  int64     // rows left out, see RejectedError
}

// Commit makes the rows of the batch durable and visible, all at one timestamp and
// all or nothing with regard to crashes and snapshots, over all tables of the batch.
//
// Rows that cannot be put (a live key, a bad value) are left out; then the error is
// a [RejectedError], while the result counts what was committed. Any other error
// means that nothing was committed, except that after a failed write or sync of the
// log the outcome is known only after a reopen; the DB then refuses further writes.
// The context is looked at before the commit is logged, not after.
func (db *DB) Commit(ctx context.Context, b *WriteBatch, o *CommitOptions) (*Result, error) {
	if o == nil {
		o = &CommitOptions{}
	}
	if err := db.enterWrite(); err != nil {
		return nil, err
	}
	defer db.gate.exit()
	size := b.Size()
	if size > db.opts.MaxBatchBytes {
		return nil, fmt.Errorf("%w: a batch of about %d bytes, at most %d (Options.MaxBatchBytes)", ErrTooLarge, size, db.opts.MaxBatchBytes)
	}
	if err := db.memory.admit(ctx, size); err != nil {
		return nil, err
	}
	c := commits.Get().(*commit)
	c.db, c.batch = db, b
	defer c.end()
	if err := c.resolve(ctx); err != nil {
		return nil, err
	}
	res, rejected := c.outcome()
	if len(rejected) > 0 && o.AllOrNothing {
		return &Result{Timestamp: db.snapshot(), Rejected: int64(len(rejected))}, &RejectedError{Rows: rejected}
	}
	if err := c.write(ctx, res, o.Durability); err != nil {
		return nil, err
	}
	if len(rejected) > 0 {
		return res, &RejectedError{Rows: rejected, Applied: true}
	}
	return res, nil
}

// commit is one batch on its way.
type commit struct {
	db    *DB
	batch *WriteBatch
	parts []*batchPart // with rows, by tablet id
	ops   []*tablet.Op // one for each of parts

	// Memory that the next commit uses.
	record   []record.Part
	sections []record.Section
	encoded  []byte
}

var commits = sync.Pool{New: func() any { return new(commit) }}

// end lets go of everything but memory.
func (c *commit) end() {
	c.release()
	clear(c.parts)
	clear(c.ops)
	clear(c.record)
	clear(c.sections)
	c.db, c.batch, c.parts, c.ops = nil, nil, c.parts[:0], c.ops[:0]
	commits.Put(c)
}

// resolve locks the keys, tablet by tablet in order of id, and finds the live ones.
func (c *commit) resolve(ctx context.Context) error {
	for _, p := range c.batch.parts {
		switch {
		case len(p.rows) == 0: // of an earlier use of the batch
			continue
		case p.table.db != c.db:
			return fmt.Errorf("%w: table %q belongs to another DB", ErrInvalidArgument, p.table.name)
		case p.table.dropped.Load():
			return fmt.Errorf("table %q: %w", p.table.name, ErrNotFound)
		}
		c.parts = append(c.parts, p)
	}
	slices.SortFunc(c.parts, func(a, b *batchPart) int { return int(a.table.tablet.ID()) - int(b.table.tablet.ID()) })
	for _, p := range c.parts {
		op, err := p.table.tablet.Resolve(ctx, p.columns, c.db.opts.Limits.MaxKeyBytes)
		if err != nil {
			return p.table.tabletError(err)
		}
		c.ops = append(c.ops, op)
	}
	return nil
}

// outcome counts the rows and lists the rejected ones in order.
func (c *commit) outcome() (*Result, []RowError) {
	res := &Result{}
	rejected := slices.Clone(c.batch.bad)
	for i, op := range c.ops {
		p := c.parts[i]
		res.Inserted += int64(op.Rows())
		reject := func(row int32, err error) {
			rejected = append(rejected, RowError{Row: int(p.rows[row]), Table: p.table.name, Err: err})
		}
		for _, row := range op.Present {
			if p.ignore[row] {
				res.Ignored++
			} else {
				reject(row, ErrAlreadyPresent)
			}
		}
		for _, row := range op.TooLong {
			reject(row, &schema.ValueError{Row: int(p.rows[row]), Column: p.table.schema.Column(0).Name,
				Reason: fmt.Sprintf("encoded key exceeds %d bytes", c.db.opts.Limits.MaxKeyBytes)})
		}
	}
	slices.SortFunc(rejected, func(a, b RowError) int { return a.Row - b.Row })
	res.Rejected = int64(len(rejected))
	return res, rejected
}

// write logs and applies the rows and waits until they are durable.
func (c *commit) write(ctx context.Context, res *Result, d Durability) error {
	if res.Inserted == 0 {
		res.Timestamp = c.db.snapshot()
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	pos, err := c.logAndApply(c.payload(), res)
	if err != nil {
		return err
	}
	c.release()
	return c.db.waitDurable(pos, d)
}

// payload encodes the log record. It is valid until the end of the commit.
func (c *commit) payload() []byte {
	c.record, c.sections = c.record[:0], slices.Grow(c.sections[:0], len(c.ops)) // parts refer to sections
	for i, op := range c.ops {
		if op.Rows() == 0 {
			continue
		}
		t, n := c.parts[i].table, len(c.sections)
		c.sections = append(c.sections, record.Section{Kind: record.Put, Rows: op.Rows(), IDs: t.columnIDs, Columns: op.Columns})
		c.record = append(c.record, record.Part{Tablet: uint64(t.tablet.ID()), SchemaVersion: t.version, Sections: c.sections[n : n+1]})
	}
	c.encoded = record.Append(c.encoded[:0], c.record)
	return c.encoded
}

// release unlocks the keys. It may be called twice.
func (c *commit) release() {
	for _, op := range c.ops {
		op.Release()
	}
}

// logAndApply gives the commit its timestamp, appends it to the log and puts its
// rows into memory, in timestamp order (R1).
func (c *commit) logAndApply(payload []byte, res *Result) (wal.Position, error) {
	db := c.db
	db.commit.Lock()
	ts, pos, err := c.log(payload)
	if err != nil {
		db.commit.Unlock()
		return pos, err
	}
	for _, op := range c.ops {
		op.Pin()
	}
	db.apply.Lock()
	db.commit.Unlock()
	defer db.apply.Unlock()
	if err := c.apply(ts); err != nil {
		// The log has the commit and memory has not: only a reopen can mend that.
		return pos, db.fail(fmt.Errorf("applying a logged commit: %w", err))
	}
	db.visible.Store(uint64(ts))
	db.metrics.commits.Add(1)
	db.metrics.rows.Add(res.Inserted)
	res.Timestamp = ts
	return pos, nil
}

// log takes a timestamp and appends the record. DB.commit is held.
func (c *commit) log(payload []byte) (Timestamp, wal.Position, error) {
	for _, p := range c.parts {
		if p.table.dropped.Load() {
			return 0, wal.Position{}, fmt.Errorf("table %q: %w", p.table.name, ErrNotFound)
		}
	}
	ts, err := c.db.clock.Next()
	if err != nil {
		return 0, wal.Position{}, err
	}
	pos, err := c.db.log.Append(&wal.Record{Type: wal.TypeBatch, Timestamp: ts, Payload: payload})
	if err != nil {
		return 0, pos, c.db.logError(err)
	}
	return ts, pos, nil
}

// apply puts the rows into the pinned memory rowsets. DB.apply is held.
func (c *commit) apply(ts Timestamp) error {
	for _, op := range c.ops {
		before := op.TargetBytes()
		if err := op.Apply(ts); err != nil {
			return err
		}
		after := op.TargetBytes()
		c.db.memory.grow(after - before)
		if after >= c.db.opts.FlushBytes {
			c.db.background.wake()
		}
	}
	return nil
}

// waitDurable waits until the log is as durable through pos as asked.
func (db *DB) waitDurable(pos wal.Position, d Durability) error {
	if d == DurabilityDefault {
		d = db.opts.Durability
	}
	mode := wal.Sync
	switch d {
	case Interval:
		mode = wal.Interval
	case NoSync:
		mode = wal.NoSync
	}
	return db.logError(db.log.Wait(context.Background(), pos, mode))
}

// snapshot returns the newest visible commit.
func (db *DB) snapshot() Timestamp { return Timestamp(db.visible.Load()) }

// enterWrite begins a call that writes.
func (db *DB) enterWrite() error {
	if err := db.gate.enter(); err != nil {
		return err
	}
	err := db.failed()
	if db.opts.ReadOnly {
		err = ErrReadOnly
	}
	if err != nil {
		db.gate.exit()
	}
	return err
}

// logError takes note of an error of the log, which may be nil. When it is not known
// what the log holds on disk, no write is taken until the store is opened again; a log
// that merely found no room for a record takes the next one when there is.
func (db *DB) logError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wal.ErrFailed):
		return db.fail(fmt.Errorf("writing the log: %w", err))
	}
	return fmt.Errorf("writing the log: %w", err)
}

// edit writes an edit to the manifest. When it is not known whether it is on disk, no
// write is taken until the store is opened again: a row could be committed to a table
// that is dropped already.
func (db *DB) edit(ctx context.Context, e *manifest.Edit) error {
	err := db.manifest.Apply(ctx, e)
	if errors.Is(err, manifest.ErrFailed) {
		return db.fail(err)
	}
	return err
}

// fail makes every later write return err, until the DB is opened again.
func (db *DB) fail(err error) error {
	db.failure.CompareAndSwap(nil, &err)
	return err
}

// failed returns why the DB takes no writes, nil when it does.
func (db *DB) failed() error {
	if p := db.failure.Load(); p != nil {
		return fmt.Errorf("no writes until the store is opened again: %w", *p)
	}
	return nil
}
