package encoding

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// pieces reads v again in pieces of random length and by skipping.
func pieces(t *testing.T, got, want *vector.Vector) {
	t.Helper()
	r := rand.New(rand.NewPCG(11, 12))
	for at := 0; at < want.Len(); {
		n := min(1+r.IntN(30), want.Len()-at)
		sameVectors(t, got.Slice(at, at+n), want.Slice(at, at+n))
		at += n
	}
	for i := 6; i < want.Len(); i += 7 {
		if got.Value(i) != want.Value(i) {
			t.Fatalf("after skipping to %d: %v", i, got.Value(i))
		}
	}
	for range 100 {
		if i := r.IntN(want.Len()); got.Value(i) != want.Value(i) {
			t.Fatalf("sought %d: %v", i, got.Value(i))
		}
	}
}

func TestItem1IntegerRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, kind := range allKinds[1:6] {
		v := vector.New(kind, 0)
		for v.Len() < 10003 {
			n := 1
			if r.IntN(100) == 0 {
				n = min(41, 10003-v.Len())
			}
			_ = v.AppendConst(randomValue(r, kind, 1<<30), n)
		}
		for _, enc := range encodings(kind) {
			f := Format{kind, enc, false}
			block, _ := encodeBlock(t, v, 12345, EncoderOptions{Format: f})
			got, h := decodeBlock(t, block, nil, f)
			if h.Ordinal != 12345 || h.Rows != 10003 {
				t.Errorf("%s %s: %+v", kind, enc, h)
			}
			sameVectors(t, got, v)
			pieces(t, got, v)
		}
	}
}

func TestItem2SeekByValue(t *testing.T) {
	for _, kind := range allKinds[1:6] {
		for _, enc := range encodings(kind) {
			for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 60, 100, 10000} {
				if kind == schema.KindInt8 && n > 60 {
					continue
				}
				v := vector.New(kind, n)
				for i := range n {
					_ = v.Append(intOf(kind, int64(2*i-6)))
				}
				f := Format{kind, enc, false}
				block, _ := encodeBlock(t, v, 0, EncoderOptions{Format: f})
				got, _ := decodeBlock(t, block, nil, f)
				seekAll(t, got, kind, n)
			}
		}
	}
}

func intOf(kind schema.Kind, n int64) schema.Value {
	if kind == schema.KindInt128 {
		return schema.Int128Value(schema.Int128From(n))
	}
	return schema.IntValue(kind, n)
}

func seekAll(t *testing.T, v *vector.Vector, kind schema.Kind, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(2, uint64(n)))
	for range min(1000, 5*n) {
		i := r.IntN(n)
		if pos, exact := Search(v, intOf(kind, int64(2*i-6))); pos != i || !exact {
			t.Fatalf("stored value %d: %d %v", i, pos, exact)
		}
		if pos, exact := Search(v, intOf(kind, int64(2*i-7))); pos != i || exact {
			t.Fatalf("before value %d: %d %v", i, pos, exact)
		}
	}
	if pos, exact := Search(v, intOf(kind, int64(2*n-5))); pos != n || exact {
		t.Fatalf("past the end: %d %v", pos, exact)
	}
}

func TestItem3BitShuffleRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, kind := range []schema.Kind{schema.KindInt32, schema.KindInt64, schema.KindInt128, schema.KindFloat32, schema.KindFloat64} {
		for mode := range 3 {
			v := vector.New(kind, 0)
			raw := v.ExtendFixed(10000)
			w := kind.Width()
			for i := range 10000 {
				cell := raw[i*w : (i+1)*w]
				for j := range cell {
					switch {
					case mode == 0 && j > 1: // small
						cell[j] = 0
					case mode == 1 && j == w-1: // not negative
						cell[j] = byte(r.Uint32()) & 0x7f
					default:
						cell[j] = byte(r.Uint32())
					}
				}
			}
			f := Format{kind, schema.EncodingBitShuffle, false}
			block, _ := encodeBlock(t, v, 0, EncoderOptions{Format: f})
			got, _ := decodeBlock(t, block, nil, f)
			if !bytes.Equal(got.Data(), v.Data()) {
				t.Errorf("%s, range %d: bits differ", kind, mode)
			}
		}
	}
}

func TestItem4Bools(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	v := vector.New(schema.KindBool, 0)
	for v.Len() < 10003 {
		_ = v.AppendConst(schema.BoolValue(r.IntN(2) == 0), r.IntN(100))
	}
	for _, enc := range encodings(schema.KindBool) {
		f := Format{schema.KindBool, enc, false}
		block, _ := encodeBlock(t, v, 12345, EncoderOptions{Format: f})
		got, _ := decodeBlock(t, block, nil, f)
		sameVectors(t, got, v)
		pieces(t, got, v)
	}
}

func TestItem5RunCostsLittle(t *testing.T) {
	v := vector.New(schema.KindInt32, 0)
	v.ExtendFixed(100)
	clear(v.Data())
	block, _ := encodeBlock(t, v, 0, EncoderOptions{Format: Format{schema.KindInt32, schema.EncodingRLE, false}})
	if len(block) != 14 {
		t.Errorf("%d bytes", len(block))
	}
}

func TestItem6EmptyBlocks(t *testing.T) {
	size := map[schema.Encoding]int{schema.EncodingPlain: 8, schema.EncodingRLE: 8, schema.EncodingBitShuffle: 20,
		schema.EncodingDict: 24, schema.EncodingPrefix: 9, schema.EncodingPaged: 16}
	eachFormat(t, func(t *testing.T, f Format) {
		block, dict := encodeBlock(t, vector.New(f.Kind, 0), 0, EncoderOptions{Format: f})
		want := size[f.Encoding]
		if f.Kind == schema.KindBytes && f.Encoding == schema.EncodingPlain {
			want = 12
		}
		if f.Kind == schema.KindBytes && f.Encoding == schema.EncodingPaged {
			want = 20
		}
		if f.Nullable {
			want += 2
		}
		if len(block) != want {
			t.Errorf("%d bytes, want %d: %x", len(block), want, block)
		}
		got, h := decodeBlock(t, block, dict, f)
		if h.Rows != 0 || got.Len() != 0 {
			t.Errorf("%d rows", h.Rows)
		}
		if f.Kind.IsInteger() || f.Kind == schema.KindBytes {
			if pos, exact := Search(got, leastValue(f.Kind)); pos != 0 || exact {
				t.Errorf("search: %d %v", pos, exact)
			}
		}
	})
}

func TestItem7SeekStrings(t *testing.T) {
	for _, enc := range encodings(schema.KindBytes) {
		f := Format{schema.KindBytes, enc, false}
		read := func(v *vector.Vector) *vector.Vector {
			block, dict := encodeBlock(t, v, 12345, EncoderOptions{Format: f})
			got, _ := decodeBlock(t, block, dict, f)
			return got
		}
		seek := func(v *vector.Vector, s string, pos int, exact bool) {
			t.Helper()
			if p, e := Search(v, schema.StringValue(s)); p != pos || e != exact {
				t.Errorf("%s: %q at %d %v, want %d %v", enc, s, p, e, pos, exact)
			}
		}
		small, large := vector.New(schema.KindBytes, 0), vector.New(schema.KindBytes, 0)
		for i := range 1000 {
			if i < 10 {
				_ = small.AppendBytes(fmt.Appendf(nil, "hello %d", i))
			}
			_ = large.AppendBytes(fmt.Appendf(nil, "hello %03d", i))
		}
		small, large = read(small), read(large)
		seek(small, "hello 4x", 5, false)
		seek(small, "hello 4", 4, true)
		seek(small, "hello", 0, false)
		seek(small, "hello 9", 9, true)
		seek(small, "zzzz", 10, false)
		seek(large, "hello 444x", 445, false)
		seek(large, "hello 004", 4, true)
		for i := 1; i < 1000; i++ {
			seek(large, fmt.Sprintf("hello %03d", i), i, true)
			seek(large, fmt.Sprintf("hello %03d.before", i-1), i, false)
		}
	}
}

func TestItem8RandomStrings(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, enc := range []schema.Encoding{schema.EncodingPlain, schema.EncodingPrefix} {
		for n := 1; n <= 1000; n += 1 + n/40 {
			for _, n := range []int{n, (n + 15) &^ 15} {
				v := vector.New(schema.KindBytes, n)
				for range n {
					b := make([]byte, r.IntN(8))
					for i := range b {
						b[i] = byte(r.Uint32())
					}
					_ = v.AppendBytes(b)
				}
				f := Format{schema.KindBytes, enc, false}
				e, _ := NewEncoder(EncoderOptions{Format: f})
				_, _ = e.Add(v, 0, n)
				if !bytes.Equal(e.FirstKey(), v.BytesAt(0)) || !bytes.Equal(e.LastKey(), v.BytesAt(n-1)) {
					t.Fatalf("%s: first and last of %d", enc, n)
				}
				got, h := decodeBlock(t, e.Finish(nil), nil, f)
				sameVectors(t, got, v)
				if h.Rows != n {
					t.Fatalf("%d rows, want %d", h.Rows, n)
				}
			}
		}
	}
}

func TestPrefixRestarts(t *testing.T) {
	for _, n := range []int{1, 15, 16, 17, 32, 33} {
		for _, interval := range []int{1, 2, 16} {
			v := vector.New(schema.KindBytes, 0)
			for i := range n {
				_ = v.AppendBytes(bytes.Repeat([]byte{'a'}, i/3))
			}
			f := Format{schema.KindBytes, schema.EncodingPrefix, false}
			block, _ := encodeBlock(t, v, 0, EncoderOptions{Format: f, RestartInterval: interval})
			if got, want := int(block[len(block)-4]), (n-1)/interval; got != want {
				t.Errorf("%d values, interval %d: %d restarts, want %d", n, interval, got, want)
			}
			got, _ := decodeBlock(t, block, nil, f)
			sameVectors(t, got, v)
		}
	}
}

// Item 9, for every format: a block cut anywhere is corrupt, or by luck shorter and
// valid, but no panic.
func TestItem9Truncation(t *testing.T) {
	eachFormat(t, func(t *testing.T, f Format) {
		v := randomColumn(rand.New(rand.NewPCG(13, 14)), f, 60)
		block, dict := encodeBlock(t, v, 7, EncoderOptions{Format: f})
		words := strs()
		if dict != nil {
			words, _ = DecodeDict(dict, f.Encoding, Limits{})
		}
		for n := range block {
			// A copy, so that reading past the end is seen.
			_, err := Decode(new(vector.Vector), bytes.Clone(block[:n]), f, words, Limits{})
			if !errors.Is(err, vfs.ErrCorruption) {
				t.Fatalf("cut to %d of %d bytes: %v", n, len(block), err)
			}
		}
		for n := range dict {
			if _, err := DecodeDict(bytes.Clone(dict[:n]), f.Encoding, Limits{}); !errors.Is(err, vfs.ErrCorruption) {
				t.Fatalf("dictionary cut to %d bytes: %v", n, err)
			}
		}
	})
}

func TestItem10DictionaryOverflow(t *testing.T) {
	f := Format{schema.KindBytes, schema.EncodingDict, false}
	for _, c := range []struct {
		words    int
		overflow bool
	}{{256, false}, {200000, true}} {
		v := vector.New(schema.KindBytes, 0)
		for i := range 200000 {
			_ = v.AppendBytes(fmt.Appendf(nil, "hello %d", i%c.words))
		}
		for _, v := range []*vector.Vector{v, manyCodes(v, c.words)} {
			out := writeFile(t, v, EncoderOptions{Format: f}, 10000)
			modes := ""
			for _, b := range out.blocks {
				modes += string('0' + rune(b[0]))
			}
			plain := bytes.IndexByte([]byte(modes), '2')
			if (plain >= 0) != c.overflow || plain >= 0 && bytes.Contains([]byte(modes[plain:]), []byte("1")) || modes[0] != '1' {
				t.Errorf("%d words: modes %s", c.words, modes)
			}
			sameVectors(t, readFile(t, out), v)
		}
	}
}

// manyCodes returns the first n strings of v and their repetitions in dictionary form.
func manyCodes(v *vector.Vector, n int) *vector.Vector {
	codes := make([]uint32, v.Len())
	for i := range codes {
		codes[i] = uint32(i % n)
	}
	return vector.FromCodes(codes, v.Slice(0, n), nil)
}

func TestItem12NextAndPrevious(t *testing.T) {
	str := schema.StringValue
	f64 := schema.Float64Value
	for _, c := range []struct {
		kind       schema.Kind
		low, above schema.Value // Null: low is the greatest, or above the least
	}{
		{schema.KindInt8, schema.IntValue(schema.KindInt8, 127), schema.Null},
		{schema.KindInt8, schema.Null, schema.IntValue(schema.KindInt8, -128)},
		{schema.KindInt8, schema.IntValue(schema.KindInt8, -1), schema.IntValue(schema.KindInt8, 0)},
		{schema.KindInt16, schema.IntValue(schema.KindInt16, math.MaxInt16), schema.Null},
		{schema.KindInt32, schema.Null, schema.IntValue(schema.KindInt32, math.MinInt32)},
		{schema.KindInt64, schema.IntValue(schema.KindInt64, math.MaxInt64), schema.Null},
		{schema.KindInt64, schema.Null, schema.IntValue(schema.KindInt64, math.MinInt64)},
		{schema.KindInt128, schema.Int128Value(schema.Int128{Lo: math.MaxUint64}), schema.Int128Value(schema.Int128{Hi: 1})},
		{schema.KindInt128, schema.Int128Value(schema.Int128{Lo: math.MaxUint64, Hi: math.MaxInt64}), schema.Null},
		{schema.KindInt128, schema.Null, schema.Int128Value(schema.Int128{Hi: math.MinInt64})},
		{schema.KindBytes, str("abc"), str("abc\x00")},
		{schema.KindBytes, str(""), str("\x00")},
		{schema.KindBytes, schema.Null, str("abc")},
		{schema.KindBool, schema.BoolValue(false), schema.BoolValue(true)},
		{schema.KindBool, schema.BoolValue(true), schema.Null},
		{schema.KindFloat64, f64(1), f64(math.Nextafter(1, 2))},
		{schema.KindFloat64, f64(math.MaxFloat64), f64(math.Inf(1))},
		{schema.KindFloat64, f64(math.Inf(1)), schema.Null},
		{schema.KindFloat64, f64(math.NaN()), schema.Null},
		{schema.KindFloat32, schema.Float32Value(1), schema.Float32Value(math.Nextafter32(1, 2))},
	} {
		if !c.low.IsNull() {
			if got, ok := NextValue(c.kind, c.low); ok != !c.above.IsNull() || ok && got != c.above {
				t.Errorf("next of %v: %v %v", c.low, got, ok)
			}
		}
		if !c.above.IsNull() {
			if got, ok := PrevValue(c.kind, c.above); ok != !c.low.IsNull() || ok && got != c.low {
				t.Errorf("previous of %v: %v %v", c.above, got, ok)
			}
		}
	}
	if _, ok := NextValue(schema.KindInt8, schema.Null); ok {
		t.Error("null has a next value")
	}
}

func TestItem12Increment(t *testing.T) {
	i8 := func(n int64) schema.Value { return schema.IntValue(schema.KindInt8, n) }
	str := schema.StringValue
	for _, c := range []struct {
		in, out []schema.Value
		ok      bool
	}{
		{[]schema.Value{i8(3), i8(4)}, []schema.Value{i8(3), i8(5)}, true},
		{[]schema.Value{i8(3), i8(127)}, []schema.Value{i8(4), i8(-128)}, true},
		{[]schema.Value{i8(127), i8(127)}, []schema.Value{i8(127), i8(127)}, false},
		{[]schema.Value{str("a"), i8(127), i8(127)}, []schema.Value{str("a\x00"), i8(-128), i8(-128)}, true},
		{[]schema.Value{i8(127), str("")}, []schema.Value{i8(127), str("\x00")}, true},
		{nil, nil, false},
	} {
		got := append([]schema.Value(nil), c.in...)
		if ok := IncrementKeyValues(got); ok != c.ok || fmt.Sprint(got) != fmt.Sprint(c.out) {
			t.Errorf("%v: %v %v", c.in, got, ok)
		}
	}
}
