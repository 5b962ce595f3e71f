package cfile

import (
	"context"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// benchCells returns the cells benchmarks work on: slowly growing numbers, prices,
// and words of which few are distinct.
func benchCells(b *testing.B, typ schema.Type, n int) *vector.Vector {
	return cells(b, typ.Kind(), n, func(i int) (int64, bool) {
		switch typ {
		case schema.Int64:
			return 1_700_000_000_000 + int64(i)*1000 + int64(i*7919%1000), false
		case schema.String:
			return int64(i * 7919 % 200), false
		case schema.Bool:
			return int64(i / 50), false
		}
		return int64(i * 7919 % 100000), false
	})
}

// plainBytes returns the size of the cells without encoding.
func plainBytes(v *vector.Vector) int64 {
	switch v.Kind() {
	case schema.KindBool:
		return int64(v.Len()+7) / 8
	case schema.KindBytes:
		return int64(len(v.Data()))
	}
	return int64(v.Len() * v.Kind().Width())
}

var benchTypes = []schema.Type{schema.Bool, schema.Int32, schema.Int64, schema.Double, schema.String}

func BenchmarkWrite(b *testing.B) {
	for _, typ := range benchTypes {
		v := benchCells(b, typ, 1<<18)
		for _, enc := range encodings(typ) {
			b.Run(fmt.Sprint(typ, "/", enc), func(b *testing.B) {
				b.SetBytes(plainBytes(v))
				b.ReportAllocs()
				var bytes int64
				for b.Loop() {
					w, err := NewWriter(io.Discard, WriterOptions{Type: typ, Encoding: enc})
					if err != nil {
						b.Fatal(err)
					}
					if err := w.Append(v); err != nil {
						b.Fatal(err)
					}
					s, err := w.Finish()
					if err != nil {
						b.Fatal(err)
					}
					bytes = s.Bytes
				}
				b.ReportMetric(float64(plainBytes(v))/float64(bytes), "ratio")
			})
		}
	}
}

func BenchmarkReadPage(b *testing.B) {
	for _, typ := range benchTypes {
		v := benchCells(b, typ, 1<<18)
		for _, enc := range encodings(typ) {
			b.Run(fmt.Sprint(typ, "/", enc), func(b *testing.B) {
				file, _ := write(b, WriterOptions{Type: typ, Encoding: enc}, v)
				r, _ := open(b, file, ReaderOptions{})
				idx := loadIndex(b, r)
				b.SetBytes(plainBytes(v))
				b.ReportAllocs()
				for b.Loop() {
					for page := range idx.Pages() {
						if _, err := r.ReadPage(context.Background(), idx, page); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

func BenchmarkSeekKey(b *testing.B) {
	v := cells(b, schema.KindInt64, 1<<18, func(i int) (int64, bool) { return int64(i) * 10, false })
	file, _ := write(b, WriterOptions{Type: schema.Int64, ValueIndex: true, BlockSize: 32 << 10}, v)
	r, _ := open(b, file, ReaderOptions{})
	keys := make([][]byte, 1000)
	for i := range keys {
		keys[i] = keyOf(schema.KindInt64, int64(i)*2621)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, _, err := r.SeekKey(context.Background(), keys[i%len(keys)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkPageOf(b *testing.B) {
	idx := &PageIndex{Offsets: make([]int64, 1000), Sizes: make([]uint32, 1000)}
	for i := range 1001 {
		idx.Starts = append(idx.Starts, uint32(i)*65536)
	}
	row := int64(0)
	for b.Loop() {
		row = (row + 7919*65536 + 1) % idx.Rows()
		if idx.PageOf(row) < 0 {
			b.Fatal(math.MaxInt)
		}
	}
}
