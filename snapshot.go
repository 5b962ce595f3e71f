package minikudu

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/minikudu/minikudu/internal/manifest"
	"github.com/minikudu/minikudu/internal/mvcc"
)

// Values of TableSpec.History.
const (
	// DefaultHistory is how long the history of a table is kept by default.
	DefaultHistory = 15 * time.Minute
	// NoHistory keeps none: what was deleted or replaced may go with the next flush or
	// compaction, unless a reader or a pin needs it.
	NoHistory = time.Duration(-1)
	// AllHistory keeps everything.
	AllHistory = time.Duration(math.MaxInt64)
)

// Snapshot holds the state of the store at a time: whatever is written, flushed or
// compacted meanwhile, a query as of its timestamp gives the same answer until it is
// closed. It keeps what was deleted or replaced since on disk. It may be used
// concurrently and does not outlive the process; see [DB.Pin] for that, and
// [Options].MaxReaderAge for a bound.
type Snapshot struct {
	db   *DB
	at   Timestamp
	once sync.Once

	expiry *time.Timer // nil: it may be held for ever
}

// Snapshot holds the newest state.
func (db *DB) Snapshot() (*Snapshot, error) { return db.SnapshotAt(0) }

// SnapshotAt holds the state at a time, the newest for 0. It is ErrHistoryExpired if some
// table's history does not reach back so far, and ErrInvalidArgument in the future.
func (db *DB) SnapshotAt(at Timestamp) (*Snapshot, error) {
	if err := db.gate.enter(); err != nil {
		return nil, err
	}
	defer db.gate.exit()
	at, err := db.beginRead(at, db.tableList())
	if err != nil {
		return nil, err
	}
	s := &Snapshot{db: db, at: at}
	if most := db.opts.MaxReaderAge; most > 0 {
		s.expiry = time.AfterFunc(most, s.end) // which does not look at expiry
	}
	return s, nil
}

// Timestamp returns the time, for Query.AsOf.
func (s *Snapshot) Timestamp() Timestamp { return s.at }

// Close lets go of the state. It may be called twice.
func (s *Snapshot) Close() {
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.end()
}

func (s *Snapshot) end() {
	s.once.Do(func() {
		s.db.readers.End(s.at)
		s.db.background.note() // what it kept may go
	})
}

// beginRead registers a read of the tables at a time, the newest for 0, and returns that
// time; readers.End ends it.
func (db *DB) beginRead(at Timestamp, tables []*Table) (Timestamp, error) {
	if at == 0 {
		// Before the first commit it is 1, which is not taken for the newest state later on.
		return db.readers.Begin(func(mvcc.Timestamp) (Timestamp, error) { return max(1, db.snapshot()), nil })
	}
	if err := db.reach(at); err != nil {
		return 0, err
	}
	return db.readers.Begin(func(oldest Timestamp) (Timestamp, error) {
		for _, t := range tables {
			if err := t.checkHistory(at, oldest); err != nil {
				return 0, err
			}
		}
		return at, nil
	})
}

// reach makes sure that no commit at or before a time comes any more.
func (db *DB) reach(at Timestamp) error {
	switch {
	case at <= db.snapshot():
		return nil
	case at > db.clock.Now():
		return fmt.Errorf("%w: a read at %s, in the future: it is %s", ErrInvalidArgument, moment(at), moment(db.clock.Now()))
	}
	db.quiesce(func() { db.clock.Raise(at) })
	return nil
}

// checkHistory refuses a read of the past that the table does not keep. What a reader or
// pin holds may be read by others too; oldest is the oldest of those.
func (t *Table) checkHistory(at, oldest Timestamp) error {
	mark := min(oldest, t.db.ancient(t.history))
	if h := t.tablet.Horizon(); at < h || at < mark {
		return fmt.Errorf("table %q: %w: a read at %s, history begins at %s", t.name, ErrHistoryExpired, moment(at), moment(max(h, mark)))
	}
	return nil
}

// moment returns a timestamp and its time, for a message.
func moment(at Timestamp) string {
	return fmt.Sprintf("%d (%s)", at, at.Time().Format(time.RFC3339Nano))
}

// ancient returns the ancient history mark: the time up to which history is too old to be
// kept, given how long that is.
func (db *DB) ancient(history time.Duration) Timestamp {
	newest := db.snapshot()
	if history == 0 {
		return newest
	}
	now := db.opts.Now()
	if history > time.Duration(now.UnixNano()) {
		return 0
	}
	return min(newest, mvcc.FromTime(now.Add(-history)))
}

// horizon calls raise with the time up to which the history of a table need not be kept.
func (db *DB) horizon(history time.Duration, raise func(mvcc.Timestamp)) {
	db.readers.Horizon(func(oldest Timestamp) { raise(min(oldest, db.ancient(history))) })
}

// History returns how long the table's history is kept: 0 for not at all.
func (t *Table) History() time.Duration { return t.history }

// Pin keeps the state at a time, the newest for 0, readable under a name, also after the
// store was closed, until Unpin. It returns the time, for Query.AsOf. A name in use is
// ErrAlreadyPresent, and a time that some table's history does not reach back to is
// ErrHistoryExpired.
func (db *DB) Pin(ctx context.Context, name string, at Timestamp) (Timestamp, error) {
	if err := db.enterWrite(); err != nil {
		return 0, err
	}
	defer db.gate.exit()
	if err := checkName("pin", name, db.opts.Limits.MaxNameBytes); err != nil {
		return 0, err
	}
	db.catalog.change.Lock()
	defer db.catalog.change.Unlock()
	if _, taken := db.manifest.State().Pins[name]; taken {
		return 0, fmt.Errorf("pin %q: %w", name, ErrAlreadyPresent)
	}
	at, err := db.beginRead(at, db.tableList())
	if err != nil {
		return 0, err
	}
	// The clock must not fall behind a pin when the store is opened again.
	if err := db.edit(ctx, &manifest.Edit{Pins: []manifest.Pin{{Name: name, Time: at}}, ClockFloor: at}); err != nil {
		db.readers.End(at)
		return 0, fmt.Errorf("pin %q: %w", name, err)
	}
	return at, nil
}

// Unpin ends a pin; an unknown name is ErrNotFound.
func (db *DB) Unpin(ctx context.Context, name string) error {
	if err := db.enterWrite(); err != nil {
		return err
	}
	defer db.gate.exit()
	db.catalog.change.Lock()
	defer db.catalog.change.Unlock()
	at, ok := db.manifest.State().Pins[name]
	if !ok {
		return fmt.Errorf("pin %q: %w", name, ErrNotFound)
	}
	if err := db.edit(ctx, &manifest.Edit{RemovePins: []string{name}}); err != nil {
		return fmt.Errorf("pin %q: %w", name, err)
	}
	db.readers.End(at)
	db.background.note()
	return nil
}

// Pin is a named snapshot.
type Pin struct {
	Name      string
	Timestamp Timestamp
}

// Pins returns the pins in order of name.
func (db *DB) Pins() []Pin {
	pins := db.manifest.State().Pins
	var out []Pin
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		out = append(out, Pin{name, pins[name]})
	}
	return out
}

// holdPins registers the pins of the manifest.
func (db *DB) holdPins(context.Context) error {
	for _, p := range db.Pins() {
		_, _ = db.readers.Begin(func(mvcc.Timestamp) (Timestamp, error) { return p.Timestamp, nil })
	}
	return nil
}
