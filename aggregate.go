package minikudu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/minikudu/minikudu/internal/aggregate"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/tablet"
	"github.com/minikudu/minikudu/vector"
)

// Aggregate is a function over the rows of a scan. Make one with Count, CountOf, Sum,
// Min, Max or Avg.
type Aggregate struct {
	fn     aggregate.Func
	column string
}

// Count counts rows.
func Count() Aggregate { return Aggregate{fn: aggregate.CountRows} }

// CountOf counts the cells of a column that are not null.
func CountOf(column string) Aggregate { return Aggregate{aggregate.Count, column} }

// Sum adds up a numeric column: integers to an int64 whose overflow is an error,
// decimals to a decimal of 38 digits, float and double to a double. Over no cells it
// is null.
func Sum(column string) Aggregate { return Aggregate{aggregate.Sum, column} }

// Min is the smallest cell of a column, NaN ignored; null over no cells.
func Min(column string) Aggregate { return Aggregate{aggregate.Min, column} }

// Max is the largest cell of a column, NaN ignored; null over no cells.
func Max(column string) Aggregate { return Aggregate{aggregate.Max, column} }

// Avg is the mean of a numeric column as a double; null over no cells.
func Avg(column string) Aggregate { return Aggregate{aggregate.Avg, column} }

// Aggregate computes aggregates inside the scan, on all processors. The result has
// the groupBy columns, then the aggregates, named by their text ("count(*)",
// "sum(delay)"): one row without groupBy, else one for each group, in no particular
// order; null is a group of its own. Of the query it uses Where, AsOf, NoPrune and
// Explain.
// Memory grows with the number of groups. A sum that does not fit its type is an error.
func (t *Table) Aggregate(ctx context.Context, q Query, groupBy []string, aggs ...Aggregate) (*Batch, error) {
	if err := t.begin(); err != nil {
		return nil, err
	}
	defer t.db.gate.exit()
	ap, err := t.aggregatePlan(groupBy, aggs)
	if err != nil {
		return nil, err
	}
	p, err := t.plan(&Query{Where: q.Where, AsOf: q.AsOf, NoPrune: q.NoPrune, Explain: q.Explain}, ap.Columns())
	if err != nil {
		return nil, err
	}
	defer p.finish()
	state, err := p.aggregate(ctx, ap)
	if err != nil {
		return nil, err
	}
	r, err := state.Result()
	var cell *schema.ValueError
	if errors.As(err, &cell) {
		return nil, fmt.Errorf("%w: %w", ErrOverflow, err)
	}
	if err != nil {
		return nil, err
	}
	return vector.NewBatch(r.Columns, r.Vectors, r.Rows), nil
}

// Count returns the number of rows that qualify, all for a nil filter.
func (t *Table) Count(ctx context.Context, where Expr) (int64, error) {
	b, err := t.Aggregate(ctx, Query{Where: where}, nil, Count())
	if err != nil {
		return 0, err
	}
	return b.Column(0).Int64s()[0], nil
}

func (t *Table) aggregatePlan(groupBy []string, aggs []Aggregate) (*aggregate.Plan, error) {
	groups, err := t.columns(append([]string{}, groupBy...))
	if err != nil {
		return nil, err
	}
	specs := make([]aggregate.Spec, len(aggs))
	for i, a := range aggs {
		specs[i].Func = a.fn
		if a.fn == aggregate.CountRows {
			continue
		}
		if specs[i].Column = t.schema.Find(a.column); specs[i].Column < 0 {
			return nil, t.columnError(a.column)
		}
	}
	return aggregate.NewPlan(t.schema, groups, specs)
}

// aggregate runs the scan, rowset by rowset, on as many goroutines as there are
// processors, and joins what they found.
func (p *plan) aggregate(ctx context.Context, ap *aggregate.Plan) (*aggregate.State, error) {
	if p.empty {
		return ap.NewState(), nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts, release, err := p.table.tablet.Parts(&p.spec)
	if err != nil {
		return nil, p.table.tabletError(err)
	}
	defer release()
	workers := max(1, min(runtime.GOMAXPROCS(0), len(parts)))
	states, errs := make([]*aggregate.State, workers), make([]error, workers)
	work := func(w int) {
		states[w] = ap.NewState()
		// The split is fixed, so that sums of floats come out the same every time.
		for i := w; i < len(parts); i += workers {
			if errs[w] = p.aggregatePart(ctx, &parts[i], states[w]); errs[w] != nil {
				cancel() // the others stop at their next batch
				return
			}
		}
	}
	var others sync.WaitGroup
	for w := 1; w < workers; w++ {
		others.Go(func() { work(w) })
	}
	work(0)
	others.Wait()
	if err := firstCause(errs); err != nil {
		return nil, err
	}
	for _, s := range states[1:] {
		if err := states[0].Merge(s); err != nil {
			return nil, err
		}
	}
	return states[0], nil
}

// firstCause returns the error that made the others stop.
func firstCause(errs []error) (first error) {
	for _, err := range errs {
		if err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

// aggregatePart adds one rowset to the state, by its metadata where that suffices.
func (p *plan) aggregatePart(ctx context.Context, part *tablet.Part, s *aggregate.State) error {
	if done, err := p.aggregateMeta(ctx, part, s); done || err != nil {
		return err
	}
	it, err := part.Scan(ctx)
	if err != nil {
		return p.table.tabletError(err)
	}
	defer it.Close()
	var b *rowset.Batch
	column := func(col int) (*vector.Vector, error) {
		for k, c := range p.columns {
			if c == col {
				return b.Columns[k], nil
			}
		}
		panic("minikudu: aggregate asks for a column outside its plan")
	}
	for {
		if b, err = p.next(ctx, it); err != nil || b == nil {
			return err
		}
		if err := s.Add(b.Rows, b.Sel, column); err != nil {
			return err
		}
	}
}

// aggregateMeta adds a rowset by its column summaries alone, if they suffice.
func (p *plan) aggregateMeta(ctx context.Context, part *tablet.Part, s *aggregate.State) (done bool, err error) {
	rows, zone, ok := part.Whole()
	if !ok {
		return false, nil
	}
	done = s.AddZones(rows, func(col int) (vector.Zone, bool) {
		z, known, zerr := zone(ctx, col)
		if zerr != nil {
			err = zerr
		}
		return z, known && zerr == nil
	})
	if err != nil {
		return false, p.table.tabletError(err)
	}
	if done {
		p.spec.Stats.AnsweredFromMeta.Add(1)
		p.spec.Stats.RowsSelected.Add(rows)
	}
	return done, nil
}
