package cfile

import (
	"context"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Reader reads one column file.
type Reader struct{ footer *Footer }

// Open reads and checks the header and footer of the file at [off, off+length) of src.
func Open(ctx context.Context, src Source, off, length int64, o ReaderOptions) (*Reader, error) {
	return nil, errTodo
}

// Footer returns the decoded footer, which must not be changed.
func (r *Reader) Footer() *Footer { return r.footer }

// Rows returns the number of rows.
func (r *Reader) Rows() int64 { return r.footer.Rows }

// Type returns the column type.
func (r *Reader) Type() schema.Type { return r.footer.Type }

// Nullable reports whether cells may be null.
func (r *Reader) Nullable() bool { return r.footer.Nullable }

// Encoding returns the encoding of the pages.
func (r *Reader) Encoding() schema.Encoding { return r.footer.Encoding }

// Compression returns the codec of the blocks.
func (r *Reader) Compression() schema.Compression { return r.footer.Compression }

// LoadIndex reads the whole positional index.
func (r *Reader) LoadIndex(ctx context.Context) (*PageIndex, error) { return nil, errTodo }

// LoadKeyIndex reads the whole value index.
func (r *Reader) LoadKeyIndex(ctx context.Context, idx *PageIndex) (*KeyIndex, error) {
	return nil, errTodo
}

// ReadPage reads, checks and decodes a page.
func (r *Reader) ReadPage(ctx context.Context, idx *PageIndex, page int) (*vector.Vector, error) {
	return nil, errTodo
}

// AppendRange appends rows [from, to) to dst.
func (r *Reader) AppendRange(ctx context.Context, idx *PageIndex, from, to int64, dst *vector.Vector) error {
	return errTodo
}

// SeekKey returns the first row whose encoded key is at or after key.
func (r *Reader) SeekKey(ctx context.Context, key []byte) (row int64, exact bool, err error) {
	return 0, false, errTodo
}

// Verify reads everything and checks it.
func (r *Reader) Verify(ctx context.Context) error { return errTodo }

// VerifyZones does what Verify does and checks that zones agrees with the pages.
func (r *Reader) VerifyZones(ctx context.Context, zones *ZoneMap) error { return errTodo }

// Walk calls fn for every part of the file in file order.
func (r *Reader) Walk(ctx context.Context, fn func(BlockInfo) error) error { return errTodo }

// Metadata returns the value of a metadata pair of the header or footer.
func (r *Reader) Metadata(key string) ([]byte, bool) { return nil, false }
