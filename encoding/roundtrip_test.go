package encoding

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRoundTripEveryFormat(t *testing.T) {
	var formats []Format
	eachFormat(t, func(_ *testing.T, f Format) { formats = append(formats, f) })
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		n := rapid.IntRange(0, 1000).Draw(rt, "rows")
		size := rapid.SampledFrom([]int{16, 512, 1024, 256 << 10}).Draw(rt, "block size")
		maxRows := rapid.SampledFrom([]int{0, 1, 130}).Draw(rt, "max rows")
		for i := int(seed % 6); i < len(formats); i += 6 {
			f := formats[i]
			v := randomColumn(rand.New(rand.NewPCG(seed, 1)), f, n)
			o := EncoderOptions{Format: f, BlockSize: size, MaxRows: maxRows, RestartInterval: 1 + int(seed%20)}
			roundTrip(rt, v, o, 1+int(seed%700))
			if f.Kind == schema.KindBytes {
				roundTrip(rt, dictForm(v), o, 1+int(seed%700))
			}
		}
	})
}

// Every boundary of the sub-blocks, with data that LZ4 cannot compress.
func TestBitShuffleBoundaries(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, kind := range []schema.Kind{schema.KindInt8, schema.KindInt16, schema.KindInt32, schema.KindInt64, schema.KindInt128} {
		full := subBlockBytes / kind.Width()
		for _, n := range []int{0, 1, 7, 8, 9, 63, 64, 65, full - 1, full, full + 1, full + 8, 2 * full} {
			v := vector.New(kind, n)
			for i := range v.ExtendFixed(n) {
				v.Data()[i] = byte(r.Uint32())
			}
			f := Format{kind, schema.EncodingBitShuffle, false}
			block, _ := encodeBlock(t, v, 9, EncoderOptions{Format: f, BlockSize: 1 << 20})
			got, _ := decodeBlock(t, block, nil, f)
			sameVectors(t, got, v)
		}
	}
}

func TestCodeWidths(t *testing.T) {
	for _, c := range []struct{ words, width int }{{0, 1}, {1, 1}, {256, 1}, {257, 2}, {65536, 2}, {65537, 4}} {
		v := vector.New(schema.KindBytes, c.words)
		for i := range c.words {
			_ = v.AppendBytes([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		}
		f := Format{schema.KindBytes, schema.EncodingDict, false}
		block, dict := encodeBlock(t, v, 0, EncoderOptions{Format: f, BlockSize: 1 << 20})
		got, _ := decodeBlock(t, block, dict, f)
		if got.CodeWidth() != c.width {
			t.Errorf("%d words: codes of %d bytes, want %d", c.words, got.CodeWidth(), c.width)
		}
		sameVectors(t, got, v)
	}
}

// C17: values far apart, at every width.
func TestC17ExtremeValues(t *testing.T) {
	for _, kind := range allKinds[1:6] {
		lo, hi := leastValue(kind), schema.Int128Value(schema.Int128{Lo: math.MaxUint64, Hi: math.MaxInt64})
		one := schema.Int128Value(schema.Int128From(1))
		zero, minus := schema.Int128Value(schema.Int128{}), schema.Int128Value(schema.Int128From(-1))
		if kind != schema.KindInt128 {
			_, last := intRange(kind)
			hi, one = schema.IntValue(kind, last), schema.IntValue(kind, 1)
			zero, minus = schema.IntValue(kind, 0), schema.IntValue(kind, -1)
		}
		next, _ := NextValue(kind, lo)
		v := vector.New(kind, 0)
		for _, x := range []schema.Value{lo, hi, lo, zero, hi, minus, one, next, one, zero, one} {
			_ = v.Append(x)
		}
		for range 5000 {
			_ = v.Append(lo)
			_ = v.Append(hi)
		}
		for _, enc := range encodings(kind) {
			roundTrip(t, v, EncoderOptions{Format: Format{kind, enc, false}}, 3000)
		}
	}
	times := vector.New(schema.KindInt64, 0)
	for i := range int64(2000) {
		vector.AppendFixed(times, i*1000+int64(uint64(i/1000)<<63))
	}
	for _, enc := range encodings(schema.KindInt64) {
		roundTrip(t, times, EncoderOptions{Format: Format{schema.KindInt64, enc, false}}, 3000)
	}
}

// C18: one distinct value, one row, no rows.
func TestC18OneDistinctValue(t *testing.T) {
	eachFormat(t, func(t *testing.T, f Format) {
		x := randomValue(rand.New(rand.NewPCG(1, 1)), f.Kind, 2)
		if f.Kind.IsFloat() {
			x = schema.Float64Value(math.NaN())
			if f.Kind == schema.KindFloat32 {
				x = schema.Float32Value(float32(math.NaN()))
			}
		}
		for _, n := range []int{0, 1, 2, 7, 8, 9, 1000} {
			v := vector.New(f.Kind, n)
			_ = v.AppendConst(x, n)
			roundTrip(t, v, EncoderOptions{Format: f}, 1000)
			if f.Nullable {
				v.AppendNull()
				roundTrip(t, v, EncoderOptions{Format: f}, 1000)
			}
		}
	})
}

// C10: a batch of large values is cut where the block is full.
func TestC10LargeValues(t *testing.T) {
	v := strs("", "a", string(make([]byte, 64<<10)), string(make([]byte, 1<<20)), "b")
	for range 50 {
		_ = v.AppendBytes(bytes.Repeat([]byte{'x'}, 50<<10))
	}
	for _, enc := range encodings(schema.KindBytes) {
		o := EncoderOptions{Format: Format{schema.KindBytes, enc, false}, BlockSize: 1024}
		f := writeFile(t, v, o, 1000)
		sameVectors(t, readFile(t, f), v)
		if enc == schema.EncodingPlain && len(f.blocks) < 50 {
			t.Errorf("%d blocks", len(f.blocks))
		}
	}
	huge := vector.FromBytes([]int32{0, MaxValueBytes + 1}, nil, nil) // its bytes are not looked at
	for _, v := range []*vector.Vector{huge, vector.FromCodes([]uint8{0}, huge, nil)} {
		e, _ := NewEncoder(EncoderOptions{Format: Format{schema.KindBytes, schema.EncodingPlain, false}})
		if n, err := e.Add(v, 0, 1); n != 0 || !errors.Is(err, schema.ErrInvalidArgument) {
			t.Errorf("took %d, %v", n, err)
		}
	}
}

func TestEncoderRefuses(t *testing.T) {
	for _, f := range []Format{{0, schema.EncodingPlain, false}, {99, schema.EncodingPlain, false},
		{schema.KindInt128, schema.EncodingRLE, false}, {schema.KindBytes, schema.EncodingBitShuffle, false},
		{schema.KindInt32, schema.EncodingAuto, false}, {schema.KindInt32, 3, false}} {
		if _, err := NewEncoder(EncoderOptions{Format: f}); !errors.Is(err, schema.ErrInvalidArgument) {
			t.Errorf("%+v: %v", f, err)
		}
		if _, err := Decode(new(vector.Vector), nil, f, nil, Limits{}); !errors.Is(err, schema.ErrInvalidArgument) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	e, _ := NewEncoder(EncoderOptions{Format: Format{schema.KindBool, schema.EncodingPlain, false}})
	if _, err := e.Add(bools("1n"), 0, 2); !errors.Is(err, schema.ErrInvalidArgument) {
		t.Errorf("null: %v", err)
	}
	if n, err := e.Add(bools("1n"), 0, 1); n != 1 || err != nil {
		t.Errorf("the part without nulls: %d, %v", n, err)
	}
	if _, err := e.Add(strs("a"), 0, 1); !errors.Is(err, schema.ErrInvalidArgument) {
		t.Errorf("other kind: %v", err)
	}
}

// Where each encoding closes a block of 1,024 bytes, from batches of 100 rows.
func TestFullness(t *testing.T) {
	n := 5000
	v64, text := vector.New(schema.KindInt64, n), vector.New(schema.KindBytes, n)
	for i := range n {
		vector.AppendFixed(v64, int64(i)*7919)
		_ = text.AppendBytes([]byte{byte(i >> 8), byte(i), 1, 2, 3, 4, 5, 6, 7, 8})
	}
	for _, c := range []struct {
		v    *vector.Vector
		enc  schema.Encoding
		rows int
	}{
		{v64, schema.EncodingPlain, 200},      // 8+8n > 1024 first holds within the second batch
		{v64, schema.EncodingBitShuffle, 128}, // 1024/8
		{v64, schema.EncodingRLE, 200},
		{text, schema.EncodingPlain, 85},   // 12 + 10n + offsets
		{text, schema.EncodingPrefix, 100}, // see below: at least a batch
		{text, schema.EncodingDict, 85},    // the dictionary fills first
	} {
		e, _ := NewEncoder(EncoderOptions{Format: Format{c.v.Kind(), c.enc, false}, BlockSize: 1024})
		got, err := e.Add(c.v, 0, n)
		if err != nil || !e.Full() {
			t.Fatalf("%s: %v", c.enc, err)
		}
		if c.enc == schema.EncodingPrefix {
			if size := len(e.Finish(nil)); size < 1024 || size > 1150 {
				t.Errorf("prefix: %d bytes", size)
			}
		} else if got != c.rows {
			t.Errorf("%s %s: %d rows, want %d", c.v.Kind(), c.enc, got, c.rows)
		}
		if k, _ := e.Add(c.v, got, n); k != 0 {
			t.Errorf("%s: a full block took %d rows", c.enc, k)
		}
	}
}

func TestMaxRowsBoundsRunsAndNulls(t *testing.T) {
	nulls := vector.New(schema.KindInt64, 0)
	_ = nulls.AppendConst(schema.Null, 1000)
	zeros := vector.New(schema.KindInt64, 0)
	zeros.ExtendFixed(1000)
	for _, v := range []*vector.Vector{nulls, zeros} {
		e, _ := NewEncoder(EncoderOptions{Format: Format{schema.KindInt64, schema.EncodingRLE, true}, MaxRows: 300})
		if n, err := e.Add(v, 0, 1000); n != 300 || err != nil || !e.Full() {
			t.Errorf("took %d, %v", n, err)
		}
	}
}

func TestFirstAndLastKey(t *testing.T) {
	e, _ := NewEncoder(EncoderOptions{Format: Format{schema.KindInt16, schema.EncodingPlain, false}})
	v := ints(schema.KindInt16, int16(-5), 3, 9)
	for i := range 3 {
		if _, err := e.Add(v, i, i+1); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(e.FirstKey(), []byte{0x7f, 0xfb}) || !bytes.Equal(e.LastKey(), []byte{0x80, 9}) {
		t.Errorf("%x %x", e.FirstKey(), e.LastKey())
	}
	e.Reset(3)
	_, _ = e.Add(v, 1, 2)
	if !bytes.Equal(e.FirstKey(), e.LastKey()) {
		t.Errorf("after reset %x %x", e.FirstKey(), e.LastKey())
	}
}

func TestSizeIsClose(t *testing.T) {
	eachFormat(t, func(t *testing.T, f Format) {
		if f.Encoding == schema.EncodingBitShuffle || f.Encoding == schema.EncodingDict || f.Encoding == schema.EncodingPaged {
			return // sizes before LZ4, or before the encoding is chosen
		}
		e, _ := NewEncoder(EncoderOptions{Format: f})
		v := randomColumn(rand.New(rand.NewPCG(9, 9)), f, 2000)
		n, _ := e.Add(v, 0, v.Len())
		if size, got := e.Size(), len(e.Finish(nil)); n != 2000 || size < got-100 || size > got+200 {
			t.Errorf("estimate %d, got %d", size, got)
		}
	})
}

func TestDecodeAllocatesNothing(t *testing.T) {
	eachFormat(t, func(t *testing.T, f Format) {
		v := randomColumn(rand.New(rand.NewPCG(1, 2)), f, 2000)
		block, dict := encodeBlock(t, v, 0, EncoderOptions{Format: f})
		var words *vector.Vector
		if dict != nil {
			words, _ = DecodeDict(dict, f.Encoding, Limits{})
		}
		var out vector.Vector
		want := 0.0
		if f.Nullable {
			want = 1 // the validity bitmap belongs to the caller
		}
		if n := testing.AllocsPerRun(20, func() {
			if _, err := Decode(&out, block, f, words, Limits{}); err != nil {
				t.Fatal(err)
			}
		}); n > want {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestLimits(t *testing.T) {
	eachFormat(t, func(t *testing.T, f Format) {
		v := randomColumn(rand.New(rand.NewPCG(4, 2)), f, 500)
		block, dict := encodeBlock(t, v, 0, EncoderOptions{Format: f})
		words := strs()
		if dict != nil {
			words, _ = DecodeDict(dict, f.Encoding, Limits{})
		}
		out := new(vector.Vector)
		if _, err := Decode(out, block, f, words, Limits{Rows: 500}); err != nil {
			t.Error(err)
		}
		for _, max := range []Limits{{Rows: 499}, {Bytes: 62}} {
			if _, err := Decode(out, block, f, words, max); !errors.Is(err, vfs.ErrCorruption) {
				t.Errorf("%+v: %v", max, err)
			}
		}
	})
}
