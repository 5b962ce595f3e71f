// Package encoding turns vectors of values into the bytes of a column's blocks and
// back, and primary keys into byte strings that sort like the rows.
//
// An [Encoder] collects values until a block is full and appends its bytes; [Decode]
// turns the bytes of one block into a vector. A [Format] names the kind, encoding and
// nullability of a column. Blocks carry their own row count and the ordinal of their
// first row; checksums, compression and the place in a file are the caller's business,
// so errors say what is wrong and not where. [Search] finds a value in a decoded,
// sorted block.
//
// Layout of a block (all words little-endian, 32 bits unless stated):
//
//	nullable columns   varint rows | varint bytes of the bitmap | RLE bits, 1 = not null | block of the others
//	PLAIN              count | ordinal | values back to back; booleans as a bitmap
//	PLAIN binary       ordinal | count | position of the offsets | bytes | group varint offsets
//	PREFIX             group varint {count, ordinal, interval, 0} | {varint shared | varint length | suffix}*
//	                   | restart offsets | number of restarts
//	RLE                count | ordinal | runs: varint 2n, value; or varint 2n+1, 8n packed values
//	BIT_SHUFFLE        ordinal | count | total bytes | padded count | width
//	                   | {length, 32 bits big-endian | LZ4 block of transposed bits}*, 8 KiB plain each
//	DICT               1 | BIT_SHUFFLE block of code words; or 2 | PLAIN binary block
//	PAGED              encoding u8 | codec u8 | 0 u16 | plain size | block of that encoding
//
// Keys ([AppendKey], [AppendKeys]) are the key columns in order: integers big-endian
// with the sign bit inverted, strings raw when last, else with 00 escaped as 00 01 and
// ended by 00 00.
//
// An Encoder is used by one goroutine at a time. All functions may be called
// concurrently on distinct destinations.
//
// Invariants:
//
//	I1  Bytes of a block are the same on every machine.
//	I2  Decode never panics, reads outside the block or loops without consuming input,
//	    whatever the bytes.
//	I3  Decode allocates no more than its Limits allow and, except for run lengths, shared
//	    prefixes and numbers of no bits, no more than a constant times the length of the block.
//	I4  Decode accepts what an Encoder of the same Format writes, and returns its rows.
package encoding
