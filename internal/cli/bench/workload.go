package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Workload is a table and the rows that come to it.
type Workload struct {
	Name  string
	About string
	Spec  minikudu.TableSpec

	rowBytes int           // about, of a row's inputs in memory
	update   string        // the int64 column that updates set, below updateBelow
	filter   minikudu.Expr // of op count
	// next returns the number of the first row after those that the table has.
	next func(context.Context, *minikudu.Table) (int64, error)
	// rows returns a function that makes one of n rows from the given number after another.
	rows func(first, n int64) func(row []cell)
}

const updateBelow = 1000

// cell is one value, in the field of its column's kind.
type cell struct {
	n    int64
	f    float64
	text string
}

// Workloads returns the workloads.
func Workloads() []*Workload { return []*Workload{cpu(), eventindex(), narrow()} }

// TableName is the name of the table that the workload makes.
func (w *Workload) TableName() string { return "bench_" + w.Name }

// Fits reports whether a table has the columns and the key of the workload.
func (w *Workload) Fits(t *minikudu.Table) bool {
	sch := t.Schema()
	if sch.Len() != len(w.Spec.Columns) || sch.NumKey() != len(w.Spec.Key) {
		return false
	}
	for i := range w.Spec.Columns { // key columns are first in both
		if c := sch.Column(i); c.Name != w.Spec.Columns[i].Name || c.Type != w.Spec.Columns[i].Type || c.Nullable {
			return false
		}
	}
	return true
}

// make makes n rows, column by column.
func (w *Workload) make(rows func(row []cell), n int64) ([]*vector.Vector, error) {
	columns := w.vectors(len(w.Spec.Columns), int(n))
	row := make([]cell, len(columns))
	var text []byte
	for range n {
		rows(row)
		for i, c := range row {
			switch columns[i].Kind() {
			case schema.KindInt64:
				vector.AppendFixed(columns[i], c.n)
			case schema.KindFloat64:
				vector.AppendFixed(columns[i], c.f)
			default:
				text = append(text[:0], c.text...)
				if err := columns[i].AppendBytes(text); err != nil {
					return nil, err
				}
			}
		}
	}
	return columns, nil
}

// vectors returns empty vectors for the first columns.
func (w *Workload) vectors(columns, rows int) []*vector.Vector {
	out := make([]*vector.Vector, columns)
	for i := range out {
		out[i] = vector.New(w.Spec.Columns[i].Kind(), rows)
	}
	return out
}

func (w *Workload) names(columns int) []string {
	names := make([]string, columns)
	for i := range names {
		names[i] = w.Spec.Columns[i].Name
	}
	return names
}

func column(name string, t schema.Type) minikudu.Column {
	return minikudu.Column{Name: name, Type: t}
}

func seeded(stream, first int64) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(stream), uint64(first)))
}

// last returns a cell of the last row in order of key, false when there is none.
func last(ctx context.Context, t *minikudu.Table, name string) (n int64, found bool, err error) {
	for b, err := range t.Scan(ctx, minikudu.Query{Columns: []string{name}, Order: minikudu.KeyReverse, Limit: 1}) {
		if err != nil {
			return 0, false, err
		}
		n, found = b.Column(0).Value(0).Int(), true
	}
	return n, found, nil
}

// narrow is rows of three numbers whose keys come in random order.
func narrow() *Workload {
	return &Workload{
		Name:  "narrow",
		About: "an int64 key in random order, an int64 and a double",
		Spec: minikudu.TableSpec{Key: []string{"id"},
			Columns: []minikudu.Column{column("id", schema.Int64), column("counter", schema.Int64), column("reading", schema.Double)}},
		rowBytes: 64, update: "counter", filter: predicate.Gt("counter", 900),
		next: func(ctx context.Context, t *minikudu.Table) (int64, error) {
			id, found, err := last(ctx, t, "id")
			if err != nil || !found {
				return 0, err
			}
			return id/2 + 1, nil
		},
		rows: func(first, n int64) func([]cell) {
			r, i := seeded(1, first), int64(0)
			mix := newPermutation(n, first)
			return func(row []cell) {
				row[0].n, row[1].n, row[2].f = 2*(first+mix.at(i)), r.Int64N(1000), r.Float64()
				i++
			}
		},
	}
}

// permutation is a random order of the numbers below n that needs no memory: a Feistel
// network over the next power of four, applied until the result is below n.
type permutation struct {
	n    uint64
	half uint
	keys [4]uint64
}

func newPermutation(n, seed int64) permutation {
	p, r := permutation{n: uint64(n), half: 1}, seeded(4, seed)
	for p.n > 1<<(2*p.half) {
		p.half++
	}
	for i := range p.keys {
		p.keys[i] = r.Uint64()
	}
	return p
}

func (p *permutation) at(i int64) int64 {
	mask := uint64(1)<<p.half - 1
	for x := uint64(i); ; {
		for _, k := range p.keys {
			left, right := x>>p.half, x&mask
			h := (right ^ k) * 0x9e3779b97f4a7c15
			x = right<<p.half | left ^ (h^h>>29)*0xbf58476d1ce4e5b9>>32&mask
		}
		if x < p.n {
			return int64(x)
		}
	}
}

const (
	cpuHosts = 100
	cpuStep  = 10_000_000 // microseconds between rows of a host
)

var cpuStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// cpu is metrics like those of the cpu-only case of the Time Series Benchmark Suite:
// random walks from 0 to 100.
func cpu() *Workload {
	w := &Workload{
		Name:  "cpu",
		About: "ten metrics of 100 hosts every 10 seconds, in order of time; key (hostname, ts)",
		Spec: minikudu.TableSpec{Key: []string{"hostname", "ts"},
			Columns: []minikudu.Column{column("hostname", schema.String), column("ts", schema.UnixtimeMicros)}},
		rowBytes: 110, update: "usage_user", filter: predicate.Gt("usage_system", 90),
		next: nextCPU, rows: cpuRows,
	}
	for _, m := range []string{"user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"} {
		w.Spec.Columns = append(w.Spec.Columns, column("usage_"+m, schema.Int64))
	}
	return w
}

// nextCPU begins with the first host at the time after the newest.
func nextCPU(ctx context.Context, t *minikudu.Table) (int64, error) {
	b, err := t.Aggregate(ctx, minikudu.Query{}, nil, minikudu.Max("ts"))
	if err != nil || b.Column(0).IsNull(0) {
		return 0, err
	}
	return ((b.Column(0).Value(0).Int()-cpuStart)/cpuStep + 1) * cpuHosts, nil
}

func cpuRows(first, _ int64) func([]cell) {
	r := seeded(2, first)
	hosts := make([]string, cpuHosts)
	metrics := make([][10]int64, cpuHosts)
	for h := range hosts {
		hosts[h] = fmt.Sprintf("host_%03d", h)
		for m := range metrics[h] {
			metrics[h][m] = r.Int64N(101)
		}
	}
	return func(row []cell) {
		h := first % cpuHosts
		row[0].text, row[1].n = hosts[h], cpuStart+first/cpuHosts*cpuStep
		for m := range metrics[h] {
			v := &metrics[h][m]
			*v = min(100, max(0, *v+r.Int64N(5)-2))
			row[2+m].n = *v
		}
		first++
	}
}
