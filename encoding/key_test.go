package encoding

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

func TestItem11KeyVectors(t *testing.T) {
	i := schema.IntValue
	str := schema.StringValue
	for _, c := range []struct {
		vals []schema.Value
		full int
		want string
	}{
		{[]schema.Value{i(schema.KindInt8, -123)}, 1, "05"},
		{[]schema.Value{i(schema.KindInt16, 12345)}, 1, "b0 39"},
		{[]schema.Value{i(schema.KindInt16, -12345)}, 1, "4f c7"},
		{[]schema.Value{i(schema.KindInt32, -123456)}, 1, "7f fe 1d c0"},
		{[]schema.Value{i(schema.KindInt64, -1234567891011121314)}, 1, "6e dd ef 0b 4d 2d cf 5e"},
		{[]schema.Value{schema.Int128Value(schema.Int128From(-1234567891011121314))}, 1,
			"7f ff ff ff ff ff ff ff ee dd ef 0b 4d 2d cf 5e"},
		{[]schema.Value{str("a\x00b")}, 2, "61 00 01 62 00 00"},
		{[]schema.Value{str("\x00\x01")}, 2, "00 01 01 00 00"},
		{[]schema.Value{i(schema.KindInt32, -5), str("a\x00b"), i(schema.KindInt8, 7)}, 3, "7f ff ff fb 61 00 01 62 00 00 87"},
		{[]schema.Value{i(schema.KindInt16, 3), str("a\x00b")}, 2, "80 03 61 00 62"},
	} {
		if got := AppendKeyValues(nil, c.vals, c.full); !bytes.Equal(got, unhex(t, c.want)) {
			t.Errorf("%v: %x, want %s", c.vals, got, c.want)
		}
	}
}

// C14: strings with zero bytes stay apart and in order, also before another column.
func TestC14ZeroBytesInKeys(t *testing.T) {
	words := []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\x02", "foo", "foo\x00", "foo\x00bar"}
	var keys [][]byte
	for _, a := range words {
		for _, b := range words {
			keys = append(keys, AppendKeyValues(nil, []schema.Value{schema.StringValue(a), schema.StringValue(b)}, 2))
		}
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) || len(slices.CompactFunc(slices.Clone(keys), bytes.Equal)) != 64 {
		t.Error("keys are not ascending and distinct")
	}
}

func keySchema(t testing.TB, types ...schema.Type) *schema.Schema {
	var cols []schema.Column
	var names []string
	for i, typ := range types {
		c := schema.Column{Name: string(rune('a' + i)), Type: typ, ID: schema.ColumnID(i)}
		if typ == schema.Decimal128 {
			c.Precision = 38
		}
		cols, names = append(cols, c), append(names, c.Name)
	}
	s, err := schema.New(cols, names, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func randomKeyValue(r *rand.Rand, kind schema.Kind) schema.Value {
	if kind == schema.KindBytes {
		b := make([]byte, r.IntN(6))
		for i := range b {
			b[i] = []byte{0, 0, 1, 2, 0xff, 'a'}[r.IntN(6)]
		}
		return schema.BytesValue(b)
	}
	if r.IntN(6) == 0 {
		return leastValue(kind)
	}
	return randomValue(r, kind, 3)
}

func TestItem11KeyOrder(t *testing.T) {
	types := []schema.Type{schema.Int8, schema.Int16, schema.Int32, schema.Int64, schema.Decimal128, schema.String, schema.Binary}
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		var picked []schema.Type
		for range 1 + r.IntN(4) {
			picked = append(picked, types[r.IntN(len(types))])
		}
		s, n := keySchema(t, picked...), 40
		cols, rows := make([]*vector.Vector, len(picked)), make([][]schema.Value, n)
		for c, typ := range picked {
			cols[c] = vector.New(typ.Kind(), n)
			for i := range rows {
				x := randomKeyValue(r, typ.Kind())
				if i > 0 && r.IntN(2) == 0 {
					x = rows[i-1][c]
				}
				_ = cols[c].Append(x)
				rows[i] = append(rows[i], x)
			}
		}
		checkKeys(rt, s, cols, rows)
	})
}

func checkKeys(t *rapid.T, s *schema.Schema, cols []*vector.Vector, rows [][]schema.Value) {
	dict := slices.Clone(cols)
	for c, v := range cols {
		if v.Kind() == schema.KindBytes {
			dict[c] = dictForm(v)
		}
	}
	batch, batchDict := vector.New(schema.KindBytes, 0), strs("before")
	if err := errors.Join(AppendKeys(batch, cols, 0, 10), AppendKeys(batch, cols, 10, len(rows)),
		AppendKeys(batchDict, dict, 0, len(rows))); err != nil {
		t.Fatal(err)
	}
	keys := make([][]byte, len(rows))
	for i, row := range rows {
		keys[i] = AppendKeyValues(nil, row, len(row))
		if !bytes.Equal(keys[i], AppendKey(nil, cols, i)) || !bytes.Equal(keys[i], batch.BytesAt(i)) ||
			!bytes.Equal(keys[i], batchDict.BytesAt(i+1)) {
			t.Fatalf("row %d: %x, %x, %x, %x", i, keys[i], AppendKey(nil, cols, i), batch.BytesAt(i), batchDict.BytesAt(i+1))
		}
		back, err := DecodeKey(s, keys[i])
		if err != nil || !slices.Equal(back, row) {
			t.Fatalf("row %d: decoded %v, %v", i, back, err)
		}
		for j := range i {
			if got, want := bytes.Compare(keys[j], keys[i]), compareRows(rows[j], row); got != want {
				t.Fatalf("%v against %v: %d, want %d", rows[j], row, got, want)
			}
		}
		if next := slices.Clone(row); IncrementKeyValues(next) && compareRows(row, next) >= 0 {
			t.Fatalf("%v is not below %v", row, next)
		}
	}
}

func compareRows(a, b []schema.Value) int { return slices.CompareFunc(a, b, schema.Value.Compare) }

func TestItem11DamagedKeys(t *testing.T) {
	for _, c := range []struct {
		types []schema.Type
		key   string
	}{
		{[]schema.Type{schema.Int32}, "80 00 00"},
		{[]schema.Type{schema.Int32}, "80 00 00 00 00"},
		{[]schema.Type{schema.Decimal128}, "80"},
		{[]schema.Type{schema.String, schema.Int8}, "61 62"},
		{[]schema.Type{schema.String, schema.Int8}, "61 00"},
		{[]schema.Type{schema.String, schema.Int8}, "61 00 02 00 00 80"},
		{[]schema.Type{schema.String, schema.Int8}, "61 00 00"},
		{[]schema.Type{schema.String, schema.String}, "61 00 01"},
		{[]schema.Type{schema.Int8}, ""},
	} {
		if _, err := DecodeKey(keySchema(t, c.types...), unhex(t, c.key)); !errors.Is(err, vfs.ErrCorruption) {
			t.Errorf("%v %s: %v", c.types, c.key, err)
		}
	}
}

func TestKeysOfOtherKindsAreRefused(t *testing.T) {
	dst := vector.New(schema.KindBytes, 0)
	if err := AppendKeys(dst, []*vector.Vector{bools("1")}, 0, 1); !errors.Is(err, schema.ErrInvalidArgument) || dst.Len() != 0 {
		t.Error(err)
	}
	if _, _, err := DecodeKeyCell(schema.KindFloat64, nil, true); !errors.Is(err, schema.ErrInvalidArgument) {
		t.Error(err)
	}
	if err := AppendKeys(dst, []*vector.Vector{strs("a")}, 1, 1); err != nil || dst.Len() != 0 {
		t.Error(err)
	}
}

func FuzzDecodeKey(f *testing.F) {
	s := keySchema(f, schema.Int16, schema.String, schema.Binary, schema.Int64)
	f.Add([]byte{0x80, 0, 'a', 0, 1, 0, 0, 'b', 0, 0, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, key []byte) {
		vals, err := DecodeKey(s, key)
		if err != nil {
			if !errors.Is(err, vfs.ErrCorruption) {
				t.Fatal(err)
			}
			return
		}
		if again := AppendKeyValues(nil, vals, len(vals)); cmp.Compare(string(again), string(key)) != 0 {
			t.Fatalf("%x decodes and encodes as %x", key, again)
		}
	})
}
