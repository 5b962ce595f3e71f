package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/cli/sqltext"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func (s *session) getCommand() *cobra.Command {
	var f format
	var columns, asOf string
	c := &cobra.Command{
		Use:   "get TABLE KEY...",
		Short: "Print the row with a key",
		Long: `Print the row with the given key: one value for each key column, in key order. Where a
value starts with a minus, write -- before the table. On a table with a non-unique key
the values of the named key columns print every row under them.

With --as-of the row is printed as it was at a time.
` + timesHelp + `

Exit status 1 when there is no such row.`,
		Example: `  minikudu get zipcodes 00501
  minikudu get -- temperatures -273
  minikudu get zipcodes 00501 --as-of -10m`,
		Args: args(2, -1, "the name of a table and one value for each key column"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			var names []string
			if c.Flags().Changed("columns") {
				var err error
				if names, err = sqltext.ParseNames(columns); err != nil {
					return usage("--columns: %w", err)
				}
			}
			at, err := parseAsOf(c, asOf)
			if err != nil {
				return err
			}
			return s.withTable(reads, args[0], func(_ *minikudu.DB, t *minikudu.Table) error {
				return s.get(c.Context(), t, f, at, names, args[1:])
			})
		},
	}
	c.Flags().StringVar(&columns, "columns", "", "columns to print, separated by commas (default: all)")
	registerAsOf(c, &asOf)
	f.register(c)
	return c
}

func (s *session) get(ctx context.Context, t *minikudu.Table, f format, at minikudu.Timestamp, names, key []string) error {
	cols, err := resultColumns(t, names)
	if err != nil {
		return err
	}
	values, err := parseKey(t.Schema(), key)
	if err != nil {
		return err
	}
	w := s.writer(f, cols)
	if len(values) == t.Schema().NumKey() {
		err = getOne(ctx, t, w, cols, at, values)
	} else {
		err = getAll(ctx, t, w, cols, at, values)
	}
	if errors.Is(err, minikudu.ErrNotFound) {
		return &exitError{exitPartial, fmt.Errorf("there is no row with the key %s in table %q", shorten(strings.Join(key, ", ")), t.Name())}
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

func shorten(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// parseKey parses the values of all key columns, or of all but the generated one.
func parseKey(sch *schema.Schema, key []string) ([]any, error) {
	if n := len(namedKey(sch)); len(key) != n && len(key) != sch.NumKey() {
		return nil, usage("%d values given, the key has %d columns: %s", len(key), n, sqltext.FormatNames(namedKey(sch)))
	}
	values := make([]any, len(key))
	for i, text := range key {
		v, err := sch.Column(i).Parse(text)
		if err != nil {
			return nil, usage("%w", err)
		}
		values[i] = v
	}
	return values, nil
}

func getOne(ctx context.Context, t *minikudu.Table, w rowWriter, cols []schema.Column, at minikudu.Timestamp, key []any) error {
	row, err := getRow(ctx, t, at, key)
	if err != nil {
		return err
	}
	vectors := make([]*vector.Vector, len(cols))
	for i := range cols {
		vectors[i] = vector.New(cols[i].Kind(), 1)
		if err := vectors[i].Append(row.Cell(t.Schema().Find(cols[i].Name))); err != nil {
			return err
		}
	}
	return w.Write(vectors, 1)
}

func getRow(ctx context.Context, t *minikudu.Table, at minikudu.Timestamp, key []any) (*minikudu.Row, error) {
	if at == 0 {
		return t.Get(ctx, key...)
	}
	return t.GetAsOf(ctx, at, key...)
}

// getAll prints every row under the named key columns.
func getAll(ctx context.Context, t *minikudu.Table, w rowWriter, cols []schema.Column, at minikudu.Timestamp, key []any) error {
	var parts []minikudu.Expr
	for i, v := range key {
		parts = append(parts, predicate.Eq(t.Schema().Column(i).Name, v))
	}
	rows := 0
	q := minikudu.Query{Columns: columnNames(cols), Where: predicate.And(parts...), Order: minikudu.KeyOrder, AsOf: at}
	err := eachBatch(ctx, t, q, func(b *minikudu.Batch) error {
		rows += b.Len()
		return w.Write(batchVectors(b), b.Len())
	})
	if err == nil && rows == 0 {
		return minikudu.ErrNotFound
	}
	return err
}
