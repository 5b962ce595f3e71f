package minikudu

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/tablet"
	"github.com/minikudu/minikudu/vector"
)

// WhereOptions vary an update or delete by predicate. A nil *WhereOptions is the zero
// value.
type WhereOptions struct {
	// BatchRows is the number of rows that are committed together at most. Default
	// 10,000. A batch is smaller where it would exceed half of Options.MaxBatchBytes.
	BatchRows int
	// Atomic commits all rows together. More than Options.MaxBatchBytes is
	// ErrTooLarge, and then nothing is done. Default false.
	Atomic bool
	// Durability of the commits; DurabilityDefault is the DB's.
	Durability Durability
}

const defaultWhereRows = 10_000

// WhereResult says what an update or delete by predicate did.
type WhereResult struct {
	Matched   int64     // rows that qualified when they were chosen
	Changed   int64     // of those, rows that were set or deleted
	Timestamp Timestamp // of the last commit; of the snapshot when nothing was changed
}

// UpdateWhere sets columns of all rows that satisfy the filter; nil selects all. A
// value is converted like that of an insert, nil is null. A row counts as changed also
// when it had the values already.
//
// The rows are chosen at one snapshot, and rows that come to satisfy the filter later
// are left alone. They are committed in batches while the scan goes on, each batch
// atomic by itself: unless o.Atomic is set, readers can see some of the batches
// without the others, and after an error those committed stay; the result, which is
// not nil then, counts them. A row that another commit changed since the snapshot is
// tested again, and set only if it still satisfies the filter.
func (db *DB) UpdateWhere(ctx context.Context, t *Table, where Expr, set map[string]any, o *WhereOptions) (*WhereResult, error) {
	w := &whereWrite{db: db, table: t, op: OpUpdateIgnore}
	if err := w.bindSet(set); err != nil {
		return nil, err
	}
	return w.run(ctx, where, o)
}

// DeleteWhere deletes all rows that satisfy the filter; nil selects all. See
// [DB.UpdateWhere] for the batches in which that happens.
func (db *DB) DeleteWhere(ctx context.Context, t *Table, where Expr, o *WhereOptions) (*WhereResult, error) {
	w := &whereWrite{db: db, table: t, op: OpDeleteIgnore}
	return w.run(ctx, where, o)
}

// whereWrite is an update or delete by predicate. A goroutine scans and fills batches
// while others are committed: no more than three exist at a time.
type whereWrite struct {
	db    *DB
	table *Table
	op    Op
	names []string       // of the columns set
	cells []schema.Value // their values

	opts     WhereOptions
	plan     *plan
	rowBytes int64 // size of a row in a batch, without the text in its key
	maxBytes int64 // of a batch
	result   WhereResult
}

// bindSet converts the values. It refuses columns that no update can set.
func (w *whereWrite) bindSet(set map[string]any) error {
	if len(set) == 0 {
		return &schema.ValueError{Row: -1, Reason: "nothing to update"}
	}
	t := w.table
	var keys []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		i := t.schema.Find(name)
		if i < 0 {
			return t.columnError(name)
		}
		c := t.schema.Column(i)
		switch {
		case i < t.schema.NumKey():
			keys = append(keys, schema.QuoteName(name))
			continue
		case c.Immutable:
			return fmt.Errorf("column %q: %w", name, ErrImmutable)
		}
		x, err := c.ConvertLimit(set[name], t.db.opts.Limits.MaxCellBytes)
		if err != nil {
			return err
		}
		w.names, w.cells = append(w.names, name), append(w.cells, x)
	}
	if len(keys) > 0 {
		return &schema.ValueError{Row: -1, Reason: "an update cannot set key columns: " + strings.Join(keys, ", ")}
	}
	return nil
}

// bind checks the options and plans the scan.
func (w *whereWrite) bind(where Expr, o *WhereOptions) (err error) {
	if o != nil {
		w.opts = *o
	}
	if w.opts.BatchRows < 0 {
		return fmt.Errorf("%w: batches of %d rows", ErrInvalidArgument, w.opts.BatchRows)
	}
	if w.opts.BatchRows == 0 {
		w.opts.BatchRows = defaultWhereRows
	}
	w.maxBytes = w.db.opts.MaxBatchBytes / 2
	if w.opts.Atomic {
		w.maxBytes *= 2
	}
	keys := make([]int, w.table.schema.NumKey())
	for i := range keys {
		keys[i] = i
		w.rowBytes += int64(w.table.schema.Column(i).Kind().Width()) + cellOverhead
	}
	for i, x := range w.cells {
		w.rowBytes += int64(w.table.schema.Column(w.table.schema.Find(w.names[i])).Kind().Width()) + cellOverhead
		if x.Kind() == schema.KindBytes && !x.IsNull() {
			w.rowBytes += int64(len(x.Str()))
		}
	}
	w.plan, err = w.table.plan(&Query{Where: where, BatchRows: w.opts.BatchRows}, keys)
	return err
}

// cellOverhead is more than what a batch needs for a cell beside its bytes.
const cellOverhead = 8

// run does the work.
func (w *whereWrite) run(ctx context.Context, where Expr, o *WhereOptions) (*WhereResult, error) {
	if err := w.db.enterWrite(); err != nil {
		return nil, err
	}
	defer w.db.gate.exit()
	switch {
	case w.table.db != w.db:
		return nil, fmt.Errorf("%w: table %q belongs to another DB", ErrInvalidArgument, w.table.name)
	case w.table.dropped.Load():
		return nil, fmt.Errorf("table %q: %w", w.table.name, ErrNotFound)
	}
	if err := w.bind(where, o); err != nil {
		return nil, err
	}
	err := w.pipe(ctx)
	if w.result.Timestamp == 0 {
		w.result.Timestamp = w.plan.spec.Time.Hi
	}
	return &w.result, err
}

// pipe commits what a goroutine scans.
func (w *whereWrite) pipe(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan *WriteBatch)
	var scanErr error
	go func() {
		defer close(ready)
		scanErr = w.scan(ctx, ready)
	}()
	for b := range ready {
		if err != nil {
			continue // until the scan has noticed
		}
		if err = w.commit(ctx, b); err != nil {
			cancel()
		}
	}
	if err == nil {
		err = scanErr
	}
	return err
}

func (w *whereWrite) commit(ctx context.Context, b *WriteBatch) error {
	res, err := w.db.Commit(ctx, b, &CommitOptions{Durability: w.opts.Durability, AllOrNothing: true})
	if err != nil {
		return err
	}
	w.result.Matched += int64(b.Len())
	if n := res.Updated + res.Deleted; n > 0 {
		w.result.Changed += n
		w.result.Timestamp = res.Timestamp
	}
	return nil
}

// scan sends the selected rows in batches.
func (w *whereWrite) scan(ctx context.Context, ready chan<- *WriteBatch) error {
	f := &whereFiller{whereWrite: w}
	var failed error
	err := w.plan.run(ctx, 0, func(b *Batch) bool {
		for from := 0; from < b.Len() && failed == nil; {
			n := f.fits(b, from)
			switch {
			case n > 0:
				failed = f.add(b, from, from+n)
				from += n
			case w.opts.Atomic:
				failed = fmt.Errorf("%w: the rows do not fit one batch of at most %d bytes (Options.MaxBatchBytes)", ErrTooLarge, w.db.opts.MaxBatchBytes)
			default:
				failed = f.send(ctx, ready)
			}
		}
		return failed == nil
	})
	if failed != nil || err != nil || f.batch == nil {
		return cmp.Or(failed, err)
	}
	return f.send(ctx, ready)
}

// whereFiller puts rows into batches.
type whereFiller struct {
	*whereWrite
	batch *WriteBatch // nil: no row yet
	bytes int64       // at most what it takes
}

// fits returns how many of the scanned rows from the given one on the batch has room
// for; an empty batch takes any row.
func (f *whereFiller) fits(b *Batch, from int) (n int) {
	rows := 0
	if f.batch != nil {
		rows = f.batch.Len()
	}
	for from+n < b.Len() {
		size := f.rowBytes
		for c := range b.NumColumns() {
			if v := b.Column(c); v.Kind() == schema.KindBytes {
				size += int64(len(v.BytesAt(from + n)))
			}
		}
		full := !f.opts.Atomic && rows+n == f.opts.BatchRows || f.bytes+size > f.maxBytes
		if full && rows+n > 0 {
			break
		}
		f.bytes += size
		n++
	}
	return n
}

// add adds the operation on rows [from, to) of b.
func (f *whereFiller) add(b *Batch, from, to int) error {
	t := f.table
	if f.batch == nil {
		f.batch = &WriteBatch{cond: &tablet.Condition{Snapshot: f.plan.spec.Time.Hi, Filter: f.plan.spec.Filter}}
	}
	names := append(t.schema.KeyNames(), f.names...)
	columns := make([]*vector.Vector, 0, len(names))
	for c := range b.NumColumns() {
		columns = append(columns, b.Column(c).Slice(from, to))
	}
	for i, name := range f.names {
		v := vector.New(t.schema.Column(t.schema.Find(name)).Kind(), to-from)
		if err := v.AppendConst(f.cells[i], to-from); err != nil {
			return err
		}
		columns = append(columns, v)
	}
	return f.batch.AddColumns(t, f.op, names, columns)
}

// send hands the batch over.
func (f *whereFiller) send(ctx context.Context, ready chan<- *WriteBatch) error {
	b := f.batch
	f.batch, f.bytes = nil, 0
	select {
	case ready <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
