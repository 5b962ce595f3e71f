package encoding

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// refRLE is the run-length encoder as its description tells it, value by value, for any
// width up to 64 bits.
type refRLE struct {
	width         int
	out           []byte
	cur           uint64
	repeats       int
	buf, literals []uint64
}

func (e *refRLE) put(v uint64) {
	if v == e.cur {
		if e.repeats++; e.repeats > 8 {
			return
		}
	} else {
		if e.repeats >= 8 {
			e.flushRepeated()
		}
		e.cur, e.repeats = v, 1
	}
	if e.buf = append(e.buf, v); len(e.buf) < 8 {
		return
	}
	if e.repeats >= 8 {
		e.buf = e.buf[:0]
		e.closeLiterals()
		return
	}
	e.literals = append(e.literals, e.buf...)
	e.buf, e.repeats = e.buf[:0], 0
	if len(e.literals) == 63*8 {
		e.closeLiterals()
	}
}

func (e *refRLE) flushRepeated() {
	e.out = binary.AppendUvarint(e.out, uint64(e.repeats)<<1)
	for i := range (e.width + 7) / 8 {
		e.out = append(e.out, byte(e.cur>>(8*i)))
	}
	e.buf, e.repeats = e.buf[:0], 0
}

func (e *refRLE) closeLiterals() {
	if len(e.literals) == 0 {
		return
	}
	e.out = append(e.out, byte((len(e.literals)+7)/8<<1|1))
	packed := make([]byte, (len(e.literals)*e.width+7)/8)
	for i, v := range e.literals {
		for b := range e.width {
			bit := i*e.width + b
			packed[bit/8] |= byte(v>>b&1) << (bit % 8)
		}
	}
	e.out, e.literals = append(e.out, packed...), e.literals[:0]
}

func (e *refRLE) finish() []byte {
	switch {
	case len(e.literals) == 0 && e.repeats > 0 && (len(e.buf) == 0 || len(e.buf) == e.repeats):
		e.flushRepeated()
	case len(e.buf) > 0:
		e.literals = append(e.literals, e.buf...)
		e.closeLiterals()
	default:
		e.closeLiterals()
	}
	return e.out
}

func randomRuns(r *rand.Rand, width int) (vals []uint64) {
	for range r.IntN(40) {
		n := 1 + r.IntN(24)
		if n > 16 {
			n = 1
		}
		if r.IntN(10) == 0 {
			n = r.IntN(700)
		}
		v := r.Uint64() >> (64 - width)
		for range n {
			vals = append(vals, v)
			if n > 100 && r.IntN(2) == 0 {
				v = r.Uint64() >> (64 - width)
			}
		}
	}
	return vals
}

func TestRLEMatchesReference(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 200 {
		for _, kind := range []schema.Kind{schema.KindBool, schema.KindInt8, schema.KindInt16, schema.KindInt32, schema.KindInt64} {
			width := max(1, 8*kind.Width())
			vals, ref := randomRuns(r, width), refRLE{width: width}
			v := vector.New(kind, len(vals))
			for _, x := range vals {
				ref.put(x)
				if kind == schema.KindBool {
					v.AppendBool(x == 1)
				} else {
					unused := 64 - width
					_ = v.Append(schema.IntValue(kind, int64(x<<unused)>>unused))
				}
			}
			want := ref.finish()
			got := writeFile(t, v, EncoderOptions{Format: Format{kind, schema.EncodingRLE, false}}, 1+r.IntN(300)).blocks
			if len(got) != 1 || !bytes.Equal(got[0][8:], want) {
				t.Fatalf("%s, %d values:\ngot  %x\nwant %x", kind, len(vals), got[0][8:], want)
			}
		}
	}
}

func bitStream(s string) []byte {
	var b bitRuns
	b.reset()
	v := bools(s)
	b.addBits(v.Bits(), 0, v.Len())
	return b.finish()
}

func TestBitStreams(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{strings.Repeat("0", 50) + strings.Repeat("1", 50), "64 00 64 01"},
		{strings.Repeat("01", 50), "1b aaaaaaaaaaaaaaaaaaaaaaaa 0a"},
		{strings.Repeat("1", 1024), "80 10 01"},
		{"10011", "03 19"},
	} {
		got := bitStream(c.in)
		if !bytes.Equal(got, unhex(t, c.want)) {
			t.Errorf("%.20s…: %x, want %s", c.in, got, c.want)
		}
	}
}

// Runs of a bitmap, however they are cut when added, give the same stream.
func TestBitRunsAnyCut(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for range 300 {
		var text strings.Builder
		for range r.IntN(20) {
			text.WriteString(strings.Repeat(string('0'+rune(r.IntN(2))), 1+r.IntN(40)))
		}
		v := bools(text.String())
		want := bytes.Clone(bitStream(text.String()))
		var b bitRuns
		b.reset()
		for at := 0; at < v.Len(); {
			if end := at + 1; r.IntN(2) == 0 {
				for end < v.Len() && v.Bits().Get(end) == v.Bits().Get(at) {
					end++
				}
				b.addRun(v.Bits().Get(at), end-at)
				at = end
			} else {
				end = min(at+r.IntN(70), v.Len())
				b.addBits(v.Bits(), at, end)
				at = end
			}
		}
		if got := b.finish(); !bytes.Equal(got, want) {
			t.Fatalf("%s: %x, want %x", text.String(), got, want)
		}
		out := vector.NewBitmap(v.Len())
		if err := decodeBits(out, v.Len(), want); err != nil {
			t.Fatal(err)
		}
		sameVectors(t, vector.FromBits(out, v.Len(), nil), v)
	}
}

func TestRLEPatterns(t *testing.T) {
	var text strings.Builder
	for i := range 32 {
		text.WriteString(strings.Repeat(string('0'+rune(i%2)), i+1))
	}
	for _, s := range []string{strings.Repeat("1", 16) + "0", strings.Repeat("1", 16) + "01", strings.Repeat("1", 16) + "0110",
		text.String(), strings.Repeat("1", 10) + strings.Repeat("0", 7) + strings.Repeat("1", 20)} {
		roundTrip(t, bools(s), EncoderOptions{Format: Format{schema.KindBool, schema.EncodingRLE, false}}, 20)
	}
	for n := 1; n <= 1024; n += 1 + n/60 {
		v := vector.New(schema.KindInt32, n)
		for i := range n {
			vector.AppendFixed(v, int32(i))
		}
		roundTrip(t, v, EncoderOptions{Format: Format{schema.KindInt32, schema.EncodingRLE, false}}, 2000)
	}
	for _, equal := range []int{7, 8, 9} {
		for at := range 12 {
			vals := append(make([]int32, at), repeat(equal, int32(5), 1, 2)...)
			for i := range at {
				vals[i] = int32(i)
			}
			roundTrip(t, ints(schema.KindInt32, vals...), EncoderOptions{Format: Format{schema.KindInt32, schema.EncodingRLE, false}}, 5)
		}
	}
}

func TestGroupVarintRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	for range 10000 {
		g := [4]uint32{}
		for i := range g {
			g[i] = r.Uint32() >> r.IntN(32)
		}
		b := appendGroup(nil, g)
		for _, tail := range []int{0, 20} {
			got, n := readGroup(append(bytes.Clone(b), make([]byte, tail)...))
			if got != g || n != len(b) {
				t.Fatalf("%v: %v, %d of %d bytes", g, got, n, len(b))
			}
		}
		if _, n := readGroup(b[:len(b)-1]); n != 0 {
			t.Fatalf("%v: cut group read", g)
		}
	}
}
