package encoding

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// benchColumn is one page of values as a column of that kind might have them.
func benchColumn(kind schema.Kind) *vector.Vector {
	r := rand.New(rand.NewPCG(1, 2))
	n := 32 << 10
	v := vector.New(kind, n)
	for i := range n {
		switch kind {
		case schema.KindBool:
			v.AppendBool(i/50%3 == 0)
		case schema.KindBytes:
			_ = v.AppendBytes(fmt.Appendf(nil, "host-%04d.example.com", i/64%256))
		case schema.KindFloat64:
			vector.AppendFixed(v, float64(r.IntN(1000))/10)
		case schema.KindInt64:
			vector.AppendFixed(v, int64(i)*1_000_000+r.Int64N(2000))
		case schema.KindInt32:
			vector.AppendFixed(v, int32(i/20))
		}
	}
	return v
}

func withNulls(v *vector.Vector) *vector.Vector {
	out := vector.New(v.Kind(), v.Len())
	for i := range v.Len() {
		if i%64 < 40 || i%3 != 0 {
			_ = out.Append(v.Value(i))
		} else {
			out.AppendNull()
		}
	}
	return out
}

func plainSize(v *vector.Vector) int64 {
	switch v.Kind() {
	case schema.KindBool:
		return int64(v.Len() / 8)
	case schema.KindBytes:
		return int64(len(v.Data()))
	}
	return int64(v.Len() * v.Kind().Width())
}

func BenchmarkBlocks(b *testing.B) {
	for _, kind := range []schema.Kind{schema.KindBool, schema.KindInt32, schema.KindInt64, schema.KindFloat64, schema.KindBytes} {
		for _, enc := range encodings(kind) {
			for _, nullable := range []bool{false, true} {
				f := Format{kind, enc, nullable}
				v := benchColumn(kind)
				if nullable {
					v = withNulls(v)
				}
				b.Run(fmt.Sprintf("%s/%s/nullable=%v", kind, enc, nullable), func(b *testing.B) { benchBlock(b, f, v) })
			}
		}
	}
}

func benchBlock(b *testing.B, f Format, v *vector.Vector) {
	e, err := NewEncoder(EncoderOptions{Format: f, BlockSize: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	var block []byte
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(plainSize(v))
		b.ReportAllocs()
		for b.Loop() {
			e.Reset(0)
			if n, err := e.Add(v, 0, v.Len()); n != v.Len() || err != nil {
				b.Fatal(n, err)
			}
			block = e.Finish(block[:0])
		}
	})
	var words *vector.Vector
	if dict, ok := e.AppendDict(nil); ok {
		if words, err = DecodeDict(dict, f.Encoding, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
	var out vector.Vector
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(plainSize(v))
		b.ReportMetric(float64(len(block)), "block-bytes")
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Decode(&out, block, f, words, Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAppendKeys(b *testing.B) {
	n := 4096
	hosts, times := vector.New(schema.KindBytes, n), vector.New(schema.KindInt64, n)
	for i := range n {
		_ = hosts.AppendBytes(fmt.Appendf(nil, "host-%04d", i%100))
		vector.AppendFixed(times, int64(i)*1000)
	}
	cols := []*vector.Vector{hosts, times}
	var keys vector.Vector
	b.ReportAllocs()
	for b.Loop() {
		keys.Reset(schema.KindBytes)
		if err := AppendKeys(&keys, cols, 0, n); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
}
