package delta

import (
	"context"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vector"
)

// Reader is a store of changes of one rowset, as scans and lookups use it. All methods
// may be called concurrently. A store on disk may do I/O in any method with a context.
type Reader interface {
	// MinTime and MaxTime bound the commits in the store; both are 0 when it is empty.
	MinTime() mvcc.Timestamp
	MaxTime() mvcc.Timestamp
	// Touches reports whether some change sets the schema column.
	Touches(col int) bool
	// LastSet returns a time after which no change sets the column, 0 when none does.
	LastSet(col int) mvcc.Timestamp
	// HasLife reports whether some change deletes or revives a row.
	HasLife() bool
	// Changed reports whether some change may set the column in a row of [from, to).
	Changed(ctx context.Context, col, from, to int) (bool, error)
	// ApplyLife clears from live the rows that are deleted at the given time, and sets
	// those that are revived; bit i is row from+i.
	ApplyLife(ctx context.Context, at mvcc.Timestamp, from, to int, live vector.Bitmap) error
	// Patch brings the cells of a column for rows [from, to), those of the overlay, from the
	// lower end of the interval to the upper one. A lower end of 0 is before any change.
	Patch(ctx context.Context, in mvcc.Interval, col, from, to int, cells *Overlay) error
	// PatchRow appends the row's cell at the given time to dst if the store has a change
	// of it, and reports whether it did.
	PatchRow(ctx context.Context, at mvcc.Timestamp, col, row int, dst *vector.Vector) (bool, error)
	// Touched sets the rows of [from, to) that a commit in the interval changed; bit i is
	// row from+i.
	Touched(ctx context.Context, in mvcc.Interval, from, to int, rows vector.Bitmap) error
	// Last returns the newest change of the row; ok is false when there is none.
	Last(ctx context.Context, row rowset.RowID) (kind rowset.ChangeKind, ts mvcc.Timestamp, ok bool, err error)
}
