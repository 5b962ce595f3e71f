package arrow

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Reader reads an Arrow IPC file or stream as batches. Close it when done.
type Reader struct {
	// Set at open, then read-only.
	path       string
	src        io.Closer // nil for a stream that was handed in
	columns    []schema.Column
	converters []converter
	source     source

	read   int               // record batches read
	rec    arrow.RecordBatch // of rest
	rest   *vector.Batch     // rows not yet delivered, from at on
	at     int
	failed error // sticks
}

// source yields record batches, io.EOF at the end; the caller releases them.
type source interface {
	next() (arrow.RecordBatch, error)
	schema() *arrow.Schema
	close() error
}

// OpenFile opens an IPC file, or a file that holds an IPC stream.
func OpenFile(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Reader{path: path, src: f}
	if err := r.open(f); err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// NewReader returns a reader of an IPC stream, which it does not close.
func NewReader(src io.Reader) (*Reader, error) {
	r := &Reader{path: "stream"}
	return r, r.start(func() (source, error) { return newStream(src, 0) })
}

func (r *Reader) open(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	magic := make([]byte, len(ipc.Magic))
	if n, err := f.ReadAt(magic, 0); n < len(magic) {
		return &FileError{Path: r.path, Batch: -1, Err: fmt.Errorf("a file of %d bytes is no Arrow file: %w", n, err)}
	}
	return r.start(func() (source, error) {
		if string(magic) == string(ipc.Magic) {
			return newFile(f, info.Size())
		}
		if err := checkStream(f, info.Size()); err != nil {
			return nil, err
		}
		return newStream(f, info.Size())
	})
}

func (r *Reader) start(open func() (source, error)) error {
	err := error(nil)
	if r.source, err = open(); err != nil {
		return &FileError{Path: r.path, Batch: -1, Err: err}
	}
	r.columns, r.converters, err = columnsOf(r.source.schema())
	return err
}

// limits keeps the library from believing lengths beyond the size of the input, where
// that is known.
func limits(size int64) []ipc.Option {
	opts := []ipc.Option{ipc.WithAllocator(boundedAllocator{memory.NewGoAllocator()})}
	if size != 0 {
		opts = append(opts, ipc.WithBodySizeLimit(size), ipc.WithMetadataSizeLimit(size))
	}
	return opts
}

type file struct {
	r     *ipc.FileReader
	batch int
}

func newFile(f *os.File, size int64) (_ source, err error) {
	defer recovered(&err)
	if err := checkFile(f, size); err != nil {
		return nil, err
	}
	r, err := ipc.NewFileReader(f, limits(size)...)
	if err != nil {
		return nil, err
	}
	return &file{r: r}, nil
}

func (f *file) schema() *arrow.Schema { return f.r.Schema() }
func (f *file) close() error          { return f.r.Close() }

func (f *file) next() (_ arrow.RecordBatch, err error) {
	defer recovered(&err)
	if f.batch >= f.r.NumRecords() {
		return nil, io.EOF
	}
	f.batch++
	return f.r.RecordBatchAt(f.batch - 1)
}

type stream struct{ r *ipc.Reader }

func newStream(src io.Reader, size int64) (_ source, err error) {
	defer recovered(&err)
	r, err := ipc.NewReaderFromMessageReader(ipc.NewMessageReader(src, limits(size)...), limits(size)...)
	if err != nil {
		return nil, err
	}
	return &stream{r}, nil
}

func (s *stream) schema() *arrow.Schema { return s.r.Schema() }

func (s *stream) close() error {
	s.r.Release()
	return nil
}

func (s *stream) next() (_ arrow.RecordBatch, err error) {
	defer recovered(&err)
	rec, err := s.r.Read()
	if err != nil {
		return nil, err
	}
	rec.Retain()
	return rec, nil
}

// Columns returns the columns of the file. The caller must not change them.
func (r *Reader) Columns() []schema.Column { return r.columns }

// Rows returns -1: the format does not say how many rows there are.
func (r *Reader) Rows() int64 { return -1 }

// Next returns the next batch, of at most max rows, or nil at the end. The batch is valid
// until the next call; [vector.Batch.Detach] copies it. After an error every call
// returns it.
func (r *Reader) Next(ctx context.Context, max int) (*vector.Batch, error) {
	if r.failed != nil {
		return nil, r.failed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if max <= 0 {
		return nil, fmt.Errorf("batches of %d rows", max)
	}
	for r.rest == nil || r.at == r.rest.Len() {
		if err := r.fetch(); err == io.EOF {
			return nil, nil
		} else if err != nil {
			r.failed = &FileError{Path: r.path, Batch: r.read, Err: err}
			return nil, r.failed
		}
		r.read++
	}
	from := r.at
	r.at = min(from+max, r.rest.Len())
	return r.part(from, r.at), nil
}

// fetch reads and converts the next record batch.
func (r *Reader) fetch() error {
	r.release()
	rec, err := r.source.next()
	if err != nil {
		return err
	}
	r.rec, r.at = rec, 0
	r.rest, err = fromRecord(rec, r.columns, r.converters)
	return err
}

// part returns rows [from, to) of the record batch.
func (r *Reader) part(from, to int) *vector.Batch {
	if from == 0 && to == r.rest.Len() {
		return r.rest
	}
	vectors := make([]*vector.Vector, len(r.columns))
	for i := range vectors {
		vectors[i] = r.rest.Column(i).Slice(from, to)
	}
	return vector.NewBatch(r.columns, vectors, to-from)
}

func (r *Reader) release() {
	if r.rec != nil {
		r.rec.Release()
	}
	r.rec, r.rest = nil, nil
}

// Close closes the reader, and the file that OpenFile opened.
func (r *Reader) Close() error {
	if r.failed == os.ErrClosed {
		return nil
	}
	r.failed = os.ErrClosed
	r.release()
	err := r.source.close()
	if r.src != nil {
		if e := r.src.Close(); err == nil {
			err = e
		}
	}
	return err
}
