package encoding

import (
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

var allKinds = []schema.Kind{schema.KindBool, schema.KindInt8, schema.KindInt16, schema.KindInt32, schema.KindInt64,
	schema.KindInt128, schema.KindFloat32, schema.KindFloat64, schema.KindBytes}

// encodings returns the concrete encodings of a kind.
func encodings(kind schema.Kind) (out []schema.Encoding) {
	for e := schema.EncodingPlain; e <= schema.EncodingBitShuffle; e++ {
		if e.Supports(kind) {
			out = append(out, e)
		}
	}
	return append(out, schema.EncodingPaged)
}

// eachFormat runs f for every format there is.
func eachFormat(t *testing.T, f func(t *testing.T, format Format)) {
	for _, kind := range allKinds {
		for _, enc := range encodings(kind) {
			for _, nullable := range []bool{false, true} {
				name := kind.String() + "/" + enc.String()
				if nullable {
					name += "/nullable"
				}
				t.Run(name, func(t *testing.T) { f(t, Format{kind, enc, nullable}) })
			}
		}
	}
}

// file is a column written as blocks.
type file struct {
	f      Format
	blocks [][]byte
	dict   []byte
}

// writeFile encodes v in blocks, in batches of random size up to the given one.
func writeFile(t tester, v *vector.Vector, o EncoderOptions, batch int) file {
	t.Helper()
	e, err := NewEncoder(o)
	if err != nil {
		t.Fatal(err)
	}
	out := file{f: o.Format}
	r := rand.New(rand.NewPCG(3, uint64(v.Len())))
	flush := func(next int) {
		out.blocks = append(out.blocks, e.Finish(nil))
		e.Reset(uint32(next))
	}
	for at := 0; at < v.Len(); {
		n, err := e.Add(v, at, min(at+1+r.IntN(batch), v.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if at += n; e.Full() {
			flush(at)
		} else if n == 0 {
			t.Fatal("an encoder that is not full took nothing")
		}
	}
	if e.Rows() > 0 || len(out.blocks) == 0 {
		flush(v.Len())
	}
	out.dict, _ = e.AppendDict(nil)
	return out
}

// readFile decodes all blocks and checks their ordinals.
func readFile(t tester, in file) *vector.Vector {
	t.Helper()
	all, words := vector.New(in.f.Kind, 0), dictOf(t, in.dict, in.f.Encoding)
	for _, block := range in.blocks {
		v := vector.New(in.f.Kind, 0)
		h, err := Decode(v, block, in.f, words, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if int(h.Ordinal) != all.Len() || h.Rows != v.Len() {
			t.Fatalf("block says %+v, %d rows precede it and it has %d", h, all.Len(), v.Len())
		}
		checkVector(t, v)
		if err := all.AppendRange(v, 0, v.Len()); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// checkVector checks the invariants of a decoded vector that values do not show.
func checkVector(t tester, v *vector.Vector) {
	t.Helper()
	n := v.Len()
	for _, b := range []vector.Bitmap{v.Valid(), v.Bits()} {
		if len(b) != 0 && (len(b) != vector.Words(n) || n&63 != 0 && b[len(b)-1]>>(uint(n)&63) != 0) {
			t.Fatalf("bitmap of %d words, last %x, for %d rows", len(b), b[len(b)-1], n)
		}
	}
	for i := range n {
		if !v.IsNull(i) {
			continue
		}
		switch {
		case v.Dict() != nil && v.Code(i) != 0, v.Dict() == nil && v.Kind() == schema.KindBytes && len(v.BytesAt(i)) != 0,
			v.Kind() == schema.KindBool && v.Bits().Get(i):
			t.Fatalf("null cell %d holds a value", i)
		case v.Kind().Width() > 0:
			for _, b := range v.Data()[i*v.Kind().Width() : (i+1)*v.Kind().Width()] {
				if b != 0 {
					t.Fatalf("null cell %d holds a value", i)
				}
			}
		}
	}
}

func roundTrip(t tester, v *vector.Vector, o EncoderOptions, batch int) {
	t.Helper()
	sameVectors(t, readFile(t, writeFile(t, v, o, batch)), v)
}

// randomColumn returns n cells of runs and noise, of few and many distinct values.
func randomColumn(r *rand.Rand, f Format, n int) *vector.Vector {
	v := vector.New(f.Kind, n)
	few := 1 + r.IntN(5)
	for v.Len() < n {
		run := 1
		if r.IntN(4) == 0 {
			run = 1 + r.IntN(100)
		}
		x := randomValue(r, f.Kind, few)
		if f.Nullable && r.IntN(3) == 0 {
			x = schema.Null
		}
		_ = v.AppendConst(x, min(run, n-v.Len()))
	}
	return v
}

func randomValue(r *rand.Rand, kind schema.Kind, few int) schema.Value {
	u := r.Uint64()
	if r.IntN(2) == 0 {
		u = r.Uint64N(uint64(few))
	}
	switch kind {
	case schema.KindBool:
		return schema.BoolValue(u&1 != 0)
	case schema.KindInt128:
		return schema.Int128Value(schema.Int128{Lo: r.Uint64(), Hi: int64(u)})
	case schema.KindFloat32:
		return schema.Float32Value(float32(u))
	case schema.KindFloat64:
		return schema.Float64Value(float64(u) / 3)
	case schema.KindBytes:
		b := make([]byte, u%8)
		for i := range b {
			b[i] = byte(u >> (8 * i) & 3)
		}
		return schema.BytesValue(b)
	}
	unused := 64 - 8*kind.Width()
	return schema.IntValue(kind, int64(u)<<unused>>unused)
}

// dictForm returns the same strings in dictionary form.
func dictForm(v *vector.Vector) *vector.Vector {
	words, at := vector.New(schema.KindBytes, 0), map[string]uint16{}
	codes := make([]uint16, v.Len())
	for i := range codes {
		if v.IsNull(i) {
			continue
		}
		s := string(v.BytesAt(i))
		if _, ok := at[s]; !ok {
			at[s] = uint16(words.Len())
			_ = words.AppendBytes([]byte(s))
		}
		codes[i] = at[s]
	}
	if words.Len() == 0 {
		_ = words.AppendBytes(nil)
	}
	return vector.FromCodes(codes, words, v.Valid())
}
