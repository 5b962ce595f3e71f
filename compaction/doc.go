// Package compaction judges the layout of a tablet's rowsets over the key space, as
// pure functions over [RowSet] descriptions: how much of the data lies in a rowset's
// key range (its width), and how many rowsets a random key must be looked for in
// (the average height).
//
// The measure is Kudu's: keys are weighed by the data that lies around them, so an
// empty stretch of the key space counts for nothing. Nothing here does I/O or keeps
// state; all functions may be called concurrently.
package compaction
