package aggregate

import (
	"errors"
	"math"
	"math/bits"

	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// newAccumulator returns the accumulator of an aggregate that NewPlan has checked.
func newAccumulator(s *schema.Schema, f Spec) accumulator {
	if f.Func == CountRows || f.Func == Count {
		return &counter{}
	}
	c := s.Column(f.Column)
	if f.Func == Min || f.Func == Max {
		return newExtreme(c.Kind(), f.Func == Max)
	}
	switch c.Kind() {
	case schema.KindFloat32:
		return &floatSum[float32]{avg: f.Func == Avg}
	case schema.KindFloat64:
		return &floatSum[float64]{avg: f.Func == Avg}
	}
	return &intSum{kind: c.Kind(), avg: f.Func == Avg, decimal: c.Type.IsDecimal(), scale: int(c.Scale)}
}

func newExtreme(kind schema.Kind, max bool) accumulator {
	switch kind {
	case schema.KindInt8:
		return &extreme[int8]{max: max}
	case schema.KindInt16:
		return &extreme[int16]{max: max}
	case schema.KindInt32:
		return &extreme[int32]{max: max}
	case schema.KindInt64:
		return &extreme[int64]{max: max}
	case schema.KindFloat32:
		return &extreme[float32]{max: max}
	case schema.KindFloat64:
		return &extreme[float64]{max: max}
	}
	return &valueExtreme{max: max}
}

// extended returns s with n entries.
func extended[T any](s []T, n int) []T {
	if n > len(s) {
		s = append(s, make([]T, n-len(s))...)
	}
	return s
}

// counter counts rows.
type counter struct{ n []int64 }

func (c *counter) grow(n int) { c.n = extended(c.n, n) }

func (c *counter) add(_ *vector.Vector, sel vector.Bitmap) { c.n[0] += int64(sel.Count()) }

func (c *counter) addGroups(_ *vector.Vector, sel vector.Bitmap, ids []uint32) {
	countRows(c.n, sel, ids)
}

// countRows counts the selected rows of each group.
func countRows(n []int64, sel vector.Bitmap, ids []uint32) {
	for i, w := range sel {
		for ; w != 0; w &= w - 1 {
			n[ids[i<<6+bits.TrailingZeros64(w)]]++
		}
	}
}

func (c *counter) addZone(z vector.Zone) {
	c.n[0] += z.Rows - z.Nulls
}

func (c *counter) merge(from accumulator, ids []uint32) {
	for i, n := range from.(*counter).n {
		c.n[ids[i]] += n
	}
}

func (c *counter) result(dst *vector.Vector, n int) error {
	for _, x := range c.n[:n] {
		vector.AppendFixed(dst, x)
	}
	return nil
}

// sum192 is a signed 192-bit integer in two's complement, low word first: room for
// 2**64 values of 128 bits.
type sum192 [3]uint64

func (s *sum192) add(x schema.Int128) {
	var c uint64
	s[0], c = bits.Add64(s[0], x.Lo, 0)
	s[1], c = bits.Add64(s[1], uint64(x.Hi), c)
	s[2] += uint64(x.Hi>>63) + c
}

func (s *sum192) merge(t *sum192) {
	var c uint64
	s[0], c = bits.Add64(s[0], t[0], 0)
	s[1], c = bits.Add64(s[1], t[1], c)
	s[2] += t[2] + c
}

// int128 returns the sum and whether it fits 128 bits.
func (s *sum192) int128() (schema.Int128, bool) {
	hi := int64(s[1])
	return schema.Int128{Lo: s[0], Hi: hi}, int64(s[2]) == hi>>63
}

// float returns the sum, rounded once to the nearest even.
func (s *sum192) float() float64 {
	m, sign := *s, 1.0
	if int64(m[2]) < 0 { // two's complement
		var c uint64
		sign = -1
		m[0], c = bits.Add64(^m[0], 1, 0)
		m[1], c = bits.Add64(^m[1], 0, c)
		m[2] = ^m[2] + c
	}
	if m[2] != 0 {
		return sign * roundedFloat(m[2], m[1], m[0] != 0, 128)
	}
	return sign * roundedFloat(m[1], m[0], false, 64)
}

// roundedFloat returns (hi * 2**64 + lo) * 2**(exp-64), plus something smaller than its
// last bit if more is set. Its first 64 bits, the last of which also stands for
// what lies below, round as all of them do.
func roundedFloat(hi, lo uint64, more bool, exp int) float64 {
	n := bits.LeadingZeros64(hi)
	top := hi<<n | lo>>(64-n)
	if more || lo<<n != 0 {
		top |= 1
	}
	return math.Ldexp(float64(top), exp-n)
}

// intSum is sum or avg of integers and decimals.
type intSum struct {
	kind    schema.Kind
	avg     bool
	decimal bool
	scale   int
	groups  []intGroup
}

// intGroup keeps sum and count together: they are touched together.
type intGroup struct {
	sum sum192
	n   int64
}

func (a *intSum) grow(n int) { a.groups = extended(a.groups, n) }

func (a *intSum) add(v *vector.Vector, sel vector.Bitmap) {
	g := &a.groups[0]
	g.n += int64(sel.Count())
	switch a.kind {
	case schema.KindInt8:
		g.sum.add(schema.Int128From(kernel.SumSmall(vector.Values[int8](v), sel)))
	case schema.KindInt16:
		g.sum.add(schema.Int128From(kernel.SumSmall(vector.Values[int16](v), sel)))
	case schema.KindInt32:
		g.sum.add(schema.Int128From(kernel.SumSmall(vector.Values[int32](v), sel)))
	case schema.KindInt64:
		hi, lo := kernel.SumInt64(vector.Values[int64](v), sel)
		g.sum.add(schema.Int128{Lo: lo, Hi: hi})
	default:
		vals := vector.Values[schema.Int128](v)
		eachRow(sel, func(row int) { g.sum.add(vals[row]) })
	}
}

func (a *intSum) addGroups(v *vector.Vector, sel vector.Bitmap, ids []uint32) {
	switch a.kind {
	case schema.KindInt8:
		sumGroups(a.groups, vector.Values[int8](v), sel, ids)
	case schema.KindInt16:
		sumGroups(a.groups, vector.Values[int16](v), sel, ids)
	case schema.KindInt32:
		sumGroups(a.groups, vector.Values[int32](v), sel, ids)
	case schema.KindInt64:
		sumGroups(a.groups, vector.Values[int64](v), sel, ids)
	default:
		vals := vector.Values[schema.Int128](v)
		eachRow(sel, func(row int) { a.groups[ids[row]].add(vals[row]) })
	}
}

func (g *intGroup) add(x schema.Int128) {
	g.sum.add(x)
	g.n++
}

func sumGroups[T kernel.Signed | int64](groups []intGroup, vals []T, sel vector.Bitmap, ids []uint32) {
	for i, w := range sel {
		for ; w != 0; w &= w - 1 {
			row := i<<6 + bits.TrailingZeros64(w)
			groups[ids[row]].add(schema.Int128From(int64(vals[row])))
		}
	}
}

// addZone has nothing to do: a zone never suffices for a sum, unless it holds no value.
func (a *intSum) addZone(vector.Zone) {}

func (a *intSum) merge(from accumulator, ids []uint32) {
	for i, g := range from.(*intSum).groups {
		a.groups[ids[i]].sum.merge(&g.sum)
		a.groups[ids[i]].n += g.n
	}
}

var errOverflow = errors.New("the sum overflows")

// maxDecimal is 10**38, the first number that decimal(38) does not hold.
var maxDecimal = schema.Int128{Lo: 0x98a224000000000, Hi: 0x4b3b4ca85a86c47a}

func (a *intSum) result(dst *vector.Vector, n int) error {
	for i := range a.groups[:n] {
		g := &a.groups[i]
		x, ok := g.sum.int128()
		switch {
		case g.n == 0:
			dst.AppendNull()
		case a.avg:
			mean := g.sum.float() / float64(g.n)
			vector.AppendFixed(dst, mean/math.Pow10(a.scale))
		case a.decimal:
			if !ok || x.Cmp(maxDecimal) >= 0 || x.Cmp(negated(maxDecimal)) <= 0 {
				return errOverflow
			}
			vector.AppendFixed(dst, x)
		default:
			y, fits := x.Int64()
			if !ok || !fits {
				return errOverflow
			}
			vector.AppendFixed(dst, y)
		}
	}
	return nil
}

func negated(x schema.Int128) schema.Int128 {
	lo, borrow := bits.Sub64(0, x.Lo, 0)
	return schema.Int128{Lo: lo, Hi: -x.Hi - int64(borrow)}
}

// floatSum is sum or avg of floats, in double precision.
type floatSum[T float32 | float64] struct {
	avg    bool
	groups []floatGroup
}

type floatGroup struct {
	sum float64
	n   int64
}

func (a *floatSum[T]) grow(n int) { a.groups = extended(a.groups, n) }

func (a *floatSum[T]) add(v *vector.Vector, sel vector.Bitmap) {
	a.groups[0].n += int64(sel.Count())
	a.groups[0].sum += kernel.SumFloat(vector.Values[T](v), sel)
}

func (a *floatSum[T]) addGroups(v *vector.Vector, sel vector.Bitmap, ids []uint32) {
	vals := vector.Values[T](v)
	for i, w := range sel {
		for ; w != 0; w &= w - 1 {
			row := i<<6 + bits.TrailingZeros64(w)
			g := &a.groups[ids[row]]
			g.sum += float64(vals[row])
			g.n++
		}
	}
}

// addZone has nothing to do: see intSum.
func (a *floatSum[T]) addZone(vector.Zone) {}

func (a *floatSum[T]) merge(from accumulator, ids []uint32) {
	for i, g := range from.(*floatSum[T]).groups {
		a.groups[ids[i]].sum += g.sum
		a.groups[ids[i]].n += g.n
	}
}

func (a *floatSum[T]) result(dst *vector.Vector, n int) error {
	for _, g := range a.groups[:n] {
		switch {
		case g.n == 0:
			dst.AppendNull()
		case a.avg:
			vector.AppendFixed(dst, g.sum/float64(g.n))
		default:
			vector.AppendFixed(dst, g.sum)
		}
	}
	return nil
}

// extreme is min or max of numbers.
type extreme[T kernel.Number] struct {
	max  bool
	best []T
	has  []bool
}

func (a *extreme[T]) grow(n int) { a.best, a.has = extended(a.best, n), extended(a.has, n) }

func (a *extreme[T]) add(v *vector.Vector, sel vector.Bitmap) {
	vals := vector.Values[T](v)
	if !a.has[0] {
		a.best[0], a.has[0] = firstNumber(vals, sel)
	}
	switch {
	case !a.has[0]:
	case a.max:
		a.best[0] = kernel.Max(a.best[0], vals, sel)
	default:
		a.best[0] = kernel.Min(a.best[0], vals, sel)
	}
}

func (a *extreme[T]) addGroups(v *vector.Vector, sel vector.Bitmap, ids []uint32) {
	vals := vector.Values[T](v)
	for i, w := range sel {
		for ; w != 0; w &= w - 1 {
			row := i<<6 + bits.TrailingZeros64(w)
			a.offer(ids[row], vals[row])
		}
	}
}

// offer takes one value into a group.
func (a *extreme[T]) offer(g uint32, x T) {
	switch best := a.best[g]; {
	case !a.has[g]:
		if x == x {
			a.best[g], a.has[g] = x, true
		}
	case x < best && !a.max, x > best && a.max:
		a.best[g] = x
	}
}

func (a *extreme[T]) addZone(z vector.Zone) {
	x := z.Min
	if a.max {
		x = z.Max
	}
	if x.Kind().IsFloat() {
		a.offer(0, T(x.Float()))
	} else {
		a.offer(0, T(x.Int()))
	}
}

func (a *extreme[T]) merge(from accumulator, ids []uint32) {
	b := from.(*extreme[T])
	for i, ok := range b.has {
		if ok {
			a.offer(ids[i], b.best[i])
		}
	}
}

func (a *extreme[T]) result(dst *vector.Vector, n int) error {
	for i := range n {
		if a.has[i] {
			vector.AppendFixed(dst, a.best[i]+0) // -0 becomes +0
		} else {
			dst.AppendNull()
		}
	}
	return nil
}

// valueExtreme is min or max of texts, booleans and 128-bit numbers.
type valueExtreme struct {
	max  bool
	best []schema.Value // Null where there is none yet
	used vector.Bitmap  // codes of the batch
}

func (a *valueExtreme) grow(n int) { a.best = extended(a.best, n) }

func (a *valueExtreme) add(v *vector.Vector, sel vector.Bitmap) {
	dict := v.Dict()
	if dict == nil {
		eachRow(sel, func(row int) { a.offer(0, v, row) })
		return
	}
	a.used = a.used.Grow(dict.Len())
	eachRow(sel, func(row int) { a.used.Set(v.Code(row)) })
	eachRow(a.used, func(code int) { a.offer(0, dict, code) })
}

func (a *valueExtreme) addGroups(v *vector.Vector, sel vector.Bitmap, ids []uint32) {
	eachRow(sel, func(row int) { a.offer(ids[row], v, row) })
}

// offer takes one cell into a group; texts are copied only when they win.
func (a *valueExtreme) offer(g uint32, v *vector.Vector, row int) {
	best := a.best[g]
	if v.Kind() == schema.KindBytes && !best.IsNull() {
		b := v.BytesAt(row)
		if a.max && string(b) <= best.Str() || !a.max && string(b) >= best.Str() {
			return
		}
	}
	a.offerValue(g, v.Value(row))
}

func (a *valueExtreme) offerValue(g uint32, x schema.Value) {
	best := a.best[g]
	if c := x.Compare(best); best.IsNull() || c < 0 && !a.max || c > 0 && a.max {
		a.best[g] = x
	}
}

func (a *valueExtreme) addZone(z vector.Zone) {
	if a.max {
		a.offerValue(0, z.Max)
	} else {
		a.offerValue(0, z.Min)
	}
}

func (a *valueExtreme) merge(from accumulator, ids []uint32) {
	for i, x := range from.(*valueExtreme).best {
		if !x.IsNull() {
			a.offerValue(ids[i], x)
		}
	}
}

func (a *valueExtreme) result(dst *vector.Vector, n int) error {
	for _, x := range a.best[:n] {
		if err := dst.Append(x); err != nil {
			return err
		}
	}
	return nil
}
