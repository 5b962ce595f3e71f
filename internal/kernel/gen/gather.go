package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// gather writes the kernels that look up words by number. The instructions that gather are
// not used: where processors are guarded against leaks through them they are slower than
// loads one by one.
func gather(c *build.Context) {
	for _, size := range []int{1, 2, 4, 8, 16} {
		gatherKernel(c, size)
	}
}

func gatherKernel(c *build.Context, size int) {
	name := fmt.Sprintf("gather%d", 8*size)
	c.Function(name)
	c.Pragma("noescape")
	c.Doc(name + " copies the word of each code, so many blocks of eight.")
	c.SignatureExpr("func(dst, words *uint8, codes *uint16, blocks int)")
	dst, words, codes, blocks := c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("dst"), dst)
	c.Load(c.Param("words"), words)
	c.Load(c.Param("codes"), codes)
	c.Load(c.Param("blocks"), blocks)
	c.Label("block")
	for i := range 8 {
		code, to := c.GP64(), at(dst, size*i)
		c.MOVWLZX(at(codes, 2*i), code.As32())
		from := operand.Mem{Base: words, Index: code, Scale: uint8(size)}
		switch size {
		case 1:
			c.MOVBLZX(from, code.As32())
			c.MOVB(code.As8(), to)
		case 2:
			c.MOVWLZX(from, code.As32())
			c.MOVW(code.As16(), to)
		case 4:
			c.MOVL(from, code.As32())
			c.MOVL(code.As32(), to)
		case 8:
			c.MOVQ(from, code)
			c.MOVQ(code, to)
		default:
			x := c.XMM()
			c.SHLQ(operand.U8(4), code)
			c.VMOVDQU(operand.Mem{Base: words, Index: code, Scale: 1}, x)
			c.VMOVDQU(x, to)
		}
	}
	c.ADDQ(operand.U8(16), codes)
	c.ADDQ(operand.U32(8*size), dst)
	c.DECQ(blocks)
	c.JNZ(operand.LabelRef("block"))
	c.RET()
}
