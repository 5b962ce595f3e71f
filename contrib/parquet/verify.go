package parquet

import (
	"bufio"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// The library allocates what the lengths in page headers say; they are therefore
// checked before it reads a chunk.

const (
	headerBuffer   = 1 << 10  // bytes read for each page header
	alwaysAllowed  = 16 << 20 // bytes of a page, whatever its compressed size
	maxCompression = 1 << 10  // how many times larger than compressed a page may be beyond that
)

// checkPages walks the page headers of a chunk of a row group.
func checkPages(src io.ReaderAt, m *format.ColumnMetaData, rows int64) (err error) {
	defer recovered(&err)
	start, size := chunkStart(m), m.TotalCompressedSize
	buf := bufio.NewReaderSize(nil, headerBuffer)
	protocol := thrift.CompactProtocol{}
	for cells := int64(0); cells < rows; {
		section := io.NewSectionReader(src, start, size)
		buf.Reset(section)
		var h format.PageHeader
		if err := thrift.NewDecoder(protocol.NewReader(buf)).Decode(&h); err != nil {
			return fmt.Errorf("page header at %d: %w", start, endOfInput(err))
		}
		read, _ := section.Seek(0, io.SeekCurrent)
		read += int64(h.CompressedPageSize) - int64(buf.Buffered())
		if err := checkHeader(&h, size-read, rows); err != nil {
			return fmt.Errorf("page at %d: %w", start, err)
		}
		start, size, cells = start+read, size-read, cells+cellsOf(&h)
	}
	return nil
}

// checkHeader checks a page header; left is the bytes of the chunk after the page.
func checkHeader(h *format.PageHeader, left, rows int64) error {
	compressed, full := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
	words := int64(0)
	if h.DictionaryPageHeader.Valid {
		words = int64(h.DictionaryPageHeader.V.NumValues)
	}
	switch {
	case compressed < 0 || left < 0:
		return fmt.Errorf("%d bytes, more than its chunk has", compressed)
	case full < 0 || full > max(alwaysAllowed, compressed*maxCompression):
		return fmt.Errorf("%d bytes of %d compressed ones", full, compressed)
	case cellsOf(h) < 0 || cellsOf(h) > rows:
		return fmt.Errorf("%d cells in a row group of %d", cellsOf(h), rows)
	case words < 0 || words > 8*full:
		return fmt.Errorf("%d words in %d bytes", words, full)
	}
	return nil
}

// cellsOf returns the number of cells of a data page, 0 for any other.
func cellsOf(h *format.PageHeader) int64 {
	switch h.Type {
	case format.DataPage:
		return int64(h.DataPageHeader.V.NumValues)
	case format.DataPageV2:
		return int64(h.DataPageHeaderV2.V.NumValues)
	}
	return 0
}

// chunkStart returns where the first page of a chunk lies.
func chunkStart(m *format.ColumnMetaData) int64 {
	if m.DictionaryPageOffset != 0 {
		return m.DictionaryPageOffset
	}
	return m.DataPageOffset
}
