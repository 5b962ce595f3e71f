// Package predicate is the filter language of scans: expressions over columns and
// literals ([Expr]), their typed form for one schema ([Bound]), evaluation over
// vectors, and the tests that let a scan skip data ([Bound.Prune], [Bound.KeyRange]).
//
// A row qualifies when the expression is true; false and unknown (SQL's
// three-valued logic: any comparison with null is unknown) do not. Comparisons
// follow the rule of package schema: NaN satisfies only !=.
//
// An Expr and a Bound are immutable and may be shared between goroutines.
package predicate
