package minikudu

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/tablet"
	"github.com/minikudu/minikudu/vector"
)

// Batch is rows of a scan's result: see package vector.
type Batch = vector.Batch

// Expr is a filter expression: see package predicate.
type Expr = predicate.Expr

// Order is the order of a scan's rows.
type Order = rowset.Order

// The orders.
const (
	Unordered  = rowset.Unordered  // storage order, the cheapest
	KeyOrder   = rowset.KeyOrder   // ascending primary key
	KeyReverse = rowset.KeyReverse // descending primary key
)

// Query says what a scan reads. The zero value reads every row.
type Query struct {
	// Columns to deliver, in this order; nil means all but the generated id, an empty
	// list delivers rows without columns, which still can be counted.
	Columns []string
	// Where selects rows; nil selects all.
	Where Expr
	// Order of the rows. Default Unordered.
	Order Order
	// Limit is the number of rows delivered at most; 0 means all.
	Limit int64
	// BatchRows is the number of rows of a batch at most; 0 leaves it to the engine.
	BatchRows int
	// AsOf reads the state at a time: the commits at or before it. It may be the time of
	// a commit, of a Snapshot or pin, or TimestampAt any moment within the table's
	// history; a time before that is ErrHistoryExpired, one in the future
	// ErrInvalidArgument. 0 reads the newest state.
	AsOf Timestamp
	// NoPrune turns off skipping by zone maps and key bounds, to check that it
	// changes no answer.
	NoPrune bool
	// Explain, when set, receives what the scan considered, skipped and decoded.
	Explain *Explain
}

// maxBatchBytes bounds the variable-length bytes of a delivered batch. Offsets have
// 32 bits, and a batch should fit a processor's cache rather than fill memory.
const maxBatchBytes = 8 * mib

// plan is a query bound to a table.
type plan struct {
	table   *Table
	columns []int
	spec    rowset.ScanSpec
	begun   time.Time
	empty   bool // no row can qualify
	live    bool // leave rows out that a diff shows as deleted
	explain *Explain
}

// check refuses what makes no sense.
func (q *Query) check() error {
	switch {
	case q.Limit < 0:
		return fmt.Errorf("%w: a limit of %d rows", ErrInvalidArgument, q.Limit)
	case q.BatchRows < 0:
		return fmt.Errorf("%w: batches of %d rows", ErrInvalidArgument, q.BatchRows)
	case q.Order > KeyReverse:
		return fmt.Errorf("%w: unknown order %d", ErrInvalidArgument, q.Order)
	}
	return nil
}

// plan binds the query. columns are schema columns that the scan is to deliver. Unless it
// fails, finish must be called.
func (t *Table) plan(q *Query, columns []int) (*plan, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	filter, err := predicate.Bind(q.Where, t.schema)
	if err != nil {
		return nil, err
	}
	p := &plan{table: t, columns: columns, explain: q.Explain, begun: time.Now()}
	p.spec = rowset.ScanSpec{Schema: t.schema, Columns: columns, Filter: filter, Order: q.Order,
		MaxRows: q.BatchRows, Stats: rowset.NewStats(t.schema.Len()), NoPrune: q.NoPrune}
	if filter != nil && !q.NoPrune {
		p.spec.Lower, p.spec.Upper, p.empty = filter.KeyRange()
	}
	// The snapshot is taken and registered before the tablet loads its stores (trap: a
	// commit between the two would be missing, or history that it needs be gone).
	at, err := t.db.beginRead(q.AsOf, []*Table{t})
	p.spec.Time = mvcc.At(at)
	return p, err
}

// Scan reads rows:
//
//	for batch, err := range table.Scan(ctx, minikudu.Query{Where: predicate.Gt("delay", 60)}) {
//		if err != nil {
//			return err
//		}
//		…
//	}
//
// The rows are those of one snapshot, taken when the loop begins. A batch has at
// least one row and lives until the next one; [Batch.Detach] copies it. An error
// ends the loop after it was delivered; it can be ErrClosed when the DB is closed
// meanwhile. The context is looked at once a batch.
func (t *Table) Scan(ctx context.Context, q Query) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		if err := t.scan(ctx, &q, func(b *Batch) bool { return yield(b, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

// scan runs the query and calls yield for every batch until it returns false.
func (t *Table) scan(ctx context.Context, q *Query, yield func(*Batch) bool) error {
	if err := t.begin(); err != nil {
		return err
	}
	defer t.db.gate.exit()
	columns, err := t.columns(q.Columns)
	if err != nil {
		return err
	}
	p, err := t.plan(q, columns)
	if err != nil {
		return err
	}
	return p.run(ctx, q.Limit, yield)
}

// scanKeys runs the query over the encoded keys in [lower, upper).
func (t *Table) scanKeys(ctx context.Context, q *Query, columns []int, lower, upper []byte, yield func(*Batch) bool) error {
	if err := t.begin(); err != nil {
		return err
	}
	defer t.db.gate.exit()
	p, err := t.plan(q, columns)
	if err != nil {
		return err
	}
	p.spec.Lower, p.spec.Upper = lower, upper
	return p.run(ctx, q.Limit, yield)
}

// run calls yield for every batch of the plan's rows until it returns false.
func (p *plan) run(ctx context.Context, limit int64, yield func(*Batch) bool) error {
	return p.runOutput(ctx, limit, func(o *output) bool { return yield(o.result) })
}

// runOutput is run with all that is known of a batch.
func (p *plan) runOutput(ctx context.Context, limit int64, yield func(*output) bool) error {
	defer p.finish()
	if p.empty {
		return nil
	}
	it, err := p.table.tablet.Scan(ctx, &p.spec)
	if err != nil {
		return p.table.tabletError(err)
	}
	defer it.Close()
	out := p.newOutput(limit)
	for more := true; more; {
		b, err := p.next(ctx, it)
		if err != nil || b == nil {
			return err
		}
		if more, err = out.deliver(b, yield); err != nil {
			return err
		}
	}
	return nil
}

// next returns the scan's next batch unless the DB was closed or ctx has ended.
func (p *plan) next(ctx context.Context, it rowset.Iterator) (*rowset.Batch, error) {
	if p.table.db.gate.isShut() {
		return nil, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if most := p.table.db.opts.MaxReaderAge; most > 0 && time.Since(p.begun) > most {
		return nil, fmt.Errorf("table %q: %w: a scan of more than %v (Options.MaxReaderAge)", p.table.name, ErrReaderExpired, most)
	}
	b, err := it.Next(ctx)
	if err != nil {
		return nil, p.table.tabletError(err)
	}
	return b, nil
}

// tabletError says which table an error of its tablet concerns. A table that was
// dropped meanwhile is a missing one.
func (t *Table) tabletError(err error) error {
	if errors.Is(err, tablet.ErrClosed) && t.dropped.Load() {
		err = ErrNotFound
	}
	return fmt.Errorf("table %q: %w", t.name, err)
}

// finish lets go of the snapshot and hands the counters over.
func (p *plan) finish() {
	p.table.db.readers.End(p.spec.Time.Hi)
	m := &p.table.db.metrics
	m.scans.Add(1)
	m.scannedRows.Add(p.spec.Stats.RowsSelected.Load())
	if p.explain != nil {
		p.explain.fill(p.table.schema, p.spec.Stats)
	}
}

// output turns the engine's batches, with selections and dictionaries, into dense
// and plain ones.
type output struct {
	columns []schema.Column
	live    bool  // leave deleted rows out
	left    int64 // rows still wanted, -1 for all
	rows    []int32
	deleted []int32          // of a diff: rows of the result that are deleted
	vectors []*vector.Vector // scratch, reused
	result  *vector.Batch
}

func (p *plan) newOutput(limit int64) *output {
	o := &output{left: -1, live: p.live}
	if limit > 0 {
		o.left = limit
	}
	for _, i := range p.columns {
		o.columns = append(o.columns, *p.table.schema.Column(i))
		o.vectors = append(o.vectors, vector.New(p.table.schema.Column(i).Kind(), 0))
	}
	o.result = vector.NewBatch(o.columns, make([]*vector.Vector, len(o.columns)), 0)
	return o
}

// deliver yields the selected rows of b and reports whether the scan goes on.
func (o *output) deliver(b *rowset.Batch, yield func(*output) bool) (more bool, err error) {
	if b.Selected == b.Rows && o.takesWhole(b) {
		o.take(int64(b.Rows))
		o.result.Reset(b.Columns, b.Rows)
		o.deleted = b.AppendDeleted(o.deleted[:0], nil)
		return yield(o) && o.left != 0, nil
	}
	o.rows = b.AppendSelected(o.rows[:0])
	if o.live && b.Deleted != nil {
		o.rows = slices.DeleteFunc(o.rows, func(r int32) bool { return b.Deleted.Get(int(r)) })
	}
	if o.left >= 0 && int64(len(o.rows)) > o.left {
		o.rows = o.rows[:o.left]
	}
	for rest := o.rows; len(rest) > 0; {
		n := fitting(b.Columns, rest)
		if err := o.gather(b, rest[:n]); err != nil {
			return false, err
		}
		o.deleted = b.AppendDeleted(o.deleted[:0], rest[:n])
		rest = rest[n:]
		o.take(int64(n))
		if !yield(o) {
			return false, nil
		}
	}
	return o.left != 0, nil
}

func (o *output) take(n int64) {
	if o.left > 0 {
		o.left -= n
	}
}

// takesWhole reports whether b can be delivered as it is.
func (o *output) takesWhole(b *rowset.Batch) bool {
	if o.left >= 0 && int64(b.Rows) > o.left || o.live && b.Deleted != nil {
		return false
	}
	bytes := 0
	for _, v := range b.Columns {
		switch {
		case v.Dict() != nil:
			return false
		case v.Kind() == schema.KindBytes:
			bytes += cellBytes(v)
		}
	}
	return bytes <= maxBatchBytes || b.Rows == 1
}

// fitting returns how many of the rows, one at least, have no more than
// maxBatchBytes of variable-length cells.
func fitting(columns []*vector.Vector, rows []int32) int {
	if atMost(columns, rows) <= maxBatchBytes {
		return len(rows)
	}
	total := 0
	for k, r := range rows {
		for _, v := range columns {
			if v.Kind() == schema.KindBytes {
				total += len(v.BytesAt(int(r)))
			}
		}
		if total > maxBatchBytes && k > 0 {
			return k
		}
	}
	return len(rows)
}

// atMost returns an upper bound of the bytes of the rows' variable-length cells.
func atMost(columns []*vector.Vector, rows []int32) (n int) {
	for _, v := range columns {
		switch {
		case v.Kind() != schema.KindBytes:
		case v.Dict() == nil:
			n += cellBytes(v)
		default:
			for _, r := range rows {
				n += len(v.BytesAt(int(r)))
			}
		}
	}
	return n
}

// cellBytes returns the bytes of all cells of a plain vector of bytes.
func cellBytes(v *vector.Vector) int {
	offsets := v.Offsets()
	return int(offsets[v.Len()] - offsets[0])
}

// gather fills the result with the given rows of b.
func (o *output) gather(b *rowset.Batch, rows []int32) error {
	for i, v := range b.Columns {
		o.vectors[i].Reset(v.Kind())
		if err := o.vectors[i].AppendRows(v, rows); err != nil {
			return err
		}
	}
	o.result.Reset(o.vectors, len(rows))
	return nil
}
