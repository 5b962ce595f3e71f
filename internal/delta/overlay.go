package delta

import (
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Overlay is a column of cells of which stores of changes replace some, one store after
// the other. Nothing is copied before the first replacement. Cells of fixed width are copied
// once and overwritten. Of others it is noted which cell each row has in the end, and they
// are put together at the end. It is used by one goroutine at a time, again and again.
type Overlay struct {
	base    *vector.Vector
	changed bool
	out     vector.Vector // the cells, once some changed

	// Of cells of variable length.
	cells vector.Vector // the replacing ones, in the order in which they came
	pick  []int32       // for each row: 0 for the base's cell, else the index of one of cells, plus 1

	// Where the ranges of rows before ended in a store, for a reader that goes on from there.
	ends map[*MemStore]*runEnds
}

// runEnds is the places in a store's commits up to which they were read.
type runEnds struct {
	row  int     // the first row that was not asked for
	ends []int32 // by commit; -1 for not known
}

// endsOf returns the places at which the rows from one on begin in the commits [first, n).
func (o *Overlay) endsOf(m *MemStore, from, first, n int) []int32 {
	r := o.ends[m]
	if r == nil {
		r = &runEnds{row: -1}
		if o.ends == nil {
			o.ends = map[*MemStore]*runEnds{}
		}
		o.ends[m] = r
	}
	known := 0
	if r.row == from {
		known = min(len(r.ends), n)
	}
	for len(r.ends) < n {
		r.ends = append(r.ends, -1)
	}
	for i := range r.ends {
		if i < first || i >= known {
			r.ends[i] = -1
		}
	}
	r.row = -1 // until they are read to the end
	return r.ends
}

// ended notes that a store was read up to a row.
func (o *Overlay) ended(m *MemStore, to int) { o.ends[m].row = to }

// Reset makes the overlay one of the given cells, which must not change meanwhile.
func (o *Overlay) Reset(base *vector.Vector) { o.base, o.changed = base, false }

// Kind returns the kind of the cells.
func (o *Overlay) Kind() schema.Kind { return o.base.Kind() }

// begin prepares for the first replacement.
func (o *Overlay) begin() error {
	if o.changed {
		return nil
	}
	o.changed = true
	n := o.base.Len()
	if o.Kind() != schema.KindBytes {
		o.out.Reset(o.Kind())
		o.out.Reserve(n)
		return o.out.AppendRange(o.base, 0, n)
	}
	o.cells.Reset(schema.KindBytes)
	if cap(o.pick) < n {
		o.pick = make([]int32, n)
	}
	o.pick = o.pick[:n]
	clear(o.pick)
	return nil
}

// Set replaces the cell of a row by cell i of src.
func (o *Overlay) Set(row int, src *vector.Vector, i int) error {
	if err := o.begin(); err != nil {
		return err
	}
	if o.Kind() != schema.KindBytes {
		o.out.Set(row, src, i)
		return nil
	}
	if err := o.cells.AppendFrom(src, i); err != nil {
		return err
	}
	o.pick[row] = int32(o.cells.Len())
	return nil
}

// Scatter replaces the cells of the rows, each less first, by the cells of src from at on.
// Of a row that occurs several times the last cell counts.
func (o *Overlay) Scatter(rows []int32, first int, src *vector.Vector, at int) error {
	if err := o.begin(); err != nil {
		return err
	}
	if o.Kind() != schema.KindBytes {
		o.out.Scatter(rows, int32(first), src, at)
		return nil
	}
	n := int32(o.cells.Len())
	if err := o.cells.AppendRange(src, at, at+len(rows)); err != nil {
		return err
	}
	for i, row := range rows {
		o.pick[int(row)-first] = n + int32(i) + 1
	}
	return nil
}

// Take is Result for a caller that keeps the cells.
func (o *Overlay) Take() (*vector.Vector, error) {
	v, err := o.Result()
	if v != &o.out {
		return v, err
	}
	own := o.out
	o.out = vector.Vector{}
	return &own, err
}

// Result returns the cells: the base itself when none was replaced. They are valid until
// the next Reset.
func (o *Overlay) Result() (*vector.Vector, error) {
	switch {
	case !o.changed:
		return o.base, nil
	case o.Kind() != schema.KindBytes:
		return &o.out, nil
	}
	o.out.Reset(schema.KindBytes)
	o.out.Reserve(len(o.pick))
	for from := 0; from < len(o.pick); {
		to := from + 1
		if p := o.pick[from]; p == 0 {
			for to < len(o.pick) && o.pick[to] == 0 {
				to++
			}
			if err := o.out.AppendRange(o.base, from, to); err != nil {
				return nil, err
			}
		} else {
			for to < len(o.pick) && o.pick[to] == p+int32(to-from) {
				to++
			}
			if err := o.out.AppendRange(&o.cells, int(p)-1, int(p)-1+to-from); err != nil {
				return nil, err
			}
		}
		from = to
	}
	return &o.out, nil
}
