package tablet

import (
	"context"
	"errors"
	"slices"

	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Condition restricts a write to rows that a filter selected at a snapshot: one that
// changed since must still satisfy the filter, else its operations are passed over.
type Condition struct {
	Snapshot mvcc.Timestamp
	Filter   *predicate.Bound // nil: every live row qualifies
}

// retest sets bit k for every key k whose row changed since the snapshot and does not
// qualify any more. The keys are locked and located. A rowset that left the tablet
// meanwhile is no failure: its rows are looked for in those that replaced it.
func (m *Mutation) retest(ctx context.Context, c *Condition) (vector.Bitmap, error) {
	if c == nil || c.Filter == nil {
		return nil, nil
	}
	for {
		unfit, err := c.test(ctx, m.tablet.schema, m.found)
		if !errors.Is(err, ErrClosed) || !m.Stale() {
			return unfit, err
		}
		if err := m.locate(ctx); err != nil {
			return nil, err
		}
	}
}

// test is one attempt.
func (c *Condition) test(ctx context.Context, s *schema.Schema, found []rowset.Found) (unfit vector.Bitmap, err error) {
	columns := c.Filter.Columns()
	cells := make([]*vector.Vector, len(columns))
	for i, col := range columns {
		cells[i] = vector.New(s.Column(col).Kind(), 0)
	}
	var keys []int32
	for k := range found {
		f := &found[k]
		if f.RowSet == nil || !f.Live || !c.changed(f) {
			continue
		}
		if err := f.RowSet.ReadRow(ctx, f.Row, mvcc.Max, columns, cells); err != nil {
			return nil, err
		}
		keys = append(keys, int32(k))
	}
	fit := vector.NewBitmap(len(keys))
	fit.SetRange(0, len(keys))
	err = c.Filter.Eval(len(keys), fit, func(col int) (*vector.Vector, error) {
		return cells[slices.Index(columns, col)], nil
	})
	unfit = vector.NewBitmap(len(found))
	for i, k := range keys {
		if !fit.Get(i) {
			unfit.Set(int(k))
		}
	}
	return unfit, err
}

// changed reports whether a row may have changed since the snapshot. Changes that were
// folded into a rowset file have no times of their own there.
func (c *Condition) changed(f *rowset.Found) bool {
	if f.LastChange > c.Snapshot {
		return true
	}
	rs, onDisk := f.RowSet.(*diskrowset.RowSet)
	return onDisk && rs.Meta().DurableTo > c.Snapshot
}
