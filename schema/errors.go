package schema

import (
	"errors"
	"fmt"
)

// ErrInvalidArgument is the sentinel of every error that says the caller's input
// was refused: a bad schema, a value of the wrong type, a limit exceeded.
var ErrInvalidArgument = errors.New("invalid argument")

// ValueError says which cell of the caller's input was refused and why. It answers
// errors.Is(err, ErrInvalidArgument). It names types and limits, never whole values:
// Given holds at most 40 characters of the offending one.
type ValueError struct {
	Row    int    // index of the row in the batch, -1 when there is no batch
	Column string // column name, "" when the fault is not of one column
	Want   string // wanted type, e.g. "int8 not null"
	Given  string // given type and shortened value, e.g. "int 300"
	Reason string // e.g. "out of range"
}

// Error returns the message, e.g. `row 5, column "a": want int8, given int 300: out of range`.
func (e *ValueError) Error() string {
	s := ""
	if e.Row >= 0 {
		s = fmt.Sprintf("row %d", e.Row)
	}
	if e.Column != "" {
		if s != "" {
			s += ", "
		}
		s += fmt.Sprintf("column %q", e.Column)
	}
	if s != "" {
		s += ": "
	}
	if e.Want != "" {
		s += "want " + e.Want + ", "
	}
	if e.Given != "" {
		s += "given " + e.Given + ": "
	}
	return s + e.Reason
}

// Unwrap returns ErrInvalidArgument.
func (e *ValueError) Unwrap() error { return ErrInvalidArgument }

// SchemaError says which column of a schema broke which rule. It answers
// errors.Is(err, ErrInvalidArgument).
type SchemaError struct {
	Column string // "" when the fault is not of one column
	Reason string
}

// Error returns the message.
func (e *SchemaError) Error() string {
	if e.Column == "" {
		return "schema: " + e.Reason
	}
	return fmt.Sprintf("schema: column %q: %s", e.Column, e.Reason)
}

// Unwrap returns ErrInvalidArgument.
func (e *SchemaError) Unwrap() error { return ErrInvalidArgument }
