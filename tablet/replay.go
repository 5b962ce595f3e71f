package tablet

import (
	"context"
	"errors"

	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/memrowset"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// Prepared is effects that the log holds at some time, with their keys in order.
type Prepared struct {
	logged *Logged
	keys   *rowset.Keys // nil when files are known to hold the effects
}

// Prepare checks and sorts the keys of effects that the log holds at ts, for Replay. It
// may be called while an earlier record is replayed.
func (t *Tablet) Prepare(ts mvcc.Timestamp, l *Logged) (*Prepared, error) {
	p := &Prepared{logged: l}
	if l.Kind == rowset.ChangePut && ts <= t.Watermark() {
		return p, nil
	}
	n := l.Values[0].Len()
	var err error
	switch p.keys, _, err = SortKeys(l.Values[:t.schema.NumKey()], n); {
	case err != nil:
		return nil, err
	case p.keys.Len() < n:
		return nil, vfs.Corruptf("the log changes a key twice at %d", ts)
	}
	if l.Kind == rowset.ChangePut {
		p.keys.Hashes()
	}
	return p, nil
}

// Replay applies effects that the log holds at ts, unless files hold them already; see
// rule R10. It returns the number of rows that were applied. Calls come in the order
// of the log, before any other write.
func (t *Tablet) Replay(ctx context.Context, ts mvcc.Timestamp, p *Prepared) (applied int, err error) {
	l := p.logged
	if auto := t.schema.AutoIncrement(); auto >= 0 {
		t.raiseIDs(l.Values[auto])
	}
	if l.Kind == rowset.ChangePut && ts <= t.Watermark() {
		return 0, nil
	}
	m := &Mutation{tablet: t, stores: t.stores.Load(), keys: p.keys}
	m.target = m.stores.active
	if l.Kind == rowset.ChangePut {
		return m.replayPut(ctx, ts, l)
	}
	return m.replayChange(ctx, ts, l)
}

// replayPut puts rows into memory again; a ghost there is revived.
func (m *Mutation) replayPut(ctx context.Context, ts mvcc.Timestamp, l *Logged) (int, error) {
	n := m.keys.Len()
	if m.target.Live() == m.target.Rows() { // there are no ghosts
		_, err := m.target.Append(ts, l.Values, m.keys, nil)
		if errors.Is(err, memrowset.ErrDuplicateKey) {
			err = liveTwice(ts)
		}
		return n, err
	}
	which := allKeys(n)
	m.found = make([]rowset.Found, n)
	if err := m.target.Lookup(ctx, m.keys, which, m.found); err != nil {
		return 0, err
	}
	for i := range m.found {
		if m.found[i].RowSet != nil && m.found[i].Live {
			return 0, liveTwice(ts)
		}
	}
	e := &effect{kind: rowset.ChangePut, columns: l.Columns, keys: which}
	for _, v := range l.Values {
		w := vector.New(v.Kind(), n)
		if err := w.AppendRows(v, m.keys.Row); err != nil {
			return 0, err
		}
		e.values = append(e.values, w)
	}
	_, err := m.put(ts, e)
	return n, err
}

func liveTwice(ts mvcc.Timestamp) error {
	return vfs.Corruptf("the log puts a key at %d that is live", ts)
}

func allKeys(n int) []int32 {
	which := make([]int32, n)
	for i := range which {
		which[i] = int32(i)
	}
	return which
}

// replayChange applies updates or deletes to the rows that they were made to.
func (m *Mutation) replayChange(ctx context.Context, ts mvcc.Timestamp, l *Logged) (int, error) {
	m.found = make([]rowset.Found, m.keys.Len())
	var keys, at []int32
	for i, row := range m.keys.Row {
		found, err := m.targetOf(ctx, ts, l, i, int(row))
		if err != nil {
			return 0, err
		}
		if found.RowSet != nil {
			m.found[i] = found
			keys, at = append(keys, int32(i)), append(at, row)
		}
	}
	nk := m.tablet.schema.NumKey()
	e := &effect{kind: l.Kind, columns: l.Columns[nk:], values: l.Values[nk:]}
	_, err := m.change(ts, e, keys, at)
	return len(keys), err
}

// targetOf finds the row that a change was made to; no rowset when files hold the
// change already.
func (m *Mutation) targetOf(ctx context.Context, ts mvcc.Timestamp, l *Logged, i, row int) (rowset.Found, error) {
	if len(l.RowSets) > 0 && l.RowSets[row] != 0 {
		if rs := m.stores.byID(l.RowSets[row]); rs != nil {
			if int64(l.Rows[row]) >= rs.Rows() {
				return rowset.Found{}, vfs.Corruptf("the log changes row %d of a rowset of %d", l.Rows[row], rs.Rows())
			}
			return unlessDurable(rowset.Found{RowSet: rs, Row: l.Rows[row]}, ts), nil
		}
	}
	one := []int32{int32(i)}
	for _, mem := range append(m.stores.rotated[:len(m.stores.rotated):len(m.stores.rotated)], m.stores.active) {
		m.found[i] = rowset.Found{}
		if err := mem.Lookup(ctx, m.keys, one, m.found); err != nil {
			return rowset.Found{}, err
		}
		if m.found[i].RowSet != nil && m.found[i].Live {
			return m.found[i], nil
		}
	}
	return m.diskTarget(ctx, ts, i, one)
}

// diskTarget chooses among the disk rowsets that store the key: the life that began
// last before ts and has not ended, in files or by what was replayed before.
func (m *Mutation) diskTarget(ctx context.Context, ts mvcc.Timestamp, i int, one []int32) (rowset.Found, error) {
	var best rowset.Found
	var began mvcc.Timestamp
	candidates, durable := 0, true
	var failed error
	m.stores.disk.Stab(m.keys.At(i), func(rs rowset.RowSet) bool {
		d := rs.(*diskrowset.RowSet)
		m.found[i] = rowset.Found{}
		if failed = d.Lookup(ctx, m.keys, one, m.found); failed != nil || m.found[i].RowSet == nil {
			return failed == nil
		}
		ins, gone, err := d.Life(ctx, m.found[i].Row)
		if failed = err; err != nil || ins >= ts || gone > 0 && gone < ts {
			return err == nil
		}
		candidates++
		durable = durable && ts <= d.Meta().DurableTo
		switch {
		case best.RowSet == nil || ins > began:
			best, began = m.found[i], ins
		case ins == began && ts > d.Meta().DurableTo:
			failed = vfs.Corruptf("two rows of one key that began at %d", ins)
		}
		return failed == nil
	})
	switch {
	case failed != nil:
		return rowset.Found{}, failed
	case candidates == 0 && ts > max(m.tablet.Watermark(), mvcc.Timestamp(m.tablet.maxM.Load())):
		return rowset.Found{}, vfs.Corruptf("the log changes a row at %d that is not there", ts)
	case candidates == 0 || durable:
		return rowset.Found{}, nil
	}
	return unlessDurable(best, ts), nil
}

// unlessDurable returns the row, or none when the rowset's files hold a change at ts.
func unlessDurable(f rowset.Found, ts mvcc.Timestamp) rowset.Found {
	if ts <= f.RowSet.(*diskrowset.RowSet).Meta().DurableTo {
		return rowset.Found{}
	}
	return f
}

// byID returns the disk rowset of the given id, nil when there is none.
func (s *stores) byID(id rowset.ID) rowset.RowSet {
	for i := range s.disk.Len() {
		if rs := s.disk.RowSet(i); rs.ID() == id {
			return rs
		}
	}
	return nil
}
