package filter

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func key(i int) []byte { return binary.BigEndian.AppendUint64([]byte("host-01\x00\x00"), uint64(i)) }

func filled(n int) *Filter {
	f := New(n)
	for i := range n {
		l := Locate(key(i))
		f.Add(&l)
	}
	return f
}

func TestHash64Vectors(t *testing.T) {
	f := func(in string, want uint64) {
		t.Helper()
		if got := hash64([]byte(in)); got != want {
			t.Errorf("hash64(%q) = %016x, want %016x", in, got, want)
		}
	}
	f("", 0xef46db3751d8e999)
	f("a", 0xd24ec4f1a98c6e5b)
	f("abc", 0x44bc2cf5ad770999)
	f("message digest", 0x066ed728fceeb3be)
	f("abcdefghijklmnopqrstuvwxyz", 0xcfe1f278fa89835c)
	f("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 0xaaa46907d3047814)
	f("12345678901234567890123456789012345678901234567890123456789012345678901234567890", 0xe04a477f19ee145d)
}

func TestItem25FalsePositivesAtEverySize(t *testing.T) {
	const probes = 200_000
	for n := KeysPerFilter; n > 0; n /= 4 {
		f := filled(n)
		hits := 0
		for i := range probes {
			l := Locate(key(1<<30 + i))
			if f.Test(&l) {
				hits++
			}
		}
		if rate := float64(hits) / probes; rate > 0.0105 {
			t.Errorf("%d keys: %.2f %% false positives", n, 100*rate)
		}
	}
}

// The filter never denies a key it holds, the empty and a huge one included.
func TestC16FilterHasEveryKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40), 1, 300).Draw(t, "keys")
		keys = append(keys, nil, bytes.Repeat([]byte{'x'}, 100<<10))
		f := New(len(keys))
		for _, k := range keys {
			l := Locate(k)
			f.Add(&l)
		}
		g, rest, err := Decode(f.AppendTo(nil))
		if err != nil || len(rest) != 0 {
			t.Fatalf("decode: %v, %d bytes left", err, len(rest))
		}
		for _, k := range keys {
			if l := Locate(k); !f.Test(&l) || !g.Test(&l) {
				t.Fatalf("a key of %d bytes is denied", len(k))
			}
		}
	})
}

func TestEncodedForm(t *testing.T) {
	f := New(1)
	l := Locate([]byte("a"))
	f.Add(&l)
	got := f.AppendTo([]byte("before"))[6:]
	if len(got) != f.EncodedSize() || len(got) != 96 {
		t.Fatalf("%d bytes encoded, EncodedSize %d", len(got), f.EncodedSize())
	}
	const want = "6d6b626601070a0001000000"
	if h := hex.EncodeToString(got[:12]); h != want {
		t.Errorf("header %s, want %s", h, want)
	}
	g, rest, err := Decode(append(got, "after"...))
	if err != nil || string(rest) != "after" || g.Keys() != 1 {
		t.Errorf("decode: %v, rest %q, %d keys", err, rest, g.Keys())
	}
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	enc := filled(50).AppendTo(nil)
	for i := range 8 * len(enc) {
		enc[i/8] ^= 1 << (i % 8)
		if _, _, err := Decode(enc); err == nil {
			t.Fatalf("bit %d flipped unnoticed", i)
		}
		enc[i/8] ^= 1 << (i % 8)
	}
	for n := range enc {
		if _, _, err := Decode(enc[:n]); err == nil {
			t.Fatalf("cut to %d bytes unnoticed", n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(filled(1).AppendTo(nil))
	f.Add(filled(2000).AppendTo(nil))
	f.Add([]byte(strings.Repeat("mkbf\x01\x07\x00\x00", 4)))
	f.Fuzz(func(t *testing.T, src []byte) {
		g, rest, err := Decode(src)
		if err == nil && !bytes.Equal(append(g.AppendTo(nil), rest...), src) {
			t.Fatal("decoded filter encodes differently")
		}
	})
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	f, k := filled(1000), key(7)
	if n := testing.AllocsPerRun(100, func() {
		l := Locate(k)
		f.Add(&l)
		f.Test(&l)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLocate(b *testing.B) {
	for _, n := range []int{8, 24, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k := make([]byte, n)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				binary.LittleEndian.PutUint64(k, uint64(i))
				sink = Locate(k)
			}
		})
	}
}

var sink Locations

func BenchmarkAdd(b *testing.B) {
	f, l := New(KeysPerFilter), Locate(key(1))
	b.ReportAllocs()
	for b.Loop() {
		f.Add(&l)
		l[0] = (l[0] + 12345) % maxBits
	}
}

// BenchmarkTest tests keys against sixteen full filters, as a batch of new keys does.
func BenchmarkTest(b *testing.B) {
	var filters [16]*Filter
	for i := range filters {
		filters[i] = New(KeysPerFilter)
		for j := range KeysPerFilter {
			l := Locate(key(i*KeysPerFilter + j))
			filters[i].Add(&l)
		}
	}
	locs := make([]Locations, 1024)
	for i := range locs {
		locs[i] = Locate(key(1<<30 + rand.IntN(1<<30)))
	}
	b.ReportAllocs()
	hits := 0
	for i := 0; b.Loop(); i++ {
		if filters[i>>10&15].Test(&locs[i&1023]) {
			hits++
		}
	}
}
