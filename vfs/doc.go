// Package vfs is the file layer: every byte the engine reads or writes passes
// through an [FS].
//
// [OS] is the operating system's file system and [NewMem] one in memory that
// remembers what was synced, so that a power cut can be played. Package
// vfs/errorfs wraps either with faults, delays and counters. Both are public so
// that programs that embed minikudu can test their own behaviour under faults.
//
// All methods of FS and File may be called concurrently. Paths use the operating
// system's separator for [OS] and a slash for the others; use [FS.Join].
package vfs
