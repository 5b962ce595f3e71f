// Package aggregate computes count, sum, min, max and avg, with or without
// group-by, inside a scan: over batches of vectors and selections, without
// materialising rows.
//
// A [Plan] says what to compute; it is immutable and shared. Each scan worker fills
// a [State] of its own ([State.Add], or [State.AddZones] where metadata suffices);
// [State.Merge] joins them and [State.Result] gives vectors. A State is used by one
// goroutine at a time.
//
// Invariants:
//
//	I1  a null cell counts for count(*) alone; null is a group of its own.
//	I2  sums of integers and decimals are exact; one that does not fit its result
//	    type is an error of Result, however large or small the sums in between were.
//	I3  min and max ignore NaN, and over no number they are null; as group values
//	    all NaN are one, and -0 and +0 are one, shown as +0.
//	I4  without group-by there is exactly one row, with group-by one for each group
//	    seen, in no particular order.
package aggregate
