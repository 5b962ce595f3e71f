package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/cli/sqltext"
	"github.com/minikudu/minikudu/schema"
)

// allHistory is the value of --history that keeps everything.
const allHistory = "all"

func registerHistory(c *cobra.Command, text *string) {
	c.Flags().StringVar(text, "history", sqltext.FormatDuration(minikudu.DefaultHistory),
		"how long what was deleted or replaced can be read: 15m, 7d, 0 for not at all, or "+allHistory)
}

// parseHistory returns the value of --history as a TableSpec takes it.
func parseHistory(text string) (time.Duration, error) {
	if text == allHistory {
		return minikudu.AllHistory, nil
	}
	d, err := sqltext.ParseDuration(text)
	switch {
	case err != nil:
		return 0, usage("--history %q: %w", text, err)
	case d < 0:
		return 0, usage("--history %s: must not be negative", text)
	case d == 0:
		return minikudu.NoHistory, nil
	}
	return d, nil
}

// formatHistory returns how long a table's history is kept as --history takes it.
func formatHistory(t *minikudu.Table) string {
	if t.History() == minikudu.AllHistory {
		return allHistory
	}
	return sqltext.FormatDuration(t.History())
}

// sameHistory reports whether the table keeps the history that a TableSpec asks for.
func sameHistory(t *minikudu.Table, asked time.Duration) bool {
	if asked == minikudu.NoHistory {
		asked = 0
	}
	return t.History() == asked
}

const timesHelp = `A time is RFC 3339; 2006-01-02 or "2006-01-02 15:04:05", in UTC; -5m for five minutes ago;
or the timestamp that a command printed. Commits at or before it count, those of its whole
microsecond included.`

// parseMoment returns the timestamp of the last commit that can lie at or before a TIME
// argument.
func parseMoment(text string) (minikudu.Timestamp, error) {
	now := time.Now()
	t, err := sqltext.ParseTime(text, now)
	switch {
	case err != nil:
		return 0, err
	case t.Commit > 0:
		return minikudu.Timestamp(t.Commit), nil
	case t.At.After(now):
		return 0, fmt.Errorf("%s is in the future: it is %s", formatMicros(t.At), formatMicros(now))
	}
	// 0 would be now, and before 1970 there was no commit.
	return max(minikudu.TimestampAt(t.At.Add(time.Microsecond)), 2) - 1, nil
}

func formatMicros(t time.Time) string { return string(schema.AppendTimestamp(nil, t.UnixMicro())) }

func registerAsOf(c *cobra.Command, text *string) {
	c.Flags().StringVar(text, "as-of", "", "read the state at this time (default: now)")
}

// parseAsOf returns the value of --as-of, 0 when it was not given.
func parseAsOf(c *cobra.Command, text string) (minikudu.Timestamp, error) {
	if !c.Flags().Changed("as-of") {
		return 0, nil
	}
	at, err := parseMoment(text)
	if err != nil {
		return 0, usage("--as-of: %w", err)
	}
	return at, nil
}
