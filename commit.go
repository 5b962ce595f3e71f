package minikudu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

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
	Updated   int64     // live rows of which columns were set
	Deleted   int64
	Ignored   int64 // rows that an Ignore operation passed over
	Unchanged int64 // upserts of live rows that set nothing
	Rejected  int64 // rows left out, see RejectedError
}

// Commit makes the rows of the batch durable and visible, all at one timestamp and
// all or nothing with regard to crashes and snapshots, over all tables of the batch.
//
// Rows that the state of their key does not allow (an insert of a live key, an update of
// a missing one) or with a bad value are left out; then the error is
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
	parts []*batchPart       // with rows, by tablet id
	ops   []*tablet.Mutation // one for each of parts

	// Memory that the next commit uses.
	encoded  []byte
	groups   []tablet.Group
	effects  []tablet.Logged
	records  []record.Part
	sections []record.Section
}

var commits = sync.Pool{New: func() any { return new(commit) }}

// end lets go of everything but memory.
func (c *commit) end() {
	c.release()
	clear(c.parts)
	clear(c.ops)
	clear(c.groups[:cap(c.groups)])
	clear(c.effects)
	clear(c.records)
	clear(c.sections)
	c.db, c.batch, c.parts, c.ops = nil, nil, c.parts[:0], c.ops[:0]
	commits.Put(c)
}

// resolve locks the keys, tablet by tablet in order of id, and works out what the
// batch does to each.
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
		c.groups = p.write(c.groups[:0])
		op, err := p.table.tablet.Plan(ctx, c.groups, c.db.opts.Limits.MaxKeyBytes, c.batch.cond)
		if err != nil {
			return p.table.tabletError(err)
		}
		c.ops = append(c.ops, op)
	}
	return nil
}

// write appends the part's groups that have rows.
func (p *batchPart) write(groups []tablet.Group) []tablet.Group {
	for _, g := range p.groups {
		if len(g.rows) > 0 {
			groups = append(groups, tablet.Group{Kind: g.op, Columns: g.columns, Values: g.values, Rows: g.rows})
		}
	}
	return groups
}

// outcome counts the rows and lists the rejected ones in order.
func (c *commit) outcome() (*Result, []RowError) {
	res := &Result{}
	rejected := slices.Clone(c.batch.bad)
	for i, op := range c.ops {
		p, n := c.parts[i], op.Counts
		res.Inserted, res.Updated, res.Deleted = res.Inserted+n.Inserted, res.Updated+n.Updated, res.Deleted+n.Deleted
		res.Ignored, res.Unchanged = res.Ignored+n.Ignored, res.Unchanged+n.Unchanged
		for _, f := range op.Failures {
			row := int(p.rows[f.Row])
			if v := (*schema.ValueError)(nil); errors.As(f.Err, &v) {
				v.Row = row
			}
			rejected = append(rejected, RowError{Row: row, Table: p.table.name, Err: f.Err})
		}
	}
	slices.SortFunc(rejected, func(a, b RowError) int { return a.Row - b.Row })
	res.Rejected = int64(len(rejected))
	return res, rejected
}

// write logs and applies the effects and waits until they are durable.
func (c *commit) write(ctx context.Context, res *Result, d Durability) error {
	if !slices.ContainsFunc(c.ops, func(o *tablet.Mutation) bool { return !o.Empty() }) {
		res.Timestamp = c.db.snapshot()
		return nil
	}
	pos, err := c.logAndApply(ctx, res)
	if err != nil {
		return err
	}
	c.release()
	return c.db.waitDurable(pos, d)
}

// payload encodes the log record. It is valid until the end of the commit.
func (c *commit) payload() ([]byte, error) {
	c.effects, c.records, c.sections = c.effects[:0], c.records[:0], c.sections[:0]
	for i, op := range c.ops {
		if op.Empty() {
			continue
		}
		t := c.parts[i].table
		from := len(c.effects)
		var err error
		if c.effects, err = op.Log(c.effects); err != nil {
			return nil, err
		}
		for k := range c.effects[from:] {
			c.sections = append(c.sections, t.section(&c.effects[from+k]))
		}
		c.records = append(c.records, record.Part{Tablet: uint64(t.tablet.ID()), SchemaVersion: t.version, Sections: c.sections[from:]})
	}
	c.encoded = record.Append(c.encoded[:0], c.records)
	return c.encoded, nil
}

// section is an effect as a section of a log record.
func (t *Table) section(l *tablet.Logged) record.Section {
	s := record.Section{Kind: record.Kind(l.Kind), Rows: l.Values[0].Len(), Columns: l.Values}
	if len(l.Columns) == len(t.columnIDs) {
		s.IDs = t.columnIDs
	} else {
		for _, c := range l.Columns {
			s.IDs = append(s.IDs, t.columnIDs[c])
		}
	}
	for i := range l.Rows {
		s.Hints = append(s.Hints, record.Hint{RowSet: uint64(l.RowSets[i]), Row: uint32(l.Rows[i])})
	}
	return s
}

// release unlocks the keys. It may be called twice.
func (c *commit) release() {
	for _, op := range c.ops {
		op.Release()
	}
}

// logAndApply gives the commit its timestamp, appends it to the log and applies its
// effects in memory, in timestamp order (R1).
func (c *commit) logAndApply(ctx context.Context, res *Result) (wal.Position, error) {
	db := c.db
	ts, pos, err := c.log(ctx)
	if err != nil {
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
	db.lastCommit.Store(int64(time.Since(db.background.opened)))
	db.metrics.commits.Add(1)
	db.metrics.rows.Add(res.Inserted + res.Updated + res.Deleted)
	res.Timestamp = ts
	return pos, nil
}

// log takes a timestamp and appends the record. It returns with DB.commit held,
// unless it fails. Effects on rowsets that left their tablet since they were looked up
// are looked up again, without the mutex.
func (c *commit) log(ctx context.Context) (Timestamp, wal.Position, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, wal.Position{}, err
		}
		payload, err := c.payload()
		if err != nil {
			return 0, wal.Position{}, err
		}
		c.db.commit.Lock()
		if !slices.ContainsFunc(c.ops, (*tablet.Mutation).Stale) {
			ts, pos, err := c.append(payload)
			if err != nil {
				c.db.commit.Unlock()
			}
			return ts, pos, err
		}
		c.db.commit.Unlock()
		for i, op := range c.ops {
			if err := op.Relocate(ctx); err != nil {
				return 0, wal.Position{}, c.parts[i].table.tabletError(err)
			}
		}
	}
}

// append appends the record to the log. DB.commit is held.
func (c *commit) append(payload []byte) (Timestamp, wal.Position, error) {
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
		return 0, pos, fmt.Errorf("writing the log: %w", err)
	}
	c.db.metrics.userBytes.Add(int64(len(payload)))
	return ts, pos, nil
}

// apply applies the effects. DB.apply is held.
func (c *commit) apply(ts Timestamp) error {
	for i, op := range c.ops {
		grew, err := op.Apply(ts)
		if err != nil {
			return err
		}
		c.db.memory.grow(grew)
		if c.parts[i].table.tablet.Full(c.db.opts.FlushBytes) || op.Deltas >= c.db.opts.FlushBytes/4 {
			c.db.background.wake()
		}
	}
	c.db.background.stir()
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
