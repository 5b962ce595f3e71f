//go:build !linux

package vfs

import (
	"errors"
	"os"
)

// syncData makes contents and size durable.
func syncData(f *os.File) error { return f.Sync() }

// allocate reserves blocks; errors.ErrUnsupported when the file system cannot.
func allocate(*os.File, int64, int64) error { return errors.ErrUnsupported }
