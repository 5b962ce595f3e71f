package manifest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/vfs"
)

const (
	// aheadBytes of zeroes stand behind the last edit, so that edits which only
	// remove things succeed on a full disk.
	aheadBytes = 64 << 10
	// reserveBytes of them are kept from edits that add things.
	reserveBytes = 32 << 10
	// minAhead is what always remains: a file with less has lost its end.
	minAhead = 2 * sector
	// rotateBytes is the size below which no new generation is begun.
	rotateBytes = 4 << 20
	// writeBytes is the size of the writes of a snapshot.
	writeBytes = 256 << 10
)

// ErrFailed says that a write or sync failed so that the contents on disk are unknown:
// no edit is accepted until the store is opened again.
var ErrFailed = errors.New("manifest failed, reopen the store")

// ErrReadOnly says that the manifest was opened for reading.
var ErrReadOnly = errors.New("manifest is read-only")

// Manifest is an open manifest.
type Manifest struct {
	// Set at open, then read-only.
	fs       vfs.FS
	dir      string
	readOnly bool

	apply struct {
		sync.Mutex          // held while an edit is written and synced
		file       vfs.File // nil when read-only or closed
		off        int64    // where the next frame goes
		size       int64    // synced size of the file
		snapshot   int64    // size at the snapshot's end
		rotateAt   int64    // offset behind which the next generation is due
		minRotate  int64    // rotateBytes, less in tests
		highest    uint64   // generation of any file there is or was
		failed     error
	}
	mu struct {
		sync.Mutex
		state *State // replaced, never changed in place
		stats Stats
	}
}

// Stats describes the file.
type Stats struct {
	Generation  uint64
	Bytes       int64 // used, without the zeroes ahead
	Edits       int64 // applied since open
	RotateError error // why the last attempt at a new generation failed, nil when it did not
}

// Create makes the first generation of a new store in an existing directory. The
// directory's own entry is the caller's to sync. It fails with fs.ErrExist when there
// is a store, and replaces the traces of an interrupted creation.
func Create(f vfs.FS, dir string, store binfmt.UUID) (*Manifest, error) {
	if err := clearForCreate(f, dir); err != nil {
		return nil, err
	}
	m := &Manifest{fs: f, dir: dir}
	m.apply.minRotate = rotateBytes
	m.mu.state = newState(store, binfmt.FormatNewest)
	if err := m.rotateLocked(); err != nil {
		return nil, fmt.Errorf("creating manifest: %w", err)
	}
	return m, nil
}

// clearForCreate removes an interrupted first generation that stands alone.
func clearForCreate(f vfs.FS, dir string) error {
	all, err := generations(f, dir)
	if err != nil || len(all) == 0 {
		return err
	}
	exists := &fs.PathError{Op: "create", Path: f.Join(dir, Name(all[len(all)-1])), Err: fs.ErrExist}
	if _, err := load(f, dir, all); !errors.Is(err, ErrInterrupted) {
		return exists
	}
	names, err := f.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != Name(1) && name != "LOCK" && !isEmptyDir(f, f.Join(dir, name)) {
			return exists
		}
	}
	return f.Remove(f.Join(dir, Name(1)))
}

func isEmptyDir(f vfs.FS, name string) bool {
	info, err := f.Stat(name)
	if err != nil || !info.IsDir() {
		return false
	}
	names, err := f.List(name)
	return err == nil && len(names) == 0
}

// Open reads the manifest in dir; fs.ErrNotExist when there is none. Read-only it
// writes nothing; otherwise it clears a torn tail and removes other generations.
func Open(f vfs.FS, dir string, readOnly bool) (*Manifest, error) {
	all, err := generations(f, dir)
	if err != nil {
		return nil, fmt.Errorf("opening manifest: %w", err)
	}
	l, err := load(f, dir, all)
	if err != nil {
		return nil, fmt.Errorf("opening manifest: %w", err)
	}
	m := &Manifest{fs: f, dir: dir, readOnly: readOnly}
	m.mu.state, m.mu.stats = l.state, Stats{Generation: l.generation, Bytes: l.end}
	m.apply.off, m.apply.size, m.apply.snapshot = l.end, l.size, l.snapshot
	m.apply.minRotate, m.apply.highest = rotateBytes, all[len(all)-1]
	m.scheduleLocked()
	if readOnly {
		return m, nil
	}
	if err := m.openForWriting(l, all); err != nil {
		return nil, fmt.Errorf("opening manifest: %w", err)
	}
	return m, nil
}

// openForWriting makes I2 true and removes generations that do not count. What was read
// may be in the system's memory only, after a crash of the process: it is synced before
// anything is done because of it.
func (m *Manifest) openForWriting(l *loaded, all []uint64) error {
	file, err := m.fs.OpenWrite(m.fs.Join(m.dir, Name(l.generation)), vfs.KindManifest)
	if err != nil {
		return err
	}
	if l.dirty {
		err = writeZeroes(file, l.end, l.size)
	}
	gen := seed(l.generation)
	for _, off := range l.bare {
		// The last edit may have survived a power cut that the mark before it did not. That mark
		// must be back before anything proves that the edit is synced.
		if err == nil && off+slotSize < l.end {
			_, err = file.WriteAt(appendFrame(nil, gen, off, FrameMark, nil), off)
		}
	}
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = m.fs.SyncDir(m.dir)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	m.apply.file = file
	if slices.Contains(l.bare, l.end-slotSize) {
		m.apply.off -= slotSize
		m.markLocked(gen)
	}
	for _, n := range all {
		if n != l.generation {
			m.fs.Remove(m.fs.Join(m.dir, Name(n))) // else the next open tries again
		}
	}
	return nil
}

func writeZeroes(file vfs.File, from, to int64) error {
	zeroes := make([]byte, min(to-from, writeBytes))
	for from < to {
		n := min(to-from, int64(len(zeroes)))
		if _, err := file.WriteAt(zeroes[:n], from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// State returns what the manifest says now. The caller must not change it.
func (m *Manifest) State() *State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.state
}

// Stats returns counters.
func (m *Manifest) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.stats
}

// Apply makes the edit durable, all of it or nothing, and visible in State. An edit
// that contradicts the state is refused and changes nothing. When the disk is full
// the error answers syscall.ENOSPC, nothing has changed, and a later edit may succeed;
// edits that only remove things still do. After an error that answers ErrFailed the
// edit may or may not be there after the store is opened again.
func (m *Manifest) Apply(ctx context.Context, e *Edit) error {
	m.apply.Lock()
	defer m.apply.Unlock()
	if err := m.usableLocked(ctx); err != nil {
		return err
	}
	payload := e.AppendTo(nil)
	if len(payload) == 0 {
		return nil
	}
	old := m.State()
	next, err := old.after(payload)
	if err != nil {
		return fmt.Errorf("manifest edit refused: %w", err)
	}
	if err := m.appendLocked(payload, e.grows(old)); err != nil {
		return fmt.Errorf("writing manifest edit: %w", err)
	}
	m.mu.Lock()
	m.mu.state = next
	m.mu.stats.Bytes = m.apply.off
	m.mu.stats.Edits++
	m.mu.Unlock()
	if m.apply.off > m.apply.rotateAt && m.apply.failed == nil {
		m.tryRotateLocked()
	}
	return nil
}

func (m *Manifest) usableLocked(ctx context.Context) error {
	switch {
	case m.readOnly:
		return ErrReadOnly
	case m.apply.failed != nil:
		return fmt.Errorf("%w: %w", ErrFailed, m.apply.failed)
	case m.apply.file == nil:
		return fs.ErrClosed
	}
	return ctx.Err()
}

// failLocked stops all further edits.
func (m *Manifest) failLocked(err error) error {
	m.apply.failed = err
	return fmt.Errorf("%w: %w", ErrFailed, err)
}

// appendLocked writes and syncs one edit.
func (m *Manifest) appendLocked(payload []byte, grows bool) error {
	a := &m.apply
	gen := seed(m.mu.stats.Generation)
	b := appendFrame(nil, gen, a.off, FrameEdit, payload)
	if err := m.makeRoomLocked(int64(len(b))+slotSize, grows); err != nil {
		return err
	}
	if _, err := a.file.WriteAt(b, a.off); err != nil {
		return m.takeBackLocked(int64(len(b)), err)
	}
	if err := a.file.Sync(); err != nil {
		return m.failLocked(err)
	}
	a.off += int64(len(b))
	m.markLocked(gen)
	return nil
}

// takeBackLocked restores I2 after a failed write; if that fails too the manifest has.
func (m *Manifest) takeBackLocked(n int64, cause error) error {
	err := writeZeroes(m.apply.file, m.apply.off, m.apply.off+n)
	if err == nil {
		err = m.apply.file.Sync()
	}
	if err != nil {
		return m.failLocked(errors.Join(cause, err))
	}
	return cause
}

// markLocked writes the mark that says that what is before it is synced, and steps
// over its slot. The edit is durable already: a failure here concerns later ones.
func (m *Manifest) markLocked(gen uint32) {
	a := &m.apply
	if _, err := a.file.WriteAt(appendFrame(nil, gen, a.off, FrameMark, nil), a.off); err != nil {
		a.failed = err
	}
	a.off += slotSize
}

// makeRoomLocked sees to it that n bytes and the zeroes ahead of them are in the
// file, synced. On a full disk edits may use up the zeroes ahead.
func (m *Manifest) makeRoomLocked(n int64, grows bool) error {
	a := &m.apply
	end := a.off + n
	if a.size-end >= aheadBytes {
		return nil
	}
	if end > maxFileBytes/2 {
		return fmt.Errorf("manifest of %d bytes is full", end)
	}
	size := end + 2*aheadBytes
	err := a.file.Preallocate(a.size, size-a.size)
	if err == nil {
		if err := a.file.Sync(); err != nil {
			return m.failLocked(err)
		}
		a.size = size
		return nil
	}
	left := a.size - end
	if left >= reserveBytes || !grows && left >= minAhead {
		return nil
	}
	return err
}

// tryRotateLocked begins a new generation, or puts it off when that fails.
func (m *Manifest) tryRotateLocked() {
	err := m.rotateLocked()
	if err != nil {
		m.apply.rotateAt = m.apply.off + m.apply.minRotate/4
	}
	m.mu.Lock()
	m.mu.stats.RotateError = err
	m.mu.Unlock()
}

// scheduleLocked sets the size at which the next generation is due.
func (m *Manifest) scheduleLocked() {
	m.apply.rotateAt = max(m.apply.minRotate, 2*m.apply.snapshot)
}

// rotateLocked writes the state as a new generation and goes on with it. If that
// fails the new file must be gone for certain before another edit goes to the old
// one, because the higher generation would win.
func (m *Manifest) rotateLocked() error {
	a := &m.apply
	a.highest++
	generation := a.highest
	name := m.fs.Join(m.dir, Name(generation))
	w, err := m.writeGeneration(name, generation)
	if err != nil {
		if gone := m.removeSynced(name); gone != nil {
			err = m.failLocked(errors.Join(err, gone))
		}
		return err
	}
	old := a.file
	a.file, a.off, a.size, a.snapshot = w.file, w.off, w.size, w.off
	m.markLocked(seed(generation))
	m.scheduleLocked()
	m.mu.Lock()
	before := m.mu.stats.Generation
	m.mu.stats.Generation, m.mu.stats.Bytes = generation, a.off
	m.mu.Unlock()
	if old != nil {
		old.Close()
		m.fs.Remove(m.fs.Join(m.dir, Name(before))) // else the next open does
	}
	return nil
}

// removeSynced removes a file that must not come back.
func (m *Manifest) removeSynced(name string) error {
	if err := m.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return m.fs.SyncDir(m.dir)
}

// generationWriter writes the file of a new generation.
type generationWriter struct {
	file vfs.File
	seed uint32
	off  int64 // where buf will stand
	size int64
	buf  []byte
}

func (m *Manifest) writeGeneration(name string, generation uint64) (*generationWriter, error) {
	file, err := m.fs.Create(name, vfs.KindManifest)
	if err != nil {
		return nil, err
	}
	w := &generationWriter{file: file, seed: seed(generation)}
	err = w.write(m.State(), generation)
	if err == nil {
		err = m.fs.SyncDir(m.dir)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return w, nil
}

func (w *generationWriter) write(s *State, generation uint64) error {
	h := binfmt.Header{Kind: binfmt.FileManifest, Format: s.Format, Store: s.Store, File: generation}
	w.buf = h.AppendTo(nil)
	parts := s.snapshot()
	for _, e := range parts {
		if err := w.frame(FramePart, e.AppendTo(nil)); err != nil {
			return err
		}
	}
	if err := w.frame(FrameEnd, binary.AppendUvarint(nil, uint64(len(parts)))); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.size = w.off + slotSize + 2*aheadBytes
	if err := w.file.Preallocate(w.off, w.size-w.off); err != nil {
		return err
	}
	return w.file.Sync()
}

func (w *generationWriter) frame(typ FrameType, payload []byte) error {
	w.buf = appendFrame(w.buf, w.seed, w.off+int64(len(w.buf)), typ, payload)
	if len(w.buf) >= writeBytes {
		return w.flush()
	}
	return nil
}

func (w *generationWriter) flush() error {
	_, err := w.file.WriteAt(w.buf, w.off)
	w.off += int64(len(w.buf))
	w.buf = w.buf[:0]
	return err
}

// Close closes the file. A second call does nothing.
func (m *Manifest) Close() error {
	m.apply.Lock()
	defer m.apply.Unlock()
	if m.apply.file == nil {
		return nil
	}
	err := m.apply.file.Close()
	m.apply.file = nil
	return err
}
