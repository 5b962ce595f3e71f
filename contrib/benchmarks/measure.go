package main

// Measures are named "what/how". The unit and whether more is better follow from the
// phase that makes them; the tables choose from these.
const (
	unitRate  = "rows/s"
	unitReads = "reads/s"
	unitTime  = "ms"
	unitRSS   = "MB"
	unitSize  = "bytes/row"
)

// Measure is one number that a phase found.
type Measure struct {
	Name  string  `json:"measure"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
}

// Named is the answer to a query, to be compared.
type Named struct {
	Name   string `json:"query"`
	Answer Answer `json:"answer"`
}

// Result is what one process found out.
type Result struct {
	Measures []Measure
	Answers  []Named
	Updated  int // rows that were updated before the answers named "after ..."

	// Durations in seconds, for sums over phases.
	Open, Work, Close float64
}

// Job is the work of one process.
type Job struct {
	Phase    string
	Workload string
	Peer     string
	Dir      string // of the store
	Data     string // file of the data set
	Round    int
	Budget   int64 // bytes
	Group    int   // rows of a row group of a Parquet file
	Limits   Limits
}

// Limits bound how long a phase measures.
type Limits struct {
	Seconds       float64 // of each rate of reads, scans, ranges
	Updates       int
	UpdateSeconds float64 // after which no further batch is updated
}

// The phases, in order. Each runs in a process of its own.
var phases = []string{"load", "settle", "reads", "scans", "updates"}
