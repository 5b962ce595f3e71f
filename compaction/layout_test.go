package compaction

import (
	"math"
	"strings"
	"testing"
)

// rowsets parses "A-B,C-D": rowsets of equal size with these first and last keys.
func rowsets(s string) []RowSet {
	var out []RowSet
	for _, r := range strings.FieldsFunc(s, func(c rune) bool { return c == ',' }) {
		lo, hi, _ := strings.Cut(r, "-")
		out = append(out, RowSet{Bytes: 1000, Min: []byte(lo), Max: []byte(hi)})
	}
	return out
}

func TestItem95AverageHeight(t *testing.T) {
	f := func(sets string, want float64) {
		t.Helper()
		if got := Place(rowsets(sets)).AverageHeight; math.Abs(got-want) > 0.001 {
			t.Errorf("%s: height %v, want %v", sets, got, want)
		}
	}
	f("", 0)
	f("A-A", 0)
	f("A-B", 1)
	f("A-B,B-C", 1)
	f("A-B,C-D", 1)
	f("A-B,C-C,D-D", 1)
	f("A-B,A-B", 2)
	f("A-B,A-A,B-B", 1)
	f("A-B,A-B,A-B", 3)
	f("A-C,A-C,B-B", 2)
	f("A-C,B-D", 1.5)
	f("A-C,B-D,C-E", 1.66667)
	f("A-C,B-D,A-C", 2.33333)
	f("A-C,C-E,B-D,A-C,C-E", 2.6)
	f("A-C,C-E,F-G,H-J,B-D,F-I,A-C,D-D,F-G,I-I", 2.3125)
}

func TestWidthsSumToAverageHeight(t *testing.T) {
	l := Place(rowsets("A-C,C-E,F-G,H-J,B-D,F-I,A-C,D-D,F-G,I-I"))
	sum := 0.0
	for _, r := range l.Ranges {
		sum += r.Width()
	}
	if math.Abs(sum-l.AverageHeight) > 1e-9 {
		t.Fatalf("widths sum to %v, height is %v", sum, l.AverageHeight)
	}
}

func TestUnequalSizes(t *testing.T) {
	sets := rowsets("A-B,C-D")
	sets[1].Bytes = 3000
	l := Place(sets)
	if math.Abs(l.Ranges[0].Width()-0.25) > 1e-9 || math.Abs(l.Ranges[1].Width()-0.75) > 1e-9 {
		t.Fatalf("widths %v", l.Ranges)
	}
}
