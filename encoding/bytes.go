package encoding

import (
	"encoding/binary"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// bytesHeader is the length of the header {ordinal, count, position of the offsets}.
const bytesHeader = 12

// bytesBuilder builds PLAIN blocks of bytes, and the words of a dictionary.
type bytesBuilder struct {
	limit    int
	ordinal  uint32
	data     []byte
	starts   []uint32 // of each value, from the start of the block
	estimate int
	lengths  []int64 // for appendText
}

func (b *bytesBuilder) reset(ordinal uint32) {
	b.ordinal, b.data, b.starts, b.estimate = ordinal, b.data[:0], b.starts[:0], bytesHeader
}

func (b *bytesBuilder) full() bool { return b.estimate > b.limit }
func (b *bytesBuilder) count() int { return len(b.starts) }
func (b *bytesBuilder) size() int  { return b.estimate }

func (b *bytesBuilder) add(v *vector.Vector, from, to int) int {
	if v.Dict() != nil {
		return b.addWords(v, from, to)
	}
	offsets := v.Offsets()
	i, end := from, uint32(bytesHeader+len(b.data))
	for ; i < to && !b.full(); i++ {
		n := uint32(offsets[i+1] - offsets[i])
		b.note(end, int(n))
		end += n
	}
	b.data = append(b.data, v.Data()[offsets[from]:offsets[i]]...)
	return i - from
}

func (b *bytesBuilder) addWords(v *vector.Vector, from, to int) int {
	i := from
	for ; i < to && !b.full(); i++ {
		b.addOne(v.BytesAt(i))
	}
	return i - from
}

func (b *bytesBuilder) addOne(s []byte) {
	b.note(uint32(bytesHeader+len(b.data)), len(s))
	b.data = append(b.data, s...)
}

// note records a value of n bytes that starts at the given place.
func (b *bytesBuilder) note(start uint32, n int) {
	if len(b.starts)&3 == 0 {
		b.estimate++
	}
	b.starts = append(b.starts, start)
	b.estimate += n + varLen(start)
}

// word returns value i.
func (b *bytesBuilder) word(i int) []byte {
	end := len(b.data)
	if i+1 < len(b.starts) {
		end = int(b.starts[i+1]) - bytesHeader
	}
	return b.data[b.starts[i]-bytesHeader : end]
}

func (b *bytesBuilder) finish(dst []byte) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, b.ordinal)
	dst = le.AppendUint32(dst, uint32(len(b.starts)))
	dst = le.AppendUint32(dst, uint32(bytesHeader+len(b.data)))
	return appendGroups(append(dst, b.data...), b.starts)
}

func (d *decoder) plainBytes(dst *vector.Vector, block []byte) (Header, error) {
	if len(block) < bytesHeader {
		return Header{}, vfs.Corruptf("block of %d bytes is shorter than its header", len(block))
	}
	le := binary.LittleEndian
	ordinal, n, pos := le.Uint32(block), uint64(le.Uint32(block[4:])), uint64(le.Uint32(block[8:]))
	if pos < bytesHeader || pos > uint64(len(block)) {
		return Header{}, vfs.Corruptf("offsets at byte %d of a block of %d", pos, len(block))
	}
	groups := block[pos:]
	if 5*((n+3)/4) > uint64(len(groups)) {
		return Header{}, vfs.Corruptf("%d offsets in %d bytes", n, len(groups))
	}
	size := pos - bytesHeader
	if err := d.check(n, size+4*n); err != nil {
		return Header{}, err
	}
	ends, data, base, err := dst.ExtendBytes(int(n), int(size))
	if err != nil {
		return Header{}, err
	}
	copy(data, block[bytesHeader:pos])
	return Header{ordinal, int(n)}, decodeEnds(ends, groups, base, int32(size))
}

// decodeEnds turns the start offsets in src, which count from the header on, into the
// end of each value in a buffer that continues at base.
func decodeEnds(ends []int32, src []byte, base, size int32) error {
	prev := int32(0) // start of the value whose end comes next
	for i := 0; i < len(ends); i += 4 {
		g, n := readGroup(src)
		if n == 0 {
			return vfs.Corruptf("offsets end early")
		}
		src = src[n:]
		for j, v := range g[:min(4, len(ends)-i)] {
			start := int64(v) - bytesHeader
			if i+j == 0 {
				if start != 0 {
					return vfs.Corruptf("first value starts at byte %d", v)
				}
				continue
			}
			if start < int64(prev) || start > int64(size) {
				return vfs.Corruptf("value %d starts at byte %d, the one before at %d", i+j, v, prev+bytesHeader)
			}
			prev = int32(start)
			ends[i+j-1] = base + prev
		}
	}
	if len(src) != 0 {
		return vfs.Corruptf("%d bytes after the offsets", len(src))
	}
	if len(ends) > 0 {
		ends[len(ends)-1] = base + size
	} else if size != 0 {
		return vfs.Corruptf("%d bytes of no value", size)
	}
	return nil
}

// DecodeDict decodes the dictionary block of a column of the given encoding, DICT or
// PAGED: its words, by code. The limits are those of [Decode].
func DecodeDict(block []byte, e schema.Encoding, max Limits) (*vector.Vector, error) {
	words := vector.New(schema.KindBytes, 0)
	if e != schema.EncodingPaged {
		e = schema.EncodingPlain
	}
	_, err := Decode(words, block, Format{Kind: schema.KindBytes, Encoding: e}, nil, max)
	if err != nil {
		return nil, err
	}
	return words, nil
}
