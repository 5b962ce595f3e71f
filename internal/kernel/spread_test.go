package kernel

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// checkSpread spreads as many of the values as valid has bits set over all of them.
func checkSpread[T comparable](t *testing.T, vals []T, valid []uint64) {
	t.Helper()
	want, k := make([]T, len(vals)), 0
	for i := range want {
		if selected(valid, i) {
			want[i] = vals[k]
			k++
		}
	}
	for name, f := range map[string]func(vals []T, valid []uint64, k int){"fast": Spread[T], "go": spreadAll[T]} {
		got := guardedCopy(vals)
		f(got.vals, slices.Clone(valid), k)
		got.check(t)
		if !slices.Equal(got.vals, want) {
			t.Fatalf("%s: %T: %d of %d: %v, want %v", name, vals, k, len(vals), got.vals, want)
		}
	}
}

// spreadAll is the portable Spread.
func spreadAll[T any](vals []T, valid []uint64, k int) {
	whole := len(vals) / 64
	if whole < len(valid) {
		k = spreadWord(vals, valid, whole, k)
	}
	spread(vals, valid[:whole], k)
}

func checkSpreads(t *testing.T, raw []byte, pattern []uint64) {
	t.Helper()
	valid := func(n int) []uint64 {
		s := make([]uint64, (n+63)/64)
		for i := range s {
			s[i] = pattern[i%len(pattern)]
		}
		if n%64 != 0 {
			s[n/64] &= 1<<(n%64) - 1
		}
		return s
	}
	v8, v16, v32, v64, v128 := viewOf[uint8](raw), viewOf[uint16](raw), viewOf[uint32](raw), viewOf[uint64](raw), viewOf[[2]uint64](raw)
	checkSpread(t, v8, valid(len(v8)))
	checkSpread(t, v16, valid(len(v16)))
	checkSpread(t, v32, valid(len(v32)))
	checkSpread(t, v64, valid(len(v64)))
	checkSpread(t, v128, valid(len(v128)))
	for _, x := range v64 {
		for _, mask := range pattern {
			got, want := Deposit(x, mask), deposit(x, mask)
			n := bits.OnesCount64(mask)
			if got != want || bits.OnesCount64(got) != bits.OnesCount64(x&(1<<n-1)) || got&^mask != 0 {
				t.Fatalf("bits of %x at those of %x: %x, want %x", x, mask, got, want)
			}
		}
	}
}

func TestSpread(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	for _, n := range []int{0, 1, 8, 63, 64, 65, 512, 513, 640, 1024, 4096, 9000} {
		raw := randomBytes(r, n)
		for _, pattern := range [][]uint64{{0}, {fullWord}, {1}, {1 << 63}, {fullWord, fullWord, 5}, {0, fullWord, r.Uint64()},
			{r.Uint64() & r.Uint64(), r.Uint64() | r.Uint64(), fullWord &^ 1, r.Uint64()}} {
			checkSpreads(t, raw, pattern)
		}
	}
}

func FuzzSpread(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), uint64(fullWord), uint64(3))
	f.Fuzz(func(t *testing.T, raw []byte, a, b uint64) {
		checkSpreads(t, raw, []uint64{a, b})
		checkGathers(t, raw, viewOf[uint16](raw))
	})
}

func benchSpread[T any](b *testing.B, valid []uint64, name string) {
	vals, k := make([]T, benchRows), 0
	for _, w := range valid {
		k += bits.OnesCount64(w)
	}
	size := int(unsafe.Sizeof(vals[0]))
	benchTwins(b, fmt.Sprintf("%T/%s", vals[0], name), benchRows, size, func() { Spread(vals, valid, k) }, func() { spread(vals, valid, k) })
}

func BenchmarkSpread(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	half, most := make([]uint64, benchRows/64), make([]uint64, benchRows/64)
	for i := range half {
		half[i], most[i] = r.Uint64(), r.Uint64()|r.Uint64()|r.Uint64()|r.Uint64()
	}
	for name, valid := range map[string][]uint64{"half": half, "most": most} {
		benchSpread[uint8](b, valid, name)
		benchSpread[uint16](b, valid, name)
		benchSpread[uint32](b, valid, name)
		benchSpread[uint64](b, valid, name)
	}
}
