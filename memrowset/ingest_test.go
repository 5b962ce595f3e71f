package memrowset

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

type mvccMark = atomic.Uint64

const ingestRows = 1000 // rows of a batch

// ingest makes batches of (host, ts) keys with ten numbers: in each, every host reports
// in turn, so that times ascend from batch to batch.
type ingest struct {
	schema *schema.Schema
	hosts  []string
	next   int
	ts     mvcc.Timestamp
}

func newIngest(t testing.TB, hosts int) *ingest {
	cols := []schema.Column{{Name: "host", Type: schema.String}, {Name: "ts", Type: schema.UnixtimeMicros}}
	for i := range 10 {
		typ := schema.Double
		if i%2 == 0 {
			typ = schema.Int64
		}
		cols = append(cols, schema.Column{Name: fmt.Sprintf("v%d", i), Type: typ})
	}
	g := &ingest{schema: newSchema(t, 2, cols...)}
	for i := range hosts {
		g.hosts = append(g.hosts, fmt.Sprintf("host-%04d", i))
	}
	return g
}

// row returns row i as values.
func (g *ingest) row(i int) row {
	r := row{str(g.hosts[i%len(g.hosts)]), schema.IntValue(schema.KindInt64, 1_700_000_000_000_000+int64(i/len(g.hosts))*1_000_000)}
	for c := range 10 {
		if c%2 == 0 {
			r = append(r, i64(i*c))
		} else {
			r = append(r, schema.Float64Value(float64(i)/float64(c)))
		}
	}
	return r
}

// batch returns the next rows and their keys.
func (g *ingest) batch() ([]*vector.Vector, *rowset.Keys) {
	cols := make([]*vector.Vector, g.schema.Len())
	for c := range cols {
		cols[c] = vector.New(g.schema.Column(c).Kind(), ingestRows)
	}
	// Host by host, so that the rows are in key order.
	per := ingestRows / len(g.hosts)
	for h := range g.hosts {
		for i := range per {
			r := g.row((g.next/len(g.hosts)+i)*len(g.hosts) + h)
			for c := range cols {
				if err := cols[c].Append(r[c]); err != nil {
					panic(err)
				}
			}
		}
	}
	g.next += per * len(g.hosts)
	keys := &rowset.Keys{Encoded: vector.New(schema.KindBytes, ingestRows), Columns: cols[:2]}
	if err := encoding.AppendKeys(keys.Encoded, cols[:2], 0, per*len(g.hosts)); err != nil {
		panic(err)
	}
	return cols, keys
}

func (g *ingest) append(t testing.TB, m *MemRowSet) {
	cols, keys := g.batch()
	g.ts++
	if _, err := m.Append(g.ts, cols, keys, nil); err != nil {
		t.Fatal(err)
	}
}
