package kernel

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func selected(sel []uint64, i int) bool { return sel[i/64]>>(i%64)&1 != 0 }

func checkSumSmall[T Signed](t *testing.T, vals []T, sel []uint64) {
	t.Helper()
	var want int64
	for i, x := range vals {
		if selected(sel, i) {
			want += int64(x)
		}
	}
	if fast, portable := SumSmall(vals, sel), sumSmall(vals, sel); fast != want || portable != want {
		t.Fatalf("%T: sum of %d: fast %d, go %d, want %d", vals, len(vals), fast, portable, want)
	}
}

func checkSumInt64(t *testing.T, vals []int64, sel []uint64) {
	t.Helper()
	want := new(big.Int)
	for i, x := range vals {
		if selected(sel, i) {
			want.Add(want, big.NewInt(x))
		}
	}
	for name, f := range map[string]func(vals []int64, sel []uint64) (int64, uint64){"fast": SumInt64, "go": sumInt64} {
		hi, lo := f(vals, sel)
		got := new(big.Int).Lsh(big.NewInt(hi), 64)
		if got.Add(got, new(big.Int).SetUint64(lo)); got.Cmp(want) != 0 {
			t.Fatalf("%s: sum of %d: %d, want %d", name, len(vals), got, want)
		}
	}
}

func checkSumFloat[T float32 | float64](t *testing.T, vals []T, sel []uint64) {
	t.Helper()
	var want [16]float64
	for w := range sel {
		for i := min(w*64+64, len(vals)) - 1; i >= w*64; i-- {
			if selected(sel, i) {
				want[i%16] += float64(vals[i])
			}
		}
	}
	var l floatLanes
	sumFloat(&l, vals, sel)
	for name, got := range map[string]float64{"fast": SumFloat(vals, sel), "go": l.sum()} {
		want := (*floatLanes)(&want).sum()
		if math.Float64bits(got) != math.Float64bits(want) && !(got != got && want != want) {
			t.Fatalf("%s: %T: sum of %d: %x, want %x", name, vals, len(vals), got, want)
		}
	}
}

func checkExtremes[T Number](t *testing.T, vals []T, sel []uint64, best T) {
	t.Helper()
	least, greatest := best, best
	for i, x := range vals {
		if selected(sel, i) && x < least {
			least = x
		}
		if selected(sel, i) && x > greatest {
			greatest = x
		}
	}
	if fast, portable := Min(best, vals, sel), minValue(best, vals, sel); fast != least || portable != least {
		t.Fatalf("%T: least of %d and %v: fast %v, go %v, want %v", best, len(vals), best, fast, portable, least)
	}
	if fast, portable := Max(best, vals, sel), maxValue(best, vals, sel); fast != greatest || portable != greatest {
		t.Fatalf("%T: greatest of %d and %v: fast %v, go %v, want %v", best, len(vals), best, fast, portable, greatest)
	}
}

// Without a selection all values count.
func TestExtremesOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 34))
	for _, n := range []int{0, 1, 63, 64, 65, partRows, partRows + 64, 2*partRows + 100} {
		vals := viewOf[int64](randomBytes(r, 8*n))
		least, greatest := int64(0), int64(0)
		for _, x := range vals {
			least, greatest = min(least, x), max(greatest, x)
		}
		if Min(0, vals, nil) != least || Max(0, vals, nil) != greatest {
			t.Fatalf("%d values: %d to %d, want %d to %d", n, Min(0, vals, nil), Max(0, vals, nil), least, greatest)
		}
	}
}

// checkAggregate views bytes as values of every type; sel is repeated and cut to their number.
func checkAggregate(t *testing.T, raw []byte, pattern []uint64) {
	t.Helper()
	sel := func(n int) []uint64 {
		s := make([]uint64, (n+63)/64)
		for i := range s {
			s[i] = pattern[i%len(pattern)]
		}
		if n%64 != 0 {
			s[n/64] &= 1<<(n%64) - 1
		}
		return s
	}
	i8, i16, i32, i64 := viewOf[int8](raw), viewOf[int16](raw), viewOf[int32](raw), viewOf[int64](raw)
	f32, f64 := viewOf[float32](raw), viewOf[float64](raw)
	s8, s16, s32, s64 := sel(len(i8)), sel(len(i16)), sel(len(i32)), sel(len(i64))
	checkSumSmall(t, i8, s8)
	checkSumSmall(t, i16, s16)
	checkSumSmall(t, i32, s32)
	checkSumInt64(t, i64, s64)
	checkSumFloat(t, f32, s32)
	checkSumFloat(t, f64, s64)
	for _, far := range []float64{0, 1, -1} { // best at first: among the values, or at either end
		checkExtremes(t, i8, s8, int8(127*far))
		checkExtremes(t, i16, s16, int16(math.MaxInt16*far))
		checkExtremes(t, i32, s32, int32(math.MaxInt32*far))
		checkExtremes(t, i64, s64, int64(1<<62*far))
		checkExtremes(t, f32, s32, float32(math.MaxFloat32*far))
		checkExtremes(t, f64, s64, math.MaxFloat64*far)
	}
}

func TestAggregate(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for _, n := range []int{0, 1, 8, 63, 64, 65, 511, 512, 513, 1024, 4096, 5000} {
		raw := randomBytes(r, n)
		for _, pattern := range [][]uint64{{0}, {math.MaxUint64}, {1}, {1 << 63}, {0x8000000080000001, 0, math.MaxUint64},
			{r.Uint64(), r.Uint64(), math.MaxUint64, r.Uint64()}} {
			checkAggregate(t, raw, pattern)
		}
		for i := range raw { // extreme values, and NaN
			raw[i] = []byte{0xff, 0x80, 0x7f, 0}[i/8%4]
		}
		checkAggregate(t, raw, []uint64{math.MaxUint64, r.Uint64()})
	}
}

func FuzzAggregate(f *testing.F) {
	f.Add([]byte("0123456789abcdef\xff\x80\x7f\x00"), uint64(math.MaxUint64), uint64(3))
	f.Fuzz(func(t *testing.T, raw []byte, a, b uint64) { checkAggregate(t, raw, []uint64{a, b}) })
}

// sink keeps results of benchmarks.
var sink any

func benchExtreme[T Number](b *testing.B, vals []T, sel []uint64, name string) {
	size := int(unsafe.Sizeof(vals[0]))
	benchTwins(b, fmt.Sprintf("min-%T/%s", vals[0], name), benchRows, size,
		func() { sink = Min(vals[0], vals, sel) }, func() { sink = minValue(vals[0], vals, sel) })
}

func BenchmarkAggregate(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	i8, i16, i32, i64 := make([]int8, benchRows), make([]int16, benchRows), make([]int32, benchRows), make([]int64, benchRows)
	f32, f64 := make([]float32, benchRows), make([]float64, benchRows)
	all, half, few := make([]uint64, benchRows/64), make([]uint64, benchRows/64), make([]uint64, benchRows/64)
	for i := range i64 {
		i8[i], i16[i], i32[i], i64[i], f32[i], f64[i] = int8(r.Uint32()), int16(r.Uint32()), int32(r.Uint32()), r.Int64(), r.Float32(), r.Float64()
	}
	for i := range all {
		all[i], half[i] = math.MaxUint64, r.Uint64()
		for range 3 {
			few[i] |= 1 << r.IntN(64) >> r.IntN(9) // none in some words
		}
	}
	for name, sel := range map[string][]uint64{"all": all, "half": half, "few": few} {
		benchTwins(b, "sum-int8/"+name, benchRows, 1, func() { sink = SumSmall(i8, sel) }, func() { sink = sumSmall(i8, sel) })
		benchTwins(b, "sum-int16/"+name, benchRows, 2, func() { sink = SumSmall(i16, sel) }, func() { sink = sumSmall(i16, sel) })
		benchTwins(b, "sum-int32/"+name, benchRows, 4, func() { sink = SumSmall(i32, sel) }, func() { sink = sumSmall(i32, sel) })
		benchTwins(b, "sum-int64/"+name, benchRows, 8, func() { sink, _ = SumInt64(i64, sel) }, func() { sink, _ = sumInt64(i64, sel) })
		benchTwins(b, "sum-float32/"+name, benchRows, 4, func() { sink = SumFloat(f32, sel) }, func() {
			var l floatLanes
			sumFloat(&l, f32, sel)
			sink = l.sum()
		})
		benchTwins(b, "sum-float64/"+name, benchRows, 8, func() { sink = SumFloat(f64, sel) }, func() {
			var l floatLanes
			sumFloat(&l, f64, sel)
			sink = l.sum()
		})
		benchExtreme(b, i8, sel, name)
		benchExtreme(b, i16, sel, name)
		benchExtreme(b, i32, sel, name)
		benchExtreme(b, i64, sel, name)
		benchExtreme(b, f32, sel, name)
		benchExtreme(b, f64, sel, name)
	}
}
