package encoding

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func ints[T vector.Fixed](kind schema.Kind, vals ...T) *vector.Vector {
	return vector.FromFixed(kind, vals, nil)
}

func strs(vals ...string) *vector.Vector {
	v := vector.New(schema.KindBytes, len(vals))
	for _, s := range vals {
		if err := v.AppendBytes([]byte(s)); err != nil {
			panic(err)
		}
	}
	return v
}

// bools returns a vector of the characters '1' (true), '0' (false) and 'n' (null).
func bools(s string) *vector.Vector {
	v := vector.New(schema.KindBool, len(s))
	for _, c := range s {
		if c == 'n' {
			v.AppendNull()
		} else {
			v.AppendBool(c == '1')
		}
	}
	return v
}

func repeat[T any](n int, x T, more ...T) []T {
	var out []T
	for range n {
		out = append(out, x)
	}
	return append(out, more...)
}

// tester is a test, a benchmark or a round of a property test.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// encodeBlock encodes all of v as one block.
func encodeBlock(t tester, v *vector.Vector, ordinal uint32, o EncoderOptions) (block, dict []byte) {
	t.Helper()
	e, err := NewEncoder(o)
	if err != nil {
		t.Fatal(err)
	}
	e.Reset(ordinal)
	n, err := e.Add(v, 0, v.Len())
	if err != nil || n != v.Len() || e.Rows() != n {
		t.Fatalf("took %d of %d rows: %v", n, v.Len(), err)
	}
	dict, _ = e.AppendDict(nil)
	return e.Finish(nil), dict
}

// dictOf decodes a dictionary block, nil when there is none.
func dictOf(t tester, dict []byte, e schema.Encoding) *vector.Vector {
	t.Helper()
	if dict == nil {
		return nil
	}
	words, err := DecodeDict(dict, e, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// decodeBlock decodes a block, with its dictionary if it has one.
func decodeBlock(t tester, block, dict []byte, f Format) (*vector.Vector, Header) {
	t.Helper()
	words := dictOf(t, dict, f.Encoding)
	v := vector.New(f.Kind, 0)
	h, err := Decode(v, block, f, words, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return v, h
}

func sameVectors(t tester, got, want *vector.Vector) {
	t.Helper()
	if got.Len() != want.Len() || got.Kind() != want.Kind() {
		t.Fatalf("%d values of %s, want %d of %s", got.Len(), got.Kind(), want.Len(), want.Kind())
	}
	for i := range want.Len() {
		if g, w := got.Value(i), want.Value(i); g != w {
			t.Fatalf("value %d is %v, want %v", i, g, w)
		}
	}
}

// The examples of the format description, byte for byte both ways.
func TestGoldenBlocks(t *testing.T) {
	i64 := func(k schema.Kind, n ...int32) *vector.Vector { return ints(k, n...) }
	kind := schema.KindInt32
	nullable := vector.New(kind, 0)
	allNull := vector.New(kind, 0)
	for i, n := range []int32{10, 0, 0, 20, 30} {
		if i == 1 || i == 2 {
			nullable.AppendNull()
		} else {
			vector.AppendFixed(nullable, n)
		}
		if i < 4 {
			allNull.AppendNull()
		}
	}
	var seq []uint32
	for i := range 505 {
		seq = append(seq, uint32(i))
	}
	for _, c := range []struct {
		name     string
		v        *vector.Vector
		enc      schema.Encoding
		ordinal  uint32
		interval int
		nullable bool
		want     string
	}{
		{"null header", nullable, schema.EncodingPlain, 0, 0, true,
			"05 02 03 19 03 00 00 00 00 00 00 00 0a 00 00 00 14 00 00 00 1e 00 00 00"},
		{"all null", allNull, schema.EncodingPlain, 0, 0, true, "04 02 08 00 00 00 00 00 00 00 00 00"},
		{"plain int16", ints(schema.KindInt16, int16(1), -1, 256), schema.EncodingPlain, 10, 0, false,
			"03 00 00 00 0a 00 00 00 01 00 ff ff 00 01"},
		{"plain bool", bools("101100001"), schema.EncodingPlain, 0, 0, false, "09 00 00 00 00 00 00 00 0d 01"},
		{"plain bytes", strs("a", "bcd", "", "e"), schema.EncodingPlain, 7, 0, false,
			"07 00 00 00 04 00 00 00 11 00 00 00 61 62 63 64 65 00 0c 0d 10 10"},
		{"plain bytes, empty", strs(), schema.EncodingPlain, 0, 0, false, "00 00 00 00 00 00 00 00 0c 00 00 00"},
		{"prefix, interval 2", strs("car", "card", "care", "dog"), schema.EncodingPrefix, 12345, 2, false,
			"10 04 39 30 02 00 00 03 63 61 72 03 01 64 00 04 63 61 72 65 00 03 64 6f 67 0e 00 00 00 01 00 00 00"},
		{"prefix", strs("hello 0", "hello 1", "help"), schema.EncodingPrefix, 0, 0, false,
			"00 03 00 10 00 00 07 68 65 6c 6c 6f 20 30 06 01 31 03 01 70 00 00 00 00"},
		{"prefix, empty", strs(), schema.EncodingPrefix, 0, 0, false, "00 00 00 10 00 00 00 00 00"},
		{"rle one", i64(kind, 7), schema.EncodingRLE, 0, 0, false, "01000000 00000000 02 07 00 00 00"},
		{"rle literals", i64(kind, 1, 2, 3), schema.EncodingRLE, 0, 0, false,
			"03000000 00000000 03 01 00 00 00 02 00 00 00 03 00 00 00"},
		{"rle run", i64(kind, repeat(10, int32(5))...), schema.EncodingRLE, 0, 0, false, "0a000000 00000000 14 05 00 00 00"},
		{"rle 100 zeros", i64(kind, make([]int32, 100)...), schema.EncodingRLE, 0, 0, false, "64000000 00000000 c8 01 00 00 00 00"},
		{"rle run and literals", i64(kind, repeat(9, int32(5), -1, 2, 2)...), schema.EncodingRLE, 64, 0, false,
			"0c 00 00 00 40 00 00 00 12 05 00 00 00 03 ff ff ff ff 02 00 00 00 02 00 00 00"},
		{"rle literals and run", i64(kind, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5), schema.EncodingRLE, 0, 0, false,
			"10000000 00000000 03 01000000 02000000 03000000 04000000 05000000 05000000 05000000 05000000 10 05 00 00 00"},
		{"rle 505", ints(kind, seq...), schema.EncodingRLE, 0, 0, false,
			"f9010000 00000000 7f" + hex.EncodeToString(appendRaw(nil, ints(kind, seq...), 0, 504)) + "02 f8 01 00 00"},
		{"rle int8", ints(schema.KindInt8, repeat(9, int8(-1))...), schema.EncodingRLE, 0, 0, false, "09000000 00000000 12 ff"},
		{"rle 16 bits", ints(schema.KindInt16, int16(2), 0, 0, 1), schema.EncodingRLE, 0, 0, false,
			"04000000 00000000 03 02 00 00 00 00 00 01 00"},
		{"rle bool literals", bools("10101"), schema.EncodingRLE, 0, 0, false, "05000000 00000000 03 15"},
		{"rle bool run", bools(strings.Repeat("1", 20) + "010"), schema.EncodingRLE, 0, 0, false,
			"17 00 00 00 00 00 00 00 28 01 03 02"},
		{"rle bool short run", bools("0000"), schema.EncodingRLE, 0, 0, false, "04000000 00000000 08 00"},
		{"bitshuffle", i64(kind, 1, 2, 3, -1, 5), schema.EncodingBitShuffle, 100, 0, false,
			"64 00 00 00 05 00 00 00 26 00 00 00 08 00 00 00 04 00 00 00 00 00 00 0e 4f 1d 0e 18 08 01 00 04 50 08 08 08 08 08"},
		{"codes", strs("red", "green", "blue", "red", "green"), schema.EncodingDict, 0, 0, false,
			"01 00 00 00 00 00 00 00 05 00 00 00 21 00 00 00 08 00 00 00 01 00 00 00 00 00 00 09 80 12 04 00 00 00 00 00 00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Format{c.v.Kind(), c.enc, c.nullable}
			block, dict := encodeBlock(t, c.v, c.ordinal, EncoderOptions{Format: f, RestartInterval: c.interval})
			want := unhex(t, c.want)
			if c.enc == schema.EncodingBitShuffle || c.enc == schema.EncodingDict {
				got, h := decodeBlock(t, want, dict, f)
				sameVectors(t, got, c.v)
				if h.Ordinal != c.ordinal {
					t.Errorf("ordinal %d", h.Ordinal)
				}
			}
			if !bytes.Equal(block, want) && c.enc != schema.EncodingBitShuffle { // LZ4 output is not unique
				t.Errorf("got  %x\nwant %x", block, want)
			}
			got, h := decodeBlock(t, block, dict, f)
			sameVectors(t, got, c.v)
			if h.Ordinal != c.ordinal || h.Rows != c.v.Len() {
				t.Errorf("header %+v", h)
			}
		})
	}
}

func TestGoldenDictionary(t *testing.T) {
	_, dict := encodeBlock(t, strs("red", "green", "blue", "red", "green"), 0,
		EncoderOptions{Format: Format{schema.KindBytes, schema.EncodingDict, false}})
	want := unhex(t, "00 00 00 00 03 00 00 00 18 00 00 00 72 65 64 67 72 65 65 6e 62 6c 75 65 00 0c 0f 14 00")
	if !bytes.Equal(dict, want) {
		t.Errorf("got  %x\nwant %x", dict, want)
	}
	plain := unhex(t, "02 00 00 00 09 00 00 00 02 00 00 00 0f 00 00 00 78 79 7a 00 0c 0d 00 00")
	got, h := decodeBlock(t, plain, dict, Format{schema.KindBytes, schema.EncodingDict, false})
	sameVectors(t, got, strs("x", "yz"))
	if h.Ordinal != 9 {
		t.Errorf("ordinal %d", h.Ordinal)
	}
}

func TestGoldenGroupVarint(t *testing.T) {
	for _, c := range []struct {
		vals []uint32
		want string
	}{
		{[]uint32{1, 2, 3, 254}, "00 01 02 03 fe"},
		{[]uint32{256, 2, 3, 65535}, "41 00 01 02 03 ff ff"},
		{[]uint32{12, 17, 22, 22, 300}, "00 0c 11 16 16 40 2c 01 00 00 00"},
		{nil, ""},
	} {
		if got := appendGroups(nil, c.vals); !bytes.Equal(got, unhex(t, c.want)) {
			t.Errorf("%v: %x", c.vals, got)
		}
	}
}
