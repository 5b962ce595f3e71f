//go:build darwin || dragonfly || freebsd || linux

package vfs

import "golang.org/x/sys/unix"

func freeSpace(dir string) int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return -1
	}
	return int64(s.Bavail) * int64(s.Bsize)
}
