// Package memrowset holds the newest rows of a tablet in memory, as columns.
//
// A [MemRowSet] implements rowset.RowSet. Rows are appended in commit order; a
// [Source] delivers them in key order to the writer of disk rowsets.
//
//	            columns, one store each                     indexes
//	          ┌───────┬───────┬─────┬──────┬──────┐   ┌──────────────────────────────┐
//	chunk 0   │ host  │ ts    │ ... │ key  │ time │   │ table: hash of key → row     │
//	8192 rows │       │       │     │      │      │   ├──────────────────────────────┤
//	          ├───────┼───────┼─────┼──────┼──────┤   │ in key order:                │
//	chunk 1   │       │       │     │      │      │   │  active tree, rows of small  │
//	          │       │       │     │      │      │   │  batches: about 65,536 items │
//	          │       │       │     │      │      │   │  {16 bytes of key, row}      │
//	  ...     └───────┴───────┴─────┴──────┴──────┘   │  runs, lists of row numbers: │
//	                          rows published ──┘      │  large batches and old trees │
//	                                                  └──────────────────────────────┘
//
// Append writes cells column by column, then the indexes, then publishes the number of
// rows. Timestamps ascend with the rows, so what a snapshot sees is a prefix of the
// rows. Scans in storage order hand out the chunks' memory without a copy.
//
// # Concurrency
//
// Everything may be called by any number of goroutines. Append serialises itself.
// Lookup expects the caller to hold locks on the keys. Readers of rows and lookups take
// no lock; ordered scans take the active tree's, which is held for at most 64 inserts or
// 1,024 copied rows at a time. Nothing is called while a tree's lock is held; the append
// mutex is taken before it.
//
// # Invariants
//
//	I1  a row below the published count never changes and never moves under a reader:
//	    a chunk that must grow is replaced by a larger copy.
//	I2  a row from the published count on is written by the appender alone, and no
//	    memory word of it is shared with a published row: validity and booleans are
//	    bytes.
//	I3  insert timestamps do not descend from row to row.
//	I4  each published row is in the active tree or in exactly one run of any index
//	    loaded after it was published.
//	I5  no key is stored twice, given that callers look keys up under their locks.
//	I6  a sealed tree and a run never change.
//	I7  each published row is in any hash table loaded after it was published.
//
// Updates, deletes and revivals of rows are kept beside the columns, in a store of
// package delta; lookups, scans and sources apply what their snapshot sees of them.
package memrowset
