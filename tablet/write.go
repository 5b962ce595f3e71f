package tablet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/memrowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Op is an insert of rows into one tablet on its way, the fast path of [Mutation]:
// keys locked, presence resolved. Its life is Resolve, then (under the store's commit
// mutex) Pin, then Apply in timestamp order, then Release; or Release at any time to
// give up.
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
	*scratch
	rows   []int32 // the row of the write each key came from, after sort left rows out
	lock   *keyLock
	target *memrowset.MemRowSet
}

// scratch is the memory of an Op that the next one uses.
type scratch struct {
	keys            rowset.Keys // of the rows to be put, ascending
	encoded, sorted vector.Vector
	sorter          sorter
	row, which      []int32
	found           []rowset.Found // empty ones
	columns         []*vector.Vector
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// init begins an op on the columns.
func (o *Op) init(t *Tablet, columns []*vector.Vector) {
	*o = Op{Columns: columns, tablet: t, scratch: scratches.Get().(*scratch)}
}

// Rows returns the number of rows to be put, before Release.
func (o *Op) Rows() int { return o.keys.Len() }

// Resolve locks the keys of the given rows, cells in schema order, and finds out
// which of them are absent. Only the column of the generated id may be empty; it is
// filled in. Reading disk rowsets may fail, and then nothing is held.
func (t *Tablet) Resolve(ctx context.Context, columns []*vector.Vector, maxKey int) (*Op, error) {
	o := new(Op)
	o.init(t, columns)
	if err := o.resolve(ctx, maxKey); err != nil {
		o.Release()
		return nil, err
	}
	return o, nil
}

func (o *Op) resolve(ctx context.Context, maxKey int) error {
	t, n := o.tablet, o.Columns[0].Len()
	if auto := t.schema.AutoIncrement(); auto >= 0 {
		if auto == 0 {
			n = o.Columns[1].Len()
		}
		if err := o.generateIDs(auto, n); err != nil {
			return err
		}
	}
	if err := o.sort(n, maxKey); err != nil {
		return err
	}
	o.lock = t.locks.lock(&o.keys)
	if t.schema.AutoIncrement() >= 0 {
		return nil // no two rows share a generated id
	}
	return o.dropLive(ctx)
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

// sort sets o.keys to the ascending distinct keys of the n rows and leaves out rows
// whose key is too long or stood earlier in the write.
func (o *Op) sort(n, maxKey int) error {
	key, encoded := o.Columns[:o.tablet.schema.NumKey()], &o.encoded
	encoded.Reset(schema.KindBytes)
	if err := encoding.AppendKeys(encoded, key, 0, n); err != nil {
		return err
	}
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
	if inOrder && len(o.TooLong) == 0 {
		o.keys.Encoded, o.keys.Columns = encoded, key
		return nil
	}
	o.order(maxKey)
	return nil
}

// order is the part of sort for rows that do not ascend.
func (o *Op) order(maxKey int) {
	encoded, n := &o.encoded, o.encoded.Len()
	order := o.sorter.sort(encoded)
	rows := o.row[:0]
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
	o.row = rows
	slices.Sort(o.Present)
	o.setKeys(&o.sorted, encoded, rows)
	o.keys.Columns, o.keys.Row = o.Columns[:o.tablet.schema.NumKey()], rows
	if len(rows) < n {
		o.rows = rows
		o.compact()
	}
}

// errGhost says that a key has a ghost in the active memory rowset, which a plain
// insert does not revive.
var errGhost = errors.New("a key has a ghost in memory")

// setKeys makes dst, which holds the given keys of src, the keys.
func (o *Op) setKeys(dst, src *vector.Vector, which []int32) {
	dst.Reset(schema.KindBytes)
	_ = dst.AppendRows(src, which) // not longer than src, which fits
	o.keys.Reset()
	o.keys.Encoded = dst
}

// dropLive looks the keys up and leaves out those that are live.
func (o *Op) dropLive(ctx context.Context) error {
	n := o.keys.Len()
	found := slices.Grow(o.found, n)[:n]
	o.found = found[:0]
	defer clear(found)
	which := o.which[:0]
	for i := range n {
		which = append(which, int32(i))
	}
	o.which = which
	o.keys.Since = mvcc.Max
	s, err := o.tablet.locate(ctx, &o.keys, which, found)
	if err != nil {
		return err
	}
	live := which[:0]
	for i := range found {
		if found[i].RowSet == rowset.RowSet(s.active) && !found[i].Live {
			return errGhost
		}
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
	src, dst := o.keys.Encoded, &o.sorted // others still compare their keys with src, see keyLock
	if src == dst {
		dst = &o.encoded
	}
	o.setKeys(dst, src, which)
	o.keys.Row = rows
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
	_, err := o.target.Append(ts, o.Columns, &o.keys, nil)
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
	if o.scratch != nil {
		o.keys.Reset()
		clear(o.columns)
		scratches.Put(o.scratch)
		o.scratch = nil
	}
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
