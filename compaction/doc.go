// Package compaction decides what background work is worth doing, as pure functions
// over descriptions of rowsets and of work, and merges rowsets: rows and their history
// in, one row for each key in key order out. It keeps no state, reads no clock and starts
// no goroutine. All functions may be called concurrently; equal input gives equal output,
// whatever the order of the rowsets given. Policy does no I/O; a merge does what its
// inputs do.
//
//   - [Place] measures the layout of a tablet's rowsets over the key space, [Split]
//     cuts the key space into parts of about equal size.
//   - [Pick] selects the rowsets to merge in one step and says what that is worth.
//   - [FlushScore], [MinorScore], [MajorScore] and [PickDeltaFlush] judge the other work.
//   - [Choose] selects what runs next, given all work and the state of the process.
//   - [Merge] merges; the [Merged] rows are written like any others and know where each
//     one came from, so that later changes can follow.
//
// # Measure
//
// Keys are weighed by the data around them, so that an empty stretch of the key space
// counts for nothing. The cumulative distribution of the data places every rowset in
// [0, 1]; its width is the share of the tablet's data in its key range, and the sum
// of all widths is the average height: how many rowsets a key must be looked for in.
//
//	key space    a     c  d        g
//	rowset 1     |--------|             width = share of all data between a and d
//	rowset 2           |-----------|
//	height       1     2  1
//
// # Invariants
//
//  1. The rowsets of a plan weigh no more than the budget, but one rowset that is
//     heavier than the whole budget may be planned alone.
//  2. A locked rowset counts for the layout and is never planned.
//  3. Every plan lowers the sum of all rowsets' widths and values of small size by a
//     least amount if its outputs are disjoint and reach nine tenths of the target, or
//     frees at least a fifth of a rowset. Neither can go on for ever without new writes,
//     so a tablet that is not written to is soon left alone.
//  4. A merge holds a block of keys of each input and, for each output row, six bytes,
//     or next to nothing where 256 or more rows of an input stand together. With history
//     come 32 bytes for each ghost that is merged into a newer row, and, while history is
//     read, four for each row of an input that has any.
//  5. The rows of a key are merged into one: the newest life is the row, and those before
//     are its history. Nothing that a commit after the horizon did is lost.
//  6. Lives of a key that overlap, as two live rows do, end a merge as a corruption.
package compaction
