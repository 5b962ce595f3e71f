package main

// permutation is a random order of the numbers below 2^(2·half) that needs no memory: a
// Feistel network, which is a bijection whatever its round function is.
type permutation struct {
	half uint
	keys [4]uint64
}

func newPermutation(half uint, seed uint64) permutation {
	p := permutation{half: half}
	for i := range p.keys {
		p.keys[i] = mix(seed + uint64(i))
	}
	return p
}

// size is the number of numbers.
func (p *permutation) size() int64 { return 1 << (2 * p.half) }

// at returns number i of the order.
func (p *permutation) at(i int64) int64 {
	mask := uint64(1)<<p.half - 1
	left, right := uint64(i)>>p.half, uint64(i)&mask
	for _, k := range p.keys {
		left, right = right, left^mix(right^k)&mask
	}
	return int64(left<<p.half | right)
}

// mix spreads a number over 64 bits: the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
