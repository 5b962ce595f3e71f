package vector

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawBits(t *rapid.T, n int) (Bitmap, []bool) {
	b, model := NewBitmap(n), make([]bool, n)
	for i := range model {
		model[i] = rapid.Bool().Draw(t, "bit")
		b.Put(i, model[i])
	}
	return b, model
}

func drawRange(t *rapid.T, n int) (from, to int) {
	from = rapid.IntRange(0, n).Draw(t, "from")
	return from, rapid.IntRange(from, n).Draw(t, "to")
}

func TestBitmapAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 63, 64, 65, 200}).Draw(t, "n")
		b, model := drawBits(t, n)
		other, otherModel := drawBits(t, n)
		set := func(f func(i int) bool) {
			for i := range model {
				model[i] = f(i)
			}
		}
		from, to := drawRange(t, n)
		inside := func(i int) bool { return i >= from && i < to }
		switch rapid.SampledFrom([]string{"set", "clear", "and", "andnot", "or", "copy", "copy self-sized"}).Draw(t, "op") {
		case "set":
			b.SetRange(from, to)
			set(func(i int) bool { return model[i] || inside(i) })
		case "clear":
			b.ClearRange(from, to)
			set(func(i int) bool { return model[i] && !inside(i) })
		case "and":
			b.And(other)
			set(func(i int) bool { return model[i] && otherModel[i] })
		case "andnot":
			b.AndNot(other)
			set(func(i int) bool { return model[i] && !otherModel[i] })
		case "or":
			b.Or(other)
			set(func(i int) bool { return model[i] || otherModel[i] })
		default:
			at := rapid.IntRange(0, n-(to-from)).Draw(t, "at")
			b.CopyRange(at, other, from, to-from)
			copy(model[at:], otherModel[from:to])
		}
		var indexes []int32
		count := 0
		for i, bit := range model {
			if b.Get(i) != bit {
				t.Fatalf("bit %d is %v", i, b.Get(i))
			}
			if bit {
				indexes = append(indexes, int32(i))
				if inside(i) {
					count++
				}
			}
		}
		if got := b.AppendIndexes(nil); !slices.Equal(got, indexes) || b.Count() != len(indexes) || b.Any() != (len(indexes) > 0) {
			t.Fatalf("indexes %v, want %v", got, indexes)
		}
		if got := b.CountRange(from, to); got != count {
			t.Fatalf("%d bits in [%d, %d), want %d", got, from, to, count)
		}
		next := slices.Index(model[from:], true)
		if next >= 0 {
			next += from
		}
		if got := b.Next(from); got != next {
			t.Fatalf("next after %d is %d, want %d", from, got, next)
		}
		if grown := b.Grow(n / 2); grown.Any() || len(grown) != Words(n/2) {
			t.Fatalf("grow kept bits")
		}
	})
}
