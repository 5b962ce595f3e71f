//go:build amd64 && !purego

package kernel

import (
	"math"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// hasAVX2 is set where the assembly can run.
var hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasBMI2 && cpu.X86.HasPOPCNT

// stepElements is the number of elements that a step of the bit transposition takes.
const stepElements = 256

func fastShuffle(dst, src []byte, width, stride int) int {
	steps := len(src) / (stepElements * width)
	switch {
	case steps == 0 || !hasAVX2:
		return 0
	case width == 1:
		shuffleBytes(&dst[0], &src[0], steps, width, stride)
	default:
		shuffleWide(&dst[0], &src[0], steps, width, stride)
	}
	return steps * stepElements
}

func fastUnshuffle(dst, src []byte, width, stride int) int {
	steps := len(src) / (stepElements * width)
	switch {
	case steps == 0 || !hasAVX2:
		return 0
	case width == 1:
		unshuffleBytes(&dst[0], &src[0], steps, width, stride)
	default:
		unshuffleWide(&dst[0], &src[0], steps, width, stride)
	}
	return steps * stepElements
}

// wholeWords returns how many words of a selection have 64 values each.
func wholeWords(sel []uint64, vals int) int {
	if !hasAVX2 {
		return 0
	}
	return min(len(sel), vals/64)
}

func start[T any](vals []T) *uint8 { return (*uint8)(unsafe.Pointer(&vals[0])) }

func fastSpan[T Unsigned](sel []uint64, vals []T, lo, width T, keep uint64) int {
	n := wholeWords(sel, len(vals))
	if n == 0 {
		return 0
	}
	half := T(1) << (8*unsafe.Sizeof(lo) - 1)
	shift, limit := half-lo, width^half
	switch unsafe.Sizeof(lo) {
	case 1:
		span8(&sel[0], start(vals), n, uint64(shift), uint64(limit), keep)
	case 2:
		span16(&sel[0], start(vals), n, uint64(shift), uint64(limit), keep)
	case 4:
		span32(&sel[0], start(vals), n, uint64(shift), uint64(limit), keep)
	default:
		span64(&sel[0], start(vals), n, uint64(shift), uint64(limit), keep)
	}
	return n
}

func fastFloatSpan[T int32 | int64](sel []uint64, vals []T, lo T, width, keep uint64) int {
	n := wholeWords(sel, len(vals))
	switch {
	case n == 0:
	case unsafe.Sizeof(lo) == 4:
		floatSpan32(&sel[0], start(vals), n, 1<<31-uint64(lo), width^1<<31, keep)
	default:
		floatSpan64(&sel[0], start(vals), n, 1<<63-uint64(lo), width^1<<63, keep)
	}
	return n
}

func fastTable[T Unsigned](sel []uint64, codes []T, table []uint8) int {
	n := wholeWords(sel, len(codes))
	if n == 0 || len(table) == 0 {
		return 0
	}
	switch last := uint64(len(table) - 1); unsafe.Sizeof(codes[0]) {
	case 1:
		var set [32]uint8
		for i, x := range table[:min(len(table), 256)] {
			set[i/8] |= x << (i % 8)
		}
		table8(&sel[0], start(codes), n, &set)
		return n
	case 2:
		return n - table16(&sel[0], start(codes), n, &table[0], min(last, math.MaxUint16))
	case 4:
		return n - table32(&sel[0], start(codes), n, &table[0], min(last, math.MaxUint32))
	}
	return 0
}

// unpackTable says how to bring eight packed numbers of one width into place.
type unpackTable struct {
	order  [64]uint8 // of bytes, for each lane of 16
	shifts [64]uint8 // right, little-endian, in the numbers' size
}

// unpackTables are by width, for numbers of 64 and of 32 bits.
var unpackTables64, unpackTables32 = newUnpackTables()

// maxUnpack is the most bits of a number that need not lie in eight bytes.
const maxUnpack = 56

func newUnpackTables() (long, short [maxUnpack + 1]unpackTable) {
	for width := range long {
		for i := range 8 {
			long[width].put(i, width, 2, 8)
			if width <= 32 {
				short[width].put(i, width, 4, 4)
			}
		}
	}
	return long, short
}

// put describes number i, where a lane takes perLane numbers of size bytes.
func (t *unpackTable) put(i, width, perLane, size int) {
	lane := i / perLane * perLane * width / 8 // where it is loaded from
	for b := range size {
		t.order[i*size+b] = uint8(i*width/8 - lane + b)
	}
	t.shifts[i*size] = uint8(i * width % 8)
}

// fits32 says at which widths no number of 32 bits spans more than four bytes.
var fits32 = newFits32()

func newFits32() (fits [maxUnpack + 1]bool) {
	for width := range 33 {
		fits[width] = true
		for i := range 8 {
			fits[width] = fits[width] && i*width%8+width <= 32
		}
	}
	return fits
}

func fastUnpack[T Unsigned](dst []T, src []byte, width int, step, least T) int {
	size := int(unsafe.Sizeof(step))
	if !hasAVX2 || width == 0 || width > min(maxUnpack, 8*size) {
		return 0
	}
	last := width / 2 // where the last lane of eight starts
	if size == 8 {
		last = 6 * width / 8
	}
	if len(src) < last+16 {
		return 0
	}
	groups := min(len(dst)/8, (len(src)-last-16)/width+1)
	if size < 4 {
		groups = groups / (4 / size) * (4 / size)
	}
	if groups == 0 {
		return 0
	}
	mask := uint64(1)<<width - 1
	switch p := &src[0]; {
	case size == 8 && width <= 32 && uint64(step) < 1<<32:
		unpackMul64(start(dst), p, groups, width, &unpackTables64[width].order[0], mask, uint64(step), uint64(least))
	case size == 8 && step == 1:
		unpack64(start(dst), p, groups, width, &unpackTables64[width].order[0], mask, 1, uint64(least))
	case size == 8:
		unpack64(start(dst), p, groups, width, &unpackTables64[width].order[0], mask, 1, 0)
		Rise(dst[:8*groups], step, least)
	case !fits32[width]:
		return 0
	case size == 4:
		unpack32(start(dst), p, groups, width, &unpackTables32[width].order[0], mask, uint64(step), uint64(least))
	case size == 2:
		unpack16(start(dst), p, groups, width, &unpackTables32[width].order[0], mask, uint64(step), uint64(least))
	default:
		unpack8(start(dst), p, groups, width, &unpackTables32[width].order[0], mask, uint64(step), uint64(least))
	}
	return 8 * groups
}

func fastPrefixSum[T Unsigned](vals []T, base T) int {
	n := len(vals) &^ 7
	switch {
	case n == 0 || !hasAVX2:
		return 0
	case unsafe.Sizeof(base) == 8:
		prefixSum64(start(vals), n/4, uint64(base))
	case unsafe.Sizeof(base) == 4:
		prefixSum32(start(vals), n/8, uint64(base))
	default:
		return 0
	}
	return n
}

// denseWords is wholeWords where words with a bit set, of which it returns the number, have so many of
// them that all values of a word are read sooner than those selected are one by one.
func denseWords[T any](sel []uint64, vals []T) (words int, live uint64) {
	words = wholeWords(sel, len(vals))
	count := 0
	for _, w := range sel[:words] {
		if w != 0 {
			live++
		}
		count += bits.OnesCount64(w)
	}
	if size := unsafe.Sizeof(*new(T)); live == 0 || 2*count < int(live)*int(size) {
		return 0, 0
	}
	return words, live
}

func fastSumSmall[T Signed](vals []T, sel []uint64) (sum int64, words int) {
	n, live := denseWords(sel, vals)
	if n == 0 {
		return 0, 0
	}
	var out [8]uint64
	size := unsafe.Sizeof(vals[0])
	excess := live << 6 << (8*size - 1) // of the values in the sum
	switch size {
	case 1:
		sum8(&sel[0], start(vals), n, &out)
	case 2:
		sum16(&sel[0], start(vals), n, &out)
		excess = 0
	default:
		sum32(&sel[0], start(vals), n, &out)
	}
	return int64(out[0] + out[1] + out[2] + out[3] - excess), n
}

func fastSumInt64(vals []int64, sel []uint64) (hi int64, lo uint64, words int) {
	n, live := denseWords(sel, vals)
	if n == 0 {
		return 0, 0, 0
	}
	var out [8]uint64
	sum64(&sel[0], start(vals), n, &out)
	low, high := out[0]+out[1]+out[2]+out[3], out[4]+out[5]+out[6]+out[7]
	lo, carry := bits.Add64(low, high<<32, 0)
	top := high>>32 + carry
	// Each of 64 values a word is 1<<63 too large.
	excess := live << 5
	return int64(top - excess), lo, n
}

func fastSumFloat[T float32 | float64](l *floatLanes, vals []T, sel []uint64) (words int) {
	n, _ := denseWords(sel, vals)
	switch {
	case n == 0:
	case unsafe.Sizeof(vals[0]) == 4:
		sumFloat32(&sel[0], start(vals), n, (*[16]float64)(l))
	default:
		sumFloat64(&sel[0], start(vals), n, (*[16]float64)(l))
	}
	return n
}

func fastExtreme[T Number](best T, vals []T, sel []uint64, max bool) (T, int) {
	n, _ := denseWords(sel, vals)
	if n == 0 {
		return best, 0
	}
	var lanes [32]T // the first 32 bytes are used
	used := lanes[:32/unsafe.Sizeof(best)]
	for i := range used {
		used[i] = best
	}
	extreme[T](&sel[0], start(vals), n, start(used), max)
	for _, x := range used {
		if max && x > best || !max && x < best {
			best = x
		}
	}
	return best, n
}

// extreme calls the kernel for a type.
func extreme[T Number](sel *uint64, vals *uint8, words int, best *uint8, max bool) {
	switch any(T(0)).(type) {
	case int8:
		if max {
			max8(sel, vals, words, best)
		} else {
			min8(sel, vals, words, best)
		}
	case int16:
		if max {
			max16(sel, vals, words, best)
		} else {
			min16(sel, vals, words, best)
		}
	case int32:
		if max {
			max32(sel, vals, words, best)
		} else {
			min32(sel, vals, words, best)
		}
	case int64:
		if max {
			max64(sel, vals, words, best)
		} else {
			min64(sel, vals, words, best)
		}
	case float32:
		if max {
			maxFloat32(sel, vals, words, best)
		} else {
			minFloat32(sel, vals, words, best)
		}
	case float64:
		if max {
			maxFloat64(sel, vals, words, best)
		} else {
			minFloat64(sel, vals, words, best)
		}
	}
}

func fastSpread[T any](vals []T, valid []uint64, k int) bool {
	n := len(valid)
	if n == 0 || !hasAVX2 || len(vals) < 64*n || ones(valid) != k {
		return false
	}
	switch unsafe.Sizeof(vals[0]) {
	case 1:
		spread8(start(vals), &valid[0], n, k)
	case 2:
		spread16(start(vals), &valid[0], n, k)
	case 4:
		spread32(start(vals), &valid[0], n, k)
	case 8:
		spread64(start(vals), &valid[0], n, k)
	default:
		return false
	}
	return true
}

// ones returns the number of set bits.
func ones(b []uint64) (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

func fastDeposit(x, mask uint64) (uint64, bool) {
	if !hasAVX2 {
		return 0, false
	}
	return deposit64(x, mask), true
}

func fastGather[T any](dst, words []T, codes []uint16) int {
	n := len(codes) &^ 7
	if n == 0 || !hasAVX2 || len(words) > 1<<15 {
		return 0
	}
	signed := unsafe.Slice((*int16)(unsafe.Pointer(&codes[0])), n)
	if Min(0, signed, nil) < 0 || int(Max(0, signed, nil)) >= len(words) {
		return 0
	}
	switch unsafe.Sizeof(dst[0]) {
	case 1:
		gather8(start(dst), start(words), &codes[0], n/8)
	case 2:
		gather16(start(dst), start(words), &codes[0], n/8)
	case 4:
		gather32(start(dst), start(words), &codes[0], n/8)
	case 8:
		gather64(start(dst), start(words), &codes[0], n/8)
	case 16:
		gather128(start(dst), start(words), &codes[0], n/8)
	default:
		return 0
	}
	return n
}
