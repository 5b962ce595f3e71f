//go:build !darwin && !dragonfly && !freebsd && !linux && !windows

package vfs

func freeSpace(string) int64 { return -1 }
