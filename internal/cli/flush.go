package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
)

func (s *session) flushCommand() *cobra.Command {
	return &cobra.Command{Use: "flush TABLE", Short: "Write a table's rows in memory to column files",
		Long: "Write the rows that only the log holds to column files, and remove the part of the log that kept them.",
		Args: args(1, 1, "the name of a table"),
		RunE: func(c *cobra.Command, args []string) error {
			return s.withTable(writes, args[0], func(db *minikudu.DB, t *minikudu.Table) error { return s.flush(c.Context(), db, t) })
		}}
}

func (s *session) flush(ctx context.Context, db *minikudu.DB, t *minikudu.Table) error {
	begin, before := time.Now(), db.Metrics()
	if err := t.Flush(ctx); err != nil {
		return err
	}
	m := db.Metrics()
	out := struct {
		Rows    int64   `json:"rows"`
		RowSets int64   `json:"rowsets"`
		Bytes   int64   `json:"bytes"`
		Seconds float64 `json:"seconds"`
	}{m.FlushedRows - before.FlushedRows, m.FlushedFiles - before.FlushedFiles, m.FlushedBytes - before.FlushedBytes, time.Since(begin).Seconds()}
	if s.json {
		return s.printJSON(out)
	}
	_, err := fmt.Fprintf(s.out, "rows     %d\nrowsets  %d\nbytes    %d\nseconds  %.3f\n", out.Rows, out.RowSets, out.Bytes, out.Seconds)
	return err
}
