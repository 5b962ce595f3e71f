package sqltext

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/minikudu/minikudu/schema"
)

func syntaxError(reason string) error { return &SyntaxError{Pos: 1, Reason: reason} }

// units are the suffixes of a size in lower case. A lone letter is a power of 1024,
// as with most tools that set limits.
var units = map[string]float64{"": 1, "b": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1e3, "m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9, "t": 1 << 40, "tib": 1 << 40, "tb": 1e12}

// ParseSize parses a number of bytes: 1048576, 64MiB or 64m (powers of 1024), 64MB
// (powers of 1000), 1.5GiB.
func ParseSize(in string) (int64, error) {
	s := strings.TrimSpace(in)
	n := span(s, func(b byte) bool { return isDigit(b) || b == '.' })
	unit, ok := units[strings.ToLower(strings.TrimSpace(s[n:]))]
	const want = "expected a size such as 1048576, 64MiB, 64MB or 64m"
	if !ok || n == 0 {
		return 0, syntaxError(want)
	}
	if whole, err := strconv.ParseInt(s[:n], 10, 64); err == nil && whole <= math.MaxInt64/int64(unit) {
		return whole * int64(unit), nil
	}
	f, err := strconv.ParseFloat(s[:n], 64)
	switch {
	case err != nil:
		return 0, syntaxError(want)
	case f*unit >= math.MaxInt64:
		return 0, syntaxError("the size is out of range")
	}
	return int64(f * unit), nil
}

// ParseDuration parses a duration as Go writes it, with d for days of 24 hours before
// the other units: 15m, 1.5h, 7d, 1d12h, -5m.
func ParseDuration(in string) (time.Duration, error) {
	s, sign := strings.TrimSpace(in), ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		s, sign = s[1:], s[:1]
	}
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		days, rest = "", s
	}
	var total time.Duration
	if ok {
		f, err := strconv.ParseFloat(days, 64)
		if err != nil || strings.Trim(days, "0123456789.") != "" {
			return 0, badDuration()
		}
		if f > math.MaxInt64/float64(24*time.Hour) {
			return 0, syntaxError("the duration is out of range")
		}
		total = time.Duration(f * float64(24*time.Hour))
	}
	if !ok || rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || rest[0] == '-' || rest[0] == '+' {
			return 0, badDuration()
		}
		if total += d; total < 0 {
			return 0, syntaxError("the duration is out of range")
		}
	}
	if sign == "-" {
		total = -total
	}
	return total, nil
}

// FormatDuration returns the shortest text of a duration that ParseDuration reads: 15m,
// 1d12h, 0.
func FormatDuration(d time.Duration) string {
	if d < 0 {
		return "-" + FormatDuration(-d)
	}
	days, rest := d/(24*time.Hour), d%(24*time.Hour)
	text := rest.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	switch {
	case d == 0:
		return "0"
	case days == 0:
		return text
	case rest == 0:
		return strconv.Itoa(int(days)) + "d"
	}
	return strconv.Itoa(int(days)) + "d" + text
}

func badDuration() error {
	return syntaxError("expected a duration such as 15m, 1.5h, 7d or 1d12h")
}

// Time is a point in a store's history: the timestamp of a commit, or a wall-clock
// time.
type Time struct {
	Commit uint64 // 0 when At is set
	At     time.Time
}

// ParseTime parses a TIME argument: RFC 3339, a date with an optional time of day (UTC
// where no zone is given), an offset from now such as -5m, or a commit timestamp.
func ParseTime(in string, now time.Time) (Time, error) {
	s := strings.TrimSpace(in)
	if n, err := strconv.ParseUint(s, 10, 64); err == nil && n > 0 {
		return Time{Commit: n}, nil
	}
	if us, ok := schema.ParseTimestamp(s); ok {
		return Time{At: time.UnixMicro(us).UTC()}, nil
	}
	if s != "" && (s[0] == '-' || s[0] == '+') {
		d, err := ParseDuration(s)
		if err == nil {
			return Time{At: now.Add(d)}, nil
		}
	}
	return Time{}, syntaxError("expected a time such as 2006-01-02T15:04:05Z, 2006-01-02, -5m or a commit timestamp")
}
