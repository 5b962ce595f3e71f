package mvcc

import (
	"errors"
	"sync"
	"testing"
)

func TestReadersOldest(t *testing.T) {
	var r Readers
	begin := func(ts, oldest Timestamp) {
		t.Helper()
		got, err := r.Begin(func(o Timestamp) (Timestamp, error) {
			if o != oldest {
				t.Errorf("the oldest is %d, want %d", o, oldest)
			}
			return ts, nil
		})
		if err != nil || got != ts {
			t.Errorf("%d, %v, want %d", got, err, ts)
		}
	}
	begin(20, Max)
	begin(10, 20)
	begin(10, 10)
	refused := errors.New("refused")
	if _, err := r.Begin(func(Timestamp) (Timestamp, error) { return 1, refused }); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	for _, want := range []Timestamp{10, 20, Max} {
		r.End(map[Timestamp]Timestamp{10: 10, 20: 10, Max: 20}[want])
		if got := r.Oldest(); got != want {
			t.Errorf("the oldest is %d, want %d", got, want)
		}
	}
}

// No snapshot is registered while a horizon is computed, so that none is below a horizon
// that was computed without it.
func TestR8Trap1NoReaderBeginsWhileAHorizonIsComputed(t *testing.T) {
	var r Readers
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		var now, horizon Timestamp = 10, 0
		var both sync.WaitGroup
		var began, below Timestamp
		both.Go(func() {
			r.Horizon(func(oldest Timestamp) { horizon = min(oldest, now) })
		})
		both.Go(func() {
			began, _ = r.Begin(func(Timestamp) (Timestamp, error) {
				below = horizon // what a reader may not be below
				return 5, nil
			})
		})
		both.Wait()
		if below == 0 && horizon > began {
			t.Fatalf("a horizon of %d over a reader at %d that was there before", horizon, began)
		}
		r.End(began)
	}
}
