package kernel

// Spread moves the first k values, as many as valid has bits set, to the places of these
// bits, in order, and clears the others. There are as many values as valid has bits.
func Spread[T any](vals []T, valid []uint64, k int) {
	whole := len(vals) / 64
	if whole < len(valid) {
		k = spreadWord(vals, valid, whole, k)
	}
	if !fastSpread(vals, valid[:whole], k) {
		spread(vals, valid[:whole], k)
	}
}

// spread goes from the last word to the first, so that nothing is overwritten before it has moved.
func spread[T any](vals []T, valid []uint64, k int) {
	for w := len(valid) - 1; w >= 0 && k != w<<6+64; w-- {
		k = spreadWord(vals, valid, w, k)
	}
}

// spreadWord does one word and returns how many values are left.
func spreadWord[T any](vals []T, valid []uint64, w, k int) int {
	var zero T
	lo, hi := w<<6, min(w<<6+64, len(vals))
	switch word := valid[w]; word {
	case 0:
		clear(vals[lo:hi])
	case fullWord:
		k -= 64
		copy(vals[lo:hi], vals[k:k+64])
	default:
		for i := hi - 1; i >= lo; i-- {
			if word>>(uint(i)&63)&1 != 0 {
				k--
				vals[i] = vals[k]
			} else {
				vals[i] = zero
			}
		}
	}
	return k
}

// Deposit moves the low bits of x to the places of the set bits of mask, in order.
func Deposit(x, mask uint64) uint64 {
	if out, ok := fastDeposit(x, mask); ok {
		return out
	}
	return deposit(x, mask)
}

func deposit(x, mask uint64) (out uint64) {
	for ; mask != 0; mask &= mask - 1 {
		out |= mask & -mask & -(x & 1)
		x >>= 1
	}
	return out
}
