package minikudu

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/filecache"
	"github.com/minikudu/minikudu/internal/manifest"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/tablet"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/wal"
)

// Names in the directory of a store.
const (
	lockName = "LOCK"
	dataName = "data" // rowset files
	logName  = "wal"  // log segments
)

// Open opens the store in dir, which it makes unless the options forbid it. It fails
// at once with ErrLocked when the store is open elsewhere. opts may be nil.
func Open(dir string, opts *Options) (*DB, error) {
	if opts != nil {
		if err := opts.Validate(); err != nil {
			return nil, err
		}
	}
	db := &DB{dir: dir, opts: opts.withDefaults(), gate: newGate()}
	db.fs = db.opts.FS
	if err := db.open(context.Background()); err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	return db, nil
}

// OpenInMemory opens a new store that lives in memory until it is closed.
func OpenInMemory(opts *Options) (*DB, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.FS = vfs.NewMem()
	return Open("store", &o)
}

// open runs the steps of an open. When one fails, what the others took is released.
func (db *DB) open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			db.abandon()
		}
	}()
	steps := []func(context.Context) error{
		db.lockDir, db.openManifest, db.checkFiles, db.makeParts, db.holdPins, db.openTables, db.openLog, db.replay, db.startLog, db.removeOrphans, db.shortenLog,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	db.background.start()
	db.background.wake()
	return nil
}

// abandon releases what a failed open took.
func (db *DB) abandon() {
	for _, t := range db.catalog.list {
		t.tablet.Close()
	}
	if db.log != nil {
		_, _ = db.log.Close()
	}
	if db.manifest != nil {
		_ = db.manifest.Close()
	}
	if db.lock != nil {
		_ = db.lock.Close()
	}
}

// lockDir makes the directory where that is allowed, and takes the lock.
func (db *DB) lockDir(context.Context) error {
	create := !db.opts.ReadOnly && !db.opts.ErrorIfMissing
	names, err := db.fs.List(db.dir)
	if err != nil && !(errors.Is(err, fs.ErrNotExist) && create) {
		return err
	}
	if !slices.ContainsFunc(names, isManifest) {
		if !create {
			return cmp.Or(db.checkNoData(), fmt.Errorf("there is no store: %w", fs.ErrNotExist))
		}
		if foreign := slices.IndexFunc(names, isForeign); foreign >= 0 {
			return fmt.Errorf("%w: the directory holds other things (%s) and no store", ErrInvalidArgument, names[foreign])
		}
		if err := db.makeDir(); err != nil {
			return err
		}
	}
	db.lock, err = db.fs.Lock(db.fs.Join(db.dir, lockName), db.opts.ReadOnly, !db.opts.ReadOnly)
	if db.opts.ReadOnly && errors.Is(err, fs.ErrNotExist) {
		// A copy without its lock file: a writer would have made one first.
		db.lock, err = noLock{}, nil
	}
	return err
}

// noLock stands for the lock of a store without a lock file.
type noLock struct{}

// Close does nothing.
func (noLock) Close() error { return nil }

// makeDir makes the directory, with those above it, durably. One that exists may be
// what an earlier try made and could not sync.
func (db *DB) makeDir() error {
	parents := []string{db.fs.Join(db.dir, "..")} // those that get a new entry
	for top, next := "", parents[0]; next != top; {
		if _, err := db.fs.Stat(next); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		top, next = next, db.fs.Join(next, "..")
		parents = append(parents, next)
	}
	if err := db.fs.MkdirAll(db.dir); err != nil {
		return err
	}
	for _, dir := range slices.Backward(parents) {
		// A parent that may not be read has been there before.
		if err := db.fs.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// checkNoData refuses a directory with data and no manifest: it was a store once, and
// a new one in its place would remove what is left of it.
func (db *DB) checkNoData() error {
	for _, sub := range []string{dataName, logName} {
		names, err := db.fs.List(db.fs.Join(db.dir, sub))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(names) > 0 {
			return &vfs.CorruptionError{Path: db.fs.Join(db.dir, manifest.Name(1)), Section: "manifest",
				Err: fmt.Errorf("missing, but there is %s; restore it from a backup", db.fs.Join(sub, names[0]))}
		}
	}
	return nil
}

func isManifest(name string) bool {
	_, ok := manifest.ParseName(name)
	return ok
}

// isForeign reports whether a name is not what an unfinished creation leaves.
func isForeign(name string) bool {
	return name != lockName && name != dataName && name != logName && name != "lost+found"
}

// openManifest reads the catalog, or begins a new one.
func (db *DB) openManifest(context.Context) (err error) {
	db.manifest, err = manifest.Open(db.fs, db.dir, db.opts.ReadOnly)
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, manifest.ErrInterrupted)
	if !missing || db.opts.ReadOnly || db.opts.ErrorIfMissing {
		return err
	}
	if err := db.checkNoData(); err != nil {
		return err
	}
	if err := db.makeSubdirs(); err != nil {
		return err
	}
	var id binfmt.UUID
	rand.Read(id[:])
	db.manifest, err = manifest.Create(db.fs, db.dir, id)
	return err
}

// makeSubdirs makes the directories of the data and the log, durably.
func (db *DB) makeSubdirs() error {
	for _, sub := range []string{dataName, logName} {
		if err := db.fs.MkdirAll(db.fs.Join(db.dir, sub)); err != nil {
			return err
		}
	}
	return db.fs.SyncDir(db.dir)
}

// checkFiles compares the rowset files with the manifest: a missing one is damage, one
// that no edit names is what an unfinished flush left. The copy of a store may lack a
// directory that was empty.
func (db *DB) checkFiles(context.Context) error {
	s := db.manifest.State()
	db.nextFile.Store(uint64(s.NextFile))
	db.nextRowSet.Store(uint64(s.NextRowSet))
	dir := db.fs.Join(db.dir, dataName)
	names, err := db.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) && len(s.Files) == 0 {
		err = nil
		if !db.opts.ReadOnly {
			err = db.makeSubdirs()
		}
	}
	if err != nil {
		return err
	}
	here := make(map[rowset.FileNum]bool, len(names))
	for _, name := range names {
		n, ok := diskrowset.ParseFileName(name)
		if !ok {
			n, ok = diskrowset.ParseDeltaName(name)
		}
		if !ok {
			continue
		}
		here[n] = true
		db.nextFile.Store(max(db.nextFile.Load(), uint64(n)+1))
		if _, known := s.Files[n]; !known {
			db.orphans = append(db.orphans, db.fs.Join(dir, name))
		}
	}
	for n, f := range s.Files {
		if !here[n] {
			name := diskrowset.FileName(n)
			if f.Kind != binfmt.FileRowSet {
				name = diskrowset.DeltaName(n)
			}
			return &vfs.CorruptionError{Path: db.fs.Join(dir, name), Section: f.Kind.String() + " file", Err: fs.ErrNotExist}
		}
	}
	return nil
}

// removeOrphans removes the rowset files that checkFiles found no use for. It runs last:
// only a store that was read without an error proves that nothing needs them. One that
// cannot be removed is left to the next open.
func (db *DB) removeOrphans(context.Context) error {
	if db.opts.ReadOnly {
		return nil
	}
	for _, path := range db.orphans {
		if err := db.fs.Remove(path); err != nil {
			db.opts.Logger.Warn("cannot remove what an unfinished flush left", "error", err)
		}
	}
	db.orphans = nil
	return nil
}

// makeParts makes what the tables share.
func (db *DB) makeParts(context.Context) error {
	o := db.opts
	s := db.manifest.State()
	// What is visible is the newest commit that is known of, and not before a horizon, so
	// that no later commit lies in what counts as ancient.
	var newest Timestamp
	for _, t := range s.Tablets {
		newest = max(newest, t.FlushedTo, t.MaxDurable, t.Horizon)
	}
	db.visible.Store(uint64(newest))
	db.clock = mvcc.NewClock(max(s.ClockFloor, newest), o.Now, o.AllowClockStep)
	db.files = filecache.New(db.fs, o.MaxOpenFiles)
	db.pages = cache.New[cache.Page](o.MemoryBudget / 2)
	db.background = newBackground(db)
	db.memory = &memoryGate{limit: max(o.MemoryBudget/4, 2*o.FlushBytes), events: o.Events, stop: db.gate.shut, failed: db.failed,
		freed: make(chan struct{}, 1), kick: db.background.wake}
	db.trimmed.first = s.Log.FirstSegment
	return nil
}

// openTables opens the tables of the catalog. It reads no rowset file.
func (db *DB) openTables(context.Context) error {
	s := db.manifest.State()
	byTable := map[manifest.TableID]*manifest.Tablet{}
	for _, t := range s.Tablets {
		byTable[t.Table] = t
	}
	var list []*Table
	for id, mt := range s.Tables {
		if mt.State != manifest.TableLive || byTable[id] == nil {
			continue
		}
		t, err := db.openTable(s, mt, byTable[id])
		if err != nil {
			return fmt.Errorf("table %q: %w", mt.Name, err)
		}
		list = append(list, t)
	}
	db.setTables(list)
	return nil
}

func (db *DB) openTable(s *manifest.State, mt *manifest.Table, tab *manifest.Tablet) (*Table, error) {
	v := mt.Current()
	sch, err := v.Schema(mt.Limits)
	if err != nil {
		return nil, err
	}
	state := tablet.State{ID: tablet.ID(tab.ID), Schema: sch, SchemaVersion: v.Version, I: tab.FlushedTo, MaxM: tab.MaxDurable,
		H: tab.Horizon, LastID: tab.NextAutoIncrement}
	for _, m := range s.RowSets[tab.ID] {
		state.RowSets = append(state.RowSets, m)
	}
	t, err := tablet.Open(db.tabletEnv(s, mt), state)
	if err != nil {
		return nil, err
	}
	return newTable(db, mt, sch, t), nil
}

// tabletEnv is what a tablet gets of the store.
func (db *DB) tabletEnv(s *manifest.State, mt *manifest.Table) tablet.Env {
	dir := db.fs.Join(db.dir, dataName)
	return tablet.Env{
		Disk: diskrowset.Env{FS: db.fs, Files: db.files, Pages: db.pages, Dir: dir, StoreID: s.Store},
		Writer: diskrowset.WriterOptions{FS: db.fs, Dir: dir, StoreID: s.Store, NewFile: db.newFile, TargetBytes: db.opts.RowSetBytes,
			KuduCompatible: mt.KuduCompatible, Throttle: db.throttle, Workers: db.workers},
		NewRowSet: db.newRowSet,
		SyncLog:   db.syncLog,
		Visible:   db.snapshot,
		Quiesce:   db.quiesce,
		Publish:   db.publish,
		Horizon:   func(raise func(mvcc.Timestamp)) { db.horizon(mt.Retention, raise) },
		Replaying: func() bool { return !db.logStarted.Load() },
	}
}

// syncLog makes the log durable through ts. During replay ts is that of a record
// that was read back, perhaps from the page cache only.
func (db *DB) syncLog(ctx context.Context, ts mvcc.Timestamp) error {
	if !db.logStarted.Load() {
		return db.log.Harden(ctx)
	}
	return db.logError(db.log.SyncThrough(ctx, ts))
}

// publish writes a tablet's change to the manifest.
func (db *DB) publish(ctx context.Context, p *tablet.Publication) error {
	err := db.edit(ctx, editOf(p))
	if errors.Is(err, manifest.ErrFailed) {
		return fmt.Errorf("%w: %w", tablet.ErrUncertain, err)
	}
	return err
}

// editOf is a tablet's change as an edit of the manifest.
func editOf(p *tablet.Publication) *manifest.Edit {
	id := manifest.TabletID(p.Tablet)
	e := &manifest.Edit{UpdateTablets: []manifest.TabletUpdate{{ID: id,
		Watermarks: manifest.Watermarks{FlushedTo: p.I, MaxDurable: p.MaxM, Horizon: p.H, NextAutoIncrement: p.LastID}}}}
	add := func(n rowset.FileNum, kind binfmt.FileKind, size int64, checksum uint32) {
		e.AddFiles = append(e.AddFiles, manifest.File{Num: n, Kind: kind, Size: size, HasChecksum: true, Checksum: checksum})
	}
	for _, m := range p.Remove {
		e.RemoveRowSets = append(e.RemoveRowSets, manifest.RowSetRef{Tablet: id, ID: m.ID})
		e.RemoveFiles = append(e.RemoveFiles, m.Files()...)
	}
	for _, w := range p.Add {
		add(w.File, binfmt.FileRowSet, w.Size, w.Checksum)
		e.AddRowSets = append(e.AddRowSets, manifest.TabletRowSet{Tablet: id, Meta: w.Meta})
		for i := range w.Deltas {
			d := &w.Deltas[i]
			add(d.File, d.Kind(), d.Size, d.Checksum)
		}
	}
	for _, w := range p.Files {
		add(w.File, binfmt.FileRowSet, w.Size, w.Checksum)
	}
	for _, w := range p.Deltas {
		add(w.File, w.Kind(), w.Size, w.Checksum)
	}
	e.RemoveFiles = append(e.RemoveFiles, p.Gone...)
	if p.Update != nil {
		e.UpdateRowSets = append(e.UpdateRowSets, manifest.TabletRowSet{Tablet: id, Meta: p.Update})
	}
	return e
}

// openLog surveys the log.
func (db *DB) openLog(ctx context.Context) (err error) {
	s := db.manifest.State()
	o := wal.Options{Store: s.Store, First: max(s.Log.FirstSegment, 1), End: knownLogEnd(&s.Log), ReadOnly: db.opts.ReadOnly,
		Interval: db.opts.SyncInterval, SegmentBytes: db.opts.segmentBytes()}
	db.log, err = wal.Open(ctx, db.fs, db.fs.Join(db.dir, logName), o)
	return err
}

// startLog makes the log ready for records and notes where the old one ended.
func (db *DB) startLog(ctx context.Context) error {
	if db.opts.ReadOnly {
		return nil
	}
	if err := db.log.Start(ctx); err != nil {
		return err
	}
	db.logStarted.Store(true)
	if s := db.manifest.State(); knownLogEnd(&s.Log).Before(db.replayEnd) {
		return db.recordLogEnd(db.replayEnd)
	}
	return nil
}

// maxSegments is the number of log segments, beside those that a log of LogBytes has, at
// which an open flushes: every run of a program adds one, however little it writes.
const maxSegments = 64

// shortenLog frees what a drop or a flush before a crash left in the log, and flushes
// when the log has become many small segments. What fails is tried again later.
func (db *DB) shortenLog(ctx context.Context) error {
	if db.opts.ReadOnly {
		return nil
	}
	var err error
	if int64(db.log.Segments()) > maxSegments+db.opts.LogBytes/db.opts.segmentBytes() {
		for _, t := range db.tableList() {
			err = cmp.Or(err, db.flushTable(ctx, t, "log"))
		}
	}
	if err = cmp.Or(err, db.trimLog(ctx)); err != nil {
		db.backgroundError(err)
	}
	return db.failed()
}
