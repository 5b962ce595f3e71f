package vector

import (
	"bytes"
	"math"
	"math/bits"
	"unsafe"

	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/schema"
)

// Zone summarises a run of cells of one column: a page, or a whole file. The zero
// Zone is that of no cells.
type Zone struct {
	Rows, Nulls int64
	// Min and Max are over the cells that are neither null nor NaN; Null when there
	// are none or the bound is unknown. A zero of a float is stored as +0. Bounds of
	// bytes may be shortened: Min then sorts at or before, Max at or after every cell.
	Min, Max schema.Value
	HasNaN   bool
	// Exact is set when Min and Max are values of the column, not shortened bounds,
	// or when there is no cell that is neither null nor NaN: a bound that is Null
	// beside Exact does not exist, one beside !Exact is unknown.
	Exact bool
}

// Empty reports whether the zone is known to have no cell that is neither null nor NaN.
func (z *Zone) Empty() bool {
	return z.Nulls == z.Rows || z.Exact && z.Min.IsNull() && z.Max.IsNull()
}

// Add widens the zone by the cells of v.
func (z *Zone) Add(v *Vector) {
	if v.length == 0 {
		return
	}
	o := Zone{Rows: int64(v.length), Nulls: int64(v.NullCount()), Exact: true}
	if o.Nulls < o.Rows {
		o.bounds(v)
	}
	z.Merge(o)
}

// bounds sets Min, Max and HasNaN of a vector that has a cell that is not null.
func (z *Zone) bounds(v *Vector) {
	switch v.kind {
	case schema.KindBool:
		trues := int64(v.words.Count()) // nulls are false, by I2
		z.Min, z.Max = schema.BoolValue(trues == z.Rows-z.Nulls), schema.BoolValue(trues > 0)
	case schema.KindInt8:
		intBounds[int8](z, v)
	case schema.KindInt16:
		intBounds[int16](z, v)
	case schema.KindInt32:
		intBounds[int32](z, v)
	case schema.KindInt64:
		intBounds[int64](z, v)
	case schema.KindInt128:
		z.int128Bounds(v)
	case schema.KindFloat32:
		if lo, hi, ok := floatBounds[float32](z, v, int32(math.Float32bits(float32(math.Inf(1))))); ok {
			z.Min, z.Max = schema.Float32Value(lo), schema.Float32Value(hi)
		}
	case schema.KindFloat64:
		if lo, hi, ok := floatBounds[float64](z, v, int64(math.Float64bits(math.Inf(1)))); ok {
			z.Min, z.Max = schema.Float64Value(lo), schema.Float64Value(hi)
		}
	case schema.KindBytes:
		z.bytesBounds(v)
	}
}

// runs calls f for every maximal run of cells [from, to) without nulls in whole
// words, and for every other cell alone.
func (v *Vector) runs(f func(from, to int)) {
	if v.valid == nil {
		f(0, v.length)
		return
	}
	for w := 0; w < len(v.valid); w++ {
		if v.valid[w] == ^uint64(0) {
			start := w
			for w+1 < len(v.valid) && v.valid[w+1] == ^uint64(0) {
				w++
			}
			f(start<<6, (w+1)<<6)
			continue
		}
		for b := v.valid[w]; b != 0; {
			from := bits.TrailingZeros64(b)
			n := bits.TrailingZeros64(^(b >> from))
			f(w<<6+from, w<<6+from+n)
			b &^= (1<<n - 1) << from
		}
	}
}

// partRows is how many rows are looked at more than once before the next ones, so that they
// stay in the cache.
const partRows = 4096

// parts calls f for every part of the cells, with the bits of those that are not null, or nil for all.
func (v *Vector) parts(f func(from, to int, valid Bitmap)) {
	for from := 0; from < v.length; from += partRows {
		to := min(from+partRows, v.length)
		if v.valid == nil {
			f(from, to, nil)
		} else {
			f(from, to, v.valid[from>>6:Words(to)])
		}
	}
}

func intBounds[T int8 | int16 | int32 | int64](z *Zone, v *Vector) {
	vals := Values[T](v)
	first := vals[firstValid(v)]
	lo, hi := first, first
	v.parts(func(from, to int, valid Bitmap) {
		lo, hi = kernel.Min(lo, vals[from:to], valid), kernel.Max(hi, vals[from:to], valid)
	})
	z.Min, z.Max = schema.IntValue(v.kind, int64(lo)), schema.IntValue(v.kind, int64(hi))
}

func firstValid(v *Vector) int {
	if v.valid == nil {
		return 0
	}
	return v.valid.Next(0)
}

// floatBounds returns the bounds over the cells that are neither null nor NaN, a zero
// as +0, and false when there are none; it sets HasNaN.
func floatBounds[T float32 | float64, B int32 | int64](z *Zone, v *Vector, infinity B) (lo, hi T, ok bool) {
	vals, keys := Values[T](v), Values[B](v)
	lo, hi = T(math.Inf(1)), T(math.Inf(-1))
	least := kernel.FloatKey(infinity | -1<<(8*unsafe.Sizeof(infinity)-1))
	v.parts(func(from, to int, valid Bitmap) {
		lo, hi = kernel.Min(lo, vals[from:to], valid), kernel.Max(hi, vals[from:to], valid)
		var buf [partRows / 64]uint64
		nan := Bitmap(buf[:Words(to-from)])
		if nan.SetRange(0, to-from); valid != nil {
			copy(nan, valid)
		}
		kernel.FilterFloatSpan(nan, keys[from:to], least, uint64(infinity)-uint64(least), 0)
		z.HasNaN = z.HasNaN || nan.Any()
	})
	return lo + 0, hi + 0, lo <= hi // -0 + 0 is +0
}

func (z *Zone) int128Bounds(v *Vector) {
	vals := Values[schema.Int128](v)
	lo := vals[firstValid(v)]
	hi := lo
	v.runs(func(from, to int) {
		for _, x := range vals[from:to] {
			if x.Cmp(lo) < 0 {
				lo = x
			} else if x.Cmp(hi) > 0 {
				hi = x
			}
		}
	})
	z.Min, z.Max = schema.Int128Value(lo), schema.Int128Value(hi)
}

func (z *Zone) bytesBounds(v *Vector) {
	var lo, hi []byte
	if v.dict != nil {
		lo = v.BytesAt(firstValid(v))
		hi = lo
		for word, used := range v.usedWords() {
			if used {
				lo, hi = widen(lo, hi, v.dict.BytesAt(word))
			}
		}
	} else {
		lo = v.BytesAt(firstValid(v))
		hi = lo
		v.runs(func(from, to int) {
			for i := from; i < to; i++ {
				lo, hi = widen(lo, hi, v.data[v.offsets[i]:v.offsets[i+1]])
			}
		})
	}
	z.Min, z.Max = schema.BytesValue(lo), schema.BytesValue(hi)
}

func widen(lo, hi, b []byte) (newLo, newHi []byte) {
	if bytes.Compare(b, lo) < 0 {
		return b, hi
	}
	if bytes.Compare(b, hi) > 0 {
		return lo, b
	}
	return lo, hi
}

// usedWords says which words of a vector in dictionary form its cells use. Bytes
// rather than bits: a store need not wait for the one before.
func (v *Vector) usedWords() []bool {
	used := make([]bool, v.dict.length)
	switch v.codeLen {
	case 1:
		markCodes[uint8](used, v)
	case 2:
		markCodes[uint16](used, v)
	default:
		markCodes[uint32](used, v)
	}
	return used
}

func markCodes[T uint8 | uint16 | uint32](used []bool, v *Vector) {
	codes := Codes[T](v)
	v.runs(func(from, to int) {
		for _, c := range codes[from:to] {
			used[c] = true
		}
	})
}

// Merge widens the zone by the cells of o.
func (z *Zone) Merge(o Zone) {
	switch {
	case o.Rows == 0:
		return
	case z.Rows == 0:
		*z = o
		return
	}
	switch {
	case o.Empty():
	case z.Empty():
		z.Min, z.Max, z.Exact = o.Min, o.Max, o.Exact
	default:
		z.Min = mergeBound(z.Min, o.Min, -1)
		z.Max = mergeBound(z.Max, o.Max, 1)
		z.Exact = z.Exact && o.Exact
	}
	z.Rows += o.Rows
	z.Nulls += o.Nulls
	z.HasNaN = z.HasNaN || o.HasNaN
}

// mergeBound returns the lesser (sign -1) or greater (1) of two bounds, unknown when
// either is.
func mergeBound(a, b schema.Value, sign int) schema.Value {
	if a.IsNull() || b.IsNull() {
		return schema.Null
	}
	if a.Compare(b)*sign >= 0 {
		return a
	}
	return b
}

// Shorten cuts bounds of bytes to at most max bytes: the lower one down, the upper
// one up, or to unknown where nothing of that length is above it.
func (z *Zone) Shorten(max int) {
	if z.Min.Kind() == schema.KindBytes && len(z.Min.Str()) > max {
		z.Min, z.Exact = schema.BytesValue([]byte(z.Min.Str()[:max])), false
	}
	if z.Max.Kind() == schema.KindBytes && len(z.Max.Str()) > max {
		z.Max, z.Exact = successor(z.Max.Str()[:max]), false
	}
}

// successor returns the least value above every value that begins with the prefix,
// unknown when there is none.
func successor(prefix string) schema.Value {
	b := []byte(prefix)
	for len(b) > 0 && b[len(b)-1] == 0xff {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		return schema.Null
	}
	b[len(b)-1]++
	return schema.BytesValue(b)
}
