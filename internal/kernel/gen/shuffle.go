package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// 256 elements of w bytes are a matrix of 32 rows by 8w columns of bytes: row r, column
// m*w+k is byte k of element 8r+m. Transposed, a column is one register, and the eight
// registers of one k hold a matrix of 8 by 8 bits at each byte, which three rounds of
// swaps between registers transpose: then register i is plane 8k+i.

const (
	rowsPerStep = 32
	maxScratch  = 8 * 16 * rowsPerStep // of elements of 16 bytes
)

// shuffle writes the kernels of the bit transposition.
func shuffle(c *build.Context) {
	shuffleWide(c)
	unshuffleWide(c)
	shuffleBytes(c)
	unshuffleBytes(c)
}

// swapMasks loads the masks of the three rounds.
func swapMasks(c *build.Context) (masks [3]reg.VecVirtual) {
	m := c.GP64()
	for i, bits := range []uint64{0x0f0f0f0f0f0f0f0f, 0x3333333333333333, 0x5555555555555555} {
		x := c.XMM()
		masks[i] = c.YMM()
		c.MOVQ(operand.U64(bits), m)
		c.VMOVQ(m, x)
		c.VPBROADCASTQ(x, masks[i])
	}
	return masks
}

// transposeBits transposes the bits at each byte of eight registers.
func transposeBits(c *build.Context, r *[8]reg.VecVirtual, masks [3]reg.VecVirtual) {
	t := c.YMM()
	for round, by := range []int{4, 2, 1} {
		for i := range r {
			if i&by != 0 {
				continue
			}
			a, b, shift := r[i], r[i+by], operand.U8(by)
			c.VPSRLQ(shift, a, t)
			c.VPXOR(b, t, t)
			c.VPAND(masks[round], t, t)
			c.VPXOR(b, t, b)
			c.VPSLLQ(shift, t, t)
			c.VPXOR(a, t, a)
		}
	}
}

// interleave replaces r[i] and r[i+by] by the interleaved low and high halves of their lanes.
func interleave(c *build.Context, r []reg.VecVirtual, i, by int) {
	lo := c.YMM()
	c.VPUNPCKLBW(r[i+by], r[i], lo)
	c.VPUNPCKHBW(r[i+by], r[i], r[i+by])
	r[i] = lo
}

// interleaveAll does the rounds of interleaving in which the pairs lie 4, 2 and 1 apart.
func interleaveAll(c *build.Context, r *[8]reg.VecVirtual) {
	for _, by := range []int{4, 2, 1} {
		for i := range r {
			if i&by == 0 {
				interleave(c, r[:], i, by)
			}
		}
	}
}

// args are the arguments of a kernel: steps of 256 elements, plane b of the transposed
// side b*stride after its start.
type args struct{ dst, src, steps, width, stride reg.GPVirtual }

func begin(c *build.Context, name, doc string) (a args) {
	c.Function(name)
	c.Pragma("noescape")
	c.Doc(doc)
	c.SignatureExpr("func(dst, src *byte, steps, width, stride int)")
	a.dst, a.src, a.steps, a.width, a.stride = c.GP64(), c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("dst"), a.dst)
	c.Load(c.Param("src"), a.src)
	c.Load(c.Param("steps"), a.steps)
	c.Load(c.Param("width"), a.width)
	c.Load(c.Param("stride"), a.stride)
	return a
}

func end(c *build.Context) {
	c.VZEROUPPER()
	c.RET()
}

func copyOf(c *build.Context, r reg.Register) reg.GPVirtual {
	n := c.GP64()
	c.MOVQ(r, n)
	return n
}

func shifted(c *build.Context, r reg.Register, log uint8) reg.GPVirtual {
	n := copyOf(c, r)
	c.SHLQ(operand.U8(log), n)
	return n
}

func at(base reg.Register, offset int) operand.Mem { return operand.Mem{Base: base, Disp: offset} }

// aligned returns the start, at a multiple of 32, of a local buffer.
func aligned(c *build.Context, size int) reg.GPVirtual {
	p := c.GP64()
	c.LEAQ(c.AllocLocal(size+32).Offset(31), p)
	c.ANDQ(operand.I8(-32), p)
	return p
}

// eight returns eight places that lie step bytes apart.
func eight(c *build.Context, base, step reg.GPVirtual) (m [8]operand.Mem) {
	step3, base4 := c.GP64(), c.GP64()
	c.LEAQ(operand.Mem{Base: step, Index: step, Scale: 2}, step3)
	c.LEAQ(operand.Mem{Base: base, Index: step, Scale: 4}, base4)
	for i, b := range []reg.GPVirtual{base, base4} {
		m[4*i] = at(b, 0)
		m[4*i+1] = operand.Mem{Base: b, Index: step, Scale: 1}
		m[4*i+2] = operand.Mem{Base: b, Index: step, Scale: 2}
		m[4*i+3] = operand.Mem{Base: b, Index: step3, Scale: 1}
	}
	return m
}

// loadTwo loads the lanes of a register from two places and moves both on.
func loadTwo(c *build.Context, low, high, step reg.GPVirtual) reg.VecVirtual {
	y := c.YMM()
	c.VBROADCASTI128(at(low, 0), y)
	c.VINSERTI128(operand.U8(1), at(high, 0), y, y)
	c.ADDQ(step, low)
	c.ADDQ(step, high)
	return y
}

// storeTwo stores the lanes of a register at two places and moves both on.
func storeTwo(c *build.Context, y reg.VecVirtual, low, high, step reg.GPVirtual) {
	c.VMOVDQU(y.AsX(), at(low, 0))
	c.VEXTRACTI128(operand.U8(1), y, at(high, 0))
	c.ADDQ(step, low)
	c.ADDQ(step, high)
}

func shuffleWide(c *build.Context) {
	a := begin(c, "shuffleWide", "shuffleWide transposes steps of 256 elements of width 2, 4, 8 or 16.")
	scratch := aligned(c, maxScratch+8*32)
	masks := swapMasks(c)
	row := shifted(c, a.width, 3)

	c.Label("step")
	col := c.GP64()
	c.XORQ(col, col)
	c.Label("columns") // 16 of them; the lanes of a register are 16 rows apart
	row8 := shifted(c, row, 3)
	low, high := c.GP64(), c.GP64()
	c.LEAQ(operand.Mem{Base: a.src, Index: col, Scale: 1}, low)
	c.LEAQ(operand.Mem{Base: low, Index: row8, Scale: 2}, high)
	low8, high8 := c.GP64(), c.GP64()
	c.LEAQ(operand.Mem{Base: low, Index: row8, Scale: 1}, low8)
	c.LEAQ(operand.Mem{Base: high, Index: row8, Scale: 1}, high8)
	var r [8]reg.VecVirtual
	for i := range r {
		x, y := loadTwo(c, low, high, row), loadTwo(c, low8, high8, row)
		r[i] = c.YMM()
		c.VPUNPCKLBW(y, x, r[i])
		c.VPUNPCKHBW(y, x, y)
		c.VMOVDQU(y, at(scratch, maxScratch+32*i))
	}
	out := shifted(c, col, 5)
	c.ADDQ(scratch, out)
	for half := range 2 {
		if half == 1 {
			for i := range r {
				r[i] = c.YMM()
				c.VMOVDQU(at(scratch, maxScratch+32*i), r[i])
			}
		}
		interleaveAll(c, &r)
		for i := range r {
			c.VMOVDQU(r[i], at(out, 256*half+32*i))
		}
	}
	c.ADDQ(operand.U8(16), col)
	c.CMPQ(col, row)
	c.JLT(operand.LabelRef("columns"))

	in, out, column, left := copyOf(c, scratch), copyOf(c, a.dst), shifted(c, a.width, 5), copyOf(c, a.width)
	c.Label("planes") // the eight of one byte of the elements
	for i, m := range eight(c, in, column) {
		r[i] = c.YMM()
		c.VMOVDQU(m, r[i])
	}
	transposeBits(c, &r, masks)
	for i, m := range eight(c, out, a.stride) {
		c.VMOVDQU(r[i], m)
	}
	c.LEAQ(operand.Mem{Base: out, Index: a.stride, Scale: 8}, out)
	c.ADDQ(operand.U8(32), in)
	c.DECQ(left)
	c.JNZ(operand.LabelRef("planes"))

	c.SHLQ(operand.U8(5), row)
	c.ADDQ(row, a.src)
	c.SHRQ(operand.U8(5), row)
	c.ADDQ(operand.U8(32), a.dst)
	c.DECQ(a.steps)
	c.JNZ(operand.LabelRef("step"))
	end(c)
}

func unshuffleWide(c *build.Context) {
	a := begin(c, "unshuffleWide", "unshuffleWide is the inverse of shuffleWide.")
	scratch := aligned(c, maxScratch)
	masks := swapMasks(c)
	row := shifted(c, a.width, 3)

	c.Label("step")
	var r [8]reg.VecVirtual
	in, out, column, left := copyOf(c, a.src), copyOf(c, scratch), shifted(c, a.width, 5), copyOf(c, a.width)
	c.Label("planes")
	for i, m := range eight(c, in, a.stride) {
		r[i] = c.YMM()
		c.VMOVDQU(m, r[i])
	}
	transposeBits(c, &r, masks)
	for i, m := range eight(c, out, column) {
		c.VMOVDQU(r[i], m)
	}
	c.LEAQ(operand.Mem{Base: in, Index: a.stride, Scale: 8}, in)
	c.ADDQ(operand.U8(32), out)
	c.DECQ(left)
	c.JNZ(operand.LabelRef("planes"))

	col := c.GP64()
	c.XORQ(col, col)
	c.Label("columns")
	low, high := c.GP64(), shifted(c, row, 4)
	c.LEAQ(operand.Mem{Base: a.dst, Index: col, Scale: 1}, low)
	c.ADDQ(low, high)
	in = shifted(c, col, 5)
	c.ADDQ(scratch, in)
	for half := range 2 {
		for i := range r {
			r[i] = c.YMM()
			c.VMOVDQU(at(in, 32*i), r[i])
			if half == 0 {
				c.VPUNPCKLBW(at(in, 32*(i+8)), r[i], r[i])
			} else {
				c.VPUNPCKHBW(at(in, 32*(i+8)), r[i], r[i])
			}
		}
		interleaveAll(c, &r)
		for i := range r {
			storeTwo(c, r[i], low, high, row)
		}
	}
	c.ADDQ(operand.U8(16), col)
	c.CMPQ(col, row)
	c.JLT(operand.LabelRef("columns"))

	c.SHLQ(operand.U8(5), row)
	c.ADDQ(row, a.dst)
	c.SHRQ(operand.U8(5), row)
	c.ADDQ(operand.U8(32), a.src)
	c.DECQ(a.steps)
	c.JNZ(operand.LabelRef("step"))
	end(c)
}

// A step of bytes is 32 rows of eight, two of them to a lane: register i has rows 2i and 2i+1
// and, in its other lane, those 16 further on.

func shuffleBytes(c *build.Context) {
	a := begin(c, "shuffleBytes", "shuffleBytes transposes steps of 256 elements of width 1.")
	masks := swapMasks(c)
	c.Label("step")
	var r, column [8]reg.VecVirtual
	for i := range r {
		r[i] = c.YMM()
		c.VBROADCASTI128(at(a.src, 16*i), r[i])
		c.VINSERTI128(operand.U8(1), at(a.src, 128+16*i), r[i], r[i])
	}
	interleaveAll(c, &r)
	for i := range 4 { // the lowest bit of the row is where the highest of the column will be
		interleave(c, r[:], i, 4)
	}
	for i := range r {
		column[i&3<<1|i>>2] = r[i]
	}
	transposeBits(c, &column, masks)
	for i, m := range eight(c, a.dst, a.stride) {
		c.VMOVDQU(column[i], m)
	}
	c.ADDQ(operand.U32(256), a.src)
	c.ADDQ(operand.U8(32), a.dst)
	c.DECQ(a.steps)
	c.JNZ(operand.LabelRef("step"))
	end(c)
}

func unshuffleBytes(c *build.Context) {
	a := begin(c, "unshuffleBytes", "unshuffleBytes is the inverse of shuffleBytes.")
	masks := swapMasks(c)
	c.Label("step")
	var r [8]reg.VecVirtual
	for i, m := range eight(c, a.src, a.stride) {
		r[i] = c.YMM()
		c.VMOVDQU(m, r[i])
	}
	transposeBits(c, &r, masks)
	interleaveAll(c, &r)
	for i := range r {
		c.VMOVDQU(r[i].AsX(), at(a.dst, 16*i))
		c.VEXTRACTI128(operand.U8(1), r[i], at(a.dst, 128+16*i))
	}
	c.ADDQ(operand.U32(256), a.dst)
	c.ADDQ(operand.U8(32), a.src)
	c.DECQ(a.steps)
	c.JNZ(operand.LabelRef("step"))
	end(c)
}
