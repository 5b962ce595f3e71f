package compaction

import (
	"cmp"
	"math"
)

// Kind is a kind of background work.
type Kind uint8

const (
	TrimLog       Kind = iota // delete segments of the log that nothing needs: next to no I/O
	Flush                     // write a memory rowset to disk
	FlushDeltas               // write a rowset's changes in memory to disk
	CompactRowSet             // merge what Pick selects
	CompactMinor              // merge delta files of a rowset
	CompactMajor              // fold delta files of a rowset into its base data
	DropHistory               // delete expired UNDO files
	DropRowSet                // delete a rowset all of whose rows are dead
)

// String returns the name of the kind, for people.
func (k Kind) String() string {
	names := [...]string{"log trim", "flush", "delta flush", "rowset compaction", "minor delta compaction",
		"major delta compaction", "history drop", "rowset drop"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Compacts reports whether the work is a compaction, which a table can disable. Stores
// are flushed and garbage is deleted all the same.
func (k Kind) Compacts() bool {
	return k == CompactRowSet || k == CompactMinor || k == CompactMajor
}

// Op is work that could be done now.
type Op struct {
	Kind         Kind
	Runnable     bool    // nothing else holds its target
	NoCompaction bool    // the table has compactions disabled
	Memory       int64   // bytes of memory it frees
	Log          int64   // bytes of the log that nothing else of its target keeps afterwards
	Garbage      int64   // bytes of dead data it deletes without rewriting any
	Gain         float64 // what it improves: a score of this package, or Plan.Quality
	Priority     int     // of its table: each step up counts a tenth more; -5 to 5
}

const (
	priorityBase  = 1.1
	priorityRange = 5
	garbageFirst  = 0.5 // chance that garbage goes before a gain
)

func (o *Op) runnable() bool { return o.Runnable && !(o.NoCompaction && o.Kind.Compacts()) }

// score is the gain as weighed by the priority.
func (o *Op) score() float64 {
	p := max(-priorityRange, min(priorityRange, o.Priority))
	return o.Gain * math.Pow(priorityBase, float64(p))
}

// State is what the choice depends on besides the work itself.
type State struct {
	Memory     int64   // bytes in use
	MemoryMark int64   // above it, freeing memory goes first; Kudu's is 60 % of the limit
	LogTarget  int64   // bytes of the log from which work that shortens it goes first; Kudu's are 1 GiB
	Coin       float64 // a random number in [0, 1)
}

// Reason says why work was chosen.
type Reason string

const (
	ReasonNone    Reason = ""        // nothing is worth doing
	ReasonTrim    Reason = "trim"    // log segments can go
	ReasonMemory  Reason = "memory"  // memory is short
	ReasonLog     Reason = "log"     // the log is long
	ReasonGarbage Reason = "garbage" // dead data can go
	ReasonGain    Reason = "gain"    // reads, or space, improve most
)

// Decision is the work to do next.
type Decision struct {
	Op     int // index of the work, -1 for none
	Reason Reason
}

// Choose returns what to do next. Short memory is freed by the work that releases most
// of the log, not most memory: a small store with old changes would otherwise wait for
// ever behind full ones. Of equal work the first is chosen.
func Choose(ops []Op, s State) Decision {
	steps := []struct {
		reason Reason
		wanted func(*Op) bool
		order  func(a, b *Op) int // positive: a is better
	}{
		{ReasonTrim, func(o *Op) bool { return o.Kind == TrimLog && o.Log > 0 }, byLog},
		{ReasonMemory, func(o *Op) bool { return s.Memory > s.MemoryMark && o.Memory > 0 }, byLog},
		{ReasonLog, func(o *Op) bool { return o.Log > 0 && o.Log >= s.LogTarget }, byLog},
		{ReasonGarbage, func(o *Op) bool { return s.Coin < garbageFirst && o.Garbage > 0 }, byGarbage},
		{ReasonGain, func(o *Op) bool { return o.Gain > 0 }, byScore},
		{ReasonGarbage, func(o *Op) bool { return o.Garbage > 0 }, byGarbage},
	}
	for _, step := range steps {
		if i := best(ops, step.wanted, step.order); i >= 0 {
			return Decision{i, step.reason}
		}
	}
	return Decision{-1, ReasonNone}
}

func byLog(a, b *Op) int {
	return cmp.Or(cmp.Compare(a.Log, b.Log), cmp.Compare(a.Memory, b.Memory))
}

func byGarbage(a, b *Op) int { return cmp.Compare(a.Garbage, b.Garbage) }

func byScore(a, b *Op) int { return cmp.Compare(a.score(), b.score()) }

// best returns the first best of the runnable work that is wanted, -1 for none.
func best(ops []Op, wanted func(*Op) bool, order func(a, b *Op) int) int {
	best := -1
	for i := range ops {
		if o := &ops[i]; o.runnable() && wanted(o) && (best < 0 || order(o, &ops[best]) > 0) {
			best = i
		}
	}
	return best
}
