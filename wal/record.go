package wal

import (
	"cmp"
	"fmt"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
)

// Position is a place in the log: a byte offset in a segment file. Segments are
// numbered from 1; the zero Position is before everything.
type Position struct {
	Segment uint64
	Offset  int64
}

// Compare returns -1, 0 or 1 as p lies before, at or after q.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.Segment, q.Segment); c != 0 {
		return c
	}
	return cmp.Compare(p.Offset, q.Offset)
}

// Before reports whether p lies before q.
func (p Position) Before(q Position) bool { return p.Compare(q) < 0 }

// String returns "segment:offset".
func (p Position) String() string { return fmt.Sprintf("%d:%d", p.Segment, p.Offset) }

// Type says what a record is. The numbers are on disk.
type Type uint8

// The types of records. Only Batch is written so far; the others are reserved for
// commits over several logs.
const (
	TypeBatch   Type = 1
	TypePrepare Type = 2
	TypeCommit  Type = 3
	TypeAbort   Type = 4

	typeLink Type = 128 // first frame of a segment: the end of the previous one
	typeEnd  Type = 129 // last frame of a log that was closed
)

// Flags of a record. The bits are on disk; both are reserved and refused.
type Flags uint16

// The flags.
const (
	FlagCompressed Flags = 1
	FlagSealed     Flags = 2
)

// Tags of extension fields. All are even, so a reader may skip them.
const (
	FieldTerm   = 2
	FieldIndex  = 4
	FieldOrigin = 6
)

// Record is one entry of the log.
type Record struct {
	Type       Type
	Flags      Flags
	KeyEpoch   uint32
	Timestamp  mvcc.Timestamp
	Extensions []byte // tagged fields, see binfmt.AppendField; may be empty
	Payload    []byte

	// Position and SyncedThrough are set by Replay; Append ignores them.
	Position      Position
	SyncedThrough Position
}

// checkExtensions reports extension fields that are malformed or that a reader of
// this version must not skip.
func checkExtensions(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	r := binfmt.NewReader(b)
	for {
		tag, _, more := r.Field()
		if !more {
			return r.Err()
		}
		r.Skip(tag)
	}
}
