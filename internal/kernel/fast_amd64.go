//go:build amd64 && !purego

package kernel

import (
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
	if n == 0 || unsafe.Sizeof(codes[0]) > 1 {
		return 0
	}
	var set [32]uint8
	for i, x := range table[:min(len(table), 256)] {
		set[i/8] |= x << (i % 8)
	}
	table8(&sel[0], start(codes), n, &set)
	return n
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
