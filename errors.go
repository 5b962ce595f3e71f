package minikudu

import (
	"errors"
	"fmt"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/tablet"
	"github.com/minikudu/minikudu/vfs"
)

// The errors a caller can act on; test for them with errors.Is.
var (
	// ErrNotFound: no such table, or no row with the key.
	ErrNotFound = tablet.ErrNotFound
	// ErrAlreadyPresent: the key is live, or a table of the name exists.
	ErrAlreadyPresent = tablet.ErrAlreadyPresent
	// ErrImmutable: an update sets an immutable column.
	ErrImmutable = tablet.ErrImmutable
	// ErrInvalidArgument: the input was refused; see schema.ValueError and schema.SchemaError.
	ErrInvalidArgument = schema.ErrInvalidArgument
	// ErrRowsRejected: some rows of a batch were left out; see RejectedError.
	ErrRowsRejected = errors.New("rows rejected")
	// ErrTooLarge: a batch exceeds Options.MaxBatchBytes.
	ErrTooLarge = errors.New("too large")
	// ErrIllegalState: the table cannot do what was asked in its present state, e.g.
	// because its generated ids are used up.
	ErrIllegalState = tablet.ErrIllegalState
	// ErrOverflow: a sum does not fit its type; the message names the column.
	ErrOverflow = errors.New("overflow")
	// ErrHistoryExpired: a read of a past that is not kept any more; see TableSpec.History.
	ErrHistoryExpired = errors.New("history expired")
	// ErrReaderExpired: a scan ran for longer than Options.MaxReaderAge.
	ErrReaderExpired = errors.New("reader expired")
	// ErrClosed: the DB was closed.
	ErrClosed = errors.New("closed")
	// ErrReadOnly: the DB was opened read-only.
	ErrReadOnly = errors.New("opened read-only")
	// ErrLocked: another handle, here or in another process, has the store open.
	ErrLocked = vfs.ErrLocked
	// ErrCorruption: bytes on disk are damaged; see vfs.CorruptionError.
	ErrCorruption = vfs.ErrCorruption
	// ErrNotSupported: the store was written by a newer version.
	ErrNotSupported = vfs.ErrNotSupported
	// ErrReplayTooLarge: a read-only open would need more memory than the budget to
	// replay the log; open for writing once, or raise Options.MemoryBudget.
	ErrReplayTooLarge = errors.New("the log does not fit the memory budget")
	// ErrClockStep: the wall clock jumped; see Options.AllowClockStep.
	ErrClockStep = mvcc.ErrClockStep
)

// RowError says why one row of a batch was left out.
type RowError struct {
	Row   int    // position in the batch, from 0, over all its tables
	Table string // the table it was for
	Err   error  // ErrAlreadyPresent, ErrNotFound, ErrImmutable, or a *schema.ValueError
}

// Error returns the message.
func (e *RowError) Error() string {
	if v := (*schema.ValueError)(nil); errors.As(e.Err, &v) && v.Row >= 0 {
		return fmt.Sprintf("table %q, %v", e.Table, e.Err) // it names the row itself
	}
	return fmt.Sprintf("table %q, row %d: %v", e.Table, e.Row, e.Err)
}

// Unwrap returns the cause.
func (e *RowError) Unwrap() error { return e.Err }

// RejectedError is returned by a commit that left rows out. It answers errors.Is for
// ErrRowsRejected and for the causes of its rows. Unless the batch was AllOrNothing,
// all other rows were committed.
type RejectedError struct {
	Rows    []RowError
	Applied bool // the other rows were committed
}

// Error returns the count and the first rows' messages.
func (e *RejectedError) Error() string {
	s := fmt.Sprintf("%d rows rejected", len(e.Rows))
	if !e.Applied {
		s += ", nothing committed"
	}
	for i := range e.Rows {
		if i == 3 {
			return s + "; …"
		}
		s += "; " + e.Rows[i].Error()
	}
	return s
}

// Is reports whether target is ErrRowsRejected.
func (e *RejectedError) Is(target error) bool { return target == ErrRowsRejected }

// Unwrap returns the causes of the rows.
func (e *RejectedError) Unwrap() []error {
	errs := make([]error, len(e.Rows))
	for i := range e.Rows {
		errs[i] = &e.Rows[i]
	}
	return errs
}
