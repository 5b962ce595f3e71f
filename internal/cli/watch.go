package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/cli/sqltext"
)

// watchInterval is the time between two lines of --watch.
const watchInterval = time.Second

// watched is a line of --watch and of watch.
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
	History    int64   `json:"history_bytes"`
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
				_ = s.printWatched(s.app.Stderr, observe(db, begin, &last))
				return
			case <-tick.C:
				_ = s.printWatched(s.app.Stderr, observe(db, begin, &last))
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
		Log: m.LogBytes, Flushes: m.Flushes + m.DeltaFlushes, Merges: m.Compactions, History: m.HistoryBytes, Stalled: m.StallTime.Seconds()}
	w.RowsPerSec = float64(w.Rows-last.Rows) / max(w.Seconds-last.Seconds, 1e-9)
	*last = w
	return &w
}

func (s *session) printWatched(to io.Writer, w *watched) error {
	if s.json {
		return json.NewEncoder(to).Encode(map[string]*watched{"watch": w})
	}
	size := func(n int64) string { return humanize.IBytes(uint64(n)) }
	_, err := fmt.Fprintf(to, "watch: %.0f s, %s rows, %s rows/s, %s in memory, %d rowsets of %s, log %s, %d flushes, %d compactions, history %s, writers waited %.1f s\n",
		w.Seconds, humanize.Comma(w.Rows), humanize.Comma(int64(w.RowsPerSec)), size(w.Memory), w.RowSets, size(w.RowSetSize), size(w.Log), w.Flushes, w.Merges,
		size(w.History), w.Stalled)
	return err
}

// watchFlags are the flags of watch.
type watchFlags struct {
	interval time.Duration
	lines    int // 0: no end
	settled  bool
}

func (s *session) watchCommand() *cobra.Command {
	var f watchFlags
	var interval string
	c := &cobra.Command{
		Use:   "watch",
		Short: "Let background work go on and print what it does",
		Long: `Open the store for writing, so that the background work that is due goes on, and print a
line at once and every interval: rows written and their rate, memory, files, log, flushes,
compactions and history, as import --watch does.

A store has one writer: while this runs no other command can open the store, and it cannot
watch a program that has the store open. An import is watched with import --watch.

It ends when it is interrupted, after --count lines, or with --until-settled after an
interval in which nothing was written, flushed or merged.`,
		Example: "  minikudu watch --until-settled\n  minikudu --json watch --interval 100ms --count 10",
		Args:    args(0, 0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if f.interval, err = sqltext.ParseDuration(interval); err != nil {
				return usage("--interval %q: %w", interval, err)
			}
			switch {
			case f.interval < time.Millisecond:
				return usage("--interval %s: must be at least 1ms", interval)
			case f.lines < 1 && c.Flags().Changed("count"):
				return usage("--count %d: must be at least 1", f.lines)
			}
			return s.withStore(writes, func(db *minikudu.DB) error { return s.watchStore(c.Context(), db, &f) })
		}}
	c.Flags().StringVar(&interval, "interval", "1s", "time between two lines")
	c.Flags().IntVar(&f.lines, "count", 0, "end after so many lines (default: never)")
	c.Flags().BoolVar(&f.settled, "until-settled", false, "end once an interval passes in which nothing happens")
	return c
}

// watchStore prints what the store does until ctx ends, which is no failure, or the flags
// say so.
func (s *session) watchStore(ctx context.Context, db *minikudu.DB, f *watchFlags) error {
	tick := time.NewTicker(f.interval)
	defer tick.Stop()
	begin, last := time.Now(), watched{}
	for line := 1; ; line++ {
		before := last
		err := s.printWatched(s.out, observe(db, begin, &last))
		if err == nil {
			err = s.out.Flush()
		}
		if err != nil || line == f.lines || f.settled && line > 1 && !last.worked(&before) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// worked reports whether something was written, flushed or merged since another line.
func (w *watched) worked(before *watched) bool {
	return w.Rows != before.Rows || w.Flushes != before.Flushes || w.Merges != before.Merges || w.History != before.History || w.RowSetSize != before.RowSetSize
}
