//go:build !race

package predicate

import (
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Under the race detector sync.Pool drops entries at random.
func TestEvalDoesNotAllocate(t *testing.T) {
	s := modelSchema(t)
	b := mustBind(t, And(Or(Lt("i32", 3), Eq("i32", 9)), Like("kb", "%a%"), Not(In("i32", 2, 5))), s)
	const n = 1000
	ints := vector.FromFixed(schema.KindInt32, make([]int32, n), nil)
	texts := vector.FromCodes(make([]uint8, n), vector.FromBytes([]int32{0, 1}, []byte("a"), nil), nil)
	column := func(c int) (*vector.Vector, error) {
		if s.Column(c).Name == "kb" {
			return texts, nil
		}
		return ints, nil
	}
	sel := vector.NewBitmap(n)
	allocs := testing.AllocsPerRun(100, func() {
		sel.SetRange(0, n)
		if err := b.Eval(n, sel, column); err != nil || sel.Count() != n {
			t.Errorf("%d rows, err %v", sel.Count(), err)
		}
	})
	if allocs >= 1 {
		t.Errorf("%v allocations", allocs)
	}
}
