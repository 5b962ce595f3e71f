package compress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/minikudu/minikudu/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var codecs = []schema.Compression{schema.CompressionNone, schema.CompressionSnappy, schema.CompressionLZ4,
	schema.CompressionZlib, schema.CompressionZstd}

func random(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func samples() [][]byte {
	text := bytes.Repeat([]byte("the quick brown fox "), 500)
	return [][]byte{nil, {7}, []byte("hello"), make([]byte, 14), random(15), random(16), random(300), text, random(8192),
		make([]byte, 1<<20), append(random(70000), text...)}
}

func TestRoundTrip(t *testing.T) {
	for i, codec := range append(codecs, codecs...) {
		i /= len(codecs)
		for _, plain := range samples() {
			prefix := []byte("prefix")
			packed, err := Compress(bytes.Clone(prefix), plain, codec)
			if i == 1 {
				packed, err = CompressText(bytes.Clone(prefix), plain, codec)
			}
			if err != nil || !bytes.HasPrefix(packed, prefix) {
				t.Fatalf("%s, %d bytes: %v", codec, len(plain), err)
			}
			packed = packed[len(prefix):]
			got := make([]byte, len(plain))
			if err := Decompress(got, packed, codec); err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("%s, %d bytes: differs, %v", codec, len(plain), err)
			}
			for _, n := range []int{len(plain) - 1, len(plain) + 1} {
				if n < 0 {
					continue
				}
				if err := Decompress(make([]byte, n), packed, codec); !errors.Is(err, ErrDamaged) {
					t.Fatalf("%s, %d bytes decoded as %d: %v", codec, len(plain), n, err)
				}
			}
		}
	}
}

func TestTruncationAndTrailingBytes(t *testing.T) {
	plain := append(bytes.Repeat([]byte("abcdefgh"), 20), random(40)...)
	for _, codec := range codecs {
		packed, _ := Compress(nil, plain, codec)
		got := make([]byte, len(plain))
		for n := range packed {
			if err := Decompress(got, packed[:n], codec); !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s cut to %d of %d: %v", codec, n, len(packed), err)
			}
		}
		if err := Decompress(got, append(packed, 1, 2, 3, 4, 5), codec); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%s with bytes appended: %v", codec, err)
		}
		if err := Decompress(got, packed, codec); err != nil {
			t.Fatalf("%s: pooled state is spoilt by damage: %v", codec, err)
		}
	}
}

func TestLiteralBlocks(t *testing.T) {
	for n := range 600 {
		plain := random(n)
		got := make([]byte, n)
		if err := DecodeLZ4(got, appendLiterals(nil, plain)); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%d literals: %v", n, err)
		}
	}
}

func TestForeignVectors(t *testing.T) {
	plain := []byte{64, 0, 0, 0, 0, 0, 0, 0}
	for range 64 {
		plain = append(plain, 7, 0, 0, 0)
	}
	packed := []byte{0x22, 0x40, 0, 1, 0, 0x1f, 7, 4, 0, 0xe7, 0x50, 0, 7, 0, 0, 0}
	got := make([]byte, len(plain))
	if err := Decompress(got, packed, schema.CompressionLZ4); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("%x, %v", got, err)
	}
	if err := DecodeLZ4(make([]byte, 8), []byte{0x14, 1, 0, 0, 0}); !errors.Is(err, ErrDamaged) {
		t.Fatalf("match offset 0: %v", err)
	}
}

// C21: what a block says of its size is never believed.
func TestC21Bombs(t *testing.T) {
	bomb := make([]byte, 8<<20)
	for _, codec := range codecs[1:] {
		packed, _ := Compress(nil, bomb, codec)
		if got := allocated(func() {
			if err := Decompress(make([]byte, 1000), packed, codec); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", codec, err)
			}
		}); got > 4<<20 {
			t.Errorf("%s: a bomb of %d bytes allocated %d", codec, len(packed), got)
		}
	}
	huge := binary.AppendUvarint(nil, 0xfffffff0)
	if err := Decompress(make([]byte, 10), append(huge, 0, 1), schema.CompressionSnappy); !errors.Is(err, ErrDamaged) {
		t.Errorf("snappy preamble: %v", err)
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestUnknownCodec(t *testing.T) {
	for _, codec := range []schema.Compression{schema.CompressionDefault, 99} {
		if _, err := Compress(nil, nil, codec); !errors.Is(err, schema.ErrInvalidArgument) || Supported(codec) {
			t.Errorf("%s: %v", codec, err)
		}
		if err := Decompress(nil, nil, codec); !errors.Is(err, schema.ErrInvalidArgument) {
			t.Errorf("%s: %v", codec, err)
		}
	}
}

func TestSteadyStateAllocations(t *testing.T) {
	plain := bytes.Repeat([]byte("0123456789"), 1000)
	for _, codec := range codecs[:3] {
		var packed []byte
		got := make([]byte, len(plain))
		n := testing.AllocsPerRun(100, func() {
			packed, _ = Compress(packed[:0], plain, codec)
			if Decompress(got, packed, codec) != nil {
				t.Fatal(codec)
			}
		})
		if n >= 1 {
			t.Errorf("%s: %v allocations a round", codec, n)
		}
	}
}

func FuzzDecompress(f *testing.F) {
	for _, codec := range codecs {
		for _, plain := range samples()[:8] {
			packed, _ := Compress(nil, plain, codec)
			f.Add(uint8(codec), uint16(len(plain)), packed)
		}
	}
	f.Fuzz(func(t *testing.T, codec uint8, n uint16, src []byte) {
		dst := make([]byte, int(n)+8)
		for i := range dst[n:] {
			dst[int(n)+i] = 0xa5
		}
		_ = Decompress(dst[:n:n], src, schema.Compression(codec))
		if !bytes.Equal(dst[n:], bytes.Repeat([]byte{0xa5}, 8)) {
			t.Fatal("wrote past the end")
		}
	})
}

func BenchmarkCodecs(b *testing.B) {
	plain := make([]byte, 256<<10)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range len(plain) / 8 {
		binary.LittleEndian.PutUint64(plain[8*i:], uint64(i)*1000+r.Uint64N(200))
	}
	for _, codec := range codecs {
		packed, _ := Compress(nil, plain, codec)
		b.Run("compress/"+codec.String(), func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				packed, _ = Compress(packed[:0], plain, codec)
			}
		})
		got := make([]byte, len(plain))
		b.Run("decompress/"+codec.String(), func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Decompress(got, packed, codec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a bubble used first serves others.
func TestZstdInBubbles(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			plain := bytes.Repeat([]byte("bubble "), 100)
			b, err := Compress(nil, plain, schema.CompressionZstd)
			if err != nil {
				t.Fatal(err)
			}
			if err := Decompress(make([]byte, len(plain)), b, schema.CompressionZstd); err != nil {
				t.Fatal(err)
			}
		})
	}
}
