package schema

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNewMovesKeyToFront(t *testing.T) {
	cols, err := ParseColumns("v double null, host string, ts unixtime_micros, tag string null")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(cols, []string{"ts", "host"}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Names(), []string{"ts", "host", "v", "tag"}) || !slices.Equal(s.KeyNames(), []string{"ts", "host"}) {
		t.Errorf("%v, key %v", s.Names(), s.KeyNames())
	}
	if s.Find("v") != 2 || s.Find("V") != -1 || s.NumKey() != 2 || s.AutoIncrement() != -1 {
		t.Errorf("find %d %d", s.Find("v"), s.Find("V"))
	}
}

func TestNewRefuses(t *testing.T) {
	long := StringValue(strings.Repeat("x", 70000))
	f := func(columns, key, want string, change func([]Column)) {
		t.Helper()
		cols, err := ParseColumns(columns)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(cols)
		}
		var keys []string
		if key != "" {
			keys = strings.Split(key, ",")
		}
		_, err = New(cols, keys, Limits{MaxColumns: 3})
		var se *SchemaError
		if !errors.As(err, &se) || !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s key %s: %v, want %s", columns, key, err, want)
		}
	}
	f("a int8", "", "no primary key", nil)
	f("a int8", "b", "not among the columns", nil)
	f("a int8", "a,a", "named twice", nil)
	f("a int8, a int16", "a", "two columns", nil)
	f("a int8, b int8, c int8, d int8", "a", "4 columns, at most 3", nil)
	f("a double", "a", "a double column cannot be part of the key", nil)
	f("a int8 null", "a", "cannot be nullable", nil)
	f("a string encoding rle", "a", "encoding rle does not support", nil)
	f("a int64 encoding dict", "a", "encoding dict does not support", nil)
	f("a int8, auto_incrementing_id int64", "a", "reserved", nil)
	f("a int8, b int8", "a", "NUL", func(c []Column) { c[1].Name = "x\x00" })
	f("a int8, b int8", "a", "256", func(c []Column) { c[1].Name = strings.Repeat("x", 257) })
	f("a int8, b int8", "a", "out of range", func(c []Column) { c[1].Default = IntValue(KindInt8, 300) })
	f("a int8, b int8", "a", "wrong type", func(c []Column) { c[1].ReadDefault = BoolValue(true) })
	f("a int8, b string", "a", "at most 65536", func(c []Column) { c[1].Default = long })
	f("a int8, b int8", "a", "page size", func(c []Column) { c[1].BlockSize = -1 })
	f("a int8, b decimal(9,2)", "a", "do not fit", func(c []Column) { c[1].Precision = 10 })
	f("a int8, b int8", "a", "unknown type", func(c []Column) { c[1].Type = 2 })
}

func TestInt128AgreesWithBig(t *testing.T) {
	toBig := func(a Int128) *big.Int {
		n := big.NewInt(a.Hi)
		return n.Lsh(n, 64).Add(n, big.NewInt(0).SetUint64(a.Lo))
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, 1, math.MinInt64, math.MaxInt64}))
		a := Int128{uint64(word.Draw(t, "a")), word.Draw(t, "A")}
		b := Int128{uint64(word.Draw(t, "b")), word.Draw(t, "B")}
		if a.String() != toBig(a).String() || a.Cmp(b) != toBig(a).Cmp(toBig(b)) {
			t.Fatalf("%v %v", a, b)
		}
		sum, ok := a.Add(b)
		want := big.NewInt(0).Add(toBig(a), toBig(b))
		if ok != (want.BitLen() <= 127 || want.Cmp(toBig(Int128{Hi: math.MinInt64})) == 0) || ok && toBig(sum).Cmp(want) != 0 {
			t.Fatalf("%v + %v = %v, %v", a, b, sum, ok)
		}
	})
}

func TestCompare(t *testing.T) {
	ordered := [][]Value{
		{Null, BoolValue(false), BoolValue(true)},
		{Null, IntValue(KindInt8, -1), IntValue(KindInt8, 0), IntValue(KindInt8, 1)},
		{Null, Int128Value(Int128{Hi: -1}), Int128Value(Int128{Lo: 1}), Int128Value(Int128{Hi: 1})},
		{Null, Float64Value(math.Inf(-1)), Float64Value(0), Float64Value(1), Float64Value(math.NaN())},
		{Null, StringValue(""), StringValue("\x00"), StringValue("a"), StringValue("a\x00"), StringValue("\xff")},
	}
	for _, values := range ordered {
		for i, v := range values {
			for k, w := range values {
				if got := v.Compare(w); got != min(1, max(-1, i-k)) {
					t.Errorf("%v, %v: %d", v, w, got)
				}
			}
		}
	}
	if Float32Value(float32(math.Copysign(0, -1))).Compare(Float32Value(0)) != 0 {
		t.Error("-0 differs from 0")
	}
}

func TestDefaultsOfStorage(t *testing.T) {
	for typ := range typeInfos {
		typ := Type(typ)
		if !typ.Valid() {
			if typ.KeyCapable() {
				t.Errorf("%s can be a key", typ)
			}
			continue
		}
		e := EncodingAuto.Resolve(typ.Kind())
		want := EncodingBitShuffle
		switch {
		case typ == Bool:
			want = EncodingRLE
		case typ.Kind() == KindBytes:
			want = EncodingDict
		}
		if e != want || !e.Supports(typ.Kind()) || EncodingPlain.Resolve(typ.Kind()) != EncodingPlain {
			t.Errorf("%s: %s", typ, e)
		}
	}
	if CompressionDefault.Resolve(EncodingBitShuffle) != CompressionNone || CompressionDefault.Resolve(EncodingDict) != CompressionLZ4 ||
		CompressionZstd.Resolve(EncodingBitShuffle) != CompressionZstd {
		t.Error("compression")
	}
	for precision, want := range map[int]Type{1: Decimal32, 9: Decimal32, 10: Decimal64, 18: Decimal64, 19: Decimal128, 38: Decimal128} {
		if got, ok := DecimalType(precision); !ok || got != want {
			t.Errorf("decimal(%d): %d", precision, got)
		}
	}
	for _, precision := range []int{-1, 0, 39} {
		if _, ok := DecimalType(precision); ok {
			t.Errorf("decimal(%d) is a type", precision)
		}
	}
}

func TestAutoIncrementAndIDs(t *testing.T) {
	cols, err := ParseColumns("v int8, host string, auto_incrementing_id int64")
	if err != nil {
		t.Fatal(err)
	}
	for i := range cols {
		cols[i].ID = ColumnID(10 + i)
	}
	s, err := New(cols, []string{"host", AutoIncrementName}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if s.AutoIncrement() != 1 || s.FindID(10) != 2 || s.FindID(11) != 0 || s.FindID(9) != -1 || s.Len() != 3 || s.Column(2).Name != "v" {
		t.Errorf("%d, %d", s.AutoIncrement(), s.FindID(10))
	}
	s.Columns()[0].Name = "changed"
	if s.Column(0).Name != "host" {
		t.Error("Columns shares memory")
	}
}
