package predicate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

const benchRows = 64 << 10

func benchSchema(t testing.TB) *schema.Schema {
	s, err := schema.New([]schema.Column{
		{Name: "k", Type: schema.Int64}, {Name: "i8", Type: schema.Int8}, {Name: "i16", Type: schema.Int16}, {Name: "i32", Type: schema.Int32},
		{Name: "i64", Type: schema.Int64}, {Name: "wide", Type: schema.Decimal128, Precision: 38},
		{Name: "f32", Type: schema.Float}, {Name: "f64", Type: schema.Double}, {Name: "s", Type: schema.String, Nullable: true},
	}, []string{"k"}, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fixedVector[T vector.Fixed](kind schema.Kind, f func(i int) T) *vector.Vector {
	vals := make([]T, benchRows)
	for i := range vals {
		vals[i] = f(i)
	}
	return vector.FromFixed(kind, vals, nil)
}

// BenchmarkEval filters 64 Ki rows in cache, of which about half qualify.
func BenchmarkEval(b *testing.B) {
	s := benchSchema(b)
	r := rand.New(rand.NewPCG(1, 2))
	words := vector.New(schema.KindBytes, 0)
	plain := vector.New(schema.KindBytes, 0)
	for i := range 200 {
		words.AppendBytes(fmt.Appendf(nil, "host-%d", i*7919%200))
	}
	codes8, codes16 := make([]uint8, benchRows), make([]uint16, benchRows)
	for i := range codes8 {
		codes8[i] = uint8(r.IntN(200))
		codes16[i] = uint16(codes8[i])
		plain.AppendBytes(words.BytesAt(int(codes8[i])))
	}
	ints := fixedVector(schema.KindInt64, func(int) int64 { return r.Int64N(1000) })
	var big []any
	for i := range 1000 {
		big = append(big, i*1_000_003)
	}
	for _, c := range []struct {
		name string
		e    Expr
		v    *vector.Vector
	}{
		{"int8", Lt("i8", 3), fixedVector(schema.KindInt8, func(int) int8 { return int8(r.IntN(6)) })},
		{"int16", Lt("i16", 3), fixedVector(schema.KindInt16, func(int) int16 { return int16(r.IntN(6)) })},
		{"int32", Lt("i32", 3), fixedVector(schema.KindInt32, func(int) int32 { return int32(r.IntN(6)) })},
		{"int64", Lt("i64", 500), ints},
		{"int64-range", Between("i64", 250, 750), ints},
		{"int64-in4", In("i64", 1, 200, 300, 999), ints},
		{"int64-in40", In("i64", anys(40)...), ints},
		{"int64-in1000", In("i64", big...), ints},
		{"int128", Lt("wide", 3), fixedVector(schema.KindInt128, func(int) schema.Int128 { return schema.Int128From(r.Int64N(6)) })},
		{"float32", Lt("f32", 0.5), fixedVector(schema.KindFloat32, func(int) float32 { return r.Float32() })},
		{"float64", Lt("f64", 0.5), fixedVector(schema.KindFloat64, func(int) float64 { return r.Float64() })},
		{"dict8-eq", Eq("s", "host-11"), vector.FromCodes(codes8, words, nil)},
		{"dict8-like", Like("s", "%1%"), vector.FromCodes(codes8, words, nil)},
		{"dict16-like", Like("s", "%1%"), vector.FromCodes(codes16, words, nil)},
		{"plain-eq", Eq("s", "host-11"), plain},
		{"plain-range", Lt("s", "host-15"), plain},
		{"plain-like", Like("s", "%1%"), plain},
		{"plain-like-rare", Like("s", "%st-17%"), plain},
		{"plain-like-two", Like("s", "h%st-1_7%"), plain},
	} {
		b.Run(c.name, func(b *testing.B) {
			p, err := Bind(c.e, s)
			if err != nil {
				b.Fatal(err)
			}
			sel, all := vector.NewBitmap(benchRows), vector.NewBitmap(benchRows)
			all.SetRange(0, benchRows)
			b.ReportAllocs()
			b.SetBytes(int64(c.v.Kind().Width() * benchRows))
			for b.Loop() {
				copy(sel, all)
				if err := p.Eval(benchRows, sel, func(int) (*vector.Vector, error) { return c.v, nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds()/1e9, "Grows/s")
		})
	}
}

func anys(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = i * i % 1000
	}
	return out
}
