package diskrowset

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// metrics is a table of (host, ts) and eight numbers, n rows in key order.
func metrics(t tb, n int) *rows {
	cols := []schema.Column{col("host", schema.String), col("ts", schema.UnixtimeMicros)}
	for i := range 4 {
		cols = append(cols, col(fmt.Sprint("i", i), schema.Int64), col(fmt.Sprint("d", i), schema.Double))
	}
	s := newSchema(t, 2, cols...)
	r := &rows{schema: s}
	for i := range s.Len() {
		r.cols = append(r.cols, vector.New(s.Column(i).Kind(), n))
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		must(t, r.cols[0].AppendBytes(fmt.Appendf(nil, "host-%04d", i/4096)))
		vector.AppendFixed(r.cols[1], int64(1.7e15)+int64(i%4096)*1e6)
		for c := 2; c < 10; c += 2 {
			vector.AppendFixed(r.cols[c], int64(rnd.IntN(1000)))
			vector.AppendFixed(r.cols[c+1], float64(rnd.IntN(100000))/100)
		}
		r.times = append(r.times, mvcc.Timestamp(i))
	}
	r.encode(t)
	return r
}

func BenchmarkWrite(b *testing.B) {
	src := metrics(b, 400_000)
	st := newStore(b, src.schema)
	o := st.options()
	var size int64
	b.ReportAllocs()
	for b.Loop() {
		all, err := Write(bg, src, o)
		must(b, err)
		size = 0
		for _, w := range all {
			size += w.Size
			must(b, st.fs.Remove(dir+"/"+FileName(w.File)))
		}
	}
	b.ReportMetric(float64(b.N)*float64(src.Rows())/b.Elapsed().Seconds()/1e6, "Mrows/s")
	b.ReportMetric(float64(size)/float64(src.Rows()), "B/row")
}

// BenchmarkScan sums two columns of the rows that pass a filter, from cached pages.
func BenchmarkScan(b *testing.B) {
	src := metrics(b, 800_000)
	st := newStore(b, src.schema)
	var sets []*RowSet
	sets = append(sets, st.write(src, func(o *WriterOptions) { o.Horizon = mvcc.Max })...)
	for _, limit := range []int{10, 500, 990, 2000} {
		b.Run(fmt.Sprintf("below%d", limit), func(b *testing.B) {
			b.ReportAllocs()
			q := query{columns: []string{"i1", "d1"}, where: predicate.Lt("i0", limit)}
			for b.Loop() {
				for _, r := range sets {
					sumScan(b, r, q.bind(b, src.schema))
				}
			}
			b.ReportMetric(float64(b.N)*float64(src.Rows())/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

func sumScan(b *testing.B, r *RowSet, spec *rowset.ScanSpec) (ints int64, floats float64) {
	it, err := r.Scan(bg, spec)
	must(b, err)
	defer it.Close()
	for {
		batch, err := it.Next(bg)
		must(b, err)
		if batch == nil {
			return ints, floats
		}
		x, y := vector.Values[int64](batch.Columns[0]), vector.Values[float64](batch.Columns[1])
		if batch.Sel == nil {
			for i := range x {
				ints += x[i]
				floats += y[i]
			}
			continue
		}
		for w, word := range batch.Sel {
			for ; word != 0; word &= word - 1 {
				i := w*64 + bits.TrailingZeros64(word)
				ints += x[i]
				floats += y[i]
			}
		}
	}
}

// BenchmarkGet looks a key up and reads ten columns of its row, from cached pages.
func BenchmarkGet(b *testing.B) {
	src := metrics(b, 400_000)
	st := newStore(b, src.schema)
	r := st.one(src)
	all := make([]int, src.schema.Len())
	row := make([]*vector.Vector, len(all))
	for i := range all {
		all[i] = i
		row[i] = vector.New(src.schema.Column(i).Kind(), 1)
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	keys := src.lookupKeys()
	which, found := make([]int32, 1), make([]rowset.Found, keys.Len())
	b.ReportAllocs()
	for b.Loop() {
		k := rnd.IntN(keys.Len())
		which[0] = int32(k)
		if err := r.Lookup(bg, keys, which, found); err != nil {
			b.Fatal(err)
		}
		for i, v := range row {
			v.Reset(src.schema.Column(i).Kind())
		}
		if err := r.ReadRow(bg, found[k].Row, mvcc.Max, all, row); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLookupBatch resolves 1,000 keys at a time, none of which is stored.
func BenchmarkLookupBatch(b *testing.B) {
	src := metrics(b, 400_000)
	st := newStore(b, src.schema)
	r := st.one(src)
	absent := metrics(b, 400_000)
	for i, v := range vector.Values[int64](absent.cols[1]) {
		vector.Values[int64](absent.cols[1])[i] = v + 1
	}
	absent.encode(b)
	keys := absent.lookupKeys()
	which, found := make([]int32, 1000), make([]rowset.Found, keys.Len())
	at := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range which {
			which[i] = int32(at + i*300)
		}
		at = (at + 1) % 300
		if err := r.Lookup(bg, keys, which, found); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/key")
}
