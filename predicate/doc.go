// Package predicate is the filter language of scans: expressions over columns and
// literals ([Expr]), their typed form for one schema ([Bound]), evaluation over
// vectors ([Bound.Eval]), and the tests that let a scan skip data ([Bound.Prune],
// [Bound.KeyRange], [Bound.Equalities]).
//
// A row qualifies when the expression is true; false and unknown (SQL's
// three-valued logic: any comparison with null is unknown) do not. Comparisons
// follow the rule of package schema: NaN satisfies only != and NOT IN, and what is
// the negation of a comparison it fails, so NOT(x < 10) holds for NaN.
//
// An Expr and a Bound are immutable and may be shared between goroutines.
//
// # Literals
//
// A literal need not be a value of its column: numbers compare exactly, so an int8 is
// always below 1000, and an integer is below 10.5 when it is at most 10. What storing
// rounds is rounded here too, so that a row is found by what was inserted: a
// floating-point number, or text, is rounded to the type of a float or double column,
// and an instant is floored to the microsecond or the UTC day. Compared with a
// decimal a floating-point number means its shortest decimal text. A null literal makes a comparison
// unknown, a null in an IN list makes every miss unknown, and an empty list is false.
// Text compared with a varchar may be longer than the column admits.
//
// # Invariants
//
//	I1  a Bound holds no NOT: a leaf carries a flag instead, which exchanges the
//	    cells that pass and those that do not among the cells that are not null. A
//	    bitmap of the rows for which a leaf is true is then all that AND and OR need;
//	    false and unknown are never told apart.
//	I2  within a conjunction there is at most one list or span for a column; leaves
//	    that can never or always hold are gone.
//	I3  Prune and KeyRange may only err towards keeping rows.
package predicate
