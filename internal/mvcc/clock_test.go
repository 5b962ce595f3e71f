package mvcc

import (
	"errors"
	"testing"
	"time"
)

func TestClockIsStrictlyIncreasing(t *testing.T) {
	now := time.Now()
	c := NewClock(0, func() time.Time { return now }, false)
	last := Timestamp(0)
	for i := range 10000 {
		if i == 5000 {
			now = now.Add(-time.Minute) // a backward step keeps counting
		}
		ts, err := c.Next()
		if err != nil || ts <= last {
			t.Fatalf("timestamp %d after %d: %v", ts, last, err)
		}
		last = ts
	}
	if c.Now() < last {
		t.Fatalf("Now %d is below a timestamp that was handed out, %d", c.Now(), last)
	}
}

func TestClockStartsAboveFloor(t *testing.T) {
	floor := FromTime(time.Now().Add(48 * time.Hour))
	ts, err := NewClock(floor, nil, false).Next()
	if err != nil || ts != floor+1 {
		t.Fatalf("got %d, %v, want %d", ts, err, floor+1)
	}
}

func TestClockRefusesLargeForwardStep(t *testing.T) {
	// Times without a monotonic part stand for a wall clock; their difference to the
	// monotonic one shows only when both readings carry it, so build them by hand.
	base := time.Now()
	step := time.Duration(0)
	c := &Clock{now: func() time.Time { return base.Add(step) }, seen: base}
	step = 2 * time.Hour // both parts move: two hours have really passed
	if _, err := c.Next(); err != nil {
		t.Fatalf("an idle hour is not a step: %v", err)
	}
	if err := stepError(time.Hour); err != nil {
		t.Fatalf("an hour is allowed: %v", err)
	}
	if err := stepError(time.Hour + time.Second); !errors.Is(err, ErrClockStep) {
		t.Fatalf("got %v, want ErrClockStep", err)
	}
}

func stepError(step time.Duration) error { return checkStep(step, 0) }

func TestTimestampTime(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)
	if got := FromTime(at).Time(); !got.Equal(at) {
		t.Fatalf("got %v, want %v", got, at)
	}
	if late := time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC); FromTime(late) != Max {
		t.Fatal("a time after all timestamps must be the last")
	}
	if FromTime(time.Unix(-1, 0)) != 0 {
		t.Fatal("a time before 1970 must be timestamp 0")
	}
	for _, years := range []int{100, 1000, 1_000_000} {
		if ts := FromTime(at.AddDate(years, 0, 0)); ts != Max {
			t.Errorf("%d years from now: %d", years, ts)
		}
	}
	iv := Interval{Lo: 5, Hi: 9}
	for ts, want := range map[Timestamp]bool{5: false, 6: true, 9: true, 10: false} {
		if iv.Contains(ts) != want {
			t.Errorf("(5, 9] contains %d: %v", ts, !want)
		}
	}
}
