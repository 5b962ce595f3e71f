package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/contrib/benchmarks/internal/show"
	"github.com/minikudu/minikudu/schema"
)

const (
	coldReads = 2000
	hotRows   = 50_000
)

// measureOpen is the phase that opens a store and closes it.
func (s *Settings) measureOpen(j *journal) (err error) {
	debug.SetMemoryLimit(s.Memory)
	empty, err := os.MkdirTemp("", "growth-empty")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(empty)) }()
	o, readOnly := &Opened{}, s.options()
	readOnly.ReadOnly = true
	for _, m := range []struct {
		dir     string
		options *minikudu.Options
		took    *float64 // nil: not measured
	}{
		{empty, s.options(), nil}, // makes it
		{empty, readOnly, nil},    // the first of a process pays for what all share
		{empty, readOnly, &o.Empty},
		{s.Dir, readOnly, &o.Read},
		{s.Dir, s.options(), &o.Write},
	} {
		heap := liveHeap()
		start := time.Now()
		db, err := minikudu.Open(m.dir, m.options)
		if err != nil {
			return err
		}
		if m.took != nil {
			*m.took = milliseconds(time.Since(start))
		}
		o.RowSets, o.Heap = db.Metrics().RowSets, liveHeap()-heap
		if err := db.Close(); err != nil {
			return err
		}
	}
	return j.add(Line{Opened: o})
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// read is the phase that reads the settled store: by key, then all of it.
func (s *Settings) read(j *journal) (err error) {
	debug.SetMemoryLimit(s.Memory)
	heap := liveHeap()
	t, err := s.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.db.Close()) }()
	r := &Reads{Rows: t.tab.Rows(), RowSets: t.db.Metrics().RowSets}
	if r.Height, err = t.height(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: reading %s rows\n", t.Workload, show.Short(float64(r.Rows)))
	if err := t.readByKey(r); err != nil {
		return err
	}
	sums := t.work.sums(r.Rows)
	for _, seconds := range []*float64{&r.FirstScan, &r.Scan} {
		if *seconds, err = t.scan(r.Rows, sums); err != nil {
			return err
		}
	}
	if err := t.readAll(r.Rows); err != nil {
		return err
	}
	cache := t.db.Metrics().PageCache
	r.Budget, r.Cached = cache.Budget, cache.Bytes
	r.Heap, r.PeakRSS = liveHeap()-heap-r.Cached, show.Status("VmHWM")
	return j.add(Line{Reads: r})
}

// readByKey measures reads of single rows.
func (t *store) readByKey(r *Reads) error {
	any := func(rnd *rand.Rand) int64 { return rnd.Int64N(r.Rows) }
	rnd := rand.New(rand.NewPCG(2, uint64(r.Rows)))
	hot := make([]int64, min(hotRows, r.Rows))
	for k := range hot {
		for hot[k] = any(rnd); r.Rows > nearRows && !t.work.near(hot[k], r.Rows); {
			hot[k] = any(rnd)
		}
	}
	next := 0
	each := func(*rand.Rand) int64 {
		next++
		return hot[next%len(hot)]
	}
	hotOnes := func(rnd *rand.Rand) int64 { return hot[rnd.IntN(len(hot))] }
	enough := func(reads int64) func(int64, time.Duration) bool {
		return func(done int64, _ time.Duration) bool { return done >= reads }
	}
	long := func(done int64, took time.Duration) bool { return took.Seconds() >= t.Seconds }
	for _, m := range []struct {
		gets   *Gets // nil: a warm-up
		pick   func(*rand.Rand) int64
		done   func(reads int64, took time.Duration) bool
		absent bool
	}{
		{&r.Cold, any, enough(min(coldReads, r.Rows)), false},
		{nil, each, enough(int64(len(hot))), false},
		{&r.Hot, hotOnes, long, false},
		{nil, any, long, false},
		{&r.Uniform, any, long, false},
		{nil, any, enough(min(hotRows, r.Rows)), true},
		{&r.Absent, any, long, true},
	} {
		gets, err := t.gets(rnd, m.pick, m.done, m.absent)
		if err != nil {
			return err
		}
		if m.gets != nil {
			*m.gets = gets
		}
	}
	return nil
}

// readTight is the phase that reads by key with a page cache a quarter as large as the
// decoded pages.
func (s *Settings) readTight(j *journal) (err error) {
	lines, err := readLines(s.Out)
	if err != nil {
		return err
	}
	small := *s
	for _, l := range lines {
		if l.Reads != nil {
			small.Memory = max(leastMemory, l.Reads.Cached/2) // of which the cache is half
		}
	}
	debug.SetMemoryLimit(small.Memory)
	t, err := small.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.db.Close()) }()
	rnd, n := rand.New(rand.NewPCG(3, 0)), t.tab.Rows()
	var gets Gets
	for range 2 { // the first warms up
		gets, err = t.gets(rnd, func(rnd *rand.Rand) int64 { return rnd.Int64N(n) },
			func(_ int64, took time.Duration) bool { return took.Seconds() >= s.Seconds }, false)
		if err != nil {
			return err
		}
	}
	return j.add(Line{Tight: &Tight{Budget: t.db.Metrics().PageCache.Budget, Uniform: gets}})
}

// leastMemory is the smallest budget of a store.
const leastMemory = 8 << 20

// gets reads rows that pick chooses until done says so.
func (t *store) gets(rnd *rand.Rand, pick func(*rand.Rand) int64, done func(reads int64, took time.Duration) bool, absent bool) (Gets, error) {
	row := make([]cell, len(t.work.Spec.Columns))
	times := newTimes()
	before := t.db.Metrics().PageCache
	var g Gets
	var took time.Duration // of calls of the engine
	for !done(g.Reads, took) {
		i := pick(rnd)
		key := t.work.key(i, absent, row)
		start := time.Now()
		got, err := t.tab.Get(ctx, key...)
		d := time.Since(start)
		switch {
		case absent && errors.Is(err, minikudu.ErrNotFound):
		case absent && err == nil:
			return g, fmt.Errorf("key %v is there", key)
		case err != nil:
			return g, fmt.Errorf("row %d: %w", i, err)
		default:
			if err := t.work.check(i, got, row); err != nil {
				return g, err
			}
		}
		took += d
		g.Reads++
		_ = times.RecordValue(d.Nanoseconds())
	}
	after := t.db.Metrics().PageCache
	n := float64(g.Reads)
	g.Rate = n / took.Seconds()
	g.P50, g.P99 = float64(times.ValueAtQuantile(50))/1000, float64(times.ValueAtQuantile(99))/1000
	g.Misses = float64(after.Misses-before.Misses) / n
	g.Pages = float64(after.Hits-before.Hits)/n + g.Misses
	return g, nil
}

// scan adds up columns of all rows and returns the seconds that took.
func (t *store) scan(rows int64, sums []float64) (float64, error) {
	aggs := []minikudu.Aggregate{minikudu.Count()}
	for _, c := range t.work.Sums {
		aggs = append(aggs, minikudu.Sum(c))
	}
	start := time.Now()
	b, err := t.tab.Aggregate(ctx, minikudu.Query{}, nil, aggs...)
	if err != nil {
		return 0, err
	}
	took := time.Since(start).Seconds()
	if n := b.Column(0).Int64s()[0]; n != rows {
		return 0, fmt.Errorf("a scan counts %d rows of %d", n, rows)
	}
	for k, want := range sums {
		v := b.Column(k + 1).Value(0)
		got := v.Float()
		if b.Column(k+1).Kind() != schema.KindFloat64 {
			got = float64(v.Int())
		}
		if !same(got, want) {
			return 0, fmt.Errorf("a scan finds %v for the sum of %s, not %v", got, t.work.Sums[k], want)
		}
	}
	return took, nil
}

// readAll scans all columns, so that every file is open and its pages, as far as there is
// room, are decoded.
func (t *store) readAll(rows int64) error {
	var n int64
	for b, err := range t.tab.Scan(ctx, minikudu.Query{}) {
		if err != nil {
			return err
		}
		n += int64(b.Len())
		for k := range t.work.Spec.Columns {
			_ = b.Column(k)
		}
	}
	if n != rows {
		return fmt.Errorf("a scan of all columns finds %d rows of %d", n, rows)
	}
	return nil
}
