package compaction

import (
	"math"
	"testing"
	"time"
)

func TestItem107FlushScore(t *testing.T) {
	const threshold = 64 * mib
	for _, c := range []struct {
		bytes  int64
		since  time.Duration
		lo, hi float64
	}{
		{64 * mib, time.Millisecond, 1, 1},
		{2 * mib, 3 * time.Minute, 0.01, 0.1},
		{128 * mib, time.Millisecond, 64, 64},
		{1, 50 * time.Minute, 0.7, 1},
		{63 * mib, 3 * time.Minute, 0.9, 1},
		{63 * mib, time.Minute, 0, 0},
		{0, 50 * time.Minute, 0, 0},
		{1, 100 * time.Hour, 1, 1},
	} {
		if got := FlushScore(c.bytes, threshold, c.since); got < c.lo || got > c.hi {
			t.Errorf("%d bytes after %v: %v", c.bytes, c.since, got)
		}
	}
}

func TestDeltaScores(t *testing.T) {
	for files, want := range map[int]float64{0: 0, 1: 0, 2: 0.002, 1000: 1, 5000: 1} {
		if got := MinorScore(files); got != want {
			t.Errorf("%d files: %v", files, got)
		}
	}
	for _, c := range []struct {
		redo, base int64
		columns    int
		want       float64
	}{{9, 100, 1, 0}, {10, 100, 1, 0.1}, {10, 100, 0, 0}, {500, 100, 2, 1}, {5, 0, 1, 1}, {0, 0, 1, 0}} {
		if got := MajorScore(c.redo, c.base, c.columns, false); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestPickDeltaFlush(t *testing.T) {
	big, old := DeltaStore{Bytes: 100, Log: 10}, DeltaStore{Bytes: 10, Log: 100}
	for _, c := range []struct {
		stores []DeltaStore
		used   float64
		want   int
	}{
		{nil, 1, -1},
		{[]DeltaStore{{Log: 5}}, 0.5, -1},
		{[]DeltaStore{old, big}, 0.9, 1},
		{[]DeltaStore{old, big}, 0.1, 0},
		{[]DeltaStore{old, big}, 0.5, 1}, // equal: the larger
		{[]DeltaStore{big, old}, 0.5, 0},
		{[]DeltaStore{big, old}, 2, 0},
	} {
		if got := PickDeltaFlush(c.stores, c.used); got != c.want {
			t.Errorf("%v at %v: %d", c.stores, c.used, got)
		}
	}
}

// run lets Choose decide until nothing is left to do and returns the order.
func run(t *testing.T, ops []Op, s State, want ...Decision) {
	t.Helper()
	for i := range ops {
		ops[i].Runnable = true
	}
	for i, w := range append(want, Decision{-1, ReasonNone}) {
		got := Choose(ops, s)
		if got != w {
			t.Fatalf("step %d: %+v, want %+v", i, got, w)
		}
		if got.Op >= 0 {
			ops[got.Op].Runnable = false
		}
	}
}

func TestItem108LogFirst(t *testing.T) {
	ops := func() []Op {
		return []Op{
			{Kind: Flush, Log: 100 * mib, Memory: 100},
			{Kind: TrimLog, Log: 100 * mib},
			{Kind: FlushDeltas, Log: 100 * mib, Memory: 200},
		}
	}
	calm := State{Memory: 1, MemoryMark: 100, LogTarget: 1024 * mib}
	run(t, ops(), calm, Decision{1, ReasonTrim})
	calm.LogTarget = 50 * mib
	run(t, ops(), calm, Decision{1, ReasonTrim}, Decision{2, ReasonLog}, Decision{0, ReasonLog})
}

func TestItem108MemoryPressure(t *testing.T) {
	tight := State{Memory: 101, MemoryMark: 100, LogTarget: 1024}
	run(t, []Op{{Log: 99, Memory: 101, Kind: Flush}, {Log: 100, Memory: 99, Kind: Flush}, {Log: 100, Memory: 100, Kind: Flush}, {Kind: CompactRowSet, Gain: 5}},
		tight, Decision{2, ReasonMemory}, Decision{1, ReasonMemory}, Decision{0, ReasonMemory}, Decision{3, ReasonGain})
	calm := State{Memory: 100, MemoryMark: 100, LogTarget: 1024}
	run(t, []Op{{Kind: Flush, Memory: 100}}, calm)
	run(t, []Op{{Kind: Flush, Memory: 100}}, tight, Decision{0, ReasonMemory})
}

func TestItem108Priority(t *testing.T) {
	for p := -7; p <= 7; p++ {
		op := Op{Gain: 3, Priority: p}
		want := 3 * math.Pow(1.1, float64(max(-5, min(5, p))))
		if got := op.score(); math.Abs(got-want) > 1e-12 {
			t.Errorf("priority %d: %v, want %v", p, got, want)
		}
	}
	run(t, []Op{{Kind: CompactRowSet, Gain: 1, Priority: -6}, {Kind: CompactRowSet, Gain: 1}, {Kind: CompactRowSet, Gain: 0.9, Priority: 2}, {Kind: Flush, Priority: 5}},
		State{LogTarget: 1}, Decision{2, ReasonGain}, Decision{1, ReasonGain}, Decision{0, ReasonGain})
}

func TestGarbageSharesWithGain(t *testing.T) {
	ops := func() []Op {
		return []Op{{Kind: CompactRowSet, Gain: 1}, {Kind: DropHistory, Garbage: 5}, {Kind: DropRowSet, Garbage: 9}}
	}
	run(t, ops(), State{LogTarget: 1, Coin: 0.4}, Decision{2, ReasonGarbage}, Decision{1, ReasonGarbage}, Decision{0, ReasonGain})
	run(t, ops(), State{LogTarget: 1, Coin: 0.5}, Decision{0, ReasonGain}, Decision{2, ReasonGarbage}, Decision{1, ReasonGarbage})
}

func TestKindNames(t *testing.T) {
	names := map[string]bool{}
	for k := TrimLog; k <= DropRowSet+1; k++ {
		names[k.String()] = true
	}
	if len(names) != 9 || !names["unknown"] {
		t.Errorf("%v", names)
	}
}

func TestItem109CompactionDisabled(t *testing.T) {
	for k := TrimLog; k <= DropRowSet; k++ {
		op := Op{Kind: k, Runnable: true, Log: 1, Memory: 1, Garbage: 1, Gain: 1, NoCompaction: true}
		compacts := k == CompactRowSet || k == CompactMinor || k == CompactMajor
		if got := Choose([]Op{op}, State{}).Op; (got < 0) != compacts {
			t.Errorf("kind %d: %d", k, got)
		}
		op.NoCompaction = false
		if got := Choose([]Op{op}, State{}).Op; got != 0 {
			t.Errorf("kind %d, enabled: %d", k, got)
		}
	}
}
