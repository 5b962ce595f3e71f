package encoding

import (
	"encoding/binary"
	"math"

	"github.com/minikudu/minikudu/internal/compress"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

// pageHead is what the body of a page begins with: its nulls, its count and its ordinal. The
// rest of the body is the same wherever the page is.
type pageHead struct {
	Header
	size  int // bytes of all
	nulls int // bytes of them that precede the values
	count int // values
}

// cutHead returns the head of a body that may be cut after it; false when it is not there.
func cutHead(body []byte, e schema.Encoding, nullable bool) (h pageHead, ok bool) {
	if nullable {
		rows, n := uvarint32(body)
		size, m := uvarint32(body[n:])
		if n == 0 || m == 0 || size > uint64(len(body)-n-m) {
			return h, false
		}
		h.Rows, h.nulls = int(rows), n+m+int(size)
	}
	values := body[h.nulls:]
	if e == schema.EncodingPrefix {
		g, n := readGroup(values)
		if n == 0 || g[0] > math.MaxInt32 || g[2] == 0 || g[3] != 0 || (max(g[0], 1)-1)/g[2] > 0 {
			return h, false // or with restarts, whose places count the head
		}
		h.count, h.Ordinal, h.size = int(g[0]), g[1], h.nulls+n
	} else {
		if len(values) < 8 || binary.LittleEndian.Uint32(values) > math.MaxInt32 {
			return h, false
		}
		h.count, h.Ordinal, h.size = int(binary.LittleEndian.Uint32(values)), binary.LittleEndian.Uint32(values[4:]), h.nulls+8
	}
	if !nullable {
		h.Rows = h.count
	}
	return h, true
}

// at appends the head of the same page at another ordinal. head is the present one.
func (h *pageHead) at(dst, head []byte, e schema.Encoding, ordinal uint32) []byte {
	dst = append(dst, head[:h.nulls]...)
	if e != schema.EncodingPrefix {
		return appendShortHeader(dst, h.count, ordinal)
	}
	g, _ := readGroup(head[h.nulls:])
	g[1] = ordinal
	return appendGroup(dst, g)
}

// MovePage appends a block of a PAGED column to dst as it is when its first row has another
// ordinal, and returns what it says of itself. It reports false for a block that must be
// decoded and encoded for that: its ordinal is compressed together with what follows, or its
// values are numbers of words of the file's dictionary. Nothing but its head is looked at.
func MovePage(dst, block []byte, f Format, ordinal uint32) (_ []byte, h Header, ok bool, err error) {
	info, err := PageInfo(block, f.Kind)
	if err != nil || info.Encoding == schema.EncodingCodes {
		return dst, h, false, err
	}
	stored := block[pageHeader:]
	visible := stored
	if info.Compression != schema.CompressionNone {
		visible = compress.Verbatim(stored, info.Compression)
	}
	head, ok := cutHead(visible, info.Encoding, f.Nullable)
	if !ok {
		return dst, h, false, nil
	}
	if head.size > info.PlainSize {
		return dst, h, false, vfs.Corruptf("page of %d bytes says it has %d", head.size, info.PlainSize)
	}
	moved := head.at(nil, visible, info.Encoding, ordinal)
	at := len(dst)
	dst = append(dst, block[:4]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(info.PlainSize-head.size+len(moved)))
	if info.Compression == schema.CompressionNone {
		dst = append(append(dst, moved...), stored[head.size:]...)
	} else if dst, ok = compress.ReplaceHead(dst, stored, info.Compression, head.size, moved); !ok {
		return dst[:at], h, false, nil
	}
	return dst, head.Header, true, nil
}
