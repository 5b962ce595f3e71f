package encoding

import (
	"math"
	"sync"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// pageBuilder builds blocks of a PAGED column: it collects values as they are, texts as
// words of the dictionary, and chooses how to encode them when a block is finished.
type pageBuilder struct {
	builder // one of the following
	raw     *shuffleBuilder
	bits    *plainBitsBuilder
	dict    *dictBuilder

	kind     schema.Kind
	width    int
	target   int    // bytes of a page that is decompressed faster than read
	nulls    []byte // what precedes the values
	nullable bool   // something does
	shared   *Habit // of the column; nil: none
	habit

	*pageWork // while a page is made
}

// pageWork is the memory that making a page takes, shared by all encoders.
type pageWork struct {
	numbers  numberWriter
	ints     []int64
	distinct distinctWriter
	decimal  decimalWriter
	prefix   prefixBuilder
	body     []byte
	sampled  []byte
	packed   [2][]byte
}

var pageWorks = sync.Pool{New: func() any { return new(pageWork) }}

// maxWork bounds the memory that is kept.
const maxWork = 4 << 20

func (b *pageBuilder) borrow() { b.pageWork = pageWorks.Get().(*pageWork) }

func (b *pageBuilder) release() {
	w := b.pageWork
	b.pageWork = nil
	if cap(w.body)+cap(w.sampled)+cap(w.packed[0])+cap(w.packed[1])+cap(w.prefix.entries) <= maxWork {
		pageWorks.Put(w)
	}
}

// way is a way to encode a page.
type way struct {
	encoding schema.Encoding
	planes   bool // of the numbers in it
	codec    bool // compressed
}

// codecs are compressions to try.
type codecs []schema.Compression

// All when a way is chosen, then that of the page it was chosen for.
var (
	allCodecs = codecs{schema.CompressionZstd, schema.CompressionLZ4}
	zstdAlone = allCodecs[:1]
	lz4Alone  = allCodecs[1:]
)

// share returns by how much a page is smaller than the target.
func (w way) share() int {
	switch w.encoding {
	case schema.EncodingShuffle:
		return shuffleShare
	case schema.EncodingPlain, schema.EncodingText, schema.EncodingPrefix:
		if w.codec {
			return textShare
		}
	}
	return plainShare
}

// Ways to encode a page of a kind, faster ones first.
var (
	intWays = []way{{schema.EncodingPlain, false, false}, {schema.EncodingFrame, false, false}, {schema.EncodingDelta, false, false},
		{schema.EncodingDistinct, false, false}, {schema.EncodingFrame, true, true}, {schema.EncodingDelta, true, true},
		{schema.EncodingDistinct, true, true}}
	floatWays = []way{{schema.EncodingPlain, false, false}, {schema.EncodingDecimal, false, false}, {schema.EncodingDistinct, false, false},
		{schema.EncodingDecimal, true, true}, {schema.EncodingShuffle, false, true}, {schema.EncodingDistinct, true, true}}
	wideWays = []way{{schema.EncodingPlain, false, false}, {schema.EncodingDistinct, false, false}, {schema.EncodingShuffle, false, true},
		{schema.EncodingDistinct, true, true}}
	boolWays = []way{{schema.EncodingPlain, false, false}, {schema.EncodingRLE, false, false}, {schema.EncodingRLE, false, true}}
	codeWays = []way{{schema.EncodingCodes, false, false}, {schema.EncodingCodes, true, true}}
	textWays = []way{{schema.EncodingText, false, false}, {schema.EncodingText, true, true}, {schema.EncodingPrefix, false, true}}
)

const (
	// A way is kept for so many times the target of plain bytes, unless pages get so much worse.
	keepPages = 32
	worse     = 1.2

	// Who wants one cell of a page that is not cached reads all of it, and decodes all of it where cells
	// cannot be read one by one. So a page takes a share of the target, the smaller the longer that takes.
	plainShare   = 4
	wideRate     = 4 // bytes a number from which it takes the share of SHUFFLE
	shuffleShare = 16
	textShare    = 32
	leastPage    = 512 // bytes to aim at, or the target if that is less

	// A sample is two pieces of so many values, or the whole page when it has up to four.
	samplePiece = 2048
	sampleSlack = 32 // bytes of headers, of which a page has as many as a sample

	// A way that is slower to decode must be smaller: by so much than an earlier one, with
	// a codec by so much and so many bytes than without.
	slowerWins   = 0.97
	codecPenalty = 1.1
	lz4Penalty   = 1.05
	codecBytes   = 128
)

func newPageBuilder(o EncoderOptions) *pageBuilder {
	b := &pageBuilder{kind: o.Kind, width: o.Kind.Width(), target: o.BlockSize, nullable: o.Nullable, shared: o.Habit, habit: o.Habit.get()}
	switch {
	case o.Kind == schema.KindBool:
		b.bits = &plainBitsBuilder{limit: o.BlockSize}
		b.builder = b.bits
	case o.Kind == schema.KindBytes:
		b.dict = newDictBuilder(o.BlockSize)
		b.builder = b.dict
	default:
		b.raw = &shuffleBuilder{width: b.width, limit: max(1, o.BlockSize/b.width)}
		b.builder = b.raw
	}
	if b.limit > 0 && b.raw != nil { // texts begin as words, of which a page has more
		b.setLimit(min(b.limit, b.target))
	}
	return b
}

// size guesses: texts are taken as they are, other values as small as those of the page
// before, and of the first page as an eighth of their plain bytes.
func (b *pageBuilder) size() int {
	switch {
	case b.dict != nil:
		return b.builder.size()
	case b.rate == 0:
		return b.builder.size() / 8
	}
	return int(b.rate * float64(b.count()+1))
}

// ways returns the ways to encode the present page.
func (b *pageBuilder) ways() []way {
	switch {
	case b.bits != nil:
		return boolWays
	case b.dict != nil && b.dict.mode == modeCodes:
		return codeWays
	case b.dict != nil:
		return textWays
	case b.width > 8:
		return wideWays
	case b.kind == schema.KindFloat32 || b.kind == schema.KindFloat64:
		return floatWays
	}
	return intWays
}

// finish appends the page.
func (b *pageBuilder) finish(dst []byte) []byte {
	b.borrow()
	defer b.release()
	b.ints = b.ints[:0]
	if b.dict != nil {
		b.dict.settle()
		for _, c := range b.dict.codes.vals {
			b.ints = append(b.ints, int64(c))
		}
	} else if b.raw != nil && b.width <= 8 {
		b.ints = appendInts(b.ints, b.raw.buf, b.width)
	}
	at, page := len(dst), b.choosePage(dst)
	size := len(page) - at
	b.fit(size)
	if b.count() >= 4*samplePiece || size >= leastPage && 2*size >= b.aim() {
		b.shared.put(b.habit)
	}
	return page
}

// choosePage appends the page in the way of the one before, or the best one.
func (b *pageBuilder) choosePage(dst []byte) []byte {
	values := float64(b.count() + 1)
	if b.age += b.plainSize(); b.rate > 0 && b.age < keepPages*b.target && b.applies() {
		at := len(dst)
		if page, ok := b.page(dst, b.chosen); ok && float64(len(page)-at) <= worse*b.rate*values {
			return page
		}
	}
	return b.choose(dst, values)
}

// plainSize returns the bytes of the values, those of words by number.
func (b *pageBuilder) plainSize() int {
	switch {
	case b.raw != nil:
		return len(b.raw.buf)
	case b.dict != nil && b.dict.mode == modePlain:
		return len(b.dict.plain.data)
	}
	return 4 * b.count()
}

// aim returns the bytes that a page should take.
func (b *pageBuilder) aim() int {
	share := b.chosen.share()
	if b.raw != nil && b.rate > wideRate {
		share = max(share, shuffleShare)
	}
	return min(max(b.target/share, leastPage), b.target)
}

// fit sets how much the next page takes, by the bytes that the present one has become.
func (b *pageBuilder) fit(size int) {
	aim := float64(b.aim())
	next := float64(b.plainSize()) * aim / float64(size)
	b.setLimit(int(min(max(next, aim), float64(b.target))))
}

// setLimit sets the plain bytes at which a page is full.
func (b *pageBuilder) setLimit(limit int) {
	b.limit = limit
	switch {
	case b.raw != nil:
		b.raw.limit = max(1, limit/b.width)
	case b.dict != nil:
		b.dict.plain.limit = limit
	}
}

// applies reports whether the chosen way is one of the present page's.
func (b *pageBuilder) applies() bool {
	for _, w := range b.ways() {
		if w == b.chosen {
			return true
		}
	}
	return false
}

// choose finds the best way for the page and appends it. Of the ways without a codec and of
// those with one, the best for a sample encodes the page, and the better page is taken.
func (b *pageBuilder) choose(dst []byte, values float64) []byte {
	at := len(dst)
	var pages [2]int // length, 0 for none
	b.codecs = allCodecs
	for k, codec := range []bool{false, true} {
		w, ok := b.best(codec)
		if !ok {
			continue
		}
		if page, ok := b.page(dst[at:at], w); ok {
			b.packed[k] = append(b.packed[k][:0], page...)
			pages[k] = len(page)
			if k == 0 || pages[0] == 0 || penalized(page) < float64(pages[0]) {
				b.chosen = w
			}
		}
	}
	page := b.packed[0]
	if b.chosen.codec {
		page = b.packed[1]
	}
	b.rate, b.age = float64(len(page))/values, 0
	b.codecs = zstdAlone
	if schema.Compression(page[1]) == schema.CompressionLZ4 {
		b.codecs = lz4Alone
	}
	return append(dst, page...)
}

// penalized returns the length of a page, more for one that must be decompressed.
func penalized(page []byte) float64 {
	switch schema.Compression(page[1]) {
	case schema.CompressionNone:
		return float64(len(page))
	case schema.CompressionLZ4:
		return codecBytes + lz4Penalty*float64(len(page))
	}
	return codecBytes + codecPenalty*float64(len(page))
}

// best returns the way that makes a sample smallest, an earlier one if it is nearly so.
func (b *pageBuilder) best(codec bool) (best way, ok bool) {
	least := math.MaxFloat64
	for _, w := range b.ways() {
		if w.codec != codec {
			continue
		}
		if n, fits := b.sample(w); fits && float64(n+sampleSlack) < slowerWins*least {
			best, least, ok = w, float64(n), true
		}
	}
	return best, ok
}

// sample returns the bytes that a way makes of a sample. A sample would have most of the
// distinct values of its page, so that of DISTINCT is the page.
func (b *pageBuilder) sample(w way) (size int, ok bool) {
	n := b.count()
	pieces := [][2]int{{0, n}}
	if n > 4*samplePiece && w.encoding != schema.EncodingDistinct {
		pieces = [][2]int{{n / 4, n/4 + samplePiece}, {3 * n / 4, 3*n/4 + samplePiece}}
	}
	for _, p := range pieces {
		body, ok := b.block(b.sampled[:0], w, p[0]&^7, p[1])
		if !ok {
			return 0, false
		}
		b.sampled = body
		if w.codec {
			b.packed[1], _ = compressBody(b.packed[1][:0], nil, body, schema.CompressionZstd, isText(w.encoding))
			body = b.packed[1]
		}
		size += len(body)
	}
	if n > 4*samplePiece && w.encoding == schema.EncodingDistinct {
		size = int(int64(size) * 2 * samplePiece / int64(n))
	}
	return size, true
}

// page appends the page encoded in a way: header, nulls and values.
func (b *pageBuilder) page(dst []byte, w way) ([]byte, bool) {
	body, ok := b.block(append(b.body[:0], b.nulls...), w, 0, b.count())
	b.body = body
	if !ok {
		return dst, false
	}
	if !w.codec {
		return appendPage(dst, body, w.encoding, schema.CompressionNone, b.nullable), true
	}
	at := len(dst)
	dst = appendPage(dst, body, w.encoding, b.codecs[0], b.nullable)
	for _, c := range b.codecs[1:] {
		other := appendPage(b.sampled[:0], body, w.encoding, c, b.nullable)
		if b.sampled = other; penalized(other) <= penalized(dst[at:]) {
			dst = append(dst[:at], other...)
		}
	}
	return dst, true
}

// block appends the values [from, to), from being a multiple of 8, and reports false
// when the way is none for them.
func (b *pageBuilder) block(dst []byte, w way, from, to int) ([]byte, bool) {
	switch {
	case b.bits != nil:
		return b.bits.appendRange(dst, w.encoding, from, to), true
	case b.dict != nil && w.encoding == schema.EncodingCodes:
		return b.numbers.appendCodes(dst, b.ints[from:to], b.dict.codes.ordinal, w.planes), true
	case b.dict != nil && w.encoding == schema.EncodingText:
		return b.dict.plain.appendText(dst, &b.numbers, from, to, w.planes), true
	case b.dict != nil:
		return b.appendPrefix(dst, from, to), true
	}
	return b.fixed(dst, b.raw.buf[from*b.width:to*b.width], w, from, to)
}

// fixed is block for values of fixed width, raw.
func (b *pageBuilder) fixed(dst, raw []byte, w way, from, to int) ([]byte, bool) {
	ordinal := b.raw.ordinal
	switch w.encoding {
	case schema.EncodingPlain:
		return append(appendShortHeader(dst, to-from, ordinal), raw...), true
	case schema.EncodingShuffle:
		return appendPlanes(dst, raw, b.width, ordinal), true
	case schema.EncodingFrame:
		return b.numbers.appendFrame(dst, b.ints[from:to], ordinal, w.planes), true
	case schema.EncodingDelta:
		return b.numbers.appendDelta(dst, b.ints[from:to], ordinal, w.planes), true
	case schema.EncodingDecimal:
		if !b.decimal.find(raw, b.width) {
			return dst, false
		}
		return b.decimal.append(dst, &b.numbers, raw, ordinal, w.planes), true
	}
	if !b.distinct.find(raw, b.width) {
		return dst, false
	}
	return b.distinct.append(dst, &b.numbers, b.width, ordinal, w.planes), true
}

// appendPrefix appends texts as a PREFIX block without restarts.
func (b *pageBuilder) appendPrefix(dst []byte, from, to int) []byte {
	plain := &b.dict.plain
	b.prefix.limit, b.prefix.interval = math.MaxInt, math.MaxInt32
	b.prefix.reset(plain.ordinal)
	for i := from; i < to; i++ {
		b.prefix.addOne(plain.data[plain.start(i):plain.start(i+1)])
	}
	return b.prefix.finish(dst)
}

// appendRange appends the bits [from, to) as a block.
func (b *plainBitsBuilder) appendRange(dst []byte, e schema.Encoding, from, to int) []byte {
	part := vector.FromBits(b.bits, b.n, nil)
	if e == schema.EncodingPlain {
		out := plainBitsBuilder{ordinal: b.ordinal}
		out.add(part, from, to)
		return out.finish(dst)
	}
	out := rleBitsBuilder{}
	out.reset(b.ordinal)
	out.add(part, from, to)
	return out.finish(dst)
}

// settle decides what the page is: when most of its values were not seen before, a
// dictionary is no use, so that the page turns to texts and its words are forgotten, and
// so do the pages after it.
func (b *dictBuilder) settle() {
	if b.mode != modeCodes {
		return
	}
	n := len(b.codes.vals)
	if n > 0 && (2*(b.words.count()-b.before) <= n || b.textSize() > inflation*b.plain.limit) {
		return
	}
	b.mode = modePlain
	b.plain.reset(b.codes.ordinal)
	for _, c := range b.codes.vals {
		b.plain.addOne(b.words.word(int(c)))
	}
	b.codes.vals = b.codes.vals[:0]
	if n > 0 {
		b.words.truncate(b.before)
		b.table, b.from, b.closed = wordTable{}, nil, true
	}
}

// inflation bounds the texts of a page that turns from words to texts, as a multiple of
// its limit: a long word may be there many times.
const inflation = 4

// textSize returns the bytes of the page's values.
func (b *dictBuilder) textSize() (n int) {
	for _, c := range b.codes.vals {
		n += len(b.words.word(int(c)))
	}
	return n
}

// appendWords appends the dictionary as a page of texts, if there is one.
func (b *pageBuilder) appendWords(dst []byte) ([]byte, bool) {
	if b.dict.words.count() == 0 {
		return dst, false
	}
	b.borrow()
	defer b.release()
	plain, mode, nullable := b.dict.plain, b.dict.mode, b.nullable
	b.dict.plain, b.dict.mode, b.nulls, b.nullable = b.dict.words, modePlain, b.nulls[:0], false
	dst = b.choose(dst, 1)
	b.dict.plain, b.dict.mode, b.nullable = plain, mode, nullable
	return dst, true
}
