package diskrowset

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/minikudu/minikudu/schema"
)

// TestMetaKeepsNothingAlive checks that what a store keeps of a written file does not
// keep its source in memory.
func TestMetaKeepsNothingAlive(t *testing.T) {
	s := newSchema(t, 1, col("k", schema.Int32))
	st := newStore(t, s)
	gone := make(chan struct{})
	written := func() []Written {
		src := newRows(t, s, [][]schema.Value{{i32(1)}, {i32(2)}})
		runtime.AddCleanup(src, func(c chan struct{}) { close(c) }, gone)
		w, err := Write(context.Background(), src, st.options())
		must(t, err)
		return w
	}()
	for range 100 {
		runtime.GC()
		select {
		case <-gone:
			runtime.KeepAlive(written)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("the source is kept alive by the description of its file")
}
