package diskrowset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// deltaFile is a file of changes of a rowset. It implements [delta.Reader]: a REDO file
// brings rows from the base data forward to a time, an UNDO file brings them back. Times,
// columns touched and numbers of changes are known from the manifest; the directory and
// the changes are read when they are first needed.
//
// A REDO file holds the cells that commits set, and the deletions. An UNDO file holds
// the cells that commits replaced, and the deaths and births of lives before the present
// one: what held at a time is what the first change after it replaced.
type deltaFile struct {
	// Set at open, then read-only.
	set     *RowSet
	meta    *rowset.DeltaFile
	file    *file
	undo    bool
	touched []bool // by schema column

	data atomic.Pointer[deltaData]
	mu   sync.Mutex // held while data is read
}

var _ delta.Reader = (*deltaFile)(nil)

// deltaData is an open file of changes.
type deltaData struct {
	columns  []*changeList // all of the file
	bySchema []*changeList // those of them that belong to a schema column, by its index
	deletes  *changeList   // nil: none
	births   *changeList   // nil: none
}

// changeList is the changes of one column, or the deletions. Where they belong is one page
// of the cache; the cells are pages like those of any column.
type changeList struct {
	rows, times *column
	cells       *column // nil for deletions
	slot        [1]cache.Slot[cache.Page]
	mu          sync.Mutex // held while the places are read
}

// places says which row each change of a list is of and when it came, by row and then
// by time. It is immutable.
type places struct {
	rows  []int32
	times []int64
}

// Size returns the bytes of memory held.
func (p *places) Size() int { return 12*len(p.rows) + 48 }

// attachDeltas opens the files of changes, without I/O.
func (s *RowSet) attachDeltas() error {
	d := &deltas{meta: s.meta}
	s.deltas.Store(d)
	last := mvcc.Timestamp(0)
	for i := range s.meta.Redo {
		m := &s.meta.Redo[i]
		if m.Section.Kind != rowset.SectionRedo || m.Section.Offset != 0 || m.MinTime > m.MaxTime || m.MinTime < last || m.Births > 0 {
			return vfs.Corruptf("description of changes in file %d", m.Section.File)
		}
		last = m.MaxTime
		d.stores = append(d.stores, newDeltaFile(s, m))
	}
	for i := range s.meta.Undo {
		m := &s.meta.Undo[i]
		if m.Section.Kind != rowset.SectionUndo || m.Section.Offset != 0 || m.MinTime > m.MaxTime {
			return vfs.Corruptf("description of history in file %d", m.Section.File)
		}
		d.undo = append(d.undo, newDeltaFile(s, m))
	}
	return nil
}

func newDeltaFile(s *RowSet, m *rowset.DeltaFile) *deltaFile {
	path := s.env.FS.Join(s.env.Dir, DeltaName(m.Section.File))
	f := &deltaFile{set: s, meta: m, undo: m.Section.Kind == rowset.SectionUndo, touched: make([]bool, s.env.Schema.Len())}
	f.file = &file{num: m.Section.File, kind: fileKind(m.Section.Kind), path: path, store: s.env.StoreID,
		handle: s.env.Files.Handle(path, vfs.KindDelta)}
	for i := range f.touched {
		f.touched[i] = m.Updates[s.env.Schema.Column(i).ID] > 0
	}
	return f
}

// fileKind returns the kind of the file that a section of changes is.
func fileKind(k rowset.SectionKind) binfmt.FileKind {
	if k == rowset.SectionUndo {
		return binfmt.FileUndo
	}
	return binfmt.FileDelta
}

// files returns the REDO files.
func (d *deltas) files() (out []*deltaFile) {
	for _, s := range d.stores {
		if f, ok := s.(*deltaFile); ok {
			out = append(out, f)
		}
	}
	return out
}

// MinTime returns the oldest commit in the file.
func (f *deltaFile) MinTime() mvcc.Timestamp { return f.meta.MinTime }

// MaxTime returns the newest commit in the file.
func (f *deltaFile) MaxTime() mvcc.Timestamp { return f.meta.MaxTime }

// Touches reports whether some change sets the column.
func (f *deltaFile) Touches(col int) bool { return f.touched[col] }

// LastSet returns the time of the newest commit in a file that sets the column, 0 for others.
func (f *deltaFile) LastSet(col int) mvcc.Timestamp {
	if !f.Touches(col) {
		return 0
	}
	return f.MaxTime()
}

// HasLife reports whether some change begins or ends a life of a row.
func (f *deltaFile) HasLife() bool { return f.meta.Deletes > 0 || f.meta.Births > 0 }

// applies reports whether the file has a change that brings rows from the base data to
// the given time.
func (f *deltaFile) applies(at mvcc.Timestamp) bool {
	if f.undo {
		return f.MaxTime() > at
	}
	return f.MinTime() <= at
}

// Changed reports whether some change sets the column in a row of [from, to). For all
// rows at once it reads nothing.
func (f *deltaFile) Changed(ctx context.Context, col, from, to int) (bool, error) {
	if !f.Touches(col) || from == 0 && to == f.set.rows {
		return f.Touches(col), nil
	}
	_, p, err := f.changes(ctx, col)
	if err != nil {
		return false, err
	}
	i := p.find(from)
	return i < len(p.rows) && int(p.rows[i]) < to, nil
}

// open returns the file's directory.
func (f *deltaFile) open(ctx context.Context) (*deltaData, error) {
	if d := f.data.Load(); d != nil {
		return d, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := f.data.Load(); d != nil {
		return d, nil
	}
	if err := f.file.check(ctx); err != nil {
		return nil, err
	}
	dir, err := ReadDeltaDirectory(ctx, f.file, f.file.kind, f.meta.Section.Length, f.file.path)
	if err != nil {
		return nil, err
	}
	d, err := f.attach(dir)
	if err != nil {
		return nil, damage(f.file.path, "directory", 0, f.meta.Section.Length, err)
	}
	f.data.Store(d)
	return d, nil
}

// attach finds the lists of the file.
func (f *deltaFile) attach(dir *DeltaDirectory) (*deltaData, error) {
	if err := dir.matches(f.meta); err != nil {
		return nil, err
	}
	sch := f.set.env.Schema
	d := &deltaData{bySchema: make([]*changeList, sch.Len())}
	for i := range dir.Columns {
		c := &dir.Columns[i]
		l := f.list(c.Column.Name, &c.DeltaList)
		l.cells = f.column("changes of "+c.Column.Name, c.Column.Type, c.Count, c.Values)
		d.columns = append(d.columns, l)
		k := sch.FindID(c.Column.ID)
		if k < 0 {
			continue
		}
		if sch.Column(k).Type != c.Column.Type || d.bySchema[k] != nil {
			return nil, fmt.Errorf("column %d is of type %s or occurs twice", c.Column.ID, c.Column.Type)
		}
		d.bySchema[k] = l
	}
	if dir.Deletes.Count > 0 {
		d.deletes = f.list("deletions", &dir.Deletes)
	}
	if dir.Births.Count > 0 {
		d.births = f.list("births", &dir.Births)
	}
	return d, nil
}

func (f *deltaFile) list(name string, l *DeltaList) *changeList {
	return &changeList{rows: f.column("rows of changes of "+name, schema.Int32, l.Count, l.Rows),
		times: f.column("times of changes of "+name, schema.Int64, l.Count, l.Times)}
}

func (f *deltaFile) column(name string, typ schema.Type, n int64, sec rowset.Section) *column {
	return &column{file: f.file, pages: f.set.env.Pages, name: name, typ: typ, rows: n, section: sec}
}

// places returns where the changes of a list belong.
func (f *deltaFile) places(ctx context.Context, l *changeList) (*places, error) {
	if p, ok := l.slot[0].Get(); ok {
		return p.(*places), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.slot[0].Get(); ok {
		return p.(*places), nil
	}
	p, err := f.readPlaces(ctx, l)
	if err != nil {
		return nil, err
	}
	return f.set.env.Pages.Put(&l.slot[0], p).(*places), nil
}

func (f *deltaFile) readPlaces(ctx context.Context, l *changeList) (*places, error) {
	rows, err := l.rows.all(ctx)
	if err != nil {
		return nil, err
	}
	times, err := l.times.all(ctx)
	if err != nil {
		return nil, err
	}
	p := &places{vector.Values[int32](rows), vector.Values[int64](times)}
	for i, row := range p.rows {
		if t := p.times[i]; t < int64(f.meta.MinTime) || t > int64(f.meta.MaxTime) {
			return nil, l.times.damage(fmt.Errorf("change %d at %d, not in [%d, %d]", i, t, f.meta.MinTime, f.meta.MaxTime))
		}
		if row < 0 || int(row) >= f.set.rows || i > 0 && !p.ascends(i, l.cells != nil || f.undo) {
			return nil, l.rows.damage(fmt.Errorf("change %d of row %d is out of order or of no row", i, row))
		}
	}
	return p, nil
}

// ascends reports whether change i sorts after the one before; whether a row may have
// several depends on the list.
func (p *places) ascends(i int, several bool) bool {
	return p.rows[i] > p.rows[i-1] || several && p.rows[i] == p.rows[i-1] && p.times[i] > p.times[i-1]
}

// all returns all cells of a column of fixed width without nulls.
func (c *column) all(ctx context.Context) (*vector.Vector, error) {
	d, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	v := vector.New(c.typ.Kind(), int(c.rows))
	if err := d.reader.AppendRange(ctx, d.index, 0, c.rows, v); err != nil {
		return nil, err
	}
	if int64(v.Len()) != c.rows || v.NullCount() > 0 {
		return nil, c.damage(errors.New("cells are missing"))
	}
	return v, nil
}

// find returns the first change of the row or of one after it.
func (p *places) find(row int) int {
	i, _ := slices.BinarySearch(p.rows, int32(row))
	return i
}

// choose returns which of the changes of one row, of which i is the first, says what
// held at the given time, -1 when none does, and the first change of another row: in a
// REDO file the newest at or before that time, in an UNDO file the oldest after it.
func (p *places) choose(i int, at mvcc.Timestamp, undo bool) (chosen, next int) {
	newest, oldest := -1, -1 // at or before, after
	for next = i; next < len(p.rows) && p.rows[next] == p.rows[i]; next++ {
		switch {
		case p.times[next] <= int64(at):
			newest = next
		case oldest < 0:
			oldest = next
		}
	}
	if undo {
		return oldest, next
	}
	return newest, next
}

// chooseOf is choose for a row, which may have no change.
func (p *places) chooseOf(row int, at mvcc.Timestamp, undo bool) int {
	i := p.find(row)
	if i == len(p.rows) || int(p.rows[i]) != row {
		return -1
	}
	chosen, _ := p.choose(i, at, undo)
	return chosen
}

// changes returns the list of a schema column that the file touches.
func (f *deltaFile) changes(ctx context.Context, col int) (*changeList, *places, error) {
	d, err := f.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	l := d.bySchema[col]
	p, err := f.places(ctx, l)
	return l, p, err
}

// ApplyLife clears the rows that are dead at the given time. An UNDO file sets those that
// are live in an earlier life.
func (f *deltaFile) ApplyLife(ctx context.Context, at mvcc.Timestamp, from, to int, live vector.Bitmap) error {
	if !f.HasLife() {
		return nil
	}
	d, err := f.open(ctx)
	if err != nil {
		return err
	}
	var deaths, births places
	for _, x := range []struct {
		list *changeList
		to   *places
	}{{d.deletes, &deaths}, {d.births, &births}} {
		if x.list == nil {
			continue
		}
		p, err := f.places(ctx, x.list)
		if err != nil {
			return err
		}
		*x.to = p.between(from, to)
	}
	if f.undo {
		undoLives(deaths, births, at, from, live)
		return nil
	}
	for i, row := range deaths.rows {
		if deaths.times[i] <= int64(at) {
			live.Clear(int(row) - from)
		}
	}
	return nil
}

// undoLives sets or clears rows by the first death or birth after the given time; bit i
// is row from+i. A row that died then was live before, one that was born was not.
func undoLives(deaths, births places, at mvcc.Timestamp, from int, live vector.Bitmap) {
	for i, k := 0, 0; i < len(deaths.rows) || k < len(births.rows); {
		row := int32(math.MaxInt32)
		if i < len(deaths.rows) {
			row = deaths.rows[i]
		}
		if k < len(births.rows) {
			row = min(row, births.rows[k])
		}
		died, born := int64(math.MaxInt64), int64(math.MaxInt64)
		died, i = deaths.firstAfter(i, row, at, died)
		born, k = births.firstAfter(k, row, at, born)
		if died != born {
			live.Put(int(row)-from, died < born)
		}
	}
}

// firstAfter returns the time of the first event of a row after the given time, none if
// there is no such event, and the first event of another row; i is the first of the row.
func (p *places) firstAfter(i int, row int32, at mvcc.Timestamp, none int64) (first int64, next int) {
	if i == len(p.rows) || p.rows[i] != row {
		return none, i
	}
	chosen, next := p.choose(i, at, true)
	if chosen < 0 {
		return none, next
	}
	return p.times[chosen], next
}

// between returns the changes of rows [from, to).
func (p *places) between(from, to int) places {
	i, end := p.find(from), p.find(to)
	return places{rows: p.rows[i:end], times: p.times[i:end]}
}

// Patch brings the cells of rows [from, to) through the interval, of an UNDO file back to
// its upper end; see [delta.Reader].
func (f *deltaFile) Patch(ctx context.Context, in mvcc.Interval, col, from, to int, cells *delta.Overlay) error {
	if f.LastSet(col) <= in.Lo {
		return nil
	}
	l, p, err := f.changes(ctx, col)
	if err != nil {
		return err
	}
	c := cursor{col: l.cells}
	defer func() { l.cells.pages.Hit(c.hits) }()
	if i, end := p.find(from), p.find(to); !f.undo && f.MinTime() > in.Lo && f.MaxTime() <= in.Hi {
		return p.scatter(ctx, i, end, from, &c, cells)
	} else {
		return p.pick(ctx, i, end, from, in, f.undo, &c, cells)
	}
}

// scatter replaces cells by changes [i, end), all of which apply, page by page.
func (p *places) scatter(ctx context.Context, i, end, from int, c *cursor, cells *delta.Overlay) error {
	for i < end {
		page, at, err := c.at(ctx, i)
		if err != nil {
			return err
		}
		next := min(end, c.end)
		if err := cells.Scatter(p.rows[i:next], from, page, at); err != nil {
			return err
		}
		i = next
	}
	return nil
}

// pick replaces cells by those of the changes [i, end) that say what held at the end of an
// interval and did not at its beginning.
func (p *places) pick(ctx context.Context, i, end, from int, in mvcc.Interval, undo bool, c *cursor, cells *delta.Overlay) error {
	for i < end {
		row := int(p.rows[i])
		chosen, next := p.choose(i, in.Hi, undo)
		if i = next; chosen < 0 || p.times[chosen] <= int64(in.Lo) {
			continue
		}
		page, k, err := c.at(ctx, chosen)
		if err == nil {
			err = cells.Set(row-from, page, k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PatchRow appends the row's cell at the given time, if the file has one.
func (f *deltaFile) PatchRow(ctx context.Context, at mvcc.Timestamp, col, row int, dst *vector.Vector) (bool, error) {
	if !f.Touches(col) {
		return false, nil
	}
	l, p, err := f.changes(ctx, col)
	if err != nil {
		return false, err
	}
	i := p.chooseOf(row, at, f.undo)
	if i < 0 {
		return false, nil
	}
	c := cursor{col: l.cells}
	page, k, err := c.at(ctx, i)
	if err != nil {
		return false, err
	}
	return true, dst.AppendFrom(page, k)
}

// Last returns the newest change of the row in a REDO file. Nothing follows a deletion.
func (f *deltaFile) Last(ctx context.Context, row rowset.RowID) (kind rowset.ChangeKind, ts mvcc.Timestamp, ok bool, err error) {
	d, err := f.open(ctx)
	if err != nil {
		return 0, 0, false, err
	}
	if d.deletes != nil {
		if ts, ok, err = f.lastOf(ctx, d.deletes, row); ok || err != nil {
			return rowset.ChangeDel, ts, ok, err
		}
	}
	for _, l := range d.columns {
		t, found, err := f.lastOf(ctx, l, row)
		if err != nil {
			return 0, 0, false, err
		}
		ts, ok = max(ts, t), ok || found
	}
	return rowset.ChangeSet, ts, ok, nil
}

// lastOf returns the time of the row's newest change in a list.
func (f *deltaFile) lastOf(ctx context.Context, l *changeList, row rowset.RowID) (mvcc.Timestamp, bool, error) {
	p, err := f.places(ctx, l)
	if err != nil {
		return 0, false, err
	}
	i := p.chooseOf(int(row), mvcc.Max, false)
	if i < 0 {
		return 0, false, nil
	}
	return mvcc.Timestamp(p.times[i]), true, nil
}

// lists returns all lists of an open file.
func (d *deltaData) lists() []*changeList {
	all := d.columns[:len(d.columns):len(d.columns)]
	for _, l := range []*changeList{d.deletes, d.births} {
		if l != nil {
			all = append(all, l)
		}
	}
	return all
}

// forget gives the cached pages up.
func (f *deltaFile) forget() {
	d := f.data.Load()
	if d == nil {
		return
	}
	for _, l := range d.lists() {
		f.set.env.Pages.Forget(l.slot[:])
		if l.cells != nil {
			l.cells.forget()
		}
	}
}
