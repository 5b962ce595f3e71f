package encoding

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/minikudu/minikudu/internal/compress"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

const (
	pageHeader = 8
	// maxPagePlain is the most a compressed page decompresses to.
	maxPagePlain = 16 << 20
)

// PageHeader is what a block of a PAGED column says of itself.
type PageHeader struct {
	Encoding    schema.Encoding
	Compression schema.Compression
	PlainSize   int // of the block after the header, decompressed
}

// PageInfo returns the header of a block of a PAGED column of the given kind.
func PageInfo(block []byte, kind schema.Kind) (h PageHeader, err error) {
	if len(block) < pageHeader {
		return h, vfs.Corruptf("page of %d bytes is shorter than its header", len(block))
	}
	h = PageHeader{Encoding: schema.Encoding(block[0]), Compression: schema.Compression(block[1])}
	flags, size := binary.LittleEndian.Uint16(block[2:]), binary.LittleEndian.Uint32(block[4:])
	stored := uint64(len(block) - pageHeader)
	switch {
	case !pageSupports(h.Encoding, kind):
		return h, vfs.Corruptf("page of %s with encoding %s", kind, h.Encoding)
	case !compress.Supported(h.Compression):
		return h, vfs.Corruptf("page with compression %s", h.Compression)
	case flags != 0:
		return h, vfs.Corruptf("page with flags %#x", flags)
	case h.Compression == schema.CompressionNone && uint64(size) != stored:
		return h, vfs.Corruptf("page of %d bytes says it has %d", stored, size)
	case h.Compression != schema.CompressionNone && uint64(size) > maxPlain(stored, h.Compression):
		return h, vfs.Corruptf("page of %d bytes decompresses to %d, at most %d expected", stored, size, maxPlain(stored, h.Compression))
	}
	h.PlainSize = int(size)
	return h, nil
}

// maxPlain returns the most bytes that so many compressed ones can stand for, so that no
// more is allocated.
func maxPlain(stored uint64, c schema.Compression) uint64 {
	n := uint64(maxPagePlain)
	switch c {
	case schema.CompressionSnappy:
		n = 64 * stored // a copy of three bytes stands for 64 at most
	case schema.CompressionLZ4:
		n = maxLZ4Expansion * stored
	case schema.CompressionZlib:
		n = 1032 * stored
	case schema.CompressionZstd:
		n = (stored/3 + 1) * (128 << 10) // blocks of 128 KiB with a header of three bytes
	}
	return min(n, maxPagePlain)
}

// pageSupports reports whether a page of a kind may have the encoding.
func pageSupports(e schema.Encoding, k schema.Kind) bool {
	switch e {
	case schema.EncodingPlain:
		return true
	case schema.EncodingPrefix, schema.EncodingCodes, schema.EncodingText:
		return k == schema.KindBytes
	case schema.EncodingRLE:
		return k == schema.KindBool
	case schema.EncodingDelta, schema.EncodingFrame:
		return k.Width() > 0 && k.Width() <= 8
	case schema.EncodingShuffle, schema.EncodingDistinct:
		return k.Width() > 0
	case schema.EncodingDecimal:
		return k == schema.KindFloat32 || k == schema.KindFloat64
	}
	return false
}

// pageScratch is the memory of a page that is being decoded.
type pageScratch struct {
	plain []byte
	codes []uint16
	ints  []uint64
	table vector.Vector // words of a DISTINCT page
}

var pageScratches = sync.Pool{New: func() any { return new(pageScratch) }}

// put returns the memory to the pool, unless it is that of an unusual page.
func (s *pageScratch) put() {
	if cap(s.plain) <= 4<<20 && cap(s.codes) <= 1<<20 && cap(s.ints) <= 1<<19 {
		pageScratches.Put(s)
	}
}

func (s *pageScratch) words(n int) []uint64 {
	if cap(s.ints) < n {
		s.ints = make([]uint64, n)
	}
	return s.ints[:n]
}

// page decodes a block of a PAGED column.
func (d *decoder) page(dst *vector.Vector, block []byte) (Header, error) {
	h, err := PageInfo(block, d.Kind)
	if err != nil {
		return Header{}, err
	}
	d.Encoding, block = h.Encoding, block[pageHeader:]
	if h.Compression == schema.CompressionNone {
		return d.block(dst, block)
	}
	s := pageScratches.Get().(*pageScratch)
	defer s.put()
	if cap(s.plain) < h.PlainSize {
		s.plain = make([]byte, h.PlainSize)
	}
	s.plain = s.plain[:h.PlainSize]
	if err := h.plain(s.plain, block); err != nil {
		return Header{}, err
	}
	return d.block(dst, s.plain)
}

// plain fills dst, of PlainSize, from what follows the header.
func (h *PageHeader) plain(dst, block []byte) error {
	if h.Compression == schema.CompressionNone {
		copy(dst, block)
		return nil
	}
	if err := compress.Decompress(dst, block, h.Compression); err != nil {
		return vfs.Corruptf("page: %w", err)
	}
	return nil
}

// isText reports whether blocks of an encoding are mostly texts, which are compressed faster.
func isText(e schema.Encoding) bool { return e == schema.EncodingText || e == schema.EncodingPrefix }

// appendPage appends a page of the given body. With a codec, the page is stored without
// one unless that saves something, and its head is apart, so that [MovePage] can change it.
func appendPage(dst, body []byte, e schema.Encoding, c schema.Compression, nullable bool) []byte {
	at := len(dst)
	dst = append(dst, byte(e), byte(c), 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(min(uint64(len(body)), math.MaxUint32)))
	if c != schema.CompressionNone && len(body) <= maxPagePlain {
		n := 0
		if h, ok := cutHead(body, e, nullable); ok && h.size <= maxHead+len(body)/128 {
			n = h.size
		}
		out, err := compressBody(dst, body[:n], body[n:], c, isText(e))
		if err == nil && len(out)-len(dst) < len(body) {
			return out
		}
	}
	dst[at+1] = byte(schema.CompressionNone)
	return append(dst, body...)
}

// maxHead is how many bytes of a page, and a part of it, may stay uncompressed for its head.
const maxHead = 32

func compressBody(dst, head, rest []byte, c schema.Compression, text bool) ([]byte, error) {
	switch {
	case len(head) > 0:
		return compress.WithHead(dst, head, rest, c, text)
	case text:
		return compress.CompressText(dst, rest, c)
	}
	return compress.Compress(dst, rest, c)
}
