package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReport writes the report of invented results.
func TestReport(t *testing.T) {
	w := narrow()
	plan := &Plan{Workloads: []*Workload{w}, Rows: map[string]int{w.Name: 10}, Rounds: 2, Budget: 64 << 20, LeftOut: []string{"flights"}}
	var lines []Line
	for i, name := range []string{"minikudu", "pebble-snappy", "parquetgo-zstd"} {
		info, ok := peerNamed(name)
		if !ok {
			t.Fatalf("no peer %s", name)
		}
		plan.Peers = append(plan.Peers, info)
		for round := range 2 {
			for _, m := range []Measure{{"ingest", unitRate, 300}, {"size", unitSize, 10}, {"get/1", unitReads, 1e6}, {"open", unitTime, 0}} {
				m.Value /= float64(1 + i + round)
				lines = append(lines, Line{w.Name, 10, name, round, m})
			}
		}
	}
	dir := t.TempDir()
	if err := report(&flags{out: dir, quick: true}, plan, lines); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a quick run",
		"The workload flights was left out",
		"| minikudu | 225 (150..300) |", // of a column of ingest
		"| narrow | ingest with settling / best keyed peer | at least 2.00x | 1.80x | pebble-snappy | **no** |",
		"| narrow | row by key / Pebble, goroutines: 1 | at least 1.00x | 1.80x | pebble-snappy | yes |",
		"![narrow: size on disk, settled](narrow-size.svg)",
	} {
		if !strings.Contains(strings.ReplaceAll(string(text), "| - ", ""), want) {
			t.Errorf("report lacks %q", want)
		}
	}
	for _, name := range []string{"narrow-size.svg", "narrow-reads.png", "codecs-ingest.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("chart %s: %v", name, err)
		}
	}
}
