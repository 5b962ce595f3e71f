// Command growth loads one table until it is large, samples how the store does meanwhile,
// and measures it at its final size.
//
//	go run ./growth -workload narrow -rows 100000000 -memory 4GiB -dir DIR -out narrow.jsonl
//	go run ./growth -workload narrow -rows 1000000000 -memory 4GiB -dir DIR -out narrow.jsonl -use-existing
//	go run ./growth report -out ../../docs/benchmarks narrow.jsonl ...
//
// A [Workload] says what row i is for every i, so rows take no memory, a run goes on
// where the store ends, and any row can be checked. A run is phases, each in a process of
// its own, since nothing may be warm from the phase before: load (until the last commit,
// then until compactions are done), open (several times) and read. What they find is
// appended to a file, a [Line] of JSON each. The report makes tables and charts of such
// files and compares them with a [Model] whose constants were measured at one size.
//
// It runs on Linux, as it reads /proc. docs/benchmarks/scale.md says what is measured.
//
// Invariants:
//
//	I1  rows are committed in order of their number, each batch durably: what a store
//	    holds, whatever ended the load, are the rows below a number.
//	I2  every answer is compared with what the workload says, and a difference ends the run.
package main
