package cfile

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// MetadataTarget is the key of the footer pair that holds the target size of pages, in files
// whose pages have their own encodings, when it is not the default.
const MetadataTarget = "minikudu.page_target"

// CopyPage appends the rows of a page of another file, with the zone that file has of it, as
// they are encoded there. The page's checksum is verified, nothing is decoded. It reports
// false, and the rows are to be appended otherwise, when this file's pages are not encoded like
// those of the other one, or the page cannot be moved.
func (w *Writer) CopyPage(ctx context.Context, r *Reader, idx *PageIndex, page int, zone vector.Zone) (bool, error) {
	from, to := idx.PageRows(page)
	if w.err != nil || w.finished || !w.pagesLike(r) || to-from > int64(pageRows(w.o.Type.Kind(), w.o.BlockSize)) || to-from > maxRows-w.rows() {
		return false, w.failure()
	}
	s := getScratch()
	defer s.put()
	payload, err := r.readBlock(ctx, s, idx.ptr(page), partData)
	if err != nil {
		return false, err
	}
	moved, h, ok, err := encoding.MovePage(s.plain[:0], payload, r.format(), uint32(w.rows()))
	s.plain = moved
	if err != nil {
		p := idx.ptr(page)
		return false, r.damaged(partData, p.Offset, int64(p.Size), err)
	}
	if !ok {
		return false, nil
	}
	if err := r.checkPlace(h, idx, page); err != nil {
		return false, err
	}
	if !w.o.NoZones && zone.Rows != to-from {
		return false, r.damaged(partZones, 0, 0, fmt.Errorf("zone of %d rows of page %d, want %d", zone.Rows, page, to-from))
	}
	w.err = w.store(moved, zone, int(to-from))
	return w.err == nil, w.failure()
}

// store ends the open page and writes another one.
func (w *Writer) store(payload []byte, zone vector.Zone, rows int) error {
	if err := w.start(); err != nil {
		return err
	}
	if err := w.closePage(); err != nil {
		return err
	}
	w.page.zone = zone
	return w.writePage(payload, rows)
}

// pagesLike reports whether pages of a file are like those of this one.
func (w *Writer) pagesLike(r *Reader) bool {
	f := r.footer
	return w.o.Encoding == schema.EncodingPaged && f.Encoding == schema.EncodingPaged && f.Compression == schema.CompressionNone &&
		f.Type == w.o.Type && f.Nullable == w.o.Nullable && w.byKey == nil && r.hasChecksums() && r.pageTarget() == w.o.BlockSize
}

// appendTarget adds the target size of pages to the footer, unless it is the default.
func (w *Writer) appendTarget() {
	if w.o.Encoding == schema.EncodingPaged && w.o.BlockSize != defaultBlockSize {
		w.footer.Metadata = append(w.footer.Metadata, Metadata{MetadataTarget, binary.AppendUvarint(nil, uint64(w.o.BlockSize))})
	}
}

// pageTarget returns the target size of pages; 0 when it cannot be read.
func (r *Reader) pageTarget() int {
	b, ok := r.Metadata(MetadataTarget)
	if !ok {
		return defaultBlockSize
	}
	n, k := binary.Uvarint(b)
	if k <= 0 || n > maxCodecBlock {
		return 0
	}
	return int(n)
}
