package encoding

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// The modes of a DICT block.
const (
	modeCodes = 1
	modePlain = 2
)

// dictBuilder builds DICT blocks. It starts with blocks of code words and turns to
// plain blocks for good once the words take more bytes than a block may.
type dictBuilder struct {
	words bytesBuilder
	table wordTable
	codes codesBuilder
	plain bytesBuilder
	mode  uint32
	last  int // code of the plain value added last: values often come in runs

	before int  // words before this block
	closed bool // no more words

	from  *vector.Vector // dictionary of the vector added last
	remap []uint32       // its codes' codes here plus one, 0 while unknown
}

func newDictBuilder(limit int) *dictBuilder {
	b := &dictBuilder{words: bytesBuilder{limit: limit}, plain: bytesBuilder{limit: limit}}
	b.codes.limit = max(1, limit/4)
	b.table.seed = maphash.MakeSeed()
	b.words.reset(0)
	return b
}

func (b *dictBuilder) reset(ordinal uint32) {
	b.mode, b.before = modeCodes, b.words.count()
	if b.closed || b.words.full() {
		b.mode = modePlain
	}
	b.codes.reset(ordinal)
	b.plain.reset(ordinal)
}

func (b *dictBuilder) full() bool {
	if b.mode == modePlain {
		return b.plain.full()
	}
	return b.codes.full() || b.words.full()
}

func (b *dictBuilder) count() int {
	if b.mode == modePlain {
		return b.plain.count()
	}
	return len(b.codes.vals)
}

func (b *dictBuilder) size() int {
	if b.mode == modePlain {
		return 4 + b.plain.size()
	}
	return 4 + b.codes.size()
}

func (b *dictBuilder) add(v *vector.Vector, from, to int) int {
	switch {
	case b.mode == modePlain:
		return b.plain.add(v, from, to)
	case v.Dict() != nil:
		return b.addCodes(v, from, to)
	}
	offsets, data := v.Offsets()[from:to+1], v.Data()
	for i := range to - from {
		if b.codes.full() {
			return i
		}
		s := data[offsets[i]:offsets[i+1]]
		if b.words.count() == 0 || string(s) != string(b.words.word(b.last)) {
			code, ok := b.code(s)
			if !ok {
				return i
			}
			b.last = int(code)
		}
		b.codes.vals = append(b.codes.vals, uint32(b.last))
	}
	return to - from
}

// addCodes adds values in dictionary form, each word looked up once.
func (b *dictBuilder) addCodes(v *vector.Vector, from, to int) int {
	if b.from != v.Dict() {
		b.from = v.Dict()
		b.remap = append(b.remap[:0], make([]uint32, b.from.Len())...)
	}
	for i := from; i < to; i++ {
		if b.codes.full() {
			return i - from
		}
		known := &b.remap[v.Code(i)]
		if *known == 0 {
			code, ok := b.code(v.BytesAt(i))
			if !ok {
				return i - from
			}
			*known = code + 1
		}
		b.codes.vals = append(b.codes.vals, *known-1)
	}
	return to - from
}

// code returns the code of a word, a new one while the dictionary has room.
func (b *dictBuilder) code(s []byte) (uint32, bool) {
	slot, hash := b.table.find(s, &b.words)
	if c := b.table.slots[slot].code; c != 0 {
		return c - 1, true
	}
	if b.words.full() {
		return 0, false
	}
	code := uint32(b.words.count())
	b.words.addOne(s)
	b.table.insert(slot, hash, code)
	return code, true
}

func (b *dictBuilder) finish(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, b.mode)
	if b.mode == modePlain {
		return b.plain.finish(dst)
	}
	return b.codes.finish(dst)
}

// wordTable is an open hash table from words, which it does not hold, to codes.
type wordTable struct {
	seed  maphash.Seed
	slots []wordSlot // a power of two, at most half in use
	used  int
}

type wordSlot struct {
	hash uint32
	code uint32 // plus one; 0 is a free slot
}

// find returns the slot of a word, or the free one where it belongs, and its hash.
func (t *wordTable) find(s []byte, words *bytesBuilder) (slot, hash uint32) {
	if len(t.slots) == 0 {
		t.slots = make([]wordSlot, 256)
	}
	mask := uint32(len(t.slots) - 1)
	hash = uint32(maphash.Bytes(t.seed, s))
	for slot = hash & mask; ; slot = (slot + 1) & mask {
		e := t.slots[slot]
		if e.code == 0 || e.hash == hash && string(words.word(int(e.code-1))) == string(s) {
			return slot, hash
		}
	}
}

// insert puts a code into the slot that find returned for its word.
func (t *wordTable) insert(slot, hash, code uint32) {
	t.slots[slot] = wordSlot{hash, code + 1}
	if t.used++; 2*t.used > len(t.slots) {
		t.grow()
	}
}

func (t *wordTable) grow() {
	old := t.slots
	t.slots = make([]wordSlot, 2*len(old))
	mask := uint32(len(t.slots) - 1)
	for _, e := range old {
		if e.code == 0 {
			continue
		}
		slot := e.hash & mask
		for t.slots[slot].code != 0 {
			slot = (slot + 1) & mask
		}
		t.slots[slot] = e
	}
}

// codes decodes a DICT block.
func (d *decoder) codes(dst *vector.Vector, block []byte) (Header, error) {
	if len(block) < 4 {
		return Header{}, vfs.Corruptf("block of %d bytes is shorter than its mode", len(block))
	}
	mode, block := binary.LittleEndian.Uint32(block), block[4:]
	switch mode {
	case modePlain:
		dst.Reset(d.Kind)
		return d.plainBytes(dst, block)
	case modeCodes:
		return d.codeWords(dst, block)
	}
	return Header{}, vfs.Corruptf("dictionary block of mode %d", mode)
}

func (d *decoder) codeWords(dst *vector.Vector, block []byte) (Header, error) {
	if d.dict == nil {
		return Header{}, vfs.Corruptf("block of code words without a dictionary")
	}
	h, err := d.cutShuffle(block)
	if err != nil {
		return Header{}, err
	}
	if h.width > 4 {
		return Header{}, vfs.Corruptf("code words of %d bytes", h.width)
	}
	if err := d.check(h.count, max(h.count, uint64(d.room))*uint64(h.width)); err != nil {
		return Header{}, err
	}
	out := dst.ResetCodes(h.width, int(h.count), d.room, d.dict)
	if err := h.decode(out); err != nil {
		return Header{}, err
	}
	if err := checkCodes(out, h.width, d.dict.Len()); err != nil {
		return Header{}, err
	}
	vector.HostOrder(out, h.width)
	return Header{h.ordinal, int(h.count)}, nil
}

// checkCodes checks that all codes, little-endian, are below n. Eight bytes of codes are
// compared at once: adding the distance from the largest code to half a lane carries
// into the top bit of each lane that exceeds it.
func checkCodes(codes []byte, width, n int) error {
	if len(codes) == 0 || uint64(n) > 1<<(8*width)-1 {
		return nil
	}
	if n == 0 {
		return vfs.Corruptf("code word, but the dictionary is empty")
	}
	lane := ^uint64(0) / (1<<(8*width) - 1) // 1 in each lane
	top := lane << (8*width - 1)
	half, largest := uint64(1)<<(8*width-1), uint64(n-1)
	var over uint64
	for ; len(codes) >= 8; codes = codes[8:] {
		over |= above(binary.LittleEndian.Uint64(codes), largest, half, lane, top)
	}
	var tail [8]byte
	copy(tail[:], codes)
	over |= above(binary.LittleEndian.Uint64(tail[:]), largest, half, lane, top)
	if over != 0 {
		return vfs.Corruptf("code word beyond the %d words of the dictionary", n)
	}
	return nil
}

// above has the top bit of each lane set whose value exceeds largest.
func above(x, largest, half, lane, top uint64) uint64 {
	if largest < half {
		return (x&^top + (half-1-largest)*lane | x) & top
	}
	return (x&^top + (2*half-1-largest)*lane) & x & top
}
