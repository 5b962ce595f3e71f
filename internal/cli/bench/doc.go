// Package bench measures the operations of a store one by one: the command
// minikudu bench, in the manner of Hadoop's NNThroughputBenchmark.
//
// A [Workload] is a table and its rows, of which there is no last one: it goes on after
// those that a table has. A [Runner] runs operations on one table. It
// makes the inputs of a round while the clock stands and background work is held back,
// deals them to its threads row by row, starts the clock and lets the threads go; an
// operation whose inputs do not fit the memory for them takes several rounds.
// [ReadSizes] measures reads of increasing size.
//
// A Runner and what it returns belong to one goroutine.
//
// Invariants:
//
//	I1  the shares of two threads differ by at most one operation, over all rounds.
//	I2  nothing but calls of the engine happens while the clock runs, except that what
//	    scans deliver is read, cell by cell.
//	I3  memory for inputs does not grow with the number of operations, and no batch is
//	    cut short to save it.
package bench
