package tablet

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/memrowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Op is a write to one tablet on its way: keys locked, presence resolved. Its life
// is Resolve, then (under the store's commit mutex) Pin, then Apply in timestamp
// order, then Release; or Release at any time to give up.
type Op struct {
	// Columns are the cells of the rows to be put, in schema order, with generated
	// ids filled in.
	Columns []*vector.Vector
	// Present lists the rows of the write, ascending, whose key was live already, in
	// the tablet or earlier in the same write.
	Present []int32
	// TooLong lists the rows of the write, ascending, whose encoded key exceeds the limit.
	TooLong []int32

	tablet *Tablet
	keys   *rowset.Keys
	rows   []int32 // the row of the write each key came from, after sort left rows out
	lock   *keyLock
	target *memrowset.MemRowSet
}

// Rows returns the number of rows to be put.
func (o *Op) Rows() int { return o.keys.Len() }

// Resolve locks the keys of the given rows, cells in schema order, and finds out
// which of them are absent. Only the column of the generated id may be empty; it is
// filled in. Reading disk rowsets may fail, and then nothing is held.
func (t *Tablet) Resolve(ctx context.Context, columns []*vector.Vector, maxKey int) (*Op, error) {
	o := &Op{Columns: columns, tablet: t}
	n := columns[0].Len()
	if auto := t.schema.AutoIncrement(); auto >= 0 {
		if auto == 0 {
			n = columns[1].Len()
		}
		if err := o.generateIDs(auto, n); err != nil {
			return nil, err
		}
	}
	encoded := vector.New(schema.KindBytes, n)
	if err := encoding.AppendKeys(encoded, o.Columns[:t.schema.NumKey()], 0, n); err != nil {
		return nil, err
	}
	o.sort(encoded, maxKey)
	o.lock = t.locks.lock(o.keys)
	if t.schema.AutoIncrement() >= 0 {
		return o, nil // no two rows share a generated id
	}
	if err := o.dropLive(ctx); err != nil {
		o.Release()
		return nil, err
	}
	return o, nil
}

// generateIDs fills the column of the generated id.
func (o *Op) generateIDs(auto, n int) error {
	first, err := o.tablet.takeIDs(n)
	if err != nil {
		return err
	}
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = first + int64(i)
	}
	o.Columns = slices.Clone(o.Columns)
	o.Columns[auto] = vector.FromFixed(schema.KindInt64, ids, nil)
	return nil
}

// takeIDs hands out n generated ids and returns the first.
func (t *Tablet) takeIDs(n int) (first int64, err error) {
	for {
		last := t.lastID.Load()
		if last > math.MaxInt64-int64(n) {
			return 0, fmt.Errorf("%w: column %q has no ids left", ErrIllegalState, schema.AutoIncrementName)
		}
		if t.lastID.CompareAndSwap(last, last+int64(n)) {
			return last + 1, nil
		}
	}
}

// sort sets o.keys to the ascending distinct keys of the rows and leaves out rows
// whose key is too long or stood earlier in the write.
func (o *Op) sort(encoded *vector.Vector, maxKey int) {
	n := encoded.Len()
	offsets := encoded.Offsets()
	inOrder := true
	for i := range n {
		if int(offsets[i+1]-offsets[i]) > maxKey {
			o.TooLong = append(o.TooLong, int32(i))
		}
		if i > 0 && inOrder && bytes.Compare(encoded.BytesAt(i-1), encoded.BytesAt(i)) >= 0 {
			inOrder = false
		}
	}
	key := o.Columns[:o.tablet.schema.NumKey()]
	if inOrder && len(o.TooLong) == 0 {
		o.keys = &rowset.Keys{Encoded: encoded, Columns: key}
		return
	}
	order := sortedRows(encoded)
	rows := make([]int32, 0, n)
	for i, r := range order {
		k := encoded.BytesAt(int(r))
		switch {
		case len(k) > maxKey:
		case i > 0 && bytes.Equal(encoded.BytesAt(int(order[i-1])), k):
			o.Present = append(o.Present, r)
		default:
			rows = append(rows, r)
		}
	}
	slices.Sort(o.Present)
	sorted := vector.New(schema.KindBytes, len(rows))
	_ = sorted.AppendRows(encoded, rows) // not longer than encoded, which fits
	o.keys = &rowset.Keys{Encoded: sorted, Columns: key, Row: rows}
	if len(rows) < n {
		o.rows = rows
		o.compact()
	}
}

// dropLive looks the keys up and leaves out those that are live.
func (o *Op) dropLive(ctx context.Context) error {
	n := o.keys.Len()
	found := make([]rowset.Found, n)
	which := make([]int32, n)
	for i := range which {
		which[i] = int32(i)
	}
	if err := o.tablet.stores.Load().lookup(ctx, o.keys, which, found); err != nil {
		return err
	}
	live := which[:0]
	for i := range found {
		if found[i].RowSet != nil && found[i].Live {
			o.Present = append(o.Present, o.writeRow(i))
		} else {
			live = append(live, int32(i))
		}
	}
	if len(live) == n {
		return nil
	}
	slices.Sort(o.Present)
	o.keep(live)
	return nil
}

// writeRow returns the row of the write that key i came from.
func (o *Op) writeRow(i int) int32 {
	if o.rows != nil {
		return o.rows[i]
	}
	return int32(o.keys.ColumnRow(i))
}

// keep leaves only the given keys in the op.
func (o *Op) keep(which []int32) {
	rows := make([]int32, len(which))
	for i, k := range which {
		rows[i] = int32(o.keys.ColumnRow(int(k)))
	}
	sorted := vector.New(schema.KindBytes, len(which))
	_ = sorted.AppendRows(o.keys.Encoded, which) // a part of what fits
	o.keys = &rowset.Keys{Encoded: sorted, Columns: o.keys.Columns, Row: rows}
	o.compact()
}

// compact replaces the columns by the kept rows alone, in key order.
func (o *Op) compact() {
	columns := make([]*vector.Vector, len(o.Columns))
	for i, v := range o.Columns {
		columns[i] = vector.New(v.Kind(), len(o.keys.Row))
		_ = columns[i].AppendRows(v, o.keys.Row) // a part of what fits
	}
	o.Columns = columns
	o.keys.Columns, o.keys.Row = columns[:o.tablet.schema.NumKey()], nil
}

// Pin fixes the memory rowset that will take the rows. It is called under the
// store's commit mutex, like Rotate.
func (o *Op) Pin() {
	o.target = o.tablet.stores.Load().active
	o.target.Pin()
}

// TargetBytes returns the memory of the pinned memory rowset.
func (o *Op) TargetBytes() int64 { return o.target.MemoryBytes() }

// Apply puts the rows into the pinned memory rowset, with the commit's timestamp.
// Calls come in timestamp order, one at a time.
func (o *Op) Apply(ts mvcc.Timestamp) error {
	if o.keys.Len() == 0 {
		return nil
	}
	_, err := o.target.Append(ts, o.Columns, o.keys, nil)
	return err
}

// Release unlocks the keys and unpins the target. It may be called twice.
func (o *Op) Release() {
	if o.target != nil {
		o.target.Unpin()
		o.target = nil
	}
	if o.lock != nil {
		o.tablet.locks.unlock(o.lock)
		o.lock = nil
	}
}

// Replay applies rows that the log holds at ts; see rule R10. Rows that a flush made
// durable are skipped.
func (t *Tablet) Replay(ts mvcc.Timestamp, columns []*vector.Vector) (applied int, err error) {
	if auto := t.schema.AutoIncrement(); auto >= 0 {
		for _, id := range vector.Values[int64](columns[auto]) {
			t.raiseID(id)
		}
	}
	if ts <= t.Watermark() {
		return 0, nil
	}
	n := columns[0].Len()
	o := &Op{Columns: columns, tablet: t}
	encoded := vector.New(schema.KindBytes, n)
	if err := encoding.AppendKeys(encoded, columns[:t.schema.NumKey()], 0, n); err != nil {
		return 0, err
	}
	o.sort(encoded, math.MaxInt)
	if o.Rows() != n {
		return 0, fmt.Errorf("%d rows of one commit share %d keys", n, o.Rows())
	}
	o.Pin()
	defer o.Release()
	return n, o.Apply(ts)
}

// raiseID makes later generated ids larger than id.
func (t *Tablet) raiseID(id int64) {
	for {
		last := t.lastID.Load()
		if id <= last || t.lastID.CompareAndSwap(last, id) {
			return
		}
	}
}
