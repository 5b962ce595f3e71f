package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// search writes the kernel that finds where a text may be: where three bytes of it stand, so many
// bytes from the first to the second and to the third (after Muła, "SIMD-friendly algorithms for
// substring searching", 2016, where they are the first and the last one).
func search(c *build.Context) {
	c.Function("candidates64")
	c.Pragma("noescape")
	c.Doc("candidates64 sets the bits of 64 places a word where x stands, y so many bytes further on and z as well.")
	c.SignatureExpr("func(data *uint8, words, toY, toZ int, x, y, z uint64, out *uint64)")
	data, words, toY, toZ, out := c.GP64(), c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("data"), data)
	c.Load(c.Param("words"), words)
	c.Load(c.Param("toY"), toY)
	c.Load(c.Param("toZ"), toZ)
	c.Load(c.Param("out"), out)
	wantX, wantY, wantZ := broadcast(c, "x", c.VPBROADCASTB), broadcast(c, "y", c.VPBROADCASTB), broadcast(c, "z", c.VPBROADCASTB)
	p := newPacker(c, 1)
	hit := c.GP64()
	c.Label("word")
	p.collect(hit, func(i int) reg.VecVirtual {
		x, y, z := c.YMM(), c.YMM(), c.YMM()
		c.VPCMPEQB(at(data, 32*i), wantX, x)
		c.VPCMPEQB(operand.Mem{Base: data, Index: toY, Scale: 1, Disp: 32 * i}, wantY, y)
		c.VPCMPEQB(operand.Mem{Base: data, Index: toZ, Scale: 1, Disp: 32 * i}, wantZ, z)
		c.VPAND(y, x, x)
		c.VPAND(z, x, x)
		return x
	})
	c.MOVQ(hit, at(out, 0))
	c.ADDQ(operand.U8(64), data)
	c.ADDQ(operand.U8(8), out)
	c.DECQ(words)
	c.JNZ(operand.LabelRef("word"))
	end(c)
}
