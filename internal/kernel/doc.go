// Package kernel holds the loops that the engine spends its time in, each in Go for every
// machine and, where that is faster, in assembly for amd64 processors with AVX2.
//
// An exported function does its work in two parts: fastX, if the machine has it, does as many whole
// blocks from the front as it can and says how many that were; the portable code does the
// rest, which is all of it on other machines and under the build tag purego. Both
// give the same bits, which the tests compare. Whether fast code may run is decided once,
// when the program starts.
//
// The assembly is written by the program in gen, which is a module of its own: avo, which it
// is written in, is no dependency of the engine. Generated files are part of the
// repository; after a change of gen, write them anew:
//
//	go generate ./internal/kernel
//
// Functions do not keep their arguments and may be called concurrently. Bitmaps are as in package
// vector: bit i is bit i%64 of word i/64.
package kernel

//go:generate go -C gen run .
