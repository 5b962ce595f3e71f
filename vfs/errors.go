package vfs

import (
	"errors"
	"fmt"
	"os"
)

// ErrLocked says that another handle, in this process or another, holds the lock.
// The error that is returned is a [LockedError].
var ErrLocked = errors.New("locked")

// LockedError says who holds a lock that was refused. It answers
// errors.Is(err, ErrLocked).
type LockedError struct {
	Path   string // the lock file
	PID    int    // process id of the holder, 0 when unknown
	Shared bool   // the holders are readers
}

// Error returns the message.
func (e *LockedError) Error() string {
	s := e.Path + " is locked"
	if e.Shared {
		s += " for reading"
	}
	switch {
	case e.PID == os.Getpid():
		s += " by this process"
	case e.PID != 0:
		s += fmt.Sprintf(" by process %d", e.PID)
	}
	return s
}

// Is reports whether target is ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

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
