package main

import (
	"fmt"
	"math/bits"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Values that lie together are spread to the places of the set bits of a bitmap, from the last
// word to the first and in each from the last group of eight or four to the first, so
// that they are read before they are overwritten. A table says for each pattern of bits which
// value of those from the group's first on each place gets. How many values precede
// a group within its word is counted from the word, so groups do not wait for each other.

// unset marks a place without a value. Doubled, and doubled again with one
// added, it still has its top bit set, which a shuffle takes as zero.
const unset = 0xc0

func spread(c *build.Context) {
	for _, size := range []int{1, 2, 4, 8} {
		spreadKernel(c, size)
	}
	deposit(c)
}

// rankTable returns the place of 256 entries of eight bytes.
func rankTable(c *build.Context) operand.Mem {
	m := c.StaticGlobal("ranks")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for set := range 256 {
		var entry uint64
		rank := uint64(0)
		for i := range 8 {
			if set>>i&1 == 0 {
				entry |= unset << (8 * i)
				continue
			}
			entry |= rank << (8 * i)
			rank++
		}
		c.AppendDatum(operand.U64(entry))
	}
	return m
}

// longTable returns the place of 16 entries of 32 bytes: for each of four values of 64 bits its halves'
// ranks among those of the source.
func longTable(c *build.Context) operand.Mem {
	m := c.StaticGlobal("longRanks")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for set := range 16 {
		rank := uint64(0)
		for i := range 4 {
			if set>>i&1 == 0 {
				c.AppendDatum(operand.U64(0x8000000080000000))
				continue
			}
			c.AppendDatum(operand.U64((2*rank+1)<<32 | 2*rank))
			rank++
		}
	}
	return m
}

var ranks operand.Mem

func spreadKernel(c *build.Context, size int) {
	if size == 1 {
		ranks = rankTable(c)
	}
	table := ranks
	if size == 8 {
		table = longTable(c)
	}
	name := fmt.Sprintf("spread%d", 8*size)
	c.Function(name)
	c.Pragma("noescape")
	c.Doc(name + " spreads the first count values, as many as words of valid have bits set.")
	c.SignatureExpr("func(vals *uint8, valid *uint64, words, count int)")
	vals, valid, words, count := c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("vals"), vals)
	c.Load(c.Param("valid"), valid)
	c.Load(c.Param("words"), words)
	c.Load(c.Param("count"), count)
	from, base, word, t := c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.LEAQ(table, base)
	zero := zeroed(c)
	step := spreadStep(c, size, base, zero)

	c.Label("word")
	c.MOVQ(words, t)
	c.SHLQ(operand.U8(6), t)
	c.CMPQ(t, count)
	c.JEQ(operand.LabelRef("done")) // all that is left is in its place
	c.DECQ(words)
	c.JLT(operand.LabelRef("done"))
	c.SUBQ(operand.U8(64), t)
	c.MOVQ(operand.Mem{Base: valid, Index: words, Scale: 8}, word)
	dst := t
	c.SHLQ(operand.U8(bits.TrailingZeros(uint(size))), dst)
	c.ADDQ(vals, dst)
	c.CMPQ(word, operand.I8(-1))
	c.JEQ(operand.LabelRef("full"))
	group := 8 / max(1, size/4) // values of a step
	n := c.GP64()
	c.MOVQ(count, n)
	c.POPCNTQ(word, word)
	c.SUBQ(word, count)
	for i := 64/group - 1; i >= 0; i-- {
		c.MOVQ(operand.Mem{Base: valid, Index: words, Scale: 8}, word)
		if i > 0 {
			c.SHRQ(operand.U8(i*group), word)
		}
		before := c.GP64()
		c.POPCNTQ(word, before)
		c.MOVQ(n, from)
		c.SUBQ(before, from)
		if group == 8 {
			c.MOVBLZX(word.As8(), word.As32())
		} else {
			c.ANDQ(operand.U8(15), word)
			c.SHLQ(operand.U8(2), word)
		}
		step(operand.Mem{Base: vals, Index: from, Scale: uint8(size)}, operand.Mem{Base: base, Index: word, Scale: 8}, at(dst, i*group*size))
	}
	c.JMP(operand.LabelRef("word"))

	c.Label("full")
	c.SUBQ(operand.U8(64), count)
	for i := 2*size - 1; i >= 0; i -= 2 {
		x, y := c.YMM(), c.YMM()
		c.VMOVDQU(operand.Mem{Base: vals, Index: count, Scale: uint8(size), Disp: 32 * i}, x)
		c.VMOVDQU(operand.Mem{Base: vals, Index: count, Scale: uint8(size), Disp: 32 * (i - 1)}, y)
		c.VMOVDQU(x, at(dst, 32*i))
		c.VMOVDQU(y, at(dst, 32*(i-1)))
	}
	c.JMP(operand.LabelRef("word"))
	c.Label("done")
	end(c)
}

// spreadStep returns the instructions for one group.
func spreadStep(c *build.Context, size int, base reg.Register, zero reg.VecVirtual) func(src, entry, dst operand.Mem) {
	switch size {
	case 1:
		return func(src, entry, dst operand.Mem) {
			x, order := c.XMM(), c.XMM()
			c.VMOVQ(entry, order)
			c.VMOVQ(src, x)
			c.VPSHUFB(order, x, x)
			c.VMOVQ(x, dst)
		}
	case 2:
		high := c.XMM()
		c.VPBROADCASTW(constant(c, "highBytes", 0x01000100), high)
		return func(src, entry, dst operand.Mem) {
			x, order := c.XMM(), c.XMM()
			c.VMOVQ(entry, order)
			c.VPADDB(order, order, order)
			c.VPUNPCKLBW(order, order, order)
			c.VPADDB(high, order, order)
			c.VMOVDQU(src, x)
			c.VPSHUFB(order, x, x)
			c.VMOVDQU(x, dst)
		}
	case 4:
		seven := c.YMM()
		c.VPBROADCASTD(constant(c, "last4", 7), seven)
		return func(src, entry, dst operand.Mem) {
			y, order := c.YMM(), c.YMM()
			c.VPMOVZXBD(entry, order)
			c.VPERMD(src, order, y)
			c.VPCMPGTD(seven, order, order)
			c.VPANDN(y, order, y)
			c.VMOVDQU(y, dst)
		}
	}
	return func(src, entry, dst operand.Mem) {
		y, order := c.YMM(), c.YMM()
		c.VMOVDQU(entry, order)
		c.VPERMD(src, order, y)
		c.VBLENDVPS(order, zero, y, y)
		c.VMOVDQU(y, dst)
	}
}

func deposit(c *build.Context) {
	c.Function("deposit64")
	c.Attributes(attr.NOSPLIT)
	c.Doc("deposit64 moves the low bits of x to the places of the set bits of mask.")
	c.SignatureExpr("func(x, mask uint64) uint64")
	x, mask := c.GP64(), c.GP64()
	c.Load(c.Param("x"), x)
	c.Load(c.Param("mask"), mask)
	c.PDEPQ(mask, x, x)
	c.Store(x, c.ReturnIndex(0))
	c.RET()
}
