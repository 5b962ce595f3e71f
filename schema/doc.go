// Package schema describes tables: column types, columns and their storage
// attributes, primary keys, and single cell values.
//
// The main types are [Type] (what a user declares), [Kind] (how cells of a type
// are held in memory), [Column], [Schema] and [Value]. All of them are values or
// immutable after construction and may be shared between goroutines.
//
// Values enter as Go values ([Column.Convert], strict) or as text ([Column.Parse])
// and leave as either ([Column.Go], [Column.Format]). Columns themselves have a
// textual form, read by [ParseColumns] and written by [Column.String]; [FieldsOf]
// derives them from a struct.
//
// The package is a leaf: it imports the standard library only, so that every
// other package of the module may import it.
//
// # Comparison rule
//
// One rule holds everywhere a value is compared, pruned or aggregated:
// comparisons are IEEE 754 for float and double (NaN satisfies only !=), min and
// max ignore NaN, -0 equals +0, and NaN never stands in a stored bound. Strings
// and binaries compare bytewise, false sorts before true.
package schema
