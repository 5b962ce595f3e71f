package schema

import (
	"math/bits"
	"strings"
)

// maxPrecision is the number of decimal digits that every Int128 can hold.
const maxPrecision = 38

// pow10 holds the powers of ten that fit an Int128.
var pow10 = func() (p [maxPrecision + 1]Int128) {
	p[0] = Int128{Lo: 1}
	for i := 1; i <= maxPrecision; i++ {
		p[i], _ = p[i-1].mulAdd10(0)
	}
	return p
}()

// mulAdd10 returns a*10+d of a number that is not negative, and whether it fits.
func (a Int128) mulAdd10(d uint64) (Int128, bool) {
	hi, lo := bits.Mul64(a.Lo, 10)
	over, top := bits.Mul64(uint64(a.Hi), 10)
	lo, carry := bits.Add64(lo, d, 0)
	hi, carry2 := bits.Add64(hi, top, carry)
	return Int128{Lo: lo, Hi: int64(hi)}, over == 0 && carry2 == 0 && int64(hi) >= 0
}

// Neg returns -a; the smallest number is its own negation.
func (a Int128) Neg() Int128 {
	lo, borrow := bits.Sub64(0, a.Lo, 0)
	hi, _ := bits.Sub64(0, uint64(a.Hi), borrow)
	return Int128{Lo: lo, Hi: int64(hi)}
}

// fits reports whether a has at most the given number of decimal digits.
func (a Int128) fits(precision int) bool {
	limit := pow10[precision]
	return a.Cmp(limit) < 0 && a.Cmp(limit.Neg()) > 0
}

// scaleUp returns a * 10^scale and whether it fits 38 digits.
func (a Int128) scaleUp(scale int) (Int128, bool) {
	m := a
	if a.Hi < 0 {
		m = a.Neg()
	}
	if m.Hi < 0 || !m.fits(maxPrecision-scale) {
		return Int128{}, false
	}
	for range scale {
		m, _ = m.mulAdd10(0)
	}
	if a.Hi < 0 {
		m = m.Neg()
	}
	return m, true
}

// String returns the number in decimal.
func (a Int128) String() string { return string(AppendDecimal(nil, a, 0)) }

// AppendDecimal appends the decimal number n / 10^scale, with scale digits after
// the point and no point when scale is 0.
func AppendDecimal(dst []byte, n Int128, scale int) []byte {
	if n.Hi < 0 {
		dst, n = append(dst, '-'), n.Neg()
	}
	var buf [maxPrecision + 2]byte // 39 digits of 2^127 and one 0 before the point
	at := len(buf)
	hi, lo := uint64(n.Hi), n.Lo
	for hi|lo != 0 || at > len(buf)-scale-1 {
		var rem uint64
		hi, rem = hi/10, hi%10
		lo, rem = bits.Div64(rem, lo, 10)
		at--
		buf[at] = '0' + byte(rem)
	}
	point := len(buf) - scale
	dst = append(dst, buf[at:point]...)
	if scale > 0 {
		dst = append(append(dst, '.'), buf[point:]...)
	}
	return dst
}

// ParseDecimal parses an optionally signed decimal number without exponent and
// returns it times 10^scale. More digits after the point than scale are accepted
// when they are zeroes. The reason is "" when all is well.
func ParseDecimal(text string, scale int) (n Int128, reason string) {
	digits, negative := cutSign(text)
	whole, fraction, _ := strings.Cut(digits, ".")
	if len(whole)+len(fraction) == 0 {
		return Int128{}, "not a decimal number"
	}
	extra := ""
	if len(fraction) > scale {
		fraction, extra = fraction[:scale], fraction[scale:]
	}
	ok := true
	for _, part := range [...]string{whole, fraction, "00000000000000000000000000000000000000"[:scale-len(fraction)]} {
		for i := 0; i < len(part); i++ {
			d := part[i] - '0'
			if d > 9 {
				return Int128{}, "not a decimal number"
			}
			fit := false
			n, fit = n.mulAdd10(uint64(d))
			ok = ok && fit
		}
	}
	if reason := zeroDigits(extra); reason != "" {
		return Int128{}, reason
	}
	if !ok {
		return Int128{}, outOfRange
	}
	if negative {
		n = n.Neg()
	}
	return n, ""
}

func zeroDigits(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i]-'0' > 9 {
			return "not a decimal number"
		}
	}
	if strings.Trim(s, "0") != "" {
		return "more digits after the point than the scale"
	}
	return ""
}

func cutSign(s string) (rest string, negative bool) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[1:], s[0] == '-'
	}
	return s, false
}
