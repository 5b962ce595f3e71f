package encoding

import (
	"encoding/binary"
	"iter"
	"math"
	"math/bits"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// Floating-point numbers that were decimals are stored as integers, after Afroozeh,
// Kuffo and Boncz, "ALP: Adaptive Lossless floating-Point Compression" (SIGMOD 2023): v is
// stored as n = round(v * 10^e * 10^-f) where n * 10^f * 10^-e gives v back bit for bit,
// with one e and f for a page; values for which it does not are exceptions. Numbers on a
// binary grid, as those of converters and of most random generators are, are stored
// likewise as n = v * 2^k.

const (
	maxExponent    = 18
	binaryScale    = 255 // in the place of e: f is k
	decimalSamples = 64
)

var pow10, inv10 = powersOfTen()

func powersOfTen() (pow, inv [maxExponent + 1]float64) {
	for i, p := 0, int64(1); i <= maxExponent; i, p = i+1, p*10 {
		pow[i], inv[i] = float64(p), 1/float64(p)
	}
	return pow, inv
}

// decimalScale is the e and f of a page and what they stand for.
type decimalScale struct {
	e, f     byte
	in, over float64 // a value times both, one after the other, is its integer, but for rounding
	up, down float64 // an integer times both is its value
}

func newScale(e, f byte) decimalScale {
	if e == binaryScale {
		return decimalScale{e, f, math.Ldexp(1, int(f)), 1, 1, math.Ldexp(1, -int(f))}
	}
	return decimalScale{e, f, pow10[e], inv10[f], pow10[f], inv10[e]}
}

// toInt returns the integer that stands for v, if one does.
func (s *decimalScale) toInt(v float64) (int64, bool) {
	const limit = 1 << 53 // integers up to it are floats
	x := v * s.in * s.over
	if !(x > -limit && x < limit) {
		return 0, false
	}
	n := int64(math.RoundToEven(x))
	return n, math.Float64bits(s.toFloat(n)) == math.Float64bits(v)
}

func (s *decimalScale) toFloat(n int64) float64 { return float64(n) * s.up * s.down }

// toInt32 is toInt for a number that is stored in 32 bits.
func (s *decimalScale) toInt32(v float32) (int64, bool) {
	n, _ := s.toInt(float64(v))
	return n, math.Float32bits(float32(s.toFloat(n))) == math.Float32bits(v)
}

// decimalWriter finds the integers of a page.
type decimalWriter struct {
	width  int
	scale  decimalScale
	ints   []int64
	places []int // of exceptions
}

func (w *decimalWriter) toInt(raw []byte, s *decimalScale) (int64, bool) {
	if w.width == 4 {
		return s.toInt32(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	return s.toInt(math.Float64frombits(binary.LittleEndian.Uint64(raw)))
}

// value returns the number at the beginning of raw.
func (w *decimalWriter) value(raw []byte) float64 {
	if w.width == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(raw))
}

// find sets scale, ints and places, and reports false when more than one in ten is an
// exception.
func (w *decimalWriter) find(raw []byte, width int) bool {
	w.width, w.ints, w.places = width, w.ints[:0], w.places[:0]
	w.scale = w.pick(raw)
	last := int64(0)
	for at := 0; at < len(raw); at += width {
		n, ok := w.toInt(raw[at:], &w.scale)
		if !ok {
			n = last
			if w.places = append(w.places, at/width); len(w.places)*width*10 > len(raw) {
				return false
			}
		}
		w.ints = append(w.ints, n)
		last = n
	}
	return true
}

// pick chooses the scale that takes the fewest bits for a sample.
func (w *decimalWriter) pick(raw []byte) (best decimalScale) {
	least := math.MaxInt
	try := func(s decimalScale) {
		if cost := w.cost(raw, &s, least); cost < least {
			best, least = s, cost
		}
	}
	for e := range byte(maxExponent + 1) {
		for f := range e + 1 {
			try(newScale(e, f))
		}
	}
	if k := w.grid(raw); k <= math.MaxUint8 {
		try(newScale(binaryScale, byte(k)))
	}
	return best
}

// grid returns the least k for which v * 2^k is an integer for every v of a sample.
func (w *decimalWriter) grid(raw []byte) (k int) {
	for i := range w.samples(raw) {
		k = max(k, fractionBits(w.value(raw[i*w.width:])))
	}
	return k
}

// samples yields places spread over a page, at distances that no period in it shares.
func (w *decimalWriter) samples(raw []byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		n := uint64(len(raw) / w.width)
		step := max(1, n/decimalSamples)
		for i, k := uint64(0), uint64(0); i < n; i, k = i+step, k+1 {
			scattered := k * 0x9e3779b97f4a7c15 >> 32 * step >> 32
			if !yield(int(min(i+scattered, n-1))) {
				return
			}
		}
	}
}

// fractionBits returns the digits of v behind the binary point.
func fractionBits(v float64) int {
	word := math.Float64bits(v)
	mantissa, exponent := word&(1<<52-1), int(word>>52&0x7ff)
	switch {
	case exponent == 0 || exponent == 0x7ff: // 0, and what no grid has
		return 0
	case mantissa == 0:
		return max(1023-exponent, 0)
	}
	return max(1023+52-exponent-bits.TrailingZeros64(mantissa), 0)
}

// cost returns the bits of a sample, or a number at or above limit.
func (w *decimalWriter) cost(raw []byte, s *decimalScale, limit int) int {
	exceptions, samples := 0, 0
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range w.samples(raw) {
		samples++
		v, ok := w.toInt(raw[i*w.width:], s)
		if ok {
			lo, hi = min(lo, v), max(hi, v)
		} else if exceptions += 8*w.width + 16; exceptions >= limit {
			return exceptions
		}
	}
	if lo > hi {
		return exceptions
	}
	return exceptions + samples*packWidth(uint64(hi-lo))
}

// append appends a DECIMAL block of the values that find was given.
func (w *decimalWriter) append(dst []byte, n *numberWriter, raw []byte, ordinal uint32, planes bool) []byte {
	dst = appendShortHeader(dst, len(w.ints), ordinal)
	dst = append(dst, w.scale.e, w.scale.f)
	dst = binary.AppendUvarint(dst, uint64(len(w.places)))
	next := 0
	for _, at := range w.places {
		dst = binary.AppendUvarint(dst, uint64(at-next))
		dst = append(dst, raw[at*w.width:(at+1)*w.width]...)
		next = at + 1
	}
	return n.append(dst, w.ints, planes)
}

// decimal decodes a DECIMAL block.
func (d *decoder) decimal(dst *vector.Vector, block []byte) (Header, error) {
	n, ordinal, rest, err := shortHeader(block)
	if err != nil {
		return Header{}, err
	}
	w := d.Kind.Width()
	if err := d.check(n, n*8); err != nil {
		return Header{}, err
	}
	s, exceptions, rest, err := cutDecimal(rest, n, w)
	if err != nil {
		return Header{}, err
	}
	out := dst.ExtendFixed(int(n))
	if d.Kind == schema.KindFloat32 {
		err = decimal32(vector.Values[float32](dst), rest, s)
	} else {
		err = decimal64(vector.Values[uint64](dst), rest, s)
	}
	if err != nil {
		return Header{}, err
	}
	putExceptions(out, exceptions, w)
	return Header{ordinal, int(n)}, nil
}

// cutDecimal returns what precedes the numbers of a block of n values, and those.
func cutDecimal(src []byte, n uint64, width int) (s decimalScale, exceptions, rest []byte, err error) {
	if len(src) < 2 || src[0] != binaryScale && (src[0] > maxExponent || src[1] > src[0]) {
		return s, nil, nil, vfs.Corruptf("decimals without a scale")
	}
	s = newScale(src[0], src[1])
	exceptions, rest, err = cutExceptions(src[2:], n, width)
	return s, exceptions, rest, err
}

// decimal64 decodes in place: the integers lie where the floats will.
func decimal64(out []uint64, src []byte, s decimalScale) error {
	if err := decodeAll(out, src); err != nil {
		return err
	}
	for i, n := range out {
		out[i] = math.Float64bits(s.toFloat(int64(n)))
	}
	return nil
}

func decimal32(out []float32, src []byte, s decimalScale) error {
	p := pageScratches.Get().(*pageScratch)
	defer p.put()
	ints := p.words(len(out))
	if err := decodeAll(ints, src); err != nil {
		return err
	}
	for i, n := range ints {
		out[i] = float32(s.toFloat(int64(n)))
	}
	return nil
}

// cutExceptions checks the exceptions of a block of n values.
func cutExceptions(src []byte, n uint64, width int) (exceptions, rest []byte, err error) {
	count, k := binary.Uvarint(src)
	if k <= 0 || count > n || count*uint64(width+1) > uint64(len(src)-k) {
		return nil, nil, vfs.Corruptf("exceptions that do not fit the block")
	}
	src = src[k:]
	at, next := 0, uint64(0)
	for range count {
		gap, k := binary.Uvarint(src[at:])
		if k <= 0 || gap >= n-next || at+k+width > len(src) {
			return nil, nil, vfs.Corruptf("exception past the end")
		}
		at += k + width
		if next += gap + 1; next > n {
			return nil, nil, vfs.Corruptf("exception %d of %d values", next, n)
		}
	}
	return src[:at], src[at:], nil
}

// putExceptions overwrites values of out, in the machine's byte order.
func putExceptions(out, exceptions []byte, width int) {
	next := 0
	for len(exceptions) > 0 {
		gap, k := binary.Uvarint(exceptions)
		next += int(gap)
		cell := out[next*width : (next+1)*width]
		copy(cell, exceptions[k:])
		vector.HostOrder(cell, width)
		exceptions = exceptions[k+width:]
		next++
	}
}
