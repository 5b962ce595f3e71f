package parquet

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// readBuffer is the bytes that are read ahead of each column.
const readBuffer = 256 << 10

// Reader reads a Parquet file as batches. Close it when done.
type Reader struct {
	// Set at open, then read-only.
	path     string
	src      *os.File
	groups   []pq.RowGroup
	meta     []format.RowGroup // of groups
	columns  []schema.Column
	decoders []decoder
	rows     int64

	group   int // of the chunks; -1 before the first
	left    int64
	chunks  []*chunk
	vectors []*vector.Vector
	failed  error // sticks
}

// Open opens the file and reads its footer.
func Open(path string) (*Reader, error) {
	src, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Reader{path: path, src: src, group: -1}
	if err := r.open(); err != nil {
		src.Close()
		return nil, err
	}
	return r, nil
}

func (r *Reader) open() error {
	info, err := r.src.Stat()
	if err != nil {
		return err
	}
	f, err := r.footer(info.Size())
	if err != nil {
		return &FileError{Path: r.path, RowGroup: -1, Err: err}
	}
	r.groups, r.meta, r.rows = f.RowGroups(), f.Metadata().RowGroups, f.NumRows()
	elements := f.Metadata().Schema[1:]
	for i := range elements {
		c, d, err := columnOf(&elements[i])
		if err != nil {
			return err
		}
		r.columns, r.decoders = append(r.columns, c), append(r.decoders, d)
		r.vectors = append(r.vectors, vector.New(c.Kind(), 0))
	}
	return checkCodecs(r.meta, r.columns)
}

// checkCodecs refuses compressions that cannot be read. LZ4_RAW is one of them: the
// library's decoder sometimes returns another page's bytes and never ends on damage.
func checkCodecs(groups []format.RowGroup, columns []schema.Column) error {
	for _, g := range groups {
		for i := range g.Columns {
			switch codec := g.Columns[i].MetaData.Codec; codec {
			case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd:
			default:
				return &UnsupportedError{Column: columns[i].Name, Type: "compressed with " + codec.String()}
			}
		}
	}
	return nil
}

// footer checks the lengths that the decoding library would believe, and reads the
// footer.
func (r *Reader) footer(size int64) (f *pq.File, err error) {
	defer recovered(&err)
	var tail [8]byte
	if size < 12 {
		return nil, fmt.Errorf("a file of %d bytes is no Parquet file", size)
	}
	if _, err := r.src.ReadAt(tail[:], size-8); err != nil {
		return nil, err
	}
	if string(tail[4:]) != "PAR1" {
		return nil, fmt.Errorf("the file ends with %q, not with PAR1: not a Parquet file, or cut short", tail[4:])
	}
	if n := binary.LittleEndian.Uint32(tail[:]); int64(n) > size-12 {
		return nil, fmt.Errorf("a footer of %d bytes in a file of %d", n, size)
	}
	f, err = pq.OpenFile(r.src, size, pq.SkipPageIndex(true), pq.SkipBloomFilters(true), pq.ReadBufferSize(readBuffer))
	if err != nil {
		return nil, err
	}
	return f, checkFooter(f, size)
}

// checkFooter checks that row groups add up and that chunks lie in the file.
func checkFooter(f *pq.File, size int64) error {
	rows := f.NumRows()
	for i, g := range f.RowGroups() {
		n := g.NumRows()
		if n < 0 || n > rows {
			return fmt.Errorf("row group %d of %d rows in a file of %d", i, n, f.NumRows())
		}
		rows -= n
		for _, c := range f.Metadata().RowGroups[i].Columns {
			m := &c.MetaData
			start := chunkStart(m)
			if start < 0 || m.TotalCompressedSize < 0 || start > size || m.TotalCompressedSize > size-start {
				return fmt.Errorf("row group %d: a column of %d bytes at %d in a file of %d", i, m.TotalCompressedSize, start, size)
			}
		}
	}
	if rows != 0 {
		return fmt.Errorf("row groups lack %d of the %d rows", rows, f.NumRows())
	}
	return nil
}

// Columns returns the columns of the file. The caller must not change them.
func (r *Reader) Columns() []schema.Column { return r.columns }

// Rows returns the number of rows of the file, from the footer.
func (r *Reader) Rows() int64 { return r.rows }

// Next returns the next batch, of at most max rows, or nil at the end of the file. The
// batch is valid until the next call; [vector.Batch.Detach] copies it. Strings are in
// dictionary form where the file has them so. After an error every call returns it.
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
	b, err := r.next(max)
	r.failed = err
	return b, err
}

func (r *Reader) next(max int) (*vector.Batch, error) {
	for r.left == 0 {
		if err := r.closeGroup(); err != nil {
			return nil, err
		}
		if r.group+1 >= len(r.groups) {
			return nil, nil
		}
		if err := r.openGroup(); err != nil {
			return nil, err
		}
	}
	n := int(min(int64(max), r.left))
	for i, c := range r.chunks {
		v, err := c.fill(r.vectors[i], n)
		if err != nil {
			return nil, &FileError{Path: r.path, RowGroup: r.group, Column: r.columns[i].Name, Err: endOfInput(err)}
		}
		r.vectors[i] = v
	}
	r.left -= int64(n)
	return vector.NewBatch(r.columns, append([]*vector.Vector(nil), r.vectors...), n), nil
}

func (r *Reader) openGroup() error {
	r.group++
	g := r.groups[r.group]
	r.left = g.NumRows()
	for i, c := range g.ColumnChunks() {
		if err := checkPages(r.src, &r.meta[r.group].Columns[i].MetaData, r.left); err != nil {
			return &FileError{Path: r.path, RowGroup: r.group, Column: r.columns[i].Name, Err: err}
		}
		r.chunks = append(r.chunks, &chunk{pages: c.Pages(), kind: r.columns[i].Kind(), optional: r.columns[i].Nullable,
			decode: r.decoders[i], maxPage: r.left})
	}
	return nil
}

func (r *Reader) closeGroup() error {
	var first error
	for _, c := range r.chunks {
		if err := c.close(); err != nil && first == nil {
			first = err
		}
	}
	r.chunks = r.chunks[:0]
	return first
}

// Close closes the file. A batch may be used on.
func (r *Reader) Close() error {
	r.failed = os.ErrClosed
	err := r.closeGroup()
	if e := r.src.Close(); err == nil {
		err = e
	}
	return err
}
