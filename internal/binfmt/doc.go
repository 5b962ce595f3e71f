// Package binfmt holds what every on-disk structure of a store shares: a cursor
// over untrusted bytes whose error sticks ([Reader]), append helpers, tagged
// skippable fields, CRC-32C, and the header that begins every file ([Header]).
//
// All integers are little-endian. The checksum is CRC-32C (Castagnoli), stored as
// it is.
//
//	file header, 64 bytes:
//	 0  8  magic "minikudu"
//	 8  1  kind of file (FileKind)
//	 9  1  zero
//	10  2  format number
//	12  4  compatible feature bits: unknown ones are ignored
//	16  4  incompatible feature bits: unknown ones refuse the file
//	20 16  store UUID
//	36  8  file number
//	44  8  key id, 0: not encrypted
//	52  8  zero, reserved
//	60  4  CRC-32C of bytes 0..59
//
//	tagged field:
//	uvarint  tag; an odd tag must be understood, an even one may be skipped
//	uvarint  length of the payload
//	bytes    payload
//
// Invariants:
//
//	I1  A Reader never reads past its input and allocates nothing by itself; slices
//	    it returns alias the input.
//	I2  After the first error every read returns zero, so a decoder may check once.
//	I3  Lengths are compared as unsigned 64-bit numbers before they become an int.
//
// Nothing here is safe for concurrent use of one value; distinct values are independent.
package binfmt
