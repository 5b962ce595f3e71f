package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// checkSpan compares the filters with a loop over rows.
func checkSpan[T Unsigned](t *testing.T, sel []uint64, vals []T, lo, width T, keep uint64) {
	t.Helper()
	want := slices.Clone(sel)
	for i := range 64 * len(sel) {
		if i >= len(vals) || (vals[i]-lo <= width) != (keep != 0) {
			want[i/64] &^= 1 << (i % 64)
		}
	}
	for name, f := range map[string]func(sel []uint64, vals []T, lo, width T, keep uint64){"fast": FilterSpan[T], "go": filterSpan[T]} {
		got := guardedCopy(sel)
		f(got.vals, guardedCopy(vals).vals, lo, width, keep)
		got.check(t)
		if !slices.Equal(got.vals, want) {
			t.Fatalf("%s: %T: %d values, [%d,+%d], keep %x: %x, want %x", name, lo, len(vals), lo, width, keep, got.vals, want)
		}
	}
}

// checkFloatSpan compares the filters with a loop over rows.
func checkFloatSpan[T int32 | int64](t *testing.T, sel []uint64, vals []T, lo T, width, keep uint64) {
	t.Helper()
	want := slices.Clone(sel)
	for i := range 64 * len(sel) {
		if i >= len(vals) || (keyDistance(vals[i], lo) <= width) != (keep != 0) {
			want[i/64] &^= 1 << (i % 64)
		}
	}
	for name, f := range map[string]func(sel []uint64, vals []T, lo T, width, keep uint64){"fast": FilterFloatSpan[T], "go": filterFloatSpan[T]} {
		got := guardedCopy(sel)
		f(got.vals, guardedCopy(vals).vals, lo, width, keep)
		got.check(t)
		if !slices.Equal(got.vals, want) {
			t.Fatalf("%s: %T: %d values, [%d,+%d], keep %x: %x, want %x", name, lo, len(vals), lo, width, keep, got.vals, want)
		}
	}
}

func checkTable[T Unsigned](t *testing.T, sel []uint64, codes []T, table []uint8) {
	t.Helper()
	want := slices.Clone(sel)
	for i := range 64 * len(sel) {
		if i >= len(codes) || table[codes[i]] == 0 {
			want[i/64] &^= 1 << (i % 64)
		}
	}
	for name, f := range map[string]func(sel []uint64, codes []T, table []uint8){"fast": FilterTable[T], "go": filterTable[T]} {
		got := guardedCopy(sel)
		f(got.vals, guardedCopy(codes).vals, table)
		got.check(t)
		if !slices.Equal(got.vals, want) {
			t.Fatalf("%s: %T: %d codes, %d words: %x, want %x", name, codes, len(codes), len(table), got.vals, want)
		}
	}
}

// checkCompare views bytes as values of every type.
func checkCompare(t *testing.T, raw []byte, lo, width, selection uint64) {
	keep := -(width & 1)
	sel := func(n int) []uint64 {
		s := make([]uint64, (n+63)/64)
		for i := range s {
			s[i] = selection &^ -(uint64(i) & lo >> 3 & 1) // some words are zero
		}
		if n%64 != 0 {
			s[n/64] &= 1<<(n%64) - 1
		}
		return s
	}
	v8, v16, v32, v64 := viewOf[uint8](raw), viewOf[uint16](raw), viewOf[uint32](raw), viewOf[uint64](raw)
	checkSpan(t, sel(len(v8)), v8, uint8(lo), uint8(width), keep)
	checkSpan(t, sel(len(v16)), v16, uint16(lo), uint16(width), keep)
	checkSpan(t, sel(len(v32)), v32, uint32(lo), uint32(width), keep)
	checkSpan(t, sel(len(v64)), v64, lo, width, keep)
	checkFloatSpan(t, sel(len(v32)), viewOf[int32](raw), int32(lo), width&math.MaxUint32, keep)
	checkFloatSpan(t, sel(len(v64)), viewOf[int64](raw), int64(lo), width, keep)
	table := make([]uint8, 1<<16)
	for i := range table {
		table[i] = uint8(width >> (i % 63) & 1)
	}
	checkTable(t, sel(len(v8)), v8, table[:256])
	checkTable(t, sel(len(v16)), v16, table)
	for i := range v32 {
		v32[i] %= uint32(len(table))
	}
	checkTable(t, sel(len(v32)), v32, table)
}

// viewOf returns bytes as values.
func viewOf[T any](raw []byte) []T {
	size := int(unsafe.Sizeof(*new(T)))
	out := make([]T, len(raw)/size)
	for i := range out {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&out[i])), size), raw[i*size:])
	}
	return out
}

func TestCompare(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 512, 520, 1024, 4096, 9000} {
		raw := randomBytes(r, n)
		for i := 0; i+8 <= n; i += 8 * (1 + r.IntN(4)) {
			for j := range 8 { // extreme values
				raw[i+j] = []byte{0, 0xff, 0x80, 0x7f}[(i/8+j/7)%4]
			}
		}
		for _, x := range []uint64{0, 1, math.MaxUint64, 1 << 63, 1<<63 - 1, 0x8080808080808080, r.Uint64()} {
			checkCompare(t, raw, x, r.Uint64()>>r.IntN(64), math.MaxUint64)
			checkCompare(t, raw, r.Uint64(), x, r.Uint64())
		}
	}
}

// A code without an entry panics, however it is looked up.
func TestFilterTableOfUnknownCode(t *testing.T) {
	for _, at := range []int{0, 63, 64, 100, 250} {
		codes := make([]uint32, 256)
		codes[at] = 1000
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("code %d of %d was looked up", at, len(codes))
				}
			}()
			FilterTable(guardedCopy(allSelected[:4]).vals, codes, make([]uint8, 1000))
		}()
	}
}

func TestFilterList(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for _, n := range []int{0, 5, 64, 100, partRows - 1, partRows, 2*partRows + 77} {
		vals, floats := make([]uint16, n), make([]int64, n)
		for i := range vals {
			vals[i] = uint16(r.IntN(20))
			floats[i] = FloatKey(int64(vals[i]) - 10) // which is its own inverse
		}
		list := []int64{3, 7, 19}
		for _, keep := range []uint64{0, math.MaxUint64} {
			sel, floatSel := make([]uint64, (n+63)/64), make([]uint64, (n+63)/64)
			for i := range n {
				sel[i/64] |= uint64(r.IntN(2)) << (i % 64)
			}
			all := slices.Clone(sel)
			copy(floatSel, sel)
			FilterList(sel, vals, list, keep)
			keys := []int64{-4, 5}
			FilterFloatList(floatSel, floats, keys, keep)
			for i := range n {
				was := all[i/64]>>(i%64)&1 != 0
				want := was && slices.Contains(list, int64(vals[i])) == (keep != 0)
				wantFloat := was && slices.Contains(keys, FloatKey(floats[i])) == (keep != 0)
				if sel[i/64]>>(i%64)&1 != 0 != want || floatSel[i/64]>>(i%64)&1 != 0 != wantFloat {
					t.Fatalf("%d rows, row %d, keep %x", n, i, keep)
				}
			}
		}
	}
}

func FuzzCompare(f *testing.F) {
	f.Add([]byte("0123456789abcdef\xff\x80\x7f\x00"), uint64(3), uint64(1<<40), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, raw []byte, lo, width, selection uint64) {
		checkCompare(t, raw, lo, width, selection)
	})
}

const benchRows = 32 << 10

// benchTwins times both ways to do the same to so many rows of size bytes.
func benchTwins(b *testing.B, name string, rows, size int, asm, portable func()) {
	for _, f := range []struct {
		name string
		do   func()
	}{{"asm", asm}, {"go", portable}} {
		b.Run(fmt.Sprintf("%s/%s", name, f.name), func(b *testing.B) {
			b.SetBytes(int64(rows * size))
			for b.Loop() {
				f.do()
			}
			b.ReportMetric(float64(b.N)*float64(rows)/b.Elapsed().Seconds()/1e9, "Grows/s")
		})
	}
}

func benchSpan[T Unsigned](b *testing.B, r *rand.Rand) {
	vals, sel := make([]T, benchRows), make([]uint64, benchRows/64)
	for i := range vals {
		vals[i] = T(r.Uint64())
	}
	half := T(1) << (8*unsafe.Sizeof(vals[0]) - 1)
	filter := func(f func(sel []uint64, vals []T, lo, width T, keep uint64)) func() {
		return func() {
			for i := range sel {
				sel[i] = math.MaxUint64
			}
			f(sel, vals, 0, half, math.MaxUint64)
		}
	}
	benchTwins(b, fmt.Sprintf("%T", half), benchRows, int(unsafe.Sizeof(half)), filter(FilterSpan[T]), filter(filterSpan[T]))
}

func benchFloatSpan[T int32 | int64](b *testing.B, r *rand.Rand) {
	vals, sel := make([]T, benchRows), make([]uint64, benchRows/64)
	for i := range vals {
		vals[i] = T(r.Uint64())
	}
	filter := func(f func(sel []uint64, vals []T, lo T, width, keep uint64)) func() {
		return func() {
			for i := range sel {
				sel[i] = math.MaxUint64
			}
			f(sel, vals, 0, math.MaxInt32, math.MaxUint64)
		}
	}
	size := int(unsafe.Sizeof(vals[0]))
	benchTwins(b, fmt.Sprintf("float%d", 8*size), benchRows, size, filter(FilterFloatSpan[T]), filter(filterFloatSpan[T]))
}

func BenchmarkCompare(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	benchSpan[uint8](b, r)
	benchSpan[uint16](b, r)
	benchSpan[uint32](b, r)
	benchSpan[uint64](b, r)
	benchFloatSpan[int32](b, r)
	benchFloatSpan[int64](b, r)
	benchTable[uint8](b, r)
	benchTable[uint16](b, r)
	benchTable[uint32](b, r)
}

func benchTable[T Unsigned](b *testing.B, r *rand.Rand) {
	codes, sel, table := make([]T, benchRows), make([]uint64, benchRows/64), make([]uint8, 4000)
	for i := range table {
		table[i] = uint8(r.IntN(2))
	}
	size := int(unsafe.Sizeof(codes[0]))
	for i := range codes {
		codes[i] = T(r.IntN(min(1<<(8*size), len(table))))
	}
	filter := func(f func(sel []uint64, codes []T, table []uint8)) func() {
		return func() {
			for i := range sel {
				sel[i] = math.MaxUint64
			}
			f(sel, codes, table)
		}
	}
	benchTwins(b, fmt.Sprintf("table%d", 8*size), benchRows, size, filter(FilterTable[T]), filter(filterTable[T]))
}
