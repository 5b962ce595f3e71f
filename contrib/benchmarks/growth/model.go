package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Model predicts a store of any size from constants measured at one. The formulas are
// explained in docs/benchmarks/scale.md.
type Model struct {
	Rows   float64 // at which the constants were measured
	Random bool    // keys come in random order
	Target float64 // bytes of a rowset
	Cache  float64 // bytes of the page cache

	BytesPerRow   float64 // of all files of rowsets
	ColumnBytes   float64 // of those, of columns, for each row
	TimeBytes     float64 // and of the times of commits
	Seconds       float64 // that the load took
	Fill          float64 // of a rowset file, of its target
	FirstHeight   float64 // of what is not yet in runs of the largest size
	WaitMicros    float64 // that a commit waits, for each row: syncs, other threads
	RowMicros     float64 // of processor time to commit a row that is looked for in no rowset
	ProbeMicros   float64 // more for each rowset
	SettledHeight float64
	OpenBase      float64 // ms, of a store without rowsets, for reading
	OpenRowSet    float64 // ms for each rowset
	HeapRowSet    float64 // bytes, of a rowset that was read
	DecodedRow    float64 // bytes of decoded pages for each row
	PagesGet      float64 // that a read by key needs
	HitMicros     float64 // of a read whose pages are decoded
	MissMicros    float64 // more for each page that is not
	FalsePasses   float64 // of a filter, for each key that is not there
}

// The engine's rules that the model knows; docs/design/maintenance.md has them.
const (
	planTargets = 8   // rowset targets that one merge may read
	writes      = 5   // bytes written at most for each flushed byte while rows are loaded, the flush included
	filterBytes = 1.3 // of the key filter, for each row
	history     = 900 // seconds for which the times of commits are kept
)

// fit takes the constants of a model from a result.
func fit(r *result, w *Workload) (*Model, error) {
	switch {
	case r.loaded == nil || r.reads == nil || r.tight == nil || len(r.opened) == 0 || len(r.samples) == 0 || r.loaded.RowSets == 0:
		return nil, errors.New("the run is not complete")
	case r.reads.Cached >= r.reads.Budget*9/10:
		return nil, fmt.Errorf("the pages of %d rows do not fit the cache, so a model cannot be fitted", r.reads.Rows)
	}
	n, sets := float64(r.loaded.Rows), float64(r.loaded.RowSets)
	m := &Model{Rows: n, Random: w.Random, Target: float64(r.loaded.Target), Cache: float64(r.reads.Budget)}
	m.BytesPerRow, m.ColumnBytes = float64(r.loaded.Bytes)/n, float64(r.loaded.Columns)/n
	m.TimeBytes = max(0, m.BytesPerRow-m.ColumnBytes-filterBytes)
	m.Seconds = r.last().Seconds
	m.Fill = float64(r.loaded.Bytes) / sets / m.Target
	m.SettledHeight = r.reads.Height
	m.fitLoad(r.samples)
	m.OpenBase = median(r.opened, func(o *Opened) float64 { return o.Empty })
	m.OpenRowSet = max(0, median(r.opened, func(o *Opened) float64 { return o.Read })-m.OpenBase) / float64(r.opened[0].RowSets)
	m.HeapRowSet = float64(r.reads.Heap) / sets
	m.DecodedRow = float64(r.reads.Cached) / n
	m.HitMicros = 1e6 / r.reads.Uniform.Rate
	missing := 1 - min(1, float64(r.tight.Budget)/float64(r.reads.Cached))
	if missing > 0 && r.tight.Uniform.Misses > 0 {
		m.PagesGet = r.tight.Uniform.Misses / missing
		m.MissMicros = max(0, 1e6/r.tight.Uniform.Rate-m.HitMicros) / r.tight.Uniform.Misses
	}
	// Pages are asked of the cache for an absent key only where a filter lets it pass.
	m.FalsePasses = r.reads.Absent.Pages / max(1, m.SettledHeight)
	return m, nil
}

// fitLoad finds the processor time of a commit for each row, as a line over the height,
// what a commit waits, and the height without the part that grows with the rows. The first
// tenth is left out: the store is empty, and the process warms up.
func (m *Model) fitLoad(samples []*Sample) {
	var heights, cpu, wait, first, rows []float64
	for _, s := range samples {
		if float64(s.Rows) <= m.Rows/10 || s.New == 0 {
			continue
		}
		n := float64(s.New)
		heights, rows = append(heights, s.Height), append(rows, n)
		cpu, wait = append(cpu, 1e6*s.CPU/n), append(wait, 1e6*(s.Took-s.CPU)/n)
		first = append(first, s.Height-m.runs(float64(s.Rows)))
	}
	m.FirstHeight, m.WaitMicros = max(1, mean(first, rows)), mean(wait, rows)
	m.RowMicros, m.ProbeMicros = line(heights, cpu, rows)
	if m.ProbeMicros < 0 { // look-ups cost less than the noise
		m.RowMicros, m.ProbeMicros = mean(cpu, rows), 0
	}
}

// line fits y = a + b·x.
func line(x, y, weight []float64) (a, b float64) {
	mx, my := mean(x, weight), mean(y, weight)
	var xx, xy float64
	for i := range x {
		xx += weight[i] * (x[i] - mx) * (x[i] - mx)
		xy += weight[i] * (x[i] - mx) * (y[i] - my)
	}
	if xx > 0 {
		b = xy / xx
	}
	return my - b*mx, b
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

func mean(v, weight []float64) (s float64) {
	for i := range v {
		s += weight[i] * v[i]
	}
	return s / max(1, sum(weight))
}

func median[T any](list []T, of func(T) float64) float64 {
	var v []float64
	for _, x := range list {
		v = append(v, of(x))
	}
	slices.SortFunc(v, cmp.Compare)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// bytesPerRow: if keys come in random order they lie closer together the more there are,
// and the times of commits, in no order either, take a bit more whenever the load takes
// twice as long, for as long as they are kept.
func (m *Model) bytesPerRow(n float64) float64 {
	if !m.Random {
		return m.BytesPerRow
	}
	took := m.loadSeconds(n)
	times := m.TimeBytes + math.Log2(min(took, history)/min(m.Seconds, history))/8
	return m.BytesPerRow - m.TimeBytes - math.Log2(n/m.Rows)/8 + times*min(1, history/took)
}

func (m *Model) bytes(n float64) float64 { return n * m.bytesPerRow(n) }

func (m *Model) rowSets(n float64) float64 {
	return max(1, math.Round(m.bytes(n)/(m.Fill*m.Target)))
}

// runs is the number of runs over all keys of the size that one merge can make.
func (m *Model) runs(n float64) float64 { return n * m.BytesPerRow / (planTargets * m.Target) }

// height is that at the end of a load.
func (m *Model) height(n float64) float64 { return m.FirstHeight + m.runs(n) }

// cpuMicros is the processor time to commit a row when there are n.
func (m *Model) cpuMicros(n float64) float64 { return m.RowMicros + m.ProbeMicros*m.height(n) }

// rowMicros is what that takes with waiting.
func (m *Model) rowMicros(n float64) float64 { return m.WaitMicros + m.cpuMicros(n) }

// loadSeconds is what n rows take: the height grows with them, so half of it counts.
func (m *Model) loadSeconds(n float64) float64 {
	return n * (m.WaitMicros + m.RowMicros + m.ProbeMicros*(m.FirstHeight+m.runs(n)/2)) / 1e6
}

// slowing is the rate of the last tenth over that of the second.
func (m *Model) slowing(n float64) float64 { return m.rowMicros(0.15*n) / m.rowMicros(0.95*n) }

// amplification is the bytes that flushes and merges write for each byte that remains, at
// most: settling merges as many runs into one as a merge has targets, level by level.
func (m *Model) amplification(n float64) float64 {
	return writes + 1 + math.Log(max(1, m.height(n)))/math.Log(planTargets)
}

func (m *Model) openMillis(n float64) float64 { return m.OpenBase + m.OpenRowSet*m.rowSets(n) }

func (m *Model) heap(n float64) float64 { return m.HeapRowSet * m.rowSets(n) }

func (m *Model) decoded(n float64) float64 { return m.DecodedRow * n }

// misses is the pages that a read of any row must decode.
func (m *Model) misses(n float64) float64 {
	return m.PagesGet * (1 - min(1, m.Cache/m.decoded(n)))
}

func (m *Model) getRate(n float64) float64 { return 1e6 / (m.HitMicros + m.misses(n)*m.MissMicros) }

// probes is the filters that a read of an absent key asks.
func (m *Model) probes(float64) float64 { return m.SettledHeight }

// falseReads is the pages that such a read asks for in vain.
func (m *Model) falseReads(n float64) float64 { return m.FalsePasses * m.probes(n) }
