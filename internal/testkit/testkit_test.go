package testkit

import (
	"testing"

	"github.com/minikudu/minikudu/schema"
)

// TestRandomValuesFit converts every random value to its column's type, or checks its
// bounds.
func TestRandomValuesFit(t *testing.T) {
	CheckLeaks(t)
	r := Rand(t)
	s := FullSchema(t)
	if s.Len() != 1+2*len(Types) {
		t.Fatal(s.Names())
	}
	for i, v := range RandomVectors(t, r, s, 500) {
		c := s.Column(i)
		if v.Len() != 500 || (v.NullCount() > 0) != c.Nullable {
			t.Fatalf("%s: %d nulls", c.Name, v.NullCount())
		}
		if k := c.Kind(); !k.IsInteger() || k == schema.KindInt128 {
			continue
		}
		lo, hi := intRange(c)
		for row := range v.Len() {
			if x := v.Value(row); !x.IsNull() && (x.Int() < lo || x.Int() > hi) {
				t.Fatalf("%s: %d", c.Name, x.Int())
			}
		}
	}
}

func TestDecimalsHave38Digits(t *testing.T) {
	r := Seeded(1)
	hi := schema.Int128{Lo: 687399551400673279, Hi: 5421010862427522170}
	lo := schema.Int128{Lo: 17759344522308878337, Hi: -5421010862427522171}
	if sum, ok := hi.Add(lo); !ok || sum != (schema.Int128{}) {
		t.Fatal("bounds are not opposite")
	}
	for range 1000 {
		if d := randomDecimal(r); d.Cmp(hi) > 0 || d.Cmp(lo) < 0 {
			t.Fatal(d)
		}
	}
}

func TestSeedRepeats(t *testing.T) {
	t.Setenv(SeedVariable, "17")
	s := RandomSchema(t, Rand(t))
	a, b := RandomVectors(t, Rand(t), s, 50), RandomVectors(t, Rand(t), s, 50)
	for i := range a {
		RequireEqual(t, s.Column(i).Name, a[i], b[i])
	}
}
