package minikudu

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minikudu/minikudu/internal/record"
	"github.com/minikudu/minikudu/tablet"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/wal"
)

// replay puts the log's rows back into memory (R10).
func (db *DB) replay(ctx context.Context) error {
	begin := time.Now()
	// While the log is replayed, what is visible is what was put back: a flush holds
	// changes up to there and none later.
	floor := Timestamp(db.visible.Swap(0))
	r := newReplayer(db)
	got, err := r.run(ctx)
	if err != nil {
		return err
	}
	if got.Records > 0 && got.LastTimestamp > floor {
		floor = got.LastTimestamp
	}
	if err := r.checkWatermarks(got); err != nil {
		return err
	}
	db.clock.Raise(floor)
	db.visible.Store(uint64(floor))
	db.replayEnd = got.End
	r.info.Records, r.info.Trimmed, r.info.Duration = got.Records, len(got.Dropped) > 0, time.Since(begin)
	db.opts.Logger.Info("replayed the log", "info", r.info.String())
	if f := db.opts.Events.Replayed; f != nil {
		f(r.info)
	}
	return nil
}

// replayer puts the records of the log back into the tables they name. Two goroutines
// share the work: the one that reads the log decodes records and sorts their keys, the
// other puts them into the tablets, in order.
type replayer struct {
	db     *DB
	tables map[uint64]*Table // by tablet id
	info   ReplayInfo        // Rows belongs to the one that applies, the rest to the reader

	filling *replayStep      // what the reader fills; nil when it has none
	free    chan *replayStep // all others, while nobody uses them
	ready   chan *replayStep // in the order of the log
	full    atomic.Bool      // memory holds as much as live writes would leave in it
	failure atomic.Pointer[error]
}

// The reader hands over records of stepBytes or more together, or of an eighth of what
// makes a flush; replaySteps is how many such pieces there are at a time.
const (
	replaySteps = 2
	stepBytes   = 64 << 10
)

// replayStep is some records on their way from the reader to the tablets. Its memory is
// used again.
type replayStep struct {
	payload []byte // what effects refer to
	effects []replayEffect
}

// replayEffect is what a record does to one table.
type replayEffect struct {
	ts       Timestamp
	table    *Table // nil: no table that is left
	prepared *tablet.Prepared
}

func newReplayer(db *DB) *replayer {
	r := &replayer{db: db, tables: map[uint64]*Table{}, free: make(chan *replayStep, replaySteps), ready: make(chan *replayStep, replaySteps)}
	for _, t := range db.catalog.list {
		r.tables[uint64(t.tablet.ID())] = t
	}
	for range replaySteps {
		r.free <- &replayStep{}
	}
	return r
}

// run replays the log. Of several errors it returns that of the first record. What
// memory holds too much of at the end is flushed in the background.
func (r *replayer) run(ctx context.Context) (wal.Recovery, error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for s := range r.ready {
			r.apply(ctx, s)
			r.free <- s
		}
	})
	got, err := r.db.log.Replay(ctx, func(rec *wal.Record) error { return r.read(ctx, rec) })
	r.handOver()
	close(r.ready)
	wg.Wait()
	if p := r.failure.Load(); p != nil {
		return got, *p
	}
	if err == nil && r.db.opts.ReadOnly && r.full.Load() {
		err = ErrReplayTooLarge
	}
	return got, err
}

// read decodes a record and hands it over when enough has come together.
func (r *replayer) read(ctx context.Context, rec *wal.Record) error {
	if rec.Type != wal.TypeBatch {
		return fmt.Errorf("%w: log record of type %d", ErrNotSupported, rec.Type)
	}
	if r.full.Load() {
		if err := r.makeRoom(ctx); err != nil {
			return err
		}
	}
	if r.filling == nil {
		r.filling = <-r.free
		r.filling.reset()
	}
	if p := r.failure.Load(); p != nil {
		return *p
	}
	if err := r.decode(r.filling, rec); err != nil {
		return err
	}
	r.info.Bytes += int64(len(rec.Payload))
	if int64(len(r.filling.payload)) >= min(stepBytes, r.db.opts.FlushBytes/8) {
		r.handOver()
	}
	return nil
}

func (s *replayStep) reset() {
	clear(s.effects)
	s.payload, s.effects = s.payload[:0], s.effects[:0]
}

// handOver gives the piece that is being filled to the one who applies.
func (r *replayer) handOver() {
	if r.filling != nil {
		r.ready <- r.filling
		r.filling = nil
	}
}

// decode adds a record to a piece. Parts of tables that were dropped are skipped.
func (r *replayer) decode(s *replayStep, rec *wal.Record) error {
	from := len(s.payload)
	s.payload = append(s.payload, rec.Payload...)
	parts, err := record.Decode(s.payload[from:])
	if err != nil {
		return err
	}
	before := len(s.effects)
	for i := range parts {
		t := r.tables[parts[i].Tablet]
		if t == nil {
			continue
		}
		for k := range parts[i].Sections {
			e := replayEffect{ts: rec.Timestamp, table: t}
			effect, err := arrange(t.schema, &parts[i].Sections[k])
			if err == nil {
				e.prepared, err = t.tablet.Prepare(rec.Timestamp, effect)
			}
			if err != nil {
				return fmt.Errorf("table %q: %w", t.name, err)
			}
			s.effects = append(s.effects, e)
		}
	}
	if len(s.effects) == before { // the time passes all the same
		s.effects = append(s.effects, replayEffect{ts: rec.Timestamp})
	}
	return nil
}

// apply applies records, unless an earlier one failed.
func (r *replayer) apply(ctx context.Context, s *replayStep) {
	for i := range s.effects {
		if r.failure.Load() != nil {
			return
		}
		e := &s.effects[i]
		r.db.visible.Store(uint64(e.ts))
		if e.table == nil {
			continue
		}
		before := e.table.tablet.Memory().Bytes
		n, err := e.table.tablet.Replay(ctx, e.ts, e.prepared)
		if err != nil {
			err = fmt.Errorf("table %q: %w", e.table.name, err)
			r.failure.Store(&err)
			return
		}
		r.info.Rows += int64(n)
		r.db.memory.grow(e.table.tablet.Memory().Bytes - before)
		if r.db.isFull(e.table) {
			r.full.Store(true)
		}
	}
}

// isFull reports whether live writes to the table would have something flushed now.
func (db *DB) isFull(t *Table) bool {
	m, used := t.tablet.Memory(), db.memory.used.Load()
	if db.opts.ReadOnly {
		return used > db.opts.MemoryBudget
	}
	return m.ActiveBytes >= db.opts.FlushBytes || m.DeltaBytes >= db.opts.FlushBytes/4 || used >= db.memory.limit
}

// makeRoom waits until all that was read is applied and flushes at the limits of live
// writes, so that a long log needs no more memory than writing it did.
func (r *replayer) makeRoom(ctx context.Context) error {
	r.handOver()
	idle := make([]*replayStep, replaySteps)
	for i := range idle {
		idle[i] = <-r.free
	}
	defer func() {
		for _, s := range idle {
			r.free <- s
		}
	}()
	if p := r.failure.Load(); p != nil {
		return *p
	}
	r.full.Store(false)
	if r.db.opts.ReadOnly {
		return ErrReplayTooLarge
	}
	for _, t := range r.db.catalog.list {
		if err := r.flushAsNeeded(ctx, t); err != nil {
			return fmt.Errorf("table %q: %w", t.name, err)
		}
	}
	return nil
}

// flushAsNeeded flushes the rows and changes of a table where they are many.
func (r *replayer) flushAsNeeded(ctx context.Context, t *Table) error {
	db, m := r.db, t.tablet.Memory()
	short := db.memory.used.Load() >= db.memory.limit
	if m.ActiveBytes >= db.opts.FlushBytes || short && m.ActiveBytes > 0 {
		t.tablet.Rotate()
		f, err := t.tablet.Flush(ctx)
		if err != nil {
			return err
		}
		r.flushed(f)
		db.metrics.flushed(f)
	}
	if m.DeltaBytes < db.opts.FlushBytes/4 && !short {
		return nil
	}
	for _, rs := range t.tablet.RowSets() {
		if rs.MemoryBytes() < db.opts.FlushBytes/4 && !short {
			continue
		}
		f, err := t.tablet.FlushDeltas(ctx, rs)
		if err != nil {
			return err
		}
		if f.Files > 0 {
			r.flushed(f)
			db.metrics.deltaFlushes.Add(1)
			db.metrics.deltaBytes.Add(f.Bytes)
		}
	}
	return nil
}

// flushed takes note of a flush.
func (r *replayer) flushed(f tablet.Flushed) {
	r.info.Flushes++
	r.db.memory.shrink(f.Memory, time.Millisecond)
}

// checkWatermarks refuses a log that ends before what the rowset files hold: the
// rest of it was made durable before they were published (R4), so it is missing.
func (r *replayer) checkWatermarks(got wal.Recovery) error {
	if got.Records == 0 {
		return nil // everything was flushed, and the log trimmed to nothing
	}
	for _, t := range r.db.catalog.list {
		if w := t.tablet.Watermark(); got.LastTimestamp < w {
			return &vfs.CorruptionError{Path: r.db.fs.Join(r.db.dir, logName), Section: "log", Offset: got.End.Offset,
				Err: fmt.Errorf("it ends at %d in segment %d, before the watermark %d of table %q", got.LastTimestamp, got.End.Segment, w, t.name)}
		}
	}
	return nil
}
