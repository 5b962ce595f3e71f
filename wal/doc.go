// Package wal is the write-ahead log: one ordered sequence of records in
// segment files, shared by all tables of a store. Payloads are opaque.
//
// [Open] surveys the segments, [Log.Replay] reads the records, [Log.Start] makes the
// log ready for more; then [Log.Append] frames a record into memory, the first one in a
// new segment, and [Log.Wait] makes it as durable as its [Mode] asks, one leader writing and syncing for
// everybody who waits. [Log.TrimBefore] deletes segments that are no longer
// needed, [Log.Close] cuts the log to its used length.
//
// Append must be called in timestamp order (the store's commit mutex gives it);
// everything else may be called by any goroutine once Start has returned. Open,
// Replay and Start belong to one goroutine.
//
// A segment is the file <number>.log:
//
//	0   64  file header: see package binfmt, kind "log"
//	64  64  link frame: type 128, payload {previous segment u64, its end u64};
//	        0, 0 in the first segment of a log
//	128     frames, then zeroes to the end of the file
//
// A frame:
//
//	0   4  CRC-32C of the header: seeded with store UUID and segment number, over
//	       the frame's offset (u32, standing in the place of this field) and bytes 4..47
//	4   4  CRC-32C of the data, seeded like the header's
//	8   4  length of the data in this frame
//	12  1  part: 1 whole record, 2 first, 3 middle, 4 last
//	13  1  type: 1 Batch; 2 Prepare, 3 Commit, 4 Abort reserved; 128 link, 129 end
//	14  2  flags: 1 compressed, 2 sealed; both reserved
//	16  8  timestamp
//	24  8  syncedThrough: segment
//	32  4  syncedThrough: offset
//	36  4  key epoch, 0: not encrypted
//	40  4  length of the extension fields, the first bytes of the record's data
//	44  4  length of the whole record's data: extension fields and payload
//	48     data
//
// Extension fields are tagged fields as in package binfmt: term, index and origin
// are reserved, unknown even tags are skipped.
//
// Invariants:
//
//	I1  Records are in timestamp order, and a record is replayed whole or not at all.
//	I2  syncedThrough is a record boundary not after the record itself; every byte
//	    of the log before it was durable when the record was framed.
//	I3  The valid log is the chain of links: what lies in a segment past the end its
//	    successor links to, and a segment nobody links to, is not part of it.
//	I4  The log ends at the first bad record. That is damage if and only if a later
//	    valid frame, or Options.End, says that the log was durable past it.
//	I5  A segment is used only after its zeroes, its header and its directory entry
//	    are durable, and is never appended to by a later Open.
//	I6  A group is written in log order, so written bytes are a prefix of the log. A
//	    failed write or sync ends the log; a segment that cannot be made does not.
//
// Locks: Log.trim is taken before Log.mu; the allocator's lock is a leaf. No I/O
// happens under Log.mu or the allocator's lock.
package wal
