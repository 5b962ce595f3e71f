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
