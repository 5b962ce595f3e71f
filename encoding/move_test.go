package encoding

import (
	"bytes"
	"errors"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// A page that was moved holds the same cells at another ordinal, and is the page it was when
// it is moved back.
func TestMovePage(t *testing.T) {
	moved := map[schema.Encoding]bool{}
	for _, n := range []int{0, 1, 1023, 3000} {
		eachPage(t, n, func(t *testing.T, f Format, want *vector.Vector, block []byte, words *vector.Vector) {
			info, err := PageInfo(block, f.Kind)
			if err != nil {
				t.Fatal(err)
			}
			prefix := []byte("prefix")
			there, h, ok, err := MovePage(bytes.Clone(prefix), block, f, 1<<20+3)
			if err != nil || !bytes.HasPrefix(there, prefix) {
				t.Fatal(err)
			}
			if !ok {
				if info.Encoding != schema.EncodingCodes && !f.Nullable {
					t.Errorf("%s with %s cannot be moved", info.Encoding, info.Compression)
				}
				return
			}
			moved[info.Encoding] = true
			if h.Ordinal != 5 || h.Rows != n {
				t.Errorf("header %+v", h)
			}
			there = there[len(prefix):]
			got := vector.New(f.Kind, 0)
			h, err = Decode(got, there, f, words, Limits{Rows: max(n, 1)})
			if err != nil || h.Ordinal != 1<<20+3 || h.Rows != n {
				t.Fatalf("moved: %+v, %v", h, err)
			}
			sameBits(t, got, want)
			if back, _, ok, err := MovePage(nil, there, f, 5); !ok || err != nil || !bytes.Equal(back, block) {
				t.Errorf("moved back: %t, %v, %d bytes of %d", ok, err, len(back), len(block))
			}
		})
	}
	for _, w := range append(append(append(intWays, floatWays...), textWays...), boolWays...) {
		if !moved[w.encoding] {
			t.Errorf("no page of %s was moved", w.encoding)
		}
	}
}

// A page whose ordinal is compressed with what follows stays where it is.
func TestMovePageCompressedWhole(t *testing.T) {
	body := appendShortHeader(nil, 4000, 7)
	body = append(body, bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 4000)...)
	for _, c := range allCodecs {
		block := appendPage(nil, body, schema.EncodingPlain, c, true) // not nullable, so no head is found
		if block[1] != byte(c) {
			t.Fatalf("%s: not compressed", c)
		}
		f := Format{schema.KindInt64, schema.EncodingPaged, false}
		if _, h, ok, err := MovePage(nil, block, f, 9); ok && h.Rows != 4000 || err != nil {
			t.Errorf("%s: moved %t, %v", c, ok, err)
		}
		if c == schema.CompressionZstd {
			if _, _, ok, _ := MovePage(nil, block, f, 9); ok {
				t.Error("zstd: moved")
			}
		}
	}
}

func FuzzMovePage(f *testing.F) {
	for _, seed := range [][]int64{{1, 2, 3}, make([]int64, 3000)} {
		v := vector.New(schema.KindInt64, 0)
		for _, n := range seed {
			vector.AppendFixed(v, n)
		}
		for _, w := range intWays {
			block, _, _ := encodeWay(f, v, false, w)
			f.Add(block, uint8(schema.KindInt64), false)
		}
	}
	f.Fuzz(func(t *testing.T, block []byte, kind uint8, nullable bool) {
		format := Format{schema.Kind(kind), schema.EncodingPaged, nullable}
		if format.Validate() != nil {
			return
		}
		_, _, ok, err := MovePage(nil, block, format, 77)
		if ok && err != nil || err != nil && !errors.Is(err, vfs.ErrCorruption) {
			t.Errorf("%t, %v", ok, err)
		}
	})
}
