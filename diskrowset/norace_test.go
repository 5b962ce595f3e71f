//go:build !race

package diskrowset

const raceEnabled = false
