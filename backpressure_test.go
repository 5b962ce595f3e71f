package minikudu_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// TestBackPressureIsSmooth loads at full speed onto a disk that is slowed five
// times, with memory for few flushes: writers must settle at the disk's pace instead
// of stopping now and then, and unflushed rows stay within their share.
func TestBackPressureIsSmooth(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	disk := errorfs.Disk{Latency: 50 * time.Microsecond, SyncLatency: 200 * time.Microsecond, BytesPerSecond: 300 << 20}
	for _, c := range []struct {
		name       string
		durability minikudu.Durability
		workers    int
	}{
		{"sync", minikudu.Sync, -1},
		{"none", minikudu.NoSync, -1},
		{"none, compaction", minikudu.NoSync, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			slow := errorfs.Wrap(vfs.NewMem())
			slow.SetHook(errorfs.Slow(disk.Slower(5)))
			db := mustOpen(t, "db", &minikudu.Options{FS: slow, Durability: c.durability, MemoryBudget: 16 << 20, CompactionWorkers: c.workers})
			defer mustClose(t, db)
			tab, names := benchTable(t, db)
			var took []time.Duration
			r := rand.New(rand.NewPCG(1, 2))
			for i := range 500 {
				cols := metricsBatch(r, i*benchBatch)
				began := time.Now()
				commitColumns(t, db, tab, names, cols)
				took = append(took, time.Since(began))
				if m := db.Metrics(); m.MemoryBytes > m.MemoryLimit+1<<20 {
					t.Fatalf("%d bytes of unflushed rows, limit %d", m.MemoryBytes, m.MemoryLimit)
				}
			}
			slices.Sort(took)
			median, p99 := took[len(took)/2], took[len(took)*99/100]
			m := db.Metrics()
			t.Logf("median %v, p99 %v, max %v, %d flushes, %d stalls of %v", median, p99, took[len(took)-1], m.Flushes, m.Stalls, m.StallTime)
			if p99 > 10*median {
				t.Errorf("p99 of a commit is %v, over ten times the median %v", p99, median)
			}
			if m.Flushes < 10 {
				t.Errorf("only %d flushes: the test proves nothing", m.Flushes)
			}
		})
	}
}

func commitColumns(t testing.TB, db *minikudu.DB, tab *minikudu.Table, names []string, cols []*vector.Vector) {
	t.Helper()
	var b minikudu.WriteBatch
	if err := b.InsertColumns(tab, names, cols); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Commit(ctx, &b, nil); err != nil {
		t.Fatal(err)
	}
}
