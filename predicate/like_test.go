package predicate

import (
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Patterns are looked for in many rows at once; each row alone must give the same.
func TestLikeOverManyRows(t *testing.T) {
	s := benchSchema(t)
	r := rand.New(rand.NewPCG(61, 62))
	words := []string{"a", "abc", "error", "node-17", "x", "é", " ", "abca"}
	v := vector.New(schema.KindBytes, 0)
	for range 9000 {
		var text []byte
		for range r.IntN(5) {
			text = append(text, words[r.IntN(len(words))]...)
		}
		if err := v.AppendBytes(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"%a%", "%abc%", "%node-17%", "%error%a%", "a%error%", "%err_r%", "%_ode%x", "%nothing%", "%abc_error%", "_%rror%"} {
		pattern, err := compileLike(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, not := range []bool{false, true} {
			e := Like("s", p)
			if not {
				e = Not(e)
			}
			bound, err := Bind(e, s)
			if err != nil {
				t.Fatal(err)
			}
			sel, all := vector.NewBitmap(v.Len()), vector.NewBitmap(v.Len())
			for i := range v.Len() {
				all.Put(i, i < 5000 || r.IntN(64) == 0) // few of the last rows
			}
			copy(sel, all)
			if err := bound.Eval(v.Len(), sel, func(int) (*vector.Vector, error) { return v, nil }); err != nil {
				t.Fatal(err)
			}
			for i := range v.Len() {
				if want := all.Get(i) && pattern.match(v.BytesAt(i)) != not; sel.Get(i) != want {
					t.Fatalf("%q, not %v: row %d, %q: %v", p, not, i, v.BytesAt(i), !want)
				}
			}
		}
	}
}
