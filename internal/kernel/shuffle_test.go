package kernel

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

var shuffleWidths = []int{1, 2, 4, 8, 16}

// shuffleByDefinition moves bits one by one.
func shuffleByDefinition(src []byte, w int) []byte {
	n, out := len(src)/w, make([]byte, len(src))
	for e := range n {
		for b := range 8 * w {
			if src[e*w+b/8]>>(b%8)&1 != 0 {
				out[b*(n/8)+e/8] |= 1 << (e % 8)
			}
		}
	}
	return out
}

func checkShuffle(t *testing.T, src []byte, w int) {
	t.Helper()
	want := shuffleByDefinition(src, w)
	for name, f := range map[string]struct {
		do, undo func(dst, src []byte, width int)
	}{
		"fast": {Shuffle, Unshuffle},
		"go": {func(dst, src []byte, w int) { shuffleRest(dst, src, w, 0) },
			func(dst, src []byte, w int) { unshuffleRest(dst, src, w, 0) }},
	} {
		got, back := newGuarded[byte](len(src)), newGuarded[byte](len(src))
		f.do(got.vals, src, w)
		f.undo(back.vals, got.vals, w)
		got.check(t)
		back.check(t)
		if !bytes.Equal(got.vals, want) || !bytes.Equal(back.vals, src) {
			t.Fatalf("%s: width %d, %d bytes: shuffled %v, back %v", name, w, len(src), bytes.Equal(got.vals, want), bytes.Equal(back.vals, src))
		}
	}
}

func TestShuffle(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, w := range shuffleWidths {
		for _, n := range []int{0, 8, 16, 56, 64, 72, 120, 248, 256, 264, 504, 512, 576, 1024, 1032} {
			checkShuffle(t, randomBytes(r, n*w), w)
		}
	}
}

func FuzzShuffle(f *testing.F) {
	f.Add(uint8(3), bytes.Repeat([]byte("\x01\x80abc\xff"), 1000))
	f.Fuzz(func(t *testing.T, log uint8, src []byte) {
		w := shuffleWidths[int(log)%len(shuffleWidths)]
		checkShuffle(t, src[:len(src)/(8*w)*(8*w)], w)
	})
}

// A sub-block of 8 KiB, as the encodings use them.
func BenchmarkShuffle(b *testing.B) {
	src, dst := randomBytes(rand.New(rand.NewPCG(1, 2)), 8192), make([]byte, 8192)
	for _, w := range shuffleWidths {
		for _, f := range []struct {
			name string
			do   func()
		}{
			{"do/asm", func() { Shuffle(dst, src, w) }}, {"do/go", func() { shuffleRest(dst, src, w, 0) }},
			{"undo/asm", func() { Unshuffle(dst, src, w) }}, {"undo/go", func() { unshuffleRest(dst, src, w, 0) }},
		} {
			b.Run(fmt.Sprintf("width=%d/%s", w, f.name), func(b *testing.B) {
				b.SetBytes(8192)
				for b.Loop() {
					f.do()
				}
			})
		}
	}
}
