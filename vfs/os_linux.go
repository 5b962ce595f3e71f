package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes contents and size durable. fdatasync leaves out the times only.
func syncData(f *os.File) error {
	return control(f, "fdatasync", unix.Fdatasync)
}

// allocate reserves blocks; errors.ErrUnsupported when the file system cannot.
func allocate(f *os.File, off, n int64) error {
	return control(f, "fallocate", func(fd int) error { return unix.Fallocate(fd, 0, off, n) })
}

// control runs a system call on the descriptor of f and repeats it when a signal
// interrupts it.
func control(f *os.File, op string, call func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := c.Control(func(fd uintptr) {
		for result = call(int(fd)); result == unix.EINTR; {
			result = call(int(fd))
		}
	}); err != nil {
		return err
	}
	if result != nil {
		return &os.PathError{Op: op, Path: f.Name(), Err: result}
	}
	return nil
}
