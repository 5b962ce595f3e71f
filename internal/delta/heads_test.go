package delta

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/minikudu/minikudu/internal/rowset"
)

// Heads are compared with a map: sparse groups, groups that become full, rows far apart.
func TestHeadsModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var h heads
		want := map[int]uint32{}
		spread := rapid.SampledFrom([]int{64, 200, 70_000, 1 << 20}).Draw(r, "spread")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		for i := range rapid.IntRange(0, 400).Draw(r, "rows") {
			row := rnd.IntN(spread)
			h.publish(rowset.RowID(row), uint32(i+1))
			want[row] = uint32(i + 1)
		}
		for range 50 {
			row := rnd.IntN(spread + 100)
			if got := h.of(rowset.RowID(row)); got != want[row] {
				r.Fatalf("row %d has head %d, want %d", row, got, want[row])
			}
		}
		from := rnd.IntN(spread)
		to := from + 1 + rnd.IntN(spread)
		n, last := 0, -1
		h.each(from, to, func(row int, head uint32) bool {
			if row <= last || row < from || row >= to || want[row] != head {
				r.Fatalf("[%d, %d): row %d after %d has head %d, want %d", from, to, row, last, head, want[row])
			}
			n, last = n+1, row
			return true
		})
		all := 0
		for row := range want {
			if row >= from && row < to {
				all++
			}
		}
		if n != all || all > 0 && !h.any(from, to) {
			r.Fatalf("[%d, %d): %d rows, want %d", from, to, n, all)
		}
	})
}

// A changed row costs few bytes, wherever it lies.
func TestHeadsTakeLittleMemory(t *testing.T) {
	for _, c := range []struct{ rows, spread, most int }{{1, 1, 8200}, {20_000, 4 << 20, 36}, {200_000, 4 << 20, 32}, {100_000, 100_000, 8}} {
		var h heads
		rnd := rand.New(rand.NewPCG(1, 2))
		for i := range c.rows {
			row := rnd.IntN(c.spread)
			if c.rows == c.spread {
				row = i
			}
			h.publish(rowset.RowID(row), 1)
		}
		if per := int(h.bytes) / c.rows; per > c.most {
			t.Errorf("%d changes of %d rows: %d bytes each, want %d at most", c.rows, c.spread, per, c.most)
		}
	}
}
