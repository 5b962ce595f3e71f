package cfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/minikudu/minikudu/internal/compress"
	"github.com/minikudu/minikudu/schema"
)

const (
	checksumSize = 4
	codecHeader  = 4 // uncompressed size, before a block of a file with a codec

	// maxCompressed is the largest payload of a file with a codec.
	maxCompressed = 16 << 20
	// maxBlock is the largest block the writer makes, and what the reader accepts
	// unless told otherwise.
	maxBlock = 256 << 20
)

// ErrPageTooLarge is returned when a page exceeds ReaderOptions.MaxPageBytes. It says
// nothing about the page being damaged.
var ErrPageTooLarge = errors.New("page exceeds the size limit")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// blockWriter frames payloads as blocks, back to back.
type blockWriter struct {
	dst       io.Writer
	off       int64
	codec     schema.Compression
	checksums bool
	buf       []byte
}

// write compresses and stores one block. It may overwrite the spare capacity of payload.
func (w *blockWriter) write(payload []byte) (BlockPtr, error) {
	b, err := w.frame(payload)
	if err != nil {
		return BlockPtr{}, err
	}
	if w.checksums {
		b = binary.LittleEndian.AppendUint32(b, checksum(b))
	}
	p := BlockPtr{Offset: w.off, Size: uint32(len(b))}
	return p, w.raw(b)
}

// raw writes bytes as they are.
func (w *blockWriter) raw(b []byte) error {
	n, err := w.dst.Write(b)
	w.off += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// frame returns the stored form of a payload without its checksum: the payload itself,
// or w.buf.
func (w *blockWriter) frame(payload []byte) (_ []byte, err error) {
	if w.codec == schema.CompressionNone {
		if len(payload) > maxBlock-checksumSize {
			return nil, tooLarge(len(payload), maxBlock-checksumSize)
		}
		return payload, nil
	}
	if len(payload) > maxCompressed {
		return nil, tooLarge(len(payload), maxCompressed)
	}
	w.buf = binary.LittleEndian.AppendUint32(w.buf[:0], uint32(len(payload)))
	if w.buf, err = compress.Compress(w.buf, payload, w.codec); err != nil {
		return nil, fmt.Errorf("compressing %d bytes with %s: %w", len(payload), w.codec, err)
	}
	// A tenth saved is not worth the decoding.
	if size := len(w.buf) - codecHeader; size*10 > len(payload)*9 {
		w.buf = append(w.buf[:codecHeader], payload...)
	}
	return w.buf, nil
}

func tooLarge(n, limit int) error {
	return fmt.Errorf("block of %d bytes, at most %d with this codec: %w", n, limit, schema.ErrInvalidArgument)
}

// scratch holds the buffers of one block being read. What is decoded from a block
// never shares its memory.
type scratch struct {
	raw, plain []byte
	stored     bool // the last block was not compressed
}

// maxPooled bounds the buffers that stay in the pool.
const maxPooled = 4 << 20

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func getScratch() *scratch { return scratches.Get().(*scratch) }

func (s *scratch) put() {
	if cap(s.raw) <= maxPooled && cap(s.plain) <= maxPooled {
		scratches.Put(s)
	}
}

// sized returns b with length n, its content undefined.
func sized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// checksumError says that bytes do not match their checksum.
type checksumError struct{ want, got uint32 }

// Error returns the message.
func (e *checksumError) Error() string {
	return fmt.Sprintf("checksum %08x, want %08x", e.got, e.want)
}

// verify splits the trailing checksum off b, checking it.
func (r *Reader) verify(b []byte) ([]byte, error) {
	if !r.hasChecksums() {
		return b, nil
	}
	n := len(b) - checksumSize
	want := binary.LittleEndian.Uint32(b[n:])
	return b[:n], r.compare(want, b[:n])
}

func (r *Reader) compare(want uint32, b []byte) error {
	if r.opts.skipChecksums {
		return nil
	}
	if got := checksum(b); got != want {
		return &checksumError{want: want, got: got}
	}
	return nil
}

// unframe returns the payload of a stored block.
func (r *Reader) unframe(s *scratch, b []byte) ([]byte, error) {
	b, err := r.verify(b)
	s.stored = true
	if err != nil || r.footer.Compression == schema.CompressionNone {
		return b, err
	}
	size := binary.LittleEndian.Uint32(b)
	b = b[codecHeader:]
	switch {
	case uint64(size) == uint64(len(b)):
		return b, nil
	case size > maxCompressed:
		return nil, fmt.Errorf("uncompressed size %d, at most %d", size, maxCompressed)
	case uint64(size) < uint64(len(b)):
		return nil, fmt.Errorf("%d compressed bytes for %d", len(b), size)
	}
	s.stored = false
	s.plain = sized(s.plain, int(size))
	return s.plain, compress.Decompress(s.plain, b, r.footer.Compression)
}
