// Package vector holds columns of values in memory, in Arrow's layout.
//
// A [Vector] is a typed array with an optional validity bitmap; a [Batch] is a set
// of vectors of one length; a [Bitmap] is a selection of rows or a validity map.
// Fixed-width values lie back to back in host byte order, variable-length ones are
// 32-bit offsets into one byte buffer, booleans and validity are bit sets whose
// least significant bit comes first. A vector of bytes may instead be in dictionary
// form: narrow codes and a shared vector of words.
//
// Vectors that have been handed out by a reader are shared and must not be changed;
// a vector that a goroutine builds itself is not safe for concurrent use until it
// is complete.
//
// Invariants:
//
//	I1  valid is nil or has (Len+63)/64 words; a set bit means "not null".
//	I2  a null cell holds the zero value (width 0 for bytes).
//	I3  offsets has Len+1 entries, ascending, the last within the byte buffer.
//	I4  bits at Len and above in valid and in boolean words are zero.
//	I5  every code of a dictionary vector is below the dictionary's length; a null's is 0,
//	    also where the dictionary has no words.
package vector
