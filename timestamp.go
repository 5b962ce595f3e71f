package minikudu

import (
	"time"

	"github.com/minikudu/minikudu/internal/mvcc"
)

// TimestampAt returns the first timestamp that a commit in the microsecond of t can
// have; 0 for times before 1970.
func TimestampAt(t time.Time) Timestamp { return mvcc.FromTime(t) }
