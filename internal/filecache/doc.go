// Package filecache keeps a bounded number of immutable files open for reading.
//
// A [Handle] stands for a file by name and opens it when it is first read; the
// least recently read file is closed to make room for another. The file is shared by
// all handles of its name. A file that is no longer needed is removed when the last
// handle is released, so that readers which still hold one are not disturbed.
//
// All methods may be called concurrently. There is one lock, Cache.mu, and no I/O
// under it.
//
// Invariants:
//
//	I1  Never more than maxOpen files are open; a read that finds all of them busy
//	    waits for one or for its context.
//	I2  A file is closed only while no read of it is running.
//	I3  A removed file is closed first (Windows refuses otherwise), and its name is
//	    never used again by the caller.
package filecache
