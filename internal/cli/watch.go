package cli

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/minikudu/minikudu"
)

// watchInterval is the time between two lines of --watch.
const watchInterval = time.Second

// watched is a line of --watch.
type watched struct {
	Seconds    float64 `json:"seconds"`
	Rows       int64   `json:"rows"`       // written so far
	RowsPerSec float64 `json:"rows_per_s"` // since the line before
	Memory     int64   `json:"memory_bytes"`
	RowSets    int     `json:"rowsets"`
	RowSetSize int64   `json:"rowset_bytes"`
	Log        int64   `json:"log_bytes"`
	Flushes    int64   `json:"flushes"` // of rows and of changes
	Merges     int64   `json:"compactions"`
	Stalled    float64 `json:"stalled_seconds"` // that writers waited for memory
}

// watch prints what the store does to standard error until stop is called.
func (s *session) watch(db *minikudu.DB) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		begin, last := time.Now(), watched{}
		for {
			select {
			case <-quit:
				s.messageWatched(observe(db, begin, &last))
				return
			case <-tick.C:
				s.messageWatched(observe(db, begin, &last))
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// observe returns the present state and keeps it in last.
func observe(db *minikudu.DB, begin time.Time, last *watched) *watched {
	m := db.Metrics()
	w := watched{Seconds: time.Since(begin).Seconds(), Rows: m.RowsWritten, Memory: m.MemoryBytes, RowSets: m.RowSets, RowSetSize: m.RowSetBytes,
		Log: m.LogBytes, Flushes: m.Flushes + m.DeltaFlushes, Merges: m.Compactions, Stalled: m.StallTime.Seconds()}
	w.RowsPerSec = float64(w.Rows-last.Rows) / max(w.Seconds-last.Seconds, 1e-9)
	*last = w
	return &w
}

func (s *session) messageWatched(w *watched) {
	if s.json {
		s.messageJSON(map[string]*watched{"watch": w})
		return
	}
	size := func(n int64) string { return humanize.IBytes(uint64(n)) }
	fmt.Fprintf(s.app.Stderr, "watch: %.0f s, %s rows, %s rows/s, %s in memory, %d rowsets of %s, log %s, %d flushes, %d compactions, writers waited %.1f s\n", w.Seconds,
		humanize.Comma(w.Rows), humanize.Comma(int64(w.RowsPerSec)), size(w.Memory), w.RowSets, size(w.RowSetSize), size(w.Log), w.Flushes, w.Merges, w.Stalled)
}
