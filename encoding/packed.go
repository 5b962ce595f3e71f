package encoding

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// Packed is a page of a PAGED column as it is stored, in an encoding in which a cell can
// be read without decoding the cells before it. It is immutable and shares no memory with
// the block it was made of, but for the words of the file.
type Packed struct {
	// What most cells need comes first, in two or three cache lines.
	numbers packedNumbers
	marks   []uint64 // DELTA: the value before every markEvery-th
	valid   ranks    // which rows are not null, empty when all are
	decoder

	rows       int
	body       []byte         // the block after the page's header, decompressed, and packedSlack bytes
	table      *vector.Vector // DISTINCT: words; DECIMAL: exceptions
	exceptions ranks          // DECIMAL: places of the exceptions, empty when there are none
	scale      decimalScale
	codeWidth  int // CODES
}

const (
	// packedSlack is what may be read past the numbers, with one load of eight bytes.
	packedSlack = 8
	// markEvery is how many differences lie between two marks: half a bit a value, so that
	// a cell takes the sum of 64 differences on average. It divides numbersBlock.
	markEvery = PackedStride
)

// PackedStride is the distance of cells that are cheap to read in every encoding.
const PackedStride = 128

// DecodePacked is [Decode] for a reader of a few cells. It refuses what Decode refuses, but
// for numbers of words out of range, which are found when they are read. It returns nil for
// a block in whose encoding cells cannot be read one by one: Decode is for those.
func DecodePacked(block []byte, f Format, dict *vector.Vector, max Limits) (*Packed, Header, error) {
	d, err := newDecoder(f, dict, max)
	if err != nil || f.Encoding != schema.EncodingPaged {
		return nil, Header{}, err
	}
	h, err := PageInfo(block, f.Kind)
	if err != nil || !readsCells(h.Encoding) {
		return nil, Header{}, err
	}
	p := &Packed{decoder: d, body: make([]byte, h.PlainSize+packedSlack)}
	p.Encoding = h.Encoding
	plain := p.body[:h.PlainSize]
	if err := h.plain(plain, block[pageHeader:]); err != nil {
		return nil, Header{}, err
	}
	header, err := p.open(plain)
	if err != nil {
		return nil, Header{}, err
	}
	return p, header, nil
}

// readsCells reports whether cells of the encoding can be read one by one.
func readsCells(e schema.Encoding) bool {
	switch e {
	case schema.EncodingFrame, schema.EncodingDelta, schema.EncodingDistinct, schema.EncodingDecimal, schema.EncodingCodes:
		return true
	}
	return false
}

// open reads what precedes the numbers.
func (p *Packed) open(block []byte) (Header, error) {
	if !p.Nullable {
		n, ordinal, err := p.openValues(block)
		p.rows = n
		return Header{ordinal, n}, err
	}
	valid, rows, set, rest, err := p.nulls(block)
	if err != nil {
		return Header{}, err
	}
	if err := p.check(uint64(rows), uint64(rows)*p.leastWidth()); err != nil {
		return Header{}, err
	}
	p.rows, p.room = rows, rows
	n, ordinal, err := p.openValues(rest)
	if err == nil && n != set {
		err = vfs.Corruptf("%d values, but %d of %d rows are not null", n, set, rows)
	}
	if set < rows {
		p.valid = newRanks(valid)
	}
	return Header{ordinal, rows}, err
}

// openValues is open for a block without nulls.
func (p *Packed) openValues(block []byte) (n int, ordinal uint32, err error) {
	count, ordinal, rest, err := shortHeader(block)
	if err != nil {
		return 0, 0, err
	}
	if err := p.check(count, count*uint64(max(p.Kind.Width(), 1))); err != nil {
		return 0, 0, err
	}
	n = int(count)
	switch p.Encoding {
	case schema.EncodingFrame:
		p.numbers, err = openNumbers(rest, n)
	case schema.EncodingDelta:
		err = p.openDelta(rest, n)
	case schema.EncodingDistinct:
		err = p.openDistinct(rest, n)
	case schema.EncodingDecimal:
		err = p.openDecimal(rest, n)
	default:
		err = p.openCodes(rest, n)
	}
	return n, ordinal, err
}

func (p *Packed) openDelta(src []byte, n int) error {
	base, k := binary.Varint(src)
	if k <= 0 {
		return vfs.Corruptf("differences without a base")
	}
	var err error
	if p.numbers, err = openNumbers(src[k:], n); err != nil {
		return err
	}
	p.marks = p.numbers.runningSums(uint64(base))
	return nil
}

func (p *Packed) openDistinct(src []byte, n int) error {
	p.table = new(vector.Vector)
	rest, err := p.distinctWords(p.table, src)
	if err != nil {
		return err
	}
	p.numbers, err = openNumbers(rest, n)
	return err
}

func (p *Packed) openDecimal(src []byte, n int) error {
	if err := p.check(uint64(n), 8*uint64(n)); err != nil {
		return err
	}
	w := p.Kind.Width()
	scale, exceptions, rest, err := cutDecimal(src, uint64(n), w)
	if err != nil {
		return err
	}
	p.scale = scale
	if len(exceptions) > 0 {
		p.keepExceptions(exceptions, n, w)
	}
	p.numbers, err = openNumbers(rest, n)
	return err
}

// keepExceptions sets table and exceptions.
func (p *Packed) keepExceptions(exceptions []byte, n, width int) {
	p.table = vector.New(p.Kind, len(exceptions)/(width+1))
	places, next := vector.NewBitmap(n), 0
	for len(exceptions) > 0 {
		gap, k := binary.Uvarint(exceptions)
		next += int(gap)
		places.Set(next)
		next++
		cell := p.table.ExtendFixed(1)
		copy(cell, exceptions[k:])
		vector.HostOrder(cell, width)
		exceptions = exceptions[k+width:]
	}
	p.exceptions = newRanks(places)
}

func (p *Packed) openCodes(src []byte, n int) (err error) {
	if p.codeWidth, err = p.cutCodes(src, uint64(n)); err != nil {
		return err
	}
	p.numbers, err = openNumbers(src[1:], n)
	return err
}

// Rows returns the number of cells.
func (p *Packed) Rows() int { return p.rows }

// Size returns the bytes of memory held, the words of the file not counted.
func (p *Packed) Size() int {
	n := int(unsafe.Sizeof(*p)) + cap(p.body) + p.valid.size() + p.exceptions.size() +
		cap(p.numbers.blocks)*int(unsafe.Sizeof(packedBlock{})) + 8*cap(p.marks)
	if p.table != nil {
		n += p.table.Size()
	}
	return n
}

// Vector decodes the whole page.
func (p *Packed) Vector() (*vector.Vector, error) {
	d, v := p.decoder, new(vector.Vector)
	end := len(p.body) - packedSlack
	_, err := d.block(v, p.body[:end:end])
	return v, err
}

// Touch loads the memory that a cell will be read from, for a later reader: whoever reads
// cells of several pages lets the processor wait for all of them at a time.
func (p *Packed) Touch(i int) byte {
	i, ok := p.place(i)
	if !ok {
		return 0
	}
	if p.marks != nil {
		return byte(p.marks[i/markEvery]) + p.numbers.touch(i)
	}
	return p.numbers.touch(i)
}

// AppendTo appends a cell to dst, a vector of the page's kind that is not in dictionary form.
func (p *Packed) AppendTo(dst *vector.Vector, i int) error {
	i, ok := p.place(i)
	if !ok {
		dst.AppendNull()
		return nil
	}
	switch p.Encoding {
	case schema.EncodingFrame:
		appendNumber(dst, p.numbers.at(i))
	case schema.EncodingDelta:
		appendNumber(dst, p.upTo(i))
	case schema.EncodingDecimal:
		return p.appendDecimal(dst, i)
	case schema.EncodingDistinct:
		c := int(uint16(p.numbers.at(i)))
		if c >= p.table.Len() {
			return p.beyond(i, c)
		}
		return dst.AppendFrom(p.table, c)
	default:
		return p.appendWord(dst, i)
	}
	return nil
}

// appendNumber appends a number to a vector of integers, or of floats as their bits.
func appendNumber(dst *vector.Vector, x uint64) {
	switch dst.Kind().Width() {
	case 1:
		vector.AppendFixed(dst, uint8(x))
	case 2:
		vector.AppendFixed(dst, uint16(x))
	case 4:
		vector.AppendFixed(dst, uint32(x))
	default:
		vector.AppendFixed(dst, x)
	}
}

func (p *Packed) appendDecimal(dst *vector.Vector, i int) error {
	if p.exceptions.bits != nil && p.exceptions.bits.Get(i) {
		return dst.AppendFrom(p.table, p.exceptions.rank(i))
	}
	x := p.scale.toFloat(int64(p.numbers.at(i)))
	if p.Kind == schema.KindFloat32 {
		vector.AppendFixed(dst, float32(x))
	} else {
		vector.AppendFixed(dst, x)
	}
	return nil
}

// appendWord appends a word of the file's dictionary.
func (p *Packed) appendWord(dst *vector.Vector, i int) error {
	b, err := p.word(i)
	if err != nil {
		return err
	}
	return dst.AppendBytes(b)
}

// ranks is a set of places that says how many of them precede one.
type ranks struct {
	bits   vector.Bitmap
	before []uint32 // bits set before each rankWords words
}

const rankWords = 8

func newRanks(bits vector.Bitmap) ranks {
	r := ranks{bits: bits, before: make([]uint32, 0, (len(bits)+rankWords-1)/rankWords)}
	n := 0
	for at := 0; at < len(bits); at += rankWords {
		r.before = append(r.before, uint32(n))
		n += bits[at:min(at+rankWords, len(bits))].Count()
	}
	return r
}

// rank returns how many bits before i are set.
func (r *ranks) rank(i int) int {
	word := i >> 6
	n := int(r.before[word/rankWords])
	for _, w := range r.bits[word&^(rankWords-1) : word] {
		n += bits.OnesCount64(w)
	}
	return n + bits.OnesCount64(r.bits[word]&(1<<(uint(i)&63)-1))
}

func (r *ranks) size() int { return 8*cap(r.bits) + 4*cap(r.before) }
