package tablet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func keyVector(keys [][]byte) *vector.Vector {
	v := vector.New(schema.KindBytes, len(keys))
	for _, k := range keys {
		_ = v.AppendBytes(k)
	}
	return v
}

func TestSortIsStable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		// Long common prefixes and few distinct keys make ties at every level.
		key := rapid.Custom(func(r *rapid.T) []byte {
			return append(bytes.Repeat([]byte{'p'}, rapid.IntRange(0, 20).Draw(r, "prefix")), rapid.SliceOfN(rapid.ByteRange(0, 2), 0, 3).Draw(r, "tail")...)
		})
		keys := rapid.SliceOfN(key, 0, 200).Draw(r, "keys")
		want := make([]int32, len(keys))
		for i := range want {
			want[i] = int32(i)
		}
		slices.SortStableFunc(want, func(a, b int32) int { return bytes.Compare(keys[a], keys[b]) })
		if got := new(sorter).sort(keyVector(keys)); !slices.Equal(got, want) {
			r.Fatalf("%q: order %v, want %v", keys, got, want)
		}
	})
}

func BenchmarkSort(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for name, key := range map[string]func(i int) []byte{
		"series": func(i int) []byte { return fmt.Appendf(nil, "host_%03d\x00\x00%08d", i%100, i/100) },
		"random": func(i int) []byte { return fmt.Appendf(nil, "%016d", r.Uint64()) },
		"ties":   func(i int) []byte { return fmt.Appendf(nil, "%08d%05d%05d%d", i/8, r.IntN(300), r.IntN(300), i) },
		"number": func(i int) []byte { return binary.BigEndian.AppendUint64(nil, r.Uint64N(1<<21)) },
	} {
		b.Run(name, func(b *testing.B) {
			keys := make([][]byte, 1000)
			for i := range keys {
				keys[i] = key(i)
			}
			v, s := keyVector(keys), new(sorter)
			for b.Loop() {
				s.sort(v)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/row")
		})
	}
}
