package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minikudu/minikudu/contrib/benchmarks/internal/show"
)

const (
	checkedRanges = 8      // key ranges whose answers are compared
	distinctReads = 50_000 // keys that reads choose from
	updateBatch   = 1000
)

// phase is one process's work on one store.
type phase struct {
	job      Job
	workload *Workload
	data     *Dataset
	peer     Peer
	result   Result
}

// runPhase opens the store, does what the job says and closes it.
func runPhase(job Job) (Result, error) {
	w, ok := workloadNamed(job.Workload)
	info, known := peerNamed(job.Peer)
	if !ok || !known {
		return Result{}, fmt.Errorf("no workload %q or no peer %q", job.Workload, job.Peer)
	}
	data, err := openDataset(job.Data, w.Table)
	if err != nil {
		return Result{}, err
	}
	defer data.close()
	p := &phase{job: job, workload: w, data: data, peer: info.New()}
	if err := p.run(); err != nil {
		return Result{}, fmt.Errorf("%s, %s, %s: %w", w.Name, info.Name, job.Phase, err)
	}
	return p.result, nil
}

func (p *phase) run() error {
	steps := map[string]func() error{"load": p.load, "settle": p.peer.Settle, "reads": p.reads, "scans": p.scans, "updates": p.updates}
	setup := &Setup{Dir: p.job.Dir, Table: p.workload.Table, Create: p.job.Phase == "load", Splits: p.splits(), Cache: p.job.Budget, Group: p.job.Group}
	debug.FreeOSMemory()
	before := show.ResetPeak()
	if err := timed(&p.result.Open, func() error { return p.peer.Open(setup) }); err != nil {
		return err
	}
	err := timed(&p.result.Work, steps[p.job.Phase])
	if err = errors.Join(err, timed(&p.result.Close, p.peer.Close)); err != nil {
		return err
	}
	p.found("seconds/"+p.job.Phase+"/open", "s", p.result.Open)
	p.found("seconds/"+p.job.Phase+"/work", "s", p.result.Work)
	p.found("seconds/"+p.job.Phase+"/close", "s", p.result.Close)
	p.found("rss/"+p.job.Phase, unitRSS, float64(show.Status("VmHWM")-before)/1e6)
	if p.job.Phase == "reads" {
		p.found("open", unitTime, 1000*p.result.Open)
	}
	return nil
}

func (p *phase) found(name, unit string, value float64) {
	p.result.Measures = append(p.result.Measures, Measure{name, unit, value})
}

func (p *phase) answered(name string, a Answer) {
	p.result.Answers = append(p.result.Answers, Named{name, a})
}

// timed adds the seconds that fn takes. What the peer cannot do takes none.
func timed(seconds *float64, fn func() error) error {
	start := time.Now()
	err := fn()
	if errors.Is(err, errCannot) {
		return nil
	}
	*seconds += time.Since(start).Seconds()
	return err
}

// splits returns keys at equal distances in the order of keys, from a sample.
func (p *phase) splits() []Row {
	r := seeded(11)
	sample := make([]Row, 1024)
	for i := range sample {
		sample[i] = p.data.key(r.IntN(p.data.Rows))
	}
	slices.SortFunc(sample, func(a, b Row) int { return compareKeys(p.workload.Table, a, b) })
	var out []Row
	for i := 0; i < len(sample); i += 16 {
		out = append(out, sample[i])
	}
	return out
}

func (p *phase) load() error {
	start := time.Now()
	for i := range p.data.Batches {
		if err := p.peer.Load(&p.data.Batches[i]); err != nil {
			return err
		}
	}
	p.found("load", unitRate, float64(p.data.Rows)/time.Since(start).Seconds())
	return nil
}

// read is one key to be read and the row of the data set that it is, -1 for none.
type read struct {
	key Row
	row int
}

// plan draws keys; every second one is absent if half is set.
func (p *phase) plan(half bool) []read {
	r := rand.New(rand.NewPCG(12, uint64(p.job.Round)))
	out := make([]read, min(distinctReads, 4*p.data.Rows))
	for i := range out {
		row := r.IntN(p.data.Rows)
		out[i] = read{p.data.key(row), row}
		if half && i%2 == 1 {
			out[i].key[p.workload.Table.Key-1].Int++
			out[i].row = -1
		}
	}
	return out
}

func (p *phase) reads() error {
	all := first(len(p.workload.Table.Columns))
	whole := func(key, row Row) (bool, error) { return p.peer.Get(key, row) }
	three := func(key, row Row) (bool, error) { return p.peer.GetColumns(key, p.workload.Three, row) }
	for _, m := range []struct {
		name    string
		half    bool
		columns []int
		get     func(key, row Row) (bool, error)
	}{{"get", false, all, whole}, {"get3", false, p.workload.Three, three}, {"absent", true, all, whole}} {
		if len(m.columns) == 0 {
			continue
		}
		plan := p.plan(m.half)
		for _, goroutines := range []int{1, 2} {
			// The first run warms up.
			for _, limit := range []float64{p.job.Limits.Seconds / 4, p.job.Limits.Seconds} {
				rate, err := p.readFor(limit, goroutines, plan, m.columns, m.get)
				if errors.Is(err, errCannot) {
					break
				}
				if err != nil {
					return err
				}
				if limit == p.job.Limits.Seconds {
					p.found(fmt.Sprintf("%s/%d", m.name, goroutines), unitReads, rate)
				}
			}
		}
	}
	return p.rowSets()
}

func (p *phase) rowSets() error {
	store, ok := p.peer.(rowSetter)
	if !ok {
		return nil
	}
	n, err := store.rowSets()
	p.found("rowsets", "", float64(n))
	return err
}

// readFor reads keys of the plan for some seconds and returns the rate. Every row is
// compared with the data set.
func (p *phase) readFor(limit float64, goroutines int, plan []read, columns []int, get func(key, row Row) (bool, error)) (float64, error) {
	var done atomic.Int64
	errs := make([]error, goroutines)
	var wg sync.WaitGroup
	start := time.Now()
	end := start.Add(time.Duration(limit * 1e9))
	for g := range goroutines {
		wg.Go(func() {
			row := make(Row, len(columns))
			n := int64(0)
			for i := g * len(plan) / goroutines; errs[g] == nil && (n%8 != 0 || n == 0 || time.Now().Before(end)); i++ {
				errs[g] = p.readOne(&plan[i%len(plan)], columns, row, get)
				n++
			}
			done.Add(n)
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(start).Seconds(), errors.Join(errs...)
}

func (p *phase) readOne(want *read, columns []int, row Row, get func(key, row Row) (bool, error)) error {
	found, err := get(want.key, row)
	if err != nil {
		return err
	}
	if found != (want.row >= 0) {
		return fmt.Errorf("key %v: found %t", want.key, found)
	}
	if !found {
		return nil
	}
	for i, c := range columns {
		if cell := p.data.cell(want.row, c); cell != row[i] {
			return fmt.Errorf("key %v, column %s: %v instead of %v", want.key, p.workload.Table.Columns[c].Name, row[i], cell)
		}
	}
	return nil
}

func (p *phase) scans() error {
	for i := range p.workload.Scans {
		s := &p.workload.Scans[i]
		for _, threads := range []int{1, runtime.NumCPU()} {
			how := "1"
			if threads > 1 {
				how = "all"
			}
			if err := p.scan("scan/"+s.Name+"/"+how, s.Name, s, threads); err != nil {
				return err
			}
		}
	}
	return p.ranges()
}

// scan measures one scan after a run that warms up.
func (p *phase) scan(measure, query string, s *Scan, threads int) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	a, err := p.peer.Scan(s, threads)
	if errors.Is(err, errCannot) {
		return nil
	}
	if err != nil {
		return err
	}
	p.answered(query, a)
	seconds, err := repeat(p.job.Limits.Seconds, 3, func() error {
		b, err := p.peer.Scan(s, threads)
		if err == nil && !b.equals(a) {
			err = fmt.Errorf("%s: %v, then %v", query, a, b)
		}
		return err
	})
	p.found(measure, unitRate, float64(p.data.Rows)/seconds)
	return err
}

// repeat runs fn until the limit, a few times at least, and returns the median of the
// seconds a run takes.
func repeat(limit float64, least int, fn func() error) (float64, error) {
	var runs []float64
	for start := time.Now(); len(runs) < least || time.Since(start).Seconds() < limit; {
		var s float64
		if err := timed(&s, fn); err != nil {
			return 0, err
		}
		runs = append(runs, s)
	}
	slices.Sort(runs)
	return runs[len(runs)/2], nil
}

// workloadRanges returns the ranges of keys of a workload, the same on every call.
func workloadRanges(w *Workload, rows int) []Range {
	r := seeded(13)
	out := make([]Range, 1000)
	for i := range out {
		out[i] = w.Range(r, rows)
	}
	return out
}

func (p *phase) ranges() error {
	if p.workload.Range == nil {
		return nil
	}
	ranges := workloadRanges(p.workload, p.data.Rows)
	for i := range checkedRanges {
		a, err := p.peer.Range(&ranges[i])
		if errors.Is(err, errCannot) {
			return nil
		}
		if err != nil {
			return err
		}
		p.answered(fmt.Sprintf("range %d", i), a)
	}
	i := 0
	seconds, err := repeat(p.job.Limits.Seconds, 3, func() error {
		i++
		_, err := p.peer.Range(&ranges[i%len(ranges)])
		return err
	})
	p.found("range", unitReads, 1/seconds)
	return err
}

// change is one row of the data set and the new value of its updated column.
type change struct {
	row   int
	value int64
}

// changes returns n updates of different rows, the same on every call.
func changes(rows, n int) []change {
	r := seeded(14)
	seen := map[int]bool{}
	var out []change
	for len(out) < min(n, rows/2) {
		row := r.IntN(rows)
		if !seen[row] {
			seen[row] = true
			out = append(out, change{row, r.Int64N(1000)})
		}
	}
	return out
}

func (p *phase) updates() error {
	s := &p.workload.Scans[p.workload.Rescan]
	if err := p.scan("rescan/before", s.Name, s, 1); err != nil {
		return err
	}
	var updating, settling float64
	err := p.updateAll(&updating)
	if errors.Is(err, errCannot) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := p.scan("rescan/after", "after "+s.Name, s, 1); err != nil {
		return err
	}
	if err := timed(&settling, p.peer.Settle); err != nil {
		return err
	}
	if err := p.scan("rescan/settled", "after "+s.Name, s, 1); err != nil {
		return err
	}
	p.found("update", unitRate, float64(p.result.Updated)/updating)
	p.found("update/settled", unitRate, float64(p.result.Updated)/(updating+settling))
	return nil
}

// updateAll updates batch after batch, until the limit of time.
func (p *phase) updateAll(seconds *float64) error {
	for batch := range slices.Chunk(changes(p.data.Rows, p.job.Limits.Updates), updateBatch) {
		keys, values := make([]Row, len(batch)), make([]int64, len(batch))
		for i, c := range batch {
			keys[i], values[i] = p.data.key(c.row), c.value
		}
		start := time.Now()
		if err := p.peer.Update(keys, p.workload.Update, values); err != nil {
			return err
		}
		*seconds += time.Since(start).Seconds()
		p.result.Updated += len(batch)
		if *seconds > p.job.Limits.UpdateSeconds {
			break
		}
	}
	return nil
}
