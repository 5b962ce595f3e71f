package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minikudu/minikudu/contrib/benchmarks/internal/show"
)

// result is what a run found at one size.
type result struct {
	run     *Run
	samples []*Sample
	loaded  *Loaded
	opened  []*Opened
	reads   *Reads
	tight   *Tight
}

func (r *result) rows() int64 { return r.loaded.Rows }

// results are the complete ones of a file, one for each size that a run and its
// continuations measured.
func results(lines []Line) (all []*result) {
	r := &result{}
	for _, l := range lines {
		switch {
		case l.Run != nil:
			r.run, r.loaded, r.opened, r.reads = l.Run, nil, nil, nil
		case l.Sample != nil:
			r.samples = append(r.samples, l.Sample)
		case l.Loaded != nil:
			r.loaded = l.Loaded
		case l.Opened != nil:
			r.opened = append(r.opened, l.Opened)
		case l.Reads != nil:
			r.reads = l.Reads
		case l.Tight != nil && r.loaded != nil && r.reads != nil:
			r.tight = l.Tight
			all = append(all, r)
			r = &result{samples: slices.Clone(r.samples)}
		}
	}
	return all
}

// tenth returns the rate of a tenth of the rows, the first being 0, from the samples that
// end in it, and 0 without any.
func (r *result) tenth(k int64) float64 {
	var rows int64
	var seconds float64
	for _, s := range r.samples {
		if (s.Rows-1)*10/r.rows() == k {
			rows, seconds = rows+s.New, seconds+s.Took
		}
	}
	if seconds == 0 {
		return 0
	}
	return float64(rows) / seconds
}

func (r *result) last() *Sample { return r.samples[len(r.samples)-1] }

// lastTenth returns the average of a value over the rows of the last tenth.
func (r *result) lastTenth(value func(*Sample) float64) float64 {
	var values, rows []float64
	for _, s := range r.samples {
		if s.Rows > r.rows()/10*9 {
			values, rows = append(values, value(s)), append(rows, float64(s.New))
		}
	}
	return mean(values, rows)
}

func (r *result) lastHeight() float64 {
	return r.lastTenth(func(s *Sample) float64 { return s.Height })
}

// lastCPU returns the µs of processor time for each row.
func (r *result) lastCPU() float64 {
	return r.lastTenth(func(s *Sample) float64 { return 1e6 * s.CPU / float64(s.New) })
}

func (r *result) peakRSS() (peak int64) {
	for _, s := range r.samples {
		peak = max(peak, s.PeakRSS)
	}
	return max(peak, r.loaded.PeakRSS, r.reads.PeakRSS)
}

func (r *result) longestStall() (s float64) {
	for _, x := range r.samples {
		s = max(s, x.LongestStall)
	}
	return s
}

// quantity is a line of the table that compares model and measurement.
type quantity struct {
	name     string
	model    func(*Model, float64) float64
	measured func(*result) float64
	format   func(float64) string
	bound    bool // the model is an upper limit
}

func quantities() []quantity {
	of := func(name string, model func(*Model, float64) float64, measured func(*result) float64) quantity {
		return quantity{name: name, model: model, measured: measured, format: show.Short}
	}
	amplification := of("write amplification, settled", (*Model).amplification, func(r *result) float64 { return r.loaded.Amplification })
	amplification.bound = true
	return []quantity{
		of("bytes/row, settled", (*Model).bytesPerRow, func(r *result) float64 { return float64(r.loaded.Bytes) / float64(r.rows()) }),
		of("bytes of rowset files", (*Model).bytes, func(r *result) float64 { return float64(r.loaded.Bytes) }),
		of("rowsets, settled", (*Model).rowSets, func(r *result) float64 { return float64(r.loaded.RowSets) }),
		of("height, last tenth of the load", (*Model).height, func(r *result) float64 { return r.lastHeight() }),
		of("height, settled", (*Model).probes, func(r *result) float64 { return r.reads.Height }),
		of("µs of processor time to commit a row, last tenth", (*Model).cpuMicros, func(r *result) float64 { return r.lastCPU() }),
		of("load, s", (*Model).loadSeconds, func(r *result) float64 { return r.last().Seconds }),
		of("rate of the last tenth / the second", (*Model).slowing, func(r *result) float64 { return r.tenth(9) / r.tenth(1) }),
		amplification,
		of("open for reading, ms", (*Model).openMillis, func(r *result) float64 {
			return median(r.opened, func(o *Opened) float64 { return o.Read })
		}),
		of("memory of rowsets that were read, bytes", (*Model).heap, func(r *result) float64 { return float64(r.reads.Heap) }),
		of("decoded pages of all rows, bytes", (*Model).decoded, func(r *result) float64 {
			if r.reads.Cached >= r.reads.Budget*9/10 {
				return 0 // there are more than the cache holds
			}
			return float64(r.reads.Cached)
		}),
		of("pages decoded for a read of any row", (*Model).misses, func(r *result) float64 { return r.reads.Uniform.Misses }),
		of("reads of any row/s", (*Model).getRate, func(r *result) float64 { return r.reads.Uniform.Rate }),
		of("pages asked for in vain, for an absent key", (*Model).falseReads, func(r *result) float64 { return r.reads.Absent.Pages }),
	}
}

// predicted are the sizes of the table, besides those that were measured.
var predicted = []int64{1e6, 1e7, 1e8, 1e9, 1e10}

// series is the results of a workload with one budget, and their model.
type series struct {
	work    *Workload
	memory  int64
	results []*result // by size
	model   *Model    // nil: no run of the size to be fitted
	fitted  *result
	why     error // there is none
}

func (s *series) at(rows int64) *result {
	for _, r := range s.results {
		if r.rows() == rows {
			return r
		}
	}
	return nil
}

// gather puts the results of files in order.
func gather(files []string, fitRows int64) (all []*series, err error) {
	for _, name := range files {
		lines, err := readLines(name)
		if err != nil {
			return nil, err
		}
		found := results(lines)
		if len(found) == 0 {
			return nil, fmt.Errorf("%s holds no complete run", name)
		}
		for _, r := range found {
			at := slices.IndexFunc(all, func(s *series) bool { return s.work.Name == r.run.Workload && s.memory == r.run.Memory })
			if at < 0 {
				w, err := workloadNamed(r.run.Workload)
				if err != nil {
					return nil, err
				}
				at, all = len(all), append(all, &series{work: w, memory: r.run.Memory})
			}
			all[at].results = append(all[at].results, r)
		}
	}
	for _, s := range all {
		slices.SortStableFunc(s.results, func(a, b *result) int { return int(min(1, max(-1, a.rows()-b.rows()))) })
		s.why = fmt.Errorf("there is no run of %s rows", show.Trim(show.Short(float64(fitRows))))
		if s.fitted = s.at(fitRows); s.fitted != nil {
			s.model, s.why = fit(s.fitted, s.work)
		}
	}
	return all, nil
}

const resultsFile = "scale-results.md"

// runReport is the program's second form.
func runReport(args []string) error {
	f := flag.NewFlagSet("growth report", flag.ContinueOnError)
	out := f.String("out", "", "directory of tables and charts; required")
	fitRows := f.Int64("fit", 10_000_000, "size of the run that the model's constants come from")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *out == "" || f.NArg() == 0 {
		return errors.New("report: -out and files of results are required")
	}
	all, err := gather(f.Args(), *fitRows)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o777); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(*out, resultsFile))
	if err != nil {
		return err
	}
	err = writeReport(file, *out, all, *fitRows, f.Args())
	return errors.Join(err, file.Close())
}

func writeReport(w io.Writer, dir string, all []*series, fitRows int64, files []string) error {
	var names []string
	for _, name := range files {
		names = append(names, filepath.Base(name))
	}
	fmt.Fprintf(w, "# Growth: results\n\nMade by `go run ./growth report -fit %d -out … %s` in contrib/benchmarks; see [how](scale.md).\n", fitRows, strings.Join(names, " "))
	for _, s := range all {
		fmt.Fprintf(w, "\n## %s, %s MiB\n\n%s.\n", s.work.Name, show.Trim(show.Digits(float64(s.memory)/(1<<20))), s.work.About)
		s.writeRuns(w)
		s.writeGoals(w)
		s.writeLoad(w)
		s.writeReads(w)
		s.writeModel(w)
		if err := s.writeCharts(w, dir); err != nil {
			return err
		}
	}
	return nil
}

func rowsText(n int64) string { return show.Trim(show.Short(float64(n))) }

func (s *series) writeRuns(w io.Writer) {
	fmt.Fprint(w, "\n| rows | command | date, machine |\n| ---: | --- | --- |\n")
	for _, r := range s.results {
		fmt.Fprintf(w, "| %s | `%s` | %s, %s |\n", rowsText(r.rows()), r.run.Command, r.run.Date, strings.TrimPrefix(r.run.Machine, "Machine: "))
	}
}

// goal is what is wanted of a run.
type goal struct {
	text             string
	measured, target float64
	most             bool // the target is an upper limit
}

func (g *goal) met() bool {
	if g.most {
		return g.measured <= g.target
	}
	return g.measured >= g.target
}

// goals are those of a result. Tenths of less than a million rows say nothing: they are
// within what memory holds.
func (s *series) goals(r *result) (goals []goal) {
	if r.rows() >= 1e7 {
		goals = append(goals, goal{"rate of the last tenth / the second", r.tenth(9) / r.tenth(1), 0.6, false})
	}
	limit := 1.25*float64(s.memory)/1e6 + 64
	goals = append(goals, goal{"peak resident memory, MB", float64(r.peakRSS()) / 1e6, limit, true},
		goal{"longest stall, s", r.longestStall(), 1, true},
		goal{"height, settled", r.loaded.Height, 3, true},
		goal{"write amplification, settled", r.loaded.Amplification, 8, true})
	if s.fitted != nil && r.rows() > s.fitted.rows() {
		goals = append(goals, goal{fmt.Sprintf("reads of any row / those of %s rows", rowsText(s.fitted.rows())),
			r.reads.Uniform.Rate / s.fitted.reads.Uniform.Rate, 0.5, false},
			goal{fmt.Sprintf("reads of few rows / those of %s rows", rowsText(s.fitted.rows())), r.reads.Hot.Rate / s.fitted.reads.Hot.Rate, 0.5, false})
	}
	return goals
}

func (s *series) writeGoals(w io.Writer) {
	fmt.Fprint(w, "\n| rows | goal | target | measured | met |\n| ---: | --- | ---: | ---: | --- |\n")
	for _, r := range s.results {
		goals := s.goals(r)
		for i := range goals {
			g := &goals[i]
			sign, verdict := "at least ", "yes"
			if g.most {
				sign = "at most "
			}
			if !g.met() {
				verdict = "**no**"
			}
			fmt.Fprintf(w, "| %s | %s | %s%s | %s | %s |\n", rowsText(r.rows()), g.text, sign, show.Digits(g.target), show.Digits(g.measured), verdict)
		}
	}
}

func (s *series) writeLoad(w io.Writer) {
	fmt.Fprint(w, "\n| rows | load, s | rows/s | second tenth, rows/s | last tenth, rows/s | slowest commit, ms | stalls | settling, s | bytes/row on disk | amplification, end of load |\n"+
		"| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range s.results {
		last, slowest, stalls := r.last(), 0.0, int64(0)
		for _, x := range r.samples {
			slowest, stalls = max(slowest, x.CommitMax), max(stalls, x.Stalls)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %d | %s | %s | %s |\n", rowsText(r.rows()), show.Digits(last.Seconds), show.Short(float64(last.Rows)/last.Seconds),
			show.Short(r.tenth(1)), show.Short(r.tenth(9)), show.Digits(slowest), stalls, show.Digits(r.loaded.Settling),
			show.Digits(float64(r.loaded.Space)/float64(r.rows())), show.Digits(last.Amplification))
	}
}

func (s *series) writeReads(w io.Writer) {
	fmt.Fprint(w, "\n| rows | open to write, ms | to read, ms | the first reads/s | any row/s | p50, p99, µs | few rows/s | absent keys/s | any row with a cache of a quarter/s | scan, rows/s | again |\n"+
		"| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range s.results {
		g, n := r.reads, float64(r.rows())
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s, %s | %s | %s | %s | %s | %s |\n", rowsText(r.rows()),
			show.Digits(median(r.opened, func(o *Opened) float64 { return o.Write })), show.Digits(median(r.opened, func(o *Opened) float64 { return o.Read })),
			show.Short(g.Cold.Rate), show.Short(g.Uniform.Rate), show.Digits(g.Uniform.P50), show.Digits(g.Uniform.P99), show.Short(g.Hot.Rate),
			show.Short(g.Absent.Rate), show.Short(r.tight.Uniform.Rate), show.Short(n/g.FirstScan), show.Short(n/g.Scan))
	}
}

// sizes are those of the model's table.
func (s *series) sizes() []int64 {
	sizes := slices.Clone(predicted)
	for _, r := range s.results {
		sizes = append(sizes, r.rows())
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

func (s *series) writeModel(w io.Writer) {
	if s.model == nil {
		fmt.Fprintf(w, "\nNo model: %v.\n", s.why)
		return
	}
	m := s.model
	fmt.Fprintf(w, "\nConstants measured at %s rows:\n\n| constant | value |\n| --- | ---: |\n", rowsText(s.fitted.rows()))
	for _, c := range []struct {
		name  string
		value float64
	}{{"bytes/row", m.BytesPerRow}, {"of those, columns", m.ColumnBytes}, {"and times of commits", m.TimeBytes}, {"fill of a rowset", m.Fill}, {"height before the runs", m.FirstHeight}, {"µs that a row waits at commit", m.WaitMicros},
		{"µs of processor time to commit a row", m.RowMicros}, {"µs more for each rowset of the height", m.ProbeMicros}, {"height, settled", m.SettledHeight}, {"open, ms", m.OpenBase},
		{"ms more for each rowset", m.OpenRowSet}, {"bytes of memory for each rowset", m.HeapRowSet}, {"bytes of decoded pages for each row", m.DecodedRow},
		{"pages of a read", m.PagesGet}, {"µs of a read", m.HitMicros}, {"µs more for each page to be decoded", m.MissMicros},
		{"share of absent keys that a filter lets pass", m.FalsePasses}} {
		fmt.Fprintf(w, "| %s | %.4g |\n", c.name, c.value)
	}
	fmt.Fprint(w, "\nPredicted, and measured in brackets:\n\n| rows |")
	sizes := s.sizes()
	for _, n := range sizes {
		fmt.Fprintf(w, " %s |", rowsText(n))
	}
	fmt.Fprintf(w, "\n| --- |%s\n", strings.Repeat(" ---: |", len(sizes)))
	for _, q := range quantities() {
		fmt.Fprintf(w, "| %s |", q.name)
		for _, n := range sizes {
			text := q.format(q.model(m, float64(n)))
			if q.bound {
				text = "at most " + text
			}
			if r := s.at(n); r != nil {
				if v := q.measured(r); v != 0 || q.model(m, float64(n)) == 0 {
					text += " (" + q.format(v) + ")"
				}
			}
			fmt.Fprintf(w, " %s |", text)
		}
		fmt.Fprintln(w)
	}
}
