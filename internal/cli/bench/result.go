package bench

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what one operation took. Operations are rows for insert, upsert, update,
// delete and get, and calls for the others; a time is that of one call, which Per names.
type Result struct {
	Op         string  `json:"op"`
	Workload   string  `json:"workload"`
	Threads    int     `json:"threads"`
	Operations int64   `json:"operations"`
	Seconds    float64 `json:"seconds"`
	OpsPerSec  float64 `json:"operations_per_s"`
	RowsPerSec float64 `json:"rows_per_s"` // written, read or gone through
	Per        string  `json:"per"`
	Timed      int64   `json:"timed"` // calls
	Average    float64 `json:"average_ms"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	P999       float64 `json:"p99_9_ms"`
	Max        float64 `json:"max_ms"`
	RowsBefore int64   `json:"rows_before"` // of the table
	Rows       int64   `json:"rows"`        // of the table afterwards
}

// Progress says how far an operation has come.
type Progress struct {
	Op         string  `json:"op"`
	Seconds    float64 `json:"seconds"` // by the clock of the operation
	Operations int64   `json:"operations"`
	OpsPerSec  float64 `json:"operations_per_s"` // since the progress before
	Rows       int64   `json:"rows"`             // of the table
}

// times gathers how long calls took.
type times struct{ h *hdrhistogram.Histogram }

// longest is the largest time that is told from others.
const longest = time.Hour

func newTimes() *times { return &times{hdrhistogram.New(1, int64(longest), 3)} }

func (t *times) add(d time.Duration) { _ = t.h.RecordValue(int64(min(max(d, 1), longest))) }

// fill sets the fields that follow from the times and the clock.
func (t *times) fill(r *Result, elapsed time.Duration, rows int64) {
	ms := func(ns float64) float64 { return round(ns/1e6, 4) }
	r.Timed, r.Seconds = t.h.TotalCount(), round(elapsed.Seconds(), 6)
	if elapsed > 0 {
		r.OpsPerSec = round(float64(r.Operations)/elapsed.Seconds(), 1)
		r.RowsPerSec = round(float64(rows)/elapsed.Seconds(), 1)
	}
	if r.Timed == 0 {
		return
	}
	r.Average, r.Max = ms(t.h.Mean()), ms(float64(t.h.Max()))
	r.P50, r.P99, r.P999 = ms(float64(t.h.ValueAtQuantile(50))), ms(float64(t.h.ValueAtQuantile(99))), ms(float64(t.h.ValueAtQuantile(99.9)))
}

func round(f float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(f*scale) / scale
}
