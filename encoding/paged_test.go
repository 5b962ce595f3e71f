package encoding

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/internal/compress"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// allWays returns the ways to encode pages of a kind.
func allWays(kind schema.Kind) []way {
	b := newPageBuilder(EncoderOptions{Format: Format{Kind: kind}, BlockSize: 1 << 20})
	if kind == schema.KindBytes {
		return append(append([]way(nil), codeWays...), textWays...)
	}
	return b.ways()
}

// encodeWay encodes all of v in the given way, false when that is none for it.
func encodeWay(t tester, v *vector.Vector, nullable bool, w way) (block, dict []byte, ok bool) {
	t.Helper()
	e, err := NewEncoder(EncoderOptions{Format: Format{v.Kind(), schema.EncodingPaged, nullable}, BlockSize: 4 << 20, MaxRows: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	e.Reset(5)
	if n, err := e.Add(v, 0, v.Len()); n != v.Len() || err != nil {
		t.Fatal(n, err)
	}
	b := e.page
	b.borrow()
	defer b.release()
	b.ints, b.codecs = nil, allCodecs
	if nullable {
		b.nulls = appendNulls(nil, e.rows, &e.nulls)
	}
	if b.dict != nil {
		b.release()
		dict, _ = e.AppendDict(nil)
		b.borrow()
		b.ints = nil
		for _, c := range b.dict.codes.vals {
			b.ints = append(b.ints, int64(c))
		}
		if w.encoding != schema.EncodingCodes {
			b.dict.mode = modePlain
			b.dict.plain.reset(5)
			for _, c := range b.dict.codes.vals {
				b.dict.plain.addOne(b.dict.words.word(int(c)))
			}
		}
		if nullable {
			b.nulls = appendNulls(nil, e.rows, &e.nulls)
		}
	} else if b.raw != nil {
		b.ints = appendInts(nil, b.raw.buf, b.width)
	}
	block, ok = b.page(nil, w)
	return block, dict, ok
}

// shapes returns columns that different ways are made for.
func shapes(kind schema.Kind, n int, nullable bool) map[string]*vector.Vector {
	r := rand.New(rand.NewPCG(81, 82))
	out := map[string]*vector.Vector{"random": randomColumn(r, Format{Kind: kind, Nullable: nullable}, n)}
	add := func(name string, f func(i int) schema.Value) {
		v := vector.New(kind, n)
		for i := range n {
			if nullable && r.IntN(10) == 0 {
				v.AppendNull()
			} else {
				_ = v.Append(f(i))
			}
		}
		out[name] = v
	}
	switch kind {
	case schema.KindInt8, schema.KindInt16, schema.KindInt32, schema.KindInt64:
		add("constant", func(int) schema.Value { return schema.IntValue(kind, -7) })
		add("ascending", func(i int) schema.Value { return schema.IntValue(kind, int64(i)*100>>(64-8*kind.Width())) })
		add("extremes", func(i int) schema.Value {
			unused := 64 - 8*kind.Width()
			return schema.IntValue(kind, []int64{math.MinInt64, math.MaxInt64, 0, -1}[i%4]>>unused)
		})
	case schema.KindFloat32:
		add("decimals", func(i int) schema.Value { return schema.Float32Value(float32(i%500) / 10) })
		add("specials", func(i int) schema.Value {
			return schema.Float32Value([]float32{0, float32(math.Copysign(0, -1)), 1.5, float32(math.Inf(1)), float32(math.NaN()), math.MaxFloat32}[i%6])
		})
	case schema.KindFloat64:
		add("decimals", func(i int) schema.Value { return schema.Float64Value(float64(i%5000) / 100) })
		add("grid", func(i int) schema.Value {
			return schema.Float64Value(float64(hashFixed([]byte{byte(i)})>>40) / (1 << 24))
		})
		add("fine grid", func(i int) schema.Value { return schema.Float64Value(math.Ldexp(float64(i%4000-2000), -255)) })
		add("too fine a grid", func(i int) schema.Value { return schema.Float64Value(math.Ldexp(float64(2*(i%4000)+1), -256)) })
		add("some on a grid", func(i int) schema.Value {
			if i%20 == 7 {
				return schema.Float64Value([]float64{math.NaN(), math.Inf(-1), math.Copysign(0, -1), math.Pi, 5e-324, math.MaxFloat64}[i/20%6])
			}
			return schema.Float64Value(float64(i%5000) / 1024)
		})
		add("some decimals", func(i int) schema.Value {
			if i%20 == 3 {
				return schema.Float64Value(r.Float64())
			}
			return schema.Float64Value(-float64(i) / 1000)
		})
		add("specials", func(i int) schema.Value {
			return schema.Float64Value([]float64{0, math.Copysign(0, -1), 1.5, math.Inf(1), math.NaN(), math.MaxFloat64, 5e-324}[i%7])
		})
	case schema.KindBytes:
		add("words", func(i int) schema.Value { return schema.StringValue(fmt.Sprint("word ", i%17)) })
		add("lines", func(i int) schema.Value { return schema.StringValue(fmt.Sprintf("%08d a line %d", i, i*i)) })
	}
	return out
}

// eachPage runs f for pages of every kind, shape and way. Of every kind and way there is
// one at least.
func eachPage(t *testing.T, n int, f func(t *testing.T, format Format, want *vector.Vector, block []byte, words *vector.Vector)) {
	for _, kind := range allKinds {
		for _, nullable := range []bool{false, true} {
			made := map[way]bool{}
			for name, v := range shapes(kind, n, nullable) {
				for _, w := range allWays(kind) {
					block, dict, ok := encodeWay(t, v, nullable, w)
					if !ok || w.encoding == schema.EncodingCodes && dict == nil {
						continue // not a way for this page
					}
					made[w] = true
					t.Run(fmt.Sprintf("%s/%s/%s/%v/nullable=%v", kind, name, w.encoding, w.planes, nullable), func(t *testing.T) {
						f(t, Format{kind, schema.EncodingPaged, nullable}, v, block, dictOf(t, dict, schema.EncodingPaged))
					})
				}
			}
			for _, w := range allWays(kind) {
				if !made[w] && n >= 4 {
					t.Errorf("no page of %s in the way %+v, nullable=%v", kind, w, nullable)
				}
			}
		}
	}
}

// sameBits compares cells; not-a-number is equal to itself.
func sameBits(t tester, got, want *vector.Vector) {
	t.Helper()
	if got.Len() != want.Len() {
		t.Fatalf("%d values, want %d", got.Len(), want.Len())
	}
	for i := range want.Len() {
		g, w := got.Value(i), want.Value(i)
		if g != w && !bytes.Equal(AppendKeyCell(nil, bitsOf(g), false), AppendKeyCell(nil, bitsOf(w), false)) {
			t.Fatalf("value %d is %v, want %v", i, g, w)
		}
	}
}

// bitsOf returns a float as the integer of its bits.
func bitsOf(v schema.Value) schema.Value {
	switch v.Kind() {
	case schema.KindFloat32:
		return schema.IntValue(schema.KindInt32, int64(int32(math.Float32bits(v.Float32()))))
	case schema.KindFloat64:
		return schema.IntValue(schema.KindInt64, int64(math.Float64bits(v.Float())))
	}
	return v
}

func TestPageWays(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1023, 1024, 3000} {
		eachPage(t, n, func(t *testing.T, f Format, want *vector.Vector, block []byte, words *vector.Vector) {
			got := vector.New(f.Kind, 0)
			h, err := Decode(got, block, f, words, Limits{})
			if err != nil || h.Ordinal != 5 || h.Rows != want.Len() {
				t.Fatalf("%+v, %v", h, err)
			}
			checkVector(t, got)
			sameBits(t, got, want)
			checkPacked(t, block, f, words, Limits{}, got, h, nil)
		})
	}
}

func TestPagesCutAndFlipped(t *testing.T) {
	eachPage(t, 70, func(t *testing.T, f Format, want *vector.Vector, block []byte, words *vector.Vector) {
		limits := Limits{Rows: 1000, Bytes: 1 << 16}
		for n := range block {
			cut := bytes.Clone(block[:n])
			_, err := Decode(new(vector.Vector), cut, f, words, limits)
			checkPacked(t, cut, f, words, limits, nil, Header{}, err)
			if !errors.Is(err, vfs.ErrCorruption) {
				t.Fatalf("cut to %d of %d bytes: %v", n, len(block), err)
			}
		}
		for i := range block {
			for _, x := range []byte{1, 0x80, 0xff} {
				bad := bytes.Clone(block)
				bad[i] ^= x
				v := new(vector.Vector)
				h, err := Decode(v, bad, f, words, limits)
				checkPacked(t, bad, f, words, limits, v, h, err)
				if err == nil {
					checkVector(t, v)
				} else if !errors.Is(err, vfs.ErrCorruption) {
					t.Fatalf("byte %d: %v", i, err)
				}
			}
		}
	})
}

// What is chosen for the shapes that the encodings were made for.
func TestChosenEncodings(t *testing.T) {
	r := rand.New(rand.NewPCG(83, 84))
	const n = 32 << 10
	numbers := func(f func(i int) int64) *vector.Vector {
		v := vector.New(schema.KindInt64, n)
		for i := range n {
			vector.AppendFixed(v, f(i))
		}
		return v
	}
	floats := func(f func(i int) float64) *vector.Vector {
		v := vector.New(schema.KindFloat64, n)
		for i := range n {
			vector.AppendFixed(v, f(i))
		}
		return v
	}
	texts := func(n int, f func(i int) string) *vector.Vector {
		v := vector.New(schema.KindBytes, n)
		for i := range n {
			_ = v.AppendBytes([]byte(f(i)))
		}
		return v
	}
	for _, c := range []struct {
		name  string
		v     *vector.Vector
		want  schema.Encoding
		codec schema.Compression
		most  int
	}{
		{"equal", numbers(func(int) int64 { return 42 }), schema.EncodingFrame, schema.CompressionNone, 200},
		{"every ten seconds", numbers(func(i int) int64 { return 1_700_000_000_000_000 + int64(i)*10_000_000 }), schema.EncodingDelta, schema.CompressionNone, 200},
		{"below 1,024", numbers(func(int) int64 { return r.Int64N(1024) }), schema.EncodingFrame, schema.CompressionNone, n*10/8 + 200},
		{"even", numbers(func(int) int64 { return 2 * r.Int64N(1024) }), schema.EncodingFrame, schema.CompressionNone, n*10/8 + 200},
		{"random", numbers(func(int) int64 { return int64(r.Uint64()) }), schema.EncodingPlain, schema.CompressionNone, 8*n + 16},
		{"few large ones", numbers(func(i int) int64 { return int64(hashFixed([]byte{byte(r.IntN(16))})) << 30 }), schema.EncodingDistinct, schema.CompressionNone, n/2 + 400},
		{"cents", floats(func(int) float64 { return float64(r.IntN(4096)) / 100 }), schema.EncodingDecimal, schema.CompressionNone, n*12/8 + 300},
		{"quarters", floats(func(int) float64 { return float64(r.IntN(4096))/4 - 300 }), schema.EncodingDecimal, schema.CompressionNone, n*12/8 + 300},
		{"converter", floats(func(int) float64 { return float64(r.IntN(1<<16)) / (1 << 16) }), schema.EncodingDecimal, schema.CompressionNone, n*16/8 + 300},
		{"random below one", floats(func(int) float64 { return r.Float64() }), schema.EncodingDecimal, schema.CompressionNone, n*53/8 + 300},
		{"few floats", floats(func(int) float64 { return math.Sqrt(float64(r.IntN(16))) }), schema.EncodingDistinct, schema.CompressionNone, n/2 + 400},
		{"words", texts(n, func(int) string { return fmt.Sprint("host ", r.IntN(64)) }), schema.EncodingCodes, schema.CompressionNone, n*6/8 + 300},
		{"lines", texts(2000, func(i int) string { return fmt.Sprintf("%d: the quick brown fox %d", r.IntN(100), r.IntN(1e6)) }),
			schema.EncodingText, schema.CompressionZstd, 2000 * 16},
		{"paths", texts(2000, func(i int) string { return fmt.Sprintf("/a/long/and/common/path/%06d", i) }), schema.EncodingPrefix, schema.CompressionZstd, 2000 * 4},
	} {
		f := Format{Kind: c.v.Kind(), Encoding: schema.EncodingPaged}
		block, dict := encodeBlock(t, c.v, 0, EncoderOptions{Format: f})
		h, err := PageInfo(block, f.Kind)
		if err != nil || h.Encoding != c.want || h.Compression != c.codec || len(block) > c.most {
			t.Errorf("%s: %s with %s, %d bytes, want %s with %s, at most %d: %v", c.name, h.Encoding, h.Compression, len(block), c.want, c.codec, c.most, err)
		}
		got, _ := decodeBlock(t, block, dict, f)
		sameVectors(t, got, c.v)
	}
}

// A page that is decoded whole for one cell is small, unless it is hardly anything on disk.
func TestPagesThatAreDecodedWholeAreSmall(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const n = 200_000
	digits, random, grid := vector.New(schema.KindBytes, 0), vector.New(schema.KindFloat64, n), vector.New(schema.KindFloat64, n)
	same, small := vector.New(schema.KindBytes, 0), vector.New(schema.KindInt64, n)
	for i := range n {
		vector.AppendFixed(random, r.NormFloat64())
		vector.AppendFixed(grid, r.Float64())
		vector.AppendFixed(small, r.Int64N(1000))
		if i < n/10 {
			if err := digits.AppendBytes(fmt.Appendf(nil, "%d;%d;%d;%d;%d", r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), i)); err != nil {
				t.Fatal(err)
			}
			if err := same.AppendBytes(fmt.Appendf(nil, "%080d", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name        string
		v           *vector.Vector
		least, most int // plain bytes of the pages but the first ones and the last
	}{
		{"digits", digits, 8 << 10, 64 << 10},
		{"random numbers", random, 8 << 10, 80 << 10},
		{"numbers on a fine grid", grid, 8 << 10, 40 << 10},
		{"texts that follow another", same, 200 << 10, 300 << 10},
		{"small numbers", small, 200 << 10, 300 << 10},
	} {
		file := writeFile(t, c.v, EncoderOptions{Format: Format{Kind: c.v.Kind(), Encoding: schema.EncodingPaged}}, 1000)
		if len(file.blocks) < 4 {
			t.Fatalf("%s: %d pages", c.name, len(file.blocks))
		}
		words := dictOf(t, file.dict, schema.EncodingPaged)
		for i, block := range file.blocks[2 : len(file.blocks)-1] {
			v := vector.New(c.v.Kind(), 0)
			if _, err := Decode(v, block, file.f, words, Limits{}); err != nil {
				t.Fatal(err)
			}
			if size := len(v.Data()); size < c.least || size > c.most {
				t.Fatalf("%s: page %d of %d plain bytes, %d encoded", c.name, i+2, size, len(block))
			}
		}
	}
}

func TestDictionaryIsGivenUp(t *testing.T) {
	v := vector.New(schema.KindBytes, 0)
	for i := range 30000 {
		_ = v.AppendBytes(fmt.Appendf(nil, "text %d, unlike others", i))
	}
	f := Format{schema.KindBytes, schema.EncodingPaged, false}
	out := writeFile(t, v, EncoderOptions{Format: f, BlockSize: 64 << 10}, 10000)
	if out.dict != nil || len(out.blocks) < 5 {
		t.Errorf("%d blocks, dictionary of %d bytes", len(out.blocks), len(out.dict))
	}
	sameVectors(t, readFile(t, out), v)
}

func TestHostilePages(t *testing.T) {
	for _, c := range []struct {
		name, block string
		kind        schema.Kind
	}{
		{"short", "66000000000000", schema.KindInt32},
		{"unknown encoding", "63010000 00000000", schema.KindInt32},
		{"page in a page", "64010000 00000000", schema.KindInt32},
		{"encoding of another kind", "6b010000 00000000", schema.KindInt32},
		{"unknown codec", "66050000 00000000", schema.KindInt32},
		{"codec 0", "66000000 00000000", schema.KindInt32},
		{"flags", "66010100 00000000", schema.KindInt32},
		{"other length", "66010000 0d000000 010000000000000001000000", schema.KindInt32},
		{"plain size of 2^32-1", "66030000 ffffffff 1000", schema.KindInt32},
		{"plain size of 16 MiB, zstd", "66640000 00000001 28b52ffd", schema.KindInt32},
		{"plain size of 16 MiB, zlib", "66040000 00000001 789c", schema.KindInt32},
		{"plain size of 16 MiB, snappy", "66020000 00000001 80808008", schema.KindInt32},
		{"plain size of 16 MiB", "66030000 00000001 1000", schema.KindInt32},
		{"frame, 2^32-1 numbers", "66010000 0d000000 ffffffff 00000000 01 00 00 00 00", schema.KindInt32},
		{"frame, step 0", "66010000 0d000000 01000000 00000000 00 00 00 00 00", schema.KindInt32},
		{"frame, 9 planes", "66010000 0d000000 01000000 00000000 01 00 09 00 00", schema.KindInt32},
		{"frame, 57 bits", "66010000 15000000 01000000 00000000 01 00 00 00 39 0000000000000000", schema.KindInt32},
		{"frame, bytes left over", "66010000 0e000000 01000000 00000000 01 00 00 00 00 00", schema.KindInt32},
		{"distinct, word past the end", "68010000 15000000 01000000 00000000 01 00 01 00 00 00 00 01 02 00 00 00", schema.KindInt32},
		{"decimal, scale", "69010000 0f000000 01000000 00000000 01 02 00 01 00 00 00 00", schema.KindFloat64},
		{"decimal, exception past the end", "69010000 19000000 01000000 00000000 00 00 01 01 0000000000000000 01 00 00 00 00", schema.KindFloat64},
		{"decimal, 2^60 exceptions", "69010000 17000000 01000000 00000000 00 00 808080808080808010 01 00 00 00", schema.KindFloat64},
		{"codes, width 3", "6a010000 0e000000 01000000 00000000 03 01 00 00 00 00", schema.KindBytes},
		{"codes, word past the end", "6a010000 0e000000 01000000 00000000 01 01 02 00 00 00", schema.KindBytes},
		{"text, lengths that wrap", "6b010000 0f000000 02000000 00000000 00 01 ffffffff0f 00 00 00", schema.KindBytes},
		{"text, size past the end", "6b010000 0e000000 01000000 00000000 02 01 02 00 00 00", schema.KindBytes},
		{"shuffle, too few planes", "67010000 0c000000 01000000 00000000 00000000", schema.KindInt32},
	} {
		block := c.block
		if len(unhex(t, block)) == 0 {
			t.Fatal(c.name)
		}
		var err error
		if n := allocated(func() {
			f, limits := Format{c.kind, schema.EncodingPaged, false}, Limits{Bytes: 1 << 20}
			_, err = Decode(new(vector.Vector), unhex(t, block), f, strs("only"), limits)
			checkPacked(t, unhex(t, block), f, strs("only"), limits, nil, Header{}, err)
		}); n > 8<<20 {
			t.Errorf("%s: allocated %d bytes", c.name, n)
		}
		if !errors.Is(err, vfs.ErrCorruption) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func FuzzPage(f *testing.F) {
	formats := []Format{}
	for _, kind := range allKinds {
		for _, nullable := range []bool{false, true} {
			formats = append(formats, Format{kind, schema.EncodingPaged, nullable})
		}
	}
	for i, format := range formats {
		for _, v := range shapes(format.Kind, 40, format.Nullable) {
			for _, w := range allWays(format.Kind) {
				if block, _, ok := encodeWay(f, v, format.Nullable, w); ok {
					f.Add(uint8(i), block)
				}
			}
		}
	}
	fuzzBlocks(f, formats, strs("", "a", "bc", "def"), sameBits)
}

func BenchmarkPage(b *testing.B) {
	const n = 32 << 10
	r := rand.New(rand.NewPCG(85, 86))
	times, small, cents := vector.New(schema.KindInt64, n), vector.New(schema.KindInt64, n), vector.New(schema.KindFloat64, n)
	for i := range n {
		vector.AppendFixed(times, 1_700_000_000_000_000+int64(i)*1000+r.Int64N(500))
		vector.AppendFixed(small, r.Int64N(101))
		vector.AppendFixed(cents, float64(r.IntN(4000))/100)
	}
	for _, c := range []struct {
		name string
		v    *vector.Vector
		w    way
	}{
		{"delta", times, way{schema.EncodingDelta, false, false}},
		{"delta, zstd", times, way{schema.EncodingDelta, true, true}},
		{"frame", small, way{schema.EncodingFrame, false, false}},
		{"frame, zstd", small, way{schema.EncodingFrame, true, true}},
		{"distinct", small, way{schema.EncodingDistinct, false, false}},
		{"decimal", cents, way{schema.EncodingDecimal, false, false}},
		{"shuffle, zstd", cents, way{schema.EncodingShuffle, false, true}},
	} {
		f := Format{Kind: c.v.Kind(), Encoding: schema.EncodingPaged}
		block, _, ok := encodeWay(b, c.v, false, c.w)
		if !ok {
			b.Fatal(c.name)
		}
		b.Run(c.name, func(b *testing.B) {
			var out vector.Vector
			b.SetBytes(plainSize(c.v))
			b.ReportMetric(float64(len(block)), "block-bytes")
			for b.Loop() {
				if _, err := Decode(&out, block, f, nil, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The examples of the format description, byte for byte both ways.
func TestGoldenPages(t *testing.T) {
	nulls := ints(schema.KindInt32, int32(7), 9)
	nulls.AppendNull()
	for _, c := range []struct {
		name, block string
		v           *vector.Vector
		w           way
		words       string
	}{
		{"frame", "66010000 10000000 040000000500000003c8010000041092", ints(schema.KindInt32, int32(100), 103, 106, 127), way{schema.EncodingFrame, false, false}, ""},
		{"frame in planes", "66010000 14000000 040000000500000003c801020001025500000001", ints(schema.KindInt32, int32(100), 103, 106, 1123), way{schema.EncodingFrame, true, false}, ""},
		{"frame, nullable", "66010000 12000000 030203030200000005000000020e00000102", nulls, way{schema.EncodingFrame, false, false}, ""},
		{"delta", "65010000 10000000 0400000005000000bc0f141400000108", ints(schema.KindInt64, int64(1000), 1010, 1020, 1050), way{schema.EncodingDelta, false, false}, ""},
		{"shuffle", "67010000 10000000 05000000050000001d0e180808080808", ints(schema.KindInt8, int8(1), 2, 3, -1, 5), way{schema.EncodingShuffle, false, false}, ""},
		{"distinct", "68010000 15000000 05000000050000000202010800000001000000010d", ints(schema.KindInt64, int64(9), 5, 9, 9, 5), way{schema.EncodingDistinct, false, false}, ""},
		{"distinct wide", "68010000 1e000000 020000000500000001020000000000000000000000000000000100000000", ints(schema.KindInt128, schema.Int128{Lo: 2}, schema.Int128{Lo: 2}), way{schema.EncodingDistinct, false, false}, ""},
		{"decimal, binary", "69010000 11000000 0400000005000000ff02000102000002e4", ints(schema.KindFloat64, 0.25, 0.5, 0.75, 1.0), way{schema.EncodingDecimal, false, false}, ""},
		{"decimal", "69010000 1c000000 0b000000050000000100010a000000000000f07f7efa010000010006", ints(schema.KindFloat64, repeat(9, 12.5, 25.1, math.Inf(1))...), way{schema.EncodingDecimal, false, false}, ""},
		{"codes", "6a010000 0f000000 040000000500000001010000000102", strs("red", "green", "red", "red"), way{schema.EncodingCodes, false, false}, "6b010000 16000000 0200000000000000080206010001726564677265656e"},
		{"text", "6b010000 14000000 04000000050000000501000000024d6162636465", strs("a", "bcd", "", "e"), way{schema.EncodingText, false, false}, "6b010000 14000000 04000000000000000501000000024d6162636465"},
	} {
		block, dict, _ := encodeWay(t, c.v, c.v.Valid() != nil, c.w)
		if want := unhex(t, c.block); !bytes.Equal(block, want) || c.words != "" && !bytes.Equal(dict, unhex(t, c.words)) {
			t.Errorf("%s: %x and words %x, want %x", c.name, block, dict, want)
		}
		f := Format{c.v.Kind(), schema.EncodingPaged, c.v.Valid() != nil}
		got := vector.New(f.Kind, 0)
		if h, err := Decode(got, unhex(t, c.block), f, dictOf(t, dict, f.Encoding), Limits{}); err != nil || h.Ordinal != 5 {
			t.Errorf("%s: %+v, %v", c.name, h, err)
			continue
		}
		sameVectors(t, got, c.v)
	}
}

// A long word that is there often does not turn into as many texts.
func TestLongWordsStayWords(t *testing.T) {
	v := vector.New(schema.KindBytes, 0)
	long := bytes.Repeat([]byte("long "), 2000)
	for i := range 400 {
		_ = v.AppendBytes(long)
		_ = v.AppendBytes(fmt.Appendf(nil, "%d", i))
	}
	_ = v.AppendBytes([]byte("last"))
	f := Format{schema.KindBytes, schema.EncodingPaged, false}
	block, dict := encodeBlock(t, v, 0, EncoderOptions{Format: f, BlockSize: 64 << 10})
	if h, err := PageInfo(block, f.Kind); err != nil || h.Encoding != schema.EncodingCodes || len(block) > 2000 {
		t.Errorf("%+v, %d bytes, %v", h, len(block), err)
	}
	got, _ := decodeBlock(t, block, dict, f)
	sameVectors(t, got, v)
}

// Texts are compressed as fast as zstd can, numbers are not.
func TestTextsAreCompressedFast(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var body []byte
	for len(body) < 8<<10 {
		body = fmt.Appendf(body, "HLT_%d_L1_%d,", rnd.IntN(300), rnd.IntN(40))
	}
	pages := map[bool][]byte{}
	for e, text := range map[schema.Encoding]bool{schema.EncodingText: true, schema.EncodingFrame: false, schema.EncodingCodes: false} {
		h, ok := cutHead(body, e, false)
		if !ok {
			t.Fatalf("%s: no head", e)
		}
		want, err := compress.WithHead(nil, body[:h.size], body[h.size:], schema.CompressionZstd, text)
		if err != nil {
			t.Fatal(err)
		}
		pages[text] = appendPage(nil, body, e, schema.CompressionZstd, false)[pageHeader:]
		if !bytes.Equal(pages[text], want) {
			t.Errorf("%s: a page of %d bytes, want %d", e, len(pages[text]), len(want))
		}
	}
	if bytes.Equal(pages[true], pages[false]) {
		t.Error("both are the same")
	}
}
