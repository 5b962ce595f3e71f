package encoding

import (
	"encoding/binary"
	"unsafe"

	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// appendText appends a TEXT block: lengths, then the bytes.
func (b *bytesBuilder) appendText(dst []byte, n *numberWriter, from, to int, planes bool) []byte {
	start, end := b.start(from), b.start(to)
	b.lengths = b.lengths[:0]
	for i := from; i < to; i++ {
		b.lengths = append(b.lengths, int64(b.start(i+1)-b.start(i)))
	}
	dst = appendShortHeader(dst, to-from, b.ordinal+uint32(from))
	dst = binary.AppendUvarint(dst, uint64(end-start))
	dst = n.append(dst, b.lengths, planes)
	return append(dst, b.data[start:end]...)
}

// start returns where value i, or the end, lies in data.
func (b *bytesBuilder) start(i int) int {
	if i == len(b.starts) {
		return len(b.data)
	}
	return int(b.starts[i]) - bytesHeader
}

// truncate drops the values from n on.
func (b *bytesBuilder) truncate(n int) {
	data := b.data[:b.start(n)]
	kept := b.starts[:n]
	b.reset(b.ordinal)
	for i, s := range kept {
		end := len(data)
		if i+1 < n {
			end = int(kept[i+1]) - bytesHeader
		}
		b.note(s, end-int(s)+bytesHeader)
	}
	b.data = data
}

// text decodes a TEXT block.
func (d *decoder) text(dst *vector.Vector, block []byte) (Header, error) {
	n, ordinal, rest, err := shortHeader(block)
	if err != nil {
		return Header{}, err
	}
	size, k := binary.Uvarint(rest)
	if k <= 0 || size > uint64(len(rest)-k) {
		return Header{}, vfs.Corruptf("texts of %d bytes in a block of %d", size, len(block))
	}
	if err := d.check(n, size+4*n); err != nil {
		return Header{}, err
	}
	ends, data, base, err := dst.ExtendBytes(int(n), int(size))
	if err != nil {
		return Header{}, err
	}
	rest, err = decodeNumbers(unsigned(ends), rest[k:])
	if err != nil {
		return Header{}, err
	}
	if uint64(len(rest)) != size {
		return Header{}, vfs.Corruptf("texts of %d bytes in %d", size, len(rest))
	}
	copy(data, rest)
	return Header{ordinal, int(n)}, sumLengths(ends, base, size)
}

// sumLengths turns lengths, which are to add up to size, into ends.
func sumLengths(ends []int32, base int32, size uint64) error {
	sum := uint64(0)
	for i, n := range ends {
		sum += uint64(uint32(n))
		ends[i] = base + int32(sum)
	}
	if sum != size {
		return vfs.Corruptf("texts of %d bytes, want %d", sum, size)
	}
	return nil
}

// unsigned views the same memory.
func unsigned(v []int32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}
