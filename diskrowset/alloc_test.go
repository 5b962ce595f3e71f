package diskrowset

import (
	"testing"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/vector"
)

func TestGetDoesNotAllocate(t *testing.T) {
	src := metrics(t, 20000)
	r := newStore(t, src.schema).one(src)
	columns := []int{0, 1, 2, 3, 4}
	row := make([]*vector.Vector, len(columns))
	for i := range row {
		row[i] = vector.New(src.schema.Column(i).Kind(), 1)
	}
	keys, found, which := src.lookupKeys(), make([]rowset.Found, src.Rows()), []int32{0}
	n := testing.AllocsPerRun(1000, func() {
		which[0] = (which[0] + 7919) % int32(src.Rows())
		if err := r.Lookup(bg, keys, which, found); err != nil {
			t.Fatal(err)
		}
		for i, v := range row {
			v.Reset(src.schema.Column(i).Kind())
		}
		if err := r.ReadRow(bg, found[which[0]].Row, mvcc.Max, columns, row); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 && !raceEnabled {
		t.Errorf("%v allocations for a get", n)
	}
}

func TestSeekDoesNotAllocate(t *testing.T) {
	for name, src := range tables(t) {
		r := newStore(t, src.schema).one(src)
		keys, i := src.lookupKeys(), 0
		n := testing.AllocsPerRun(1000, func() {
			i = (i + 7919) % src.Rows()
			if row, err := r.seek(bg, keys.At(i)); err != nil || row != i {
				t.Fatalf("%s: row %d, want %d, %v", name, row, i, err)
			}
		})
		if n > 0 && !raceEnabled {
			t.Errorf("%s: %v allocations for a seek", name, n)
		}
	}
}

func TestScanAllocatesPerScanNotPerRow(t *testing.T) {
	src := metrics(t, 200000)
	st := newStore(t, src.schema)
	r := st.one(src, func(o *WriterOptions) { o.Horizon = mvcc.Max })
	spec := query{columns: []string{"i1", "d1"}, where: predicate.Lt("i0", 500)}.bind(t, src.schema)
	scan := func() { eachBatch(t, r, spec, func(*rowset.Batch) {}) }
	if n := testing.AllocsPerRun(20, scan); n > 60 {
		t.Errorf("%v allocations for a scan of 200,000 rows", n)
	}
}
