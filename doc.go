// Package minikudu is an embedded columnar store with a primary key: Apache Kudu's
// tablet storage engine as a Go library.
//
// [Open] opens a directory, [DB.CreateTable] makes a table, a [WriteBatch] collects
// rows and [DB.Commit] makes them durable, [Table.Get] finds one row by its key and
// [Table.Scan] reads many, with filters and aggregates evaluated inside the scan.
//
// A DB and its tables may be used by any number of goroutines. A WriteBatch belongs
// to one goroutine at a time, and so does a running scan.
//
// # Where an insert goes
//
// A commit encodes and sorts the keys, locks them, and proves each absent: in the
// memory rowsets (package memrowset) and in those disk rowsets (package diskrowset)
// whose key range holds it (package tablet). It then takes a timestamp, goes to the
// log (package wal) and into the active memory rowset, and becomes visible. When
// the memory rowset is full, a flush writes it as immutable files that hold a column
// file for each column (package cfile, package encoding), and the manifest, the
// catalog of the store, names them.
//
// Updates and deletes go to the log likewise and then to the changes of the rowset that
// has the row (package delta), which are flushed to files of their own. In the
// background, or when [Table.Compact] asks for it, rowsets and their changes are merged
// into new ones (package compaction).
//
// # The past
//
// A table keeps what was deleted or replaced for [TableSpec].History. [Query].AsOf reads
// the state at a time, [Table.Diff] what changed between two. A [Snapshot] holds a state
// while the process lives, [DB.Pin] until [DB.Unpin].
//
// # Lock order
//
// Of locks that are held together: DB.catalog.change, a table's turn to be compacted,
// the compaction lock of its tablet, its flush lock, key locks of tablets in order of
// tablet id, DB.commit, DB.apply. A commit takes the last three; a flush the fourth and,
// to rotate, DB.commit alone, to publish DB.commit and DB.apply; a compaction also the
// second and third; a drop all but key locks.
// Locks of the parts below (log, manifest, memory rowsets, caches) and the catalog's
// read-write lock are taken inside these and held briefly. Under DB.commit no file is
// read or written, but for log segments that a full buffer must write.
//
// The rules cited as R1 to R10 are those of docs/architecture.md.
package minikudu
