package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/cli/sqltext"
	"github.com/minikudu/minikudu/schema"
)

// insertCommand returns insert or upsert.
func (s *session) insertCommand(name string, op minikudu.Op) *cobra.Command {
	f := importFlags{op: op, existing: true, summary: (*importer).printMutation}
	var file string
	short, absent := "Put a row, or the rows of a file, into a table", "Columns that are not named take their default or null."
	if op == minikudu.OpUpsert {
		short = "Put a row, or the rows of a file, into a table, or set columns of those there"
		absent = "Where the key is there already the named columns are set, and the others stay."
	}
	c := &cobra.Command{
		Use:   name + " TABLE (COLUMN=VALUE... | --file FILE)",
		Short: short,
		Long: short + `.

` + absent + ` A value is text of the
column's type as it stands, or null; in single quotes anything is text. A name that holds
an equals sign is written in double quotes. Files are those of import; unlike import the
command makes no table.

Exit status 1 when rows were rejected.`,
		Example: fmt.Sprintf("  minikudu %[1]s cpu host=a ts=2020-01-02T03:04:05Z usage=0.5\n  minikudu %[1]s cpu --file more.parquet", name),
		Args:    args(1, -1, "the name of a table, and the columns of a row"),
		RunE: func(c *cobra.Command, args []string) error {
			if (file == "") == (len(args) == 1) {
				return usage("give either the columns of a row, as in a=1 b=null, or --file")
			}
			if file != "" {
				if err := checkBatchRows(f.batchRows); err != nil {
					return err
				}
				return s.importFile(c.Context(), args[0], file, &f)
			}
			return s.insertRow(c.Context(), args[0], op, args[1:])
		},
	}
	c.Flags().StringVar(&file, "file", "", "CSV, Parquet or Arrow file with the rows")
	registerBatchRows(c, &f.batchRows)
	return c
}

// insertRow writes one row given as assignments.
func (s *session) insertRow(ctx context.Context, name string, op minikudu.Op, assigned []string) error {
	list := make([]sqltext.Assignment, len(assigned))
	for i, text := range assigned {
		var err error
		if list[i], err = sqltext.ParseAssignment(text); err != nil {
			return usage("%s: %w", shorten(text), err)
		}
	}
	return s.withTable(writes, name, func(db *minikudu.DB, t *minikudu.Table) error {
		row, err := values(t.Schema(), list)
		if err != nil {
			return err
		}
		if _, given := row[schema.AutoIncrementName]; given && op == minikudu.OpInsert {
			return usage("the column %s is filled in by an insert; leave it out", schema.AutoIncrementName)
		}
		begin := time.Now()
		var b minikudu.WriteBatch
		b.Add(t, op, row)
		res, err := db.Commit(ctx, &b, nil)
		if err != nil && !errors.Is(err, minikudu.ErrAlreadyPresent) && !errors.Is(err, minikudu.ErrImmutable) {
			return rowError(err)
		}
		done := mutation{Seconds: time.Since(begin).Seconds()}
		done.add(res)
		if err := s.printMutation(&done); err != nil {
			return err
		}
		if err == nil {
			return nil
		}
		s.messageRow(rejectedRow{row: 1, key: keyText(t.Schema(), list), reason: reason(rowError(err))})
		return errPartial
	})
}

// rowError returns why the only row of a batch was rejected.
func rowError(err error) error {
	rejected := (*minikudu.RejectedError)(nil)
	if !errors.As(err, &rejected) {
		return err
	}
	err = rejected.Rows[0].Err
	if errors.Is(err, minikudu.ErrInvalidArgument) {
		return usage("%s", reason(err))
	}
	return err
}

// keyText returns the key among the values of a row.
func keyText(sch *schema.Schema, list []sqltext.Assignment) string {
	var cells []string
	for _, name := range sch.KeyNames() {
		for _, a := range list {
			if a.Column == name {
				cells = append(cells, shorten(fmt.Sprint(a.Value)))
			}
		}
	}
	return strings.Join(cells, ", ")
}
