package cli

import (
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// convertColumn returns the cells of a file's column as cells of a table's column. A
// cell that the column does not take is null in the result and its row's first error
// stands in bad. Where nothing is to be done it returns v.
func convertColumn(from, to *schema.Column, v *vector.Vector, bad map[int32]error) (*vector.Vector, error) {
	if sameCells(from, to) {
		return v, nil
	}
	out := vector.New(to.Kind(), v.Len())
	for row := range v.Len() {
		x, err := convertCell(from, to, v.Value(row))
		if err != nil && bad[int32(row)] == nil {
			bad[int32(row)] = err
		}
		if err := out.Append(x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sameCells reports whether every cell of one column is a cell of the other, but for
// what the table itself checks: nulls, lengths and ranges.
func sameCells(from, to *schema.Column) bool {
	switch {
	case from.Kind() != to.Kind():
		return false
	case from.Type.IsDecimal() || to.Type.IsDecimal():
		return from.Type == to.Type && from.Scale == to.Scale
	case from.Type.IsText():
		return to.Type.IsText()
	}
	return from.Type == to.Type
}

// convertCell converts a cell: text is parsed as the table's type, anything becomes
// text as it is printed, and numbers and times convert where nothing is lost but what
// is finer than the type.
func convertCell(from, to *schema.Column, x schema.Value) (schema.Value, error) {
	switch {
	case x.IsNull():
		return to.Convert(nil)
	case from.Type.IsText() && !to.Type.IsText():
		return to.Parse(x.Str())
	case to.Type.IsText() && !from.Type.IsText():
		return to.Convert(string(from.Format(nil, x)))
	case from.Type.IsDecimal() && to.Kind().IsFloat():
		return to.Parse(string(from.Format(nil, x)))
	}
	return to.Convert(from.Go(x))
}
