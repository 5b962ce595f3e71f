package cfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

const (
	magic   = "kuducfl2"
	magicV1 = "kuducfil"

	// fixedPart is what header and footer hold beside message and checksum.
	fixedPart = len(magic) + 4
	// tailRead is read at once from the end of a file, enough for most footers.
	tailRead = 1024
)

// ErrNoChecksums refuses a file that carries no checksums.
var ErrNoChecksums = errors.New("file has no checksums")

// Reader reads one column file. All methods may be called concurrently.
type Reader struct {
	src                Source
	base               int64 // of the file in src
	length             int64
	opts               ReaderOptions
	footer             *Footer
	header             []Metadata
	dataStart, dataEnd int64 // of the blocks

	words words
}

// Open reads and checks the header and footer of the file at [off, off+length) of src.
// It reads no block.
func Open(ctx context.Context, src Source, off, length int64, o ReaderOptions) (*Reader, error) {
	if o.MaxPageBytes <= 0 {
		o.MaxPageBytes = maxBlock
	}
	r := &Reader{src: src, base: off, length: length, opts: o}
	if off < 0 || length < 2*int64(fixedPart) || length > math.MaxInt64-off {
		return nil, r.damaged(partFooter, 0, length, fmt.Errorf("file of %d bytes", length))
	}
	if err := r.openFooter(ctx); err != nil {
		return nil, err
	}
	if err := r.openHeader(ctx); err != nil {
		return nil, err
	}
	return r, r.checkRoots()
}

// openFooter reads the footer message and sets footer and dataEnd.
func (r *Reader) openFooter(ctx context.Context) error {
	tail := make([]byte, min(tailRead, r.length))
	if err := r.readAt(ctx, tail, r.length-int64(len(tail)), partFooter); err != nil {
		return err
	}
	fixed := tail[len(tail)-fixedPart:]
	at := r.length - int64(fixedPart)
	if err := checkMagic(fixed); err != nil {
		return r.damaged(partFooter, at, int64(fixedPart), err)
	}
	size := int64(binary.LittleEndian.Uint32(fixed[len(magic):]))
	need := size + int64(fixedPart) + checksumSize
	if size > maxMessage || need > r.length-int64(fixedPart) {
		return r.damaged(partFooter, at, int64(fixedPart), fmt.Errorf("message of %d bytes in a file of %d", size, r.length))
	}
	if need > int64(len(tail)) {
		tail = make([]byte, need)
		if err := r.readAt(ctx, tail, r.length-need, partFooter); err != nil {
			return err
		}
	}
	return r.decodeFooter(tail[int64(len(tail))-need:])
}

// decodeFooter decodes b, which is the checksum slot, the message and the fixed part.
// The message is parsed first, for it says whether there is a checksum.
func (r *Reader) decodeFooter(b []byte) error {
	start := r.length - int64(len(b))
	covered := b[checksumSize:]
	f, err := parseFooter(covered[:len(covered)-fixedPart])
	if err != nil {
		return r.damaged(partFooter, start, int64(len(b)), err)
	}
	r.footer = &f.Footer
	r.dataEnd = start
	switch {
	case r.hasChecksums():
		err = r.compare(binary.LittleEndian.Uint32(b), covered)
	case !r.opts.AllowNoChecksums:
		err = ErrNoChecksums
	default:
		r.dataEnd += checksumSize
	}
	if err == nil {
		err = f.check()
	}
	return r.damaged(partFooter, start, int64(len(b)), err)
}

func (r *Reader) openHeader(ctx context.Context) error {
	fixed := make([]byte, fixedPart)
	if err := r.readAt(ctx, fixed, 0, partHeader); err != nil {
		return err
	}
	if err := checkMagic(fixed); err != nil {
		return r.damaged(partHeader, 0, int64(fixedPart), err)
	}
	size := int64(binary.LittleEndian.Uint32(fixed[len(magic):]))
	r.dataStart = size + int64(fixedPart)
	if r.hasChecksums() {
		r.dataStart += checksumSize
	}
	if size > maxMessage || r.dataStart > r.dataEnd {
		return r.damaged(partHeader, 0, int64(fixedPart), fmt.Errorf("message of %d bytes in a file of %d", size, r.length))
	}
	b := make([]byte, r.dataStart)
	if err := r.readAt(ctx, b, 0, partHeader); err != nil {
		return err
	}
	covered, err := r.verify(b)
	if err == nil {
		r.header, err = decodeHeader(covered[fixedPart : int64(fixedPart)+size])
	}
	return r.damaged(partHeader, 0, r.dataStart, err)
}

func (r *Reader) hasChecksums() bool { return r.footer.Incompatible&featureChecksum != 0 }

func checkMagic(b []byte) error {
	switch string(b[:len(magic)]) {
	case magic:
		return nil
	case magicV1:
		return fmt.Errorf("version 1 file: %w", vfs.ErrNotSupported)
	}
	return fmt.Errorf("magic %q", b[:len(magic)])
}

func (r *Reader) checkRoots() error {
	for _, p := range []BlockPtr{r.footer.Positional, r.footer.Value, r.footer.Dictionary} {
		if p.IsZero() {
			continue
		}
		if err := r.checkExtent(p, r.dataEnd); err != nil {
			return r.damaged(partFooter, r.dataEnd, r.length-r.dataEnd, err)
		}
	}
	return nil
}

// checkExtent checks that a block lies between the header and limit.
func (r *Reader) checkExtent(p BlockPtr, limit int64) error {
	least := int64(1)
	if r.hasChecksums() {
		least += checksumSize
	}
	if r.footer.Compression != schema.CompressionNone {
		least += codecHeader
	}
	size := int64(p.Size)
	if p.Offset < r.dataStart || p.Offset > limit || size < least || size > limit-p.Offset {
		return fmt.Errorf("pointer to %d bytes at %d, want within [%d, %d)", size, p.Offset, r.dataStart, limit)
	}
	return nil
}

// readBlock reads a block whose extent has been checked and returns its payload,
// which is valid until the scratch is used again.
func (r *Reader) readBlock(ctx context.Context, s *scratch, p BlockPtr, what string) ([]byte, error) {
	if int64(p.Size) > int64(r.opts.MaxPageBytes) {
		return nil, r.damaged(what, p.Offset, int64(p.Size), ErrPageTooLarge)
	}
	s.raw = sized(s.raw, int(p.Size))
	if err := r.readAt(ctx, s.raw, p.Offset, what); err != nil {
		return nil, err
	}
	payload, err := r.unframe(s, s.raw)
	return payload, r.damaged(what, p.Offset, int64(p.Size), err)
}

// readAt fills p from offset off of the file. A file that ends early is damaged.
func (r *Reader) readAt(ctx context.Context, p []byte, off int64, what string) error {
	n, err := r.src.ReadAtContext(ctx, p, r.base+off)
	switch {
	case n == len(p):
		return nil
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return r.damaged(what, off, int64(len(p)), fmt.Errorf("file ends %d bytes early", len(p)-n))
	}
	return fmt.Errorf("%s: reading %s: %w", r.opts.Path, r.section(what), err)
}

// section names a part of the file in messages.
func (r *Reader) section(what string) string {
	if r.opts.Column == "" {
		return what
	}
	return what + " of column " + r.opts.Column
}

// damaged adds the place to an error about the bytes at [off, off+length) of the
// file, and returns nil for nil. Only damage becomes a CorruptionError: what this
// version cannot read, and what exceeds a limit of the reader's, keep their own kind.
func (r *Reader) damaged(what string, off, length int64, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, vfs.ErrNotSupported) || errors.Is(err, ErrPageTooLarge) {
		return fmt.Errorf("%s: %s at offset %d: %w", r.opts.Path, r.section(what), r.base+off, err)
	}
	c := &vfs.CorruptionError{Path: r.opts.Path, Section: r.section(what), Offset: r.base + off, Length: length, Err: err}
	if sum, ok := err.(*checksumError); ok {
		c.Want, c.Got, c.Err = sum.want, sum.got, nil
	}
	if inner := (*vfs.CorruptionError)(nil); errors.As(err, &inner) && inner.Path == "" {
		c.Err = inner.Err
	}
	return c
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

// Metadata returns the value of the first metadata pair of the given key, those of the
// header coming before those of the footer. The caller must not change it.
func (r *Reader) Metadata(key string) ([]byte, bool) {
	for _, pairs := range [][]Metadata{r.header, r.footer.Metadata} {
		for i := range pairs {
			if pairs[i].Key == key {
				return pairs[i].Value, true
			}
		}
	}
	return nil, false
}
