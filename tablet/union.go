package tablet

import (
	"context"

	"github.com/minikudu/minikudu/internal/rowset"
)

// union delivers the rows of several rowsets one after the other. A rowset is
// opened when its turn comes.
type union struct {
	spec *rowset.ScanSpec
	sets []rowset.RowSet // still to be read, in order
	open rowset.Iterator // nil between rowsets
	done func()          // releases what the scan holds
}

// Next returns the next batch, nil after the last.
func (u *union) Next(ctx context.Context) (*rowset.Batch, error) {
	for {
		if u.open == nil {
			if len(u.sets) == 0 {
				return nil, nil
			}
			it, err := u.sets[0].Scan(ctx, u.spec)
			if err != nil {
				return nil, err
			}
			u.open, u.sets = it, u.sets[1:]
		}
		if b, err := u.open.Next(ctx); b != nil || err != nil {
			return b, err
		}
		u.open.Close()
		u.open = nil
	}
}

// Close ends the scan.
func (u *union) Close() {
	if u.open != nil {
		u.open.Close()
		u.open = nil
	}
	u.sets = nil
	if u.done != nil {
		u.done()
		u.done = nil
	}
}
