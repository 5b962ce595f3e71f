package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	cpuHosts = 100
	cpuStep  = 10_000_000 // microseconds between rows of a host
)

var cpuStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func cpuHost(i int) string { return fmt.Sprintf("host_%03d", i) }

// cpu is metrics like those of the cpu-only case of the Time Series Benchmark Suite.
func cpu() *Workload {
	t := &Table{Name: "cpu", Key: 2, Columns: []Column{{Name: "hostname", Kind: Text, Words: true}, {Name: "ts", Kind: Int}}}
	for _, m := range []string{"user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"} {
		t.Columns = append(t.Columns, Column{Name: "usage_" + m, Kind: Int})
	}
	user := t.column("usage_user")
	return &Workload{
		Name:  "cpu",
		About: "ten metrics, random walks from 0 to 100, of 100 hosts every 10 seconds, in order of time; key (hostname, ts)",
		Table: t, Rows: 2_000_000, Quick: 100_000,
		Scans: []Scan{
			{Name: "sum(usage_user) where usage_system > 90", Column: t.column("usage_system"), Op: Above, Int: 90, Sum: user},
			{Name: "sum(usage_user) where hostname = 'host_042'", Column: 0, Op: Equal, Text: "host_042", Sum: user},
			{Name: "sum(usage_user) where hostname like '%04%'", Column: 0, Op: Contains, Text: "04", Sum: user},
		},
		Three: t.columns("usage_user", "usage_idle", "usage_guest"), Update: user, Rescan: 0,
		Generate: generateCPU,
		Range: func(r *rand.Rand, rows int) Range {
			from := cpuStart + r.Int64N(int64(max(rows/cpuHosts-360, 1)))*cpuStep
			return Range{Prefix: Row{{Text: cpuHost(r.IntN(cpuHosts))}}, From: from, To: from + 3600*1_000_000, Sum: user}
		},
	}
}

func generateCPU(rows int, _ string, emit func(Row) error) error {
	r := seeded(2)
	hosts := make([]string, cpuHosts)
	metrics := make([][10]int64, cpuHosts)
	for h := range hosts {
		hosts[h] = cpuHost(h)
		for m := range metrics[h] {
			metrics[h][m] = r.Int64N(101)
		}
	}
	row := make(Row, 12)
	for i := range rows {
		h := i % cpuHosts
		row[0].Text, row[1].Int = hosts[h], cpuStart+int64(i/cpuHosts)*cpuStep
		for m := range metrics[h] {
			v := &metrics[h][m]
			*v = min(100, max(0, *v+r.Int64N(5)-2))
			row[2+m].Int = *v
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}
