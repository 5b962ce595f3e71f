package minikudu

import (
	"context"
	"fmt"
	"iter"
)

// DiffQuery says which changes Diff reads.
type DiffQuery struct {
	// From and To bound the commits: after From, up to To. Both are within the table's
	// history; see Query.AsOf. From 0 stands for the time before the first commit, To 0
	// for now.
	From, To Timestamp
	// Columns to deliver, in this order; nil means all but the generated id.
	Columns []string
	// Where selects rows by the cells that are delivered; nil selects all.
	Where Expr
	// Reverse delivers the rows in descending order of key, not ascending.
	Reverse bool
	// LiveOnly leaves deleted rows out.
	LiveOnly bool
	// Limit is the number of rows delivered at most; 0 means all.
	Limit int64
	// BatchRows is the number of rows of a batch at most; 0 leaves it to the engine.
	BatchRows int
}

// DiffBatch is rows that changed. It lives until the next one.
type DiffBatch struct {
	*Batch
	deleted []bool
	count   int
}

// Deleted reports whether row i was deleted: it was there at From, and is not at To. Its
// cells are those it had when it was first deleted after From.
func (b *DiffBatch) Deleted(i int) bool { return b.deleted[i] }

// NumDeleted returns how many of the rows were deleted.
func (b *DiffBatch) NumDeleted() int { return b.count }

// Diff reads what commits changed: every row, once and in order of key, that some commit
// in the interval inserted, updated or deleted, as it is at the interval's end. A row that
// got its old cells back has changed. A row that was inserted and deleted within the
// interval is not there. Following intervals lead from one state to the next, so a copy
// of the table is kept up to date by upserting and deleting what they deliver; where the
// table has immutable columns, by deleting a row before it is upserted.
func (t *Table) Diff(ctx context.Context, q DiffQuery) iter.Seq2[*DiffBatch, error] {
	return func(yield func(*DiffBatch, error) bool) {
		if err := t.diff(ctx, &q, func(b *DiffBatch) bool { return yield(b, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

func (t *Table) diff(ctx context.Context, q *DiffQuery, yield func(*DiffBatch) bool) error {
	if err := t.begin(); err != nil {
		return err
	}
	defer t.db.gate.exit()
	columns, err := t.columns(q.Columns)
	if err != nil {
		return err
	}
	scan := Query{Where: q.Where, Order: KeyOrder, Limit: q.Limit, BatchRows: q.BatchRows, AsOf: q.To}
	if q.Reverse {
		scan.Order = KeyReverse
	}
	p, err := t.plan(&scan, columns)
	if err != nil {
		return err
	}
	if err := p.since(q.From); err != nil {
		p.finish()
		return err
	}
	if p.spec.Time.Lo > 0 {
		defer t.db.readers.End(p.spec.Time.Lo)
	}
	return p.runDiff(ctx, q, yield)
}

// since makes the plan one of the changes after a time, and registers that.
func (p *plan) since(from Timestamp) error {
	db, to := p.table.db, p.spec.Time.Hi
	switch {
	case from == 0:
		return nil // before the first commit there was nothing
	case from > to:
		return fmt.Errorf("%w: changes from %s to %s, which is before", ErrInvalidArgument, moment(from), moment(to))
	}
	from, err := db.beginRead(from, []*Table{p.table})
	p.spec.Time.Lo = from
	return err
}

func (p *plan) runDiff(ctx context.Context, q *DiffQuery, yield func(*DiffBatch) bool) error {
	out := &DiffBatch{}
	p.live = q.LiveOnly
	return p.runOutput(ctx, q.Limit, func(o *output) bool {
		out.Batch, out.count = o.result, len(o.deleted)
		out.deleted = append(out.deleted[:0], make([]bool, o.result.Len())...)
		for _, i := range o.deleted {
			out.deleted[i] = true
		}
		return yield(out)
	})
}
