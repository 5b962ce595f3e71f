// Package errorfs wraps a file system with faults, delays and counters, for tests of
// the engine and of programs that embed it.
//
// [Wrap] returns an [FS]. Before each operation it calls the hook set with
// [FS.SetHook], with a [Call] that says what is about to happen; an error from the hook
// fails the operation before it reaches the wrapped file system. A hook may also look,
// wait, or take a crash clone of the wrapped file system, and so play a power cut at
// every call. [Fail], [Short], [Slow] and [Each] make common hooks.
//
// All methods may be called concurrently; hooks are called concurrently too. The
// package is for tests: nothing in production imports it.
package errorfs
