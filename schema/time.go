package schema

import (
	"strconv"
	"time"
)

// The first and last day of the date type: 0001-01-01 and 9999-12-31.
const (
	MinDate = -719162
	MaxDate = 2932896
)

const (
	secondsPerDay   = 24 * 60 * 60
	microsPerSecond = 1_000_000
)

// TimeMicros returns the microseconds from 1970-01-01T00:00:00Z to t, finer digits
// floored (also before 1970), and whether they fit 64 bits: from December of the
// year -290308 to January of 294247.
func TimeMicros(t time.Time) (int64, bool) {
	return joinMicros(t.Unix(), int64(t.Nanosecond())/1000)
}

// joinMicros returns sec*1e6+us and whether it fits; us is 0..999999.
func joinMicros(sec, us int64) (int64, bool) {
	const (
		maxSec, maxMicros = 9223372036854, 775807  // of math.MaxInt64
		minSec, minMicros = -9223372036855, 224192 // of math.MinInt64
	)
	ok := sec > minSec && sec < maxSec || sec == maxSec && us <= maxMicros || sec == minSec && us >= minMicros
	return sec*microsPerSecond + us, ok
}

// floorDiv returns a/b rounded towards minus infinity, and the remainder; b > 0.
func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}

// AppendTimestamp appends a time in microseconds as RFC 3339 in UTC with Z, and a
// fraction only when it is not zero. A year outside 0..9999 has a sign, as in ISO
// 8601: +12345-01-01T00:00:00Z.
func AppendTimestamp(dst []byte, micros int64) []byte {
	sec, us := floorDiv(micros, microsPerSecond)
	day, sec := floorDiv(sec, secondsPerDay)
	dst = append(AppendDate(dst, day), 'T')
	dst = append(appendTwo(dst, sec/3600), ':')
	dst = append(appendTwo(dst, sec/60%60), ':')
	dst = appendTwo(dst, sec%60)
	if us != 0 {
		dst = appendTwo(appendTwo(appendTwo(append(dst, '.'), us/10_000), us/100%100), us%100)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, 'Z')
}

// AppendDate appends a day counted from 1970-01-01 as 2006-01-02.
func AppendDate(dst []byte, days int64) []byte {
	year, month, day := civil(days)
	switch {
	case year > 9999:
		dst = append(dst, '+')
	case year < 0:
		dst, year = append(dst, '-'), -year
	}
	if year > 9999 {
		dst = strconv.AppendInt(dst, year, 10)
	} else {
		dst = appendTwo(appendTwo(dst, year/100), year%100)
	}
	dst = appendTwo(append(dst, '-'), month)
	return appendTwo(append(dst, '-'), day)
}

// appendTwo appends a number of 0 to 99 as two digits.
func appendTwo(dst []byte, n int64) []byte { return append(dst, '0'+byte(n/10), '0'+byte(n%10)) }

// civil returns the date of a day counted from 1970-01-01 in the proleptic
// Gregorian calendar. It and its inverse count eras of 400 years from March, as in
// Howard Hinnant's "chrono-compatible low-level date algorithms".
func civil(days int64) (year, month, day int64) {
	era, doe := floorDiv(days+719468, 146097)
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = doy - (153*mp+2)/5 + 1
	month = mp + 3
	if month > 12 {
		month -= 12
	}
	year = yoe + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}

// dayOf is the inverse of civil.
func dayOf(year, month, day int64) int64 {
	mp := month - 3
	if month <= 2 {
		year--
		mp += 12
	}
	era, yoe := floorDiv(year, 400)
	doy := (153*mp+2)/5 + day - 1
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

func daysIn(year, month int64) int64 {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// ParseDate parses 2006-01-02 and returns the days from 1970-01-01. ok is false for
// any other text and for a day outside MinDate..MaxDate.
func ParseDate(text string) (days int32, ok bool) {
	d, rest, ok := cutDate(text)
	if !ok || rest != "" || d < MinDate || d > MaxDate {
		return 0, false
	}
	return int32(d), true
}

// ParseTimestamp parses RFC 3339 text, or a date with an optional time of day after
// a blank or T, and returns microseconds from 1970-01-01T00:00:00Z. Without a zone
// the time is UTC; digits finer than a microsecond are floored. ok is false for any
// other text and for a time that does not fit.
func ParseTimestamp(text string) (micros int64, ok bool) {
	days, rest, ok := cutDate(text)
	if !ok {
		return 0, false
	}
	if rest == "" {
		return joinMicros(days*secondsPerDay, 0)
	}
	sec, us, rest, ok := cutClock(rest)
	if !ok {
		return 0, false
	}
	zone, ok := parseZone(rest)
	if !ok {
		return 0, false
	}
	return joinMicros(days*secondsPerDay+sec-zone, us)
}

// cutDate parses a date at the start of s: a year of four digits, or of five or six
// after a sign, month and day.
func cutDate(s string) (days int64, rest string, ok bool) {
	width, sign := 4, int64(1)
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
		for width < 6 && width < len(s) && s[width] != '-' {
			width++
		}
	}
	if len(s) < width+6 || s[width] != '-' || s[width+3] != '-' {
		return 0, "", false
	}
	year, ok1 := digits(s[:width])
	month, ok2 := digits(s[width+1 : width+3])
	day, ok3 := digits(s[width+4 : width+6])
	year *= sign
	if !ok1 || !ok2 || !ok3 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, "", false
	}
	return dayOf(year, month, day), s[width+6:], true
}

// cutClock parses a separator and 15:04:05[.ffffff] at the start of s.
func cutClock(s string) (sec, us int64, rest string, ok bool) {
	if len(s) < 9 || s[0] != 'T' && s[0] != 't' && s[0] != ' ' || s[3] != ':' || s[6] != ':' {
		return 0, 0, "", false
	}
	h, ok1 := digits(s[1:3])
	m, ok2 := digits(s[4:6])
	x, ok3 := digits(s[7:9])
	if !ok1 || !ok2 || !ok3 || h > 23 || m > 59 || x > 59 {
		return 0, 0, "", false
	}
	sec, rest = h*3600+m*60+x, s[9:]
	if rest == "" || rest[0] != '.' {
		return sec, 0, rest, true
	}
	end, unit := 1, int64(100_000)
	for ; end < len(rest) && rest[end]-'0' <= 9; end++ {
		us += int64(rest[end]-'0') * unit
		unit /= 10
	}
	return sec, us, rest[end:], end > 1
}

// parseZone parses nothing, Z, or an offset +05:30, +0530 or +05, in seconds.
func parseZone(s string) (seconds int64, ok bool) {
	if s == "" || s == "Z" || s == "z" {
		return 0, true
	}
	offset, negative := cutSign(s)
	if len(offset) == len(s) {
		return 0, false
	}
	if len(offset) == 5 && offset[2] == ':' {
		offset = offset[:2] + offset[3:]
	}
	if len(offset) == 2 {
		offset += "00"
	}
	n, ok := digits(offset)
	if !ok || len(offset) != 4 || n/100 > 23 || n%100 > 59 {
		return 0, false
	}
	seconds = n/100*3600 + n%100*60
	if negative {
		seconds = -seconds
	}
	return seconds, true
}

// digits parses a short unsigned number of digits only.
func digits(s string) (n int64, ok bool) {
	for i := 0; i < len(s); i++ {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return n, s != ""
}
