// Package record is the payload of a log record: the resolved net effects of one
// batch, by tablet. It is logical (keys and values, no places), so that another
// replica could apply it.
//
//	payload := uvarint parts, part...
//	part    := uvarint tablet, uvarint schema version, uvarint sections, section...
//	section := u8 kind, u8 flags, uvarint rows, uvarint columns, [hints], column...
//	hint    := uvarint rowset, uvarint row
//	column  := uvarint id, u8 kind, u8 flags, [validity], values
//
// A section holds rows of one kind: PUT (the key was absent, full image), SET (the
// key was live, the columns given replace the old cells) and DEL (the key was live,
// key columns only). Section flag bit 0 says that hints follow, one a row: the disk
// rowset and row that the effect is on, rowset 0 where the row is in memory. Column flag bit 0 says that validity follows: one
// bit a row, least significant first, set for "not null". Values are little-endian,
// bools one bit a row, variable-length ones a uvarint length each and then all bytes.
//
// Decoding trusts nothing: every length is bounded by the bytes that are present.
// All functions may be called concurrently.
package record
