//go:build unix

package minikudu

import "golang.org/x/sys/unix"

// defaultOpenFiles is half of what the process may open, at most 512.
func defaultOpenFiles() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil || uint64(r.Cur) > 1024 {
		return 512
	}
	return max(4, int(r.Cur)/2)
}
