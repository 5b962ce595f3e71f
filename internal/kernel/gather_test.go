package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// checkGather views raw as words, of which there are at most n, and looks codes up.
func checkGather[T comparable](t *testing.T, raw []byte, n int, codes []uint16) {
	t.Helper()
	words := viewOf[T](raw)
	words = slices.Clip(words[:min(n, len(words))])
	good := 0
	var want []T
	for good < len(codes) && int(codes[good]) < len(words) {
		want = append(want, words[codes[good]])
		good++
	}
	for name, f := range map[string]func(dst, words []T, codes []uint16) int{"fast": Gather[T], "go": gather[T]} {
		got := newGuarded[T](len(codes))
		if k := f(got.vals, words, codes); k != good || !slices.Equal(got.vals[:good], want) {
			t.Fatalf("%s: %d codes into %d words: %d good, want %d", name, len(codes), len(words), k, good)
		}
		got.check(t)
	}
}

func checkGathers(t *testing.T, raw []byte, codes []uint16) {
	t.Helper()
	for _, n := range []int{0, 1, 5, 4096} {
		below := slices.Clone(codes)
		for i := range below {
			below[i] %= uint16(max(1, min(n, len(raw)/16)))
		}
		for _, codes := range [][]uint16{codes, below} {
			checkGather[uint8](t, raw, n, codes)
			checkGather[uint16](t, raw, n, codes)
			checkGather[uint32](t, raw, n, codes)
			checkGather[uint64](t, raw, n, codes)
			checkGather[[2]uint64](t, raw, n, codes)
		}
	}
}

func TestGather(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 72))
	for _, n := range []int{0, 1, 7, 8, 9, 64, 1000} {
		codes := viewOf[uint16](randomBytes(r, 2*n))
		checkGathers(t, randomBytes(r, 16*5000), codes)
		for i := range codes {
			codes[i] %= 4097
		}
		checkGathers(t, randomBytes(r, 16*5000), codes)
	}
}

func benchGather[T any](b *testing.B, codes []uint16) {
	words, dst := make([]T, 1000), make([]T, len(codes))
	size := int(unsafe.Sizeof(dst[0]))
	benchTwins(b, fmt.Sprintf("%T", dst[0]), len(codes), size, func() { Gather(dst, words, codes) }, func() { gather(dst, words, codes) })
}

func BenchmarkGather(b *testing.B) {
	r, codes := rand.New(rand.NewPCG(1, 2)), make([]uint16, benchRows)
	for i := range codes {
		codes[i] = uint16(r.IntN(1000))
	}
	benchGather[uint8](b, codes)
	benchGather[uint16](b, codes)
	benchGather[uint32](b, codes)
	benchGather[uint64](b, codes)
	benchGather[[2]uint64](b, codes)
}
