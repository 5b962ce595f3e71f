package encoding

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// maxLane is the widest number that is added up several at a time: wider ones are too few
// in a load of eight bytes.
const maxLane = 14

// lanes is how numbers of one width are added up: a load of eight bytes has so many of them,
// of which every second one is added in a lane of twice the width, without a carry into the
// next lane as long as there are no more than markEvery.
type lanes struct {
	count int    // numbers of a load, even
	lane  uint64 // the lower half of every lane
	pair  uint64 // every second lane
	one   uint64 // 1 in each of these pairs
	top   uint8  // bits before the last pair
}

// lanesOf is by width.
var lanesOf = func() (all [maxLane + 1]lanes) {
	for w := 1; w <= maxLane; w++ {
		l := &all[w]
		l.count = 57 / w &^ 1 // a load that begins within a byte has 57 bits
		for at := 0; at < l.count*w; at += 4 * w {
			l.one |= 1 << at
			l.pair |= (1<<(2*w) - 1) << at
			l.top = uint8(at)
		}
		for at := 0; at < l.count*w; at += 2 * w {
			l.lane |= (1<<w - 1) << at
		}
	}
	return all
}()

// sumLanes returns the sum of the numbers [from, to) of a width up to maxLane, at most markEvery
// of them, which the caller knows to lie in data, with packedSlack bytes behind them.
func sumLanes(data []byte, from, to, width int) uint64 {
	if width < 3 {
		return sumBits(data, from, to, width)
	}
	l, p := &lanesOf[width], unsafe.Pointer(&data[0])
	var even, odd uint64
	left, bit := to-from, from*width
	for ; left > 0; left -= l.count {
		word := binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, bit>>3))[:]) >> (bit & 7)
		if left < l.count {
			word &= 1<<(left*width) - 1
		}
		even += word & l.lane
		odd += word >> width & l.lane
		bit += l.count * width
	}
	w2 := 2 * width
	even = even&l.pair + even>>w2&l.pair + odd&l.pair + odd>>w2&l.pair
	return even * l.one >> l.top & (1<<(2*w2) - 1)
}

// sumBits is sumLanes for a width of one or two bits, whose lanes would be too narrow.
func sumBits(data []byte, from, to, width int) (sum uint64) {
	high := uint64(width-1) * 0xaaaaaaaaaaaaaaaa // the bits that count twice
	count := 57 / width &^ 1
	bit := from * width
	for left := to - from; left > 0; left -= count {
		word := binary.LittleEndian.Uint64(data[bit>>3:]) >> (bit & 7)
		word &= 1<<(min(left, count)*width) - 1
		sum += uint64(bits.OnesCount64(word) + bits.OnesCount64(word&high))
		bit += count * width
	}
	return sum
}
