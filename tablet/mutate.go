package tablet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/memrowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Mutation is a write of any operations to one tablet on its way: keys locked, net
// effects known. Its life is that of an [Op]: Plan, then under the store's commit
// mutex Stale (and Relocate outside of it, until it is not) and Pin, then Apply in
// timestamp order, then Release; or Release at any time to give up.
type Mutation struct {
	// Counts is what the write does, and Failures the rows left out, by row.
	Counts   Counts
	Failures []Failure
	// Deltas is, after Apply, the most bytes of changes in memory that one of the rowsets
	// it changed has.
	Deltas int64

	tablet  *Tablet
	keys    *rowset.Keys
	found   []rowset.Found
	effects []effect
	lock    *keyLock
	stores  *stores // those that found speaks of
	target  *memrowset.MemRowSet
	insert  *Op // plain inserts, &op; then the fields above are not used
	op      Op
}

// Plan locks the keys of the rows and works out their net effects. Columns of
// generated ids must be given, but for inserts, for which they are made up. Reading
// disk rowsets may fail, and then nothing is held. A condition, which may be nil, is
// for updates and deletes: operations on rows that fail it count as ignored.
func (t *Tablet) Plan(ctx context.Context, groups []Group, maxKey int, cond *Condition) (*Mutation, error) {
	if len(groups) == 1 && groups[0].Kind <= InsertIgnore {
		m, err := t.planInsert(ctx, &groups[0], maxKey)
		if !errors.Is(err, errGhost) {
			return m, err
		}
	}
	m := &Mutation{tablet: t}
	groups, err := t.generate(groups)
	if err != nil {
		return nil, err
	}
	e, err := t.encode(groups)
	if err != nil {
		return nil, err
	}
	p := newPlanner(t.schema, groups, nil)
	runs, err := m.distinct(p, e, maxKey)
	if err != nil {
		return nil, err
	}
	if m.keys.Since = mvcc.Max; cond != nil {
		m.keys.Since = cond.Snapshot
	}
	m.lock = t.locks.lock(m.keys)
	if err := m.locate(ctx); err != nil {
		m.Release()
		return nil, err
	}
	if p.unfit, err = m.retest(ctx, cond); err != nil {
		m.Release()
		return nil, err
	}
	p.found = m.found
	for k, ops := range runs {
		p.key(int32(k), ops)
	}
	if m.effects, err = p.effects(); err != nil {
		m.Release()
		return nil, err
	}
	m.Counts, m.Failures = p.counts, p.failures
	slices.SortFunc(m.Failures, func(a, b Failure) int { return int(a.Row - b.Row) })
	return m, nil
}

// planInsert plans inserts of whole rows.
func (t *Tablet) planInsert(ctx context.Context, g *Group, maxKey int) (*Mutation, error) {
	m := &Mutation{tablet: t}
	o := &m.op
	o.init(t, nil)
	columns := slices.Grow(o.columns[:0], t.schema.Len())[:t.schema.Len()]
	o.Columns, o.columns = columns, columns
	for k, c := range g.Columns {
		columns[c] = g.Values[k]
	}
	if auto := t.schema.AutoIncrement(); auto >= 0 {
		columns[auto] = vector.New(schema.KindInt64, 0)
	}
	if err := o.resolve(ctx, maxKey); err != nil {
		o.Release()
		return nil, err
	}
	m.insert, m.Counts.Inserted = o, int64(o.Rows())
	for _, i := range o.TooLong {
		m.Failures = append(m.Failures, Failure{Row: g.Rows[i], Err: keyTooLong(t.schema, maxKey)})
	}
	for _, i := range o.Present {
		if g.Kind.ignores() {
			m.Counts.Ignored++
		} else {
			m.Failures = append(m.Failures, Failure{Row: g.Rows[i], Err: ErrAlreadyPresent})
		}
	}
	return m, nil
}

func keyTooLong(s *schema.Schema, max int) error {
	return &schema.ValueError{Row: -1, Column: s.Column(0).Name, Reason: fmt.Sprintf("encoded key exceeds %d bytes", max)}
}

// generate fills in the generated ids of inserts.
func (t *Tablet) generate(groups []Group) ([]Group, error) {
	auto := t.schema.AutoIncrement()
	if auto < 0 {
		return groups, nil
	}
	groups = slices.Clone(groups)
	for i := range groups {
		g := &groups[i]
		at, given := slices.BinarySearch(g.Columns, auto)
		if given {
			t.raiseIDs(g.Values[at])
			continue
		}
		first, err := t.takeIDs(len(g.Rows))
		if err != nil {
			return nil, err
		}
		ids := make([]int64, len(g.Rows))
		for k := range ids {
			ids[k] = first + int64(k)
		}
		g.Columns = slices.Insert(slices.Clone(g.Columns), at, auto)
		g.Values = slices.Insert(slices.Clone(g.Values), at, vector.FromFixed(schema.KindInt64, ids, nil))
	}
	return groups, nil
}

func (t *Tablet) raiseIDs(ids *vector.Vector) {
	for _, id := range vector.Values[int64](ids) {
		t.raiseID(id)
	}
}

// entries is the rows of a write in its order, with their encoded keys.
type entries struct {
	sources []source
	encoded *vector.Vector
	key     []*vector.Vector // key columns, one cell for each entry
}

// encode lists the rows in order and encodes their keys.
func (t *Tablet) encode(groups []Group) (*entries, error) {
	e := &entries{}
	for g := range groups {
		for i := range groups[g].Rows {
			e.sources = append(e.sources, source{int32(g), int32(i)})
		}
	}
	if len(groups) > 1 {
		row := func(s source) int32 { return groups[s.group].Rows[s.i] }
		slices.SortFunc(e.sources, func(a, b source) int { return int(row(a) - row(b)) })
	}
	for c := range t.schema.NumKey() {
		v, err := e.gather(t.schema.Column(c).Kind(), groups, c)
		if err != nil {
			return nil, err
		}
		e.key = append(e.key, v)
	}
	e.encoded = vector.New(schema.KindBytes, len(e.sources))
	return e, encoding.AppendKeys(e.encoded, e.key, 0, len(e.sources))
}

// gather returns the cells of key column c of all entries.
func (e *entries) gather(kind schema.Kind, groups []Group, c int) (*vector.Vector, error) {
	if len(groups) == 1 {
		return groups[0].Values[c].Flatten() // key columns come first and are all given
	}
	v := vector.New(kind, len(e.sources))
	for _, s := range e.sources {
		if err := v.AppendFrom(groups[s.group].Values[c], int(s.i)); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// distinct sets m.keys to the ascending distinct keys and returns the operations on
// each, in the order of the write. Rows whose key is too long fail.
func (m *Mutation) distinct(p *planner, e *entries, maxKey int) (runs [][]source, err error) {
	order := new(sorter).sort(e.encoded)
	var rows []int32
	ops := make([]source, 0, len(order))
	for i, r := range order {
		key, s := e.encoded.BytesAt(int(r)), e.sources[r]
		if len(key) > maxKey {
			p.tooLong(s, maxKey)
			continue
		}
		ops = append(ops, s)
		if len(rows) > 0 && i > 0 && bytes.Equal(key, e.encoded.BytesAt(int(rows[len(rows)-1]))) {
			last := &runs[len(runs)-1]
			*last = ops[len(ops)-len(*last)-1:]
			continue
		}
		rows = append(rows, r)
		runs = append(runs, ops[len(ops)-1:])
	}
	sorted := vector.New(schema.KindBytes, len(rows))
	if err := sorted.AppendRows(e.encoded, rows); err != nil {
		return nil, err
	}
	m.keys = &rowset.Keys{Encoded: sorted, Columns: e.key, Row: rows}
	return runs, nil
}

// tooLong fails a row whose key no stored row can have.
func (p *planner) tooLong(s source, max int) {
	switch kind := p.groups[s.group].Kind; {
	case kind.Inserts():
		p.fail(s, keyTooLong(p.schema, max))
	case kind.ignores():
		p.counts.Ignored++
	default:
		p.fail(s, ErrNotFound)
	}
}

// locate looks all keys up in the present stores.
func (m *Mutation) locate(ctx context.Context) (err error) {
	m.found = make([]rowset.Found, m.keys.Len())
	m.stores, err = m.tablet.locate(ctx, m.keys, allKeys(m.keys.Len()), m.found)
	return err
}

// Empty reports whether the write has no effect.
func (m *Mutation) Empty() bool {
	if m.insert != nil {
		return m.insert.Rows() == 0
	}
	return len(m.effects) == 0
}

// Stale reports whether the stores changed since the keys were looked up, so that
// effects on stored rows may point at rowsets that left the tablet. It is called
// under the store's commit mutex.
func (m *Mutation) Stale() bool { return m.insert == nil && m.tablet.stores.Load() != m.stores }

// Relocate looks the keys up again. Their state is the same, as they are locked; only
// the place may differ (R1).
func (m *Mutation) Relocate(ctx context.Context) error {
	if !m.Stale() {
		return nil
	}
	before := m.found
	if err := m.locate(ctx); err != nil {
		return err
	}
	for i := range before {
		was, is := before[i].RowSet != nil && before[i].Live, m.found[i].RowSet != nil && m.found[i].Live
		if was != is {
			return fmt.Errorf("%w: a locked key changed between live and absent", ErrIllegalState)
		}
	}
	return nil
}

// Pin fixes the memory rowset that takes new rows. It is called under the store's
// commit mutex, like Rotate.
func (m *Mutation) Pin() {
	if m.insert != nil {
		m.insert.Pin()
		return
	}
	m.target = m.stores.active
	m.target.Pin()
}

// Apply applies the effects with the commit's timestamp and returns how many bytes of
// memory the tablet grew by. Calls come in timestamp order, one at a time.
func (m *Mutation) Apply(ts mvcc.Timestamp) (grew int64, err error) {
	if o := m.insert; o != nil {
		before := o.TargetBytes()
		err = o.Apply(ts)
		return o.TargetBytes() - before, err
	}
	for i := range m.effects {
		e := &m.effects[i]
		var n int64
		if e.kind == rowset.ChangePut {
			n, err = m.put(ts, e)
		} else {
			n, err = m.change(ts, e, e.keys, nil)
		}
		if grew += n; err != nil {
			return grew, err
		}
	}
	return grew, nil
}

// put adds new rows, and revives those whose ghost is in the active memory rowset.
func (m *Mutation) put(ts mvcc.Timestamp, e *effect) (grew int64, err error) {
	var fresh, ghosts, at []int32
	row := make([]int32, m.keys.Len())
	for i, k := range e.keys {
		row[k] = int32(i)
		if m.found[k].RowSet == rowset.RowSet(m.target) {
			ghosts, at = append(ghosts, k), append(at, int32(i))
		} else {
			fresh = append(fresh, k)
		}
	}
	before := m.target.MemoryBytes()
	if len(fresh) > 0 {
		keys := &rowset.Keys{Encoded: m.keys.Encoded, Columns: e.values[:m.tablet.schema.NumKey()], Row: row}
		if _, err := m.target.Append(ts, e.values, keys, fresh); err != nil {
			return 0, err
		}
	}
	grew = m.target.MemoryBytes() - before
	if len(ghosts) == 0 {
		return grew, nil
	}
	nk := m.tablet.schema.NumKey()
	revival := &effect{kind: rowset.ChangePut, columns: e.columns[nk:], values: e.values[nk:]}
	n, err := m.change(ts, revival, ghosts, at)
	return grew + n, err
}

// change applies an effect to the stored rows of the given keys, rowset by rowset; at
// holds the cell of each, nil for the cell of the same index.
func (m *Mutation) change(ts mvcc.Timestamp, e *effect, keys, at []int32) (grew int64, err error) {
	parts := map[rowset.RowSet]*rowset.Changes{}
	var order []rowset.RowSet
	for i, k := range keys {
		f := &m.found[k]
		c := parts[f.RowSet]
		if c == nil {
			c = &rowset.Changes{Kind: e.kind, Columns: e.columns, Values: e.values}
			parts[f.RowSet], order = c, append(order, f.RowSet)
		}
		cell := int32(i)
		if at != nil {
			cell = at[i]
		}
		c.Rows, c.At = append(c.Rows, f.Row), append(c.At, cell)
	}
	for _, rs := range order {
		before := rs.CollectedBytes()
		if err := rs.Apply(ts, parts[rs]); err != nil {
			return grew, err
		}
		after := rs.CollectedBytes()
		grew += after - before
		if rs != rowset.RowSet(m.target) {
			m.Deltas = max(m.Deltas, after)
		}
	}
	return grew, nil
}

// Release unlocks the keys and unpins the target. It may be called twice.
func (m *Mutation) Release() {
	if m.insert != nil {
		m.insert.Release()
	}
	if m.target != nil {
		m.target.Unpin()
		m.target = nil
	}
	if m.lock != nil {
		m.tablet.locks.unlock(m.lock)
		m.lock = nil
	}
}

// Logged is the effects of one kind and column set, as the log takes them.
type Logged struct {
	Kind    rowset.ChangeKind
	Columns []int // schema columns: of a Put all, of a Set the key and those set, of a Del the key
	Values  []*vector.Vector
	RowSets []rowset.ID    // hint for each row: where it is stored; 0 when it is in memory
	Rows    []rowset.RowID // and which row it is there
}

// Log appends the effects, as the log record takes them, to out. They are valid until
// Release.
func (m *Mutation) Log(out []Logged) ([]Logged, error) {
	if o := m.insert; o != nil {
		return append(out, Logged{Kind: rowset.ChangePut, Columns: m.tablet.all, Values: o.Columns}), nil
	}
	nk := m.tablet.schema.NumKey()
	for i := range m.effects {
		e := &m.effects[i]
		if e.kind == rowset.ChangePut {
			out = append(out, Logged{Kind: e.kind, Columns: e.columns, Values: e.values})
			continue
		}
		l := Logged{Kind: e.kind, Columns: append(allColumns(0, nk), e.columns...)}
		rows := make([]int32, len(e.keys))
		for j, k := range e.keys {
			rows[j] = int32(m.keys.ColumnRow(int(k)))
			id := rowset.ID(0)
			if f := &m.found[k]; f.OnDisk {
				id = f.RowSet.ID()
			}
			l.RowSets, l.Rows = append(l.RowSets, id), append(l.Rows, m.found[k].Row)
		}
		for c := range nk {
			v := vector.New(m.tablet.schema.Column(c).Kind(), len(rows))
			if err := v.AppendRows(m.keys.Columns[c], rows); err != nil {
				return nil, err
			}
			l.Values = append(l.Values, v)
		}
		l.Values = append(l.Values, e.values...)
		out = append(out, l)
	}
	return out, nil
}
