package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
)

// held is the locks of this process. File locks of some systems and network file
// systems belong to the process and would be granted twice, and closing any
// descriptor of the file would drop them; so a file in the table is not even opened.
var held struct {
	sync.Mutex
	locks []*osLock
}

// osLock is a lock held through an open file.
type osLock struct {
	file   *os.File
	info   fs.FileInfo
	shared bool
}

// Lock implements FS. An exclusive holder writes its process id into the file, so
// that others can name it.
func (osFS) Lock(name string, shared, create bool) (io.Closer, error) {
	held.Lock()
	defer held.Unlock()
	if info, err := os.Stat(name); err == nil {
		if err := heldHereLocked(name, info, shared); err != nil {
			return nil, err
		}
	}
	f, err := openLock(name, shared, create)
	if err != nil {
		return nil, err
	}
	l, err := acquire(f, name, shared)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	held.locks = append(held.locks, l)
	return l, nil
}

// heldHereLocked reports a conflict with a lock of this process.
func heldHereLocked(name string, info fs.FileInfo, shared bool) error {
	for _, l := range held.locks {
		if os.SameFile(l.info, info) && !(shared && l.shared) {
			return &LockedError{Path: name, PID: os.Getpid(), Shared: l.shared}
		}
	}
	return nil
}

// openLock opens the lock file, for reading only when that is enough: a shared lock
// must work in a directory that cannot be written.
func openLock(name string, shared, create bool) (*os.File, error) {
	flag := os.O_RDWR
	if shared {
		flag = os.O_RDONLY
	}
	if create {
		flag |= os.O_CREATE
	}
	return os.OpenFile(name, flag, 0o644)
}

func acquire(f *os.File, name string, shared bool) (*osLock, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: errors.New("not a regular file")}
	}
	ok, err := lockFile(f, shared)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	if !ok {
		return nil, holderOf(f, name, shared)
	}
	if !shared {
		if err := writePID(f); err != nil {
			return nil, fmt.Errorf("locking %s: %w", name, err)
		}
	}
	return &osLock{file: f, info: info, shared: shared}, nil
}

// holderOf describes who holds the lock that was refused. If a shared lock is
// granted the holders are readers; the caller closes the file and with it that lock.
func holderOf(f *os.File, name string, shared bool) error {
	if !shared {
		if ok, err := lockFile(f, true); ok && err == nil {
			return &LockedError{Path: name, Shared: true}
		}
	}
	var b [20]byte
	n, _ := f.ReadAt(b[:], 0)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	return &LockedError{Path: name, PID: pid}
}

// writePID replaces the contents. A full disk is no reason to refuse: the process id
// only serves messages.
func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return nil
}

// Close releases the lock. The file stays: removing it would let two processes hold
// locks on two files of the same name.
func (l *osLock) Close() error {
	held.Lock()
	defer held.Unlock()
	for i, x := range held.locks {
		if x == l {
			held.locks = append(held.locks[:i], held.locks[i+1:]...)
			return l.file.Close()
		}
	}
	return fs.ErrClosed
}
