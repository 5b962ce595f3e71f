package compress

import (
	"bytes"
	"testing"

	"github.com/minikudu/minikudu/schema"
)

var headed = []schema.Compression{schema.CompressionLZ4, schema.CompressionZstd}

func decompressed(t *testing.T, block []byte, codec schema.Compression, n int) []byte {
	t.Helper()
	got := make([]byte, n)
	if err := Decompress(got, block, codec); err != nil {
		t.Fatal(err)
	}
	return got
}

// A block with a head is a block of the codec, before and after the head was replaced.
func TestHeadIsReplaced(t *testing.T) {
	heads := [][]byte{nil, []byte("12345678"), random(14), random(15), random(300), make([]byte, 600)}
	prefix := []byte("prefix")
	for _, codec := range headed {
		for _, src := range samples() {
			for i, head := range heads {
				block, err := WithHead(bytes.Clone(prefix), head, src, codec, i%2 == 0)
				if err != nil || !bytes.HasPrefix(block, prefix) {
					t.Fatal(err)
				}
				block = block[len(prefix):]
				plain := append(bytes.Clone(head), src...)
				if got := decompressed(t, block, codec, len(plain)); !bytes.Equal(got, plain) {
					t.Fatalf("%s: head of %d, %d bytes: differs", codec, len(head), len(src))
				}
				if v := Verbatim(block, codec); !bytes.HasPrefix(v, head) || !bytes.HasPrefix(plain, v) {
					t.Fatalf("%s: %d bytes of a head of %d", codec, len(v), len(head))
				}
				for _, other := range heads {
					moved, ok := ReplaceHead(bytes.Clone(prefix), block, codec, len(head), other)
					if !ok {
						t.Fatalf("%s: head of %d is none", codec, len(head))
					}
					want := append(bytes.Clone(other), src...)
					if got := decompressed(t, moved[len(prefix):], codec, len(want)); !bytes.Equal(got, want) {
						t.Fatalf("%s: head of %d for %d, %d bytes: differs", codec, len(other), len(head), len(src))
					}
				}
			}
		}
	}
}

// What is not a head cannot be replaced.
func TestNoHead(t *testing.T) {
	text := bytes.Repeat([]byte("abcdefgh"), 1000)
	for _, codec := range codecs {
		block, err := Compress(nil, text, codec)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ReplaceHead(nil, block, codec, 8, []byte("xxxxxxxx")); ok {
			t.Errorf("%s: head of a block without one", codec)
		}
	}
	for _, codec := range headed {
		block, err := WithHead(nil, text[:8], text, codec, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ReplaceHead(nil, block, codec, 16, text); ok {
			t.Errorf("%s: head longer than it is", codec)
		}
		for cut := range block {
			_ = Verbatim(block[:cut], codec)
			_, _ = ReplaceHead(nil, block[:cut], codec, 8, text[:8])
		}
	}
}

func FuzzReplaceHead(f *testing.F) {
	for _, codec := range headed {
		block, _ := WithHead(nil, []byte("12345678"), bytes.Repeat([]byte("abc"), 100), codec, true)
		f.Add(block, codec == schema.CompressionZstd, 308)
	}
	f.Fuzz(func(t *testing.T, block []byte, isZstd bool, plain int) {
		codec, head := schema.CompressionLZ4, []byte("01234567")
		if isZstd {
			codec = schema.CompressionZstd
		}
		moved, ok := ReplaceHead(nil, block, codec, 8, head)
		if !ok || plain < 8 || plain > 1<<16 {
			return
		}
		want := make([]byte, plain)
		if Decompress(want, block, codec) != nil {
			return
		}
		if copy(want, head); isZstd {
			return // other encoders than ours may refer to a block of eight bytes
		}
		got := make([]byte, plain)
		if err := Decompress(got, moved, codec); err != nil || !bytes.Equal(got, want) {
			t.Errorf("after another head: %v", err)
		}
	})
}
