//go:build amd64 && !purego

package kernel

import "golang.org/x/sys/cpu"

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
