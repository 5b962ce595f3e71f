// Package testkit holds what tests of several packages share: seeded random numbers
// that can be set again ([Rand]), a check for leaked goroutines ([CheckLeaks]), random
// schemas and rows of every type ([RandomSchema], [RandomVectors]), and comparison of
// vectors ([RequireEqual]).
//
// Only tests import it. Rows are made from one rand.Rand and are the same for the same
// seed. Nothing here is safe for concurrent use of one rand.Rand.
package testkit
