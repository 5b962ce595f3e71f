// Package csvio reads and writes tables as text: CSV (RFC 4180) in both directions,
// and JSON, one object a line, outwards.
//
// A [Scanner] splits a file into records of fields and, unlike encoding/csv, tells a
// quoted field from a bare one: a bare empty field is null, "" is the empty string.
// [Infer] reads a whole file and finds its columns' types, a [Reader] reads it again
// and fills vectors. Both stream: memory is bounded by the longest record, at most
// [MaxRecord] bytes, and the batch. A [Writer] writes what a Reader reads, and a
// [JSONWriter] the same cells as JSON.
//
// None of the types may be used by several goroutines at a time.
//
// Records end in LF or CRLF; a byte order mark at the start is skipped; a quoted
// field may hold line breaks, commas and doubled quotes. A quote inside a bare field,
// or text after a closing quote, is an error that names line and column. A blank line
// is skipped in a file of several columns and is a null in a file of one.
//
// Invariants:
//
//	I1  a record lies whole in the buffer before it is split, so a field is a slice
//	    of the buffer, valid until the next record.
//	I2  a batch holds a row in every column or in none: a rejected row is taken back.
package csvio
