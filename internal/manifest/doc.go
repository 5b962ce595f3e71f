// Package manifest keeps the catalog of a store: which tables, tablets, rowsets and
// files exist, how far each is durable, and where the log begins. What the manifest
// does not name does not exist.
//
// [Create] and [Open] return a [Manifest]; [Manifest.State] is what it says now and
// [Manifest.Apply] changes it by one [Edit], which is on disk as a whole or not at
// all. An edit is durable when Apply returns.
//
// The manifest is the file MANIFEST-<n> of the highest generation n that counts. A
// generation begins with a snapshot and counts once the snapshot is complete; edits
// follow. When the file has grown enough the next generation is written and synced
// and the old one removed; nothing is renamed.
//
//	file:      header (binfmt.Header, 64 bytes, file number = generation), frames, zeroes
//	frame, begins at a multiple of 16:
//	 0  4  length of the payload
//	 4  1  type: 1 part of the snapshot, 2 end of the snapshot, 3 edit, 4 mark
//	 5  3  zero
//	 8  4  CRC-32C of the payload and its padding
//	12  4  CRC-32C of {store UUID, generation u64, offset of the frame u64, bytes 0..11}
//	16  n  payload: tagged fields; of a snapshot's end: the number of parts (Uvarint)
//	       zeroes up to a multiple of 16
//	       slot of 16 bytes for a mark, after an edit and after the snapshot's end
//
// A mark is a frame without payload. It is written, but not synced, into the slot
// once the frame before it is synced, and says just that.
//
// # Torn or damaged
//
// A frame that does not verify was either being written when the power failed, and
// then was never acknowledged, or is damaged. It is taken for torn, and it and all
// behind it for absent, only if
//
//   - nothing behind it proves that it was synced: no valid head of an edit or a mark,
//     which are written after the sync of what stands before them; and
//   - a sector (512 bytes) that it touches still reads as the zeroes that were there
//     before, because sectors are written whole or not at all.
//
// Everything else is a vfs.CorruptionError with file, section and offset. A mark that
// no later sync covers may be missing, in whole or from some byte on; any other bytes
// in its slot are damage.
//
// Methods of Manifest may be called concurrently. Lock order: Manifest.apply, then
// Manifest.mu; no I/O under mu.
//
// Invariants:
//
//	I1  At most one frame is not synced, the last.
//	I2  Behind the last frame the file reads as zeroes; normally aheadBytes of them.
//	I3  After a failed write or sync whose effect on disk is unknown no edit is
//	    accepted until the store is opened again.
//	I4  A generation is removed only after a higher one is synced, and its directory entry.
//	I5  Values in a State are never changed, only replaced.
package manifest
