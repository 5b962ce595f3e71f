// Package cfile writes and reads column files: one column of typed, possibly null
// cells, cut into pages that are encoded, compressed and checksummed, with indexes
// by row and by value. The bytes are those of Apache Kudu's CFile, version 2.
//
// A [Writer] takes vectors and produces a file, either stand-alone or as a section
// inside a larger file; all offsets are relative to the start of the section, so an
// extracted section is a valid file of its own. A [Reader] opens a section of any
// [Source]; [Reader.LoadIndex] gives the flat [PageIndex], [Reader.ReadPage] one
// decoded page, [Reader.ReadCells] one to read a few cells of, [Reader.SeekKey] a
// position by value. A [ZoneMap] summarises the
// pages and is stored by the caller in a section of its own. [Reader.Verify] reads
// everything; [Reader.Walk] lists the blocks.
//
//	header   magic "kuducfl2", length u32, message, crc u32
//	blocks   data, index and dictionary blocks, back to back:
//	             [uncompressed size u32, when the file has a codec] payload, crc u32
//	footer   crc u32, message, magic, length u32
//
// A Reader, a PageIndex and a ZoneMap are immutable and may be used concurrently. A
// Writer belongs to one goroutine.
//
// Invariants:
//
//	I1  No byte is decoded before its checksum was verified, the footer's feature
//	    bits excepted, which say that there is one.
//	I2  No size found in a file is allocated before it was bounded by the bytes
//	    present or by ReaderOptions.MaxPageBytes.
//	I3  A child of an index block ends at or before its parent begins, so every
//	    descent ends.
//	I4  Pages handed out belong to the garbage collector and share no memory with
//	    any buffer of the reader.
//	I5  Pages cover rows [0, Rows) without gap or overlap, each with at least one row.
package cfile
