package minikudu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/manifest"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/tablet"
	"github.com/minikudu/minikudu/vector"
)

// Table is a handle on a table. It may be used concurrently, and as long as its DB
// is open.
type Table struct {
	// Set at open, then read-only.
	db        *DB
	id        uint64
	name      string
	schema    *schema.Schema
	version   uint32 // of the schema
	columnIDs []schema.ColumnID
	tablet    *tablet.Tablet
	defaults  []int         // columns delivered when none are named: all but the generated id
	history   time.Duration // retention, 0 for none
	kudu      bool          // written as Kudu reads it
	noRow     error         // ErrNotFound of a row

	// Safe on their own.
	dropped  atomic.Bool
	getters  sync.Pool  // *getter
	flushing sync.Mutex // held over a flush and its report
	turn     *turn      // of who compacts
	planner  *planner
}

func newTable(db *DB, mt *manifest.Table, s *schema.Schema, t *tablet.Tablet) *Table {
	tab := &Table{db: db, id: uint64(mt.ID), name: mt.Name, schema: s, version: mt.Current().Version, tablet: t, history: mt.Retention, kudu: mt.KuduCompatible,
		noRow: fmt.Errorf("row of table %q: %w", mt.Name, ErrNotFound), turn: newTurn(), planner: newPlanner(db.opts.RowSetBytes, time.Now())}
	for i := range s.Len() {
		tab.columnIDs = append(tab.columnIDs, s.Column(i).ID)
		if i != s.AutoIncrement() {
			tab.defaults = append(tab.defaults, i)
		}
	}
	tab.getters.New = func() any { return tab.newGetter() }
	return tab
}

// Name returns the table's name.
func (t *Table) Name() string { return t.name }

// Schema returns the table's schema.
func (t *Table) Schema() *schema.Schema { return t.schema }

// KuduCompatible reports whether only encodings that Kudu reads are written.
func (t *Table) KuduCompatible() bool { return t.kudu }

// Rows returns the number of rows, from metadata alone.
func (t *Table) Rows() int64 { return t.tablet.Rows() }

// columnError says that the table has no such column, and which it has.
func (t *Table) columnError(name string) error {
	names := t.schema.Names()
	sort.Strings(names)
	if len(names) > 20 {
		names = append(names[:20], "…")
	}
	return &schema.ValueError{Row: -1, Column: name, Reason: fmt.Sprintf("no such column in table %q, it has %s", t.name, strings.Join(names, ", "))}
}

// columns returns the schema indexes of the named columns, the default ones for nil.
func (t *Table) columns(names []string) ([]int, error) {
	if names == nil {
		return t.defaults, nil
	}
	out := make([]int, len(names))
	for k, name := range names {
		if out[k] = t.schema.Find(name); out[k] < 0 {
			return nil, t.columnError(name)
		}
	}
	return out, nil
}

// begin starts a call that reads the table.
func (t *Table) begin() error {
	if err := t.db.gate.enter(); err != nil {
		return err
	}
	if t.dropped.Load() {
		t.db.gate.exit()
		return fmt.Errorf("table %q: %w", t.name, ErrNotFound)
	}
	return nil
}

// Row is one row of a table. It stays valid.
type Row struct {
	table *Table
	cells []schema.Value // in schema order
}

// Values returns the cells in schema order, the generated id included, as Go values:
// see [schema.Column.Go].
func (r *Row) Values() []any {
	out := make([]any, len(r.cells))
	for i, v := range r.cells {
		out[i] = r.table.schema.Column(i).Go(v)
	}
	return out
}

// Value returns the named cell as a Go value, nil when it is null or there is no
// such column.
func (r *Row) Value(name string) any {
	i := r.table.schema.Find(name)
	if i < 0 {
		return nil
	}
	return r.table.schema.Column(i).Go(r.cells[i])
}

// Cell returns cell i in schema order.
func (r *Row) Cell(i int) schema.Value { return r.cells[i] }

// getter is the scratch memory of a Get. The cells of the key are those that were asked for,
// so only the others are read.
type getter struct {
	keys    rowset.Keys
	values  []schema.Value   // of the key
	key     []*vector.Vector // the same
	bytes   []byte           // encoded
	encoded *vector.Vector   // the same
	rest    []int            // the columns after the key
	cells   []*vector.Vector // of these
	named   named
}

// named is the columns that a GetColumns wants; the next one often wants the same.
type named struct {
	all     bool // names was nil
	names   []string
	columns []int
	read    []int            // those after the key, ascending, each once
	cells   []*vector.Vector // of these
}

func (t *Table) newGetter() *getter {
	g := &getter{encoded: vector.New(schema.KindBytes, 1)}
	for i := range t.schema.Len() {
		v := vector.New(t.schema.Column(i).Kind(), 1)
		if i < t.schema.NumKey() {
			g.key = append(g.key, v)
		} else {
			g.rest, g.cells = append(g.rest, i), append(g.cells, v)
		}
	}
	g.values = make([]schema.Value, len(g.key))
	return g
}

// putGetter gives g back without what it has of the key and the row.
func (t *Table) putGetter(g *getter) {
	clear(g.values)
	g.keys.Found = [1]rowset.Found{}
	t.getters.Put(g)
}

// setKey converts and encodes a whole key.
func (g *getter) setKey(t *Table, key []any) error {
	if len(key) != len(g.values) {
		return t.keyLengthError(-1, key)
	}
	for i, v := range key {
		x, err := t.schema.Column(i).Convert(v)
		if err != nil {
			return err
		}
		g.values[i] = x
		g.key[i].Reset(g.key[i].Kind())
		if err := g.key[i].Append(x); err != nil {
			return err
		}
	}
	g.bytes = encoding.AppendKeyValues(g.bytes[:0], g.values, len(g.values))
	g.encoded.Reset(schema.KindBytes)
	if err := g.encoded.AppendBytes(g.bytes); err != nil {
		return err
	}
	g.keys.Reset()
	g.keys.Encoded, g.keys.Columns = g.encoded, g.key
	return nil
}

// setNames finds the columns of a GetColumns.
func (g *getter) setNames(t *Table, names []string) error {
	n := &g.named
	if n.columns != nil && n.all == (names == nil) && slices.Equal(n.names, names) {
		return nil
	}
	columns, err := t.columns(names)
	if err != nil {
		return err
	}
	*n = named{all: names == nil, names: slices.Clone(names), columns: columns}
	for _, i := range columns {
		if i >= len(g.key) {
			n.read = append(n.read, i)
		}
	}
	slices.Sort(n.read)
	n.read = slices.Compact(n.read)
	for _, i := range n.read {
		n.cells = append(n.cells, g.cells[i-len(g.key)])
	}
	return nil
}

// cell returns the cell of a column that was read.
func (g *getter) cell(i int) schema.Value {
	if i < len(g.values) {
		return g.values[i]
	}
	return g.cells[i-len(g.values)].Value(0)
}

// Get returns the row with the given key, one value for each key column, at the
// newest visible commit. A missing row is ErrNotFound.
func (t *Table) Get(ctx context.Context, key ...any) (*Row, error) {
	g := t.getters.Get().(*getter)
	defer t.putGetter(g)
	if err := t.get(ctx, g, key, g.rest, g.cells); err != nil {
		return nil, err
	}
	r := &Row{table: t, cells: make([]schema.Value, t.schema.Len())}
	for i := range r.cells {
		r.cells[i] = g.cell(i)
	}
	return r, nil
}

// GetMany returns the rows with the given keys, in their order, nil for those that are
// missing. It is Get for each, but finds them together. A bad value names the place of its
// key as row.
func (t *Table) GetMany(ctx context.Context, keys [][]any) ([]*Row, error) {
	if err := t.begin(); err != nil {
		return nil, err
	}
	defer t.db.gate.exit()
	columns, err := t.keyColumns(keys)
	if err != nil {
		return nil, err
	}
	sorted, of, err := tablet.SortKeys(columns, len(keys))
	if err != nil {
		return nil, err
	}
	g := t.newGetter() // vectors that take many rows are not kept
	which, err := t.tablet.GetMany(ctx, sorted, g.rest, g.cells)
	if err != nil {
		return nil, t.tabletError(err)
	}
	rows := make([]*Row, sorted.Len())
	for i, k := range which {
		r := &Row{table: t, cells: make([]schema.Value, 0, t.schema.Len())}
		for _, v := range columns {
			r.cells = append(r.cells, v.Value(sorted.ColumnRow(int(k))))
		}
		for _, v := range g.cells {
			r.cells = append(r.cells, v.Value(i))
		}
		rows[k] = r
	}
	out := make([]*Row, len(keys))
	for i, k := range of {
		out[i] = rows[k]
	}
	t.db.metrics.gets.Add(int64(len(keys)))
	return out, nil
}

// keyColumns converts whole keys to a vector for each key column.
func (t *Table) keyColumns(keys [][]any) ([]*vector.Vector, error) {
	columns := make([]*vector.Vector, t.schema.NumKey())
	for c := range columns {
		columns[c] = vector.New(t.schema.Column(c).Kind(), len(keys))
	}
	for i, key := range keys {
		if len(key) != len(columns) {
			return nil, t.keyLengthError(i, key)
		}
		for c, v := range key {
			x, err := t.schema.Column(c).Convert(v)
			if err == nil {
				err = columns[c].Append(x)
			}
			if v := (*schema.ValueError)(nil); errors.As(err, &v) {
				v.Row = i
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return columns, nil
}

func (t *Table) keyLengthError(row int, key []any) error {
	return &schema.ValueError{Row: row, Reason: fmt.Sprintf("%d values for %d key columns (%s)", len(key), t.schema.NumKey(),
		strings.Join(t.schema.KeyNames(), ", "))}
}

// GetAsOf returns the row with the given key as it was at a time; see Query.AsOf. A row
// that was not there then is ErrNotFound.
func (t *Table) GetAsOf(ctx context.Context, at Timestamp, key ...any) (*Row, error) {
	lower, err := t.encodeKey(key)
	if err != nil {
		return nil, err
	}
	var found *Row
	all := make([]int, t.schema.Len())
	for i := range all {
		all[i] = i
	}
	err = t.scanKeys(ctx, &Query{AsOf: at}, all, lower, append(lower[:len(lower):len(lower)], 0), func(b *Batch) bool {
		found = &Row{table: t, cells: make([]schema.Value, len(all))}
		for i := range all {
			found.cells[i] = b.Column(i).Value(0)
		}
		return false
	})
	if err == nil && found == nil {
		err = t.noRow
	}
	return found, err
}

// encodeKey converts and encodes a whole key.
func (t *Table) encodeKey(key []any) ([]byte, error) {
	g := t.getters.Get().(*getter)
	defer t.putGetter(g)
	if err := g.setKey(t, key); err != nil {
		return nil, err
	}
	return slices.Clone(g.keys.At(0)), nil
}

// GetColumns returns the named cells of the row with the given key, as Go values in
// the order of names. A missing row is ErrNotFound.
func (t *Table) GetColumns(ctx context.Context, names []string, key ...any) ([]any, error) {
	g := t.getters.Get().(*getter)
	defer t.putGetter(g)
	if err := g.setNames(t, names); err != nil {
		return nil, err
	}
	if err := t.get(ctx, g, key, g.named.read, g.named.cells); err != nil {
		return nil, err
	}
	out := make([]any, len(g.named.columns))
	for k, i := range g.named.columns {
		out[k] = t.schema.Column(i).Go(g.cell(i))
	}
	return out, nil
}

// get reads the given columns of the row with a key, which are not of the key, into dst.
func (t *Table) get(ctx context.Context, g *getter, key []any, columns []int, dst []*vector.Vector) error {
	if err := t.begin(); err != nil {
		return err
	}
	defer t.db.gate.exit()
	if err := g.setKey(t, key); err != nil {
		return err
	}
	ok, err := t.tablet.Get(ctx, &g.keys, columns, dst)
	if err != nil {
		return t.tabletError(err)
	}
	if !ok {
		return t.noRow
	}
	t.db.metrics.gets.Add(1)
	return nil
}
