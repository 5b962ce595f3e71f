package kernel

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// numberAt reads a packed number bit by bit.
func numberAt(src []byte, width, i int) (n uint64) {
	for b := range width {
		bit := i*width + b
		n |= uint64(src[bit/8]>>(bit%8)&1) << b
	}
	return n
}

func checkUnpack[T Unsigned](t *testing.T, src []byte, n, width int, step, least T) {
	t.Helper()
	for name, f := range map[string]func(dst []T, src []byte, width int, step, least T){"fast": Unpack[T], "go": unpackRest[T]} {
		got := newGuarded[T](n)
		f(got.vals, slices.Clip(src), width, step, least)
		got.check(t)
		for i, x := range got.vals {
			if want := least + step*T(numberAt(src, width, i)); x != want {
				t.Fatalf("%s: %T: number %d of %d, %d bits, step %d, least %d: %d, want %d", name, x, i, n, width, step, least, x, want)
			}
		}
	}
}

func checkPrefixSum[T Unsigned](t *testing.T, vals []T, base T) {
	t.Helper()
	for name, f := range map[string]func(vals []T, base T){"fast": PrefixSum[T], "go": prefixSum[T]} {
		got := guardedCopy(vals)
		f(got.vals, base)
		got.check(t)
		sum := new(big.Int).SetUint64(uint64(base))
		for i, x := range got.vals {
			sum.Add(sum, new(big.Int).SetUint64(uint64(vals[i])))
			if want := T(new(big.Int).And(sum, big.NewInt(0).SetUint64(1<<63|(1<<63-1))).Uint64()); x != want {
				t.Fatalf("%s: %T: sum %d of %d: %d, want %d", name, x, i, len(vals), x, want)
			}
		}
	}
}

// checkNumbers unpacks src at a width to every type, with spare bytes after the numbers, and sums it up.
func checkNumbers(t *testing.T, src []byte, width, spare int, step, least uint64) {
	t.Helper()
	if width > maxPacked {
		width = 64
	}
	n := 70
	if width > 0 {
		n = max(len(src)-spare, 0) * 8 / width
	}
	checkUnpack(t, src, n, width, step, least)
	checkUnpack(t, src, n, width, uint32(step), uint32(least))
	checkUnpack(t, src, n, width, uint16(step), uint16(least))
	checkUnpack(t, src, n, width, uint8(step), uint8(least))
	checkPrefixSum(t, viewOf[uint64](src), least)
	checkPrefixSum(t, viewOf[uint32](src), uint32(least))
	checkPrefixSum(t, viewOf[uint16](src), uint16(least))
}

const maxPacked = 56

func TestUnpack(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for width := range maxPacked + 2 {
		for _, n := range []int{0, 1, 7, 8, 31, 32, 33, 63, 100, 256, 1000} {
			for _, spare := range []int{0, 5, 40} {
				src := randomBytes(r, (n*width+7)/8+spare)
				checkNumbers(t, src, width, spare, 1, 0)
				checkNumbers(t, src, width, spare, 1, r.Uint64())
				checkNumbers(t, src, width, spare, r.Uint64()>>r.IntN(64), r.Uint64())
			}
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef0123456789abcdef"), uint8(11), uint8(3), uint64(1000), uint64(1<<40))
	f.Fuzz(func(t *testing.T, src []byte, width, spare uint8, step, least uint64) {
		checkNumbers(t, src, int(width)%(maxPacked+2), int(spare)%64, step, least)
	})
}

func benchUnpack[T Unsigned](b *testing.B, width int, step T) {
	const n = 1024
	src, dst := randomBytes(rand.New(rand.NewPCG(1, 2)), n*width/8+32), make([]T, n)
	benchTwins(b, fmt.Sprintf("%T/width=%d/step=%d", step, width, step), n, int(unsafe.Sizeof(step)),
		func() { Unpack(dst, src, width, step, 7) }, func() { unpackRest(dst, src, width, step, 7) })
}

func BenchmarkUnpack(b *testing.B) {
	for _, width := range []int{1, 7, 10, 20} {
		benchUnpack[uint64](b, width, 1)
	}
	benchUnpack[uint64](b, 20, 10)
	benchUnpack[uint64](b, 45, 1)
	benchUnpack[uint64](b, 45, 10)
	benchUnpack[uint32](b, 10, 1)
	benchUnpack[uint16](b, 10, 1)
	benchUnpack[uint8](b, 7, 1)
}

func BenchmarkPrefixSum(b *testing.B) {
	long, short := make([]uint64, benchRows), make([]uint32, benchRows)
	benchTwins(b, "uint64", benchRows, 8, func() { PrefixSum(long, 1) }, func() { prefixSum(long, 1) })
	benchTwins(b, "uint32", benchRows, 4, func() { PrefixSum(short, 1) }, func() { prefixSum(short, 1) })
}
