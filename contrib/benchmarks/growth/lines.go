package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Line is one line of the file of results: one of its fields.
type Line struct {
	Run    *Run    `json:"run,omitempty"`
	Sample *Sample `json:"sample,omitempty"`
	Loaded *Loaded `json:"loaded,omitempty"`
	Opened *Opened `json:"opened,omitempty"`
	Reads  *Reads  `json:"reads,omitempty"`
	Tight  *Tight  `json:"tight,omitempty"`
}

// Run begins a run, or its continuation.
type Run struct {
	Workload string `json:"workload"`
	Rows     int64  `json:"rows"`     // to be reached
	Existing int64  `json:"existing"` // where it went on
	Memory   int64  `json:"memory"`
	Batch    int64  `json:"batch"`
	Command  string `json:"command"`
	Machine  string `json:"machine"`
	Date     string `json:"date"`
}

// State is what a store looks like. Counters go on over continuations.
type State struct {
	Rows          int64   `json:"rows"`
	RowSets       int     `json:"rowsets"`
	Height        float64 `json:"height"`
	Bytes         int64   `json:"bytes"`         // of rowset files
	Space         int64   `json:"space"`         // of all files of the store
	Flushes       int64   `json:"flushes"`       // of rows
	Flushed       int64   `json:"flushed"`       // bytes that they wrote
	Written       int64   `json:"written"`       // bytes that flushes and compactions wrote
	Amplification float64 `json:"amplification"` // Written / Bytes
	RSS           int64   `json:"rss"`
	PeakRSS       int64   `json:"peak_rss"`
	Heap          int64   `json:"heap"` // bytes of Go objects, garbage included
}

// Sample is taken while a store is loaded.
type Sample struct {
	State
	Seconds      float64 `json:"seconds"` // in calls of the engine, over continuations
	New          int64   `json:"new"`     // rows since the sample before
	Took         float64 `json:"took"`    // seconds of those
	CPU          float64 `json:"cpu"`     // seconds of processor time of the goroutine that committed them
	TenthRate    float64 `json:"tenth_rate"`
	CommitP99    float64 `json:"commit_p99_ms"` // since the sample before
	CommitMax    float64 `json:"commit_max_ms"`
	Log          int64   `json:"log"`    // bytes
	Memory       int64   `json:"memory"` // bytes of rows that are not flushed
	Stalls       int64   `json:"stalls"` // of this process
	StallSeconds float64 `json:"stall_s"`
	LongestStall float64 `json:"longest_stall_s"`
}

// Loaded is the store when compactions are done.
type Loaded struct {
	State
	Settling float64 `json:"settling_s"`
	Closing  float64 `json:"closing_s"`
	Target   int64   `json:"rowset_bytes"` // target size of a rowset
	Columns  int64   `json:"columns"`      // bytes of columns
	Encoded  []Coded `json:"encoded"`
}

// Coded is a column as it is stored.
type Coded struct {
	Name        string `json:"name"`
	Encoding    string `json:"encoding"`
	Compression string `json:"compression"`
	Bytes       int64  `json:"bytes"`
}

// Opened is an open in a fresh process. For writing it syncs files, for reading it does
// not, so that the latter tells what rowsets cost.
type Opened struct {
	Empty   float64 `json:"empty_ms"` // for reading, a store without tables
	Read    float64 `json:"read_ms"`  // for reading
	Write   float64 `json:"write_ms"` // for writing
	RowSets int     `json:"rowsets"`
	Heap    int64   `json:"heap"` // bytes of live objects that an open adds
}

// Reads are what a process that reads found.
type Reads struct {
	Rows      int64   `json:"rows"`
	RowSets   int     `json:"rowsets"`
	Height    float64 `json:"height"`
	Cold      Gets    `json:"cold"`    // the first of the process, any rows
	Uniform   Gets    `json:"uniform"` // any rows, after a warm-up
	Hot       Gets    `json:"hot"`     // few rows that lie together, each read before
	Absent    Gets    `json:"absent"`  // keys between those of rows
	FirstScan float64 `json:"first_scan_s"`
	Scan      float64 `json:"scan_s"` // once more
	Budget    int64   `json:"cache_budget"`
	Cached    int64   `json:"cached"` // bytes of decoded pages after the scans of all columns
	Heap      int64   `json:"heap"`   // bytes of live objects that opening and reading added, without pages
	PeakRSS   int64   `json:"peak_rss"`
}

// Tight is a process whose page cache holds a quarter of what the one of Reads held, so
// that reads by key miss it.
type Tight struct {
	Budget  int64 `json:"cache_budget"`
	Uniform Gets  `json:"uniform"` // after a warm-up
}

// Gets are reads of rows by key by one goroutine.
type Gets struct {
	Reads  int64   `json:"reads"`
	Rate   float64 `json:"rate"` // a second
	P50    float64 `json:"p50_us"`
	P99    float64 `json:"p99_us"`
	Pages  float64 `json:"pages"`  // asked of the cache for each read
	Misses float64 `json:"misses"` // of those, decoded
}

// journal appends lines to a file.
type journal struct{ f *os.File }

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return &journal{f}, nil
}

func (j *journal) add(l Line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = j.f.Write(append(text, '\n'))
	return err
}

func (j *journal) close() error { return j.f.Close() }

// readLines reads a file of results; one that does not exist has no lines.
func readLines(path string) ([]Line, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []Line
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		var l Line
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return lines, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		lines = append(lines, l)
	}
}
