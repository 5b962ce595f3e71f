package encoding

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// habitPage encodes the numbers, as many as fit a page, and reports in what way, and whether it was
// taken up without trying others.
func habitPage(t *testing.T, h *Habit, vals []int64) (way, bool) {
	t.Helper()
	e, err := NewEncoder(EncoderOptions{Format: Format{Kind: schema.KindInt64, Encoding: schema.EncodingPaged}, Habit: h})
	if err != nil {
		t.Fatal(err)
	}
	v := vector.New(schema.KindInt64, len(vals))
	for _, n := range vals {
		vector.AppendFixed(v, n)
	}
	n, err := e.Add(v, 0, v.Len())
	if err != nil {
		t.Fatal(err)
	}
	v = v.Slice(0, n)
	got, err := decodeAsVector(e.Finish(nil), v.Len())
	if err != nil || !vector.Equal(got, v) {
		t.Fatalf("decoded %d values: %v", got.Len(), err)
	}
	return e.page.chosen, e.page.age > 0
}

func decodeAsVector(block []byte, rows int) (*vector.Vector, error) {
	v := new(vector.Vector)
	_, err := Decode(v, block, Format{Kind: schema.KindInt64, Encoding: schema.EncodingPaged}, nil, Limits{Rows: rows})
	return v, err
}

func TestHabit(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	walk, noise := make([]int64, 20000), make([]int64, 20000)
	for i := range walk {
		walk[i] = int64(1000*i + rnd.IntN(200))
		noise[i] = int64(rnd.Uint64())
	}
	var h Habit
	first, kept := habitPage(t, &h, walk)
	if kept || first.encoding != schema.EncodingDelta {
		t.Fatalf("first page: %v, kept %t", first, kept)
	}
	if w, kept := habitPage(t, &h, walk); w != first || !kept {
		t.Errorf("second page: %v, kept %t", w, kept)
	}
	if w, kept := habitPage(t, nil, walk); w != first || kept {
		t.Errorf("without a habit: %v, kept %t", w, kept)
	}
	// A page that is worse is looked at anew, and then the page after it.
	if w, kept := habitPage(t, &h, noise); w == first || kept {
		t.Errorf("noise: %v, kept %t", w, kept)
	}
	if w, kept := habitPage(t, &h, noise); w == first || !kept {
		t.Errorf("noise again: %v, kept %t", w, kept)
	}
	// Nothing is learnt from a few values.
	h = Habit{}
	habitPage(t, &h, walk[:50])
	if _, kept := habitPage(t, &h, walk); kept {
		t.Error("50 values are a habit")
	}
	// It is looked into again now and then.
	tries := 0
	for range 100 {
		if _, kept := habitPage(t, &h, walk); !kept {
			tries++
		}
	}
	if tries == 0 || tries > 5 {
		t.Errorf("tried %d times in 100 pages", tries)
	}
}

// Encoders may share a habit.
func TestHabitIsShared(t *testing.T) {
	var h Habit
	vals := make([]int64, 10000)
	for i := range vals {
		vals[i] = int64(i * i)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				habitPage(t, &h, vals)
			}
		})
	}
	all.Wait()
}
