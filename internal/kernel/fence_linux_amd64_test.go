//go:build !purego

package kernel

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"
)

// fenced returns a copy of vals that ends, or begins, where memory ends that may be accessed.
func fenced[T any](t *testing.T, vals []T, atEnd bool) []T {
	t.Helper()
	size, page := len(vals)*int(unsafe.Sizeof(*new(T))), syscall.Getpagesize()
	inside := max(1, (size+page-1)/page) * page
	all, err := syscall.Mmap(-1, 0, inside+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	for _, outside := range [][]byte{all[:page], all[page+inside:]} {
		if err := syscall.Mprotect(outside, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	at := page
	if atEnd {
		at += inside - size
	}
	if size == 0 {
		return nil
	}
	out := unsafe.Slice((*T)(unsafe.Pointer(&all[at])), len(vals))
	copy(out, vals)
	return out
}

func fencedFixed[T Unsigned](t *testing.T, raw []byte, sel []uint64, atEnd bool) {
	vals := fenced(t, viewOf[T](raw), atEnd)
	s := fenced(t, sel[:(len(vals)+63)/64], atEnd)
	if n := len(vals) % 64; n != 0 {
		s[len(s)-1] &= 1<<n - 1
	}
	FilterSpan(s, vals, 1, T(100), fullWord)
	PrefixSum(vals, 1)
	for width := 1; width <= maxPacked; width += 5 {
		n := len(raw) * 8 / width
		Unpack(fenced(t, make([]T, n), atEnd), fenced(t, raw, atEnd), width, 3, 4)
	}
	codes := fenced(t, viewOf[uint16](raw), atEnd)
	for i := range codes {
		codes[i] %= uint16(max(1, len(vals)))
	}
	if len(vals) > 0 {
		Gather(fenced(t, make([]T, len(codes)), atEnd), vals, codes)
	}
	Spread(vals, s, ones(s))
}

func fencedNumbers[T Number](t *testing.T, raw []byte, sel []uint64, atEnd bool) {
	vals := fenced(t, viewOf[T](raw), atEnd)
	s := fenced(t, sel[:len(vals)/64], atEnd)
	vals = vals[:64*len(s)]
	Min(0, vals, s)
	Max(0, vals, s)
}

// Kernels that load more than they need must not load from outside of their arguments.
func TestNothingOutsideIsTouched(t *testing.T) {
	r := rand.New(rand.NewPCG(81, 82))
	for _, n := range []int{1, 16, 40, 130, 520, 2048, 4096, 5000} {
		raw, sel := randomBytes(r, n), make([]uint64, n)
		for i := range sel {
			sel[i] = r.Uint64() | r.Uint64()
		}
		for _, atEnd := range []bool{false, true} {
			fencedFixed[uint8](t, raw, sel, atEnd)
			fencedFixed[uint16](t, raw, sel, atEnd)
			fencedFixed[uint32](t, raw, sel, atEnd)
			fencedFixed[uint64](t, raw, sel, atEnd)
			fencedNumbers[int8](t, raw, sel, atEnd)
			fencedNumbers[int16](t, raw, sel, atEnd)
			fencedNumbers[int32](t, raw, sel, atEnd)
			fencedNumbers[int64](t, raw, sel, atEnd)
			fencedNumbers[float32](t, raw, sel, atEnd)
			fencedNumbers[float64](t, raw, sel, atEnd)
			whole := sel[:n/8/64]
			SumInt64(fenced(t, viewOf[int64](raw)[:64*len(whole)], atEnd), fenced(t, whole, atEnd))
			SumFloat(fenced(t, viewOf[float64](raw)[:64*len(whole)], atEnd), fenced(t, whole, atEnd))
			SumFloat(fenced(t, viewOf[float32](raw)[:64*len(whole)], atEnd), fenced(t, whole, atEnd))
			SumSmall(fenced(t, viewOf[int32](raw)[:64*len(whole)], atEnd), fenced(t, whole, atEnd))
			SumSmall(fenced(t, viewOf[int16](raw)[:64*len(whole)], atEnd), fenced(t, whole, atEnd))
			SumSmall(fenced(t, viewOf[int8](raw)[:64*len(whole)], atEnd), fenced(t, whole, atEnd))
			FilterTable(fenced(t, sel[:n/64], atEnd), fenced(t, raw[:n&^63], atEnd), fenced(t, make([]uint8, 256), atEnd))
			for _, w := range shuffleWidths {
				src := fenced(t, raw[:n/(8*w)*8*w], atEnd)
				Shuffle(fenced(t, src, atEnd), src, w)
				Unshuffle(fenced(t, src, atEnd), src, w)
			}
			offsets := fenced(t, cutTexts(r, raw, 50), atEnd)
			texts := fenced(t, allSelected[:(len(offsets)+62)/64], atEnd)
			if k := (len(offsets) - 1) % 64; k != 0 {
				texts[len(texts)-1] &= 1<<k - 1
			}
			FilterContains(texts, offsets, fenced(t, raw, atEnd), string(raw[max(0, n-60):]))
		}
	}
}
