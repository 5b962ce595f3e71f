package minikudu

import (
	"errors"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/internal/record"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// WriteBatch collects rows, for any number of tables of one DB, that [DB.Commit]
// commits together. Rows are numbered from 0 in the order in which they were added.
// A row with a bad value is kept as rejected and reported by the commit; it does not
// stop the others. A WriteBatch is used by one goroutine at a time; the zero value
// is an empty batch. It may be committed again after Reset.
type WriteBatch struct {
	parts []*batchPart // in order of first use
	rows  int
	bad   []RowError
}

// batchPart is the accepted rows for one table.
type batchPart struct {
	table   *Table
	columns []*vector.Vector // in schema order; the generated id's stays empty
	rows    []int32          // number of each row in the batch
	ignore  []bool           // insert-ignore, one a row
}

// Insert adds a row: one value for each column in schema order, without the
// generated id. A nil is null. See [schema.Column.Convert] for what Go types a
// column takes. A key that is live already rejects the row at commit.
func (b *WriteBatch) Insert(t *Table, values ...any) { b.insertPositional(t, false, values) }

// InsertIgnore is Insert, but a key that is live already leaves the row out silently.
func (b *WriteBatch) InsertIgnore(t *Table, values ...any) { b.insertPositional(t, true, values) }

// InsertMap adds a row by column names. A column that is not named takes its
// default, or null; naming a column the table lacks rejects the row.
func (b *WriteBatch) InsertMap(t *Table, row map[string]any) {
	for name := range row {
		if i := t.schema.Find(name); i < 0 || i == t.schema.AutoIncrement() {
			b.reject(t, t.columnError(name))
			return
		}
	}
	b.insert(t, false, func(i int) (any, bool) {
		v, ok := row[t.schema.Column(i).Name]
		return v, ok
	})
}

func (b *WriteBatch) insertPositional(t *Table, ignore bool, values []any) {
	auto := t.schema.AutoIncrement()
	want := t.schema.Len()
	if auto >= 0 {
		want--
	}
	if len(values) != want {
		b.reject(t, &schema.ValueError{Row: -1, Reason: fmt.Sprintf("%d values for %d columns", len(values), want)})
		return
	}
	b.insert(t, ignore, func(i int) (any, bool) {
		if auto >= 0 && i > auto {
			i--
		}
		return values[i], true
	})
}

// insert adds a row whose value of schema column i is value(i), or unset.
func (b *WriteBatch) insert(t *Table, ignore bool, value func(i int) (any, bool)) {
	p := b.part(t)
	for i, column := range p.columns {
		if i == t.schema.AutoIncrement() {
			continue
		}
		x, err := t.cell(i, value)
		if err == nil {
			err = column.Append(x) // fails past 2 GiB; long before that the batch is too large
		}
		if err != nil {
			p.truncate(len(p.rows))
			b.reject(t, err)
			return
		}
	}
	p.rows, p.ignore = append(p.rows, int32(b.rows)), append(p.ignore, ignore)
	b.rows++
}

// cell converts the value of schema column i, or takes its default.
func (t *Table) cell(i int, value func(i int) (any, bool)) (schema.Value, error) {
	c := t.schema.Column(i)
	v, set := value(i)
	switch {
	case set:
		return c.ConvertLimit(v, t.db.opts.Limits.MaxCellBytes)
	case !c.Default.IsNull():
		return c.Default, nil
	case c.Nullable:
		return schema.Null, nil
	}
	return schema.Null, &schema.ValueError{Row: -1, Column: c.Name, Want: c.TypeString() + " not null", Reason: "no value and no default"}
}

// truncate drops the cells of rows n and above.
func (p *batchPart) truncate(n int) {
	for _, v := range p.columns {
		v.Truncate(n)
	}
}

// InsertColumns adds many rows by column. Every vector has the same length and the
// kind of its column; the vectors are copied. Columns that are not named take their
// defaults, or null. What concerns the whole call (an unknown column, a wrong kind)
// is returned and adds nothing; a bad cell rejects its row only.
func (b *WriteBatch) InsertColumns(t *Table, names []string, columns []*vector.Vector) error {
	return b.insertColumns(t, false, names, columns)
}

// InsertIgnoreColumns is InsertColumns, but rows whose key is live already are left
// out silently.
func (b *WriteBatch) InsertIgnoreColumns(t *Table, names []string, columns []*vector.Vector) error {
	return b.insertColumns(t, true, names, columns)
}

func (b *WriteBatch) insertColumns(t *Table, ignore bool, names []string, columns []*vector.Vector) error {
	given, n, err := t.matchColumns(names, columns)
	if err != nil || n == 0 {
		return err
	}
	bad := t.badCells(given, n)
	good := make([]int32, 0, n)
	p := b.part(t)
	for i := range n {
		if len(bad) > 0 && bad[i] != nil {
			b.reject(t, bad[i])
			continue
		}
		good = append(good, int32(i))
		p.rows, p.ignore = append(p.rows, int32(b.rows)), append(p.ignore, ignore)
		b.rows++
	}
	if len(good) == 0 {
		return nil
	}
	before := len(p.rows) - len(good)
	for i, dst := range p.columns {
		if i == t.schema.AutoIncrement() {
			continue
		}
		var err error
		switch {
		case given[i] == nil:
			err = dst.AppendConst(t.schema.Column(i).Default, len(good))
		case len(good) == n:
			err = dst.AppendRange(given[i], 0, n)
		default:
			err = dst.AppendRows(given[i], good)
		}
		if err != nil {
			p.truncate(before)
			p.rows, p.ignore = p.rows[:before], p.ignore[:before]
			return fmt.Errorf("%w: column %q: %w", ErrTooLarge, t.schema.Column(i).Name, err)
		}
	}
	return nil
}

// matchColumns puts the given vectors in schema order.
func (t *Table) matchColumns(names []string, columns []*vector.Vector) (given []*vector.Vector, n int, err error) {
	if len(names) != len(columns) {
		return nil, 0, fmt.Errorf("%w: %d names for %d columns", ErrInvalidArgument, len(names), len(columns))
	}
	given = make([]*vector.Vector, t.schema.Len())
	for k, name := range names {
		i := t.schema.Find(name)
		if i < 0 || i == t.schema.AutoIncrement() {
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
	for i := range t.schema.Len() {
		c := t.schema.Column(i)
		if given[i] == nil && i != t.schema.AutoIncrement() && c.Default.IsNull() && !c.Nullable {
			return nil, 0, &schema.ValueError{Row: -1, Column: c.Name, Want: c.TypeString() + " not null", Reason: "no values and no default"}
		}
	}
	return given, n, nil
}

// badCells returns the first error of each row, or nil when every cell is good.
func (t *Table) badCells(given []*vector.Vector, n int) []error {
	var bad []error
	for i, v := range given {
		if v == nil {
			continue
		}
		c := t.schema.Column(i)
		limit := t.db.opts.Limits.MaxCellBytes
		for _, row := range suspects(nil, c, v, limit) {
			if bad == nil {
				bad = make([]error, n)
			}
			if _, err := c.ConvertLimit(v.Value(int(row)), limit); err != nil && bad[row] == nil {
				bad[row] = err
			}
		}
	}
	return bad
}

// suspects appends the rows of v whose cells may not be values of the column.
func suspects(dst []int32, c *schema.Column, v *vector.Vector, maxCell int) []int32 {
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
			if n := len(v.BytesAt(i)); n > maxCell || c.Type == schema.Varchar && n > int(c.Length) {
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
	p := &batchPart{table: t, columns: make([]*vector.Vector, t.schema.Len())}
	for i := range p.columns {
		p.columns[i] = vector.New(t.schema.Column(i).Kind(), 0)
	}
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
		n += record.Size(p.columns)
	}
	return n
}

// Reset empties the batch and keeps its memory, but not that for tables which the
// batch had no rows for.
func (b *WriteBatch) Reset() {
	b.parts = slices.DeleteFunc(b.parts, func(p *batchPart) bool { return len(p.rows) == 0 })
	for _, p := range b.parts {
		for i, v := range p.columns {
			v.Reset(p.table.schema.Column(i).Kind())
		}
		p.rows, p.ignore = p.rows[:0], p.ignore[:0]
	}
	b.rows, b.bad = 0, nil
}
