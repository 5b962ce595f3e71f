package parquet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/minikudu/minikudu"
)

// UnsupportedError says that a column's type has no counterpart. It answers
// errors.Is(err, minikudu.ErrNotSupported).
type UnsupportedError struct {
	Column string
	Type   string // as the file states it
}

// Error returns the message.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("parquet column %q: type %s is not supported", e.Column, e.Type)
}

// Unwrap returns minikudu.ErrNotSupported.
func (e *UnsupportedError) Unwrap() error { return minikudu.ErrNotSupported }

// FileError says where reading a file failed. It answers errors.Is(err,
// minikudu.ErrCorruption) unless the operating system failed.
type FileError struct {
	Path     string
	RowGroup int    // -1 for the footer
	Column   string // "" when the fault is not of one column
	Err      error
}

// Error returns the message.
func (e *FileError) Error() string {
	where := "footer"
	if e.RowGroup >= 0 {
		where = fmt.Sprintf("row group %d", e.RowGroup)
	}
	if e.Column != "" {
		where += fmt.Sprintf(", column %q", e.Column)
	}
	return fmt.Sprintf("%s: %s: %v", e.Path, where, e.Err)
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// Is reports whether target is minikudu.ErrCorruption and the file, not the system,
// is at fault.
func (e *FileError) Is(target error) bool {
	var path *fs.PathError
	return target == minikudu.ErrCorruption && !errors.As(e.Err, &path)
}

// errShort: a column has fewer cells than its row group.
var errShort = errors.New("fewer cells than the row group has rows")

// endOfInput turns a plain end of file into an error that says so.
func endOfInput(err error) error {
	if err == io.EOF {
		return errShort
	}
	return err
}

// recovered turns a panic of the decoding library into an error, so that damaged
// files cannot stop the process.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("damaged beyond decoding: %v", p)
	}
}
