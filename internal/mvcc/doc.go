// Package mvcc holds time: the hybrid timestamp, the clock that hands it out, and
// the visibility test.
//
// A commit has one [Timestamp]. A snapshot is one Timestamp S and contains every
// commit with timestamp ≤ S. A scan reads an [Interval] (Lo, Hi]: with Lo zero it
// is the state at Hi, otherwise what changed in between.
package mvcc
