package tablet

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// rangeSet is a rowset of which only the bounds are asked.
type rangeSet struct {
	rowset.RowSet
	min, max []byte
}

func (r *rangeSet) Bounds() (lo, hi []byte, ok bool) { return r.min, r.max, true }

func ranges(pairs ...string) []rowset.RowSet {
	var out []rowset.RowSet
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, &rangeSet{min: []byte(pairs[i]), max: []byte(pairs[i+1])})
	}
	return out
}

func keysOf(keys ...string) *rowset.Keys {
	v := vector.New(schema.KindBytes, len(keys))
	for _, k := range keys {
		if err := v.AppendBytes([]byte(k)); err != nil {
			panic(err)
		}
	}
	return &rowset.Keys{Encoded: v}
}

func TestItem86IntervalTree(t *testing.T) {
	tree := NewTree(ranges("0", "5", "3", "5", "5", "9"))
	for key, want := range map[string]int{"2": 1, "4": 2, "5": 3, "3": 2} {
		n := 0
		tree.Stab([]byte(key), func(rowset.RowSet) bool { n++; return true })
		if n != want {
			t.Errorf("stab %s: %d rowsets, want %d", key, n, want)
		}
	}
	for _, c := range []struct {
		lo, hi string
		want   int
	}{{"3", "4", 2}, {"0", "2", 1}, {"5", "7", 3}, {"0", "5", 2}, {"", "3", 1}, {"6", "", 1}, {"", "", 3}} {
		var lo, hi []byte
		if c.lo != "" {
			lo = []byte(c.lo)
		}
		if c.hi != "" {
			hi = []byte(c.hi)
		}
		if got := len(tree.Overlapping(nil, lo, hi)); got != c.want {
			t.Errorf("overlap [%s, %s): %d rowsets, want %d", c.lo, c.hi, got, c.want)
		}
	}
}

func TestTreeAgreesWithLinearSearch(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		key := rapid.StringMatching(`[ab]{0,10}`)
		n := rapid.IntRange(0, 40).Draw(r, "sets")
		var pairs []string
		for range n {
			a, b := key.Draw(r, "a"), key.Draw(r, "b")
			pairs = append(pairs, min(a, b), max(a, b))
		}
		sets := ranges(pairs...)
		tree := NewTree(sets)
		probe := rapid.SliceOfNDistinct(key, 0, 30, rapid.ID[string]).Draw(r, "keys")
		slices.Sort(probe)
		want := map[string]int{}
		for _, k := range probe {
			for _, s := range sets {
				if lo, hi, _ := s.Bounds(); bytes.Compare([]byte(k), lo) >= 0 && bytes.Compare([]byte(k), hi) <= 0 {
					want[k]++
				}
			}
			got := 0
			tree.Stab([]byte(k), func(rowset.RowSet) bool { got++; return true })
			if got != want[k] {
				r.Fatalf("stab %q: %d, want %d", k, got, want[k])
			}
		}
		got := map[string]int{}
		keys := keysOf(probe...)
		_ = tree.Group(keys, func(_ rowset.RowSet, from, to int) error {
			for i := from; i < to; i++ {
				got[probe[i]]++
			}
			return nil
		})
		for _, k := range probe {
			if got[k] != want[k] {
				r.Fatalf("group %q: %d, want %d", k, got[k], want[k])
			}
		}
	})
}

func TestStabStopsWhenTold(t *testing.T) {
	tree := NewTree(ranges("a", "z", "a", "z", "a", "z"))
	n := 0
	tree.Stab([]byte("m"), func(rowset.RowSet) bool { n++; return false })
	if n != 1 {
		t.Fatalf("visited %d rowsets after being told to stop", n)
	}
}

func TestKeyLocksSerialiseCommonKeys(t *testing.T) {
	var l keyLocks
	a := l.lock(keysOf("a", "c"))
	b := l.lock(keysOf("b")) // between a's keys: no common one
	got := make(chan string, 2)
	go func() {
		k := l.lock(keysOf("b", "c"))
		got <- "bc"
		l.unlock(k)
	}()
	for len(l.snapshot()) < 3 {
		time.Sleep(time.Millisecond)
	}
	go func() {
		k := l.lock(keysOf("c", "d")) // must wait for the one before as well
		got <- "cd"
		l.unlock(k)
	}()
	for len(l.snapshot()) < 4 {
		time.Sleep(time.Millisecond)
	}
	l.unlock(a)
	select {
	case who := <-got:
		t.Fatalf("%s went ahead while b was held", who)
	case <-time.After(10 * time.Millisecond):
	}
	l.unlock(b)
	if first, second := <-got, <-got; first != "bc" || second != "cd" {
		t.Fatalf("order %s, %s", first, second)
	}
	if len(l.snapshot()) != 0 {
		t.Fatal("locks left behind")
	}
}

func (l *keyLocks) snapshot() []*keyLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.held)
}

func BenchmarkTree(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var pairs []string
	for range 1000 {
		lo := r.IntN(1 << 30)
		pairs = append(pairs, fmt.Sprintf("%016d", lo), fmt.Sprintf("%016d", lo+1<<22))
	}
	tree := NewTree(ranges(pairs...))
	b.Run("stab", func(b *testing.B) {
		key := []byte(fmt.Sprintf("%016d", 1<<29))
		b.ReportAllocs()
		for b.Loop() {
			tree.Stab(key, func(rowset.RowSet) bool { return true })
		}
	})
	b.Run("group1024", func(b *testing.B) {
		var ks []string
		for range 1024 {
			ks = append(ks, fmt.Sprintf("%016d", r.IntN(1<<30)))
		}
		slices.Sort(ks)
		keys := keysOf(ks...)
		b.ReportAllocs()
		for b.Loop() {
			_ = tree.Group(keys, func(rowset.RowSet, int, int) error { return nil })
		}
	})
}
