package diskrowset

import (
	"context"

	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vector"
)

// diff is the part of a scan that finds the rows which changed in an interval.
type diff struct {
	it     *iterator
	in     mvcc.Interval
	set    *deltas
	stores []delta.Reader // with changes in the interval
	before []delta.Reader // lead to the lower end

	// The batch being filled.
	touched, was vector.Bitmap
	dead         vector.Bitmap // rows live at the lower end and dead at the upper one
	last         []rowset.Event
	patched      map[*scanColumn]*vector.Vector
}

func newDiff(it *iterator) *diff {
	d := it.set.deltas.Load()
	return &diff{it: it, in: it.spec.Time, set: d, stores: d.within(it.spec.Time), before: d.visible(it.spec.Time.Lo),
		patched: map[*scanColumn]*vector.Vector{}}
}

// within returns the stores that may hold a change in the interval.
func (d *deltas) within(in mvcc.Interval) (out []delta.Reader) {
	add := func(s delta.Reader) {
		if s.MaxTime() > in.Lo && s.MinTime() <= in.Hi {
			out = append(out, s)
		}
	}
	for _, f := range d.undo {
		add(f)
	}
	for _, s := range d.stores {
		add(s)
	}
	return out
}

// deleted returns the deleted rows of the batch.
func (d *diff) deleted() vector.Bitmap {
	if d == nil || !d.dead.Any() {
		return nil
	}
	return d.dead
}

// choose makes sel, the rows live at the upper end, the rows that changed and are live at
// one of the ends.
func (d *diff) choose(sel vector.Bitmap) error {
	it := d.it
	n := it.to - it.from
	d.touched, d.was, d.dead = d.touched.Grow(n), d.was.Grow(n), d.dead.Grow(n)
	if err := d.touch(n); err != nil {
		return err
	}
	d.was.SetRange(0, n)
	if err := it.live(d.in.Lo, d.before, d.was); err != nil {
		return err
	}
	copy(d.dead, d.was)
	d.dead.AndNot(sel)
	d.dead.And(d.touched)
	for w := range sel {
		sel[w] = sel[w]&d.touched[w] | d.dead[w]
	}
	return d.findDeaths()
}

// touch sets the rows that changed in the interval.
func (d *diff) touch(n int) error {
	it := d.it
	for _, s := range d.stores {
		if err := s.Touched(it.ctx, d.in, it.from, it.to, d.touched); err != nil {
			return err
		}
	}
	if it.times == nil {
		if d.in.Contains(it.set.meta.MinInsert) {
			d.touched.SetRange(0, n)
		}
		return nil
	}
	t, err := it.times.view(it.ctx, it.from, it.to)
	if err != nil {
		return err
	}
	for i, x := range vector.Values[int64](t) {
		if d.in.Contains(mvcc.Timestamp(x)) {
			d.touched.Set(i)
		}
	}
	return nil
}

// findDeaths lists the deleted rows that lived again, with the times of their first
// deaths: the cells they had are among those that commits replaced.
func (d *diff) findDeaths() error {
	it := d.it
	d.last = d.last[:0]
	if !d.dead.Any() {
		return nil
	}
	for _, f := range d.set.undo {
		if f.meta.Deletes == 0 || f.MinTime() > d.in.Hi {
			continue
		}
		data, err := f.open(it.ctx)
		if err != nil {
			return err
		}
		p, err := f.places(it.ctx, data.deletes)
		if err != nil {
			return err
		}
		part := p.between(it.from, it.to)
		for i := 0; i < len(part.rows); {
			died, next := part.choose(i, d.in.Lo, true)
			row := int(part.rows[i]) - it.from
			if i = next; died >= 0 && part.times[died] <= int64(d.in.Hi) && d.dead.Get(row) {
				d.last = append(d.last, rowset.Event{Row: rowset.RowID(row), Time: mvcc.Timestamp(part.times[died])})
			}
		}
	}
	return nil
}

// revive returns the cells of the batch with those of deleted rows that lived again.
func (d *diff) revive(c *scanColumn, v *vector.Vector) (*vector.Vector, error) {
	if len(d.last) == 0 || !d.set.touched(c.patches.col) {
		return v, nil
	}
	out := d.patched[c]
	if out == nil {
		out = vector.New(v.Kind(), v.Len())
		d.patched[c] = out
	}
	out.Reset(v.Kind())
	done := 0
	for _, e := range d.last {
		row := int(e.Row)
		if row < done {
			continue // a later file knew it already
		}
		if err := out.AppendRange(v, done, row); err != nil {
			return nil, err
		}
		found, err := d.set.cellBefore(d.it.ctx, e.Time, c.patches.col, d.it.from+row, out)
		if err == nil && !found {
			err = out.AppendFrom(v, row)
		}
		if err != nil {
			return nil, err
		}
		done = row + 1
	}
	return out, out.AppendRange(v, done, v.Len())
}

// touched reports whether an UNDO file holds cells of a column.
func (d *deltas) touched(col int) bool {
	for _, f := range d.undo {
		if f.Touches(col) {
			return true
		}
	}
	return false
}

// cellBefore appends the cell that a row had just before a time, if a commit from then on
// replaced it.
func (d *deltas) cellBefore(ctx context.Context, at mvcc.Timestamp, col, row int, dst *vector.Vector) (bool, error) {
	for i := len(d.undo) - 1; i >= 0; i-- { // the oldest first
		if done, err := d.undo[i].PatchRow(ctx, at-1, col, row, dst); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// Touched sets the rows of [from, to) that a commit in the interval changed.
func (f *deltaFile) Touched(ctx context.Context, in mvcc.Interval, from, to int, rows vector.Bitmap) error {
	d, err := f.open(ctx)
	if err != nil {
		return err
	}
	for _, l := range d.lists() {
		p, err := f.places(ctx, l)
		if err != nil {
			return err
		}
		part := p.between(from, to)
		for i, row := range part.rows {
			if in.Contains(mvcc.Timestamp(part.times[i])) {
				rows.Set(int(row) - from)
			}
		}
	}
	return nil
}
