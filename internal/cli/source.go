package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/contrib/arrow"
	"github.com/minikudu/minikudu/contrib/parquet"
	"github.com/minikudu/minikudu/internal/cli/csvio"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// source is a file that rows are imported from. It is used by one goroutine, except
// for progress.
type source interface {
	// infer returns the file's columns for a new table, all nullable.
	infer(ctx context.Context) ([]schema.Column, error)
	// names returns the names of the file's columns.
	names() []string
	// bind says as which columns of the table the file's are read, by name, before the
	// first next. key names the columns that tell a rejected row apart.
	bind(cols []schema.Column, key []string) error
	// next returns at most max rows, nil at the end.
	next(ctx context.Context, max int) (*chunk, error)
	// progress returns how much has been read and how much there is, in a unit of its own.
	progress() (done, total int64)
	close() error
}

// chunk is a run of rows of a file, valid until the source's next step.
type chunk struct {
	columns  []*vector.Vector // in the order of the bound columns
	rows     []int64          // number in the file of each row, from 1
	rejected []rejectedRow    // rows that did not fit
}

// rejectedRow says which row of a file was left out, and why.
type rejectedRow struct {
	row    int64
	at     int // in the batch, -1 when it was left out before: then key is known
	key    string
	reason string
}

// openSource opens a file by its extension.
func openSource(path string) (source, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".csv":
		return openCSV(path)
	case ".parquet", ".pq":
		r, err := parquet.Open(path)
		if err != nil {
			return nil, fileError(path, err)
		}
		return &columnSource{path: path, file: r}, nil
	case ".arrow", ".feather", ".ipc":
		r, err := arrow.OpenFile(path)
		if err != nil {
			return nil, fileError(path, err)
		}
		return &columnSource{path: path, file: r}, nil
	default:
		return nil, usage("%s: files of the extension %q cannot be imported; name one that ends in .csv, .parquet or .arrow", path, ext)
	}
}

// fileError marks a file that cannot be read: not wrong usage, whatever is wrong in it.
func fileError(path string, err error) error {
	if err == nil || strings.Contains(err.Error(), path) {
		return failed(err)
	}
	return failed(fmt.Errorf("%s: %w", path, err))
}

// csvSource reads CSV.
type csvSource struct {
	path   string
	file   *os.File
	size   int64
	read   atomic.Int64
	reader *csvio.Reader
	chunk  chunk
}

func openCSV(path string) (source, error) {
	s := &csvSource{path: path}
	var err error
	if s.file, err = os.Open(path); err != nil {
		return nil, failed(err)
	}
	if info, err := s.file.Stat(); err == nil {
		s.size = info.Size()
	}
	if s.reader, err = csvio.NewReader(s); err != nil {
		_ = s.file.Close()
		return nil, fileError(path, err)
	}
	return s, nil
}

// Read counts what is read.
func (s *csvSource) Read(p []byte) (int, error) {
	n, err := s.file.Read(p)
	s.read.Add(int64(n))
	return n, err
}

func (s *csvSource) infer(ctx context.Context) ([]schema.Column, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, failed(err)
	}
	defer func() { _ = f.Close() }()
	cols, _, err := csvio.Infer(&contextReader{ctx, f})
	return cols, fileError(s.path, err)
}

// contextReader ends when its context does.
type contextReader struct {
	ctx context.Context
	src io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.src.Read(p)
}

func (s *csvSource) names() []string { return s.reader.Header() }

func (s *csvSource) bind(cols []schema.Column, key []string) error {
	s.reader.Report(key)
	return s.reader.Bind(cols)
}

func (s *csvSource) next(ctx context.Context, max int) (*chunk, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := s.reader.Next(max)
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fileError(s.path, err)
	}
	s.chunk = chunk{columns: b.Columns, rows: b.Rows}
	for _, r := range b.Rejected {
		s.chunk.rejected = append(s.chunk.rejected, rejectedRow{r.Row, -1, strings.Join(r.Key, ", "), reason(r.Err)})
	}
	return &s.chunk, nil
}

func (s *csvSource) progress() (done, total int64) { return s.read.Load(), s.size }

func (s *csvSource) close() error { return s.file.Close() }

// columnFile is a file of columns: Parquet, Arrow.
type columnFile interface {
	Columns() []schema.Column
	Rows() int64 // -1 when it is not known
	Next(ctx context.Context, max int) (*minikudu.Batch, error)
	Close() error
}

// columnSource reads a file of columns.
type columnSource struct {
	path  string
	file  columnFile
	cols  []schema.Column // of the table
	from  []schema.Column // of the file, the same
	key   []int           // of those, the ones that tell rows apart
	row   atomic.Int64
	chunk chunk
}

func (s *columnSource) infer(context.Context) ([]schema.Column, error) {
	cols := append([]schema.Column(nil), s.file.Columns()...)
	for i := range cols {
		cols[i].Nullable = true
	}
	return cols, nil
}

func (s *columnSource) names() []string { return columnNames(s.file.Columns()) }

func (s *columnSource) bind(cols []schema.Column, key []string) error {
	file := s.file.Columns()
	s.cols, s.from, s.key = cols, nil, nil
	for i := range cols {
		k := findColumn(file, cols[i].Name)
		if k < 0 {
			return noColumn(cols[i].Name, s.names())
		}
		s.from = append(s.from, file[k])
	}
	for _, name := range key {
		if i := findColumn(cols, name); i >= 0 {
			s.key = append(s.key, i)
		}
	}
	return nil
}

func (s *columnSource) next(ctx context.Context, max int) (*chunk, error) {
	b, err := s.file.Next(ctx, max)
	if err != nil || b == nil {
		return nil, fileError(s.path, err)
	}
	first := s.row.Load() + 1
	s.row.Add(int64(b.Len()))
	given := make([]*vector.Vector, len(s.cols))
	for i := range s.from {
		if given[i] = b.ColumnByName(s.from[i].Name); given[i] == nil {
			return nil, fileError(s.path, fmt.Errorf("a batch lacks the column %q", s.from[i].Name))
		}
	}
	return s.convert(given, first, b.Len())
}

// convert turns the columns of the file into those of the table.
func (s *columnSource) convert(given []*vector.Vector, first int64, n int) (*chunk, error) {
	bad := map[int32]error{}
	c := &s.chunk
	*c = chunk{columns: make([]*vector.Vector, len(given)), rows: c.rows[:0]}
	for i, v := range given {
		out, err := convertColumn(&s.from[i], &s.cols[i], v, bad)
		if err != nil {
			return nil, err
		}
		c.columns[i] = out
	}
	good := make([]int32, 0, n)
	for row := range int32(n) {
		if err := bad[row]; err != nil {
			key := formatKey(s.from, given, s.key, int(row))
			c.rejected = append(c.rejected, rejectedRow{first + int64(row), -1, key, reason(err)})
			continue
		}
		good = append(good, row)
		c.rows = append(c.rows, first+int64(row))
	}
	if len(bad) == 0 {
		return c, nil
	}
	for i, v := range c.columns {
		c.columns[i] = vector.New(v.Kind(), len(good))
		if err := c.columns[i].AppendRows(v, good); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (s *columnSource) progress() (done, total int64) { return s.row.Load(), s.file.Rows() }

func (s *columnSource) close() error { return s.file.Close() }

// formatKey returns the cells of a row that tell it apart.
func formatKey(cols []schema.Column, vectors []*vector.Vector, key []int, row int) string {
	var cells []string
	for _, i := range key {
		cells = append(cells, shorten(tableCell(&cols[i], vectors[i].Value(row))))
	}
	return strings.Join(cells, ", ")
}

// reason says why a row was left out, without the number it had in its batch.
func reason(err error) string {
	var v *schema.ValueError
	if errors.As(err, &v) {
		plain := *v
		plain.Row = -1
		return plain.Error()
	}
	return err.Error()
}
