package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
)

// Plan is what a run does.
type Plan struct {
	Workloads []*Workload
	Rows      map[string]int // of a workload
	LeftOut   []string       // workloads whose file of real data was not given
	Peers     []Info
	Rounds    int
	Dir       string // for data sets and stores, emptied as the run goes on
	Source    string // file of flights
	BatchRows int
	Budget    int64 // bytes
	Group     int   // rows of a row group of a Parquet file
	Limits    Limits
	Run       func(Job) (Result, error)
	Log       io.Writer
}

// Line is one measure of one process, as it is kept.
type Line struct {
	Workload string `json:"workload"`
	Rows     int    `json:"rows"`
	Peer     string `json:"peer"`
	Round    int    `json:"round"`
	Measure
}

// run does all rounds of all workloads. The peers take turns in a round.
func (p *Plan) run(keep func(Line) error) error {
	for _, name := range p.LeftOut {
		fmt.Fprintf(p.Log, "%s: left out, its file was not given\n", name)
	}
	for _, w := range p.Workloads {
		if err := p.workload(w, keep); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) workload(w *Workload, keep func(Line) error) error {
	data := filepath.Join(p.Dir, w.Name+".rows")
	fmt.Fprintf(p.Log, "%s: generating %d rows\n", w.Name, p.Rows[w.Name])
	if err := w.generate(data, p.Rows[w.Name], p.BatchRows, p.Source); err != nil {
		return err
	}
	defer os.Remove(data)
	truth, err := newTruth(w, data)
	if err != nil {
		return err
	}
	defer truth.data.close()
	for round := range p.Rounds {
		for i := range p.Peers {
			// Each round begins with another peer.
			info := p.Peers[(i+round)%len(p.Peers)]
			fmt.Fprintf(p.Log, "%s: round %d of %d, %s\n", w.Name, round+1, p.Rounds, info.Name)
			measures, err := p.peer(w, truth, info, round, data)
			if err != nil {
				return err
			}
			for _, m := range measures {
				if err := keep(Line{w.Name, truth.data.Rows, info.Name, round, m}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// peer runs all phases of one peer on an empty directory.
func (p *Plan) peer(w *Workload, truth *truth, info Info, round int, data string) (all []Measure, err error) {
	dir := filepath.Join(p.Dir, "store")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var ingest float64
	for _, name := range phases {
		r, err := p.Run(Job{Phase: name, Workload: w.Name, Peer: info.Name, Dir: dir, Data: data, Round: round, Budget: p.Budget, Group: p.Group, Limits: p.Limits})
		if err == nil {
			err = truth.check(r)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %s: %w", w.Name, info.Name, name, err)
		}
		all = append(all, r.Measures...)
		switch name {
		case "load":
			ingest = r.Work + r.Close
		case "settle":
			ingest += r.Open + r.Work + r.Close
			all = append(all, Measure{"ingest", unitRate, float64(truth.data.Rows) / ingest})
		case "reads": // some peers remove what is obsolete only when they are opened again
			size, err := sizeOf(dir)
			if err != nil {
				return nil, err
			}
			all = append(all, Measure{"size", unitSize, float64(size) / float64(truth.data.Rows)})
		}
	}
	if info.ReadOnly {
		all = slices.DeleteFunc(all, func(m Measure) bool {
			return m.Name == "load" || m.Name == "ingest" || m.Name == "rss/load" || m.Name == "rss/settle"
		})
	}
	return all, nil
}

// truth knows what every peer must answer.
type truth struct {
	workload *Workload
	data     *Dataset
	answers  map[string]Answer
}

func newTruth(w *Workload, path string) (*truth, error) {
	data, err := openDataset(path, w.Table)
	if err != nil {
		return nil, err
	}
	t := &truth{w, data, map[string]Answer{}}
	for i := range w.Scans {
		t.answers[w.Scans[i].Name] = data.answer(&w.Scans[i], -1, nil)
	}
	if w.Range != nil {
		for i, r := range workloadRanges(w, data.Rows)[:checkedRanges] {
			t.answers[fmt.Sprintf("range %d", i)] = data.rangeAnswer(&r)
		}
	}
	return t, nil
}

// check compares the answers of a process. Those after updates depend on how many there
// were.
func (t *truth) check(r Result) error {
	for _, a := range r.Answers {
		want, ok := t.answers[a.Name]
		if !ok {
			name := fmt.Sprintf("%s of %d", a.Name, r.Updated)
			if want, ok = t.answers[name]; !ok {
				want = t.afterUpdates(r.Updated)
				t.answers[name] = want
			}
		}
		if !a.Answer.equals(want) {
			return fmt.Errorf("wrong answer to %q: %+v instead of %+v", a.Name, a.Answer, want)
		}
	}
	return nil
}

func (t *truth) afterUpdates(n int) Answer {
	changed := map[int]int64{}
	for _, c := range changes(t.data.Rows, n) {
		changed[c.row] = c.value
	}
	return t.data.answer(&t.workload.Scans[t.workload.Rescan], t.workload.Update, changed)
}

// inProcess runs a job in a process of its own, this program again, and leaves its CPU
// profile in a directory, unless that is "".
func inProcess(dir, profiles string) func(Job) (Result, error) {
	return func(job Job) (Result, error) {
		var r Result
		program, err := os.Executable()
		if err != nil {
			return r, err
		}
		text, err := json.Marshal(job)
		if err != nil {
			return r, err
		}
		out := filepath.Join(dir, "result.json")
		cmd := exec.Command(program, "-job", string(text), "-job-result", out)
		if profiles != "" {
			name := fmt.Sprintf("%s-%s-%s-%d.pprof", job.Workload, job.Peer, job.Phase, job.Round)
			cmd.Args = append(cmd.Args, "-job-profile", filepath.Join(profiles, name))
		}
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		cmd.Env = os.Environ()
		if strings.HasPrefix(job.Peer, "minikudu") {
			cmd.Env = append(cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", job.Budget))
		}
		if err := cmd.Run(); err != nil {
			return r, err
		}
		if text, err = os.ReadFile(out); err != nil {
			return r, err
		}
		return r, json.Unmarshal(text, &r)
	}
}

// runJob is the other side of inProcess.
func runJob(text, out, profile string) error {
	var job Job
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return err
	}
	r, err := profiled(profile, func() (Result, error) { return runPhase(job) })
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(out, encoded, 0o666)
}

// profiled calls f and writes its CPU profile, unless the file is "".
func profiled(file string, f func() (Result, error)) (Result, error) {
	if file == "" {
		return f()
	}
	w, err := os.Create(file)
	if err != nil {
		return Result{}, err
	}
	defer w.Close()
	if err := pprof.StartCPUProfile(w); err != nil {
		return Result{}, err
	}
	defer pprof.StopCPUProfile()
	return f()
}
