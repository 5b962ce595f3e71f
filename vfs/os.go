package vfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"syscall"
)

// OS is the operating system's file system. Never assign to it.
//
// Some file systems cannot sync a directory. SyncDir then succeeds, because no
// repetition would help, and remembers the directory for [UnsyncedDirs].
var OS FS = osFS{}

// osFS implements FS with package os.
type osFS struct{}

// Create implements FS.
func (osFS) Create(name string, kind Kind) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Open implements FS.
func (osFS) Open(name string, kind Kind) (File, error) { return openOS(name, os.O_RDONLY) }

// OpenWrite implements FS.
func (osFS) OpenWrite(name string, kind Kind) (File, error) { return openOS(name, os.O_RDWR) }

func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o644)
	if err != nil {
		return nil, err
	}
	return &osFile{f}, nil
}

// Remove implements FS.
func (osFS) Remove(name string) error { return os.Remove(name) }

// Rename implements FS.
func (osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

// Link implements FS.
func (osFS) Link(oldName, newName string) error { return os.Link(oldName, newName) }

// MkdirAll implements FS.
func (osFS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) }

// List implements FS.
func (osFS) List(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// Stat implements FS.
func (osFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// Join implements FS.
func (osFS) Join(elem ...string) string { return filepath.Join(elem...) }

// FreeSpace implements FS.
func (osFS) FreeSpace(dir string) int64 { return freeSpace(dir) }

// SyncDir implements FS.
func (osFS) SyncDir(dir string) error {
	err := syncDir(dir)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		unsynced.Store(dir, struct{}{})
		return nil
	}
	return err
}

// unsynced holds the directories (string) whose file system cannot sync them.
var unsynced sync.Map

// UnsyncedDirs returns the directories that [OS] was asked to sync and whose file
// system cannot: there a power cut may lose or bring back whole files. Sorted.
func UnsyncedDirs() []string {
	var dirs []string
	unsynced.Range(func(dir, _ any) bool {
		dirs = append(dirs, dir.(string))
		return true
	})
	sort.Strings(dirs)
	return dirs
}

// osFile implements File with pread and pwrite.
type osFile struct{ *os.File }

// ReadAtContext implements File. A read that has begun is not interrupted.
func (f *osFile) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

// Sync implements File.
func (f *osFile) Sync() error { return syncData(f.File) }

// Preallocate implements File.
func (f *osFile) Preallocate(off, n int64) error {
	if n <= 0 {
		return nil
	}
	err := allocate(f.File, off, n)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return writeZeroes(f.File, off, n)
	}
	if err != nil {
		return &fs.PathError{Op: "preallocate", Path: f.Name(), Err: err}
	}
	return nil
}

// writeZeroes extends f to off+n with written zeroes; what exists stays as it is.
func writeZeroes(f *os.File, off, n int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end := off + n
	off = max(off, info.Size())
	zeroes := make([]byte, min(max(end-off, 0), 64<<10))
	for off < end {
		n, err := f.WriteAt(zeroes[:min(end-off, int64(len(zeroes)))], off)
		if err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

// Size implements File.
func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

var (
	_ io.ReaderAt = (*osFile)(nil)
	_ File        = (*osFile)(nil)
)
