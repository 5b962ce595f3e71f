package vfs

import (
	"os"

	"golang.org/x/sys/windows"
)

// syncDir does nothing: NTFS journals directory entries and has no call for it.
func syncDir(string) error { return nil }

// lockOffset is far behind the contents of a lock file, because a locked range
// cannot be read by others and the pid must be.
const lockOffset = 1 << 30

// lockFile takes a lock on the open file without waiting; false when another
// holder is in the way.
func lockFile(f *os.File, shared bool) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{Offset: lockOffset})
	if err == windows.ERROR_LOCK_VIOLATION || err == windows.ERROR_IO_PENDING {
		return false, nil
	}
	return err == nil, err
}

func freeSpace(dir string) int64 {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return -1
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, nil, nil); err != nil {
		return -1
	}
	return int64(free)
}
