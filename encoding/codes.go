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
	w, err := d.cutCodes(rest, n)
	if err != nil {
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

// cutCodes returns the width of n codes, which the first byte says.
func (d *decoder) cutCodes(src []byte, n uint64) (width int, err error) {
	if d.dict == nil {
		return 0, vfs.Corruptf("block of code words without a dictionary")
	}
	if len(src) == 0 || src[0] != 1 && src[0] != 2 && src[0] != 4 {
		return 0, vfs.Corruptf("code words of no width")
	}
	width = int(src[0])
	return width, d.check(n, max(n, uint64(d.room))*uint64(width))
}
