package main

import (
	"fmt"
	"math"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// cell is one value, in the field of its column's kind.
type cell struct {
	n    int64
	f    float64
	text []byte
}

// Workload is a table whose row i is a function of i alone.
type Workload struct {
	Name   string
	About  string
	Spec   minikudu.TableSpec
	Sums   []string // columns that a full scan adds up
	Random bool     // the order of keys is not that of arrival

	row func(i int64, row []cell)
	// near reports whether row i of n is one of about nearRows that lie together.
	near func(i, n int64) bool
	gap  int64 // added to the last key column, makes a key that no row has
}

func workloads() []*Workload { return []*Workload{narrow(), cpu()} }

func workloadNamed(name string) (*Workload, error) {
	for _, w := range workloads() {
		if w.Name == name {
			return w, nil
		}
	}
	return nil, fmt.Errorf("no workload %q", name)
}

func (w *Workload) names() (names []string) {
	for _, c := range w.Spec.Columns {
		names = append(names, c.Name)
	}
	return names
}

// batch appends rows from the given number on to the columns, which it empties first.
func (w *Workload) batch(columns []*vector.Vector, first, n int64) error {
	row := make([]cell, len(columns))
	for _, c := range columns {
		c.Reset(c.Kind())
	}
	for i := first; i < first+n; i++ {
		w.row(i, row)
		for k, c := range columns {
			switch c.Kind() {
			case schema.KindInt64:
				vector.AppendFixed(c, row[k].n)
			case schema.KindFloat64:
				vector.AppendFixed(c, row[k].f)
			default:
				if err := c.AppendBytes(row[k].text); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// kind returns how cells of a column are held.
func kind(t schema.Type) schema.Kind {
	switch t {
	case schema.String:
		return schema.KindBytes
	case schema.Double:
		return schema.KindFloat64
	default:
		return schema.KindInt64
	}
}

func (w *Workload) columns(rows int) (out []*vector.Vector) {
	for _, c := range w.Spec.Columns {
		out = append(out, vector.New(kind(c.Type), rows))
	}
	return out
}

// key returns the key of row i; a key that no row has if absent is set.
func (w *Workload) key(i int64, absent bool, row []cell) (key []any) {
	w.row(i, row)
	for k := range w.Spec.Key {
		if kind(w.Spec.Columns[k].Type) == schema.KindBytes {
			key = append(key, string(row[k].text))
			continue
		}
		n := row[k].n
		if absent && k == len(w.Spec.Key)-1 {
			n += w.gap
		}
		key = append(key, n)
	}
	return key
}

// check compares a row with row i.
func (w *Workload) check(i int64, got *minikudu.Row, row []cell) error {
	w.row(i, row)
	for k, c := range w.Spec.Columns {
		v, same := got.Cell(k), false
		switch kind(c.Type) {
		case schema.KindBytes:
			same = v.Str() == string(row[k].text)
		case schema.KindFloat64:
			same = v.Float() == row[k].f
		default:
			same = v.Int() == row[k].n
		}
		if !same {
			return fmt.Errorf("row %d, column %s: wrong value %v", i, c.Name, got.Value(c.Name))
		}
	}
	return nil
}

// sums returns the sums of the columns Sums over the rows below n.
func (w *Workload) sums(n int64) []float64 {
	at := make([]int, len(w.Sums))
	for k, name := range w.Sums {
		for i, c := range w.Spec.Columns {
			if c.Name == name {
				at[k] = i
			}
		}
	}
	ints, floats := make([]int64, len(at)), make([]float64, len(at))
	row := make([]cell, len(w.Spec.Columns))
	for i := range n {
		w.row(i, row)
		for k, c := range at {
			ints[k] += row[c].n
			floats[k] += row[c].f
		}
	}
	for k := range floats {
		floats[k] += float64(ints[k])
	}
	return floats
}

// same reports whether two sums agree but for the order of addition.
func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// nearRows is how many rows lie together, in a table that has more.
const nearRows = 1_000_000

func column(name string, t schema.Type) minikudu.Column {
	return minikudu.Column{Name: name, Type: t}
}

// keyHalf makes keys of 40 bits: they lie at random in a range that is the same for every
// size, and a thousand times as many as the largest run has.
const keyHalf = 20

// narrow is rows of three numbers whose keys come in random order.
func narrow() *Workload {
	order := newPermutation(keyHalf, 1)
	return &Workload{
		Name:  "narrow",
		About: "a unique int64 key in random order, an int64 below 1,000, a random double",
		Spec: minikudu.TableSpec{Key: []string{"id"},
			Columns: []minikudu.Column{column("id", schema.Int64), column("counter", schema.Int64), column("reading", schema.Double)}},
		Sums: []string{"counter", "reading"}, Random: true, gap: 1,
		near: func(i, n int64) bool { return float64(order.at(i)) <= float64(order.size())*nearRows/float64(n) },
		row: func(i int64, row []cell) {
			h := mix(uint64(i))
			row[0].n, row[1].n, row[2].f = 2*order.at(i), int64(h%1000), float64(mix(h)>>11)/(1<<53)
		},
	}
}

const (
	cpuHosts = 100
	cpuStep  = 10_000_000 // microseconds between rows of a host
	cpuBlock = 64         // rows of a host from one turn of a metric to the next
)

var (
	cpuStart   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	cpuMetrics = []string{"user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"}
)

// cpu is ten metrics of hosts in order of time. A metric goes straight from one random
// value to the next, with noise, so that each row is known without those before it.
func cpu() *Workload {
	w := &Workload{
		Name:  "cpu",
		About: "ten metrics from 0 to 100 of 100 hosts every 10 seconds, in order of time; key (hostname, ts)",
		Spec: minikudu.TableSpec{Key: []string{"hostname", "ts"},
			Columns: []minikudu.Column{column("hostname", schema.String), column("ts", schema.UnixtimeMicros)}},
		Sums: []string{"usage_user", "usage_guest_nice"}, gap: cpuStep / 2,
		near: func(i, n int64) bool { return i >= n-nearRows },
	}
	for _, m := range cpuMetrics {
		w.Spec.Columns = append(w.Spec.Columns, column("usage_"+m, schema.Int64))
	}
	hosts := make([][]byte, cpuHosts)
	for h := range hosts {
		hosts[h] = fmt.Appendf(nil, "host_%03d", h)
	}
	w.row = func(i int64, row []cell) {
		host, tick := i%cpuHosts, i/cpuHosts
		row[0].text, row[1].n = hosts[host], cpuStart+tick*cpuStep
		noise := mix(uint64(i))
		for m := range cpuMetrics {
			row[2+m].n = cpuMetric(host*int64(len(cpuMetrics))+int64(m), tick, int64(noise%3)-1)
			noise /= 3
		}
	}
	return w
}

func cpuMetric(series, tick, noise int64) int64 {
	turn := func(block int64) int64 { return int64(mix(uint64(series<<40|block)) % 101) }
	from, to := turn(tick/cpuBlock), turn(tick/cpuBlock+1)
	return min(100, max(0, from+(to-from)*(tick%cpuBlock)/cpuBlock+noise))
}
