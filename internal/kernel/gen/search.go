package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// search writes the kernel that finds where a text may begin: where its first byte and, so many bytes
// further on, its last one stand (after Muła, "SIMD-friendly algorithms for substring
// searching", 2016).
func search(c *build.Context) {
	c.Function("candidates64")
	c.Pragma("noescape")
	c.Doc("candidates64 sets the bits of 64 places a word where first stands and last gap bytes further on.")
	c.SignatureExpr("func(data *uint8, words, gap int, first, last uint64, out *uint64)")
	data, words, gap, out := c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("data"), data)
	c.Load(c.Param("words"), words)
	c.Load(c.Param("gap"), gap)
	c.Load(c.Param("out"), out)
	first, last := broadcast(c, "first", c.VPBROADCASTB), broadcast(c, "last", c.VPBROADCASTB)
	p := newPacker(c, 1)
	hit := c.GP64()
	c.Label("word")
	p.collect(hit, func(i int) reg.VecVirtual {
		x, y := c.YMM(), c.YMM()
		c.VPCMPEQB(at(data, 32*i), first, x)
		c.VPCMPEQB(operand.Mem{Base: data, Index: gap, Scale: 1, Disp: 32 * i}, last, y)
		c.VPAND(y, x, x)
		return x
	})
	c.MOVQ(hit, at(out, 0))
	c.ADDQ(operand.U8(64), data)
	c.ADDQ(operand.U8(8), out)
	c.DECQ(words)
	c.JNZ(operand.LabelRef("word"))
	end(c)
}
