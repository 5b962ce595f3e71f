package tablet

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// lookup resolves the keys against every store that may hold them and sets out[i] for
// those that are stored. which lists all of them, for the stores to cut parts from.
func (s *stores) lookup(ctx context.Context, keys *rowset.Keys, which []int32, out []rowset.Found) error {
	if err := s.active.Lookup(ctx, keys, which, out); err != nil {
		return err
	}
	for _, m := range s.rotated {
		if err := m.Lookup(ctx, keys, which, out); err != nil {
			return err
		}
	}
	return s.disk.Group(keys, func(rs rowset.RowSet, from, to int) error {
		return rs.Lookup(ctx, keys, which[from:to], out)
	})
}

// locate is lookup in the present stores, which it returns. A rowset that left the tablet
// meanwhile is no failure: the keys are looked for in what replaced it.
func (t *Tablet) locate(ctx context.Context, keys *rowset.Keys, which []int32, out []rowset.Found) (*stores, error) {
	for {
		s := t.stores.Load()
		err := s.lookup(ctx, keys, which, out)
		if !errors.Is(err, ErrClosed) || t.stores.Load() == s {
			return s, err
		}
		clear(out)
	}
}

// Get puts the cells of the row with the given key into dst, one vector for each
// schema column in columns, and reports whether there is such a row. keys holds that
// one key. The row is that of the newest visible commit.
func (t *Tablet) Get(ctx context.Context, keys *rowset.Keys, columns []int, dst []*vector.Vector) (bool, error) {
	for {
		at := t.env.Visible()
		keys.Since, keys.Found = at, [1]rowset.Found{}
		s := t.stores.Load()
		err := s.find(ctx, keys, &keys.Found)
		f := &keys.Found[0]
		switch {
		case err == nil && f.RowSet != nil && f.LastChange > at:
			// A commit has reached memory and becomes visible in a moment.
			if err := ctx.Err(); err != nil {
				return false, err
			}
			runtime.Gosched()
			continue
		case err == nil && (f.RowSet == nil || !f.Live):
			return false, nil
		case err == nil && len(columns) == 0:
			return true, nil
		case err == nil:
			for _, v := range dst {
				v.Reset(v.Kind())
			}
			err = f.RowSet.ReadRow(ctx, f.Row, at, columns, dst)
		}
		if errors.Is(err, ErrClosed) && t.stores.Load() != s {
			continue // the rowset was replaced meanwhile
		}
		return err == nil, err
	}
}

// GetMany appends the cells of the rows with the given keys to dst, one vector for each
// schema column in columns, and returns the keys whose rows they are. Each row is that of
// the newest visible commit at a moment of the call.
func (t *Tablet) GetMany(ctx context.Context, keys *rowset.Keys, columns []int, dst []*vector.Vector) (out []int32, err error) {
	n := keys.Len()
	found, done, left := make([]rowset.Found, n), vector.NewBitmap(n), n
	for which := allKeys(n); left > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at := t.env.Visible()
		keys.Since = at
		s, err := t.locate(ctx, keys, which, found)
		if err != nil {
			return nil, err
		}
		for k := range found {
			f := found[k]
			found[k] = rowset.Found{}
			if done.Get(k) || f.RowSet != nil && f.LastChange > at { // by a commit that becomes visible in a moment
				continue
			}
			if f.RowSet != nil && f.Live {
				err := f.RowSet.ReadRow(ctx, f.Row, at, columns, dst)
				if errors.Is(err, ErrClosed) && t.stores.Load() != s {
					continue // the rowset was replaced meanwhile
				}
				if err != nil {
					return nil, err
				}
				out = append(out, int32(k))
			}
			done.Set(k)
			left--
		}
		if left > 0 {
			runtime.Gosched()
		}
	}
	return out, nil
}

// sorters holds sorters for SortKeys.
var sorters = sync.Pool{New: func() any { return new(sorter) }}

// SortKeys returns the distinct keys among n rows of key columns, and the key of each row.
func SortKeys(columns []*vector.Vector, n int) (keys *rowset.Keys, of []int32, err error) {
	encoded := vector.New(schema.KindBytes, n)
	if err := encoding.AppendKeys(encoded, columns, 0, n); err != nil {
		return nil, nil, err
	}
	s := sorters.Get().(*sorter)
	defer sorters.Put(s)
	of = make([]int32, n)
	rows := make([]int32, 0, n) // the first of each key
	for _, r := range s.sort(encoded) {
		if len(rows) == 0 || !bytes.Equal(encoded.BytesAt(int(rows[len(rows)-1])), encoded.BytesAt(int(r))) {
			rows = append(rows, r)
		}
		of[r] = int32(len(rows) - 1)
	}
	keys = &rowset.Keys{Encoded: vector.New(schema.KindBytes, len(rows)), Columns: columns, Row: rows}
	return keys, of, keys.Encoded.AppendRows(encoded, rows)
}

var first = []int32{0}

// find looks a single key up.
func (s *stores) find(ctx context.Context, keys *rowset.Keys, found *[1]rowset.Found) error {
	probe := func(rs rowset.RowSet) (done bool, err error) {
		err = rs.Lookup(ctx, keys, first, found[:])
		return found[0].RowSet != nil && found[0].Live, err
	}
	if done, err := probe(s.active); done || err != nil {
		return err
	}
	for i := len(s.rotated) - 1; i >= 0; i-- {
		if done, err := probe(s.rotated[i]); done || err != nil {
			return err
		}
	}
	var failed error
	s.disk.Stab(keys.At(0), func(rs rowset.RowSet) bool {
		done, err := probe(rs)
		failed = err
		return !done && err == nil
	})
	return failed
}

// ErrClosed is returned by reads of a tablet that was closed or dropped before they began.
var ErrClosed = diskrowset.ErrClosed

// hold returns the stores that a scan under spec reads. The files of those on disk
// stay until release is called, whatever becomes of the tablet. The snapshot is not before
// the horizon, and registered with the store, so that no file lacks what it needs.
func (t *Tablet) hold(spec *rowset.ScanSpec) (sets []rowset.RowSet, release func(), err error) {
	for {
		s := t.stores.Load()
		sets, skipped := s.overlapping(spec)
		if release, ok := acquire(sets); ok {
			spec.Stats.RowSets.Add(int64(len(sets) + skipped))
			spec.Stats.RowSetsByKey.Add(int64(skipped))
			return sets, release, nil
		}
		if t.stores.Load() == s {
			return nil, nil, ErrClosed
		}
	}
}

// Hold returns the disk rowsets in order of smallest key. Their files stay until release
// is called, whatever becomes of the tablet.
func (t *Tablet) Hold() (sets []*diskrowset.RowSet, release func(), err error) {
	for {
		s := t.stores.Load()
		if release, ok := acquire(s.diskSets()); ok {
			for i := range s.disk.Len() {
				sets = append(sets, s.disk.RowSet(i).(*diskrowset.RowSet))
			}
			return sets, release, nil
		}
		if t.stores.Load() == s {
			return nil, nil, ErrClosed
		}
	}
}

// acquire takes a reference to every disk rowset of sets, unless one has ended.
func acquire(sets []rowset.RowSet) (release func(), ok bool) {
	held := make([]*diskrowset.RowSet, 0, len(sets))
	release = func() {
		for _, rs := range held {
			rs.Release()
		}
	}
	for _, rs := range sets {
		d, onDisk := rs.(*diskrowset.RowSet)
		if !onDisk {
			continue
		}
		if !d.Acquire() {
			release()
			return nil, false
		}
		held = append(held, d)
	}
	return release, true
}

// Scan starts a scan over all stores. The spec must not change until the iterator
// is closed; its snapshot must have been taken before the call.
func (t *Tablet) Scan(ctx context.Context, spec *rowset.ScanSpec) (rowset.Iterator, error) {
	sets, release, err := t.hold(spec)
	if err != nil {
		return nil, err
	}
	if spec.Order == rowset.Unordered || len(sets) == 1 {
		return &union{spec: spec, sets: sets, done: release}, nil
	}
	return newMerge(spec, sets, release), nil
}

// Part is one store of an unordered scan.
type Part struct {
	rs   rowset.RowSet
	spec *rowset.ScanSpec
}

// Parts returns the stores that an unordered scan under spec would read, so that
// several goroutines can share the work. They may be read until release is called.
func (t *Tablet) Parts(spec *rowset.ScanSpec) (parts []Part, release func(), err error) {
	sets, release, err := t.hold(spec)
	if err != nil {
		return nil, nil, err
	}
	parts = make([]Part, len(sets))
	for i, rs := range sets {
		parts[i] = Part{rs: rs, spec: spec}
	}
	return parts, release, nil
}

// Scan starts the scan of the part.
func (p *Part) Scan(ctx context.Context) (rowset.Iterator, error) { return p.rs.Scan(ctx, p.spec) }

// Whole returns the number of rows of the part and the summaries of its columns, if
// every stored row is visible and selected, so that they can answer for the rows.
func (p *Part) Whole() (rows int64, zone func(ctx context.Context, col int) (vector.Zone, bool, error), ok bool) {
	rs, onDisk := p.rs.(*diskrowset.RowSet)
	s := p.spec
	if !onDisk || s.Filter != nil || s.Lower != nil || s.Upper != nil || s.NoPrune {
		return 0, nil, false
	}
	m := rs.Meta()
	if m.MaxInsert > s.Time.Hi || s.Time.Lo > 0 || m.LiveRows != m.Rows || rs.ChangedAt(s.Time.Hi) {
		return 0, nil, false
	}
	return m.Rows, rs.Zone, true
}

// overlapping returns the stores that may hold rows within the key bounds of spec,
// and the number of disk rowsets that do not.
func (s *stores) overlapping(spec *rowset.ScanSpec) (sets []rowset.RowSet, skipped int) {
	sets = s.disk.Overlapping(nil, spec.Lower, spec.Upper)
	skipped = s.disk.Len() - len(sets)
	for _, m := range append(s.rotated[:len(s.rotated):len(s.rotated)], s.active) {
		if m.Rows() > 0 {
			sets = append(sets, m)
		}
	}
	return sets, skipped
}
