//go:build !amd64 || purego

package kernel

// hasAVX2 is set where the assembly can run.
const hasAVX2 = false

func fastShuffle(dst, src []byte, width, stride int) int   { return 0 }
func fastUnshuffle(dst, src []byte, width, stride int) int { return 0 }

func fastSpan[T Unsigned](sel []uint64, vals []T, lo, width T, keep uint64) int { return 0 }

func fastFloatSpan[T int32 | int64](sel []uint64, vals []T, lo T, width, keep uint64) int { return 0 }

func fastTable[T Unsigned](sel []uint64, codes []T, table []uint8) int { return 0 }

func fastUnpack[T Unsigned](dst []T, src []byte, width int, step, least T) int { return 0 }

func fastPrefixSum[T Unsigned](vals []T, base T) int { return 0 }

func fastSumSmall[T Signed](vals []T, sel []uint64) (sum int64, words int) { return 0, 0 }

func fastSumInt64(vals []int64, sel []uint64) (hi int64, lo uint64, words int) { return 0, 0, 0 }

func fastSumFloat[T float32 | float64](l *floatLanes, vals []T, sel []uint64) (words int) { return 0 }

func fastExtreme[T Number](best T, vals []T, sel []uint64, max bool) (T, int) { return best, 0 }

func fastSpread[T any](vals []T, valid []uint64, k int) bool { return false }

func fastDeposit(x, mask uint64) (uint64, bool) { return 0, false }

func fastContains(sel []uint64, offsets []int32, data []byte, s string) int { return 0 }

func fastGather[T any](dst, words []T, codes []uint16) int { return 0 }
