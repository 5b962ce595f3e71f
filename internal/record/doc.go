// Package record is the payload of a log record: the resolved net effects of one
// batch, by tablet. It is logical (keys and values, no places), so that another
// replica could apply it.
//
//	payload := uvarint parts, part...
//	part    := uvarint tablet, uvarint schema version, uvarint sections, section...
//	section := u8 kind, u8 flags, uvarint rows, uvarint columns, column...
//	column  := uvarint id, u8 kind, u8 flags, [validity], values
//
// A section holds rows of one kind: PUT (the key was absent, full image), SET (the
// key was live, the columns given replace the old cells) and DEL (the key was live,
// key columns only). Section flags are zero; bit 0 is reserved for hints that name
// each row's rowset and row id. Column flag bit 0 says that validity follows: one
// bit a row, least significant first, set for "not null". Values are little-endian,
// bools one bit a row, variable-length ones a uvarint length each and then all bytes.
//
// Decoding trusts nothing: every length is bounded by the bytes that are present.
// All functions may be called concurrently.
package record
