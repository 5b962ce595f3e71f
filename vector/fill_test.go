package vector

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/schema"
)

// spreadReference appends the values of v, in order, to the places set in valid.
func spreadReference(v *Vector, valid Bitmap, n int) *Vector {
	out, k := New(v.kind, n), 0
	for i := range n {
		if !valid.Get(i) {
			out.AppendNull()
			continue
		}
		_ = out.Append(v.Value(k))
		k++
	}
	return out
}

func TestSpread(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for kind := schema.KindBool; kind <= schema.KindBytes; kind++ {
		for _, n := range []int{0, 1, 63, 64, 65, 200, 1000} {
			valid := NewBitmap(n)
			for i := range n {
				if dense := i / 64 % 3; dense == 0 || dense == 1 && r.IntN(2) == 0 {
					valid.Set(i)
				}
			}
			v := New(kind, 0)
			for range valid.Count() {
				_ = v.Append(randomOf(r, kind))
			}
			if valid.Count() == n {
				continue // nothing to do, see below
			}
			want := spreadReference(v, valid, n)
			v.Spread(valid, n)
			for i := range n {
				if v.Len() != n || v.Value(i) != want.Value(i) {
					t.Fatalf("%s, %d rows: row %d is %v, want %v", kind, n, i, v.Value(i), want.Value(i))
				}
			}
			if !bytes.Equal(v.data, want.data) {
				t.Fatalf("%s, %d rows: null cells hold values", kind, n)
			}
		}
	}
}

func randomOf(r *rand.Rand, kind schema.Kind) schema.Value {
	switch kind {
	case schema.KindBool:
		return schema.BoolValue(r.IntN(2) == 0)
	case schema.KindFloat32:
		return schema.Float32Value(r.Float32())
	case schema.KindFloat64:
		return schema.Float64Value(r.Float64())
	case schema.KindInt128:
		return schema.Int128Value(schema.Int128{Lo: r.Uint64(), Hi: r.Int64()})
	case schema.KindBytes:
		return schema.BytesValue(make([]byte, r.IntN(4)))
	}
	return schema.IntValue(kind, int64(r.IntN(100)))
}

func TestSpreadWithoutNulls(t *testing.T) {
	v, valid := New(schema.KindInt8, 0), NewBitmap(2)
	copy(v.ExtendFixed(2), []byte{5, 6})
	valid.SetRange(0, 2)
	if v.Spread(valid, 2); v.Valid() != nil || v.Len() != 2 {
		t.Error("a bitmap without nulls was kept")
	}
}

func TestSpreadCodes(t *testing.T) {
	words := New(schema.KindBytes, 0)
	_ = words.AppendBytes([]byte("a"))
	_ = words.AppendBytes([]byte("b"))
	v := New(schema.KindInt64, 0)
	copy(v.ResetCodes(2, 2, 4, words), []byte{1, 0, 0, 0})
	HostOrder(v.data, 2)
	v.Spread(Bitmap{0b1010}, 4)
	want := []schema.Value{schema.Null, schema.StringValue("b"), schema.Null, schema.StringValue("a")}
	for i, w := range want {
		if v.Value(i) != w {
			t.Errorf("row %d: %v", i, v.Value(i))
		}
	}
	if v.CodeWidth() != 2 || v.Code(0) != 0 {
		t.Error("codes of nulls are not 0")
	}
}

func TestExtend(t *testing.T) {
	v := New(schema.KindBytes, 0)
	_ = v.AppendBytes([]byte("xy"))
	ends, data, base, err := v.ExtendBytes(2, 3)
	if err != nil || base != 2 {
		t.Fatal(base, err)
	}
	copy(data, "abc")
	ends[0], ends[1] = base+1, base+3
	if string(v.BytesAt(0)) != "xy" || string(v.BytesAt(1)) != "a" || string(v.BytesAt(2)) != "bc" || v.Len() != 3 {
		t.Errorf("%q %v", v.Data(), v.Offsets())
	}
	if _, _, _, err := v.ExtendBytes(1, 1<<31-3); err != ErrTooLarge {
		t.Error(err)
	}
	b := New(schema.KindBool, 0)
	b.AppendBool(true)
	if words := b.ExtendBits(64); len(words) != 2 || b.Len() != 65 || !b.Bits().Get(0) || b.Bits().Get(64) {
		t.Error(b.Len(), words)
	}
}

func TestSwapWords(t *testing.T) {
	for w, want := range map[int][]byte{1: {1, 2, 3, 4, 5, 6, 7, 8}, 2: {2, 1, 4, 3, 6, 5, 8, 7}, 4: {4, 3, 2, 1, 8, 7, 6, 5},
		8: {8, 7, 6, 5, 4, 3, 2, 1}} {
		b := []byte{1, 2, 3, 4, 5, 6, 7, 8}
		if swapWords(b, w); !bytes.Equal(b, want) {
			t.Errorf("width %d: %v", w, b)
		}
	}
}

func TestDense(t *testing.T) {
	v := New(schema.KindInt8, 0)
	v.AppendNull()
	if d := v.Dense(); d.IsNull(0) || !v.IsNull(0) || d.Len() != 1 {
		t.Error("validity")
	}
}
