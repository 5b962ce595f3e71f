// Package cli is the command line of minikudu.
//
// [App.Run] parses the arguments, runs one command and returns the exit status:
//
//	0  done
//	1  done, but rows were rejected, a key was not found, or damage was found
//	2  wrong usage
//	3  anything else: locked, missing, corrupt, I/O
//
// Results go to standard output and nothing else does; progress, warnings, rejected
// rows and errors go to standard error, an error in one line. A command is a file:
// import.go, scan.go and so on. What they share is in run.go (exit status, messages),
// store.go (opening) and output.go (tables, CSV, JSON).
//
// Package csvio reads and writes CSV, package sqltext parses expressions, package bench
// measures. An App may
// be used by several goroutines if its streams may.
//
// Invariants:
//
//	I1  only create, import and bench make a directory or a table, and only once
//	    everything that can be checked beforehand was found good.
//	I2  commands that only read open the store read-only: they change no file.
//	I3  memory does not grow with the rows that pass through, except where an order
//	    was asked for that is not the key's, and then only up to --memory.
package cli
