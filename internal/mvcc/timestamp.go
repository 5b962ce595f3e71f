package mvcc

import "time"

// Timestamp is a hybrid time: microseconds since 1970 shifted left by LogicalBits,
// and a logical counter. Zero means "before everything".
type Timestamp uint64

// LogicalBits is the width of the logical counter.
const LogicalBits = 12

// Max is the largest timestamp a snapshot may have.
const Max = Timestamp(1<<63 - 1)

// FromTime returns the first timestamp of the microsecond of t, 0 for times before 1970
// and Max for those that are too late for a timestamp.
func FromTime(t time.Time) Timestamp {
	us := t.UnixMicro()
	switch {
	case t.Unix() < 0:
		return 0
	case t.Unix() >= Max.Time().Unix():
		return Max
	}
	return Timestamp(us) << LogicalBits
}

// Time returns the physical part.
func (t Timestamp) Time() time.Time { return time.UnixMicro(int64(t >> LogicalBits)).UTC() }

// Interval is the commits a scan reads: Lo exclusive, Hi inclusive.
type Interval struct{ Lo, Hi Timestamp }

// At returns the interval of a plain scan at snapshot s.
func At(s Timestamp) Interval { return Interval{Hi: s} }

// Contains reports whether a commit at t lies in the interval.
func (i Interval) Contains(t Timestamp) bool { return t > i.Lo && t <= i.Hi }
