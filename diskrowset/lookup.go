package diskrowset

import (
	"bytes"
	"context"
	"sync"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/filter"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// lookup is the state of one call that resolves keys, pooled.
type lookup struct {
	set   *RowSet
	which []int32
	keys  []keyCursor // key columns
	times keyCursor

	// Of the look-up of a single key.
	run    int            // in which it may be, or -1
	filter *filter.Filter // that is asked, or nil
	absent bool           // it is not there

	count int    // single keys looked up, in any rowset
	key   []byte // encoded, of a row that seek looks at

	fixed, bytes vector.Vector // probes of the cursors
}

var lookups = sync.Pool{New: func() any { return new(lookup) }}

// newLookup returns a lookup with its cursors before the first page.
func newLookup(s *RowSet) *lookup {
	l := lookups.Get().(*lookup)
	l.set, l.run, l.filter, l.absent = s, -1, nil, false
	l.keys = l.keys[:0]
	for _, c := range s.keys {
		x := keyCursor{cursor: cursor{col: c}, probe: &l.fixed}
		if c.typ.Kind() == schema.KindBytes {
			x.probe = &l.bytes
		}
		l.keys = append(l.keys, x)
	}
	l.times = keyCursor{cursor: cursor{col: s.times}, probe: &l.fixed}
	return l
}

// end reports the cache hits and gives the state back, without its pages.
func (l *lookup) end() {
	hits := l.times.hits
	for i := range l.keys {
		hits += l.keys[i].hits
	}
	l.set.env.Pages.Hit(hits)
	clear(l.keys)
	l.set, l.filter, l.times = nil, nil, keyCursor{}
	lookups.Put(l)
}

// Lookup resolves the keys listed in which: key column bounds first, which prove a
// time-ordered key absent, then the key filters, then the key index, whose search
// ends in the cells of the key columns.
func (s *RowSet) Lookup(ctx context.Context, keys *rowset.Keys, which []int32, out []rowset.Found) error {
	if !s.Acquire() {
		return ErrClosed
	}
	defer s.Release()
	l := newLookup(s)
	defer l.end()
	if len(which) == 1 {
		return l.one(ctx, keys, which[0], out)
	}
	l.which = append(l.which[:0], which...)
	cand := l.which
	for i := range s.bounds {
		cand = s.bounds[i].keep(keys, cand)
	}
	if len(cand) == 0 {
		return nil
	}
	cand, err := s.filtered(ctx, keys, cand)
	if err != nil || len(cand) == 0 {
		return err
	}
	return l.resolve(ctx, keys, cand, out)
}

// filtered returns which without the keys that the filters prove absent.
func (s *RowSet) filtered(ctx context.Context, keys *rowset.Keys, which []int32) ([]int32, error) {
	if s.filters == nil {
		return which, nil
	}
	d, err := s.filters.directory(ctx)
	if err != nil {
		return nil, err
	}
	n, at := 0, -1
	var b probes
	for i, k := range which {
		if at = d.firsts.find(keys.At(int(k)), at); at >= 0 {
			f, err := s.filters.filter(ctx, s.env.Pages, d, at)
			if err != nil {
				return nil, err
			}
			b.add(k, f, keys.Locations(int(k)))
		}
		if b.n == len(b.keys) || i == len(which)-1 {
			n += b.passed(which[n:])
		}
	}
	return which[:n], nil
}

// probes is keys whose filters are asked together.
type probes struct {
	n         int
	keys      [64]int32
	filters   [64]*filter.Filter
	locations [64]*filter.Locations
}

func (b *probes) add(k int32, f *filter.Filter, l *filter.Locations) {
	b.keys[b.n], b.filters[b.n], b.locations[b.n] = k, f, l
	b.n++
}

// passed sets dst to the keys that the filters let pass, empties b, and returns their number.
func (b *probes) passed(dst []int32) (n int) {
	var first [64]uint64
	for i := range b.n {
		first[i] = b.filters[i].First(b.locations[i])
	}
	for i := range b.n {
		if first[i] != 0 && b.filters[i].Test(b.locations[i]) {
			dst[n] = b.keys[i]
			n++
		}
	}
	b.n = 0
	return n
}

// one is Lookup for a single key.
func (l *lookup) one(ctx context.Context, keys *rowset.Keys, k int32, out []rowset.Found) error {
	s, single := l.set, [1]int32{k}
	for i := range s.bounds {
		if len(s.bounds[i].keep(keys, single[:])) == 0 {
			return nil
		}
	}
	cached, err := l.ahead(ctx, keys, int(k))
	if err != nil || l.absent {
		return err
	}
	if l.filter == nil && !cached {
		if err := l.ask(ctx, keys, int(k)); err != nil || l.absent {
			return err
		}
	}
	if l.filter != nil && !l.filter.Test(keys.Locations(int(k))) {
		l.inVain()
		l.note(true)
		return nil
	}
	x, err := s.keyRuns(ctx)
	if err != nil {
		return err
	}
	if l.run = x.find(keys.At(int(k)), l.run); l.run < 0 {
		return nil
	}
	found, err := l.resolveOne(ctx, keys, l.run, int(k), out)
	l.note(!found)
	return err
}

// ahead loads the memory that a look-up of the key will wait for, for a later reader: that of the
// filter, unless there is reason to do without, and that of the run of rows in which the key is, if
// it is there. So the processor waits for all of it at a time. It reports whether the pages of the run
// are cached.
func (l *lookup) ahead(ctx context.Context, keys *rowset.Keys, k int) (cached bool, err error) {
	if l.set.filters.pays() {
		if err := l.ask(ctx, keys, k); err != nil || l.absent {
			return false, err
		}
		l.filter.Touch(keys.Locations(k))
	}
	x := l.set.cachedKeyRuns()
	if x == nil {
		return false, nil
	}
	if l.run = x.find(keys.At(k), -1); l.run < 0 {
		l.absent = true
		return true, nil
	}
	from, to := l.set.runRows(l.run)
	cached = true
	for i := range l.keys {
		cached = l.keys[i].ahead(from, to) && cached
	}
	return cached, nil
}

// inVain takes the pages that were loaded ahead for ones that nobody asked for.
func (l *lookup) inVain() {
	for i := range l.keys {
		l.keys[i].hits = 0
	}
}

// ask finds the filter that the key is in, if the rowset holds it and has filters.
func (l *lookup) ask(ctx context.Context, keys *rowset.Keys, k int) (err error) {
	if f := l.set.filters; f != nil {
		l.filter, err = f.of(ctx, l.set.env.Pages, keys.At(k))
		l.absent = l.filter == nil
	}
	return err
}

// note tells the filters of a look-up, of every seventh, as few callers do anything in sevens: what
// processors share should not be written often.
func (l *lookup) note(absent bool) {
	if l.count++; l.count%7 == 0 {
		l.set.filters.note(absent)
	}
}

// resolve searches the keys in the key index and the key columns.
func (l *lookup) resolve(ctx context.Context, keys *rowset.Keys, which []int32, out []rowset.Found) error {
	x, err := l.set.keyRuns(ctx)
	if err != nil {
		return err
	}
	at := -1
	for _, k := range which {
		if at = x.find(keys.At(int(k)), at); at < 0 {
			continue
		}
		if _, err := l.resolveOne(ctx, keys, at, int(k), out); err != nil {
			return err
		}
	}
	return nil
}

// resolveOne searches a key in the key columns of a run.
func (l *lookup) resolveOne(ctx context.Context, keys *rowset.Keys, run, k int, out []rowset.Found) (bool, error) {
	row, ok, err := l.findRow(ctx, run, keys.Columns, keys.ColumnRow(k))
	if !ok || err != nil {
		return false, err
	}
	f, err := l.found(ctx, row, keys.Since)
	if err == nil && (f.Live || out[k].RowSet == nil) {
		out[k] = f
	}
	return true, err
}

// findRow searches a run for the key whose cells are row k of want: each key column
// narrows the rows in which the next one is in ascending order.
func (l *lookup) findRow(ctx context.Context, run int, want []*vector.Vector, k int) (row int, ok bool, err error) {
	from, to := l.set.runRows(run)
	for i := range l.keys {
		if from, to, err = l.keys[i].narrow(ctx, from, to, want[i], k); err != nil || from == to {
			return 0, false, err
		}
	}
	return from, true, nil
}

// found describes a stored row. When it was inserted is not looked up if that was at or
// before the given time for all rows.
func (l *lookup) found(ctx context.Context, row int, since mvcc.Timestamp) (rowset.Found, error) {
	f := rowset.Found{RowSet: l.set, Row: rowset.RowID(row), Live: true, OnDisk: true, LastChange: l.set.meta.MinInsert}
	kind, ts, changed, err := l.set.deltas.Load().last(ctx, f.Row)
	if changed || err != nil {
		f.Live, f.LastChange = kind != rowset.ChangeDel, ts
		return f, err
	}
	if l.set.times == nil || l.set.meta.MaxInsert <= since {
		return f, nil
	}
	page, at, err := l.times.cell(ctx, row)
	if err == nil {
		f.LastChange = mvcc.Timestamp(vector.Values[int64](page)[at])
	}
	return f, err
}

// seek returns the first row whose encoded key is at or after key, the number of rows
// when there is none.
func (s *RowSet) seek(ctx context.Context, key []byte) (int, error) {
	switch {
	case bytes.Compare(key, s.meta.MinKey) <= 0:
		return 0, nil
	case bytes.Compare(key, s.meta.MaxKey) > 0:
		return s.rows, nil
	}
	x, err := s.keyRuns(ctx)
	if err != nil {
		return 0, err
	}
	run := x.find(key, -1)
	if run < 0 {
		return 0, nil
	}
	l := newLookup(s)
	defer l.end()
	from, to := s.runRows(run)
	shared, err := l.sharedKey(ctx, from, to-1)
	if err != nil {
		return 0, err
	}
	n := len(l.key)
	switch c := compareCommon(key, l.key); {
	case c < 0:
		return from, nil
	case c > 0:
		return to, nil
	}
	row := search(from, to, func(row int) bool {
		if err == nil {
			err = l.appendKey(ctx, row, shared)
		}
		less := bytes.Compare(l.key[n:], key[n:]) < 0
		l.key = l.key[:n]
		return !less
	})
	return row, err
}

// sharedKey sets key to the cells of the leading key columns that two rows, and so all between them,
// have in common, and returns the number of these columns.
func (l *lookup) sharedKey(ctx context.Context, first, last int) (columns int, err error) {
	l.key = l.key[:0]
	for i := range l.keys {
		a, err := l.keys[i].value(ctx, first)
		if err != nil {
			return 0, err
		}
		b, err := l.keys[i].value(ctx, last)
		if a != b || err != nil {
			return i, err
		}
		l.key = encoding.AppendKeyCell(l.key, a, i == len(l.keys)-1)
	}
	return len(l.keys), nil
}

// appendKey appends the cells of the key columns from the given one on of a row to key.
func (l *lookup) appendKey(ctx context.Context, row, from int) error {
	for i := from; i < len(l.keys); i++ {
		x, err := l.keys[i].value(ctx, row)
		if err != nil {
			return err
		}
		l.key = encoding.AppendKeyCell(l.key, x, i == len(l.keys)-1)
	}
	return nil
}

// ReadRow appends the values of a row that Lookup found. The caller knows that the
// row is visible at the given time. It goes through the columns in rounds, each of which
// follows a pointer that the one before loaded: so the processor waits for the memory of
// all columns at a time, not of one after the other.
func (s *RowSet) ReadRow(ctx context.Context, row rowset.RowID, at mvcc.Timestamp, columns []int, dst []*vector.Vector) error {
	if !s.Acquire() {
		return ErrClosed
	}
	defer s.Release()
	changes := s.deltas.Load()
	var few [32]cell
	cells := few[:0]
	for i, c := range columns {
		done, err := changes.patchRow(ctx, at, c, int(row), dst[i])
		if err != nil {
			return err
		}
		if done {
			cells = append(cells, cell{done: true})
			continue
		}
		x := cell{col: s.columns[c]}
		if x.col != nil {
			var err error
			if x.data, err = x.col.open(ctx); err != nil {
				return err
			}
			x.page = x.data.index.PageOf(int64(row))
		}
		cells = append(cells, x)
	}
	for i := range cells {
		if x := &cells[i]; x.col != nil {
			var err error
			if err = x.find(ctx); err != nil {
				return err
			}
		}
	}
	for i := range cells {
		cells[i].touch(int(row))
	}
	for i := range cells {
		if cells[i].done {
			continue
		}
		if err := s.readCell(&cells[i], columns[i], int(row), dst[i]); err != nil {
			return err
		}
	}
	return nil
}

// cell is the place of a cell of the row being read.
type cell struct {
	col  *column // nil: not stored
	data *columnData
	page int
	done bool // a change had it

	// The page, in one of two forms.
	cells  *vector.Vector
	packed *encoding.Packed
}

// find sets the page.
func (x *cell) find(ctx context.Context) error {
	held, _, err := x.col.cells(ctx, x.data, x.page)
	switch page := held.(type) {
	case *vector.Vector:
		x.cells = page
	case *encoding.Packed:
		x.packed = page
	}
	return err
}

// at returns the position of a row in the page.
func (x *cell) at(row int) int { return row - int(x.data.index.Starts[x.page]) }

// touch loads the cell, if it is of fixed width or a code, for a later reader.
//
//go:noinline
func (x *cell) touch(row int) byte {
	switch {
	case x.packed != nil:
		return x.packed.Touch(x.at(row))
	case x.cells == nil:
		return 0
	}
	return touchCell(x.cells, x.at(row))
}

// touchCell loads a cell of a decoded page, if it is of fixed width or a code.
func touchCell(v *vector.Vector, at int) byte {
	data, width := v.Data(), max(v.Kind().Width(), v.CodeWidth())
	if at *= width; at < len(data) {
		return data[at]
	}
	return 0
}

func (s *RowSet) readCell(x *cell, col, row int, dst *vector.Vector) error {
	switch {
	case x.col == nil:
		return dst.Append(readDefault(s.env.Schema.Column(col)))
	case x.packed == nil:
		return dst.AppendFrom(x.cells, x.at(row))
	}
	return x.col.placed(x.packed.AppendTo(dst, x.at(row)))
}
