// Package diskrowset holds rowsets on disk: the rolling [Write] that makes
// their files and the [RowSet] that answers lookups and scans from them.
//
// A rowset is one file of consecutive sections. The manifest describes it by a
// [rowset.Meta], and [Open] reads nothing; footers, indexes, filters, zone maps and
// pages are read when they are first needed.
//
//	header       64 bytes, see package binfmt; kind FileRowSet
//	columns      one CFile per column in schema order
//	insert times CFile of int64, left out when all rows have the same
//	zone maps    one per column
//	key index    CFile of the encoded key of every 128th row (composite keys)
//	filters      key filters of 65,536 rows each, and their directory
//	directory    description of all the above, for dump and verify
//	trailer      16 bytes: directory length u32, CRC-32C u32 of both, magic "mkrowset"
//
// Rows change by [RowSet.Apply], in memory. [WriteRedo] writes such changes into a file of
// their own, which the rowset then reads instead; [RowSet.MergeRedo] makes one of many.
//
//	header       64 bytes, kind FileDelta
//	columns      for each that changed, CFiles of its new cells, their rows and their times
//	deletions    CFiles of rows and times
//	directory    what there is, and how long
//	trailer      as above, magic "mkdeltas"
//
// A [RowSet] may be used by any number of goroutines. It counts references: the
// opener's, ended by Close or Drop, and one for each lookup and iterator in flight;
// the file is let go, and after Drop deleted, with the last of them. A caller that
// may use a RowSet beside its closing takes a reference of its own with
// [RowSet.Acquire].
//
// Invariants:
//
//	I1  Rows stand in ascending order of distinct encoded keys; row ids are dense from 0.
//	I2  No zone map, filter, bound or index answers a question whose answer a change
//	    after the base data could alter; see the function changed.
//	I3  An I/O error or damage is an error of the call, never "absent" or a short scan;
//	    it is not remembered, so that a later call tries again.
//	I4  Pages of the cache are handed out without copying and are never changed.
//	I5  Write leaves no file behind when it fails, and no file it returns exceeds the
//	    target by more than a tenth, unless it holds a single row.
package diskrowset
