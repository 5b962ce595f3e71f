//go:build race

package memrowset

const raceEnabled = true
