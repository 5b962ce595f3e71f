package arrow

import (
	"bytes"
	"context"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// benchBatch is 64 Ki rows of a time, two numbers, a name.
func benchBatch() *vector.Batch {
	columns := []schema.Column{{Name: "date", Type: schema.UnixtimeMicros}, {Name: "delay", Type: schema.Int64, Nullable: true},
		{Name: "distance", Type: schema.Int16}, {Name: "origin", Type: schema.String}}
	v := []*vector.Vector{vector.New(schema.KindInt64, 0), vector.New(schema.KindInt64, 0), vector.New(schema.KindInt16, 0),
		vector.New(schema.KindBytes, 0)}
	for i := range int64(1 << 16) {
		vector.AppendFixed(v[0], i*1_000_000)
		if i%97 == 0 {
			v[1].AppendNull()
		} else {
			vector.AppendFixed(v[1], i*7919%180-20)
		}
		vector.AppendFixed(v[2], int16(i*7907%4962))
		_ = v[3].AppendBytes([]byte{'A', byte('A' + i*31%23), byte('A' + i%19)})
	}
	return vector.NewBatch(columns, v, 1<<16)
}

func BenchmarkRead(b *testing.B) {
	batch := benchBatch()
	var buf bytes.Buffer
	w, err := NewWriter(&buf, batch.Schema(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	for range 16 {
		if err := w.Write(batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	path := store(b, buf.Bytes())
	b.SetBytes(int64(buf.Len()))
	b.ReportAllocs()
	for b.Loop() {
		r, err := OpenFile(path)
		if err != nil {
			b.Fatal(err)
		}
		for {
			got, err := r.Next(context.Background(), 1<<16)
			if err != nil {
				b.Fatal(err)
			}
			if got == nil {
				break
			}
		}
		r.Close()
	}
	b.ReportMetric(float64(b.N)*16*float64(batch.Len())/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkWrite(b *testing.B) {
	batch := benchBatch()
	b.ReportAllocs()
	for b.Loop() {
		var buf bytes.Buffer
		w, err := NewWriter(&buf, batch.Schema(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := w.Write(batch); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(batch.Len())/b.Elapsed().Seconds(), "rows/s")
}
