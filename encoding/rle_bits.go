package encoding

import (
	"encoding/binary"
	"math/bits"

	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// maxLiteralGroups is the number of groups of 8 values in one literal run, whose
// header then takes one byte.
const maxLiteralGroups = 63

// bitRuns builds the RLE stream of booleans and null bitmaps.
//
// Values are taken in groups of 8. A group of equal values starts a repeated run, which
// then absorbs equal values one by one; any other group joins a literal run.
type bitRuns struct {
	out     []byte
	literal int // place of the open literal run's header, -1 when none is open
	cur     bool
	run     int   // length of the open repeated run: 0 or at least 8
	group   uint8 // values of a group begun
	pending int   // how many
}

func (b *bitRuns) reset() { *b = bitRuns{out: b.out[:0], literal: -1} }

// size returns the bytes emitted so far.
func (b *bitRuns) size() int { return len(b.out) }

// addRun appends n equal values.
func (b *bitRuns) addRun(v bool, n int) {
	for n > 0 {
		switch {
		case b.run > 0 && b.cur == v:
			b.run += n
			return
		case b.pending == 0 && n >= 8:
			b.addGroup(-boolByte(v))
			n -= 8
		default:
			b.addOne(v)
			n--
		}
	}
}

// addBits appends bits [from, to) of src.
func (b *bitRuns) addBits(src vector.Bitmap, from, to int) {
	for from < to {
		word, n := bitsAt(src, from, to)
		from += n
		for n > 0 {
			k := b.addSome(word, n)
			word, n = word>>k, n-k
		}
	}
}

// addSome appends at least one of the low n bits of word and returns how many.
func (b *bitRuns) addSome(word uint64, n int) int {
	switch {
	case b.run > 0:
		same := word
		if b.cur {
			same = ^word
		}
		if k := min(bits.TrailingZeros64(same), n); k > 0 {
			b.run += k
			return k
		}
		b.endRun()
		return b.addSome(word, n)
	case b.pending == 0 && n >= 8:
		b.addGroup(byte(word))
		return 8
	}
	b.addOne(word&1 != 0)
	return 1
}

// bitsAt returns up to 64 bits of src from position i on and their number.
func bitsAt(src vector.Bitmap, i, to int) (word uint64, n int) {
	s := uint(i) & 63
	n = min(64-int(s), to-i)
	return src[i>>6] >> s, n
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func (b *bitRuns) addOne(v bool) {
	if b.run > 0 {
		if b.cur == v {
			b.run++
			return
		}
		b.endRun()
	}
	b.group |= boolByte(v) << b.pending
	if b.pending++; b.pending == 8 {
		g := b.group
		b.group, b.pending = 0, 0
		b.addGroup(g)
	}
}

// addGroup appends 8 values. No group is begun.
func (b *bitRuns) addGroup(g byte) {
	if b.run > 0 && g == -boolByte(b.cur) {
		b.run += 8
		return
	}
	if b.run > 0 {
		b.endRun()
	}
	if g == 0 || g == 0xff {
		b.literal, b.cur, b.run = -1, g != 0, 8
		return
	}
	b.out, b.literal = openLiteral(b.out, b.literal)
	b.out = append(b.out, g)
}

// openLiteral counts one more group in the literal run whose header is at the given
// place, or opens one where none is open or it is complete.
func openLiteral(out []byte, at int) ([]byte, int) {
	if at >= 0 && out[at]>>1 < maxLiteralGroups {
		out[at] += 2
		return out, at
	}
	return append(out, 1<<1|1), len(out)
}

func (b *bitRuns) endRun() {
	b.out = binary.AppendUvarint(b.out, uint64(b.run)<<1)
	b.out = append(b.out, boolByte(b.cur))
	b.run = 0
}

// finish ends the stream and returns it, valid until reset.
func (b *bitRuns) finish() []byte {
	switch {
	case b.run > 0:
		b.endRun()
	case b.pending > 0 && b.literalClosed() && (b.group == 0 || b.group == 1<<b.pending-1):
		b.cur, b.run = b.group != 0, b.pending
		b.endRun()
	case b.pending > 0:
		b.out, b.literal = openLiteral(b.out, b.literal)
		b.out = append(b.out, b.group)
	}
	b.pending, b.group, b.literal = 0, 0, -1
	return b.out
}

func (b *bitRuns) literalClosed() bool {
	return b.literal < 0 || b.out[b.literal]>>1 == maxLiteralGroups
}

// rleBitsBuilder builds RLE blocks of booleans.
type rleBitsBuilder struct {
	limit   int
	ordinal uint32
	n       int
	runs    bitRuns
}

func (b *rleBitsBuilder) reset(ordinal uint32) {
	b.ordinal, b.n = ordinal, 0
	b.runs.reset()
}

func (b *rleBitsBuilder) full() bool { return 8+b.runs.size() > b.limit }
func (b *rleBitsBuilder) count() int { return b.n }
func (b *rleBitsBuilder) size() int  { return 8 + b.runs.size() + 6 }

func (b *rleBitsBuilder) add(v *vector.Vector, from, to int) int {
	b.runs.addBits(v.Bits(), from, to)
	b.n += to - from
	return to - from
}

func (b *rleBitsBuilder) finish(dst []byte) []byte {
	return append(appendShortHeader(dst, b.n, b.ordinal), b.runs.finish()...)
}

func (d *decoder) rleBits(dst *vector.Vector, block []byte) (Header, error) {
	n, ordinal, rest, err := shortHeader(block)
	if err != nil {
		return Header{}, err
	}
	if err := d.check(n, (n+7)/8); err != nil {
		return Header{}, err
	}
	return Header{ordinal, int(n)}, decodeBits(dst.ExtendBits(int(n)), int(n), rest)
}

// decodeBits fills the first n bits of out, all clear, from an RLE stream, which may
// stand for more.
func decodeBits(out vector.Bitmap, n int, src []byte) error {
	for at := 0; at < n; {
		repeated, length, m, err := runHeader(src)
		if err != nil {
			return err
		}
		src = src[m:]
		k := int(min(length, uint64(n-at)))
		if repeated {
			if len(src) == 0 || src[0] > 1 {
				return vfs.Corruptf("repeated run without a bit")
			}
			if src[0] == 1 {
				out.SetRange(at, at+k)
			}
			src = src[1:]
		} else {
			if k > 8*len(src) {
				return vfs.Corruptf("%d bits in the last %d bytes", k, len(src))
			}
			orBits(out, at, src, k)
			src = src[min(length/8, uint64(len(src))):]
		}
		at += k
	}
	return nil
}

// runHeader reads the header of a run of at least one value; m is its length.
func runHeader(src []byte) (repeated bool, length uint64, m int, err error) {
	h, m := uvarint32(src)
	if m == 0 || h > 1<<31-1 {
		return false, 0, 0, vfs.Corruptf("damaged run header")
	}
	if h>>1 == 0 {
		return false, 0, 0, vfs.Corruptf("run of no values")
	}
	if h&1 == 0 {
		return true, h >> 1, m, nil
	}
	return false, (h >> 1) * 8, m, nil
}
