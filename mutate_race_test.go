package minikudu_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/vfs"
)

// churn is writers, readers and compactions of one table at a time. Rows below lasting
// are always there; each pair of them has the same number at any moment. The others
// come and go. The text of a row always says its number.
type churn struct {
	db   *minikudu.DB
	tab  *minikudu.Table
	stop atomic.Bool
	next atomic.Int64
}

const lasting, passing, churnWriters = 400, 200, 3

func churnText(n int64) string { return fmt.Sprint("v", n) }

// write changes the rows of writer w.
func (c *churn) write(w int) error {
	rnd := rand.New(rand.NewPCG(uint64(w), 1))
	for !c.stop.Load() {
		var b minikudu.WriteBatch
		for range 1 + rnd.IntN(4) {
			n := c.next.Add(1)
			k := 2 * (rnd.IntN(lasting/2/churnWriters)*churnWriters + w)
			for _, k := range []int{k, k + 1} {
				switch rnd.IntN(3) {
				case 0: // the whole row at once, deleted between
					b.Add(c.tab, minikudu.OpDelete, map[string]any{"k": k})
					b.Insert(c.tab, k, n, churnText(n))
				default:
					b.Add(c.tab, minikudu.OpUpdate, map[string]any{"k": k, "n": n, "s": churnText(n)})
				}
			}
			k = lasting + rnd.IntN(passing/churnWriters)*churnWriters + w
			if rnd.IntN(2) == 0 {
				b.Add(c.tab, minikudu.OpDeleteIgnore, map[string]any{"k": k})
			} else {
				b.Upsert(c.tab, k, n, churnText(n))
			}
		}
		if _, err := c.db.Commit(ctx, &b, nil); err != nil {
			return err
		}
	}
	return nil
}

// get looks for rows; what it sees of a row never goes back in time.
func (c *churn) get(seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, 2))
	seen := map[int]int64{}
	for !c.stop.Load() {
		k := rnd.IntN(lasting + passing)
		r, err := c.tab.Get(ctx, k)
		if errors.Is(err, minikudu.ErrNotFound) && k >= lasting {
			continue
		}
		if err != nil {
			return fmt.Errorf("get %d: %w", k, err)
		}
		n := r.Value("n").(int64)
		if r.Value("s") != churnText(n) || n < seen[k] {
			return fmt.Errorf("get %d: %v %v after %d", k, n, r.Value("s"), seen[k])
		}
		seen[k] = n
	}
	return nil
}

// scan reads whole snapshots.
func (c *churn) scan(order minikudu.Order) error {
	for !c.stop.Load() {
		got := make(map[int]int64, lasting)
		for b, err := range c.tab.Scan(ctx, minikudu.Query{Order: order}) {
			if err != nil {
				return err
			}
			for i := range b.Len() {
				k, row := int(b.Column(0).Int32s()[i]), b.Row(i)
				n := row[1].(int64)
				if _, twice := got[k]; twice || row[2] != churnText(n) {
					return fmt.Errorf("scan: key %d, twice %v: %v", k, twice, row)
				}
				got[k] = n
			}
		}
		for k := range lasting {
			if n, ok := got[k]; !ok || n != got[k^1] {
				return fmt.Errorf("scan: key %d there %v with %d, its other half with %d", k, ok, n, got[k^1])
			}
		}
		a, err := c.tab.Aggregate(ctx, minikudu.Query{Where: predicate.Lt("k", lasting)}, nil, minikudu.Count(), minikudu.Sum("n"))
		if err != nil {
			return err
		}
		if n, sum := a.Column(0).Int64s()[0], a.Column(1).Int64s()[0]; n != lasting || sum%2 != 0 {
			return fmt.Errorf("aggregate: %d rows, sum %d", n, sum)
		}
	}
	return nil
}

// compact flushes and compacts without end.
func (c *churn) compact() error {
	for i := 0; !c.stop.Load(); i++ {
		if i%3 > 0 {
			if err := c.tab.Flush(ctx); err != nil {
				return err
			}
			continue
		}
		if _, err := c.tab.Compact(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Gets and scans beside writers, flushes and compactions: no live key is missed, no row
// is torn, no snapshot has half of a batch, at any step of a flush.
func TestC43ReadersBesideChangesAndCompactions(t *testing.T) {
	mem := vfs.NewMem()
	db := mustOpen(t, "store", &minikudu.Options{FS: mem, Durability: minikudu.NoSync, RowSetBytes: 64 << 10, FlushBytes: 256 << 10})
	tab, err := db.CreateTable(ctx, "a", changeSpec())
	fatal(t, err)
	c := &churn{db: db, tab: tab}
	var b minikudu.WriteBatch
	for k := range lasting {
		b.Insert(tab, k, 0, churnText(0))
	}
	_, err = db.Commit(ctx, &b, nil)
	fatal(t, err)
	var wg sync.WaitGroup
	run := func(f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				c.stop.Store(true)
				t.Error(err)
			}
		})
	}
	for w := range churnWriters {
		run(func() error { return c.write(w) })
	}
	run(func() error { return c.get(1) })
	run(func() error { return c.get(2) })
	run(func() error { return c.scan(minikudu.Unordered) })
	run(func() error { return c.scan(minikudu.KeyOrder) })
	run(c.compact)
	run(func() error {
		for !c.stop.Load() {
			if err := checkVerify(db); err != nil {
				return err
			}
			if _, err := tab.Stats(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	length := time.Second
	if full() {
		length = 10 * time.Second
	}
	for end := time.Now().Add(length); !c.stop.Load() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	c.stop.Store(true)
	wg.Wait()
	m := db.Metrics()
	t.Logf("%d commits, %d flushes, %d of changes, %d compactions", m.Commits, m.Flushes, m.DeltaFlushes, m.Compactions)
	want, err := readImage(tab)
	fatal(t, err)
	fatal(t, checkVerify(db))
	killed := instant{"", mem.KillClone(), fixed(image{"a": want}).span(true)}
	mustClose(t, db)
	fatal(t, killed.recover(&minikudu.Options{}))
}
