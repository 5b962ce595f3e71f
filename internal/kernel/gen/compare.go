package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A kernel of this file tests the 64 values of each word of a selection that is not zero and
// clears the bits of those that fail. x lies outside [lo, lo+width] if x-lo exceeds width,
// unsigned; the comparison being signed, both sides are moved by half the range. The results
// of the comparisons, all ones or zero, are packed to a byte a value, whose top bits
// are collected.

func compare(c *build.Context) {
	for _, size := range []int{1, 2, 4, 8} {
		spanKernel(c, size, false)
	}
	spanKernel(c, 4, true)
	spanKernel(c, 8, true)
	tableKernel(c)
	longTableKernel(c, 2)
	longTableKernel(c, 4)
}

// lanes are the instructions for values of one size.
type lanes struct {
	add, greater func(...operand.Op)
	broadcast    func(...operand.Op)
}

func lanesOf(c *build.Context, size int) lanes {
	switch size {
	case 1:
		return lanes{c.VPADDB, c.VPCMPGTB, c.VPBROADCASTB}
	case 2:
		return lanes{c.VPADDW, c.VPCMPGTW, c.VPBROADCASTW}
	case 4:
		return lanes{c.VPADDD, c.VPCMPGTD, c.VPBROADCASTD}
	}
	return lanes{c.VPADDQ, c.VPCMPGTQ, c.VPBROADCASTQ}
}

// eachWord calls body for every word of the selection that is not zero. What body
// leaves in hit is combined with the word. The words that are left are returned, for body to jump to what
// follows.
func eachWord(c *build.Context, size int, body func(vals, hit reg.GPVirtual)) (words reg.GPVirtual) {
	sel, vals := c.GP64(), c.GP64()
	words = c.GP64()
	c.Load(c.Param("sel"), sel)
	c.Load(c.Param("vals"), vals)
	c.Load(c.Param("words"), words)
	c.Label("word")
	c.CMPQ(at(sel, 0), operand.I8(0))
	c.JEQ(operand.LabelRef("next"))
	hit := c.GP64()
	body(vals, hit)
	c.ANDQ(hit, at(sel, 0))
	c.Label("next")
	c.ADDQ(operand.U8(8), sel)
	c.ADDQ(operand.U32(64*size), vals)
	c.DECQ(words)
	c.JNZ(operand.LabelRef("word"))
	return words
}

func broadcast(c *build.Context, param string, op func(...operand.Op)) reg.VecVirtual {
	x, y := c.XMM(), c.YMM()
	c.VMOVQ(c.Load(c.Param(param), c.GP64()), x)
	op(x, y)
	return y
}

func spanKernel(c *build.Context, size int, float bool) {
	name, of := fmt.Sprintf("span%d", 8*size), "values"
	if float {
		name, of = fmt.Sprintf("floatSpan%d", 8*size), "floats, by key,"
	}
	c.Function(name)
	c.Pragma("noescape")
	c.Doc(fmt.Sprintf("%s keeps the bits of the %s for which x+shift is at most limit, signed; flip inverts.", name, of))
	c.SignatureExpr("func(sel *uint64, vals *uint8, words int, shift, limit, flip uint64)")
	l := lanesOf(c, size)
	shift, limit := broadcast(c, "shift", l.broadcast), broadcast(c, "limit", l.broadcast)
	flip := c.Load(c.Param("flip"), c.GP64())
	var zero reg.VecVirtual
	if float {
		zero = c.YMM()
		c.VPXOR(zero, zero, zero)
	}
	p := newPacker(c, size)
	eachWord(c, size, func(vals, hit reg.GPVirtual) {
		p.collect(hit, func(i int) reg.VecVirtual {
			y := c.YMM()
			if float {
				floatKey(c, size, at(vals, 32*i), zero, y)
				l.add(shift, y, y)
			} else {
				l.add(at(vals, 32*i), shift, y)
			}
			l.greater(limit, y, y)
			return y
		})
		c.XORQ(flip, hit)
	})
	end(c)
}

// floatKey puts the keys of floats in y: the bits below the sign inverted where it is set.
func floatKey(c *build.Context, size int, m operand.Mem, zero, y reg.VecVirtual) {
	c.VMOVDQU(m, y)
	s := c.YMM()
	if size == 4 {
		c.VPSRAD(operand.U8(31), y, s)
		c.VPSRLD(operand.U8(1), s, s)
	} else {
		c.VPCMPGTQ(y, zero, s)
		c.VPSRLQ(operand.U8(1), s, s)
	}
	c.VPXOR(s, y, y)
}

// packer turns results of comparisons into bits, in order.
type packer struct {
	c     *build.Context
	size  int
	order reg.VecVirtual // of double words, or of bytes, after packing
}

func newPacker(c *build.Context, size int) *packer {
	p := &packer{c: c, size: size}
	switch size {
	case 4:
		p.order = c.YMM()
		c.VMOVDQU(constant(c, "order4", 0, 4, 1, 5, 2, 6, 3, 7), p.order)
	case 8: // pairs of bytes of the two halves of a lane alternate
		p.order = c.YMM()
		c.VMOVDQU(constant(c, "order8", 0x09080100, 0x0b0a0302, 0x0d0c0504, 0x0f0e0706,
			0x09080100, 0x0b0a0302, 0x0d0c0504, 0x0f0e0706), p.order)
	}
	return p
}

// constant returns the place of 32 bytes, defined once.
func constant(c *build.Context, name string, words ...uint32) operand.Mem {
	key := fmt.Sprintf("%p%s", c, name)
	if m, ok := constants[key]; ok {
		return m
	}
	m := c.StaticGlobal(name)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for _, w := range words {
		c.AppendDatum(operand.U32(w))
	}
	constants[key] = m
	return m
}

var constants = map[string]operand.Mem{}

// collect sets bit i of hit for result i of 64.
func (p *packer) collect(hit reg.GPVirtual, result func(i int) reg.VecVirtual) {
	high := p.c.GP64()
	p.c.VPMOVMSKB(p.bytes(0, result), hit.As32())
	p.c.VPMOVMSKB(p.bytes(1, result), high.As32())
	p.c.SHLQ(operand.U8(32), high)
	p.c.ORQ(high, hit)
}

// bytes returns 32 results as a byte each.
func (p *packer) bytes(half int, result func(i int) reg.VecVirtual) reg.VecVirtual {
	c, n := p.c, p.size
	y := p.pack(half*n, n, result)
	switch n {
	case 2:
		c.VPERMQ(operand.U8(0xd8), y, y)
	case 4:
		c.VPERMD(y, p.order, y)
	case 8:
		c.VPERMQ(operand.U8(0xd8), y, y)
		c.VPSHUFB(p.order, y, y)
	}
	return y
}

// pack packs n results from the given one on into one register.
func (p *packer) pack(from, n int, result func(i int) reg.VecVirtual) reg.VecVirtual {
	if n == 1 {
		return result(from)
	}
	a, b := p.pack(from, n/2, result), p.pack(from+n/2, n/2, result)
	switch p.size / n {
	case 1: // the last step
		p.c.VPACKSSWB(b, a, a)
	case 2:
		p.c.VPACKSSDW(b, a, a)
	default:
		p.c.VSHUFPS(operand.U8(0x88), b, a, a)
	}
	return a
}

// tableKernel looks bytes up in a set of 256 bits: its 32 bytes are two tables of 16, of
// which the top bit of the code chooses one.
func tableKernel(c *build.Context) {
	c.Function("table8")
	c.Pragma("noescape")
	c.Doc("table8 keeps the bits of the codes that are in the set.")
	c.SignatureExpr("func(sel *uint64, vals *uint8, words int, set *[32]uint8)")
	set := c.Load(c.Param("set"), c.GP64())
	low, high, powers, seven, index := c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM()
	c.VBROADCASTI128(at(set, 0), low)
	c.VBROADCASTI128(at(set, 16), high)
	c.VPBROADCASTQ(constant(c, "powers", 0x08040201, 0x80402010), powers)
	c.VPBROADCASTD(constant(c, "seven", 0x07070707), seven)
	c.VPBROADCASTD(constant(c, "index", 0x1f1f1f1f), index)
	p := newPacker(c, 1)
	eachWord(c, 1, func(vals, hit reg.GPVirtual) {
		p.collect(hit, func(i int) reg.VecVirtual {
			code, of, x, y := c.YMM(), c.YMM(), c.YMM(), c.YMM()
			c.VMOVDQU(at(vals, 32*i), code)
			c.VPSRLW(operand.U8(3), code, of)
			c.VPAND(index, of, of)
			c.VPSHUFB(of, low, x)
			c.VPSHUFB(of, high, y)
			c.VPBLENDVB(code, y, x, x)
			c.VPAND(seven, code, y)
			c.VPSHUFB(y, powers, y)
			c.VPAND(y, x, x)
			c.VPCMPEQB(y, x, x)
			return x
		})
	})
	end(c)
}

// longTableKernel looks codes up one by one, the last first: the comparison of an entry with 1
// borrows if it is 0, and an addition with carry shifts the borrow into a word. Two words
// take turns, as each addition waits for the one before.
func longTableKernel(c *build.Context, size int) {
	name := fmt.Sprintf("table%d", 8*size)
	c.Function(name)
	c.Pragma("noescape")
	c.Doc(name + " keeps the bits of the codes that have 1 in the table, up to a word with a code above last. It returns how many words are left.")
	c.SignatureExpr("func(sel *uint64, vals *uint8, words int, table *uint8, last uint64) int")
	table := c.Load(c.Param("table"), c.GP64())
	last := broadcast(c, "last", lanesOf(c, size).broadcast)
	greatest := c.VPMAXUW
	if size == 4 {
		greatest = c.VPMAXUD
	}
	words := eachWord(c, size, func(vals, hit reg.GPVirtual) {
		most := c.YMM()
		greatest(at(vals, 0), last, most)
		for i := 1; i < 2*size; i++ {
			greatest(at(vals, 32*i), most, most)
		}
		c.VPXOR(last, most, most)
		c.VPTEST(most, most)
		c.JNZ(operand.LabelRef("done"))
		high := c.GP64()
		c.XORQ(hit, hit)
		c.XORQ(high, high)
		for i := 31; i >= 0; i-- {
			for half, word := range []reg.GPVirtual{hit, high} {
				code, from := c.GP64(), at(vals, size*(32*half+i))
				if size == 2 {
					c.MOVWLZX(from, code.As32())
				} else {
					c.MOVL(from, code.As32())
				}
				c.CMPB(operand.Mem{Base: table, Index: code, Scale: 1}, operand.U8(1))
				c.ADCQ(word, word)
			}
		}
		c.SHLQ(operand.U8(32), high)
		c.ORQ(high, hit)
		c.NOTQ(hit)
	})
	c.Label("done")
	c.Store(words, c.ReturnIndex(0))
	end(c)
}
