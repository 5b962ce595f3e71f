package main

import (
	"math/rand/v2"
)

// Workload is a table, how its rows come, and what is asked of it.
type Workload struct {
	Name     string
	About    string
	Table    *Table
	Rows     int // default size
	Quick    int // of a quick run
	Scans    []Scan
	Three    []int // the columns of reads of three columns; nil where a row has no more
	Update   int   // integer column that is updated
	Rescan   int   // the scan that is repeated after updates; it reads the updated column
	Generate func(rows int, source string, emit func(Row) error) error
	// Range returns a random range of keys; nil when the workload has none.
	Range func(r *rand.Rand, rows int) Range
	// Source says that Generate needs a file of real data.
	Source bool
}

func workloads() []*Workload {
	return []*Workload{eventindex(), cpu(), flights(), narrow()}
}

func workloadNamed(name string) (*Workload, bool) {
	for _, w := range workloads() {
		if w.Name == name {
			return w, true
		}
	}
	return nil, false
}

// generate writes the data set of a workload, the same on every call.
func (w *Workload) generate(path string, rows, batchRows int, source string) error {
	out, err := newDatasetWriter(path, w.Table, batchRows)
	if err != nil {
		return err
	}
	if err := w.Generate(rows, source, out.add); err != nil {
		return err
	}
	return out.close()
}

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 20)) }
