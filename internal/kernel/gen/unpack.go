package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Eight packed numbers take width bytes, so within each eight they lie at the same places. A
// lane is loaded from where its first number starts, one shuffle brings the bytes
// of each number into its place and one shift its bits; both come from a table by width.

func unpack(c *build.Context) {
	unpackLong(c, "unpack64", "unpack64 unpacks numbers of up to 56 bits and adds least.", false)
	unpackLong(c, "unpackMul64", "unpackMul64 unpacks numbers of up to 32 bits, multiplies by step, below 1<<32, and adds least.", true)
	for _, size := range []int{4, 2, 1} {
		unpackShort(c, size)
	}
	prefixSum64(c)
	prefixSum32(c)
}

func unpackBegin(c *build.Context, name, doc string) (dst, src, groups, width, table reg.GPVirtual) {
	c.Function(name)
	c.Pragma("noescape")
	c.Doc(doc)
	c.SignatureExpr("func(dst, src *uint8, groups, width int, table *uint8, mask, step, least uint64)")
	dst, src, groups, width, table = c.GP64(), c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("dst"), dst)
	c.Load(c.Param("src"), src)
	c.Load(c.Param("groups"), groups)
	c.Load(c.Param("width"), width)
	c.Load(c.Param("table"), table)
	return
}

// lanesFrom loads the lanes of a register from two places.
func lanesFrom(c *build.Context, low, high operand.Mem) reg.VecVirtual {
	y := c.YMM()
	c.VBROADCASTI128(low, y)
	c.VINSERTI128(operand.U8(1), high, y, y)
	return y
}

func unpackLong(c *build.Context, name, doc string, multiply bool) {
	dst, src, groups, width, table := unpackBegin(c, name, doc)
	mask, least := broadcast(c, "mask", c.VPBROADCASTQ), broadcast(c, "least", c.VPBROADCASTQ)
	var step reg.VecVirtual
	if multiply {
		step = broadcast(c, "step", c.VPBROADCASTQ)
	}
	var order, shift [2]reg.VecVirtual
	for i := range order {
		order[i], shift[i] = c.YMM(), c.YMM()
		c.VMOVDQU(at(table, 32*i), order[i])
		c.VMOVDQU(at(table, 64+32*i), shift[i])
	}
	by2, by4, by6 := copyOf(c, width), copyOf(c, width), c.GP64()
	c.SHRQ(operand.U8(2), by2)
	c.SHRQ(operand.U8(1), by4)
	c.LEAQ(operand.Mem{Base: width, Index: width, Scale: 2}, by6)
	c.SHRQ(operand.U8(2), by6)
	from := func(offset reg.GPVirtual) operand.Mem { return operand.Mem{Base: src, Index: offset, Scale: 1} }
	c.Label("group")
	for i, y := range []reg.VecVirtual{lanesFrom(c, at(src, 0), from(by2)), lanesFrom(c, from(by4), from(by6))} {
		c.VPSHUFB(order[i], y, y)
		c.VPSRLVQ(shift[i], y, y)
		c.VPAND(mask, y, y)
		if multiply {
			c.VPMULUDQ(step, y, y)
		}
		c.VPADDQ(least, y, y)
		c.VMOVDQU(y, at(dst, 32*i))
	}
	c.ADDQ(operand.U8(64), dst)
	c.ADDQ(width, src)
	c.DECQ(groups)
	c.JNZ(operand.LabelRef("group"))
	end(c)
}

// unpackShort unpacks to 32 bits and packs the results of several groups.
func unpackShort(c *build.Context, size int) {
	name := fmt.Sprintf("unpack%d", 8*size)
	dst, src, groups, width, table := unpackBegin(c, name,
		fmt.Sprintf("%s unpacks numbers of up to %d bits, multiplies by step and adds least; groups is a multiple of %d.", name, 8*size, 4/size))
	mask := broadcast(c, "mask", c.VPBROADCASTD)
	wide := max(size, 2) // of the arithmetic
	widen := lanesOf(c, wide).broadcast
	step, least := broadcast(c, "step", widen), broadcast(c, "least", widen)
	order, shift := c.YMM(), c.YMM()
	c.VMOVDQU(at(table, 0), order)
	c.VMOVDQU(at(table, 64), shift)
	var low, places reg.VecVirtual
	if size == 1 {
		low, places = c.YMM(), c.YMM()
		c.VPBROADCASTD(constant(c, "lowBytes", 0x00ff00ff), low)
		c.VMOVDQU(constant(c, "places", 0, 4, 1, 5, 2, 6, 3, 7), places)
	}
	half := copyOf(c, width)
	c.SHRQ(operand.U8(1), half)
	group := func() reg.VecVirtual {
		y := lanesFrom(c, at(src, 0), operand.Mem{Base: src, Index: half, Scale: 1})
		c.VPSHUFB(order, y, y)
		c.VPSRLVD(shift, y, y)
		c.VPAND(mask, y, y)
		c.ADDQ(width, src)
		return y
	}
	pair := func() reg.VecVirtual { // 16 numbers of 16 bits, the lanes of both groups interleaved
		a, b := group(), group()
		c.VPACKUSDW(b, a, a)
		c.VPMULLW(step, a, a)
		c.VPADDW(least, a, a)
		return a
	}
	c.Label("group")
	var y reg.VecVirtual
	switch size {
	case 4:
		y = group()
		c.VPMULLD(step, y, y)
		c.VPADDD(least, y, y)
	case 2:
		y = pair()
		c.VPERMQ(operand.U8(0xd8), y, y)
	default:
		y = pair()
		z := pair()
		c.VPAND(low, y, y)
		c.VPAND(low, z, z)
		c.VPACKUSWB(z, y, y)
		c.VPERMD(y, places, y)
	}
	c.VMOVDQU(y, at(dst, 0))
	c.ADDQ(operand.U8(32), dst)
	c.SUBQ(operand.U8(4/size), groups)
	c.JNZ(operand.LabelRef("group"))
	end(c)
}

// A prefix sum of a register takes one addition for each doubling of what is summed; the
// sum of all before is added at the end, so that registers wait for each other in one
// addition only.

func prefixBegin(c *build.Context, bits int, op func(...operand.Op)) (vals, blocks reg.GPVirtual, carry reg.VecVirtual) {
	name := fmt.Sprintf("prefixSum%d", bits)
	c.Function(name)
	c.Pragma("noescape")
	c.Doc(fmt.Sprintf("%s replaces blocks of %d values by their sums from the first on, above base.", name, 256/bits))
	c.SignatureExpr("func(vals *uint8, blocks int, base uint64)")
	vals, blocks = c.GP64(), c.GP64()
	c.Load(c.Param("vals"), vals)
	c.Load(c.Param("blocks"), blocks)
	return vals, blocks, broadcast(c, "base", op)
}

func prefixSum64(c *build.Context) {
	vals, blocks, carry := prefixBegin(c, 64, c.VPBROADCASTQ)
	x, y := c.YMM(), c.YMM()
	c.Label("block")
	c.VMOVDQU(at(vals, 0), x)
	c.VPSLLDQ(operand.U8(8), x, y)
	c.VPADDQ(y, x, x)
	c.VPERM2I128(operand.U8(0x08), x, x, y) // the low lane, above zero
	c.VPUNPCKHQDQ(y, y, y)
	c.VPADDQ(y, x, x)
	c.VPERMQ(operand.U8(0xff), x, y)
	c.VPADDQ(carry, x, x)
	c.VPADDQ(y, carry, carry)
	c.VMOVDQU(x, at(vals, 0))
	c.ADDQ(operand.U8(32), vals)
	c.DECQ(blocks)
	c.JNZ(operand.LabelRef("block"))
	end(c)
}

func prefixSum32(c *build.Context) {
	vals, blocks, carry := prefixBegin(c, 32, c.VPBROADCASTD)
	x, y, last := c.YMM(), c.YMM(), c.YMM()
	c.VPBROADCASTD(constant(c, "lastPlace", 7), last)
	c.Label("block")
	c.VMOVDQU(at(vals, 0), x)
	c.VPSLLDQ(operand.U8(4), x, y)
	c.VPADDD(y, x, x)
	c.VPSLLDQ(operand.U8(8), x, y)
	c.VPADDD(y, x, x)
	c.VPERM2I128(operand.U8(0x08), x, x, y)
	c.VPSHUFD(operand.U8(0xff), y, y)
	c.VPADDD(y, x, x)
	c.VPERMD(x, last, y)
	c.VPADDD(carry, x, x)
	c.VPADDD(y, carry, carry)
	c.VMOVDQU(x, at(vals, 0))
	c.ADDQ(operand.U8(32), vals)
	c.DECQ(blocks)
	c.JNZ(operand.LabelRef("block"))
	end(c)
}
