package main

import (
	"io"
	"testing"
)

// TestPeersAgree runs every phase of every peer on every workload at a tiny size; the
// harness compares each answer and each row read.
func TestPeersAgree(t *testing.T) {
	for _, w := range workloads() {
		for _, info := range peers() {
			t.Run(w.Name+"/"+info.Name, func(t *testing.T) {
				plan := Plan{Workloads: []*Workload{w}, Rows: map[string]int{w.Name: 2000}, Peers: []Info{info}, Rounds: 1,
					Dir: t.TempDir(), Source: "testdata/flights.csv", BatchRows: 300, Group: 600, Budget: 32 << 20, Run: runPhase, Log: io.Discard,
					Limits: Limits{Seconds: 0.002, Updates: 500, UpdateSeconds: 1}}
				seen := map[string]bool{}
				if err := plan.run(func(l Line) error { seen[l.Name] = true; return nil }); err != nil {
					t.Fatal(err)
				}
				for _, name := range expected(w, info) {
					if !seen[name] {
						t.Errorf("no measure %q", name)
					}
				}
			})
		}
	}
}

// expected returns measures that a peer of this sort must make.
func expected(w *Workload, info Info) []string {
	names := []string{"size", "open", "scan/" + w.Scans[0].Name + "/1", "rss/scans"}
	if !info.ReadOnly {
		names = append(names, "load", "ingest")
	}
	if info.Keyed || info.ReadOnly {
		names = append(names, "get/1", "get/2", "absent/1", "absent/2", "scan/"+w.Scans[0].Name+"/all")
	}
	if info.Keyed {
		names = append(names, "update", "update/settled", "rescan/before", "rescan/after", "rescan/settled")
	}
	if info.Keyed && w.Range != nil {
		names = append(names, "range")
	}
	return names
}
