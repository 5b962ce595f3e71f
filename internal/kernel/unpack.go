package kernel

import (
	"encoding/binary"
	"unsafe"
)

// Unpack fills dst with least + step*n for numbers n of so many bits, at most 56, or 64,
// lowest bit first, modulo the range of T. src has (len(dst)*width+7)/8 bytes at least; with
// more, more of it is fast.
func Unpack[T Unsigned](dst []T, src []byte, width int, step, least T) {
	_ = src[:(len(dst)*width+7)/8]
	n := fastUnpack(dst, src, width, step, least)
	unpackRest(dst[n:], src[n/8*width:], width, step, least)
}

// unpackRest is the portable [Unpack].
func unpackRest[T Unsigned](dst []T, src []byte, width int, step, least T) {
	unpack(dst, src, width)
	Rise(dst, step, least)
}

// Rise turns steps above the least into numbers.
func Rise[T Unsigned](dst []T, step, least T) {
	switch {
	case step != 1:
		for i, s := range dst {
			dst[i] = least + step*s
		}
	case least != 0:
		for i := range dst {
			dst[i] += least
		}
	}
}

// PrefixSum replaces each value by the sum of all up to it and base.
func PrefixSum[T Unsigned](vals []T, base T) {
	n := fastPrefixSum(vals, base)
	if n > 0 {
		base = vals[n-1]
	}
	prefixSum(vals[n:], base)
}

func prefixSum[T Unsigned](vals []T, base T) {
	for i, d := range vals {
		base += d
		vals[i] = base
	}
}

// unpack fills dst with the numbers. Eight numbers take width bytes, so within each eight they lie at the same places.
func unpack[T Unsigned](dst []T, src []byte, width int) {
	if width == 0 {
		clear(dst)
		return
	}
	groups := 0 // of eight that can be read with loads of eight bytes each
	if past := 7*width/8 + 8; len(src) >= past {
		groups = min(len(dst)/8, (len(src)-past)/width+1)
	}
	if groups > 0 {
		unpackGroups(dst[:8*groups], src, width)
		dst, src = dst[8*groups:], src[groups*width:]
	}
	mask := ^uint64(0) >> (64 - width)
	for i := range dst {
		bit := i * width
		var word [8]byte
		copy(word[:], src[bit>>3:])
		dst[i] = T(binary.LittleEndian.Uint64(word[:]) >> (bit & 7) & mask)
	}
}

// unpackGroups fills dst, whose length is a multiple of eight. The caller has checked
// that eight bytes can be read from the start of every number.
func unpackGroups[T Unsigned](dst []T, src []byte, width int) {
	var at, by [8]int
	for i := range at {
		at[i], by[i] = i*width>>3, i*width&7
	}
	mask := ^uint64(0) >> (64 - width)
	p, last := unsafe.Pointer(&src[0]), (len(dst)/8-1)*width
	for off := 0; off <= last; off += width {
		q, d := unsafe.Add(p, off), (*[8]T)(dst)
		d[0] = T(load(q, 0) & mask)
		d[1] = T(load(q, at[1]) >> (by[1] & 7) & mask)
		d[2] = T(load(q, at[2]) >> (by[2] & 7) & mask)
		d[3] = T(load(q, at[3]) >> (by[3] & 7) & mask)
		d[4] = T(load(q, at[4]) >> (by[4] & 7) & mask)
		d[5] = T(load(q, at[5]) >> (by[5] & 7) & mask)
		d[6] = T(load(q, at[6]) >> (by[6] & 7) & mask)
		d[7] = T(load(q, at[7]) >> (by[7] & 7) & mask)
		dst = dst[8:]
	}
}
