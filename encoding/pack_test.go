package encoding

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/vfs"
)

func checkUnpack[T kernel.Unsigned](t *testing.T, vals []uint64, width int) {
	t.Helper()
	packed := appendPacked([]byte{7}, vals, width)[1:]
	if len(packed) != packedSize(len(vals), width) {
		t.Fatalf("%d numbers of %d bits take %d bytes", len(vals), width, len(packed))
	}
	dst := make([]T, len(vals))
	for i := range dst {
		dst[i] = 99
	}
	kernel.Unpack(dst, slices.Clip(packed), width, 1, 0)
	for i, v := range vals {
		if dst[i] != T(v) {
			t.Fatalf("number %d of %d, %d bits: %d, want %d", i, len(vals), width, dst[i], T(v))
		}
	}
}

func TestPack(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 72))
	for width := range 65 {
		if width > 56 && width < 64 {
			continue
		}
		for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 100, 1024} {
			vals := make([]uint64, n)
			for i := range vals {
				if width > 0 {
					vals[i] = r.Uint64() >> (64 - width)
				}
			}
			checkUnpack[uint64](t, vals, width)
			checkUnpack[uint32](t, vals, width)
			checkUnpack[uint16](t, vals, width)
			checkUnpack[uint8](t, vals, width)
		}
	}
}

func checkNumbers(t *testing.T, vals []int64) {
	t.Helper()
	var w numberWriter
	for _, planes := range []bool{false, true} {
		b := append(w.append(nil, vals, planes), 1, 2, 3)
		got := make([]uint64, len(vals))
		rest, err := decodeNumbers(got, b)
		if err != nil || len(rest) != 3 {
			t.Fatalf("%d bytes left, %v", len(rest), err)
		}
		for i, v := range vals {
			if int64(got[i]) != v {
				t.Fatalf("number %d is %d, want %d", i, int64(got[i]), v)
			}
		}
		narrow := make([]uint16, len(vals))
		if _, err := decodeNumbers(narrow, b); err != nil {
			t.Fatal(err)
		}
		for i, v := range vals {
			if narrow[i] != uint16(v) {
				t.Fatalf("number %d is %d modulo 2^16, want %d", i, narrow[i], uint16(v))
			}
		}
		for cut := range min(len(b)-3, 200) {
			if _, err := decodeNumbers(got, b[:cut]); len(vals) > 0 && !errors.Is(err, vfs.ErrCorruption) {
				t.Fatalf("cut to %d of %d bytes: %v", cut, len(b), err)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(73, 74))
	checkNumbers(t, nil)
	checkNumbers(t, []int64{math.MinInt64, math.MaxInt64, 0, -1, 1})
	checkNumbers(t, []int64{math.MinInt64})
	for range 300 {
		n, spread, step := r.IntN(3000), 1+r.Int64N(1<<r.IntN(62)), 1+r.Int64N(1<<r.IntN(20))
		base := int64(r.Uint64())
		vals := make([]int64, n)
		for i := range vals {
			vals[i] = base + step*r.Int64N(spread)
		}
		checkNumbers(t, vals)
	}
}

func TestCommonStep(t *testing.T) {
	for _, c := range []struct {
		vals []uint64
		want uint64
	}{{nil, 1}, {[]uint64{0, 0}, 1}, {[]uint64{0, 12, 18}, 6}, {[]uint64{math.MaxUint64, 0}, math.MaxUint64}, {[]uint64{4, 9}, 1}} {
		if got := commonStep(c.vals); got != c.want {
			t.Errorf("%v: %d, want %d", c.vals, got, c.want)
		}
	}
}

func BenchmarkUnpack(b *testing.B) {
	r := rand.New(rand.NewPCG(75, 76))
	vals := make([]int64, 32<<10)
	for i := range vals {
		vals[i] = r.Int64N(1000)
	}
	var w numberWriter
	block := w.append(nil, vals, false)
	dst := make([]uint64, len(vals))
	b.SetBytes(int64(8 * len(dst)))
	for b.Loop() {
		if _, err := decodeNumbers(dst, block); err != nil {
			b.Fatal(err)
		}
	}
}
