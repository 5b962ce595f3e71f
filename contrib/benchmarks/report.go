package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/minikudu/minikudu/contrib/benchmarks/internal/show"
)

// spread is the rounds' values of one measure.
type spread struct {
	median, least, most float64
	unit                string
	rounds              int // 0: not measured
}

// spreadKey names a measure of a peer.
type spreadKey struct{ workload, peer, measure string }

// spreads are the measures of a run; what a peer cannot do is not there.
type spreads map[spreadKey]spread

func summarize(lines []Line) spreads {
	values := map[spreadKey][]float64{}
	out := spreads{}
	for _, l := range lines {
		k := spreadKey{l.Workload, l.Peer, l.Name}
		values[k] = append(values[k], l.Value)
		out[k] = spread{unit: l.Unit}
	}
	for k, v := range values {
		slices.Sort(v)
		out[k] = spread{median: (v[(len(v)-1)/2] + v[len(v)/2]) / 2, least: v[0], most: v[len(v)-1], unit: out[k].unit, rounds: len(v)}
	}
	return out
}

func (s spread) String() string {
	if s.rounds == 0 {
		return "-"
	}
	if s.rounds == 1 {
		return show.Short(s.median)
	}
	return fmt.Sprintf("%s (%s..%s)", show.Short(s.median), show.Short(s.least), show.Short(s.most))
}

// column is a column of a table of results.
type column struct{ measure, title string }

// tables are the tables of a workload: the measures and their titles.
func tables(w *Workload) map[string][]column {
	scans := []column{}
	for _, s := range w.Scans {
		scans = append(scans, column{"scan/" + s.Name + "/1", "`" + s.Name + "`, 1 thread"}, column{"scan/" + s.Name + "/all", "all threads"})
	}
	if w.Range != nil {
		scans = append(scans, column{"range", "key ranges/s"})
	}
	return map[string][]column{
		"Ingest, size, open": {{"load", "ingest, rows/s"}, {"ingest", "with settling, rows/s"}, {"size", "bytes/row"}, {"open", "open, ms"}},
		"Peak memory over that before opening, MB": {{"rss/load", "load"}, {"rss/settle", "settle"}, {"rss/reads", "reads"},
			{"rss/scans", "scans"}, {"rss/updates", "updates"}},
		"Reads by key, reads/s": {{"get/1", "row, 1 goroutine"}, {"get/2", "2"}, {"get3/1", "3 columns, 1"}, {"get3/2", "2"},
			{"absent/1", "row, half absent, 1"}, {"absent/2", "2"}},
		"Scans, rows/s": scans,
		"Updates": {{"update", "updates, rows/s"}, {"update/settled", "with settling, rows/s"}, {"rescan/before", "scan before, rows/s"},
			{"rescan/after", "straight after"}, {"rescan/settled", "after settling"}},
	}
}

var tableOrder = []string{"Ingest, size, open", "Peak memory over that before opening, MB", "Reads by key, reads/s", "Scans, rows/s", "Updates"}

// report writes tables, charts and goals.
func report(o *flags, p *Plan, lines []Line) error {
	s := summarize(lines)
	f, err := os.Create(filepath.Join(o.out, "results.md"))
	if err != nil {
		return err
	}
	defer f.Close()
	writeHeader(f, o, p)
	goals := judgeAll(p, s)
	fmt.Fprintf(f, "\n## Goals%s\n\n", quickNote(o))
	writeGoals(f, goals)
	if err := writeCharts(f, o.out, charts(p, s)); err != nil {
		return err
	}
	for _, w := range p.Workloads {
		fmt.Fprintf(f, "\n## %s\n\n%s. %d rows%s.\n", w.Name, w.About, p.Rows[w.Name], quickNote(o))
		for _, title := range tableOrder {
			writeTable(f, p, s, w, title, tables(w)[title])
		}
	}
	fmt.Printf("Goals%s: ", quickNote(o))
	writeGoals(os.Stdout, goals)
	return f.Close()
}

func writeCharts(w io.Writer, dir string, all []*chart) error {
	fmt.Fprint(w, "\n## Charts\n\nBars are medians, the thin lines go from the least to the most.\n\n")
	for _, c := range all {
		if err := c.save(dir); err != nil {
			return err
		}
		fmt.Fprintf(w, "![%s](%s.svg)\n", c.title, c.file)
	}
	return nil
}

func quickNote(o *flags) string {
	if o.quick {
		return ", a quick run: small, short, not to be quoted"
	}
	return ""
}

func writeHeader(w io.Writer, o *flags, p *Plan) {
	fmt.Fprintf(w, "# Benchmarks against peers%s\n\n", quickNote(o))
	fmt.Fprintf(w, "Made by `%s` in contrib/benchmarks; see [the method](method.md). Rounds: %d; a cell is the median, with the least and most.\n",
		command(), p.Rounds)
	fmt.Fprintf(w, "\n%s. %s.\n\n", show.Machine(), settings(p))
	fmt.Fprintf(w, "| peer | settings |\n| --- | --- |\n")
	for _, info := range p.Peers {
		fmt.Fprintf(w, "| %s | %s |\n", info.Name, info.Settings)
	}
	fmt.Fprintf(w, "\nVersions: %s.\n", strings.Join(versions(), ", "))
	for _, name := range p.LeftOut {
		fmt.Fprintf(w, "\nThe workload %s was left out: its file was not given.\n", name)
	}
}

// command is the command line, without the directories of a machine.
func command() string {
	text := "go run ."
	flag.Visit(func(f *flag.Flag) {
		value := f.Value.String()
		switch {
		case f.Name == "out" || f.Name == "dir" || strings.HasPrefix(f.Name, "test."):
			return
		case f.Name == "flights":
			value = filepath.Base(value)
		case value == "true":
			text += " -" + f.Name
			return
		}
		text += " -" + f.Name + " " + value
	})
	return text + " -out …"
}

func settings(p *Plan) string {
	return fmt.Sprintf("Batches of %d rows; budget %d MiB (memory budget and GOMEMLIMIT of minikudu, caches of the others where they have a setting); "+
		"%g s a measure; %d updates, or as many as fit %g s", p.BatchRows, p.Budget>>20, p.Limits.Seconds, p.Limits.Updates, p.Limits.UpdateSeconds)
}

// versions returns the versions of the libraries compared.
func versions() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var out []string
	for _, d := range info.Deps {
		for _, name := range []string{"cockroachdb/pebble/v2", "dgraph-io/badger/v4", "duckdb/duckdb-go/v2", "mattn/go-sqlite3",
			"parquet-go/parquet-go", "apache/arrow-go/v18", "twmb/avro", "go.etcd.io/bbolt"} {
			if strings.HasSuffix(d.Path, name) {
				out = append(out, d.Path+" "+d.Version)
			}
		}
	}
	return out
}

func writeTable(w io.Writer, p *Plan, s spreads, load *Workload, title string, columns []column) {
	fmt.Fprintf(w, "\n### %s: %s\n\n| peer |", load.Name, title)
	for _, c := range columns {
		fmt.Fprintf(w, " %s |", c.title)
	}
	fmt.Fprintf(w, "\n| --- |%s\n", strings.Repeat(" ---: |", len(columns)))
	for _, info := range p.Peers {
		fmt.Fprintf(w, "| %s |", info.Name)
		for _, c := range columns {
			fmt.Fprintf(w, " %s |", s[spreadKey{load.Name, info.Name, c.measure}])
		}
		fmt.Fprintln(w)
	}
}
