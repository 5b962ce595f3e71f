//go:build race

package diskrowset

// The race detector makes pools forget at random.
const raceEnabled = true
