// Package filter holds key filters: Bloom filters that say "surely not here" or
// "perhaps here" of an encoded key.
//
// A rowset has one [Filter] for each [KeysPerFilter] keys, in key order. All filters
// use the same number of hashes and bit counts that divide [maxBits], so the
// [Locations] of a key are computed once and tested against any number of filters.
//
// The bits are those of github.com/bits-and-blooms/bloom. Its own hash allocates for
// every key whose locations are kept and takes three times as long as the XXH64 of
// this package, so locations come from here and only the bits from there.
//
// A Filter may be tested by any number of goroutines once the last key is added;
// Add must not run beside anything else.
//
// # Bytes
//
//	offset  size  field
//	0       4     magic "mkbf"
//	4       1     version, 1
//	5       1     hashes of a key, 7
//	6       1     shift: the filter has 655360 >> shift bits, 0..10
//	7       1     zero
//	8       4     keys added
//	12      4     CRC-32C of bytes 0..12 and of the bits
//	16      8·n   the bits, n = 10240 >> shift words, bit i is bit i%64 of word i/64
//
// All numbers are little-endian.
//
// Invariants:
//
//	I1  a key that was added always tests true.
//	I2  the bit count is the smallest maxBits>>shift with at least 10 bits for each
//	    key the filter was made for, so about 0.8 % of other keys test true at most.
package filter
