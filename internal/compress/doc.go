// Package compress is the only door to the compression libraries.
//
// [Compress] appends the compressed form of a block, [Decompress] fills a buffer of
// exactly the plain length. Raw block formats are used throughout: Snappy and LZ4
// blocks, a zlib stream, a zstd frame. None of them is trusted to state its own size;
// the plain length and a checksum are kept by the caller.
//
// All functions may be called concurrently. Codec state is pooled, so that a call
// allocates nothing in the steady state beyond the growth of dst.
//
// Invariants:
//
//	I1  Decompress writes only into dst, and succeeds only if src describes exactly
//	    len(dst) bytes and is used up.
//	I2  Memory used is bounded by len(dst) and a constant, whatever src says.
package compress
