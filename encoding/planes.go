package encoding

import (
	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// appendPlanes appends a SHUFFLE block: the bits of values transposed, subBlockBytes at
// a time. It is made to be compressed as a whole.
func appendPlanes(dst, raw []byte, width int, ordinal uint32) []byte {
	dst = appendShortHeader(dst, len(raw)/width, ordinal)
	for len(raw) >= subBlockBytes {
		at := len(dst)
		dst = append(dst, raw[:subBlockBytes]...)
		kernel.Shuffle(dst[at:], raw[:subBlockBytes], width)
		raw = raw[subBlockBytes:]
	}
	if len(raw) == 0 {
		return dst
	}
	var padded, planes [subBlockBytes]byte
	n := (copy(padded[:], raw) + 8*width - 1) / (8 * width) * (8 * width)
	kernel.Shuffle(planes[:n], padded[:n], width)
	return append(dst, planes[:n]...)
}

// planes decodes a SHUFFLE block.
func (d *decoder) planes(dst *vector.Vector, block []byte) (Header, error) {
	n, ordinal, rest, err := shortHeader(block)
	if err != nil {
		return Header{}, err
	}
	w := uint64(d.Kind.Width())
	if (n+7)&^7*w != uint64(len(rest)) {
		return Header{}, vfs.Corruptf("bits of %d values of %d bytes in %d", n, w, len(rest))
	}
	if err := d.check(n, n*w); err != nil {
		return Header{}, err
	}
	out := dst.ExtendFixed(int(n))
	for len(out) >= subBlockBytes {
		kernel.Unshuffle(out[:subBlockBytes], rest[:subBlockBytes], int(w))
		out, rest = out[subBlockBytes:], rest[subBlockBytes:]
	}
	if len(out) > 0 {
		var padded [subBlockBytes]byte
		kernel.Unshuffle(padded[:len(rest)], rest, int(w))
		copy(out, padded[:])
	}
	vector.HostOrder(dst.Data(), int(w))
	return Header{ordinal, int(n)}, nil
}
