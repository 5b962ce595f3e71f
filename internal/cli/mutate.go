package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/cli/sqltext"
	"github.com/minikudu/minikudu/schema"
)

// mutation is what commands that change rows print.
type mutation struct {
	Matched   int64              `json:"matched"` // rows that qualified, or were accepted
	Changed   int64              `json:"changed"`
	Seconds   float64            `json:"seconds"`
	Timestamp minikudu.Timestamp `json:"timestamp"` // of the last commit
}

// add counts the rows of a commit.
func (m *mutation) add(res *minikudu.Result) {
	changed := res.Inserted + res.Updated + res.Deleted
	m.Changed += changed
	m.Matched += changed + res.Unchanged + res.Ignored
	m.Timestamp = res.Timestamp
}

func (s *session) printMutation(m *mutation) error {
	if s.json {
		return s.printJSON(m)
	}
	_, err := fmt.Fprintf(s.out, "matched    %d\nchanged    %d\nseconds    %.3f\ntimestamp  %d\n", m.Matched, m.Changed, m.Seconds, m.Timestamp)
	return err
}

// whereFlags are the flags of update and delete.
type whereFlags struct {
	set, filter string
	all         bool
	opts        minikudu.WhereOptions

	assignments []sqltext.Assignment
	where       minikudu.Expr
}

func (f *whereFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.filter, "where", "", "filter expression that selects the rows")
	registerBatchRows(c, &f.opts.BatchRows)
	c.Flags().BoolVar(&f.opts.Atomic, "atomic", false, "commit all rows together, or none")
}

func (f *whereFlags) parse(c *cobra.Command) (err error) {
	given := c.Flags().Changed
	switch {
	case f.opts.Atomic && given("batch-rows"):
		return usage("--atomic and --batch-rows exclude each other: --atomic commits all rows together")
	case given("where") == f.all:
		return usage("name the rows with either --where or --all")
	}
	if err := checkBatchRows(f.opts.BatchRows); err != nil {
		return err
	}
	if given("where") {
		if f.where, err = sqltext.ParseWhere(f.filter); err != nil {
			return usage("--where: %w", err)
		}
	}
	return nil
}

const batchesHelp = `The rows are chosen at one snapshot and committed in batches; one that others change
meanwhile is tested again. Readers can see some batches without the others, and an
interrupted command leaves those committed; --atomic commits all rows together, or none.`

func (s *session) updateCommand() *cobra.Command {
	var f whereFlags
	c := &cobra.Command{
		Use:   "update TABLE --set 'a=1, b=null' --where EXPR",
		Short: "Set columns of the rows that a filter selects",
		Long:  "Set columns of the rows that a filter selects; see scan for filters.\n\n" + batchesHelp,
		Example: `  minikudu update flights --set 'delay = null' --where "delay < -1000"
  minikudu update zipcodes --set "state = 'NY', verified = true" --where true`,
		Args: args(1, 1, "the name of a table"),
		RunE: func(c *cobra.Command, args []string) error {
			if f.set == "" {
				return usage("--set is missing: name the columns and values, as in --set 'a=1, b=null'")
			}
			if !c.Flags().Changed("where") {
				return usage("--where is missing: name the rows, with --where true all of them")
			}
			if err := f.parse(c); err != nil {
				return err
			}
			var err error
			if f.assignments, err = sqltext.ParseSet(f.set); err != nil {
				return usage("--set: %w", err)
			}
			return s.mutateWhere(args[0], func(db *minikudu.DB, t *minikudu.Table) (*minikudu.WhereResult, error) {
				return f.update(c.Context(), db, t)
			})
		},
	}
	c.Flags().StringVar(&f.set, "set", "", "columns and values, as in 'a=1, b=null'")
	f.register(c)
	return c
}

func (s *session) deleteCommand() *cobra.Command {
	var f whereFlags
	c := &cobra.Command{
		Use:   "delete TABLE (--where EXPR | --all)",
		Short: "Delete the rows that a filter selects",
		Long:  "Delete the rows that a filter selects, or all; see scan for filters.\n\n" + batchesHelp,
		Example: `  minikudu delete flights --where "date < '2001-02-01'"
  minikudu delete flights --all --atomic`,
		Args: args(1, 1, "the name of a table"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.parse(c); err != nil {
				return err
			}
			return s.mutateWhere(args[0], func(db *minikudu.DB, t *minikudu.Table) (*minikudu.WhereResult, error) {
				return db.DeleteWhere(c.Context(), t, f.where, &f.opts)
			})
		},
	}
	c.Flags().BoolVar(&f.all, "all", false, "delete every row")
	f.register(c)
	return c
}

// mutateWhere runs an update or delete by predicate and prints what it did.
func (s *session) mutateWhere(name string, run func(*minikudu.DB, *minikudu.Table) (*minikudu.WhereResult, error)) error {
	return s.withTable(writes, name, func(db *minikudu.DB, t *minikudu.Table) error {
		begin := time.Now()
		res, err := run(db, t)
		switch {
		case err != nil && res != nil && res.Changed > 0:
			return failed(fmt.Errorf("stopped after %d rows were changed, which stay so: %w", res.Changed, err))
		case err != nil:
			return err
		}
		return s.printMutation(&mutation{res.Matched, res.Changed, time.Since(begin).Seconds(), res.Timestamp})
	})
}

func (f *whereFlags) update(ctx context.Context, db *minikudu.DB, t *minikudu.Table) (*minikudu.WhereResult, error) {
	set, err := values(t.Schema(), f.assignments)
	if err != nil {
		return nil, err
	}
	return db.UpdateWhere(ctx, t, f.where, set, &f.opts)
}

// values converts what columns are set to; text is parsed as the column's type.
func values(sch *schema.Schema, list []sqltext.Assignment) (map[string]any, error) {
	set := make(map[string]any, len(list))
	for _, a := range list {
		i := sch.Find(a.Column)
		if i < 0 {
			return nil, noColumn(a.Column, sch.Names())
		}
		if _, twice := set[a.Column]; twice {
			return nil, usage("column %q is set twice", a.Column)
		}
		set[a.Column] = a.Value
		if text, ok := a.Value.(string); ok {
			x, err := sch.Column(i).Parse(text)
			if err != nil {
				return nil, usage("%w", err)
			}
			set[a.Column] = x
		}
	}
	return set, nil
}
