package vfs

import (
	"errors"
	"fmt"
)

// ErrLocked says that another handle, in this process or another, holds the lock.
var ErrLocked = errors.New("locked by another process")

// ErrCorruption is the sentinel of every error that says bytes on disk are damaged.
var ErrCorruption = errors.New("corruption")

// ErrNotSupported is the sentinel of errors that refuse a file of a newer format.
var ErrNotSupported = errors.New("not supported")

// CorruptionError says what is damaged and where. It answers
// errors.Is(err, ErrCorruption). Each layer fills in what it alone knows; offsets
// are in the file once Path is set.
type CorruptionError struct {
	Path           string // the file
	Section        string // e.g. "data block of column delay", "log record", "manifest edit"
	Offset, Length int64  // the damaged extent; Length 0 when unknown
	Want, Got      uint32 // checksums, when they differ
	Err            error  // what is wrong
}

// Error returns the message.
func (e *CorruptionError) Error() string {
	s := "corruption"
	if e.Path != "" {
		s += " in " + e.Path
	}
	if e.Section != "" {
		s += ", " + e.Section
	}
	s += fmt.Sprintf(" at offset %d", e.Offset)
	if e.Length > 0 {
		s += fmt.Sprintf(" (%d bytes)", e.Length)
	}
	if e.Want != e.Got {
		s += fmt.Sprintf(": checksum %08x, want %08x", e.Got, e.Want)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is reports whether target is ErrCorruption.
func (e *CorruptionError) Is(target error) bool { return target == ErrCorruption }

// Unwrap returns the cause.
func (e *CorruptionError) Unwrap() error { return e.Err }

// Corruptf returns a CorruptionError without a place; callers above add it.
func Corruptf(format string, args ...any) *CorruptionError {
	return &CorruptionError{Err: fmt.Errorf(format, args...)}
}
