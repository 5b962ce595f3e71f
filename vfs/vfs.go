package vfs

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// Kind says what a file is for; an FS may use it to count, delay or place files.
type Kind uint8

// The kinds of files of a store.
const (
	KindOther Kind = iota
	KindLock
	KindManifest
	KindLog
	KindRowSet
	KindDelta
	KindDir
)

// FS is a file system. Names are paths. A missing file is an error that answers
// errors.Is(err, fs.ErrNotExist).
type FS interface {
	// Create makes a new file for writing and reading and fails with fs.ErrExist
	// when the name is taken. The directory entry is durable after SyncDir.
	Create(name string, kind Kind) (File, error)
	// Open opens an existing file for reading.
	Open(name string, kind Kind) (File, error)
	// OpenWrite opens an existing file for reading and writing, without truncating it.
	OpenWrite(name string, kind Kind) (File, error)
	// Remove deletes a file or an empty directory. Some systems refuse to remove an
	// open file; on the others it can be read until it is closed. Durable after SyncDir.
	Remove(name string) error
	// Rename moves a file, replacing the target. Durable after SyncDir of both directories.
	Rename(oldName, newName string) error
	// Link makes newName another name of the file oldName; fs.ErrExist when the name
	// is taken. Durable after SyncDir.
	Link(oldName, newName string) error
	// MkdirAll makes a directory and its parents.
	MkdirAll(dir string) error
	// List returns the names (not paths) in a directory, sorted.
	List(dir string) ([]string, error)
	// Stat describes a file or directory.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the directory's entries durable, where the file system can.
	SyncDir(dir string) error
	// Lock takes the exclusive (or shared) advisory lock of the named file, making
	// the file when create is set. It never waits: a conflicting lock of another
	// process or of this one, under whatever name, is a [LockedError]. A shared lock
	// needs no permission to write. Close releases the lock and leaves the file.
	Lock(name string, shared, create bool) (io.Closer, error)
	// Join joins path elements.
	Join(elem ...string) string
	// FreeSpace returns the bytes free for the directory, or a negative number when unknown.
	FreeSpace(dir string) int64
}

// File is an open file.
type File interface {
	// ReadAt reads len(p) bytes at off, as io.ReaderAt does.
	io.ReaderAt
	// ReadAtContext is ReadAt that gives up when ctx ends, where the file system can.
	ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
	// WriteAt writes p at off, as io.WriterAt does. The bytes survive the process
	// when it returns, and a power cut after Sync.
	io.WriterAt
	// Sync makes contents and size durable. After an error the contents written
	// since the last success must be taken for lost, whatever a later Sync returns.
	Sync() error
	// Preallocate makes [off, off+n) exist and read as zeroes where it is past the
	// end of the file, so that later writes there need no new space.
	Preallocate(off, n int64) error
	// Truncate sets the size; a file that grows reads as zeroes there.
	Truncate(size int64) error
	// Size returns the size.
	Size() (int64, error)
	// Name returns the path the file was opened by.
	Name() string
	io.Closer
}

// Info is a plain fs.FileInfo for file systems that have none of their own.
type Info struct {
	FileName string
	FileSize int64
	IsFolder bool
}

// Name returns the base name.
func (i Info) Name() string { return i.FileName }

// Size returns the length in bytes.
func (i Info) Size() int64 { return i.FileSize }

// Mode returns the file mode.
func (i Info) Mode() fs.FileMode {
	if i.IsFolder {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// ModTime returns the zero time: none is kept.
func (i Info) ModTime() time.Time { return time.Time{} }

// IsDir reports whether it is a directory.
func (i Info) IsDir() bool { return i.IsFolder }

// Sys returns nil.
func (i Info) Sys() any { return nil }
