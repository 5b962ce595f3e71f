package aggregate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func BenchmarkAdd(b *testing.B) {
	const n = 64 << 10
	s := testSchema(b)
	r := rand.New(rand.NewPCG(1, 2))
	ints, floats, small, codes := make([]int64, n), make([]float64, n), make([]int32, n), make([]uint8, n)
	half, all := vector.NewBitmap(n), vector.NewBitmap(n)
	all.SetRange(0, n)
	for i := range ints {
		ints[i], floats[i], small[i], codes[i] = r.Int64()-1<<62, r.Float64(), int32(r.IntN(1000)), uint8(r.IntN(200))
		half.Put(i, r.IntN(2) == 0)
	}
	words := vector.New(schema.KindBytes, 0)
	for i := range 200 {
		words.AppendBytes(fmt.Appendf(nil, "host-%d", i))
	}
	i64, d, i32, str := s.Find("i64"), s.Find("d"), s.Find("i32"), s.Find("s")
	get := columnsOf(map[int]*vector.Vector{i64: vector.FromFixed(schema.KindInt64, ints, nil),
		d: vector.FromFixed(schema.KindFloat64, floats, nil), i32: vector.FromFixed(schema.KindInt32, small, nil),
		str: vector.FromCodes(codes, words, nil)})
	for _, c := range []struct {
		name    string
		groupBy []int
		spec    Spec
	}{
		{"sum-int64", nil, Spec{Sum, i64}}, {"sum-int32", nil, Spec{Sum, i32}}, {"sum-double", nil, Spec{Sum, d}},
		{"min-int64", nil, Spec{Min, i64}}, {"max-double", nil, Spec{Max, d}},
		{"sum-by-dict", []int{str}, Spec{Sum, d}}, {"sum-by-int", []int{i32}, Spec{Sum, d}}, {"sum-by-two", []int{str, i32}, Spec{Sum, d}},
		{"count-by-int64", []int{i64}, Spec{CountRows, 0}},
	} {
		for name, sel := range map[string]vector.Bitmap{"all": all, "half": half} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				st := mustPlan(b, s, c.groupBy, c.spec).NewState()
				b.ReportAllocs()
				for b.Loop() {
					if err := st.Add(n, sel, get); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e9, "Grows/s")
			})
		}
	}
}
