//go:build !race

package tablet

import "testing"

// A write takes its memory from the one before: only the Op and its lock are new.
func TestResolveAllocatesTwice(t *testing.T) {
	s := newStore(t, false)
	keys := make([]int64, 1000)
	for i := range keys {
		keys[i] = int64(i * 7919 % 1000)
	}
	s.insert(1000, 1001)
	columns := s.columns(keys)
	if n := testing.AllocsPerRun(50, func() {
		op, err := s.t.Resolve(bg, columns, 1000)
		if err != nil || op.Rows() != len(keys) {
			t.Fatal(err)
		}
		op.Release()
	}); n > 2 {
		t.Errorf("%v allocations", n)
	}
}
