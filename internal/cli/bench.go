package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/cli/bench"
	"github.com/minikudu/minikudu/internal/cli/sqltext"
)

const (
	benchAll      = "all"
	benchReadSize = "readsize"
	maxThreads    = 1024
	maxBatchRows  = 1_000_000
	maxInputs     = 1 << 30 // bytes
)

// benchFlags are the flags of bench.
type benchFlags struct {
	readTime                 string
	op, workload, logLevel   string
	threads, batchRows       int
	rows                     int64
	useExisting, keepResults bool

	work     *bench.Workload
	eachSize time.Duration
}

func (s *session) benchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench --op OP",
		Short: "Measure how fast the store is, one operation at a time",
		Long:  benchHelp(),
		Example: `  minikudu --db /tmp/bench bench --op all --workload narrow --rows 1000000 --threads 2
  minikudu --db /tmp/grow --sync interval bench --op insert --rows 100000000 --use-existing --keep-results
  minikudu --db /tmp/bench --json bench --op readsize`,
		Args: args(0, 0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.parse(); err != nil {
				return err
			}
			if err := s.benchLog(f.logLevel); err != nil {
				return err
			}
			return s.bench(c.Context(), &f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.op, "op", "", strings.Join(benchOps(), ", "))
	flags.IntVar(&f.threads, "threads", 1, "goroutines that share the operations")
	flags.Int64Var(&f.rows, "rows", 100_000, "rows that are written, changed or looked up, and of a table that is filled")
	flags.IntVar(&f.batchRows, "batch-rows", 1000, "rows of a commit")
	flags.StringVar(&f.workload, "workload", "narrow", strings.Join(benchWorkloads(), ", "))
	flags.BoolVar(&f.useExisting, "use-existing", false, "go on with the store and the table that are there")
	flags.BoolVar(&f.keepResults, "keep-results", false, "leave the table that was made")
	flags.StringVar(&f.readTime, "read-time", "500ms", "how long readsize reads each size, from the file and by scans")
	flags.StringVar(&f.logLevel, "log-level", "off", "what the engine says on standard error: debug, info, warn, error or off")
	return c
}

func benchHelp() string {
	var b strings.Builder
	b.WriteString(`Measure operations on a table of its own, bench_WORKLOAD, in the directory --db.

  insert   new rows, --batch-rows a commit
  upsert   rows of which a random half is there
  update   one column of random rows
  delete   random rows
  get      random rows by their key, all columns
  scan     all rows and columns, every cell looked at, 10 times
  count    the rows that a filter on one column selects, 10 times
  flush    writes what is in memory to column files
  compact  merges files until no merge gains anything
  open     opens the store, which replays its log, 10 times; closing is not timed
  all      ` + strings.Join(bench.Ops, ", ") + `, in this order
  readsize reads of 4 KiB to 100 MiB at random places; see below

Workloads:

`)
	for _, w := range bench.Workloads() {
		fmt.Fprintf(&b, "  %-10s %s\n", w.Name, w.About)
	}
	b.WriteString(`
Inputs are made before the clock runs. They take up to a quarter of --memory beside it and
are made in rounds where there are more; meanwhile the clock stands and background work
waits. The threads' shares differ by at most one operation; flush, compact and open use
one thread. All operations but insert need rows: a table without any is first filled with
--rows of them, not timed, for compact in 8 files.

Operations are rows for insert, upsert, update, delete and get, and calls for the others.
average_ms, p50_ms, p99_ms, p99_9_ms and max_ms are milliseconds for what the column per
names: a commit (the last of a thread has the rows that are left), a row looked up, a scan,
a count and so on; timed is how many there were.
rows_per_s counts rows written, read or gone through; rows are those that the table has
afterwards. While operations on rows run, their rate is printed on standard error every
second.

readsize reads each size for --read-time, three times at least, on every thread; MB are
10^6 bytes. file_mb_per_s is a file of 128 MiB in --db, read through the engine's file
layer, which the operating system may hold in memory; scan_mb_per_s is scans over ranges
of keys of a table of rows of 4 KiB, not compressed, read through the page cache and
copied out; cache_hits is the share of their pages that were found there.

A store that has other tables is refused, and so is a directory that holds anything but
a store, before anything is written; a bench table of an earlier run is replaced. With
--use-existing the table that is there goes on with keys after those it has, and stays.
Otherwise what was made is removed at the end, unless --keep-results is given.`)
	return b.String()
}

func benchOps() []string { return append(slices.Clone(bench.Ops), benchAll, benchReadSize) }

func benchWorkloads() (names []string) {
	for _, w := range bench.Workloads() {
		names = append(names, w.Name)
	}
	return names
}

// parse refuses what cannot be run.
func (f *benchFlags) parse() error {
	switch {
	case f.op == "":
		return usage("--op is missing: name one of %s", strings.Join(benchOps(), ", "))
	case !slices.Contains(benchOps(), f.op):
		return usage("--op %q: expected one of %s", f.op, strings.Join(benchOps(), ", "))
	case f.threads < 1 || f.threads > maxThreads:
		return usage("--threads %d: must be from 1 to %d", f.threads, maxThreads)
	case f.rows < 1:
		return usage("--rows %d: must be at least 1", f.rows)
	case f.batchRows < 1 || f.batchRows > maxBatchRows:
		return usage("--batch-rows %d: must be from 1 to %d", f.batchRows, maxBatchRows)
	}
	var err error
	if f.eachSize, err = sqltext.ParseDuration(f.readTime); err != nil {
		return usage("--read-time %q: %w", f.readTime, err)
	}
	for _, w := range bench.Workloads() {
		if w.Name == f.workload {
			f.work = w
		}
	}
	if f.work == nil {
		return usage("--workload %q: expected one of %s", f.workload, strings.Join(benchWorkloads(), ", "))
	}
	return nil
}

// table is the name of the table that is made.
func (f *benchFlags) table() string {
	if f.op == benchReadSize {
		return bench.ReadSizeTable
	}
	return f.work.TableName()
}

// benchLog lets the engine log to standard error.
func (s *session) benchLog(name string) error {
	if name == "off" {
		return nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil || !slices.Contains([]string{"debug", "info", "warn", "error"}, name) {
		return usage("--log-level %q: expected debug, info, warn, error or off", name)
	}
	o := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(s.app.Stderr, o)
	if s.json {
		h = slog.NewJSONHandler(s.app.Stderr, o)
	}
	s.logger = slog.New(h)
	return nil
}

// benchPlace says what was in the directory before.
type benchPlace uint8

const (
	placeMissing benchPlace = iota // no directory
	placeEmpty                     // a directory without anything
	placeStore                     // a store, or what opening will refuse
)

// benchPlace looks at the directory and refuses what is not for bench to change.
func (s *session) benchPlace(f *benchFlags) (benchPlace, error) {
	entries, err := os.ReadDir(s.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return placeMissing, nil
	case err != nil:
		return 0, failed(err)
	case len(entries) == 0:
		return placeEmpty, nil
	case f.useExisting:
		return placeStore, nil
	}
	return placeStore, s.withStore(reads, func(db *minikudu.DB) error {
		own := []string{bench.ReadSizeTable}
		for _, w := range bench.Workloads() {
			own = append(own, w.TableName())
		}
		for _, t := range db.Tables() {
			if !slices.Contains(own, t.Name()) {
				return failed(fmt.Errorf("the store in %s has other tables, such as %q; name another directory with --db, or add --use-existing", s.dir, t.Name()))
			}
		}
		return nil
	})
}

// bench runs the operations and removes what it made.
func (s *session) bench(ctx context.Context, f *benchFlags) (err error) {
	if s.readOnly {
		return fmt.Errorf("the command writes to the store: %w", minikudu.ErrReadOnly)
	}
	o, err := s.options(creates)
	if err != nil {
		return err
	}
	s.beside = min(o.MemoryBudget/4, maxInputs)
	place, err := s.benchPlace(f)
	if err != nil {
		return err
	}
	a := writes
	if place != placeStore {
		a = creates
	}
	db, err := s.open(a)
	if err != nil {
		return err
	}
	made, err := makeBenchTable(ctx, db, f)
	if err == nil {
		db, err = s.benchRun(ctx, db, f)
	}
	if made && !f.keepResults && db != nil && place == placeStore {
		err = errors.Join(err, dropBenchTable(context.WithoutCancel(ctx), db, f))
	}
	if db != nil {
		err = errors.Join(err, failed(db.Close()))
	}
	if !f.keepResults && place != placeStore {
		err = errors.Join(err, failed(removeStore(s.dir, place)))
	}
	return err
}

// makeBenchTable makes the table, unless it is there and to be used.
func makeBenchTable(ctx context.Context, db *minikudu.DB, f *benchFlags) (made bool, err error) {
	if _, err := db.Table(f.table()); err == nil && f.useExisting {
		return false, nil
	}
	if err := dropBenchTable(ctx, db, f); err != nil {
		return false, err
	}
	if f.op == benchReadSize { // which makes its own
		return true, nil
	}
	_, err = db.CreateTable(ctx, f.table(), f.work.Spec)
	return err == nil, err
}

// dropBenchTable drops the table if it is there.
func dropBenchTable(ctx context.Context, db *minikudu.DB, f *benchFlags) error {
	if err := db.DropTable(ctx, f.table()); !errors.Is(err, minikudu.ErrNotFound) {
		return failed(err)
	}
	return nil
}

// removeStore removes a store that was made where there was nothing.
func removeStore(dir string, place benchPlace) error {
	if place == placeMissing {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// benchRun runs the operations and returns the store as it is open then, nil where it
// could not be opened again.
func (s *session) benchRun(ctx context.Context, db *minikudu.DB, f *benchFlags) (*minikudu.DB, error) {
	if f.op == benchReadSize {
		return db, s.benchReadSizes(ctx, db, f)
	}
	r, err := bench.New(bench.Config{
		Workload: f.work, Rows: f.rows, Threads: f.threads, BatchRows: f.batchRows, Memory: s.beside,
		Open:     func() (*minikudu.DB, error) { return s.open(writes) },
		Progress: s.printBenchProgress, Interval: time.Second,
	}, db)
	if err != nil {
		return db, failed(err)
	}
	ops := []string{f.op}
	if f.op == benchAll {
		ops = bench.Ops
	}
	results := newListing("op string, threads int64, operations int64, seconds double, operations_per_s double, rows_per_s double, per string, timed int64, " +
		"average_ms double, p50_ms double, p99_ms double, p99_9_ms double, max_ms double, rows int64")
	for _, op := range ops {
		var res *bench.Result
		if res, err = r.Run(ctx, op); err != nil {
			break
		}
		results.add(res.Op, res.Threads, res.Operations, res.Seconds, res.OpsPerSec, res.RowsPerSec, res.Per, res.Timed,
			res.Average, res.P50, res.P99, res.P999, res.Max, res.Rows)
		if err = s.printBench(res); err != nil {
			break
		}
	}
	return r.DB(), errors.Join(failed(err), s.printBenchTable(results))
}

// printBench prints a result at once under --json.
func (s *session) printBench(result any) error {
	if !s.json {
		return nil
	}
	return errors.Join(s.printJSON(result), s.out.Flush())
}

// printBenchTable prints the results so far as a table, unless they were printed.
func (s *session) printBenchTable(l *listing) error {
	if s.json || l.rows == 0 {
		return nil
	}
	return s.print(format{"table"}, l)
}

func (s *session) printBenchProgress(p bench.Progress) {
	if s.json {
		_ = json.NewEncoder(s.app.Stderr).Encode(map[string]bench.Progress{"progress": p})
		return
	}
	fmt.Fprintf(s.app.Stderr, "%s: %.0f s, %s operations, %s/s, %s rows\n", p.Op, p.Seconds, humanize.Comma(p.Operations), humanize.Comma(int64(p.OpsPerSec)), humanize.Comma(p.Rows))
}

func (s *session) benchReadSizes(ctx context.Context, db *minikudu.DB, f *benchFlags) error {
	results := newListing("op string, threads int64, bytes int64, file_reads int64, file_mb_per_s double, scan_reads int64, scan_mb_per_s double, cache_hits double")
	err := bench.ReadSizes(ctx, db, f.threads, f.eachSize, func(r *bench.ReadSize) error {
		results.add(r.Op, r.Threads, r.Bytes, r.FileReads, r.FileRate, r.ScanReads, r.ScanRate, r.CacheHits)
		return s.printBench(r)
	})
	return errors.Join(failed(err), s.printBenchTable(results))
}
