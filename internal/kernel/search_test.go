package kernel

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// checkContains cuts data into texts at the offsets and compares with a search in each.
func checkContains(t *testing.T, data []byte, offsets []int32, s string) {
	t.Helper()
	n := len(offsets) - 1
	sel := make([]uint64, (n+63)/64)
	for i := range n {
		sel[i/64] |= 1 << (i % 64)
	}
	want := slices.Clone(sel)
	for i := range n {
		if !bytes.Contains(data[offsets[i]:offsets[i+1]], []byte(s)) {
			want[i/64] &^= 1 << (i % 64)
		}
	}
	for name, f := range map[string]func(sel []uint64, offsets []int32, data []byte, s string){"fast": FilterContains, "go": filterContains} {
		got := guardedCopy(sel)
		f(got.vals, offsets, data, s)
		got.check(t)
		if !slices.Equal(got.vals, want) {
			t.Fatalf("%s: %q in %d texts of %d bytes: %x, want %x", name, s, n, len(data), got.vals, want)
		}
	}
}

// cutTexts cuts data into texts of up to most bytes, leaving some before and after.
func cutTexts(r *rand.Rand, data []byte, most int) []int32 {
	offsets := []int32{int32(min(r.IntN(5), len(data)))}
	for at := int(offsets[0]); at < len(data)-r.IntN(3) && r.IntN(500) > 0; {
		at = min(at+r.IntN(most+1), len(data))
		offsets = append(offsets, int32(at))
	}
	return offsets
}

func TestFilterContains(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	for range 400 {
		data := make([]byte, r.IntN(9000))
		letters := 1 + r.IntN(6)
		for i := range data {
			data[i] = 'a' + byte(r.IntN(letters))
		}
		offsets := cutTexts(r, data, 1+r.IntN(100))
		s := []byte("aaaaaaaaaaaa"[:1+r.IntN(12)])
		for i := range s {
			s[i] += byte(r.IntN(letters))
		}
		checkContains(t, slices.Clip(data), offsets, string(s))
	}
}

func FuzzFilterContains(f *testing.F) {
	f.Add([]byte("host-01.example.com"), []byte("exam"), uint64(3))
	f.Fuzz(func(t *testing.T, data, s []byte, seed uint64) {
		data = bytes.Repeat(data, int(seed%20)+1)
		r := rand.New(rand.NewPCG(seed, 1))
		if len(s) > 0 {
			checkContains(t, data, cutTexts(r, data, 1+int(seed%70)), string(s))
		}
	})
}

func BenchmarkFilterContains(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	offsets, data := []int32{0}, []byte(nil)
	for i := range benchRows {
		data = fmt.Appendf(data, "GET /api/v%d/items/%d?host=node-%03d", i%3, i*7919%benchRows, i%200)
		offsets = append(offsets, int32(len(data)))
	}
	sel := make([]uint64, benchRows/64)
	filter := func(f func(sel []uint64, offsets []int32, data []byte, s string), s string) func() {
		return func() {
			for i := range sel {
				sel[i] = fullWord
			}
			f(sel, offsets, data, s)
		}
	}
	for _, s := range []string{"1", "node-17", "/items/12345?", "host", "no such text"} {
		benchTwins(b, s, benchRows, len(data)/benchRows, filter(FilterContains, s), filter(filterContains, s))
	}
	offsets, data = []int32{0}, nil
	for range benchRows { // long lists of numbers
		for n := 0; n < 4000; {
			n += 1 + r.IntN(100)
			data = fmt.Appendf(data, "%d;", n)
		}
		offsets = append(offsets, int32(len(data)))
	}
	for _, s := range []string{";317;", ";99"} {
		benchTwins(b, s, benchRows, len(data)/benchRows, filter(FilterContains, s), filter(filterContains, s))
	}
}
