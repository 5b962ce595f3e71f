package encoding

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/vfs"
)

// Numbers are how integers are stored inside page encodings: the least of them, their
// greatest common step above it, and how many steps each is above, either packed in bits
// by blocks of numbersBlock, each above its own least, or as planes of bytes, which
// take more but which a codec can see patterns in.

// numbersBlock is how many numbers share a width.
const numbersBlock = 1024

// numberWriter appends numbers. Its memory serves one call after another.
type numberWriter struct {
	steps  []uint64 // of each number above the least
	deltas []int64
	block  [numbersBlock]uint64
}

// append appends vals.
func (w *numberWriter) append(dst []byte, vals []int64, planes bool) []byte {
	least, step := w.measure(vals)
	dst = binary.AppendUvarint(dst, step)
	dst = binary.AppendVarint(dst, least)
	if !planes {
		return w.appendBlocks(append(dst, 0))
	}
	n := max((packWidth(top(w.steps))+7)/8, 1)
	at := len(dst) + 1
	dst = slices.Grow(append(dst, byte(n)), n*len(w.steps))[:at+n*len(w.steps)]
	for k := range n {
		plane := dst[at:][:len(w.steps)]
		for i, s := range w.steps {
			plane[i] = byte(s >> (8 * k))
		}
		at += len(w.steps)
	}
	return dst
}

// measure sets steps and returns what they count from and in.
func (w *numberWriter) measure(vals []int64) (least int64, step uint64) {
	if len(vals) > 0 {
		least = kernel.Min(vals[0], vals, nil)
	}
	w.steps = slices.Grow(w.steps[:0], len(vals))[:len(vals)]
	for i, v := range vals {
		w.steps[i] = uint64(v) - uint64(least)
	}
	step = commonStep(w.steps)
	if step > 1 {
		for i := range w.steps {
			w.steps[i] /= step
		}
	}
	return least, step
}

// commonStep returns the greatest number that divides all, 1 when all are zero.
func commonStep(vals []uint64) uint64 {
	var g uint64
	for _, v := range vals {
		for a, b := v, g; ; a, b = b, a%b {
			if b == 0 {
				g = a
				break
			}
		}
		if g == 1 {
			return 1
		}
	}
	return max(g, 1)
}

func top(vals []uint64) (t uint64) {
	for _, v := range vals {
		t = max(t, v)
	}
	return t
}

func (w *numberWriter) appendBlocks(dst []byte) []byte {
	for at := 0; at < len(w.steps); at += numbersBlock {
		vals := w.steps[at:min(at+numbersBlock, len(w.steps))]
		least, most := vals[0], vals[0]
		for _, v := range vals {
			least, most = min(least, v), max(most, v)
		}
		width := packWidth(most - least)
		dst = append(binary.AppendUvarint(dst, least), byte(width))
		for i, v := range vals {
			w.block[i] = v - least
		}
		dst = appendPacked(dst, w.block[:len(vals)], width)
	}
	return dst
}

// numbersHead is what precedes the numbers.
type numbersHead struct {
	planes      int
	step, least uint64
}

func cutNumbers(src []byte) (h numbersHead, rest []byte, err error) {
	step, n := binary.Uvarint(src)
	if n <= 0 || step == 0 {
		return h, nil, vfs.Corruptf("numbers without a step")
	}
	least, m := binary.Varint(src[n:])
	if m <= 0 || n+m >= len(src) {
		return h, nil, vfs.Corruptf("numbers without a least one")
	}
	h = numbersHead{step: step, least: uint64(least), planes: int(src[n+m])}
	if h.planes > 8 {
		return h, nil, vfs.Corruptf("numbers in %d planes", h.planes)
	}
	return h, src[n+m+1:], nil
}

// decodeNumbers fills dst and returns what follows the numbers.
func decodeNumbers[T kernel.Unsigned](dst []T, src []byte) ([]byte, error) {
	h, src, err := cutNumbers(src)
	if err != nil {
		return nil, err
	}
	if h.planes > 0 {
		return decodePlanes(dst, src, h)
	}
	for len(dst) > 0 {
		n := min(len(dst), numbersBlock)
		if src, err = decodePacked(dst[:n], src, h); err != nil {
			return nil, err
		}
		dst = dst[n:]
	}
	return src, nil
}

// decodePacked fills dst from one packed block.
func decodePacked[T kernel.Unsigned](dst []T, src []byte, h numbersHead) ([]byte, error) {
	offset, width, src, err := cutBlock(src)
	if err != nil {
		return nil, err
	}
	size := packedSize(len(dst), width)
	if size > len(src) {
		return nil, vfs.Corruptf("%d numbers of %d bits in %d bytes", len(dst), width, len(src))
	}
	h.scale(offset)
	kernel.Unpack(dst, src, width, T(h.step), T(h.least))
	return src[size:], nil
}

// cutBlock returns what a packed block says of itself and what follows.
func cutBlock(src []byte) (offset uint64, width int, rest []byte, err error) {
	offset, n := binary.Uvarint(src)
	if n <= 0 || n >= len(src) {
		return 0, 0, nil, vfs.Corruptf("block of numbers without a width")
	}
	width = int(src[n])
	if width > 56 && width != 64 {
		return 0, 0, nil, vfs.Corruptf("numbers of %d bits", width)
	}
	return offset, width, src[n+1:], nil
}

// scale moves the least by so many steps.
func (h *numbersHead) scale(offset uint64) { h.least += offset * h.step }

func decodePlanes[T kernel.Unsigned](dst []T, src []byte, h numbersHead) ([]byte, error) {
	n := len(dst)
	if h.planes*n > len(src) {
		return nil, vfs.Corruptf("%d planes of %d numbers in %d bytes", h.planes, n, len(src))
	}
	for i, b := range src[:n] {
		dst[i] = T(b)
	}
	for k := 1; k < min(h.planes, int(unsafe.Sizeof(T(0)))); k++ {
		for i, b := range src[k*n : (k+1)*n] {
			dst[i] |= T(b) << (8 * k)
		}
	}
	kernel.Rise(dst, T(h.step), T(h.least))
	return src[h.planes*n:], nil
}
