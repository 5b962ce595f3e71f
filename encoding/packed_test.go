package encoding

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// checkPacked reads a block cell by cell and compares with what Decode made of it: want,
// or err. Damage that opening does not find is found by the cells that it is in.
func checkPacked(t tester, block []byte, f Format, words *vector.Vector, max Limits, want *vector.Vector, header Header, err error) {
	t.Helper()
	p, h, openErr := DecodePacked(block, f, words, max)
	if p == nil {
		if openErr != nil && err == nil {
			t.Fatalf("opening: %v, decoding: %v", openErr, err)
		}
		if openErr != nil && !errors.Is(openErr, vfs.ErrCorruption) {
			t.Fatal(openErr)
		}
		return
	}
	if h.Rows != p.Rows() || err == nil && h != header {
		t.Fatalf("opened as %+v with %d rows, decoded as %+v", h, p.Rows(), header)
	}
	if p.Size() < len(p.body) {
		t.Fatalf("%d bytes", p.Size())
	}
	got := vector.New(f.Kind, 0)
	var cellErr error
	for i := range p.Rows() {
		p.Touch(i)
		if e := p.AppendTo(got, i); e != nil {
			got.AppendNull()
			cellErr = e
		}
	}
	if (cellErr != nil) != (err != nil) {
		t.Fatalf("reading cells: %v, decoding: %v", cellErr, err)
	}
	whole, e := p.Vector()
	if err != nil {
		if !errors.Is(cellErr, vfs.ErrCorruption) || !errors.Is(e, vfs.ErrCorruption) {
			t.Fatalf("cells: %v, page: %v", cellErr, e)
		}
		return
	}
	if e != nil || !vector.Equal(got, want) || !vector.Equal(whole, want) {
		t.Fatalf("cells differ from those decoded: %v", e)
	}
}

// numbersOfWidth returns n numbers, multiples of the step from the least on, of so many bits.
func numbersOfWidth(r *rand.Rand, n, width int, least int64, step uint64) []int64 {
	out := make([]int64, n)
	mask := uint64(1)<<width - 1
	for i := range out {
		out[i] = least + int64(step*(r.Uint64()&mask))
	}
	if n > 1 {
		out[0], out[n-1] = least, least+int64(step*mask)
	}
	return out
}

func TestPackedWidths(t *testing.T) {
	r := rand.New(rand.NewPCG(91, 92))
	limits := Limits{Rows: 1 << 16}
	for width := 0; width <= 64; width++ {
		for _, step := range []uint64{1, 10} {
			if width > 60 && step > 1 {
				continue
			}
			for _, least := range []int64{0, -1000, math.MinInt64} {
				vals := numbersOfWidth(r, 2*numbersBlock+markEvery+3, width, least, step)
				want := vector.FromFixed(schema.KindInt64, vals, nil)
				for _, e := range []schema.Encoding{schema.EncodingFrame, schema.EncodingDelta} {
					for _, planes := range []bool{false, true} {
						block, _, ok := encodeWay(t, want, false, way{e, planes, planes})
						if !ok {
							t.Fatal(width, e)
						}
						f := Format{Kind: schema.KindInt64, Encoding: schema.EncodingPaged}
						checkPacked(t, block, f, nil, limits, want, Header{5, want.Len()}, nil)
					}
				}
			}
		}
	}
}

func TestRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(93, 94))
	for _, n := range []int{1, 63, 64, 511, 512, 513, 5000} {
		bits := vector.NewBitmap(n)
		for i := range n {
			bits.Put(i, r.IntN(3) > 0)
		}
		x, want := newRanks(bits), 0
		for i := range n {
			if got := x.rank(i); got != want {
				t.Fatalf("%d bits before %d of %d, want %d", got, i, n, want)
			}
			if bits.Get(i) {
				want++
			}
		}
	}
}

// Cells of other encodings are not read one by one, and neither are blocks that are no pages.
func TestPackedIsForPages(t *testing.T) {
	f := Format{Kind: schema.KindInt32, Encoding: schema.EncodingPaged}
	plain, _, _ := encodeWay(t, ints(schema.KindInt32, int32(1), 2), false, way{schema.EncodingPlain, false, false})
	if p, _, err := DecodePacked(plain, f, nil, Limits{}); p != nil || err != nil {
		t.Errorf("PLAIN: %v, %v", p, err)
	}
	f.Encoding = schema.EncodingRLE
	if p, _, err := DecodePacked(nil, f, nil, Limits{}); p != nil || err != nil {
		t.Errorf("RLE: %v, %v", p, err)
	}
	f.Kind = schema.KindBytes
	if _, _, err := DecodePacked(nil, f, nil, Limits{}); !errors.Is(err, schema.ErrInvalidArgument) {
		t.Errorf("RLE of strings: %v", err)
	}
}

func BenchmarkPackedCell(b *testing.B) {
	for _, c := range benchPages(b) {
		b.Run(c.name, func(b *testing.B) {
			p, _, err := DecodePacked(c.block, c.format, c.words, Limits{})
			if err != nil || p == nil {
				b.Fatal(p, err)
			}
			b.ReportMetric(float64(p.Size()), "page-bytes")
			dst := vector.New(c.format.Kind, 1)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i = (i + 7919) % p.Rows()
				dst.Reset(c.format.Kind)
				if err := p.AppendTo(dst, i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpenPacked opens pages to read a cell; BenchmarkPage decodes them.
func BenchmarkOpenPacked(b *testing.B) {
	for _, c := range benchPages(b) {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := DecodePacked(c.block, c.format, c.words, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type benchPage struct {
	name   string
	format Format
	block  []byte
	words  *vector.Vector
}

// benchPages returns pages of 32 Ki values.
func benchPages(b *testing.B) (out []benchPage) {
	const n = 32 << 10
	r := rand.New(rand.NewPCG(85, 86))
	times, steady, small, nulls := vector.New(schema.KindInt64, n), vector.New(schema.KindInt64, n), vector.New(schema.KindInt64, n), vector.New(schema.KindInt64, n)
	cents, words, walk := vector.New(schema.KindFloat64, n), vector.New(schema.KindBytes, n), vector.New(schema.KindInt64, n)
	for i, at := 0, int64(0); i < n; i++ {
		at += r.Int64N(5) - 2
		vector.AppendFixed(walk, at)
		vector.AppendFixed(times, 1_700_000_000_000_000+int64(i)*1000+r.Int64N(500))
		vector.AppendFixed(steady, int64(i)*1000)
		vector.AppendFixed(small, r.Int64N(101))
		vector.AppendFixed(cents, float64(r.IntN(4000))/100)
		_ = words.AppendBytes(fmt.Appendf(nil, "host %d", r.IntN(64)))
		if r.IntN(10) == 0 {
			nulls.AppendNull()
		} else {
			vector.AppendFixed(nulls, r.Int64N(101))
		}
	}
	for _, c := range []struct {
		name string
		v    *vector.Vector
		w    way
	}{
		{"frame", small, way{schema.EncodingFrame, false, false}},
		{"frame with nulls", nulls, way{schema.EncodingFrame, false, false}},
		{"frame, zstd", small, way{schema.EncodingFrame, true, true}},
		{"delta", times, way{schema.EncodingDelta, false, false}},
		{"delta, small steps", walk, way{schema.EncodingDelta, false, false}},
		{"delta, equal steps", steady, way{schema.EncodingDelta, false, false}},
		{"delta, zstd", times, way{schema.EncodingDelta, true, true}},
		{"distinct", small, way{schema.EncodingDistinct, false, false}},
		{"decimal", cents, way{schema.EncodingDecimal, false, false}},
		{"codes", words, way{schema.EncodingCodes, false, false}},
	} {
		f := Format{c.v.Kind(), schema.EncodingPaged, c.v.Valid() != nil}
		block, dict, ok := encodeWay(b, c.v, f.Nullable, c.w)
		if !ok {
			b.Fatal(c.name)
		}
		out = append(out, benchPage{c.name, f, block, dictOf(b, dict, schema.EncodingPaged)})
	}
	return out
}
