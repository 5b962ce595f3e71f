// Package tablet is one partition of a table: which stores hold its rows, how keys
// are resolved against them, how writes enter, how memory is flushed, how scans and
// gets read.
//
// A [Tablet] has one active memrowset, which takes every insert, memrowsets that
// were rotated out and wait for their flush, and disk rowsets in an interval tree
// ([Tree]). The three together are one immutable value behind an atomic pointer
// (stores); a flush replaces it, so readers never wait and always see a whole state.
//
// A write is planned by [Tablet.Plan]: a [Mutation] holds the locks of its keys and the
// net effect on each. Rows change in the store that has them; [Tablet.FlushDeltas] writes
// changes of disk rowsets to files, and [Tablet.Compact] merges disk rowsets.
//
// All methods of Tablet may be called concurrently, except where they say that the
// store's commit mutex must be held. A Flush runs one at a time.
//
// Invariants:
//
//	I1  A key is live in at most one rowset at any snapshot.
//	I2  Commits enter memrowsets in timestamp order, so every commit up to a rotation
//	    is in the rotated memrowset or before.
//	I3  Flushes publish in rotation order; the watermark I never goes back.
//	I4  A reader takes its snapshot before it loads the stores, so the stores hold
//	    every commit of the snapshot. Where files hold newer changes, folded in, it
//	    takes its snapshot again.
//	I5  Changes move to new rowsets, and stores are swapped, while no commit is between
//	    log and memory; a mutation that was resolved against other stores looks again.
//
// Lock order: key locks, then (by the store) the commit mutex, then Tablet.mu. No
// I/O happens under Tablet.mu.
package tablet
