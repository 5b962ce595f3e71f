package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/cli/sqltext"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// importFlags are the flags of import.
type importFlags struct {
	key       string
	nonUnique bool
	history   string
	mode      string
	batchRows int
	watch     bool

	keyNames []string
	retained time.Duration // as TableSpec.History; 0: not given
	op       minikudu.Op
	existing bool // the table must be there
	summary  func(*importer) error
}

// importModes are the values of --mode.
var importModes = map[string]minikudu.Op{"insert": minikudu.OpInsert, "insert-ignore": minikudu.OpInsertIgnore,
	"upsert": minikudu.OpUpsert, "delete": minikudu.OpDelete}

func (s *session) importCommand() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import TABLE FILE",
		Short: "Put the rows of a CSV, Parquet or Arrow file into a table",
		Long: `Put the rows of a CSV, Parquet or Arrow IPC file into a table, which is made if there is
none. On a new table --key names the primary key columns and --history says how long
what is deleted or replaced can be read; the types are the file's, in CSV those that every
value has. On an existing table values are read as its types.

A row that does not fit, or whose key is there already, is left out and does not stop
the others; the first ten are named on standard error. Exit status 1 if there were any.

With --mode upsert a row whose key is there sets the columns that the file has. With
--mode delete the rows with the file's keys are deleted, and its other columns are not
read. A table with a non-unique key then needs a column auto_incrementing_id in the file.`,
		Example: `  minikudu import flights flights.parquet --key date,origin,destination --non-unique
  minikudu import zipcodes zipcodes.csv --key zip_code
  minikudu import zipcodes zipcodes.csv --mode insert-ignore
  minikudu import zipcodes corrections.csv --mode upsert`,
		Args: args(2, 2, "the name of a table and a file"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.parse(c); err != nil {
				return err
			}
			return s.importFile(c.Context(), args[0], args[1], &f)
		},
	}
	c.Flags().StringVar(&f.key, "key", "", "names of the primary key columns, separated by commas")
	c.Flags().BoolVar(&f.nonUnique, "non-unique", false, "let rows share a key: adds the key column "+schema.AutoIncrementName)
	registerHistory(c, &f.history)
	c.Flags().StringVar(&f.mode, "mode", "insert", "insert rejects rows whose key is there already, insert-ignore skips them, upsert, delete")
	registerBatchRows(c, &f.batchRows)
	c.Flags().BoolVar(&f.watch, "watch", false, "print rate, memory and files every second to standard error")
	return c
}

func registerBatchRows(c *cobra.Command, n *int) {
	c.Flags().IntVar(n, "batch-rows", 10000, "rows that become durable together")
}

func checkBatchRows(n int) error {
	if n < 1 {
		return usage("--batch-rows %d: must be at least 1", n)
	}
	return nil
}

func (f *importFlags) parse(c *cobra.Command) (err error) {
	var ok bool
	if f.op, ok = importModes[f.mode]; !ok {
		return usage("--mode %q: expected insert, insert-ignore, upsert or delete", f.mode)
	}
	if err := checkBatchRows(f.batchRows); err != nil {
		return err
	}
	f.existing = f.op == minikudu.OpDelete
	f.summary = (*importer).printSummary
	if f.op > minikudu.OpInsertIgnore {
		f.summary = (*importer).printMutation
	}
	if c.Flags().Changed("key") {
		if f.keyNames, err = sqltext.ParseNames(f.key); err != nil {
			return usage("--key: %w", err)
		}
	}
	if c.Flags().Changed("history") {
		f.retained, err = parseHistory(f.history)
	}
	return err
}

// importFile imports a file and prints the summary.
func (s *session) importFile(ctx context.Context, name, path string, f *importFlags) error {
	if name == "" {
		return usage("the name of a table must not be empty")
	}
	src, err := openSource(path)
	if err != nil {
		return err
	}
	defer func() { _ = src.close() }()
	db, t, err := s.openTarget(ctx, name, src, f)
	if err != nil {
		return err
	}
	im := &importer{session: s, db: db, table: t, src: src, op: f.op, batchRows: f.batchRows}
	im.columns = boundColumns(src, t, f.op)
	if f.watch {
		im.stopWatch = s.watch(db)
	}
	err = im.run(ctx)
	if cerr := db.Close(); err == nil && cerr != nil {
		err = failed(fmt.Errorf("closing the store: %w", cerr))
	}
	if err != nil {
		return fmt.Errorf("the import stopped after %d rows, of which %d were %s and stay: %w", im.sum.Rows, im.done.Changed, im.verb(), err)
	}
	if err := f.summary(im); err != nil {
		return err
	}
	if im.sum.Rejected > 0 {
		return errPartial
	}
	return nil
}

// openTarget opens the table, or makes it. Nothing is made unless the file and the
// flags are found good first.
func (s *session) openTarget(ctx context.Context, name string, src source, f *importFlags) (*minikudu.DB, *minikudu.Table, error) {
	db, err := s.open(writes)
	var missing *missingStore
	if err != nil && !errors.As(err, &missing) {
		return nil, nil, err
	}
	if db != nil {
		t, err := db.Table(name)
		if err == nil {
			if err = f.match(t); err == nil {
				err = bindSource(src, t, f.op)
			}
			if err == nil {
				return db, t, nil
			}
		}
		if !errors.Is(err, minikudu.ErrNotFound) {
			return nil, nil, errors.Join(err, db.Close())
		}
	}
	if f.existing {
		return nil, nil, f.missingTable(db, name, err)
	}
	spec, err := f.spec(ctx, name, src)
	if err == nil && db == nil {
		db, err = s.open(creates)
	}
	var t *minikudu.Table
	if err == nil {
		t, err = db.CreateTable(ctx, name, spec)
	}
	if err == nil {
		err = bindSource(src, t, f.op)
	}
	if err != nil && db != nil {
		_ = db.Close()
	}
	return db, t, err
}

// missingTable says that the store or the table is not there and closes the store.
func (f *importFlags) missingTable(db *minikudu.DB, name string, err error) error {
	if db == nil {
		return err
	}
	_, err = table(db, name)
	return errors.Join(err, db.Close())
}

// match refuses flags that contradict an existing table.
func (f *importFlags) match(t *minikudu.Table) error {
	sch := t.Schema()
	if f.keyNames != nil && !slices.Equal(f.keyNames, namedKey(sch)) {
		return usage("--key %s: the table %q has the key %s; leave --key out", f.key, t.Name(), sqltext.FormatNames(namedKey(sch)))
	}
	if f.nonUnique && sch.AutoIncrement() < 0 {
		return usage("--non-unique: the table %q has a unique key; leave --non-unique out", t.Name())
	}
	if f.retained != 0 && !sameHistory(t, f.retained) {
		return usage("--history %s: the table %q keeps %s; leave --history out", f.history, t.Name(), formatHistory(t))
	}
	return nil
}

// spec describes a new table for the file.
func (f *importFlags) spec(ctx context.Context, name string, src source) (spec minikudu.TableSpec, err error) {
	if f.keyNames == nil {
		return spec, usage("there is no table %q yet: name the key columns of the new one, as in --key %s", name,
			sqltext.FormatNames(src.names()[:min(1, len(src.names()))]))
	}
	for _, k := range f.keyNames {
		if !slices.Contains(src.names(), k) {
			return spec, fmt.Errorf("--key: %w", noColumn(k, src.names()))
		}
	}
	spec = minikudu.TableSpec{Key: f.keyNames, NonUnique: f.nonUnique, History: f.retained}
	if spec.Columns, err = src.infer(ctx); err != nil {
		return spec, err
	}
	for i := range spec.Columns {
		if slices.Contains(f.keyNames, spec.Columns[i].Name) {
			spec.Columns[i].Nullable = false
		}
	}
	return spec, checkSpec(spec)
}

// bindSource reads the file's columns as the table's of the same names.
func bindSource(src source, t *minikudu.Table, op minikudu.Op) error {
	sch := t.Schema()
	have := src.names()
	for _, name := range have {
		i := sch.Find(name)
		if op != minikudu.OpDelete && (i < 0 || i == sch.AutoIncrement() && op <= minikudu.OpInsertIgnore) {
			return usage("the file has a column %q that the table %q lacks; it has %s", name, t.Name(), sqltext.FormatNames(sch.Names()))
		}
	}
	for _, name := range sch.KeyNames() {
		if op > minikudu.OpInsertIgnore && !slices.Contains(have, name) {
			return usage("the file has no column %q, which is in the key of the table %q; it has %s", name, t.Name(), sqltext.FormatNames(have))
		}
	}
	var cols []schema.Column
	for _, name := range boundColumns(src, t, op) {
		cols = append(cols, *sch.Column(sch.Find(name)))
	}
	return src.bind(cols, sch.KeyNames())
}

// boundColumns returns the file's columns that are read: of a delete the key.
func boundColumns(src source, t *minikudu.Table, op minikudu.Op) []string {
	if op == minikudu.OpDelete {
		return t.Schema().KeyNames()
	}
	return src.names()
}

// summary is what import prints.
type summary struct {
	Rows       int64   `json:"rows"`
	Inserted   int64   `json:"inserted"`
	Ignored    int64   `json:"ignored"`
	Rejected   int64   `json:"rejected"`
	Seconds    float64 `json:"seconds"`
	RowsPerSec float64 `json:"rows_per_s"`
}

func (im *importer) printSummary() error {
	sum := &im.sum
	if im.json {
		return im.printJSON(sum)
	}
	_, err := fmt.Fprintf(im.out, "rows       %d\ninserted   %d\nignored    %d\nrejected   %d\nseconds    %.3f\nrows_per_s %.0f\n",
		sum.Rows, sum.Inserted, sum.Ignored, sum.Rejected, sum.Seconds, sum.RowsPerSec)
	return err
}

// importer reads and converts the next batches while one is committed.
type importer struct {
	*session
	db        *minikudu.DB
	table     *minikudu.Table
	src       source
	columns   []string // of the source, as bound
	op        minikudu.Op
	batchRows int

	stopWatch func() // nil: nobody watches
	sum       summary
	done      mutation
	named     int // rejected rows that were named
}

// verb says what is done to rows.
func (im *importer) verb() string {
	switch im.op {
	case minikudu.OpUpsert:
		return "upserted"
	case minikudu.OpDelete:
		return "deleted"
	}
	return "inserted"
}

func (im *importer) printMutation() error { return im.session.printMutation(&im.done) }

// prepared is a batch on its way from the reader to the committer.
type prepared struct {
	batch    minikudu.WriteBatch
	rows     []int64          // number in the file of each row of the batch
	keyCols  []schema.Column  // the key, to name rejected rows
	keys     []*vector.Vector // likewise
	rejected []rejectedRow    // by the reader
	err      error            // the last
}

// maxPrepared is the number of batches that exist at a time.
const maxPrepared = 3

// run imports the rows of the source.
func (im *importer) run(ctx context.Context) error {
	begin := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	var bar *progress
	if im.stopWatch == nil {
		bar = im.progressBar(im.table.Name(), im.src.progress)
	}
	err := im.pipe(ctx)
	cancel()
	bar.stop()
	if im.stopWatch != nil {
		im.stopWatch()
	}
	if err == nil && im.sum.Rejected > int64(im.named) {
		im.messageRejected(fmt.Sprintf("%d more rows were rejected", im.sum.Rejected-int64(im.named)))
	}
	im.sum.Seconds = time.Since(begin).Seconds()
	im.sum.RowsPerSec = float64(im.sum.Rows) / max(im.sum.Seconds, 1e-9)
	im.done.Seconds = im.sum.Seconds
	return err
}

// pipe commits what a goroutine reads.
func (im *importer) pipe(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	free, ready := make(chan *prepared, maxPrepared), make(chan *prepared, maxPrepared)
	for range maxPrepared {
		free <- &prepared{}
	}
	go func() {
		defer close(ready)
		im.read(ctx, free, ready)
	}()
	defer func() {
		cancel()
		for range ready { // the reader has ended when it closes the channel
		}
	}()
	for p := range ready {
		if p.err != nil {
			return p.err
		}
		if err := im.commit(ctx, p); err != nil {
			return err
		}
		free <- p
	}
	return ctx.Err()
}

// read prepares batches until the source ends, fails or ctx ends.
func (im *importer) read(ctx context.Context, free, ready chan *prepared) {
	for {
		c, err := im.src.next(ctx, im.batchRows)
		if err != nil {
			ready <- &prepared{err: err}
			return
		}
		if c == nil {
			return
		}
		for rest := pieces(c, im.db.Options().MaxBatchBytes/2); len(rest) > 0; rest = rest[1:] {
			var p *prepared
			select {
			case p = <-free:
			case <-ctx.Done():
				return
			}
			if err := p.fill(im, c, rest[0]); err != nil {
				p.err = err
			}
			c.rejected = nil // they went with the first piece
			ready <- p
		}
	}
}

// span is rows [from, to) of a chunk.
type span struct{ from, to int }

// pieces cuts a chunk so that none has more than max bytes, unless it is a single row.
func pieces(c *chunk, max int64) []span {
	var out []span
	var cut func(s span)
	cut = func(s span) {
		if s.to-s.from > 1 && chunkBytes(c, s) > max {
			mid := (s.from + s.to) / 2
			cut(span{s.from, mid})
			cut(span{mid, s.to})
			return
		}
		out = append(out, s)
	}
	cut(span{0, len(c.rows)})
	return out
}

// chunkBytes returns about the bytes of some rows in the log.
func chunkBytes(c *chunk, s span) (n int64) {
	for _, v := range c.columns {
		switch {
		case v.Kind() != schema.KindBytes:
			n += int64(s.to-s.from) * int64(v.Kind().Width()+1)
		case v.Dict() == nil:
			n += int64(v.Offsets()[s.to]-v.Offsets()[s.from]) + 4*int64(s.to-s.from)
		default:
			for row := s.from; row < s.to; row++ {
				n += int64(len(v.BytesAt(row))) + 4
			}
		}
	}
	return n
}

// fill copies rows of a chunk into the batch.
func (p *prepared) fill(im *importer, c *chunk, s span) error {
	names, vectors := im.columns, c.columns
	if s.from > 0 || s.to < len(c.rows) {
		vectors = make([]*vector.Vector, len(c.columns))
		for i, v := range c.columns {
			vectors[i] = v.Slice(s.from, s.to)
		}
	}
	p.batch.Reset()
	p.rejected = append([]rejectedRow(nil), c.rejected...)
	p.rows = append(p.rows[:0], c.rows[s.from:s.to]...)
	if err := p.keepKeys(im.table.Schema(), names, vectors); err != nil {
		return err
	}
	return p.batch.AddColumns(im.table, im.op, names, vectors)
}

// keepKeys copies the key columns.
func (p *prepared) keepKeys(sch *schema.Schema, names []string, vectors []*vector.Vector) error {
	p.keyCols, p.keys = p.keyCols[:0], p.keys[:0]
	for _, name := range sch.KeyNames() {
		i := slices.Index(names, name)
		if i < 0 {
			continue
		}
		v := vector.New(vectors[i].Kind(), vectors[i].Len())
		if err := v.AppendRange(vectors[i], 0, vectors[i].Len()); err != nil {
			return err
		}
		p.keyCols, p.keys = append(p.keyCols, *sch.Column(sch.Find(name))), append(p.keys, v)
	}
	return nil
}

// key returns the key of a row of the batch as text.
func (p *prepared) key(row int) string {
	all := make([]int, len(p.keys))
	for i := range all {
		all[i] = i
	}
	return formatKey(p.keyCols, p.keys, all, row)
}

// commit commits a batch and counts its rows.
func (im *importer) commit(ctx context.Context, p *prepared) error {
	res, err := im.db.Commit(ctx, &p.batch, nil)
	var rejected *minikudu.RejectedError
	if err != nil && !errors.As(err, &rejected) {
		return failed(err)
	}
	im.sum.Rows += int64(len(p.rows) + len(p.rejected))
	if rejected != nil {
		for i := range rejected.Rows {
			r := &rejected.Rows[i]
			p.rejected = append(p.rejected, rejectedRow{row: p.rows[r.Row], at: r.Row, reason: reason(r.Err)})
		}
	}
	im.done.add(res)
	im.sum.Inserted += res.Inserted
	im.sum.Ignored += res.Ignored
	im.sum.Rejected += int64(len(p.rejected))
	im.nameRejected(p)
	return nil
}

// maxNamed is the number of rejected rows that are named.
const maxNamed = 10

// nameRejected names the first rejected rows on standard error.
func (im *importer) nameRejected(p *prepared) {
	if im.named == maxNamed {
		return
	}
	slices.SortFunc(p.rejected, func(a, b rejectedRow) int { return cmp.Compare(a.row, b.row) })
	for _, r := range p.rejected[:min(len(p.rejected), maxNamed-im.named)] {
		im.named++
		if r.at >= 0 {
			r.key = p.key(r.at)
		}
		im.messageRow(r)
	}
}

// messageRow names a rejected row on standard error.
func (s *session) messageRow(r rejectedRow) {
	if s.json {
		s.messageJSON(map[string]any{"rejected_row": r.row, "key": r.key, "reason": r.reason})
		return
	}
	s.message("rejected", fmt.Sprintf("row %d (key %s): %s", r.row, r.key, r.reason))
}

func (im *importer) messageRejected(text string) { im.message("rejected", text) }
