package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
)

func (s *session) compactCommand() *cobra.Command {
	return &cobra.Command{Use: "compact TABLE", Short: "Merge a table's files and drop what is older than its history",
		Long: `Write the rows and changes in memory to files, merge files until no merge gains anything
and nothing remains that was deleted or replaced longer ago than the table's history is
kept, remove the files that were replaced, and trim the log. What a pin needs stays.`,
		Args: args(1, 1, "the name of a table"),
		RunE: func(c *cobra.Command, args []string) error {
			return s.withTable(writes, args[0], func(_ *minikudu.DB, t *minikudu.Table) error { return s.compact(c.Context(), t) })
		}}
}

func (s *session) compact(ctx context.Context, t *minikudu.Table) error {
	begin := time.Now()
	res, err := t.Compact(ctx)
	if err != nil {
		return err
	}
	sets, err := t.Layout(ctx)
	if err != nil {
		return err
	}
	out := struct {
		Compactions int     `json:"compactions"`
		Dropped     int64   `json:"dropped"` // deleted rows whose bytes are gone
		Rows        int64   `json:"rows"`
		RowSets     int     `json:"rowsets"`
		Bytes       int64   `json:"bytes"`
		Seconds     float64 `json:"seconds"`
	}{res.Compactions, res.RowsDropped, t.Rows(), len(sets), 0, time.Since(begin).Seconds()}
	for i := range sets {
		out.Bytes += sets[i].Bytes
	}
	if s.json {
		return s.printJSON(out)
	}
	_, err = fmt.Fprintf(s.out, "compactions  %d\ndropped      %d\nrows         %d\nrowsets      %d\nbytes        %d\nseconds      %.3f\n",
		out.Compactions, out.Dropped, out.Rows, out.RowSets, out.Bytes, out.Seconds)
	return err
}
