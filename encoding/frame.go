package encoding

import (
	"encoding/binary"
	"slices"

	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// appendFrame appends a FRAME block: numbers above the least of them.
func (w *numberWriter) appendFrame(dst []byte, vals []int64, ordinal uint32, planes bool) []byte {
	return w.append(appendShortHeader(dst, len(vals), ordinal), vals, planes)
}

// appendDelta appends a DELTA block: the differences of neighbours.
func (w *numberWriter) appendDelta(dst []byte, vals []int64, ordinal uint32, planes bool) []byte {
	return w.appendDifferences(appendShortHeader(dst, len(vals), ordinal), vals, planes)
}

// appendDifferences appends a base and the differences of neighbours. The first number
// counts from the base, which makes its difference the one of the second.
func (w *numberWriter) appendDifferences(dst []byte, vals []int64, planes bool) []byte {
	base := int64(0)
	w.deltas = slices.Grow(w.deltas[:0], len(vals))[:len(vals)]
	if len(vals) > 0 {
		base = vals[0]
	}
	if len(vals) > 1 {
		base = vals[0] - (vals[1] - vals[0])
	}
	prev := base
	for i, v := range vals {
		w.deltas[i] = v - prev
		prev = v
	}
	return w.append(binary.AppendVarint(dst, base), w.deltas, planes)
}

// frame decodes a FRAME or DELTA block.
func (d *decoder) frame(dst *vector.Vector, block []byte) (Header, error) {
	n, ordinal, rest, err := shortHeader(block)
	if err != nil {
		return Header{}, err
	}
	w := d.Kind.Width()
	if err := d.check(n, n*uint64(w)); err != nil {
		return Header{}, err
	}
	dst.ExtendFixed(int(n))
	switch w {
	case 1:
		err = frameInto(vector.Values[uint8](dst), rest, d.Encoding)
	case 2:
		err = frameInto(vector.Values[uint16](dst), rest, d.Encoding)
	case 4:
		err = frameInto(vector.Values[uint32](dst), rest, d.Encoding)
	default:
		err = frameInto(vector.Values[uint64](dst), rest, d.Encoding)
	}
	return Header{ordinal, int(n)}, err
}

func frameInto[T kernel.Unsigned](dst []T, src []byte, e schema.Encoding) error {
	if e == schema.EncodingFrame {
		return decodeAll(dst, src)
	}
	rest, err := decodeDifferences(dst, src)
	return atEnd(rest, err)
}

// decodeDifferences fills dst and returns what follows.
func decodeDifferences[T kernel.Unsigned](dst []T, src []byte) ([]byte, error) {
	base, k := binary.Varint(src)
	if k <= 0 {
		return nil, vfs.Corruptf("differences without a base")
	}
	rest, err := decodeNumbers(dst, src[k:])
	kernel.PrefixSum(dst, T(base))
	return rest, err
}

// decodeAll fills dst from numbers that end where src does.
func decodeAll[T kernel.Unsigned](dst []T, src []byte) error {
	rest, err := decodeNumbers(dst, src)
	return atEnd(rest, err)
}

// atEnd reports bytes that are left over.
func atEnd(rest []byte, err error) error {
	if err == nil && len(rest) > 0 {
		err = vfs.Corruptf("%d bytes after the numbers", len(rest))
	}
	return err
}

// appendInts appends little-endian values of the given width as integers, signed.
func appendInts(dst []int64, raw []byte, width int) []int64 {
	dst = slices.Grow(dst, len(raw)/width)
	le := binary.LittleEndian
	switch width {
	case 1:
		for _, b := range raw {
			dst = append(dst, int64(int8(b)))
		}
	case 2:
		for ; len(raw) >= 2; raw = raw[2:] {
			dst = append(dst, int64(int16(le.Uint16(raw))))
		}
	case 4:
		for ; len(raw) >= 4; raw = raw[4:] {
			dst = append(dst, int64(int32(le.Uint32(raw))))
		}
	default:
		for ; len(raw) >= 8; raw = raw[8:] {
			dst = append(dst, int64(le.Uint64(raw)))
		}
	}
	return dst
}
