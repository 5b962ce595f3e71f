package cfile

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/schema"
)

// MetadataPages is the key of the footer's count of pages by encoding, in files whose
// pages have their own.
const MetadataPages = "minikudu.pages"

// PageEncoding says how many pages of a file have an encoding and a codec.
type PageEncoding struct {
	Encoding    schema.Encoding
	Compression schema.Compression
	Pages       int64
}

// AddPageEncodings adds counts to those in dst, which is ordered by encoding and codec.
func AddPageEncodings(dst []PageEncoding, counts ...PageEncoding) []PageEncoding {
	for _, c := range counts {
		i, found := slices.BinarySearchFunc(dst, c, func(a, b PageEncoding) int {
			return cmp.Or(cmp.Compare(a.Encoding, b.Encoding), cmp.Compare(a.Compression, b.Compression))
		})
		if found {
			dst[i].Pages += c.Pages
		} else {
			dst = slices.Insert(dst, i, c)
		}
	}
	return dst
}

// countPage counts the page in the payload of a file whose pages have their own encoding.
func (w *Writer) countPage(payload []byte) error {
	if w.o.Encoding != schema.EncodingPaged {
		return nil
	}
	h, err := encoding.PageInfo(payload, w.o.Type.Kind())
	w.counts = AddPageEncodings(w.counts, PageEncoding{h.Encoding, h.Compression, 1})
	return err
}

func appendPageEncodings(dst []byte, counts []PageEncoding) []byte {
	for _, c := range counts {
		dst = append(dst, byte(c.Encoding), byte(c.Compression))
		dst = binary.AppendUvarint(dst, uint64(c.Pages))
	}
	return dst
}

// PageEncodings returns how many pages have which encoding and codec: those of the file for
// all of its pages, or what the writer of a file whose pages have their own has counted.
func (r *Reader) PageEncodings(idx *PageIndex) ([]PageEncoding, error) {
	if r.footer.Encoding != schema.EncodingPaged {
		return []PageEncoding{{r.footer.Encoding, r.footer.Compression, int64(idx.Pages())}}, nil
	}
	b, _ := r.Metadata(MetadataPages)
	var out []PageEncoding
	for len(b) > 0 {
		if len(b) < 3 {
			return nil, r.badCounts(b)
		}
		n, k := binary.Uvarint(b[2:])
		if k <= 0 || n > uint64(r.footer.Rows) {
			return nil, r.badCounts(b)
		}
		out = append(out, PageEncoding{schema.Encoding(b[0]), schema.Compression(b[1]), int64(n)})
		b = b[2+k:]
	}
	return out, nil
}

func (r *Reader) badCounts(b []byte) error {
	return r.damaged(partFooter, r.dataEnd, r.length-r.dataEnd, fmt.Errorf("count of pages by encoding ends with %x", b))
}
