package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Ops are the operations, in the order in which all of them run over one table.
// The flush comes before rows are changed, so that the compaction has what to merge.
var Ops = []string{"insert", "open", "flush", "upsert", "update", "compact", "get", "scan", "count", "delete"}

const (
	repeats    = 10  // of operations that are one call
	boxedBytes = 256 // of a key to look up: many small values, which cost the collector time
	mergeParts = 8   // flushes of rows whose keys overlap before a compaction
)

// Config says what a Runner works on and how.
type Config struct {
	Workload  *Workload
	Open      func() (*minikudu.DB, error)
	Rows      int64 // operations on rows, and the rows of a table that is filled
	Threads   int
	BatchRows int
	// Memory bounds the inputs that are held, in bytes, unless one batch for every thread
	// takes more.
	Memory int64
	// Progress is called every Interval while operations on rows run. It may be nil.
	Progress func(Progress)
	Interval time.Duration
}

// Runner runs operations on the table of a workload.
type Runner struct {
	Config
	db    *minikudu.DB
	table *minikudu.Table
	rand  *rand.Rand

	// Of the operation that runs.
	op    string
	clock time.Duration
	done  atomic.Int64  // rows
	read  atomic.Uint64 // sum of what scans read, so that reading is not left out
	calls *times
}

// New returns a Runner over an open store that has the table of the workload. The
// operation open closes and opens the store; Close closes what is open at the end.
func New(c Config, db *minikudu.DB) (*Runner, error) {
	r := &Runner{Config: c, db: db, rand: rand.New(rand.NewPCG(5, uint64(time.Now().UnixNano())))}
	return r, r.find()
}

func (r *Runner) find() (err error) {
	if r.table, err = r.db.Table(r.Workload.TableName()); err == nil && !r.Workload.Fits(r.table) {
		err = fmt.Errorf("table %q has other columns than the workload %s", r.table.Name(), r.Workload.Name)
	}
	return err
}

// DB returns the store, nil where it could not be opened again.
func (r *Runner) DB() *minikudu.DB { return r.db }

// Run runs one operation. All but insert work on rows that are there: an empty table is
// filled first, which is not timed.
func (r *Runner) Run(ctx context.Context, op string) (*Result, error) {
	if op != "insert" && r.table.Rows() == 0 {
		if err := r.fill(ctx, op); err != nil {
			return nil, err
		}
	}
	r.op, r.clock, r.calls = op, 0, newTimes()
	r.done.Store(0)
	res := &Result{Op: op, Workload: r.Workload.Name, Threads: r.Threads, RowsBefore: r.table.Rows()}
	rows, err := r.run(ctx, op, res)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	r.calls.fill(res, r.clock, rows)
	res.Rows = r.table.Rows()
	return res, nil
}

// run runs the operation and returns the rows that it wrote, read or went through.
func (r *Runner) run(ctx context.Context, op string, res *Result) (rows int64, err error) {
	switch op {
	case "insert", "upsert", "update", "delete":
		res.Per = fmt.Sprintf("commit of %d rows", r.BatchRows)
		err = r.eachRound(ctx, r.Rows, r.inputs(op), r.commits(op))
		res.Operations = r.done.Load()
		return res.Operations, err
	case "get":
		res.Per = "row"
		err = r.eachRound(ctx, r.Rows, r.inputs(op), r.get)
		res.Operations = r.done.Load()
		return res.Operations, err
	case "scan":
		res.Per, res.Operations = "scan of all rows", int64(max(repeats, r.Threads))
		return res.Operations * res.RowsBefore, r.repeat(ctx, r.scan)
	case "count":
		res.Per, res.Operations = "count by a filter", int64(max(repeats, r.Threads))
		return res.Operations * res.RowsBefore, r.repeat(ctx, r.count)
	case "flush":
		before := r.db.Metrics().FlushedRows
		res.Per, res.Threads, res.Operations = "flush", 1, 1
		err = r.once(func() error { return r.table.Flush(ctx) })
		return r.db.Metrics().FlushedRows - before, err
	case "compact":
		res.Per, res.Threads, res.Operations = "compaction", 1, 1
		return res.RowsBefore, r.once(func() error { _, err := r.table.Compact(ctx); return err })
	case "open":
		res.Per, res.Threads, res.Operations = "open", 1, repeats
		return 0, r.reopen(ctx)
	}
	return 0, fmt.Errorf("there is no operation %q", op)
}

// fill inserts rows. For flush they stay in memory as far as they may, for compact they
// are in several files whose keys overlap.
func (r *Runner) fill(ctx context.Context, op string) error {
	parts := int64(1)
	if op == "compact" {
		parts = min(mergeParts, r.Rows)
	}
	if op == "flush" || op == "compact" {
		r.db.Pause()
		defer r.db.Resume()
	}
	r.op, r.clock, r.calls = "fill", 0, newTimes()
	r.done.Store(0)
	input := r.inputs("insert")
	for i := range parts {
		err := r.eachRound(ctx, r.Rows*(i+1)/parts, input, r.commits("insert"))
		if err == nil && op == "compact" {
			err = r.table.Flush(ctx)
		}
		if err != nil {
			return fmt.Errorf("filling the table: %w", err)
		}
	}
	return nil
}

// maker makes the inputs of a round of n rows, in the order in which they are dealt.
type maker func(ctx context.Context, n int64) (columns []*vector.Vector, order []int32, err error)

// inputs returns what makes the inputs of an operation on rows.
func (r *Runner) inputs(op string) maker {
	var next func([]cell)
	fresh := func(ctx context.Context, n int64) ([]*vector.Vector, error) {
		if next == nil {
			first, err := r.Workload.next(ctx, r.table)
			if err != nil {
				return nil, err
			}
			next = r.Workload.rows(first, r.Rows)
		}
		return r.Workload.make(next, n)
	}
	return func(ctx context.Context, n int64) ([]*vector.Vector, []int32, error) {
		switch op {
		case "insert":
			columns, err := fresh(ctx, n)
			return columns, inOrder(int(n)), err
		case "upsert":
			columns, err := fresh(ctx, n)
			if err == nil {
				err = r.mixKeys(ctx, columns, n)
			}
			return columns, inOrder(int(n)), err
		}
		keys, found, err := pick(ctx, r.table, r.Workload, r.rand, n)
		if op == "update" {
			values := vector.New(schema.KindInt64, found)
			for range found {
				vector.AppendFixed(values, r.rand.Int64N(updateBelow))
			}
			keys = append(keys, values)
		}
		order := shuffled(r.rand, found)
		if op != "delete" {
			order = again(order, int(n))
		}
		return keys, order, err
	}
}

// mixKeys replaces the keys of a random half of the rows by some that are there. (Of every
// second row would be the rows of one of two threads.)
func (r *Runner) mixKeys(ctx context.Context, columns []*vector.Vector, n int64) error {
	there, found, err := pick(ctx, r.table, r.Workload, r.rand, (n+1)/2)
	if err != nil {
		return err
	}
	from := make([]int, n) // a key that is there, from 1
	for i, row := range shuffled(r.rand, int(n))[:found] {
		from[row] = i + 1
	}
	for k := range there {
		mixed := vector.New(columns[k].Kind(), int(n))
		for i, key := range from {
			src, row := columns[k], i
			if key > 0 {
				src, row = there[k], key-1
			}
			if err := mixed.AppendFrom(src, row); err != nil {
				return err
			}
		}
		columns[k] = mixed
	}
	return nil
}

// roundRows is the number of rows whose inputs fit the memory for them, in full batches,
// but one batch for every thread at least.
func (r *Runner) roundRows() int64 {
	full, size := int64(r.Threads*r.BatchRows), r.Workload.rowBytes
	if r.op == "get" {
		size = max(size, boxedBytes)
	}
	return full * max(r.Memory/int64(2*size)/full, 1)
}

// eachRound makes the inputs of round after round and does the work on them, until the
// operation has done so many rows.
func (r *Runner) eachRound(ctx context.Context, until int64, input maker, work func(context.Context, *times, *batch) error) error {
	for r.done.Load() < until {
		shares, err := r.round(ctx, until, input)
		if err != nil || shares == nil {
			return err
		}
		err = r.parallel(ctx, func(ctx context.Context, thread int, t *times) error {
			for i := range shares[thread] {
				if err := work(ctx, t, &shares[thread][i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// round makes the inputs of one round; nil when there are none. Background work is held
// back, which would gain on the clock.
func (r *Runner) round(ctx context.Context, until int64, input maker) ([][]batch, error) {
	r.db.Pause()
	defer r.db.Resume()
	done := r.done.Load()
	columns, order, err := input(ctx, min(until-done, r.roundRows()))
	if err != nil || len(order) == 0 {
		return nil, err
	}
	shares, err := deal(columns, order, done, r.Threads, r.BatchRows)
	if r.op == "get" {
		for _, share := range shares {
			for i := range share {
				share[i].boxKeys()
			}
		}
	}
	return shares, err
}

// parallel runs work on every thread while the clock runs. The first error ends all.
func (r *Runner) parallel(ctx context.Context, work func(ctx context.Context, thread int, t *times) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	each := make([]*times, r.Threads)
	var wg sync.WaitGroup
	begin := time.Now()
	stop := r.report(begin)
	for i := range each {
		each[i] = newTimes()
		wg.Go(func() {
			if err := work(ctx, i, each[i]); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	r.clock += time.Since(begin)
	stop()
	for _, t := range each {
		r.calls.h.Merge(t.h)
	}
	return context.Cause(ctx)
}

// report calls Progress until stop is called.
func (r *Runner) report(begin time.Time) (stop func()) {
	if r.Progress == nil {
		return func() {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	clock, op := r.clock, r.op
	go func() {
		defer close(ended)
		tick := time.NewTicker(r.Interval)
		defer tick.Stop()
		last, at := r.done.Load(), begin
		for {
			select {
			case <-quit:
				return
			case now := <-tick.C:
				done := r.done.Load()
				r.Progress(Progress{op, round((clock + now.Sub(begin)).Seconds(), 3), done,
					round(float64(done-last)/max(now.Sub(at).Seconds(), 1e-9), 1), r.table.Rows()})
				last, at = done, now
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// commits returns what writes a batch and commits it.
func (r *Runner) commits(op string) func(context.Context, *times, *batch) error {
	return func(ctx context.Context, t *times, b *batch) error {
		names := r.Workload.names(len(b.columns))
		if op == "update" {
			names[len(names)-1] = r.Workload.update
		}
		begin := time.Now()
		var w minikudu.WriteBatch
		if err := w.AddColumns(r.table, writeOps[op], names, b.columns); err != nil {
			return err
		}
		if _, err := r.db.Commit(ctx, &w, nil); err != nil {
			return err
		}
		t.add(time.Since(begin))
		r.done.Add(int64(b.rows))
		return nil
	}
}

var writeOps = map[string]minikudu.Op{"insert": minikudu.OpInsert, "upsert": minikudu.OpUpsert, "update": minikudu.OpUpdate, "delete": minikudu.OpDelete}

// get looks up the keys of a batch.
func (r *Runner) get(ctx context.Context, t *times, b *batch) error {
	for _, key := range b.keys {
		begin := time.Now()
		if _, err := r.table.Get(ctx, key...); err != nil {
			return err
		}
		t.add(time.Since(begin))
	}
	r.done.Add(int64(b.rows))
	return nil
}

// repeat shares calls out to the threads.
func (r *Runner) repeat(ctx context.Context, call func(context.Context) error) error {
	return r.parallel(ctx, func(ctx context.Context, thread int, t *times) error {
		for i := thread; i < max(repeats, r.Threads); i += r.Threads {
			begin := time.Now()
			if err := call(ctx); err != nil {
				return err
			}
			t.add(time.Since(begin))
		}
		return nil
	})
}

// scan reads every cell: a batch may be a view of pages in the cache, which costs nothing
// until it is looked at.
func (r *Runner) scan(ctx context.Context) error {
	rows, sum := int64(0), uint64(0)
	for b, err := range r.table.Scan(ctx, minikudu.Query{}) {
		if err != nil {
			return err
		}
		rows += int64(b.Len())
		for i := range b.NumColumns() {
			sum += readCells(b.Column(i))
		}
	}
	r.read.Add(sum)
	if want := r.table.Rows(); rows != want {
		return fmt.Errorf("a scan found %d rows instead of %d", rows, want)
	}
	return nil
}

// readCells reads every cell, of a text its ends.
func readCells(v *vector.Vector) (sum uint64) {
	switch v.Kind() {
	case schema.KindInt64:
		for _, n := range v.Int64s() {
			sum += uint64(n)
		}
	case schema.KindFloat64:
		for _, f := range v.Float64s() {
			sum += math.Float64bits(f)
		}
	default:
		for i := range v.Len() {
			if b := v.BytesAt(i); len(b) > 0 {
				sum += uint64(len(b)) + uint64(b[0]) + uint64(b[len(b)-1])
			}
		}
	}
	return sum
}

func (r *Runner) count(ctx context.Context) error {
	_, err := r.table.Count(ctx, r.Workload.filter)
	return err
}

// once times one call.
func (r *Runner) once(call func() error) error {
	begin := time.Now()
	err := call()
	r.clock += time.Since(begin)
	r.calls.add(time.Since(begin))
	return err
}

// reopen closes the store and opens it, again and again. Opening is timed.
func (r *Runner) reopen(ctx context.Context) error {
	for range repeats {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.Close(); err != nil {
			return err
		}
		if err := r.once(func() (err error) { r.db, err = r.Open(); return err }); err != nil {
			return err
		}
		if err := r.find(); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the store, if it is open.
func (r *Runner) Close() error {
	if r.db == nil {
		return nil
	}
	db := r.db
	r.db = nil
	if err := db.Close(); err != nil {
		return errors.Join(errors.New("closing the store"), err)
	}
	return nil
}
