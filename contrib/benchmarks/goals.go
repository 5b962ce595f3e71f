package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/minikudu/minikudu/contrib/benchmarks/internal/show"
)

// goal is one line of the table of goals.
type goal struct {
	workload, text string
	measured       float64
	target         float64
	most           bool   // the target is an upper limit
	unit           string // "x" for a ratio
	against        string // the peer that minikudu is compared with, or what was measured
}

func (g *goal) met() bool {
	if g.most {
		return g.measured <= g.target
	}
	return g.measured >= g.target
}

// subject is the peer whose goals these are.
const subject = "minikudu"

// perWorkload are the targets that differ by workload.
var perWorkload = map[string]struct{ ingest, size, row float64 }{
	"eventindex": {1.5, 1.0, 0.6},
	"cpu":        {4, 0.9, 1},
	"flights":    {2, 1.2, 1},
	"narrow":     {2, 0.9, 1},
}

// judge is a run's results, to be compared with the goals.
type judge struct {
	plan   *Plan
	found  spreads
	goals  []goal
	fellow *Workload
}

// best returns the greatest median of a measure among the peers that match, other than
// the subject; the smallest if least is set.
func (j *judge) best(measure string, least bool, match func(Info) bool) (value float64, name string) {
	for _, info := range j.plan.Peers {
		s := j.found[spreadKey{j.fellow.Name, info.Name, measure}]
		if s.rounds == 0 || info.Family == subject || !match(info) {
			continue
		}
		if name == "" || (s.median > value) != least {
			value, name = s.median, info.Name
		}
	}
	return value, name
}

func (j *judge) own(measure string) spread {
	return j.found[spreadKey{j.fellow.Name, subject, measure}]
}

// ratio adds a goal: the subject's measure over the best of the peers that match.
func (j *judge) ratio(text, measure string, target float64, most bool, match func(Info) bool) {
	own := j.own(measure)
	best, name := j.best(measure, most, match)
	if own.rounds == 0 || name == "" || best == 0 {
		return
	}
	j.goals = append(j.goals, goal{workload: j.fellow.Name, text: text, measured: own.median / best, target: target, most: most, unit: "x", against: name})
}

func keyed(i Info) bool   { return i.Keyed }
func anyone(Info) bool    { return true }
func pebbles(i Info) bool { return i.Family == "pebble" }
func columnar(i Info) bool {
	return i.Family == "duckdb" || i.Parquet
}
func rowStores(i Info) bool { return i.Rows }

// judgeAll returns the goals that the run's workloads and peers allow to judge.
func judgeAll(p *Plan, found spreads) []goal {
	j := &judge{plan: p, found: found}
	for _, w := range p.Workloads {
		j.fellow = w
		targets := perWorkload[w.Name]
		j.ratio("ingest with settling / best keyed peer", "ingest", targets.ingest, false, keyed)
		j.ratio("bytes per row / smallest Parquet file", "size", targets.size, true, func(i Info) bool { return i.Parquet })
		j.reads(targets.row)
		j.scans()
		j.ratio("key ranges / best peer", "range", 2, false, anyone)
		j.updates()
		j.memory()
		j.open()
	}
	return j.goals
}

func (j *judge) reads(row float64) {
	for _, goroutines := range []string{"1", "2"} {
		j.ratio("row by key / Pebble, goroutines: "+goroutines, "get/"+goroutines, row, false, pebbles)
		j.ratio("three columns by key / Pebble, goroutines: "+goroutines, "get3/"+goroutines, 1.5, false, pebbles)
		j.ratio("row by key, half absent / Pebble, goroutines: "+goroutines, "absent/"+goroutines, 1.5, false, pebbles)
	}
}

func (j *judge) scans() {
	for _, s := range j.fellow.Scans {
		for _, threads := range []string{"1", "all"} {
			measure := "scan/" + s.Name + "/" + threads
			j.ratio(s.Name+" / best of DuckDB and Parquet, threads: "+threads, measure, 1, false, columnar)
			j.ratio(s.Name+" / best row store, threads: "+threads, measure, 20, false, rowStores)
		}
	}
}

func (j *judge) updates() {
	j.ratio("updates with settling / best keyed peer", "update/settled", 2, false, keyed)
	before := j.own("rescan/before")
	for _, when := range []string{"after", "settled"} {
		after := j.own("rescan/" + when)
		if before.rounds > 0 && after.rounds > 0 {
			text := map[string]string{"after": "time of a scan straight after updates / before", "settled": "time of a scan after settled updates / before"}[when]
			j.goals = append(j.goals, goal{workload: j.fellow.Name, text: text, measured: before.median / after.median, target: 1.2, most: true, unit: "x", against: "itself"})
		}
	}
}

// memory compares the greatest peak of all phases and rounds with the budget.
func (j *judge) memory() {
	worst, phase := 0.0, ""
	for _, name := range phases {
		if s := j.own("rss/" + name); s.most > worst {
			worst, phase = s.most, name
		}
	}
	if phase != "" {
		limit := 1.25*float64(j.plan.Budget)/1e6 + 64
		j.goals = append(j.goals, goal{workload: j.fellow.Name, text: "peak memory over that before opening", measured: worst, target: limit, most: true, unit: " MB", against: phase})
	}
}

// open allows 1 ms for each 100 rowsets begun, 20 ms at most.
func (j *judge) open() {
	own, sets := j.own("open"), j.own("rowsets")
	if own.rounds == 0 || sets.rounds == 0 {
		return
	}
	limit := min(20, max(1, math.Ceil(sets.most/100)))
	j.goals = append(j.goals, goal{workload: j.fellow.Name, text: "open a settled store", measured: own.median, target: limit, most: true, unit: " ms",
		against: fmt.Sprintf("%.0f rowsets", sets.most)})
}

// writeGoals writes the table and how many goals are met.
func writeGoals(w io.Writer, goals []goal) {
	met := 0
	for i := range goals {
		if goals[i].met() {
			met++
		}
	}
	fmt.Fprintf(w, "%d of %d goals are met.\n\n| workload | goal | target | measured | against | met |\n| --- | --- | ---: | ---: | --- | --- |\n", met, len(goals))
	for i := range goals {
		g := &goals[i]
		sign, verdict := "at least ", "yes"
		if g.most {
			sign = "at most "
		}
		if !g.met() {
			verdict = "**no**"
		}
		fmt.Fprintf(w, "| %s | %s | %s%s%s | %s%s | %s | %s |\n", g.workload, strings.ReplaceAll(g.text, "|", "\\|"), sign, show.Digits(g.target), g.unit,
			show.Digits(g.measured), g.unit, g.against, verdict)
	}
}
