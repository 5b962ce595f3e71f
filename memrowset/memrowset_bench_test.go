package memrowset

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// batches makes n batches ahead, so that a benchmark measures the memrowset alone.
type prepared struct {
	cols []*vector.Vector
	keys *rowset.Keys
}

func prepare(n int, next func() ([]*vector.Vector, *rowset.Keys)) []prepared {
	out := make([]prepared, n)
	for i := range out {
		out[i].cols, out[i].keys = next()
	}
	return out
}

// randomKeys returns a table of an int64 key and ten numbers, and batches of random keys.
func randomKeys(t testing.TB) (*schema.Schema, func() ([]*vector.Vector, *rowset.Keys)) {
	cols := []schema.Column{{Name: "k", Type: schema.Int64}}
	for range 10 {
		cols = append(cols, schema.Column{Type: schema.Int64})
	}
	s := newSchema(t, 1, cols...)
	rng := rand.New(rand.NewPCG(3, 4))
	return s, func() ([]*vector.Vector, *rowset.Keys) {
		vecs := make([]*vector.Vector, s.Len())
		for c := range vecs {
			vals := make([]int64, ingestRows)
			for i := range vals {
				vals[i] = rng.Int64()
			}
			vecs[c] = vector.FromFixed(schema.KindInt64, vals, nil)
		}
		return vecs, sortedKeys(vecs)
	}
}

// sortedKeys encodes and sorts the keys of a one-column key.
func sortedKeys(cols []*vector.Vector) *rowset.Keys {
	n := cols[0].Len()
	enc := vector.New(schema.KindBytes, n)
	if err := encoding.AppendKeys(enc, cols[:1], 0, n); err != nil {
		panic(err)
	}
	k := &rowset.Keys{Encoded: vector.New(schema.KindBytes, n), Columns: cols[:1], Row: sortedRows(enc)}
	if err := k.Encoded.AppendRows(enc, k.Row); err != nil {
		panic(err)
	}
	return k
}

// perRow reports the time of a row of b.N runs over rows rows.
func perRow(b *testing.B, rows int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
}

func BenchmarkIngest(b *testing.B) {
	run := func(name string, n int, s *schema.Schema, next func() ([]*vector.Vector, *rowset.Keys)) {
		in := prepare(n, next)
		for _, lookups := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/rows=%d/lookup=%v", name, n*ingestRows, lookups), func(b *testing.B) {
				b.ReportAllocs()
				found := make([]rowset.Found, ingestRows)
				which := all(ingestRows)
				for b.Loop() {
					m := New(1, s)
					for i := range in {
						keys := *in[i].keys // without locations cached by an earlier run
						if lookups {
							if err := m.Lookup(context.Background(), &keys, which, found); err != nil {
								b.Fatal(err)
							}
						}
						if _, err := m.Append(mvcc.Timestamp(i+1), in[i].cols, &keys, nil); err != nil {
							b.Fatal(err)
						}
					}
				}
				perRow(b, n*ingestRows)
			})
		}
	}
	g := newIngest(b, 100)
	run("time", 600, g.schema, g.batch)
	s, next := randomKeys(b)
	run("random", 1000, s, next)
}

// filled returns a memrowset of n batches.
func filledTable(b *testing.B, n int) *MemRowSet {
	g := newIngest(b, 100)
	m := New(1, g.schema)
	for range n {
		g.append(b, m)
	}
	return m
}

func BenchmarkScan(b *testing.B) {
	m := filledTable(b, 600)
	for name, order := range map[string]rowset.Order{"storage": rowset.Unordered, "key": rowset.KeyOrder, "reverse": rowset.KeyReverse} {
		b.Run(name, func(b *testing.B) {
			spec := allColumns(m.Schema(), mvcc.Max)
			spec.Order, spec.WithKeys = order, false
			b.ReportAllocs()
			b.SetBytes(m.Rows() * int64(m.BytesPerRow()))
			sum := int64(0)
			for b.Loop() {
				it, err := m.Scan(context.Background(), spec)
				if err != nil {
					b.Fatal(err)
				}
				for {
					batch, err := it.Next(context.Background())
					if err != nil {
						b.Fatal(err)
					}
					if batch == nil {
						break
					}
					for _, v := range batch.Columns[1:] {
						if v.Kind() == schema.KindInt64 {
							for _, x := range vector.Values[int64](v) {
								sum += x
							}
						}
					}
				}
			}
			perRow(b, int(m.Rows()))
		})
	}
}

func BenchmarkSource(b *testing.B) {
	m := filledTable(b, 600)
	b.Run("order", func(b *testing.B) {
		for b.Loop() {
			m.Source(mvcc.Max, mvcc.Max)
		}
		perRow(b, int(m.Rows()))
	})
	src := m.Source(mvcc.Max, mvcc.Max)
	for _, c := range []int{0, 1, 5} {
		b.Run("gather/"+m.Schema().Column(c).TypeString(), func(b *testing.B) {
			dst := &vector.Vector{}
			for b.Loop() {
				for at := 0; at < src.Rows(); at += 65536 {
					dst.Reset(m.Schema().Column(c).Kind())
					if err := src.Column(context.Background(), c, at, min(at+65536, src.Rows()), dst); err != nil {
						b.Fatal(err)
					}
				}
			}
			perRow(b, src.Rows())
		})
	}
}

func BenchmarkGet(b *testing.B) {
	m := filledTable(b, 600)
	g := newIngest(b, 100)
	var hits []*rowset.Keys
	rng := rand.New(rand.NewPCG(1, 1))
	for range 4096 {
		_, k := batch(b, g.schema, []row{g.row(rng.IntN(600_000))})
		hits = append(hits, k)
	}
	found, dst := make([]rowset.Found, 1), []*vector.Vector{vector.New(schema.KindInt64, 1)}
	b.Run("lookup", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			k := hits[i%len(hits)]
			if err := m.Lookup(context.Background(), k, []int32{0}, found); err != nil || found[0].RowSet == nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		rows := uint32(m.Rows())
		for i := 0; b.Loop(); i++ {
			dst[0].Reset(schema.KindInt64)
			if err := m.ReadRow(context.Background(), rowset.RowID(uint32(i)*7919%rows), mvcc.Max, []int{2}, dst); err != nil {
				b.Fatal(err)
			}
		}
	})
}
