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
// the memory rowset is full, a flush writes it as immutable files of one column file
// per column (package cfile, package encoding), and the manifest names them.
//
// # Lock order
//
// Of locks that are held together: key locks of tablets in order of tablet id, then
// DB.commit, then DB.apply. No file is read or written under DB.commit, but for log
// segments that a full buffer must write. DB.catalog is held over manifest edits of
// the catalog and never together with the others.
package minikudu
