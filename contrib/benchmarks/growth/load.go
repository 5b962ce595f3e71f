package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/contrib/benchmarks/internal/show"
)

// load is the phase that commits rows until there are as many as asked for, then waits
// until compactions are done.
func (s *Settings) load(j *journal) (err error) {
	debug.SetMemoryLimit(s.Memory)
	t, err := s.open()
	if err != nil {
		return err
	}
	defer func() {
		if t != nil {
			err = errors.Join(err, t.db.Close())
		}
	}()
	first, err := t.resume(j)
	if err != nil {
		return err
	}
	if err := t.fill(j, first); err != nil {
		return err
	}
	loaded, err := t.settle()
	if err != nil {
		return err
	}
	start := time.Now()
	err = t.db.Close()
	t = nil
	loaded.Closing = time.Since(start).Seconds()
	if err != nil {
		return err
	}
	if loaded.Space, err = sizeOf(s.Dir); err != nil {
		return err
	}
	return j.add(Line{Loaded: loaded})
}

// resume returns the number of the first row to commit, after it looked whether the rows
// before that are those of the workload, and takes up the counters of earlier runs.
func (t *store) resume(j *journal) (first int64, err error) {
	first = t.tab.Rows()
	if err := t.checkRows(first); err != nil {
		return 0, err
	}
	lines, err := readLines(t.Out)
	if err != nil {
		return 0, err
	}
	for _, l := range lines {
		if l.Sample != nil {
			t.past = counters{l.Sample.Flushes, l.Sample.Flushed, l.Sample.Written, l.Sample.Seconds}
		}
		if l.Loaded != nil {
			t.past = counters{l.Loaded.Flushes, l.Loaded.Flushed, l.Loaded.Written, t.past.seconds}
		}
	}
	return first, j.add(Line{Run: &Run{Workload: t.Workload, Rows: t.Rows, Existing: first, Memory: t.Memory, Batch: t.Batch,
		Command: t.Command, Machine: show.Machine(), Date: time.Now().UTC().Format(time.DateOnly)}})
}

// checkedRows is the number of rows that are looked at before a run goes on.
const checkedRows = 1000

// checkRows fails unless the rows below n are there, and that one is not, as far as reads
// of some of them tell.
func (t *store) checkRows(n int64) error {
	row := make([]cell, len(t.work.Spec.Columns))
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for k := range min(n, checkedRows) {
		i := n - 1 - k/2 // the last rows, and any
		if k%2 == 1 {
			i = r.Int64N(n)
		}
		if err := t.get(i, row); err != nil {
			return fmt.Errorf("the store of %d rows does not hold rows of this workload in their order: %w", n, err)
		}
	}
	if err := t.get(n, row); !errors.Is(err, minikudu.ErrNotFound) {
		return fmt.Errorf("the store of %d rows holds row %d: %w", n, n, errors.Join(err))
	}
	return nil
}

// get reads row i and compares it.
func (t *store) get(i int64, row []cell) error {
	got, err := t.tab.Get(ctx, t.work.key(i, false, row)...)
	if err != nil {
		return fmt.Errorf("row %d: %w", i, err)
	}
	return t.work.check(i, got, row)
}

// filling is a load in progress.
type filling struct {
	*store
	journal *journal
	commits *hdrhistogram.Histogram // µs, since the last sample

	rows      int64   // committed
	seconds   float64 // in calls of the engine
	last      int64   // rows at the last sample
	lastAt    float64 // and seconds
	cpu       float64 // seconds of processor time since the last sample
	tenth     int64   // rows where the present tenth began, or this run
	tenthAt   float64 // and seconds
	reported  time.Time
	perTenth  int64
	nextPoint int64 // rows of the next sample
}

// fill commits the rows from the given number on.
func (t *store) fill(j *journal, first int64) error {
	f := &filling{store: t, journal: j, commits: newTimes(), rows: first, last: first, tenth: first, seconds: t.past.seconds, lastAt: t.past.seconds,
		tenthAt: t.past.seconds, perTenth: max(1, t.Rows/10), nextPoint: (first/t.Every + 1) * t.Every}
	columns, names := t.work.columns(int(t.Batch)), t.work.names()
	var b minikudu.WriteBatch
	// Processor time is that of a thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for f.rows < t.Rows {
		n := min(t.Batch, t.Rows-f.rows)
		if err := t.work.batch(columns, f.rows, n); err != nil {
			return err
		}
		start, cpu := time.Now(), threadTime()
		b.Reset()
		if err := b.InsertColumns(t.tab, names, columns); err != nil {
			return err
		}
		if _, err := t.db.Commit(ctx, &b, nil); err != nil {
			return err
		}
		f.committed(n, time.Since(start), threadTime()-cpu)
		if f.rows >= f.nextPoint || f.rows == t.Rows {
			if err := f.sample(); err != nil {
				return err
			}
		}
	}
	return nil
}

func newTimes() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Hour), 3) }

// threadTime returns the processor time of the thread.
func threadTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (f *filling) committed(n int64, took, cpu time.Duration) {
	f.rows += n
	f.seconds += took.Seconds()
	f.cpu += cpu.Seconds()
	_ = f.commits.RecordValue(took.Microseconds())
}

// sample writes a sample.
func (f *filling) sample() error {
	state, err := f.state()
	if err != nil {
		return err
	}
	m := f.db.Metrics()
	s := &Sample{State: state, Seconds: f.seconds, New: f.rows - f.last, Took: f.seconds - f.lastAt, CPU: f.cpu, Log: m.LogBytes, Memory: m.MemoryBytes,
		CommitP99: float64(f.commits.ValueAtQuantile(99)) / 1000, CommitMax: float64(f.commits.Max()) / 1000,
		Stalls: m.Stalls, StallSeconds: m.StallTime.Seconds(), LongestStall: m.LongestStall.Seconds()}
	if f.seconds > f.tenthAt {
		s.TenthRate = float64(f.rows-f.tenth) / (f.seconds - f.tenthAt)
	}
	if f.rows/f.perTenth > f.tenth/f.perTenth {
		f.tenth, f.tenthAt = f.rows, f.seconds
	}
	f.last, f.lastAt, f.nextPoint = f.rows, f.seconds, (f.rows/f.Every+1)*f.Every
	f.cpu = 0
	f.commits.Reset()
	if time.Since(f.reported) > 5*time.Second || f.rows == f.Rows {
		f.reported = time.Now()
		fmt.Fprintf(os.Stderr, "%s: %s of %s rows, %s rows/s, %d rowsets, height %.1f, %s MB resident\n", f.Workload, show.Short(float64(f.rows)),
			show.Short(float64(f.Rows)), show.Short(s.TenthRate), s.RowSets, s.Height, show.Digits(float64(s.RSS)/1e6))
	}
	return f.journal.add(Line{Sample: s})
}

// settle writes out what is in memory and waits until no compaction is worth doing.
func (t *store) settle() (*Loaded, error) {
	fmt.Fprintf(os.Stderr, "%s: settling\n", t.Workload)
	start := time.Now()
	if err := t.tab.Flush(ctx); err != nil {
		return nil, err
	}
	if err := t.db.WaitSettled(ctx); err != nil {
		return nil, err
	}
	took := time.Since(start).Seconds()
	state, err := t.state()
	if err != nil {
		return nil, err
	}
	stats, err := t.tab.Stats(ctx)
	if err != nil {
		return nil, err
	}
	o := t.db.Options()
	l := &Loaded{State: state, Settling: took, Target: o.RowSetBytes}
	for _, c := range stats.Columns {
		l.Columns += c.Bytes
		l.Encoded = append(l.Encoded, Coded{c.Name, c.Encoding.String(), c.Compression.String(), c.Bytes})
	}
	return l, nil
}
