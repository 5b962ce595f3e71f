// Command benchmarks compares minikudu with other embedded stores and file formats.
//
//	go run . -out ../../docs/benchmarks            # all, hours
//	go run . -quick -out /tmp/quick                # small, minutes
//
// A [Workload] makes rows and says what is asked of them, a [Peer] stores them. The
// harness ([Plan]) writes the rows to a file that is mapped, and runs each phase of each
// peer in a process of its own: it starts this program again with a [Job]. All answers
// are compared with those of a plain loop over the rows. Results are lines of JSON,
// tables in Markdown, charts, and a table of goals.
//
// It runs on Linux: it maps files and reads /proc.
//
// How it is fair, and where not, is in docs/benchmarks/method.md.
package main
