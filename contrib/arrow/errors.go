package arrow

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/minikudu/minikudu"
)

// UnsupportedError says that a column's type has no counterpart. It answers
// errors.Is(err, minikudu.ErrNotSupported).
type UnsupportedError struct {
	Column string
	Type   string
}

// Error returns the message.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("arrow column %q: type %s is not supported", e.Column, e.Type)
}

// Unwrap returns minikudu.ErrNotSupported.
func (e *UnsupportedError) Unwrap() error { return minikudu.ErrNotSupported }

// FileError says where reading a file failed. It answers errors.Is(err,
// minikudu.ErrCorruption) unless the operating system failed.
type FileError struct {
	Path  string
	Batch int // number of the record batch, -1 for the schema
	Err   error
}

// Error returns the message.
func (e *FileError) Error() string {
	if e.Batch < 0 {
		return fmt.Sprintf("%s: schema: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s: record batch %d: %v", e.Path, e.Batch, e.Err)
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// Is reports whether target is minikudu.ErrCorruption and the file, not the system,
// is at fault.
func (e *FileError) Is(target error) bool {
	var path *fs.PathError
	return target == minikudu.ErrCorruption && !errors.As(e.Err, &path)
}

// recovered turns a panic of the decoding library into an error, so that damaged
// files cannot stop the process.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("damaged beyond decoding: %v", p)
	}
}
