package arrow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Options configure a [Writer]. The zero value works.
type Options struct {
	// Stream writes an IPC stream instead of a file.
	Stream bool
	// Compression of the buffers: none, the default, lz4 or zstd.
	Compression schema.Compression
}

// Writer writes batches as an Arrow IPC file or stream. Close it to write its end.
type Writer struct {
	columns []schema.Column
	schema  *arrow.Schema
	dst     interface {
		Write(arrow.RecordBatch) error
		Close() error
	}
	file *os.File // that Create made
	err  error    // sticks
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
	w := &Writer{columns: columns, schema: Schema(columns)}
	opts := []ipc.Option{ipc.WithSchema(w.schema)}
	switch o.Compression {
	case schema.CompressionDefault, schema.CompressionNone:
	case schema.CompressionLZ4:
		opts = append(opts, ipc.WithLZ4())
	case schema.CompressionZstd:
		opts = append(opts, ipc.WithZstd())
	default:
		return nil, fmt.Errorf("compression %s of Arrow files: %w", o.Compression, minikudu.ErrNotSupported)
	}
	if o.Stream {
		w.dst = ipc.NewWriter(dst, opts...)
		return w, nil
	}
	fw, err := ipc.NewFileWriter(dst, opts...)
	w.dst = fw
	return w, err
}

// Write writes the rows of a batch, whose columns are the writer's, by position. The
// batch is not used after the call. An error sticks.
func (w *Writer) Write(b *vector.Batch) error {
	if w.err == nil {
		w.err = w.write(b)
	}
	return w.err
}

func (w *Writer) write(b *vector.Batch) error {
	if b.NumColumns() != len(w.columns) {
		return fmt.Errorf("%w: a batch of %d columns for a file of %d", minikudu.ErrInvalidArgument, b.NumColumns(), len(w.columns))
	}
	vectors := make([]*vector.Vector, len(w.columns))
	for i := range vectors {
		vectors[i] = b.Column(i)
	}
	rec, err := plainRecord(w.schema, vector.NewBatch(w.columns, vectors, b.Len()))
	if err != nil {
		return err
	}
	defer rec.Release()
	return w.dst.Write(rec)
}

// Close writes what is left, and syncs and closes the file that Create made. After a
// failed Write it only closes the file.
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

// Scan yields the rows that the query selects as records of one schema. A record lives
// until the next one; see the package comment. An error ends the loop after it was
// delivered.
func Scan(ctx context.Context, t *minikudu.Table, q minikudu.Query) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		var s *arrow.Schema
		for b, err := range t.Scan(ctx, q) {
			if err != nil {
				yield(nil, err)
				return
			}
			if s == nil {
				s = Schema(b.Schema())
			}
			rec, err := plainRecord(s, b)
			if err != nil {
				yield(nil, err)
				return
			}
			more := yield(rec, nil)
			rec.Release()
			if !more {
				return
			}
		}
	}
}

// Export writes the rows that the query selects to dst and returns their number.
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
