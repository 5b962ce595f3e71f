package diskrowset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/filter"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vector"
)

// Verify reads the whole rowset from its files, past the page cache, and checks that
// every part is intact and that the parts agree with each other and with the manifest.
func (s *RowSet) Verify(ctx context.Context) error {
	if !s.Acquire() {
		return ErrClosed
	}
	defer s.Release()
	env := s.env
	env.Pages = cache.New[cache.Page](0)
	meta := s.Meta()
	base := *meta
	base.Redo, base.Undo = nil, nil // the rows are read as they were written
	fresh, err := Open(&base, env)
	if err != nil {
		return err
	}
	defer fresh.Close()
	for _, step := range []func(context.Context) error{
		fresh.verifyFiles, fresh.verifyColumns, fresh.verifyTimes, fresh.verifyKeys} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("verifying rowset %d: %w", s.meta.ID, err)
		}
	}
	for _, m := range slices.Concat(meta.Undo, meta.Redo) {
		f := newDeltaFile(fresh, &m)
		err := f.verify(ctx)
		letGo([]*deltaFile{f}, false)
		if err != nil {
			return fmt.Errorf("verifying changes of rowset %d: %w", s.meta.ID, err)
		}
	}
	return nil
}

// verifyFiles compares headers and directories with the manifest.
func (s *RowSet) verifyFiles(ctx context.Context) error {
	for _, f := range s.files {
		if err := f.check(ctx); err != nil {
			return err
		}
		size, err := f.handle.Size(ctx)
		if err != nil {
			return err
		}
		d, err := ReadDirectory(ctx, f, size, f.path)
		if err != nil {
			return err
		}
		if err := s.matches(d); err != nil {
			return damage(f.path, "directory", size, 0, err)
		}
	}
	return nil
}

// matches compares a directory with the manifest's description.
func (s *RowSet) matches(d *Directory) error {
	known := map[rowset.Section]bool{}
	for _, sec := range d.Sections {
		known[sec] = true
	}
	for _, sec := range s.meta.Sections {
		if sec.File == rowset.FileNum(d.Header.File) && !known[sec] {
			return fmt.Errorf("no %s of column %d at [%d, +%d)", sectionName(sec.Kind), sec.Column, sec.Offset, sec.Length)
		}
	}
	m := s.meta
	if d.Rows != m.Rows || !bytes.Equal(d.MinKey, m.MinKey) || !bytes.Equal(d.MaxKey, m.MaxKey) ||
		d.MinInsert != m.MinInsert || d.MaxInsert != m.MaxInsert || d.SchemaVersion != m.SchemaVersion {
		return errors.New("rows or bounds differ from the manifest's")
	}
	return nil
}

// verifyColumns checks every column file and zone map.
func (s *RowSet) verifyColumns(ctx context.Context) error {
	for _, c := range append([]*column{s.times, s.index}, s.columns...) {
		if c == nil {
			continue
		}
		d, err := c.open(ctx)
		if err != nil {
			return err
		}
		z, err := c.zoneMap(ctx)
		if err != nil {
			return err
		}
		if z == nil {
			err = d.reader.Verify(ctx)
		} else {
			err = d.reader.VerifyZones(ctx, z)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyTimes checks that the bounds of the insert times are exact.
func (s *RowSet) verifyTimes(ctx context.Context) error {
	if s.times == nil {
		return nil
	}
	c := cursor{col: s.times}
	lo, hi := int64(mvcc.Max), int64(-1)
	for row := 0; row < s.rows; row = c.end {
		page, _, err := c.at(ctx, row)
		if err != nil {
			return err
		}
		for _, t := range vector.Values[int64](page) {
			lo, hi = min(lo, t), max(hi, t)
		}
	}
	if lo != int64(s.meta.MinInsert) || hi != int64(s.meta.MaxInsert) {
		return s.times.damage(fmt.Errorf("insert times lie in [%d, %d], want [%d, %d]", lo, hi, s.meta.MinInsert, s.meta.MaxInsert))
	}
	return nil
}

// verifyKeys checks the order of the keys, their bounds, the key index and the filters.
func (s *RowSet) verifyKeys(ctx context.Context) error {
	v, err := s.newKeyVerifier(ctx)
	if err != nil {
		return err
	}
	it, err := s.Scan(ctx, &rowset.ScanSpec{Schema: s.env.Schema, Time: mvcc.At(mvcc.Max), WithKeys: true,
		NoPrune: true, Stats: rowset.NewStats(s.env.Schema.Len())})
	if err != nil {
		return err
	}
	defer it.Close()
	for {
		b, err := it.Next(ctx)
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		for i := range b.Rows {
			if err := v.key(ctx, b.Keys.BytesAt(i)); err != nil {
				return err
			}
		}
	}
	if v.row != s.rows || !bytes.Equal(v.last, s.meta.MaxKey) {
		return s.keys[0].damage(fmt.Errorf("%d rows, want %d, or another last key", v.row, s.rows))
	}
	return nil
}

// keyVerifier checks keys in row order.
type keyVerifier struct {
	set  *RowSet
	runs *runs
	run  int
	row  int
	last []byte

	dir    *filterDir // nil: no filters
	at     int        // open filter
	filter *filter.Filter
}

func (s *RowSet) newKeyVerifier(ctx context.Context) (*keyVerifier, error) {
	v := &keyVerifier{set: s, run: -1, at: -1}
	var err error
	if v.runs, err = s.keyRuns(ctx); err == nil && s.filters != nil {
		v.dir, err = s.filters.directory(ctx)
	}
	return v, err
}

// key checks the key of the next row.
func (v *keyVerifier) key(ctx context.Context, key []byte) error {
	s := v.set
	if v.row == 0 && !bytes.Equal(key, s.meta.MinKey) || v.row > 0 && bytes.Compare(v.last, key) >= 0 {
		return s.keys[0].damage(fmt.Errorf("key of row %d is out of order", v.row))
	}
	if v.run = v.runs.find(key, v.run); v.run < 0 {
		return s.keys[0].damage(fmt.Errorf("key of row %d sorts before the key index", v.row))
	}
	if from, to := s.runRows(v.run); v.row < from || v.row >= to {
		return s.keys[0].damage(fmt.Errorf("the key index leads from row %d to rows [%d, %d)", v.row, from, to))
	}
	v.last = append(v.last[:0], key...)
	v.row++
	return v.filtered(ctx, key)
}

// filtered checks that the filter of the key holds it.
func (v *keyVerifier) filtered(ctx context.Context, key []byte) error {
	if v.dir == nil {
		return nil
	}
	at := v.dir.firsts.find(key, v.at)
	if at >= 0 && at != v.at {
		f, err := v.set.filters.filter(ctx, v.set.env.Pages, v.dir, at)
		if err != nil {
			return err
		}
		v.at, v.filter = at, f
	}
	l := filter.Locate(key)
	if at < 0 || !v.filter.Test(&l) {
		sec := v.set.filters.section
		return v.set.filters.damage(sec.Offset, sec.Length, fmt.Errorf("key of row %d is not in its filter", v.row-1))
	}
	return nil
}

// verify checks every part of a file of changes, and that they agree.
func (f *deltaFile) verify(ctx context.Context) error {
	if size, err := f.file.handle.Size(ctx); err != nil {
		return err
	} else if size != f.meta.Section.Length {
		return damage(f.file.path, "trailer", size, 0, fmt.Errorf("file of %d bytes, want %d", size, f.meta.Section.Length))
	}
	d, err := f.open(ctx)
	if err != nil {
		return err
	}
	lo, hi := int64(mvcc.Max), int64(-1)
	for _, l := range d.lists() {
		if err := l.verify(ctx); err != nil {
			return err
		}
		p, err := f.places(ctx, l)
		if err != nil {
			return err
		}
		lo, hi = min(lo, slices.Min(p.times)), max(hi, slices.Max(p.times))
	}
	if lo != int64(f.meta.MinTime) || hi != int64(f.meta.MaxTime) {
		return damage(f.file.path, "directory", 0, f.meta.Section.Length,
			fmt.Errorf("changes lie in [%d, %d], want [%d, %d]", lo, hi, f.meta.MinTime, f.meta.MaxTime))
	}
	return nil
}

func (l *changeList) verify(ctx context.Context) error {
	for _, c := range []*column{l.rows, l.times, l.cells} {
		if c == nil {
			continue
		}
		d, err := c.open(ctx)
		if err != nil {
			return err
		}
		if err := d.reader.Verify(ctx); err != nil {
			return err
		}
	}
	return nil
}
