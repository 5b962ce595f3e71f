package minikudu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minikudu/minikudu/compaction"
	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/tablet"
)

// CompactResult says what Compact did.
type CompactResult struct {
	Compactions       int
	Inputs, Outputs   int   // rowsets read and written
	BytesIn, BytesOut int64 // of rowset files
	RowsDropped       int64 // deleted rows whose bytes are gone
}

// Compact writes what the table holds in memory, then merges rowsets until the policy
// of package compaction finds no gain, rewrites those with rows that were deleted, or history
// that ended, before the table's history begins, and folds changes into the columns. Writers and readers go on meanwhile; what they change while it runs
// may be left for the next time. It shares the table with compactions in the background:
// one merges at a time, and none begins in the background until it returns.
func (t *Table) Compact(ctx context.Context) (*CompactResult, error) {
	res := &CompactResult{}
	return res, t.restrain(func() error {
		if err := t.db.flushTable(ctx, t, "asked"); err != nil {
			return err
		}
		for _, next := range []func() *step{t.planned, t.expired, t.waste(), t.folds(nil), t.planned} {
			if err := t.compact(ctx, res, next); err != nil {
				return err
			}
		}
		return nil
	})
}

// CompactAll writes what the table holds in memory and rewrites every rowset there is then,
// so that they become one sorted run without deleted rows or files of changes: the
// average height is 1. Rowsets whose keys overlap are merged in one step, which takes six
// bytes of memory for each row and as much disk as they have. Writers and readers go on
// meanwhile.
func (t *Table) CompactAll(ctx context.Context) (*CompactResult, error) {
	res := &CompactResult{}
	return res, t.restrain(func() error {
		if err := t.db.flushTable(ctx, t, "asked"); err != nil {
			return err
		}
		return t.whileOthersRest(ctx, func() error {
			next := groups(t, overlapping(t.tablet.RowSets()))
			for more := true; more; {
				var err error
				if more, err = t.compactStep(ctx, res, next); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// restrain is maintain for a merge of the whole table: none begins in the background
// meanwhile, which would merge a part of it for nothing.
func (t *Table) restrain(f func() error) error {
	return t.maintain(func() error {
		defer t.db.background.note()
		defer t.turn.hold()()
		return f()
	})
}

// planned is the merge that the policy finds worth most, nil for none.
func (t *Table) planned() *step {
	if pl := t.planner.settle(t); pl != nil {
		return &step{kind: compaction.CompactRowSet, plan: pl, score: pl.score}
	}
	return nil
}

// waste returns the merges of the rowsets that hold something to be got rid of when it is
// first called.
func (t *Table) waste() func() *step {
	var next func() *step
	return func() *step {
		if next == nil {
			next = groups(t, t.wasteful())
		}
		return next()
	}
}

// wasteful returns the rowsets that a rewrite would rid of something, each on its own.
func (t *Table) wasteful() (out [][]*diskrowset.RowSet) {
	upkeep, _ := t.tablet.Upkeep()
	for _, u := range upkeep {
		if u.Stale {
			out = append(out, []*diskrowset.RowSet{u.Set})
		}
	}
	return out
}

// overlapping returns the rowsets in groups that do not overlap each other.
func overlapping(sets []*diskrowset.RowSet) (out [][]*diskrowset.RowSet) {
	from, last := 0, ""
	for i, rs := range sets {
		m := rs.Meta()
		if i > from && string(m.MinKey) > last {
			out = append(out, sets[from:i])
			from = i
		}
		last = max(last, string(m.MaxKey))
	}
	if len(sets) > 0 {
		out = append(out, sets[from:])
	}
	return out
}

// groups returns the merges of the groups, one after the other, neighbours together
// within the policy's budget.
func groups(t *Table, list [][]*diskrowset.RowSet) func() *step {
	return func() *step {
		var inputs []*diskrowset.RowSet
		var bytes int64
		for len(list) > 0 {
			for _, rs := range list[0] {
				bytes += rs.Meta().EncodedBytes()
			}
			if len(inputs) > 0 && bytes > t.planner.options.Budget {
				break
			}
			inputs, list = append(inputs, list[0]...), list[1:]
		}
		if len(inputs) == 0 {
			return nil
		}
		return &step{kind: compaction.CompactRowSet, plan: &mergePlan{inputs: inputs}}
	}
}

// compact does the steps that next returns, until that is nil or a plan of the policy
// did not bring what it promised, and adds what they do to res. Other compactions of the
// table may come between two steps, and none while next is called and its step is done.
func (t *Table) compact(ctx context.Context, res *CompactResult, next func() *step) error {
	for more := true; more; {
		err := t.whileOthersRest(ctx, func() (err error) {
			more, err = t.compactStep(ctx, res, next)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// whileOthersRest calls f as the only one who compacts the table.
func (t *Table) whileOthersRest(ctx context.Context, f func() error) error {
	if err := t.takeTurn(ctx); err != nil {
		return err
	}
	defer t.db.background.note()
	defer t.turn.give()
	if t.dropped.Load() {
		return fmt.Errorf("table %q: %w", t.name, ErrNotFound)
	}
	return f()
}

// CompactDeltas folds the changes of columns that are in files into the columns' base data,
// rowset by rowset: major delta compaction. No names stand for all columns that changed.
// What is replaced stays readable as history; deletions and changes of other columns stay as
// they are.
func (t *Table) CompactDeltas(ctx context.Context, columns ...string) error {
	var cols []int
	if len(columns) > 0 {
		var err error
		if cols, err = t.columns(columns); err != nil {
			return err
		}
	}
	return t.maintain(func() error { return t.compact(ctx, &CompactResult{}, t.folds(cols)) })
}

// folds returns the major delta compactions of the rowsets that there are when it is first
// called, one after the other.
func (t *Table) folds(cols []int) func() *step {
	var sets []*diskrowset.RowSet
	begun := false
	return func() *step {
		if !begun {
			sets, begun = t.tablet.RowSets(), true
		}
		for len(sets) > 0 {
			rs := sets[0]
			if sets = sets[1:]; len(rs.ChangedColumns()) > 0 {
				return &step{kind: compaction.CompactMajor, rowset: rs, columns: cols}
			}
		}
		return nil
	}
}

// expiredStep is the deletion of the first history that has expired, nil for none.
func (t *Table) expiredStep(upkeep []tablet.Upkeep) *step {
	for _, u := range upkeep {
		if u.Expired > 0 {
			return &step{kind: compaction.DropHistory, rowset: u.Set}
		}
	}
	return nil
}

// expired is the next deletion of history that has expired, nil for none.
func (t *Table) expired() *step {
	upkeep, _ := t.tablet.Upkeep()
	return t.expiredStep(upkeep)
}

// compactStep does the step that next returns, and reports whether there may be more to do.
func (t *Table) compactStep(ctx context.Context, res *CompactResult, next func() *step) (more bool, err error) {
	s := next()
	if s == nil {
		return false, nil
	}
	s.table, s.reason = t, "asked"
	ctx, cancel := t.db.untilClose(ctx)
	defer cancel()
	var m merged
	switch s.kind {
	case compaction.CompactMajor:
		m, err = t.db.foldDeltas(ctx, s)
	case compaction.DropHistory:
		m, err = t.db.dropHistory(ctx, s)
	default:
		m, err = t.db.merge(ctx, s)
	}
	if err != nil {
		return false, t.db.closedError(err)
	}
	res.add(&m.Compacted)
	return m.progress, nil
}

// untilClose returns a context that also ends when the DB closes.
func (db *DB) untilClose(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(db.background.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// closedError returns err, or ErrClosed when the close of the DB is the reason.
func (db *DB) closedError(err error) error {
	if db.background.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return ErrClosed
	}
	return err
}

func (r *CompactResult) add(c *tablet.Compacted) {
	if c.Inputs == 0 {
		return
	}
	r.Compactions++
	r.Inputs, r.Outputs = r.Inputs+c.Inputs, r.Outputs+c.Outputs
	r.BytesIn, r.BytesOut = r.BytesIn+c.BytesIn, r.BytesOut+c.BytesOut
	r.RowsDropped += c.RowsIn - c.RowsOut
}

// merged is what a merge did.
type merged struct {
	tablet.Compacted
	progress bool // it brought what its plan promised, if that was the policy's
}

// merge merges the rowsets of a step's plan and reports it. The caller has the table's turn.
func (db *DB) merge(ctx context.Context, s *step) (m merged, err error) {
	t := s.table
	err = db.job(s, func(info *CompactionInfo) error {
		var err error
		m.Compacted, err = t.tablet.Compact(ctx, s.plan.inputs)
		info.Inputs, info.Outputs, info.BytesIn, info.BytesOut = m.Inputs, m.Outputs, m.BytesIn, m.BytesOut
		if err == nil {
			info.RowsDropped = m.RowsIn - m.RowsOut
			db.memory.release(m.Memory)
		}
		return err
	})
	if err != nil {
		return m, err
	}
	if m.progress = true; s.plan.metas != nil {
		m.progress = t.planner.merged(t, s.plan, m.Sets)
	}
	if !s.plan.waste && s.reason != "asked" {
		t.planner.spend(m.BytesIn)
	}
	return m, db.trimLog(ctx)
}

// mergeDeltas merges the files of changes of the step's rowset and reports it.
func (db *DB) mergeDeltas(ctx context.Context, s *step) error {
	var in int64
	err := db.job(s, func(info *CompactionInfo) error {
		c, err := s.table.tablet.CompactMinor(ctx, s.rowset)
		info.Inputs, info.Outputs, info.BytesIn, info.BytesOut = c.Inputs, c.Outputs, c.BytesIn, c.BytesOut
		in = c.BytesIn
		return err
	})
	if err == nil {
		s.table.planner.spend(in)
	}
	return err
}

// foldDeltas folds the changes of the step's rowset that are in files into its columns.
func (db *DB) foldDeltas(ctx context.Context, s *step) (m merged, err error) {
	m.progress = true
	err = db.job(s, func(info *CompactionInfo) (err error) {
		m.Compacted, err = s.table.tablet.CompactMajor(ctx, s.rowset, s.columns)
		info.Inputs, info.Outputs, info.BytesIn, info.BytesOut = m.Inputs, m.Outputs, m.BytesIn, m.BytesOut
		return err
	})
	if err == nil && s.reason != "asked" {
		s.table.planner.spend(m.BytesIn)
	}
	return m, err
}

// dropHistory deletes the history of the step's rowset that has expired.
func (db *DB) dropHistory(ctx context.Context, s *step) (m merged, err error) {
	m.progress = true
	return m, db.job(s, func(info *CompactionInfo) (err error) {
		info.Inputs = 1
		info.BytesIn, err = s.table.tablet.DropHistory(ctx, s.rowset)
		return err
	})
}

// job does a step that compacts and reports it.
func (db *DB) job(s *step, do func(info *CompactionInfo) error) error {
	b := db.background
	b.compactions.Add(1)
	defer b.compactions.Add(-1)
	info := CompactionInfo{Job: b.jobs.Add(1), Table: s.table.name, Kind: s.kind, Reason: s.reason, Score: s.score}
	if f := db.opts.Events.CompactionBegin; f != nil {
		f(info)
	}
	begin := time.Now()
	err := do(&info)
	info.Duration, info.Err = time.Since(begin), err
	db.jobError(err)
	if err == nil {
		db.metrics.compacted(&info)
	}
	if f := db.opts.Events.CompactionEnd; f != nil {
		f(info)
	}
	db.opts.Logger.Info("compaction", "info", info.String())
	if err != nil {
		return fmt.Errorf("compacting: %w", s.table.tabletError(err))
	}
	return nil
}
