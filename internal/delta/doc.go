// Package delta keeps changes of stored rows in memory: what commits set, deleted or
// revived after the rows were written.
//
// A [MemStore] belongs to one rowset. Each row that changed has a head; from it a
// chain of nodes, newest first, leads through the commits that changed the row. A
// node points into the commit's entry, which holds the values as vectors, one per
// column, as they came. Nothing is copied per row but three numbers.
//
//	rows ── page of 4096 heads ──▶ node ──▶ node ──▶ 0
//	          and a bit per row      │        │
//	                                 ▼        ▼
//	                             commit (time, kind, rows, columns, vectors)
//
// One goroutine at a time applies, in timestamp order; any number read beside it
// without locks: pages, nodes and commits are append-only, and a head is published by
// an atomic store after all it leads to.
//
// [Reader] is what a scan asks of a store of changes, in memory or on disk.
//
// Invariants:
//
//	I1  Along a chain timestamps strictly fall: a commit changes a row once (R2).
//	I2  A change is a Set or Del of a live row, or a Put of a dead one.
//	I3  What a published head leads to never changes.
package delta
