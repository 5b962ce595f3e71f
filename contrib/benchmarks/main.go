package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// flags are the command line.
type flags struct {
	out, dir, workloads, peers, flights string
	quick                               bool
	rounds, batch, updates              int
	budget                              int64
	seconds, updateSeconds              float64
	rows                                map[string]*int
	profiles                            string
	job, jobResult, jobProfile          string
}

func parseFlags() *flags {
	o := &flags{rows: map[string]*int{}}
	flag.StringVar(&o.out, "out", "", "directory of results; required")
	flag.StringVar(&o.dir, "dir", "", "directory for data and stores, on the disk to be measured (default a temporary one)")
	flag.StringVar(&o.workloads, "workloads", "", "names of workloads, comma-separated (default all)")
	flag.StringVar(&o.peers, "peers", "", "names of peers, comma-separated, * for any letters (default all, or those of -quick)")
	flag.StringVar(&o.flights, "flights", "", "Parquet file of flights: date, delay, distance, origin, destination; without it that workload is left out")
	flag.BoolVar(&o.quick, "quick", false, "small sizes, one codec of each peer, short measures")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds; peers take turns in each")
	flag.IntVar(&o.batch, "batch", 1000, "rows of a batch")
	flag.IntVar(&o.updates, "updates", 0, "rows updated (default 100000, -quick 5000)")
	flag.Float64Var(&o.updateSeconds, "update-seconds", 0, "time after which no more rows are updated (default 30, -quick 1)")
	flag.Float64Var(&o.seconds, "seconds", 0, "time of each measure of reads and scans (default 1, -quick 0.05)")
	flag.Int64Var(&o.budget, "budget", 512, "memory budget of minikudu and caches of the others, MiB")
	for _, w := range workloads() {
		o.rows[w.Name] = flag.Int("rows-"+w.Name, 0, fmt.Sprintf("rows of workload %s (default %d, -quick %d)", w.Name, w.Rows, w.Quick))
	}
	flag.StringVar(&o.profiles, "profiles", "", "directory for CPU profiles of every phase, which cost the measured store some percent")
	flag.StringVar(&o.job, "job", "", "for the program's own use")
	flag.StringVar(&o.jobResult, "job-result", "", "for the program's own use")
	flag.StringVar(&o.jobProfile, "job-profile", "", "for the program's own use")
	flag.Parse()
	return o
}

func main() {
	o := parseFlags()
	err := error(nil)
	if o.job != "" {
		err = runJob(o.job, o.jobResult, o.jobProfile)
	} else {
		err = runAll(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

func pickNumber[T int | float64](given, usual, quick T, isQuick bool) T {
	switch {
	case given != 0:
		return given
	case isQuick:
		return quick
	default:
		return usual
	}
}

// plan turns flags into what is to be done.
func (o *flags) plan() (*Plan, error) {
	p := &Plan{Rows: map[string]int{}, Rounds: o.rounds, Dir: o.dir, Source: o.flights, BatchRows: o.batch, Budget: o.budget << 20, Group: 128 << 10,
		Log: os.Stderr, Run: inProcess(o.dir, o.profiles), Limits: Limits{Seconds: pickNumber(o.seconds, 1, 0.05, o.quick),
			Updates:       pickNumber(o.updates, 100_000, 5000, o.quick),
			UpdateSeconds: pickNumber(o.updateSeconds, 30, 1, o.quick)}}
	for _, w := range workloads() {
		if o.workloads != "" && !slices.Contains(strings.Split(o.workloads, ","), w.Name) {
			continue
		}
		if w.Source && o.flights == "" {
			p.LeftOut = append(p.LeftOut, w.Name)
			continue
		}
		p.Workloads = append(p.Workloads, w)
		p.Rows[w.Name] = pickNumber(*o.rows[w.Name], w.Rows, w.Quick, o.quick)
	}
	for _, info := range peers() {
		if o.wants(info) {
			p.Peers = append(p.Peers, info)
		}
	}
	if len(p.Workloads) == 0 || len(p.Peers) == 0 {
		return nil, errors.New("no such workload or peer")
	}
	return p, nil
}

func (o *flags) wants(info Info) bool {
	if o.peers == "" {
		return !o.quick || info.Quick
	}
	return slices.ContainsFunc(strings.Split(o.peers, ","), func(pattern string) bool {
		match, err := path.Match(pattern, info.Name)
		return match && err == nil
	})
}

func runAll(o *flags) error {
	if o.out == "" {
		return errors.New("-out is missing")
	}
	for _, dir := range []string{o.out, o.profiles} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "minikudu-benchmarks")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.dir = dir
	}
	p, err := o.plan()
	if err != nil {
		return err
	}
	lines, err := keepLines(p, filepath.Join(o.out, "results.jsonl"))
	if err != nil {
		return err
	}
	return report(o, p, lines)
}

// keepLines runs the plan and writes its measures to a file as they come.
func keepLines(p *Plan, path string) ([]Line, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	var lines []Line
	out := json.NewEncoder(f)
	err = p.run(func(l Line) error {
		lines = append(lines, l)
		return out.Encode(l)
	})
	return lines, errors.Join(err, f.Close())
}
