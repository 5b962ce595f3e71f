package encoding

import (
	"encoding/binary"
	"unsafe"

	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/vfs"
)

// packedNumbers reads single numbers.
type packedNumbers struct {
	data   []byte        // the numbers and packedSlack bytes
	blocks []packedBlock // without planes
	n      int
	numbersHead
}

// packedBlock is a block of packed numbers. The least one is of the block.
type packedBlock struct {
	least uint64
	at    uint32 // of the first in data
	width uint8
}

// openNumbers reads the heads of n numbers, which end where src does; packedSlack bytes
// follow it.
func openNumbers(src []byte, n int) (p packedNumbers, err error) {
	p.n = n
	if p.numbersHead, src, err = cutNumbers(src); err != nil {
		return p, err
	}
	p.data = src[:len(src)+packedSlack]
	if p.planes == 0 {
		return p, p.openBlocks(src)
	}
	if uint64(p.planes)*uint64(n) != uint64(len(src)) {
		return p, vfs.Corruptf("%d planes of %d numbers in %d bytes", p.planes, n, len(src))
	}
	return p, nil
}

func (p *packedNumbers) openBlocks(src []byte) error {
	count := (p.n + numbersBlock - 1) / numbersBlock
	if count > len(src)/2 { // each has a least number and a width
		return vfs.Corruptf("%d blocks of numbers in %d bytes", count, len(src))
	}
	p.blocks = make([]packedBlock, count)
	rest := src
	for k := range p.blocks {
		offset, width, data, err := cutBlock(rest)
		if err != nil {
			return err
		}
		n := min(numbersBlock, p.n-k*numbersBlock)
		size := packedSize(n, width)
		if size > len(data) {
			return vfs.Corruptf("%d numbers of %d bits in %d bytes", n, width, len(data))
		}
		p.blocks[k] = packedBlock{p.least + offset*p.step, uint32(len(src) - len(data)), uint8(width)}
		rest = data[size:]
	}
	return atEnd(rest, nil)
}

// at returns number i.
func (p *packedNumbers) at(i int) uint64 {
	if p.planes > 0 {
		var s uint64
		for at := (p.planes-1)*p.n + i; at >= 0; at -= p.n {
			s = s<<8 | uint64(p.data[at])
		}
		return p.numbersHead.least + p.step*s
	}
	b := &p.blocks[i/numbersBlock]
	return b.least + p.step*b.steps(p.data, i%numbersBlock)
}

// steps returns how many steps number i of the block is above its least.
func (b *packedBlock) steps(data []byte, i int) uint64 {
	bit := i * int(b.width)
	word := binary.LittleEndian.Uint64(data[int(b.at)+bit>>3:])
	return word >> (bit & 7) & (1<<b.width - 1)
}

// touch loads a byte of number i.
func (p *packedNumbers) touch(i int) (x byte) {
	if p.planes > 0 {
		for at := (p.planes-1)*p.n + i; at >= 0; at -= p.n {
			x += p.data[at]
		}
		return x
	}
	b := &p.blocks[i/numbersBlock]
	return p.data[int(b.at)+i%numbersBlock*int(b.width)>>3]
}

// sum returns the sum of numbers [from, to), at most markEvery of them in one block.
func (p *packedNumbers) sum(from, to int) uint64 {
	n := uint64(to - from)
	if p.planes > 0 {
		var steps uint64
		for k := range p.planes {
			steps += sumBytes(p.data[k*p.n+from:k*p.n+to]) << (8 * k)
		}
		return n*p.numbersHead.least + p.step*steps
	}
	b := &p.blocks[from/numbersBlock]
	if b.width == 0 {
		return n * b.least
	}
	from %= numbersBlock
	if b.width <= maxLane {
		return n*b.least + p.step*sumLanes(p.data[b.at:], from, from+int(n), int(b.width))
	}
	return n*b.least + p.step*sumPacked(p.data[b.at:], from, from+int(n), int(b.width))
}

// sumPacked returns the sum of steps [from, to), which the caller knows to lie in data.
func sumPacked(data []byte, from, to, width int) (sum uint64) {
	p, mask := unsafe.Pointer(&data[0]), ^uint64(0)>>(64-width)
	for bit := from * width; bit < to*width; bit += width {
		word := binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, bit>>3))[:])
		sum += word >> (bit & 7) & mask
	}
	return sum
}

// sumBytes returns the sum of at most 128 bytes, eight at a time in lanes of 16 bits.
func sumBytes(b []byte) (sum uint64) {
	const low = 0x00ff00ff00ff00ff
	var lanes uint64
	for ; len(b) >= 8; b = b[8:] {
		x := binary.LittleEndian.Uint64(b)
		lanes += x&low + x>>8&low
	}
	for _, x := range b {
		sum += uint64(x)
	}
	return sum + lanes*0x0001000100010001>>48
}

// runningSums returns the value to which the numbers before every markEvery-th add up, from
// the given one on.
func (p *packedNumbers) runningSums(value uint64) []uint64 {
	sums := make([]uint64, 0, (p.n+markEvery-1)/markEvery)
	var block [numbersBlock]uint64
	for at := 0; at < p.n; at += numbersBlock {
		n := min(numbersBlock, p.n-at)
		if p.planes == 0 && p.blocks[at/numbersBlock].width > 0 {
			sums, value = p.blockSums(sums, block[:n], at, value)
			continue
		}
		for from := at; from < at+n; from += markEvery {
			sums = append(sums, value)
			value += p.sum(from, min(from+markEvery, at+n))
		}
	}
	return sums
}

// blockSums is runningSums for the block that begins with number at, which it unpacks.
func (p *packedNumbers) blockSums(sums, block []uint64, at int, value uint64) ([]uint64, uint64) {
	b := &p.blocks[at/numbersBlock]
	kernel.Unpack(block, p.data[b.at:], int(b.width), p.step, b.least)
	kernel.PrefixSum(block, value)
	sums = append(sums, value)
	for i := markEvery; i < len(block); i += markEvery {
		sums = append(sums, block[i-1])
	}
	return sums, block[len(block)-1]
}
