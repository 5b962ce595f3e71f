package diskrowset

import (
	"context"
	"errors"
	"fmt"
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

// redoFile is a file of changes of a rowset. It implements [delta.Reader]. Times,
// columns touched and numbers of changes are known from the manifest; the directory and
// the changes are read when they are first needed.
type redoFile struct {
	// Set at open, then read-only.
	set     *RowSet
	meta    *rowset.DeltaFile
	file    *file
	touched []bool // by schema column

	data atomic.Pointer[redoData]
	mu   sync.Mutex // held while data is read
}

var _ delta.Reader = (*redoFile)(nil)

// redoData is an open file of changes.
type redoData struct {
	columns  []*redoList // all of the file
	bySchema []*redoList // those of them that belong to a schema column, by its index
	deletes  *redoList   // nil: none
}

// redoList is the changes of one column, or the deletions. Where they belong is one page
// of the cache; the cells are pages like those of any column.
type redoList struct {
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

// attachRedo opens the files of changes, without I/O.
func (s *RowSet) attachRedo() error {
	d := &deltas{meta: s.meta}
	last := mvcc.Timestamp(0)
	for i := range s.meta.Redo {
		m := &s.meta.Redo[i]
		if m.Section.Kind != rowset.SectionRedo || m.Section.Offset != 0 || m.MinTime > m.MaxTime || m.MinTime < last {
			return vfs.Corruptf("description of changes in file %d", m.Section.File)
		}
		last = m.MaxTime
		d.stores = append(d.stores, newRedoFile(s, m))
		s.deltas.Store(d)
	}
	return nil
}

func newRedoFile(s *RowSet, m *rowset.DeltaFile) *redoFile {
	path := s.env.FS.Join(s.env.Dir, DeltaName(m.Section.File))
	f := &redoFile{set: s, meta: m, touched: make([]bool, s.env.Schema.Len())}
	f.file = &file{num: m.Section.File, kind: binfmt.FileDelta, path: path, store: s.env.StoreID,
		handle: s.env.Files.Handle(path, vfs.KindDelta)}
	for i := range f.touched {
		f.touched[i] = m.Updates[s.env.Schema.Column(i).ID] > 0
	}
	return f
}

// redoFiles returns the files of changes.
func (d *deltas) redoFiles() (out []*redoFile) {
	for _, s := range d.stores {
		if f, ok := s.(*redoFile); ok {
			out = append(out, f)
		}
	}
	return out
}

// MinTime returns the oldest commit in the file.
func (f *redoFile) MinTime() mvcc.Timestamp { return f.meta.MinTime }

// MaxTime returns the newest commit in the file.
func (f *redoFile) MaxTime() mvcc.Timestamp { return f.meta.MaxTime }

// Touches reports whether some change sets the column.
func (f *redoFile) Touches(col int) bool { return f.touched[col] }

// HasLife reports whether some change deletes a row.
func (f *redoFile) HasLife() bool { return f.meta.Deletes > 0 }

// Changed reports whether some change sets the column in a row of [from, to). For all
// rows at once it reads nothing.
func (f *redoFile) Changed(ctx context.Context, col, from, to int) (bool, error) {
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
func (f *redoFile) open(ctx context.Context) (*redoData, error) {
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
	dir, err := ReadRedoDirectory(ctx, f.file, f.meta.Section.Length, f.file.path)
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
func (f *redoFile) attach(dir *RedoDirectory) (*redoData, error) {
	if err := dir.matches(f.meta); err != nil {
		return nil, err
	}
	sch := f.set.env.Schema
	d := &redoData{bySchema: make([]*redoList, sch.Len())}
	for i := range dir.Columns {
		c := &dir.Columns[i]
		l := f.list(c.Column.Name, &c.RedoList)
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
	return d, nil
}

func (f *redoFile) list(name string, l *RedoList) *redoList {
	return &redoList{rows: f.column("rows of changes of "+name, schema.Int32, l.Count, l.Rows),
		times: f.column("times of changes of "+name, schema.Int64, l.Count, l.Times)}
}

func (f *redoFile) column(name string, typ schema.Type, n int64, sec rowset.Section) *column {
	return &column{file: f.file, pages: f.set.env.Pages, name: name, typ: typ, rows: n, section: sec}
}

// places returns where the changes of a list belong.
func (f *redoFile) places(ctx context.Context, l *redoList) (*places, error) {
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

func (f *redoFile) readPlaces(ctx context.Context, l *redoList) (*places, error) {
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
		if row < 0 || int(row) >= f.set.rows || i > 0 && !p.ascends(i, l.cells != nil) {
			return nil, l.rows.damage(fmt.Errorf("change %d of row %d is out of order or of no row", i, row))
		}
	}
	return p, nil
}

// ascends reports whether change i sorts after the one before; a row may have several
// only in a list of cells.
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

// newest returns the newest change at or before the given time among those of one row,
// of which i is the first, -1 when there is none, and the first change of another row.
func (p *places) newest(i int, at mvcc.Timestamp) (newest, next int) {
	newest = -1
	for row := p.rows[i]; i < len(p.rows) && p.rows[i] == row; i++ {
		if p.times[i] <= int64(at) {
			newest = i
		}
	}
	return newest, i
}

// newestOf returns the newest change of the row at or before the given time, -1 when
// there is none.
func (p *places) newestOf(row int, at mvcc.Timestamp) int {
	i := p.find(row)
	if i == len(p.rows) || int(p.rows[i]) != row {
		return -1
	}
	newest, _ := p.newest(i, at)
	return newest
}

// changes returns the list of a schema column that the file touches.
func (f *redoFile) changes(ctx context.Context, col int) (*redoList, *places, error) {
	d, err := f.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	l := d.bySchema[col]
	p, err := f.places(ctx, l)
	return l, p, err
}

// ApplyLife clears the rows that are deleted at the given time.
func (f *redoFile) ApplyLife(ctx context.Context, at mvcc.Timestamp, from, to int, live vector.Bitmap) error {
	if !f.HasLife() {
		return nil
	}
	d, err := f.open(ctx)
	if err != nil {
		return err
	}
	p, err := f.places(ctx, d.deletes)
	if err != nil {
		return err
	}
	for i, end := p.find(from), p.find(to); i < end; i++ {
		if p.times[i] <= int64(at) {
			live.Clear(int(p.rows[i]) - from)
		}
	}
	return nil
}

// Patch returns the cells of rows [from, to) at the given time; see [delta.Reader].
func (f *redoFile) Patch(ctx context.Context, at mvcc.Timestamp, col, from, to int, v, scratch *vector.Vector) (*vector.Vector, error) {
	if !f.Touches(col) {
		return v, nil
	}
	l, p, err := f.changes(ctx, col)
	if err != nil {
		return nil, err
	}
	o := overlay{ctx: ctx, base: v, out: scratch, cells: cursor{col: l.cells}}
	for i, end := p.find(from), p.find(to); i < end; {
		cell, next := p.newest(i, at)
		if cell >= 0 {
			if err := o.put(int(p.rows[i])-from, cell); err != nil {
				return nil, err
			}
		}
		i = next
	}
	return o.finish(to - from)
}

// overlay copies base with some of its cells replaced, run by run.
type overlay struct {
	ctx       context.Context
	base, out *vector.Vector
	cells     cursor // changed cells
	done      int    // cells of base that were copied or replaced
	row, cell int    // run of changes that was not yet copied
	run       int    // its length
	begun     bool   // out is in use
}

// put replaces a row of base by a changed cell. Rows ascend.
func (o *overlay) put(row, cell int) error {
	if o.run > 0 && row == o.row+o.run && cell == o.cell+o.run {
		o.run++
		return nil
	}
	err := o.flush()
	o.row, o.cell, o.run = row, cell, 1
	return err
}

func (o *overlay) flush() error {
	if o.run == 0 {
		return nil
	}
	if !o.begun {
		o.begun = true
		o.out.Reset(o.base.Kind())
		o.out.Reserve(o.base.Len())
	}
	if err := o.out.AppendRange(o.base, o.done, o.row); err != nil {
		return err
	}
	for cell, end := o.cell, o.cell+o.run; cell < end; {
		page, at, err := o.cells.at(o.ctx, cell)
		if err != nil {
			return err
		}
		n := min(end, o.cells.end) - cell
		if err := o.out.AppendRange(page, at, at+n); err != nil {
			return err
		}
		cell += n
	}
	o.done, o.run = o.row+o.run, 0
	return nil
}

// finish returns the n cells.
func (o *overlay) finish(n int) (*vector.Vector, error) {
	if err := o.flush(); err != nil || !o.begun {
		return o.base, err
	}
	o.cells.col.pages.Hit(o.cells.hits)
	return o.out, o.out.AppendRange(o.base, o.done, n)
}

// PatchRow appends the row's cell at the given time, if the file has one.
func (f *redoFile) PatchRow(ctx context.Context, at mvcc.Timestamp, col, row int, dst *vector.Vector) (bool, error) {
	if !f.Touches(col) {
		return false, nil
	}
	l, p, err := f.changes(ctx, col)
	if err != nil {
		return false, err
	}
	i := p.newestOf(row, at)
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

// Last returns the newest change of the row. Nothing follows a deletion.
func (f *redoFile) Last(ctx context.Context, row rowset.RowID) (kind rowset.ChangeKind, ts mvcc.Timestamp, ok bool, err error) {
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
func (f *redoFile) lastOf(ctx context.Context, l *redoList, row rowset.RowID) (mvcc.Timestamp, bool, error) {
	p, err := f.places(ctx, l)
	if err != nil {
		return 0, false, err
	}
	i := p.newestOf(int(row), mvcc.Max)
	if i < 0 {
		return 0, false, nil
	}
	return mvcc.Timestamp(p.times[i]), true, nil
}

// lists returns all lists of an open file.
func (d *redoData) lists() []*redoList {
	if d.deletes == nil {
		return d.columns
	}
	return append(d.columns[:len(d.columns):len(d.columns)], d.deletes)
}

// forget gives the cached pages up.
func (f *redoFile) forget() {
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
