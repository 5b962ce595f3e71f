package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/cli/sqltext"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func (s *session) scanCommand() *cobra.Command {
	var q scanQuery
	c := &cobra.Command{
		Use:   "scan TABLE",
		Short: "Print rows, or aggregates over rows",
		Long: `Print the rows of a table, or aggregates over them.

A filter compares columns with literals: = != <> < <= > >=, IN (…), BETWEEN … AND …,
LIKE '…', IS [NOT] NULL, AND, OR, NOT and parentheses, as in SQL. Text is written in
single quotes; a column name that is not letters, digits and underscores in double
quotes. Aggregates are count(*), count, sum, min, max and avg of a column.

With --as-of the table is read as it was at a time within its history.
` + timesHelp,
		Example: `  minikudu scan flights --where "origin = 'SEA' and delay > 60" --columns date,delay --limit 10
  minikudu scan flights --agg "count(*), avg(delay)" --group-by origin --order-by 'avg(delay) desc' --limit 3
  minikudu scan flights --where "distance > 1000" --count --explain
  minikudu scan flights --as-of "2026-01-02 15:04:05" --count`,
		Args: args(1, 1, "the name of a table"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := q.parse(c); err != nil {
				return err
			}
			return s.withTable(reads, args[0], func(_ *minikudu.DB, t *minikudu.Table) error { return s.scan(c.Context(), t, &q) })
		},
	}
	q.register(c)
	return c
}

// scanQuery is the flags of scan, as text and parsed.
type scanQuery struct {
	flags struct{ columns, where, aggs, groupBy, orderBy, asOf string }
	format
	keyOrder, reverse, count, explain bool
	limit                             int64 // -1: none

	columns, groupBy []string // nil: not given
	where            minikudu.Expr
	aggs             []sqltext.Aggregate
	orderBy          []sqltext.Order
	asOf             minikudu.Timestamp // 0: now
	explained        minikudu.Explain
}

func (q *scanQuery) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&q.flags.columns, "columns", "", "columns to print, separated by commas (default: all)")
	f.StringVar(&q.flags.where, "where", "", "filter expression")
	f.StringVar(&q.flags.aggs, "agg", "", `aggregates, as in "count(*), sum(delay)"`)
	f.StringVar(&q.flags.groupBy, "group-by", "", "columns to group by, separated by commas")
	f.StringVar(&q.flags.orderBy, "order-by", "", "columns to sort the result by, as in 'a desc, count(*)'; nulls come last")
	f.BoolVar(&q.keyOrder, "key-order", false, "rows in ascending order of the primary key")
	f.BoolVar(&q.reverse, "reverse", false, "rows in descending order of the primary key")
	f.Int64Var(&q.limit, "limit", -1, "print no more rows than this (default: all)")
	registerAsOf(c, &q.flags.asOf)
	f.BoolVar(&q.count, "count", false, "print the number of rows instead of the rows")
	f.BoolVar(&q.explain, "explain", false, "run the query and print what it read and skipped, instead of its result")
	q.format.register(c)
}

// parse parses the texts and refuses what contradicts itself.
func (q *scanQuery) parse(c *cobra.Command) error {
	given := c.Flags().Changed
	switch {
	case given("limit") && q.limit < 0:
		return usage("--limit %d: must not be negative", q.limit)
	case q.keyOrder && q.reverse:
		return usage("--key-order and --reverse exclude each other: --reverse is descending key order")
	case given("order-by") && (q.keyOrder || q.reverse):
		return usage("--order-by excludes --key-order and --reverse")
	case q.count && given("agg"):
		return usage("--count excludes --agg: add count(*) to the aggregates")
	case given("columns") && (given("agg") || given("group-by")):
		return usage("--columns excludes --agg and --group-by, whose result has the group-by columns and the aggregates")
	case (given("agg") || given("group-by")) && (q.keyOrder || q.reverse):
		return usage("aggregates have no key order; use --order-by")
	}
	if err := q.format.check(); err != nil {
		return err
	}
	if err := parseGiven(c, []flagText{
		{"columns", func() (err error) { q.columns, err = sqltext.ParseNames(q.flags.columns); return }},
		{"where", func() (err error) { q.where, err = sqltext.ParseWhere(q.flags.where); return }},
		{"agg", func() (err error) { q.aggs, err = sqltext.ParseAggregates(q.flags.aggs); return }},
		{"group-by", func() (err error) { q.groupBy, err = sqltext.ParseNames(q.flags.groupBy); return }},
		{"order-by", func() (err error) { q.orderBy, err = sqltext.ParseOrderBy(q.flags.orderBy); return }},
		{"as-of", func() (err error) { q.asOf, err = parseMoment(q.flags.asOf); return }},
	}); err != nil {
		return err
	}
	if q.count && q.groupBy != nil {
		q.aggs, q.count = []sqltext.Aggregate{{Func: "count"}}, false
	}
	return nil
}

// flagText is a flag whose text is parsed.
type flagText struct {
	flag  string
	parse func() error
}

// parseGiven parses the texts of the flags that were given.
func parseGiven(c *cobra.Command, list []flagText) error {
	for _, f := range list {
		if c.Flags().Changed(f.flag) {
			if err := f.parse(); err != nil {
				return usage("--%s: %w", f.flag, err)
			}
		}
	}
	return nil
}

// query returns the part that the engine runs.
func (q *scanQuery) query() minikudu.Query {
	out := minikudu.Query{Where: q.where, AsOf: q.asOf}
	switch {
	case q.keyOrder:
		out.Order = minikudu.KeyOrder
	case q.reverse:
		out.Order = minikudu.KeyReverse
	}
	if q.explain {
		out.Explain = &q.explained
	}
	return out
}

// scan runs the query and prints its result.
func (s *session) scan(ctx context.Context, t *minikudu.Table, q *scanQuery) error {
	var err error
	switch {
	case q.count:
		err = s.scanCount(ctx, t, q)
	case q.aggs != nil || q.groupBy != nil:
		err = s.scanGroups(ctx, t, q)
	case q.orderBy != nil:
		err = s.scanSorted(ctx, t, q)
	default:
		err = s.scanRows(ctx, t, q)
	}
	if err == nil && q.explain {
		return s.printExplain(t, &q.explained)
	}
	return err
}

// result returns the writer of the query's result: nothing is printed beside an
// explanation.
func (s *session) result(q *scanQuery, cols []schema.Column) rowWriter {
	if q.explain {
		return discard{}
	}
	return s.writer(q.format, cols)
}

type discard struct{}

func (discard) Write([]*vector.Vector, int) error { return nil }
func (discard) Flush() error                      { return nil }

// scanCount prints the number of rows that the scan would print.
func (s *session) scanCount(ctx context.Context, t *minikudu.Table, q *scanQuery) error {
	if _, err := resultColumns(t, q.columns); err != nil {
		return err
	}
	b, err := t.Aggregate(ctx, q.query(), nil, minikudu.Count())
	if err != nil || q.explain {
		return err
	}
	n := b.Column(0).Int64s()[0]
	if q.limit >= 0 {
		n = min(n, q.limit)
	}
	if !s.json && q.format.name == "table" {
		_, err := fmt.Fprintln(s.out, n)
		return err
	}
	l := newListing(`"count(*)" int64`)
	l.add(n)
	return s.print(q.format, l)
}

// scanRows prints rows as they come.
func (s *session) scanRows(ctx context.Context, t *minikudu.Table, q *scanQuery) error {
	cols, err := resultColumns(t, q.columns)
	if err != nil {
		return err
	}
	w := s.result(q, cols)
	query := q.query()
	query.Columns, query.Limit = columnNames(cols), max(q.limit, 0)
	write := func(b *minikudu.Batch) error { return w.Write(batchVectors(b), b.Len()) }
	if q.limit == 0 { // a wrong filter or time is an error all the same
		query.Limit, write = 1, func(*minikudu.Batch) error { return nil }
	}
	if err := eachBatch(ctx, t, query, write); err != nil {
		return err
	}
	return w.Flush()
}

// eachBatch calls fn for every batch of a scan.
func eachBatch(ctx context.Context, t *minikudu.Table, q minikudu.Query, fn func(*minikudu.Batch) error) error {
	for b, err := range t.Scan(ctx, q) {
		if err == nil {
			err = fn(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resultColumns returns the named columns, nil meaning all but the generated one.
func resultColumns(t *minikudu.Table, names []string) ([]schema.Column, error) {
	sch := t.Schema()
	var cols []schema.Column
	if names == nil {
		for i := range sch.Len() {
			if i != sch.AutoIncrement() {
				cols = append(cols, *sch.Column(i))
			}
		}
		return cols, nil
	}
	for _, name := range names {
		i := sch.Find(name)
		if i < 0 {
			return nil, noColumn(name, sch.Names())
		}
		cols = append(cols, *sch.Column(i))
	}
	return cols, nil
}

// noColumn says which columns there are.
func noColumn(name string, have []string) error {
	list := sqltext.FormatNames(have[:min(len(have), 20)])
	if len(have) > 20 {
		list += ",…"
	}
	return usage("there is no column %q; there are %s", name, list)
}

func columnNames(cols []schema.Column) []string {
	names := make([]string, len(cols))
	for i := range cols {
		names[i] = cols[i].Name
	}
	return names
}

func batchVectors(b *minikudu.Batch) []*vector.Vector {
	out := make([]*vector.Vector, b.NumColumns())
	for i := range out {
		out[i] = b.Column(i)
	}
	return out
}

// scanGroups prints aggregates, in the order of the group-by columns unless another
// is asked for.
func (s *session) scanGroups(ctx context.Context, t *minikudu.Table, q *scanQuery) error {
	aggs := make([]minikudu.Aggregate, len(q.aggs))
	for i, a := range q.aggs {
		aggs[i] = engineAggregate(a)
	}
	b, err := t.Aggregate(ctx, q.query(), q.groupBy, aggs...)
	if err != nil {
		return err
	}
	cols := append([]schema.Column(nil), b.Schema()...)
	for i, a := range q.aggs {
		cols[len(q.groupBy)+i].Name = a.String()
	}
	keys, err := sortKeys(cols, q.orderBy)
	if err != nil {
		return err
	}
	for i := range q.groupBy { // ties are printed in a fixed order
		keys = append(keys, sortKey{column: i})
	}
	w := s.result(q, cols)
	sorted := newSorter(cols, keys, q.limit)
	if err := sorted.add(batchVectors(b), b.Len()); err != nil {
		return err
	}
	return sorted.writeTo(w, len(cols))
}

func engineAggregate(a sqltext.Aggregate) minikudu.Aggregate {
	switch {
	case a.Column == "":
		return minikudu.Count()
	case a.Func == "count":
		return minikudu.CountOf(a.Column)
	case a.Func == "sum":
		return minikudu.Sum(a.Column)
	case a.Func == "min":
		return minikudu.Min(a.Column)
	case a.Func == "max":
		return minikudu.Max(a.Column)
	}
	return minikudu.Avg(a.Column)
}

// scanSorted prints rows sorted by columns, which need not be among those printed.
func (s *session) scanSorted(ctx context.Context, t *minikudu.Table, q *scanQuery) error {
	cols, err := resultColumns(t, q.columns)
	if err != nil {
		return err
	}
	w, shown := s.result(q, cols), len(cols)
	for _, o := range q.orderBy {
		if i := t.Schema().Find(o.Column); i >= 0 && findColumn(cols, o.Column) < 0 {
			cols = append(cols, *t.Schema().Column(i))
		}
	}
	keys, err := sortKeys(cols, q.orderBy)
	if err != nil {
		return err
	}
	opts, err := s.options(reads)
	if err != nil {
		return err
	}
	sorted := newSorter(cols, keys, q.limit)
	sorted.budget = opts.MemoryBudget
	query := q.query()
	query.Columns = columnNames(cols)
	if err := eachBatch(ctx, t, query, func(b *minikudu.Batch) error { return sorted.add(batchVectors(b), b.Len()) }); err != nil {
		return err
	}
	return sorted.writeTo(w, shown)
}
