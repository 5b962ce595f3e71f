package minikudu

import (
	"errors"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/internal/record"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/tablet"
	"github.com/minikudu/minikudu/vector"
)

// Op is an operation on a row.
type Op = tablet.OpKind

// The operations. The Ignore forms pass over rows whose key is not in the state that
// they need, and leave immutable columns alone.
const (
	OpInsert       = tablet.Insert       // the key must be absent
	OpInsertIgnore = tablet.InsertIgnore // nothing where the key is live
	OpUpsert       = tablet.Upsert       // inserts, or sets the columns given
	OpUpsertIgnore = tablet.UpsertIgnore // likewise, leaving immutable columns alone
	OpUpdate       = tablet.Update       // sets the columns given; the key must be live
	OpUpdateIgnore = tablet.UpdateIgnore // nothing where the key is absent
	OpDelete       = tablet.Delete       // the key must be live
	OpDeleteIgnore = tablet.DeleteIgnore // nothing where the key is absent
)

// WriteBatch collects writes to any number of tables of one DB, that [DB.Commit]
// commits together. Rows are numbered from 0 in the order in which they were added,
// and take effect in that order: a row sees what earlier rows of the batch did to its
// key. A row with a bad value is kept as rejected and reported by the commit; it does
// not stop the others. A WriteBatch is used by one goroutine at a time; the zero value
// is an empty batch. It may be committed again after Reset.
type WriteBatch struct {
	parts []*batchPart // in order of first use
	rows  int
	bad   []RowError
	cond  *tablet.Condition // of an update or delete by predicate
	cells []schema.Value    // scratch
	given []int             // scratch
}

// batchPart is the accepted rows for one table.
type batchPart struct {
	table  *Table
	groups []*batchGroup // in order of first use
	rows   []int32       // number of each row in the batch
}

// batchGroup is rows with the same operation that give the same columns.
type batchGroup struct {
	op      Op
	columns []int // schema columns given, ascending
	values  []*vector.Vector
	rows    []int32 // index in batchPart.rows of each row
}

// Insert adds a row: one value for each column in schema order, without the
// generated id. A nil is null. See [schema.Column.Convert] for what Go types a
// column takes. A key that is live already rejects the row at commit.
func (b *WriteBatch) Insert(t *Table, values ...any) { b.positional(t, OpInsert, values) }

// InsertIgnore is Insert, but a key that is live already leaves the row out silently.
func (b *WriteBatch) InsertIgnore(t *Table, values ...any) { b.positional(t, OpInsertIgnore, values) }

// Upsert adds a row like Insert, but where the key is live already its columns are
// set to the values.
func (b *WriteBatch) Upsert(t *Table, values ...any) { b.positional(t, OpUpsert, values) }

// Delete deletes the row with the given key, one value for each key column. A key that
// is not live rejects the row at commit.
func (b *WriteBatch) Delete(t *Table, key ...any) {
	if len(key) != t.schema.NumKey() {
		b.reject(t, &schema.ValueError{Row: -1, Reason: fmt.Sprintf("%d values for %d key columns", len(key), t.schema.NumKey())})
		return
	}
	b.row(t, OpDelete, func(i int) (any, bool) {
		if i >= len(key) {
			return nil, false
		}
		return key[i], true
	})
}

// InsertMap adds a row by column names. A column that is not named takes its
// default, or null; naming a column the table lacks rejects the row.
func (b *WriteBatch) InsertMap(t *Table, row map[string]any) { b.Add(t, OpInsert, row) }

// Add adds a row by column names, with any operation. An insert that does not name a
// column stores its default, or null; an upsert does so only where it inserts, and
// where the key is live it leaves the column alone. An update names the key columns
// and those to be set, a delete the key columns only.
func (b *WriteBatch) Add(t *Table, op Op, row map[string]any) {
	for name := range row {
		if i := t.schema.Find(name); i < 0 || i == t.schema.AutoIncrement() && op <= OpInsertIgnore {
			b.reject(t, t.columnError(name))
			return
		}
	}
	b.row(t, op, func(i int) (any, bool) {
		v, ok := row[t.schema.Column(i).Name]
		return v, ok
	})
}

func (b *WriteBatch) positional(t *Table, op Op, values []any) {
	auto := t.schema.AutoIncrement()
	want := t.schema.Len()
	if auto >= 0 && op <= OpInsertIgnore {
		want--
	} else {
		auto = -1
	}
	if len(values) != want {
		b.reject(t, &schema.ValueError{Row: -1, Reason: fmt.Sprintf("%d values for %d columns", len(values), want)})
		return
	}
	b.row(t, op, func(i int) (any, bool) {
		switch {
		case i == auto:
			return nil, false
		case auto >= 0 && i > auto:
			i--
		}
		return values[i], true
	})
}

// row adds a row whose value of schema column i is value(i), or not given.
func (b *WriteBatch) row(t *Table, op Op, value func(i int) (any, bool)) {
	b.cells, b.given = b.cells[:0], b.given[:0]
	for i := range t.schema.Len() {
		v, given := value(i)
		x, takes, err := t.cell(op, i, v, given)
		if err != nil {
			b.reject(t, err)
			return
		}
		if takes {
			b.cells, b.given = append(b.cells, x), append(b.given, i)
		}
	}
	if op.Updates() && !op.Inserts() && len(b.given) == t.schema.NumKey() {
		b.reject(t, &schema.ValueError{Row: -1, Reason: "nothing to update"})
		return
	}
	p := b.part(t)
	g := p.group(op, b.given)
	for k, v := range g.values {
		if err := v.Append(b.cells[k]); err != nil {
			// Only a vector past 2 GiB fails, long before that the batch is too large.
			g.truncate(len(g.rows))
			b.reject(t, err)
			return
		}
	}
	g.rows, p.rows = append(g.rows, int32(len(p.rows))), append(p.rows, int32(b.rows))
	b.rows++
}

// cell converts the value of schema column i, or takes its default; takes is false
// where the operation leaves the column out.
func (t *Table) cell(op Op, i int, v any, given bool) (x schema.Value, takes bool, err error) {
	if takes, err = t.takes(op, i, given); err != nil || !takes {
		return schema.Null, false, err
	}
	c := t.schema.Column(i)
	if !given {
		return c.Default, true, nil
	}
	x, err = t.convert(op, i, v)
	return x, true, err
}

// convert converts a value of schema column i.
func (t *Table) convert(op Op, i int, v any) (schema.Value, error) {
	c := t.schema.Column(i)
	x, err := c.ConvertLimit(v, t.db.opts.Limits.MaxCellBytes)
	if err == nil && op.Inserts() && i == t.schema.AutoIncrement() && x.Int() < 0 {
		err = &schema.ValueError{Row: -1, Column: c.Name, Want: c.TypeString(), Given: fmt.Sprint(x.Int()), Reason: "negative"}
	}
	return x, err
}

// takes reports whether a row of the operation has a cell of schema column i: the
// columns given, and for an insert all but the generated id.
func (t *Table) takes(op Op, i int, given bool) (bool, error) {
	c := t.schema.Column(i)
	plain := op.Inserts() && !op.Updates()
	switch {
	case plain && i == t.schema.AutoIncrement():
		return false, nil
	case !given && (i < t.schema.NumKey() || op.Inserts() && !c.Nullable && c.Default.IsNull()):
		return false, &schema.ValueError{Row: -1, Column: c.Name, Want: c.TypeString() + " not null", Reason: "no value and no default"}
	case given && i >= t.schema.NumKey() && op >= OpDelete:
		return false, &schema.ValueError{Row: -1, Column: c.Name, Reason: "a delete takes key columns only"}
	}
	return given || plain, nil
}

// group returns the part's group of rows with the operation and columns.
func (p *batchPart) group(op Op, columns []int) *batchGroup {
	for _, g := range p.groups {
		if g.op == op && slices.Equal(g.columns, columns) {
			return g
		}
	}
	g := &batchGroup{op: op, columns: slices.Clone(columns)}
	for _, c := range columns {
		g.values = append(g.values, vector.New(p.table.schema.Column(c).Kind(), 0))
	}
	p.groups = append(p.groups, g)
	return g
}

// truncate drops the cells of rows n and above.
func (g *batchGroup) truncate(n int) {
	for _, v := range g.values {
		if v.Len() > n {
			v.Truncate(n)
		}
	}
}

// InsertColumns adds many rows by column; see [WriteBatch.AddColumns].
func (b *WriteBatch) InsertColumns(t *Table, names []string, columns []*vector.Vector) error {
	return b.AddColumns(t, OpInsert, names, columns)
}

// InsertIgnoreColumns is InsertColumns, but rows whose key is live already are left
// out silently.
func (b *WriteBatch) InsertIgnoreColumns(t *Table, names []string, columns []*vector.Vector) error {
	return b.AddColumns(t, OpInsertIgnore, names, columns)
}

// AddColumns adds many rows by column, with any operation; see [WriteBatch.Add] for
// the columns it takes. Every vector has the same length and the kind of its column;
// the vectors are copied. What concerns the whole call (an unknown column, a wrong
// kind) is returned and adds nothing; a bad cell rejects its row only.
func (b *WriteBatch) AddColumns(t *Table, op Op, names []string, columns []*vector.Vector) error {
	given, n, err := t.matchColumns(op, names, columns)
	if err != nil || n == 0 {
		return err
	}
	good := b.goodRows(t, op, given, n)
	if len(good) == 0 {
		return nil
	}
	var at []int
	for i := range given {
		takes, err := t.takes(op, i, given[i] != nil)
		if err != nil {
			return err
		}
		if takes {
			at = append(at, i)
		}
	}
	p := b.part(t)
	g := p.group(op, at)
	before := len(g.rows)
	for k, i := range g.columns {
		if err := appendGood(g.values[k], given[i], good, n, t.schema.Column(i).Default); err != nil {
			g.truncate(before)
			return fmt.Errorf("%w: column %q: %w", ErrTooLarge, t.schema.Column(i).Name, err)
		}
	}
	first := b.rows - n
	for _, i := range good {
		g.rows, p.rows = append(g.rows, int32(len(p.rows))), append(p.rows, int32(first)+i)
	}
	return nil
}

// goodRows numbers n rows, rejects those with a bad cell and returns the others.
func (b *WriteBatch) goodRows(t *Table, op Op, given []*vector.Vector, n int) []int32 {
	bad := t.badCells(op, given, n)
	good := make([]int32, 0, n)
	for i := range n {
		if len(bad) > 0 && bad[i] != nil {
			b.reject(t, bad[i])
			continue
		}
		good = append(good, int32(i))
		b.rows++
	}
	return good
}

// appendGood appends the good rows of v, of n in all; a nil v stands for the default.
func appendGood(dst, v *vector.Vector, good []int32, n int, def schema.Value) error {
	switch {
	case v == nil:
		return dst.AppendConst(def, len(good))
	case len(good) == n:
		return dst.AppendRange(v, 0, n)
	}
	return dst.AppendRows(v, good)
}

// matchColumns puts the given vectors in schema order.
func (t *Table) matchColumns(op Op, names []string, columns []*vector.Vector) (given []*vector.Vector, n int, err error) {
	if len(names) != len(columns) {
		return nil, 0, fmt.Errorf("%w: %d names for %d columns", ErrInvalidArgument, len(names), len(columns))
	}
	given = make([]*vector.Vector, t.schema.Len())
	for k, name := range names {
		i := t.schema.Find(name)
		if i < 0 || i == t.schema.AutoIncrement() && op <= OpInsertIgnore {
			return nil, 0, t.columnError(name)
		}
		c, v := t.schema.Column(i), columns[k]
		switch {
		case given[i] != nil:
			return nil, 0, &schema.ValueError{Row: -1, Column: name, Reason: "given twice"}
		case v.Kind() != c.Kind():
			return nil, 0, &schema.ValueError{Row: -1, Column: name, Want: c.TypeString(), Given: v.Kind().String(), Reason: "wrong kind of vector"}
		case v.Len() != columns[0].Len():
			return nil, 0, fmt.Errorf("%w: column %q has %d values, column %q %d", ErrInvalidArgument, name, v.Len(), names[0], columns[0].Len())
		}
		given[i], n = v, v.Len()
	}
	for i := range given {
		if _, err := t.takes(op, i, given[i] != nil); err != nil {
			return nil, 0, err
		}
	}
	if op.Updates() && !op.Inserts() && len(names) == t.schema.NumKey() {
		return nil, 0, &schema.ValueError{Row: -1, Reason: "nothing to update"}
	}
	return given, n, nil
}

// badCells returns the first error of each row, or nil when every cell is good.
func (t *Table) badCells(op Op, given []*vector.Vector, n int) []error {
	var bad []error
	for i, v := range given {
		if v == nil {
			continue
		}
		for _, row := range t.suspects(op, i, v) {
			if bad == nil {
				bad = make([]error, n)
			}
			if _, err := t.convert(op, i, v.Value(int(row))); err != nil && bad[row] == nil {
				bad[row] = err
			}
		}
	}
	return bad
}

// suspects returns the rows of v whose cells may not be values of schema column at.
func (t *Table) suspects(op Op, at int, v *vector.Vector) (dst []int32) {
	c := t.schema.Column(at)
	if !c.Nullable && v.Valid() != nil {
		for i := range v.Len() {
			if v.IsNull(i) {
				dst = append(dst, int32(i))
			}
		}
	}
	switch {
	case c.Kind() == schema.KindBytes:
		for i := range v.Len() {
			if n := len(v.BytesAt(i)); n > t.db.opts.Limits.MaxCellBytes || c.Type == schema.Varchar && n > int(c.Length) {
				dst = append(dst, int32(i))
			}
		}
	case at == t.schema.AutoIncrement() && op.Inserts():
		for i := range v.Len() {
			if !v.IsNull(i) && v.Int64s()[i] < 0 {
				dst = append(dst, int32(i))
			}
		}
	case c.Type == schema.Date || c.Type.IsDecimal():
		dst = checkedRows(dst, c, v)
	}
	return dst
}

// checkedRows appends the rows that the column's own conversion refuses.
func checkedRows(dst []int32, c *schema.Column, v *vector.Vector) []int32 {
	for i := range v.Len() {
		if x := v.Value(i); !x.IsNull() {
			if _, err := c.Convert(x); err != nil {
				dst = append(dst, int32(i))
			}
		}
	}
	return dst
}

// part returns the batch's part of the table.
func (b *WriteBatch) part(t *Table) *batchPart {
	for _, p := range b.parts {
		if p.table == t {
			return p
		}
	}
	p := &batchPart{table: t}
	b.parts = append(b.parts, p)
	return p
}

// reject counts a row that is left out.
func (b *WriteBatch) reject(t *Table, err error) {
	var v *schema.ValueError
	if errors.As(err, &v) && v.Row < 0 {
		v.Row = b.rows
	}
	b.bad = append(b.bad, RowError{Row: b.rows, Table: t.name, Err: err})
	b.rows++
}

// Len returns the number of rows added, rejected ones included.
func (b *WriteBatch) Len() int { return b.rows }

// Size returns an upper bound of the batch's size in the log, in bytes.
func (b *WriteBatch) Size() int64 {
	var n int64
	for _, p := range b.parts {
		for _, g := range p.groups {
			n += record.Size(g.values)
		}
	}
	return n
}

// Reset empties the batch and keeps its memory, but not that for tables which the
// batch had no rows for.
func (b *WriteBatch) Reset() {
	b.parts = slices.DeleteFunc(b.parts, func(p *batchPart) bool { return len(p.rows) == 0 })
	for _, p := range b.parts {
		p.groups = slices.DeleteFunc(p.groups, func(g *batchGroup) bool { return len(g.rows) == 0 })
		for _, g := range p.groups {
			for _, v := range g.values {
				v.Reset(v.Kind())
			}
			g.rows = g.rows[:0]
		}
		p.rows = p.rows[:0]
	}
	b.rows, b.bad = 0, nil
}
