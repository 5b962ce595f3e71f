package tablet

import (
	"slices"
	"testing"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// set commits an update of the keys.
func (s *store) set(value int64, keys ...int64) {
	s.Helper()
	values := vector.New(schema.KindInt64, len(keys))
	rows := make([]int32, len(keys))
	for i := range keys {
		vector.AppendFixed(values, value)
		rows[i] = int32(i)
	}
	m, err := s.t.Plan(bg, []Group{{Kind: Update, Columns: []int{0, 1}, Rows: rows,
		Values: []*vector.Vector{vector.FromFixed(schema.KindInt64, slices.Clone(keys), nil), values}}}, 1000, nil)
	if err != nil {
		s.Fatal(err)
	}
	defer m.Release()
	if m.Counts.Updated != int64(len(keys)) {
		s.Fatalf("%+v", m.Counts)
	}
	m.Pin()
	s.now++
	if _, err := m.Apply(s.now); err != nil {
		s.Fatal(err)
	}
}

// values returns the values at a time, in order of key.
func (s *store) values(at mvcc.Timestamp) (out []int64) {
	s.Helper()
	it, err := s.t.Scan(bg, &rowset.ScanSpec{Schema: s.state.Schema, Time: mvcc.At(at), Order: rowset.KeyOrder, Columns: []int{1}, Stats: rowset.NewStats(2)})
	if err != nil {
		s.Fatal(err)
	}
	defer it.Close()
	for {
		b, err := it.Next(bg)
		if err != nil {
			s.Fatal(err)
		}
		if b == nil {
			return out
		}
		for _, i := range b.AppendSelected(nil) {
			out = append(out, b.Columns[0].Int64s()[i])
		}
	}
}

// undoFiles returns the number of UNDO files of all rowsets and their bytes.
func (s *store) undoFiles() (n int, bytes int64) {
	for _, rs := range s.t.RowSets() {
		for _, d := range rs.Meta().Undo {
			n, bytes = n+1, bytes+d.Section.Length
		}
	}
	return n, bytes
}

// dropHistory drops what has expired of all rowsets and returns its bytes.
func (s *store) dropHistory() (bytes int64) {
	s.Helper()
	for _, rs := range s.t.RowSets() {
		n, err := s.t.DropHistory(bg, rs)
		if err != nil {
			s.Fatal(err)
		}
		bytes += n
	}
	return bytes
}

// UNDO files go when the horizon has passed them, oldest first, and nothing else changes.
func TestItem57ExpiredUndoFilesAreDropped(t *testing.T) {
	s := newStore(t, false)
	s.keep = 1
	for k := range int64(3) {
		s.insert(10*k, 10*k+1)
		s.flush()
	}
	var rounds []mvcc.Timestamp
	all := []int64{0, 1, 10, 11, 20, 21}
	for round := range int64(5) {
		s.set(round, all...)
		rounds = append(rounds, s.now)
		for _, rs := range s.t.RowSets() {
			if _, err := s.t.FlushDeltas(bg, rs); err != nil {
				t.Fatal(err)
			}
			if _, err := s.t.CompactMajor(bg, rs, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(from int) {
		t.Helper()
		for i := from; i < 5; i++ {
			want := slices.Repeat([]int64{int64(i)}, 6)
			if got := s.values(rounds[i]); !slices.Equal(got, want) {
				t.Fatalf("round %d: %v", i, got)
			}
		}
		for _, rs := range s.t.RowSets() {
			if n := len(rs.Meta().Redo); n != 0 {
				t.Fatalf("%d REDO files", n)
			}
		}
	}
	check(0)
	if n, _ := s.undoFiles(); n != 15 {
		t.Fatalf("%d UNDO files", n)
	}
	files, err := s.fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	if n := s.dropHistory(); n != 0 {
		t.Fatalf("%d bytes dropped that have not expired", n)
	}
	s.keep = rounds[2] - 1
	_, before := s.undoFiles()
	dropped := s.dropHistory()
	if n, after := s.undoFiles(); n != 9 || dropped == 0 || before-after != dropped {
		t.Fatalf("%d UNDO files, %d bytes before, %d after, %d dropped", n, before, after, dropped)
	}
	check(1)
	s.t.Close()
	s.open()
	check(1)
	s.keep = s.now
	_, before = s.undoFiles()
	if n := s.dropHistory(); n != before {
		t.Fatalf("%d bytes dropped of %d", n, before)
	}
	left, err := s.fs.List("data")
	if n, _ := s.undoFiles(); err != nil || n != 0 || len(files)-len(left) != 15 {
		t.Fatalf("%d UNDO files, files %v, were %v, %v", n, left, files, err)
	}
	check(4)
	if n := s.dropHistory(); n != 0 || s.t.Horizon() != s.now {
		t.Fatalf("%d more bytes, horizon %d at %d", n, s.t.Horizon(), s.now)
	}
}
