package encoding

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// rising returns n ascending integers of a kind whose differences have so many bits, some of
// them 0, as far as the kind has room.
func rising(r *rand.Rand, kind schema.Kind, n, width int) *vector.Vector {
	v := vector.New(kind, n)
	last := int64(1)<<(8*kind.Width()-1) - 1
	x := -last / 2
	for range n {
		if r.IntN(4) > 0 {
			x += min(r.Int64N(1<<width), last-max(x, 0))
		}
		_ = v.Append(schema.IntValue(kind, x))
	}
	return v
}

// searchedWays are the ways in which ascending integers are packed.
var searchedWays = []way{{schema.EncodingFrame, false, false}, {schema.EncodingFrame, true, true}, {schema.EncodingDelta, false, false},
	{schema.EncodingDelta, true, true}, {schema.EncodingDistinct, false, false}, {schema.EncodingDistinct, true, true}}

func TestPackedSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(101, 102))
	for _, kind := range []schema.Kind{schema.KindInt8, schema.KindInt16, schema.KindInt32, schema.KindInt64} {
		for width := 0; width < 8*kind.Width()-1; width++ {
			v := rising(r, kind, 2*numbersBlock+markEvery+r.IntN(200), width)
			for _, w := range searchedWays {
				block, _, ok := encodeWay(t, v, false, w)
				if !ok {
					continue // too many words
				}
				p, _, err := DecodePacked(block, Format{Kind: kind, Encoding: schema.EncodingPaged}, nil, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				checkSearch(t, r, p, v)
			}
		}
	}
}

// checkSearch compares cells and searches with the values themselves.
func checkSearch(t *testing.T, r *rand.Rand, p *Packed, v *vector.Vector) {
	t.Helper()
	vals := make([]int64, v.Len())
	for i := range vals {
		vals[i] = v.Value(i).Int()
		if got, err := p.Int(i); err != nil || got != vals[i] {
			t.Fatalf("cell %d is %d, %v, want %d", i, got, err, vals[i])
		}
	}
	for range 200 {
		from := r.IntN(len(vals) + 1)
		to := from + r.IntN(len(vals)+1-from)
		x := vals[r.IntN(len(vals))] + int64(r.IntN(3)-1)
		want, _ := slices.BinarySearch(vals[from:to], x)
		if got, err := p.SearchInt(from, to, x); err != nil || got != from+want {
			t.Fatalf("%d in cells [%d, %d): %d, %v, want %d", x, from, to, got, err, from+want)
		}
	}
}

func TestPackedBytes(t *testing.T) {
	v := vector.New(schema.KindBytes, 300)
	for i := range 300 {
		if i%7 == 0 {
			v.AppendNull()
		} else {
			_ = v.AppendBytes([]byte{'a' + byte(i%20)})
		}
	}
	f := Format{Kind: schema.KindBytes, Encoding: schema.EncodingPaged, Nullable: true}
	block, dict, _ := encodeWay(t, v, true, way{schema.EncodingCodes, false, false})
	p, _, err := DecodePacked(block, f, dictOf(t, dict, schema.EncodingPaged), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if got, err := p.Bytes(i); err != nil || string(got) != string(v.BytesAt(i)) {
			t.Fatalf("cell %d is %q, %v, want %q", i, got, err, v.BytesAt(i))
		}
	}
	words := vector.New(schema.KindBytes, 1) // of another file
	if err := words.AppendBytes([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if p, _, err = DecodePacked(block, f, words, Limits{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Bytes(2); !errors.Is(err, vfs.ErrCorruption) {
		t.Errorf("a word that is not there: %v", err)
	}
}

func BenchmarkPackedSearch(b *testing.B) {
	r := rand.New(rand.NewPCG(103, 104))
	for _, c := range []struct {
		name  string
		width int
		w     way
	}{{"frame", 6, searchedWays[0]}, {"frame, zstd", 6, searchedWays[1]}, {"delta", 6, searchedWays[2]},
		{"delta, zstd", 6, searchedWays[3]}, {"delta, wide", 40, searchedWays[2]}, {"delta, equal steps", 0, searchedWays[2]}} {
		v := rising(r, schema.KindInt64, 32<<10, c.width)
		block, _, _ := encodeWay(b, v, false, c.w)
		p, _, err := DecodePacked(block, Format{Kind: schema.KindInt64, Encoding: schema.EncodingPaged}, nil, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		vals := vector.Values[int64](v)
		for _, rows := range []int{markEvery, len(vals)} {
			name := c.name + "/run"
			if rows > markEvery {
				name = c.name + "/page"
			}
			b.Run(name, func(b *testing.B) {
				i := 0
				for b.Loop() {
					i = (i + 7919) % len(vals)
					from := i / rows * rows
					if _, err := p.SearchInt(from, from+rows, vals[i]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
