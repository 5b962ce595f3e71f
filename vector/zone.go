package vector

import "github.com/minikudu/minikudu/schema"

// Zone summarises a run of cells of one column: a page, or a whole file.
type Zone struct {
	Rows, Nulls int64
	// Min and Max are over the cells that are neither null nor NaN; Null when there
	// are none or the bound is unknown. A zero of a float is stored as +0. Bounds of
	// bytes may be shortened: Min then sorts at or before, Max at or after every cell.
	Min, Max schema.Value
	HasNaN   bool
	// Exact is set when Min and Max are values of the column, not shortened bounds.
	Exact bool
}

// Add widens the zone by the cells of v.
func (z *Zone) Add(v *Vector) { panic("to be written") }

// Merge widens the zone by those of o.
func (z *Zone) Merge(o Zone) { panic("to be written") }

// Shorten cuts bounds of bytes to at most max bytes: the lower one down, the upper
// one up, or to unknown where nothing of that length is above it.
func (z *Zone) Shorten(max int) { panic("to be written") }
