//go:build !amd64 || purego

package kernel

// hasAVX2 is set where the assembly can run.
const hasAVX2 = false

func fastShuffle(dst, src []byte, width, stride int) int   { return 0 }
func fastUnshuffle(dst, src []byte, width, stride int) int { return 0 }
