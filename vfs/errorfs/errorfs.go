package errorfs

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/minikudu/minikudu/vfs"
)

// Op is an operation of a file system or a file.
type Op uint8

// The operations.
const (
	OpCreate Op = iota
	OpOpen
	OpOpenWrite
	OpRemove
	OpRename
	OpLink
	OpMkdirAll
	OpList
	OpStat
	OpSyncDir
	OpLock
	OpRead
	OpWrite
	OpSync
	OpPreallocate
	OpTruncate
	OpSize
	OpClose
	numOps
)

// numKinds bounds vfs.Kind for the counters.
const numKinds = int(vfs.KindDir) + 1

var opNames = [numOps]string{"create", "open", "open for writing", "remove", "rename", "link", "mkdir", "list", "stat",
	"sync directory", "lock", "read", "write", "sync", "preallocate", "truncate", "size", "close"}

// String returns the operation's name.
func (o Op) String() string {
	if o < numOps {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// Writes reports whether the operation changes what is stored.
func (o Op) Writes() bool {
	switch o {
	case OpOpen, OpList, OpStat, OpLock, OpRead, OpSize, OpClose:
		return false
	}
	return true
}

// Call is an operation that is about to happen.
type Call struct {
	N      int64 // number of the call, from 1, over all operations of the FS
	Op     Op
	Name   string
	Kind   vfs.Kind // of the file; KindDir for directories, KindOther where an operation names none
	Offset int64    // of reads, writes and preallocation
	Length int64    // likewise; the size of a truncation
}

// String returns e.g. `write MANIFEST-000001 [64, +120)`.
func (c Call) String() string {
	s := c.Op.String() + " " + c.Name
	if c.Length > 0 || c.Offset > 0 {
		s += fmt.Sprintf(" [%d, +%d)", c.Offset, c.Length)
	}
	return s
}

// Hook is called before each operation. Its error fails the operation.
type Hook func(Call) error

// ShortError as a hook's error lets a write store its first N bytes before it fails.
type ShortError struct {
	N   int64
	Err error
}

// Error returns the message.
func (e *ShortError) Error() string { return fmt.Sprintf("short write of %d bytes: %v", e.N, e.Err) }

// Unwrap returns the cause.
func (e *ShortError) Unwrap() error { return e.Err }

// FS is a file system with faults.
type FS struct {
	base   vfs.FS
	calls  atomic.Int64
	hook   atomic.Pointer[Hook]
	counts [numOps][numKinds]count
}

type count struct{ calls, bytes, errors atomic.Int64 }

// Wrap returns base with counters and, until SetHook, no faults.
func Wrap(base vfs.FS) *FS { return &FS{base: base} }

// SetHook replaces the hook; nil removes it.
func (f *FS) SetHook(h Hook) {
	if h == nil {
		f.hook.Store(nil)
		return
	}
	f.hook.Store(&h)
}

// Base returns the wrapped file system.
func (f *FS) Base() vfs.FS { return f.base }

// Calls returns the number of operations begun.
func (f *FS) Calls() int64 { return f.calls.Load() }

// Count says how often something happened.
type Count struct {
	Calls  int64 // begun, failed ones included
	Bytes  int64 // read, written or preallocated
	Errors int64
}

// Count returns the counters of an operation, over the given kinds of files or all.
func (f *FS) Count(op Op, kinds ...vfs.Kind) (c Count) {
	if len(kinds) == 0 {
		for k := range numKinds {
			kinds = append(kinds, vfs.Kind(k))
		}
	}
	for _, k := range kinds {
		x := f.slot(op, k)
		c.Calls += x.calls.Load()
		c.Bytes += x.bytes.Load()
		c.Errors += x.errors.Load()
	}
	return c
}

// ResetCounts sets all counters but Calls to zero.
func (f *FS) ResetCounts() {
	for op := range f.counts {
		for k := range f.counts[op] {
			c := &f.counts[op][k]
			c.calls.Store(0)
			c.bytes.Store(0)
			c.errors.Store(0)
		}
	}
}

// slot returns a counter; kinds that this package does not know count as KindOther.
func (f *FS) slot(op Op, k vfs.Kind) *count {
	if int(k) >= numKinds {
		k = vfs.KindOther
	}
	return &f.counts[op][k]
}

// before counts the call and asks the hook.
func (f *FS) before(c Call) error {
	c.N = f.calls.Add(1)
	f.slot(c.Op, c.Kind).calls.Add(1)
	if h := f.hook.Load(); h != nil {
		if err := (*h)(c); err != nil {
			if _, short := err.(*ShortError); short {
				return err
			}
			return &fs.PathError{Op: c.Op.String(), Path: c.Name, Err: err}
		}
	}
	return nil
}

// do runs an operation between the hook and the counters.
func (f *FS) do(c Call, run func() error) error {
	err := f.before(c)
	if err == nil {
		err = run()
	}
	if err != nil {
		f.slot(c.Op, c.Kind).errors.Add(1)
	}
	return err
}

func (f *FS) open(op Op, name string, kind vfs.Kind, open func(string, vfs.Kind) (vfs.File, error)) (file vfs.File, err error) {
	err = f.do(Call{Op: op, Name: name, Kind: kind}, func() error {
		inner, err := open(name, kind)
		if err == nil {
			file = &errorFile{fs: f, File: inner, kind: kind}
		}
		return err
	})
	return file, err
}

// Create implements vfs.FS.
func (f *FS) Create(name string, kind vfs.Kind) (vfs.File, error) {
	return f.open(OpCreate, name, kind, f.base.Create)
}

// Open implements vfs.FS.
func (f *FS) Open(name string, kind vfs.Kind) (vfs.File, error) {
	return f.open(OpOpen, name, kind, f.base.Open)
}

// OpenWrite implements vfs.FS.
func (f *FS) OpenWrite(name string, kind vfs.Kind) (vfs.File, error) {
	return f.open(OpOpenWrite, name, kind, f.base.OpenWrite)
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	return f.do(Call{Op: OpRemove, Name: name}, func() error { return f.base.Remove(name) })
}

// Rename implements vfs.FS. The hook sees the old name.
func (f *FS) Rename(oldName, newName string) error {
	return f.do(Call{Op: OpRename, Name: oldName}, func() error { return f.base.Rename(oldName, newName) })
}

// Link implements vfs.FS. The hook sees the old name.
func (f *FS) Link(oldName, newName string) error {
	return f.do(Call{Op: OpLink, Name: oldName}, func() error { return f.base.Link(oldName, newName) })
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(dir string) error {
	return f.do(Call{Op: OpMkdirAll, Name: dir, Kind: vfs.KindDir}, func() error { return f.base.MkdirAll(dir) })
}

// List implements vfs.FS.
func (f *FS) List(dir string) (names []string, err error) {
	err = f.do(Call{Op: OpList, Name: dir, Kind: vfs.KindDir}, func() (err error) {
		names, err = f.base.List(dir)
		return err
	})
	return names, err
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (info fs.FileInfo, err error) {
	err = f.do(Call{Op: OpStat, Name: name}, func() (err error) {
		info, err = f.base.Stat(name)
		return err
	})
	return info, err
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(dir string) error {
	return f.do(Call{Op: OpSyncDir, Name: dir, Kind: vfs.KindDir}, func() error { return f.base.SyncDir(dir) })
}

// Lock implements vfs.FS. Releasing the lock is not an operation.
func (f *FS) Lock(name string, shared, create bool) (l io.Closer, err error) {
	err = f.do(Call{Op: OpLock, Name: name, Kind: vfs.KindLock}, func() (err error) {
		l, err = f.base.Lock(name, shared, create)
		return err
	})
	return l, err
}

// Join implements vfs.FS.
func (f *FS) Join(elem ...string) string { return f.base.Join(elem...) }

// FreeSpace implements vfs.FS.
func (f *FS) FreeSpace(dir string) int64 { return f.base.FreeSpace(dir) }

// errorFile is an open file of an FS.
type errorFile struct {
	vfs.File
	fs   *FS
	kind vfs.Kind
}

func (f *errorFile) call(op Op, off, length int64) Call {
	return Call{Op: op, Name: f.Name(), Kind: f.kind, Offset: off, Length: length}
}

// ReadAt implements vfs.File.
func (f *errorFile) ReadAt(p []byte, off int64) (int, error) {
	return f.ReadAtContext(context.Background(), p, off)
}

// ReadAtContext implements vfs.File.
func (f *errorFile) ReadAtContext(ctx context.Context, p []byte, off int64) (n int, err error) {
	err = f.fs.do(f.call(OpRead, off, int64(len(p))), func() (err error) {
		n, err = f.File.ReadAtContext(ctx, p, off)
		f.fs.slot(OpRead, f.kind).bytes.Add(int64(n))
		return err
	})
	return n, err
}

// WriteAt implements vfs.File.
func (f *errorFile) WriteAt(p []byte, off int64) (n int, err error) {
	write := func(p []byte) (err error) {
		n, err = f.File.WriteAt(p, off)
		f.fs.slot(OpWrite, f.kind).bytes.Add(int64(n))
		return err
	}
	err = f.fs.do(f.call(OpWrite, off, int64(len(p))), func() error { return write(p) })
	if short, ok := err.(*ShortError); ok {
		if werr := write(p[:min(max(short.N, 0), int64(len(p)))]); werr != nil {
			return n, werr
		}
	}
	return n, err
}

// Sync implements vfs.File.
func (f *errorFile) Sync() error { return f.fs.do(f.call(OpSync, 0, 0), f.File.Sync) }

// Preallocate implements vfs.File.
func (f *errorFile) Preallocate(off, n int64) error {
	return f.fs.do(f.call(OpPreallocate, off, n), func() error {
		err := f.File.Preallocate(off, n)
		if err == nil {
			f.fs.slot(OpPreallocate, f.kind).bytes.Add(n)
		}
		return err
	})
}

// Truncate implements vfs.File.
func (f *errorFile) Truncate(size int64) error {
	return f.fs.do(f.call(OpTruncate, 0, size), func() error { return f.File.Truncate(size) })
}

// Size implements vfs.File.
func (f *errorFile) Size() (n int64, err error) {
	err = f.fs.do(f.call(OpSize, 0, 0), func() (err error) {
		n, err = f.File.Size()
		return err
	})
	return n, err
}

// Close implements vfs.File. The file is closed even when the hook fails the call, so
// that an injected fault leaks nothing.
func (f *errorFile) Close() error {
	hooked := f.fs.before(f.call(OpClose, 0, 0))
	err := f.File.Close()
	if hooked != nil {
		err = hooked
	}
	if err != nil {
		f.fs.slot(OpClose, f.kind).errors.Add(1)
	}
	return err
}
