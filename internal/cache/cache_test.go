package cache

import (
	"math/rand/v2"
	"sync"
	"testing"
)

type page struct{ n, size int }

func (p *page) Size() int { return p.size }

func get(c *Cache[*page], s *Slot[*page], n, size int) (hit bool) {
	p, ok := s.Get()
	if !ok {
		p = c.Put(s, &page{n, size})
	}
	if p.n != n {
		panic("a slot returned another page")
	}
	return ok
}

func TestBudgetIsKept(t *testing.T) {
	c := New[*page](1000)
	slots := make([]Slot[*page], 500)
	for i := range 5000 {
		get(c, &slots[i%500], i%500, 1+i%20)
		if s := c.Stats(); s.Bytes > 1000 {
			t.Fatalf("%d bytes cached, budget 1000", s.Bytes)
		}
	}
	if c.Stats().Evictions == 0 {
		t.Fatal("nothing was evicted")
	}
	big := c.Put(&slots[0], &page{0, 600})
	if big.size != 600 && big.size > 20 {
		t.Fatal("a page over half the budget must be handed back uncached")
	}
	none := New[*page](0)
	none.Put(&slots[1], &page{1, 1})
	if none.Stats().Pages != 0 {
		t.Fatal("a cache without budget kept a page")
	}
}

func TestScanDoesNotPushOutHotPages(t *testing.T) {
	c := New[*page](100)
	hot, cold := make([]Slot[*page], 50), make([]Slot[*page], 10000)
	for range 5 {
		for i := range hot {
			get(c, &hot[i], i, 1)
		}
	}
	hits, tries := 0, 0
	for i := range cold {
		get(c, &cold[i], i, 1)
		if i%20 == 0 {
			tries++
			if get(c, &hot[i/20%50], i/20%50, 1) {
				hits++
			}
		}
	}
	if hits*10 < tries*9 {
		t.Fatalf("%d of %d hot reads hit during a scan of 100 times the budget", hits, tries)
	}
}

func TestForgetEmptiesSlots(t *testing.T) {
	c := New[*page](100)
	slots := make([]Slot[*page], 10)
	for i := range slots {
		get(c, &slots[i], i, 5)
	}
	c.Forget(slots)
	for i := range slots {
		if _, ok := slots[i].Get(); ok {
			t.Fatal("a forgotten slot still holds its page")
		}
	}
	if s := c.Stats(); s.Bytes != 0 || s.Pages != 0 {
		t.Fatalf("%d pages of %d bytes left", s.Pages, s.Bytes)
	}
	more := make([]Slot[*page], 100)
	for i := range more {
		get(c, &more[i], i, 5)
	}
	if s := c.Stats(); s.Bytes > 100 || s.Bytes < 50 {
		t.Fatalf("%d bytes after turnover, budget 100", s.Bytes)
	}
}

func TestConcurrentUse(t *testing.T) {
	c := New[*page](300)
	slots := make([]Slot[*page], 100)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			for range 20000 {
				i := r.IntN(100)
				get(c, &slots[i], i, 1+i%10)
				if r.IntN(500) == 0 {
					c.Forget(slots[i : i+1])
				}
			}
		})
	}
	wg.Wait()
	s := c.Stats()
	if s.Bytes > 300 {
		t.Fatalf("%d bytes, budget 300", s.Bytes)
	}
	var bytes, pages int64
	for i := range slots {
		if p := held(&slots[i]); p != nil {
			bytes, pages = bytes+int64(p.size), pages+1
		}
	}
	if s.Bytes != bytes || s.Pages != pages {
		t.Fatalf("%d pages of %d bytes, want %d of %d", s.Pages, s.Bytes, pages, bytes)
	}
	c.Forget(slots)
	if s := c.Stats(); s.Bytes != 0 || s.Pages != 0 || c.mu.smallBytes != 0 {
		t.Fatalf("%+v after all were forgotten", s)
	}
}

func TestHitDoesNotAllocate(t *testing.T) {
	c := New[*page](100)
	var s Slot[*page]
	get(c, &s, 1, 1)
	if n := testing.AllocsPerRun(100, func() { s.Get() }); n != 0 {
		t.Fatalf("%v allocations per hit", n)
	}
}

func BenchmarkHit(b *testing.B) {
	c := New[*page](100)
	var s Slot[*page]
	get(c, &s, 1, 1)
	for b.Loop() {
		s.Get()
	}
}

func TestReplace(t *testing.T) {
	c := New[*page](100)
	var s Slot[*page]
	first, second, third := &page{1, 10}, &page{1, 40}, &page{1, 20}
	c.Put(&s, first)
	if c.Replace(&s, first, &page{1, 60}); held(&s) != first {
		t.Fatal("a page too large to be kept replaced one")
	}
	if got := c.Replace(&s, first, second); got != second || held(&s) != second {
		t.Fatal("the page was not replaced")
	}
	if got := c.Replace(&s, first, third); got != second || held(&s) != second {
		t.Fatal("a page was replaced that was not the one to replace")
	}
	if s := c.Stats(); s.Bytes != 40 || s.Pages != 1 || s.Evictions > 0 {
		t.Fatalf("%+v", s)
	}
	more := make([]Slot[*page], 100)
	for i := range more {
		get(c, &more[i], i, 5)
	}
	if s := c.Stats(); s.Bytes > 100 || s.Evictions == 0 {
		t.Fatalf("%+v", s)
	}
}

func held(s *Slot[*page]) *page {
	p, _ := s.Get()
	return p
}

// Pages that come and are forgotten, over and over, leave no trace.
func TestForgottenPagesTakeNoRoom(t *testing.T) {
	c := New[*page](100)
	var kept Slot[*page]
	get(c, &kept, 7, 1)
	for i := range 10000 {
		slots := make([]Slot[*page], 3)
		for k := range slots {
			get(c, &slots[k], i, 1)
		}
		c.Forget(slots)
	}
	if n := len(c.mu.small.ring) + len(c.mu.main.ring); n > 64 || held(&kept) == nil || c.Stats().Evictions > 0 {
		t.Fatalf("room for %d pages, %d evictions", n, c.Stats().Evictions)
	}
}
