package encoding

import (
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// appendCodes appends a CODES block: words of the file's dictionary, by number.
func (w *numberWriter) appendCodes(dst []byte, codes []int64, ordinal uint32, planes bool) []byte {
	width := byte(1)
	for _, c := range codes {
		if c > 0xff {
			width = max(width, 2)
		}
		if c > 0xffff {
			width = 4
		}
	}
	dst = append(appendShortHeader(dst, len(codes), ordinal), width)
	return w.append(dst, codes, planes)
}

// wordNumbers decodes a CODES block.
func (d *decoder) wordNumbers(dst *vector.Vector, block []byte) (Header, error) {
	n, ordinal, rest, err := shortHeader(block)
	if err != nil {
		return Header{}, err
	}
	if d.dict == nil {
		return Header{}, vfs.Corruptf("block of code words without a dictionary")
	}
	if len(rest) == 0 || rest[0] != 1 && rest[0] != 2 && rest[0] != 4 {
		return Header{}, vfs.Corruptf("code words of no width")
	}
	w := int(rest[0])
	if err := d.check(n, max(n, uint64(d.room))*uint64(w)); err != nil {
		return Header{}, err
	}
	out := dst.ResetCodes(w, int(n), d.room, d.dict)
	switch w {
	case 1:
		err = decodeAll(vector.Codes[uint8](dst), rest[1:])
	case 2:
		err = decodeAll(vector.Codes[uint16](dst), rest[1:])
	default:
		err = decodeAll(vector.Codes[uint32](dst), rest[1:])
	}
	if err != nil {
		return Header{}, err
	}
	vector.HostOrder(out, w)
	err = checkCodes(out, w, d.dict.Len())
	vector.HostOrder(out, w)
	return Header{ordinal, int(n)}, err
}
