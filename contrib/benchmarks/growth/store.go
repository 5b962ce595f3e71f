package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/contrib/benchmarks/internal/show"
)

var ctx = context.Background()

// Settings are what a run was asked for.
type Settings struct {
	Workload string
	Rows     int64 // to be reached
	Memory   int64 // budget, and limit of the Go runtime
	Dir      string
	Out      string // file of results
	Existing bool   // go on with the store that is there
	Batch    int64
	Every    int64   // rows between samples
	Seconds  float64 // of each measure of reads
	Profile  string  // directory of CPU profiles, "" for none
	Command  string
}

// store is an open store with the table of a workload.
type store struct {
	*Settings
	work *Workload
	db   *minikudu.DB
	tab  *minikudu.Table
	past counters // of earlier runs
}

// counters are those of a store that go on over runs.
type counters struct {
	flushes, flushed, written int64
	seconds                   float64
}

func (s *Settings) options() *minikudu.Options {
	return &minikudu.Options{MemoryBudget: s.Memory}
}

// open opens the store of a run, with its table.
func (s *Settings) open() (*store, error) {
	w, err := workloadNamed(s.Workload)
	if err != nil {
		return nil, err
	}
	db, err := minikudu.Open(s.Dir, s.options())
	if err != nil {
		return nil, err
	}
	t := &store{Settings: s, work: w, db: db}
	if t.tab, err = db.Table(w.Name); errors.Is(err, minikudu.ErrNotFound) {
		t.tab, err = db.CreateTable(ctx, w.Name, w.Spec)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return t, nil
}

// height returns how many rowsets a key must be looked for in, on average.
func (t *store) height() (h float64, err error) {
	layout, err := t.tab.Layout(ctx)
	for _, rs := range layout {
		h += rs.End - rs.Start
	}
	return h, err
}

// state returns what the store looks like.
func (t *store) state() (State, error) {
	h, err := t.height()
	if err != nil {
		return State{}, err
	}
	space, err := sizeOf(t.Dir)
	if err != nil {
		return State{}, err
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	m := t.db.Metrics()
	s := State{Rows: t.tab.Rows(), RowSets: m.RowSets, Height: h, Bytes: m.RowSetBytes + m.ChangeBytes + m.HistoryBytes, Space: space,
		Flushes: t.past.flushes + m.Flushes, Flushed: t.past.flushed + m.FlushedBytes, Written: t.past.written + m.WrittenBytes(),
		RSS: show.Status("VmRSS"), PeakRSS: show.Status("VmHWM"), Heap: int64(mem.HeapAlloc)}
	if s.Bytes > 0 {
		s.Amplification = float64(s.Written) / float64(s.Bytes)
	}
	return s, nil
}

// sizeOf returns the bytes of the files below a directory. Files may go meanwhile.
func sizeOf(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return ignoreGone(err)
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return ignoreGone(err)
	})
	return n, err
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// liveHeap returns the bytes of Go objects that are in use.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the first empties pools, the second frees what they held
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return int64(mem.HeapAlloc)
}
