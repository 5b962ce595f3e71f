package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A kernel of this file reads the 64 values of each word of a selection that is not zero.
// Where not all are selected it needs a mask for each register of values. For values of 32 and
// 64 bits that is a register whose lanes have the bit of their value on top, which the
// loads and blends that look at the top bit only take as it is; the values are read from
// the last to the first, so that one shift brings up the next ones. Values of 8 and 16 bits
// get theirs by testing a bit in each lane.

func aggregate(c *build.Context) {
	for _, size := range []int{1, 2, 4, 8} {
		sumInts(c, size)
	}
	sumFloats(c, 4)
	sumFloats(c, 8)
	for _, size := range []int{1, 2, 4, 8} {
		extreme(c, size, false, false)
		extreme(c, size, false, true)
	}
	for _, size := range []int{4, 8} {
		extreme(c, size, true, false)
		extreme(c, size, true, true)
	}
}

// selection walks over the words of a selection.
type selection struct {
	c                *build.Context
	size             int // of the lanes of masks
	stride           int // bytes of 64 values
	sel, vals, words reg.GPVirtual
	shift, bits, by  reg.VecVirtual // constants of masks
}

func newSelection(c *build.Context, size int) *selection {
	s := &selection{c: c, size: size, stride: 64 * size, sel: c.GP64(), vals: c.GP64(), words: c.GP64()}
	c.Load(c.Param("sel"), s.sel)
	c.Load(c.Param("vals"), s.vals)
	c.Load(c.Param("words"), s.words)
	switch size {
	case 8:
		s.shift = c.YMM()
		c.VMOVDQU(constant(c, "shift8", 3, 0, 2, 0, 1, 0, 0, 0), s.shift)
	case 4:
		s.shift = c.YMM()
		c.VMOVDQU(constant(c, "shift4", 7, 6, 5, 4, 3, 2, 1, 0), s.shift)
	case 2:
		s.bits = c.YMM()
		c.VMOVDQU(constant(c, "bits2", 0x00020001, 0x00080004, 0x00200010, 0x00800040,
			0x02000100, 0x08000400, 0x20001000, 0x80004000), s.bits)
	case 1:
		s.bits, s.by = c.YMM(), c.YMM()
		c.VPBROADCASTQ(constant(c, "bits1", 0x08040201, 0x80402010), s.bits)
		c.VMOVDQU(constant(c, "by1", 0, 0, 0x01010101, 0x01010101, 0x02020202, 0x02020202, 0x03030303, 0x03030303), s.by)
	}
	return s
}

// each calls full for the registers of words of which all values are selected and part
// for those of other words but zero, with a mask.
func (s *selection) each(full func(i int, m operand.Mem), part func(i int, m operand.Mem, mask reg.VecVirtual)) {
	c, n := s.c, 2*s.size // registers
	word := c.GP64()
	c.Label("word")
	c.MOVQ(at(s.sel, 0), word)
	c.TESTQ(word, word)
	c.JEQ(operand.LabelRef("next"))
	c.CMPQ(word, operand.I8(-1))
	c.JNE(operand.LabelRef("part"))
	for i := n - 1; i >= 0; i-- {
		full(i, at(s.vals, 32*i))
	}
	c.JMP(operand.LabelRef("next"))
	c.Label("part")
	var mask reg.VecVirtual
	for i := n - 1; i >= 0; i-- {
		mask = s.mask(i, mask)
		part(i, at(s.vals, 32*i), mask)
	}
	c.Label("next")
	c.ADDQ(operand.U8(8), s.sel)
	c.ADDQ(operand.U32(s.stride), s.vals)
	c.DECQ(s.words)
	c.JNZ(operand.LabelRef("word"))
}

// mask returns the mask of register i; last is that of register i+1.
func (s *selection) mask(i int, last reg.VecVirtual) reg.VecVirtual {
	c := s.c
	m := c.YMM()
	switch {
	case s.size == 8 && i == 15:
		c.VPBROADCASTQ(at(s.sel, 0), m)
		c.VPSLLVQ(s.shift, m, m)
	case s.size == 8:
		c.VPSLLQ(operand.U8(4), last, last)
		return last
	case s.size == 4 && i%4 == 3:
		c.VPBROADCASTD(at(s.sel, i/4*4), m)
		c.VPSLLVD(s.shift, m, m)
	case s.size == 4:
		c.VPSLLD(operand.U8(8), last, last)
		return last
	case s.size == 2:
		c.VPBROADCASTW(at(s.sel, 2*i), m)
		c.VPAND(s.bits, m, m)
		c.VPCMPEQW(s.bits, m, m)
	default:
		c.VPBROADCASTD(at(s.sel, 4*i), m)
		c.VPSHUFB(s.by, m, m)
		c.VPAND(s.bits, m, m)
		c.VPCMPEQB(s.bits, m, m)
	}
	return m
}

// load loads the selected values of a register, zero for the others.
func (s *selection) load(m operand.Mem, mask reg.VecVirtual) reg.VecVirtual {
	y := s.c.YMM()
	switch s.size {
	case 8:
		s.c.VPMASKMOVQ(m, mask, y)
	case 4:
		s.c.VPMASKMOVD(m, mask, y)
	default:
		s.c.VPAND(m, mask, y)
	}
	return y
}

func zeroed(c *build.Context) reg.VecVirtual {
	y := c.YMM()
	c.VPXOR(y, y, y)
	return y
}

// sumInts adds up integers. Those of 8, 32 and 64 bits are made unsigned by adding half of their
// range, also where nothing is selected, so that the caller knows how often to take it
// away; the parts above and below 32 bits are added up apart.
func sumInts(c *build.Context, size int) {
	name := fmt.Sprintf("sum%d", 8*size)
	doc := map[int]string{
		1: "%s stores four sums of the selected values, each value 1<<7 too large, also where zero is in its place.",
		2: "%s stores four sums of the selected values.",
		4: "%s stores four sums of the selected values, each value 1<<31 too large, also where zero is in its place.",
		8: "%s stores four sums of the low halves of the selected values and four of the high ones, each value 1<<63 too large, also where zero is in its place.",
	}[size]
	c.Function(name)
	c.Pragma("noescape")
	c.Doc(fmt.Sprintf(doc, name))
	c.SignatureExpr("func(sel *uint64, vals *uint8, words int, out *[8]uint64)")
	s := newSelection(c, size)
	low, high := zeroed(c), zeroed(c)
	var add func(i int, y reg.VecVirtual)
	switch size {
	case 1:
		zero, half := zeroed(c), c.YMM()
		c.VPBROADCASTD(constant(c, "half1", 0x80808080), half)
		add = func(_ int, y reg.VecVirtual) {
			c.VPXOR(half, y, y)
			c.VPSADBW(zero, y, y)
			c.VPADDQ(y, low, low)
		}
	case 2:
		ones := c.YMM()
		c.VPBROADCASTD(constant(c, "ones", 0x00010001), ones)
		var pairs reg.VecVirtual
		add = func(i int, y reg.VecVirtual) {
			c.VPMADDWD(ones, y, y)
			if i == 3 {
				pairs = y
				return
			}
			c.VPADDD(y, pairs, pairs)
			if i == 0 {
				t, upper := c.YMM(), c.XMM()
				c.VPMOVSXDQ(pairs.AsX(), t)
				c.VPADDQ(t, low, low)
				c.VEXTRACTI128(operand.U8(1), pairs, upper)
				c.VPMOVSXDQ(upper, t)
				c.VPADDQ(t, low, low)
			}
		}
	default:
		half, mask := c.YMM(), c.YMM()
		if size == 4 {
			c.VPBROADCASTD(constant(c, "half4", 0x80000000), half)
		} else {
			c.VPBROADCASTQ(constant(c, "half8", 0, 0x80000000), half)
		}
		c.VPBROADCASTQ(constant(c, "below", 0xffffffff, 0), mask)
		add = func(_ int, y reg.VecVirtual) {
			t := c.YMM()
			c.VPXOR(half, y, y)
			c.VPAND(mask, y, t)
			c.VPSRLQ(operand.U8(32), y, y)
			c.VPADDQ(t, low, low)
			c.VPADDQ(y, high, high)
		}
	}
	s.each(func(i int, m operand.Mem) {
		y := c.YMM()
		c.VMOVDQU(m, y)
		add(i, y)
	}, func(i int, m operand.Mem, mask reg.VecVirtual) {
		add(i, s.load(m, mask))
	})
	out := c.Load(c.Param("out"), c.GP64())
	if size == 8 {
		c.VMOVDQU(high, at(out, 32))
	} else if size == 4 {
		c.VPADDQ(high, low, low)
	}
	c.VMOVDQU(low, at(out, 0))
	end(c)
}

// sumFloats adds up floats in 16 lanes, by their position.
func sumFloats(c *build.Context, size int) {
	name := fmt.Sprintf("sumFloat%d", 8*size)
	c.Function(name)
	c.Pragma("noescape")
	c.Doc(name + " adds the selected values to the lanes of their positions.")
	c.SignatureExpr("func(sel *uint64, vals *uint8, words int, lanes *[16]float64)")
	s := newSelection(c, 8)
	lanes := c.Load(c.Param("lanes"), c.GP64())
	var sums [4]reg.VecVirtual
	for i := range sums {
		sums[i] = c.YMM()
		c.VMOVUPD(at(lanes, 32*i), sums[i])
	}
	place := func(i int) operand.Mem { return at(s.vals, 4*size*i) }
	s.stride = 64 * size
	s.each(func(i int, _ operand.Mem) {
		if size == 8 {
			c.VADDPD(place(i), sums[i%4], sums[i%4])
			return
		}
		y := c.YMM()
		c.VCVTPS2PD(place(i), y)
		c.VADDPD(y, sums[i%4], sums[i%4])
	}, func(i int, _ operand.Mem, mask reg.VecVirtual) {
		y := c.YMM()
		if size == 8 {
			c.VMASKMOVPD(place(i), mask, y)
		} else {
			all := c.YMM()
			c.VPSRAD(operand.U8(31), mask, all)
			c.VPSHUFD(operand.U8(0xf5), all, all)
			c.VCVTPS2PD(place(i), y)
			c.VPAND(all, y, y)
		}
		c.VADDPD(y, sums[i%4], sums[i%4])
	})
	for i := range sums {
		c.VMOVUPD(sums[i], at(lanes, 32*i))
	}
	end(c)
}

// extreme finds the least or greatest value. What is not selected is replaced by the best so far
// at the start.
func extreme(c *build.Context, size int, float, max bool) {
	name, what := "min", "least"
	if max {
		name, what = "max", "greatest"
	}
	if float {
		name += "Float"
	}
	name = fmt.Sprintf("%s%d", name, 8*size)
	c.Function(name)
	c.Pragma("noescape")
	c.Doc(fmt.Sprintf("%s replaces each of the values in best, at first all the same, by the %s of it and some of those selected.", name, what))
	c.SignatureExpr("func(sel *uint64, vals *uint8, words int, best *uint8)")
	s := newSelection(c, size)
	out := c.Load(c.Param("best"), c.GP64())
	first := c.YMM()
	c.VMOVDQU(at(out, 0), first)
	acc := make([]reg.VecVirtual, min(4, 2*size))
	for i := range acc {
		acc[i] = c.YMM()
		c.VMOVDQA(first, acc[i])
	}
	better := betterOf(c, size, float, max)
	s.each(func(i int, m operand.Mem) {
		y := c.YMM()
		c.VMOVDQU(m, y)
		better(y, acc[i%len(acc)])
	}, func(i int, m operand.Mem, mask reg.VecVirtual) {
		y := c.YMM()
		switch size {
		case 8:
			c.VBLENDVPD(mask, m, first, y)
		case 4:
			c.VBLENDVPS(mask, m, first, y)
		default:
			c.VPBLENDVB(mask, m, first, y)
		}
		better(y, acc[i%len(acc)])
	})
	for _, a := range acc[1:] {
		better(a, acc[0])
	}
	c.VMOVDQU(acc[0], at(out, 0))
	end(c)
}

// betterOf returns the instructions that replace a by the better of x and it. Comparisons with NaN
// and of zeros leave a, which is never NaN.
func betterOf(c *build.Context, size int, float, max bool) func(x, a reg.VecVirtual) {
	ops := map[string]func(...operand.Op){
		"min1": c.VPMINSB, "max1": c.VPMAXSB, "min2": c.VPMINSW, "max2": c.VPMAXSW, "min4": c.VPMINSD, "max4": c.VPMAXSD,
		"minFloat4": c.VMINPS, "maxFloat4": c.VMAXPS, "minFloat8": c.VMINPD, "maxFloat8": c.VMAXPD,
	}
	name := map[bool]string{false: "min", true: "max"}[max] + map[bool]string{true: "Float"}[float]
	if op, ok := ops[fmt.Sprintf("%s%d", name, size)]; ok {
		return func(x, a reg.VecVirtual) { op(a, x, a) }
	}
	return func(x, a reg.VecVirtual) {
		t := c.YMM()
		if max {
			c.VPCMPGTQ(a, x, t) // x > a
		} else {
			c.VPCMPGTQ(x, a, t)
		}
		c.VBLENDVPD(t, x, a, a)
	}
}
