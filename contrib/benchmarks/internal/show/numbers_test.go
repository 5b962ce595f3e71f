package show

import "testing"

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 1.234: "1.23", 99.97: "100", 999.7: "1.00 k", 1234567: "1.23 M", 2e9: "2.00 G"} {
		if got := Short(v); got != want {
			t.Errorf("Short(%v) = %q, want %q", v, got, want)
		}
	}
}
