package diskrowset

import (
	"slices"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// fill tests the rows [from, to) and returns a batch of those selected, nil when there
// are none.
func (it *iterator) fill(verdict predicate.Verdict) (*rowset.Batch, error) {
	n := it.to - it.from
	for _, c := range it.columns {
		c.batch = nil
	}
	all, err := it.selectRows(n, verdict)
	if err != nil {
		return nil, err
	}
	b := &it.batch
	b.Rows, b.Sel, b.Selected, b.Deleted = n, nil, n, it.diff.deleted()
	if !all {
		if b.Selected = it.sel.Count(); b.Selected == 0 {
			return nil, nil
		}
		if b.Selected < n {
			b.Sel = it.sel
		}
	}
	for i, c := range it.output {
		if b.Columns[i], err = it.view(c); err != nil {
			return nil, err
		}
	}
	if err := it.addKeys(b); err != nil {
		return nil, err
	}
	if it.reverse {
		if err := it.flip(b); err != nil {
			return nil, err
		}
	}
	it.spec.Stats.RowsSelected.Add(int64(b.Selected))
	return b, nil
}

// selectRows sets sel to the visible rows that pass the filter; all says that every
// row does, and then sel is not set.
func (it *iterator) selectRows(n int, verdict predicate.Verdict) (all bool, err error) {
	test := it.spec.Filter != nil && verdict != predicate.All
	if it.spec.Filter != nil && !test {
		it.spec.Stats.BatchesFromZone.Add(1)
	}
	if it.times == nil && !test && !it.life && it.diff == nil {
		return true, nil
	}
	it.sel = it.sel.Grow(n)
	it.sel.SetRange(0, n)
	if err := it.live(it.spec.Time.Hi, it.deltas, it.sel); err != nil {
		return false, err
	}
	if it.diff != nil {
		if err := it.diff.choose(it.sel); err != nil {
			return false, err
		}
	}
	if test && it.sel.Any() {
		err = it.spec.Filter.Eval(n, it.sel, it.eval)
	}
	return false, err
}

// live clears from sel the rows of the batch that are dead at a time, to which the stores
// lead.
func (it *iterator) live(at mvcc.Timestamp, stores []delta.Reader, sel vector.Bitmap) error {
	if it.times != nil {
		t, err := it.times.view(it.ctx, it.from, it.to)
		if err != nil {
			return err
		}
		clearInvisible(sel, vector.Values[uint64](t), int64(at))
	} else if it.set.meta.MinInsert > at {
		sel.ClearRange(0, it.to-it.from)
	}
	return applyLife(it.ctx, stores, at, it.from, it.to, sel)
}

// clearInvisible clears the rows that were inserted after a time.
func clearInvisible(sel vector.Bitmap, times []uint64, at int64) {
	const least = 1 << 63 // of int64
	kernel.FilterSpan(sel, times, least, uint64(at)-least, ^uint64(0))
}

// addKeys adds the encoded keys to the batch; those of rows that are not selected may
// be empty.
func (it *iterator) addKeys(b *rowset.Batch) error {
	if !it.spec.WithKeys {
		return nil
	}
	it.views = it.views[:0]
	for _, c := range it.keys {
		v, err := c.view(it.ctx, it.from, it.to)
		if err != nil {
			return err
		}
		it.views = append(it.views, v)
	}
	if it.encoded == nil {
		it.encoded = vector.New(schema.KindBytes, b.Rows)
	}
	it.encoded.Reset(schema.KindBytes)
	b.Keys = it.encoded
	if b.Sel == nil || b.Selected*4 > b.Rows {
		return encoding.AppendKeys(it.encoded, it.views, 0, b.Rows)
	}
	done := 0
	for row := b.Sel.Next(0); row >= 0; row = b.Sel.Next(row + 1) {
		if err := it.encoded.AppendConst(emptyKey, row-done); err != nil {
			return err
		}
		if err := encoding.AppendKeys(it.encoded, it.views, row, row+1); err != nil {
			return err
		}
		done = row + 1
	}
	return it.encoded.AppendConst(emptyKey, b.Rows-done)
}

var emptyKey = schema.StringValue("")

// flip replaces the batch by its selected rows in reverse order.
func (it *iterator) flip(b *rowset.Batch) error {
	it.rows = b.AppendSelected(it.rows[:0])
	slices.Reverse(it.rows)
	for len(it.flipped) <= len(b.Columns) {
		it.flipped = append(it.flipped, new(vector.Vector))
	}
	turn := func(i int, v **vector.Vector) error {
		to := it.flipped[i]
		to.Reset((*v).Kind())
		err := to.AppendRows(*v, it.rows)
		*v = to
		return err
	}
	for i := range b.Columns {
		if err := turn(i, &b.Columns[i]); err != nil {
			return err
		}
	}
	if b.Deleted != nil {
		dead := vector.NewBitmap(len(it.rows))
		for i, r := range it.rows {
			dead.Put(i, b.Deleted.Get(int(r)))
		}
		b.Deleted = dead
	}
	b.Rows, b.Sel = b.Selected, nil
	if b.Keys == nil {
		return nil
	}
	return turn(len(b.Columns), &b.Keys)
}
