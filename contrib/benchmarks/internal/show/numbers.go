package show

import (
	"fmt"
	"strings"
)

// Short formats a number with three digits and a suffix.
func Short(v float64) string {
	for _, s := range []struct {
		size float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if v >= 0.9995*s.size {
			return Digits(v/s.size) + s.name
		}
	}
	return Digits(v)
}

// Digits formats a number with three digits, no fewer before the point.
func Digits(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// Trim turns 20.0 k into 20 k.
func Trim(s string) string {
	number, unit, _ := strings.Cut(s, " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return strings.TrimSpace(number + " " + unit)
}
