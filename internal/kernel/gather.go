package kernel

// Gather fills dst with the words that the codes, as many, name. It stops before a code that
// is not below the number of words and returns how many were good.
func Gather[T any](dst, words []T, codes []uint16) int {
	dst = dst[:len(codes)]
	n := fastGather(dst, words, codes)
	return n + gather(dst[n:], words, codes[n:])
}

func gather[T any](dst, words []T, codes []uint16) int {
	for i, c := range codes {
		if int(c) >= len(words) {
			return i
		}
		dst[i] = words[c]
	}
	return len(codes)
}
