package diskrowset

import (
	"math"
	"slices"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"pgregory.net/rapid"
)

// Narrowing agrees with a binary search, whatever the distances of the values.
func TestNarrowIntsModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		gen := rapid.SampledFrom([]*rapid.Generator[int64]{rapid.Int64(), rapid.Int64Range(0, 50), rapid.Int64Range(math.MinInt64, math.MinInt64+300)}).Draw(r, "values")
		vals := rapid.SliceOfN(gen, 1, 200).Draw(r, "vals")
		slices.Sort(vals)
		from := rapid.IntRange(0, len(vals)-1).Draw(r, "from")
		to := rapid.IntRange(from, len(vals)).Draw(r, "to")
		x := rapid.SampledFrom(append(vals, math.MinInt64, math.MaxInt64)).Draw(r, "x")
		if rapid.Bool().Draw(r, "another") {
			x = gen.Draw(r, "x")
		}
		lo, _ := slices.BinarySearch(vals[from:to], x)
		hi := lo
		for from+hi < to && vals[from+hi] == x {
			hi++
		}
		if a, b := narrowInts(vals, from, to, x); a != from+lo || b != from+hi {
			r.Fatalf("%v [%d, %d): %d is at [%d, %d), want [%d, %d)", vals, from, to, x, a, b, from+lo, from+hi)
		}
	})
}

// Who does not ask when a row was inserted does not read the insert times.
func TestLookupWithoutInsertTimes(t *testing.T) {
	src := kv(t, 1000, col("val", schema.Int64), func(i int) schema.Value { return i64(i) })
	st := newStore(t, src.schema)
	s := st.one(src)
	k := src.lookupKeys()
	k.Since = slices.Max(src.times)
	if found, err := resolve(s, k); err != nil || !found[7].Live || found[7].LastChange > k.Since || s.times.data.Load() != nil {
		t.Fatalf("%+v, %v; insert times read: %v", found[7], err, s.times.data.Load() != nil)
	}
	k.Since--
	if found, err := resolve(s, k); err != nil || found[7].LastChange != src.times[7] || s.times.data.Load() == nil {
		t.Fatalf("%+v, %v, want a change at %d", found[7], err, src.times[7])
	}
}
