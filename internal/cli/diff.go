package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/cli/sqltext"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func (s *session) diffCommand() *cobra.Command {
	var q diffQuery
	c := &cobra.Command{
		Use:   "diff TABLE --from TIME [--to TIME]",
		Short: "Print the rows that changed between two times",
		Long: `Print every row that was inserted, updated or deleted by commits after one time, up to
another, once and in order of the primary key, as it is at the end. The first column,
change, is upsert, or delete for a row that is gone, which has its last values. A row that
came and went in between is not there. Filters are those of scan.

` + timesHelp + `
--from 0 is before the first commit.

--live-only and --deleted-only print one kind without the first column: what import
--mode upsert and import --mode delete take to bring a copy from one time to the other.`,
		Example: `  minikudu diff flights --from -10m
  minikudu diff flights --from 7356850502161793024 --to 7356850998041018368 --live-only --format csv > changed.csv
  minikudu diff flights --from 7356850502161793024 --to 7356850998041018368 --deleted-only --format csv > gone.csv`,
		Args: args(1, 1, "the name of a table"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := q.parse(c); err != nil {
				return err
			}
			return s.withTable(reads, args[0], func(_ *minikudu.DB, t *minikudu.Table) error { return s.diff(c.Context(), t, &q) })
		},
	}
	q.register(c)
	return c
}

// diffQuery is the flags of diff, as text and parsed.
type diffQuery struct {
	flags struct{ columns, where, from, to string }
	format
	reverse, liveOnly, deletedOnly bool
	limit                          int64 // -1: none

	columns  []string // nil: not given
	where    minikudu.Expr
	from, to minikudu.Timestamp // from 0: the beginning, to 0: now
}

func (q *diffQuery) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&q.flags.from, "from", "", "changes after this time, 0 for the first ones")
	f.StringVar(&q.flags.to, "to", "", "changes up to this time (default: now)")
	f.StringVar(&q.flags.columns, "columns", "", "columns to print, separated by commas (default: all)")
	f.StringVar(&q.flags.where, "where", "", "filter expression, of rows as they are at the end, or were last")
	f.BoolVar(&q.reverse, "reverse", false, "rows in descending order of the primary key")
	f.BoolVar(&q.liveOnly, "live-only", false, "print the rows that are not deleted, without the column change")
	f.BoolVar(&q.deletedOnly, "deleted-only", false, "print the deleted rows, without the column change")
	f.Int64Var(&q.limit, "limit", -1, "print no more rows than this (default: all)")
	q.format.register(c)
}

// parse parses the texts and refuses what contradicts itself.
func (q *diffQuery) parse(c *cobra.Command) error {
	given := c.Flags().Changed
	switch {
	case !given("from"):
		return usage("--from is missing: name the time after which changes count, as in --from -10m, or --from 0")
	case given("limit") && q.limit < 0:
		return usage("--limit %d: must not be negative", q.limit)
	case q.liveOnly && q.deletedOnly:
		return usage("--live-only and --deleted-only exclude each other: leave both out for all changes")
	}
	if err := q.format.check(); err != nil {
		return err
	}
	if err := parseGiven(c, []flagText{
		{"columns", func() (err error) { q.columns, err = sqltext.ParseNames(q.flags.columns); return }},
		{"where", func() (err error) { q.where, err = sqltext.ParseWhere(q.flags.where); return }},
		{"from", q.parseFrom},
		{"to", func() (err error) { q.to, err = parseMoment(q.flags.to); return }},
	}); err != nil {
		return err
	}
	if q.to > 0 && q.from > q.to {
		return usage("--from %s is after --to %s", q.flags.from, q.flags.to)
	}
	return nil
}

func (q *diffQuery) parseFrom() (err error) {
	if q.flags.from != "0" {
		q.from, err = parseMoment(q.flags.from)
	}
	return err
}

// query returns the part that the engine runs. Deleted rows it cannot count to a limit.
func (q *diffQuery) query(cols []schema.Column) minikudu.DiffQuery {
	out := minikudu.DiffQuery{From: q.from, To: q.to, Columns: columnNames(cols), Where: q.where, Reverse: q.reverse, LiveOnly: q.liveOnly}
	if !q.deletedOnly {
		out.Limit = max(q.limit, 0)
	}
	if q.limit == 0 {
		out.Limit = 1 // to find what is wrong with the query; nothing is printed
	}
	return out
}

// diff prints the changes.
func (s *session) diff(ctx context.Context, t *minikudu.Table, q *diffQuery) error {
	cols, err := resultColumns(t, q.columns)
	if err != nil {
		return err
	}
	w := s.changeWriter(q, cols)
	for b, err := range t.Diff(ctx, q.query(cols)) {
		if err != nil {
			return err
		}
		more, err := w.write(b)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return w.out.Flush()
}

// The values of the column change: the modes of import that make the change in a copy.
const (
	changeUpsert = "upsert"
	changeDelete = "delete"
)

// changeWriter writes the batches of a diff, no more than left rows unless that is -1.
type changeWriter struct {
	out         rowWriter
	marked      bool // with the column change
	deletedOnly bool
	left        int64
}

func (s *session) changeWriter(q *diffQuery, cols []schema.Column) *changeWriter {
	w := &changeWriter{marked: !q.liveOnly && !q.deletedOnly, deletedOnly: q.deletedOnly, left: q.limit}
	if w.marked {
		cols = slices.Insert(slices.Clone(cols), 0, changeColumn(cols))
	}
	w.out = s.writer(q.format, cols)
	return w
}

// changeColumn is the first column of a diff. No other has its name.
func changeColumn(cols []schema.Column) schema.Column {
	name := "change"
	for findColumn(cols, name) >= 0 {
		name = "_" + name
	}
	return schema.Column{Name: name, Type: schema.String}
}

// write writes the rows of a batch that are wanted and reports whether more are.
func (w *changeWriter) write(b *minikudu.DiffBatch) (more bool, err error) {
	vectors, n := batchVectors(b.Batch), b.Len()
	switch {
	case w.marked:
		var change *vector.Vector
		change, err = changes(b)
		vectors = slices.Insert(vectors, 0, change)
	case w.deletedOnly:
		vectors, n, err = deletedRows(b)
	}
	if err != nil {
		return false, err
	}
	if w.left >= 0 {
		n = int(min(int64(n), w.left))
		w.left -= int64(n)
	}
	return w.left != 0, w.out.Write(vectors, n)
}

// changes returns the cells of the column change.
func changes(b *minikudu.DiffBatch) (*vector.Vector, error) {
	out := vector.New(schema.KindBytes, b.Len())
	for row := range b.Len() {
		change := changeUpsert
		if b.Deleted(row) {
			change = changeDelete
		}
		if err := out.Append(schema.StringValue(change)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// deletedRows returns the columns of the deleted rows of a batch.
func deletedRows(b *minikudu.DiffBatch) (vectors []*vector.Vector, n int, err error) {
	var rows []int32
	for row := range b.Len() {
		if b.Deleted(row) {
			rows = append(rows, int32(row))
		}
	}
	vectors = make([]*vector.Vector, b.NumColumns())
	for i := range vectors {
		v := b.Column(i)
		vectors[i] = vector.New(v.Kind(), len(rows))
		if err := vectors[i].AppendRows(v, rows); err != nil {
			return nil, 0, err
		}
	}
	return vectors, len(rows), nil
}
