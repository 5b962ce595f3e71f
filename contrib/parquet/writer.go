package parquet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Options configure a [Writer]. The zero value works.
type Options struct {
	// Compression of the pages: none, snappy, zlib (Parquet's gzip) or zstd. The default
	// is snappy, which every reader knows.
	Compression schema.Compression
	// RowGroupRows is the number of rows of a row group. The encoded pages of one are
	// held in memory. Default 1,048,576.
	RowGroupRows int
}

const (
	defaultRowGroupRows = 1 << 20
	maxDictionaryBytes  = 1 << 20 // a chunk whose words exceed it goes on in plain form
	cellsAtOnce         = 512     // a page is cut after this many cells at the earliest
)

// Writer writes batches as a Parquet file. Close it to write the footer: without it
// there is no file that can be read.
type Writer struct {
	columns []schema.Column
	limit   int64 // rows of a row group
	dst     *pq.GenericWriter[any]
	writers []*pq.ColumnWriter
	file    *os.File // that Create made

	rows  int64 // of the row group
	cells []pq.Value
	raw   []byte // of decimals among cells
	err   error  // sticks
}

// Create makes, or replaces, the file and returns a writer of it.
func Create(path string, columns []schema.Column, o Options) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w, err := NewWriter(f, columns, o)
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	w.file = f
	return w, nil
}

// NewWriter returns a writer to dst, which stays open.
func NewWriter(dst io.Writer, columns []schema.Column, o Options) (*Writer, error) {
	root, err := nodeOf(columns)
	if err != nil {
		return nil, err
	}
	codec, err := codecOf(o.Compression)
	if err != nil {
		return nil, err
	}
	w := &Writer{columns: columns, limit: int64(o.RowGroupRows)}
	if w.limit <= 0 {
		w.limit = defaultRowGroupRows
	}
	w.dst = pq.NewGenericWriter[any](dst, pq.NewSchema("schema", root), pq.Compression(codec),
		pq.CreatedBy("minikudu", "", ""), pq.DictionaryMaxBytes(maxDictionaryBytes))
	w.writers = w.dst.ColumnWriters()
	return w, nil
}

func codecOf(c schema.Compression) (compress.Codec, error) {
	switch c {
	case schema.CompressionDefault, schema.CompressionSnappy:
		return &pq.Snappy, nil
	case schema.CompressionNone:
		return &pq.Uncompressed, nil
	case schema.CompressionZlib:
		return &pq.Gzip, nil
	case schema.CompressionZstd:
		return &pq.Zstd, nil
	}
	return nil, fmt.Errorf("compression %s of Parquet files: %w", c, minikudu.ErrNotSupported)
}

// group is a node whose fields keep their order; the library's sorts them.
type group struct {
	pq.Group
	fields []pq.Field
}

// Fields returns the columns.
func (g *group) Fields() []pq.Field { return g.fields }

type field struct {
	pq.Node
	name string
}

// Name returns the column's name.
func (f *field) Name() string { return f.name }

// Value is never called: cells are written by column, not from Go values.
func (f *field) Value(base reflect.Value) reflect.Value { return base }

func nodeOf(columns []schema.Column) (pq.Node, error) {
	if len(columns) == 0 {
		return nil, &schema.SchemaError{Reason: "a Parquet file without columns cannot hold rows"}
	}
	g := &group{Group: pq.Group{}}
	for i := range columns {
		c := &columns[i]
		n := leafOf(c)
		if n == nil {
			return nil, &UnsupportedError{Column: c.Name, Type: c.TypeString()}
		}
		if c.Nullable {
			n = pq.Optional(n)
		}
		if _, ok := g.Group[c.Name]; ok {
			return nil, &schema.SchemaError{Column: c.Name, Reason: "two columns have this name"}
		}
		g.Group[c.Name], g.fields = n, append(g.fields, &field{Node: n, name: c.Name})
	}
	return g, nil
}

func leafOf(c *schema.Column) pq.Node {
	switch c.Type {
	case schema.Bool:
		return pq.Leaf(pq.BooleanType)
	case schema.Int8:
		return pq.Int(8)
	case schema.Int16:
		return pq.Int(16)
	case schema.Int32:
		return pq.Int(32)
	case schema.Int64:
		return pq.Int(64)
	case schema.Float:
		return pq.Leaf(pq.FloatType)
	case schema.Double:
		return pq.Leaf(pq.DoubleType)
	case schema.String, schema.Varchar:
		return pq.Encoded(pq.String(), &pq.RLEDictionary)
	case schema.Binary:
		return pq.Encoded(pq.Leaf(pq.ByteArrayType), &pq.RLEDictionary)
	case schema.UnixtimeMicros:
		return pq.Timestamp(pq.Microsecond)
	case schema.Date:
		return pq.Date()
	case schema.Decimal32:
		return pq.Decimal(int(c.Scale), int(c.Precision), pq.Int32Type)
	case schema.Decimal64:
		return pq.Decimal(int(c.Scale), int(c.Precision), pq.Int64Type)
	case schema.Decimal128:
		return pq.Decimal(int(c.Scale), int(c.Precision), pq.FixedLenByteArrayType(16))
	}
	return nil
}

// Write writes the rows of a batch whose columns are the writer's, by position. The
// batch is not used after the call. An error sticks.
func (w *Writer) Write(b *vector.Batch) error {
	if w.err == nil {
		w.err = w.write(b)
	}
	return w.err
}

func (w *Writer) write(b *vector.Batch) error {
	if err := w.check(b); err != nil {
		return err
	}
	for from := 0; from < b.Len(); {
		to := from + int(min(int64(b.Len()-from), w.limit-w.rows))
		for i := range w.columns {
			if err := w.writeCells(i, b.Column(i), from, to); err != nil {
				return fmt.Errorf("writing column %q: %w", w.columns[i].Name, err)
			}
		}
		w.rows += int64(to - from)
		from = to
		if w.rows < w.limit {
			continue
		}
		if err := w.dst.Flush(); err != nil {
			return fmt.Errorf("writing row group: %w", err)
		}
		w.rows = 0
	}
	return nil
}

func (w *Writer) check(b *vector.Batch) error {
	if b.NumColumns() != len(w.columns) {
		return fmt.Errorf("%w: a batch of %d columns for a file of %d", minikudu.ErrInvalidArgument, b.NumColumns(), len(w.columns))
	}
	for i := range w.columns {
		c, v := &w.columns[i], b.Column(i)
		if v.Kind() != c.Kind() {
			return &schema.ValueError{Row: -1, Column: c.Name, Want: c.TypeString(), Given: "vector of " + v.Kind().String(), Reason: "wrong kind"}
		}
		if !c.Nullable && v.NullCount() > 0 {
			return &schema.ValueError{Row: -1, Column: c.Name, Want: c.TypeString() + " not null", Given: "null", Reason: "not nullable"}
		}
	}
	return nil
}

// writeCells writes cells [from, to) of v as column i.
func (w *Writer) writeCells(i int, v *vector.Vector, from, to int) error {
	nullable := 0
	if w.columns[i].Nullable {
		nullable = 1
	}
	for ; from < to; from += cellsAtOnce {
		end := min(from+cellsAtOnce, to)
		w.cells = w.cells[:0]
		w.appendCells(v, from, end)
		for k := range w.cells {
			if v.IsNull(from + k) {
				w.cells[k] = pq.NullValue().Level(0, 0, i)
			} else {
				w.cells[k] = w.cells[k].Level(0, nullable, i)
			}
		}
		if _, err := w.writers[i].WriteRowValues(w.cells); err != nil {
			return err
		}
	}
	return nil
}

// appendCells appends cells [from, to) of v to w.cells, nulls as any value.
func (w *Writer) appendCells(v *vector.Vector, from, to int) {
	switch v.Kind() {
	case schema.KindBool:
		for i := from; i < to; i++ {
			w.cells = append(w.cells, pq.BooleanValue(v.BoolAt(i)))
		}
	case schema.KindInt8:
		w.cells = appendInts(w.cells, v.Int8s()[from:to])
	case schema.KindInt16:
		w.cells = appendInts(w.cells, v.Int16s()[from:to])
	case schema.KindInt32:
		w.cells = appendInts(w.cells, v.Int32s()[from:to])
	case schema.KindInt64:
		for _, x := range v.Int64s()[from:to] {
			w.cells = append(w.cells, pq.Int64Value(x))
		}
	case schema.KindInt128:
		w.appendDecimals(v.Int128s()[from:to])
	case schema.KindFloat32:
		for _, x := range v.Float32s()[from:to] {
			w.cells = append(w.cells, pq.FloatValue(x))
		}
	case schema.KindFloat64:
		for _, x := range v.Float64s()[from:to] {
			w.cells = append(w.cells, pq.DoubleValue(x))
		}
	case schema.KindBytes:
		for i := from; i < to; i++ {
			w.cells = append(w.cells, pq.ByteArrayValue(v.BytesAt(i)))
		}
	}
}

func appendInts[T int8 | int16 | int32](dst []pq.Value, vals []T) []pq.Value {
	for _, x := range vals {
		dst = append(dst, pq.Int32Value(int32(x)))
	}
	return dst
}

func (w *Writer) appendDecimals(vals []schema.Int128) {
	w.raw = w.raw[:0]
	for _, x := range vals {
		w.raw = binary.BigEndian.AppendUint64(w.raw, uint64(x.Hi))
		w.raw = binary.BigEndian.AppendUint64(w.raw, x.Lo)
	}
	for i := range vals {
		w.cells = append(w.cells, pq.FixedLenByteArrayValue(w.raw[16*i:16*i+16]))
	}
}

// Close writes what is left and the footer, and syncs and closes the file that Create
// made. After a failed Write it only closes the file, which cannot be read then.
func (w *Writer) Close() error {
	err := w.err
	if err == nil {
		err = w.dst.Close()
	}
	w.err = os.ErrClosed
	if w.file == nil {
		return err
	}
	if err == nil {
		err = w.file.Sync()
	}
	if e := w.file.Close(); err == nil {
		err = e
	}
	return err
}

// Export writes the rows that the query selects to dst as a Parquet file and returns
// their number.
func Export(ctx context.Context, t *minikudu.Table, q minikudu.Query, dst io.Writer, o Options) (rows int64, err error) {
	columns, err := queryColumns(t.Schema(), q.Columns)
	if err != nil {
		return 0, err
	}
	w, err := NewWriter(dst, columns, o)
	if err != nil {
		return 0, err
	}
	for b, err := range t.Scan(ctx, q) {
		if err == nil {
			err = w.Write(b)
		}
		if err != nil {
			return rows, err
		}
		rows += int64(b.Len())
	}
	return rows, w.Close()
}

// queryColumns returns the columns of a query's batches.
func queryColumns(s *schema.Schema, names []string) ([]schema.Column, error) {
	var out []schema.Column
	if names == nil {
		for i, c := range s.Columns() {
			if i != s.AutoIncrement() {
				out = append(out, c)
			}
		}
		return out, nil
	}
	for _, name := range names {
		i := s.Find(name)
		if i < 0 {
			return nil, &schema.SchemaError{Column: name, Reason: "no such column"}
		}
		out = append(out, *s.Column(i))
	}
	return out, nil
}
