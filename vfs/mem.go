package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Mem is a file system in memory that remembers what was synced: file contents by
// Sync, directory entries by SyncDir of their directory. [Mem.CrashClone] plays a
// power cut. Paths use slashes; a relative path is one below the root.
type Mem struct {
	opts MemOptions
	mu   sync.RWMutex // guards everything below, contents of files included
	root *memNode
	used int64 // sum of the sizes of all files
	open int   // open files and locks
}

// MemOptions change how a Mem behaves.
type MemOptions struct {
	// WindowsRules refuses to remove or rename a file that is open, and to rename
	// over one.
	WindowsRules bool
	// Capacity is the sum of file sizes above which growing a file is ENOSPC.
	// 0: no bound.
	Capacity int64
}

// CrashOptions say what of the unsynced state survives a power cut.
type CrashOptions struct {
	// Rand decides for every unsynced 4 KiB block, file size and directory change
	// whether it survives. Nil: nothing survives.
	Rand *rand.Rand
}

// memNode is a file or a directory.
type memNode struct {
	dir   *memDir // nil for a file
	data  memData
	links int // directory entries; an unlinked file lives while it is open
	opens int
	locks []*memLock
}

// memDir is the entries of a directory: now, and after a power cut.
type memDir struct {
	entries map[string]*memNode
	durable map[string]*memNode
	pending []memChange // since the last SyncDir, oldest first
}

// memChange is one step that a power cut keeps or loses whole. A rename within a
// directory sets two names.
type memChange []memEntry

type memEntry struct {
	name string
	node *memNode // nil: removed
}

var errInUse = errors.New("file is open")

// NewMem returns an empty file system without bound or special rules.
func NewMem() *Mem { return NewMemOptions(MemOptions{}) }

// NewMemOptions returns an empty file system.
func NewMemOptions(o MemOptions) *Mem { return &Mem{opts: o, root: newMemDir()} }

func newMemDir() *memNode {
	return &memNode{dir: &memDir{entries: map[string]*memNode{}, durable: map[string]*memNode{}}}
}

// SetCapacity changes MemOptions.Capacity.
func (m *Mem) SetCapacity(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opts.Capacity = n
}

// CrashClone returns a new file system in the state that a power cut now would leave:
// what was synced and, by chance, some of what was not. Files are closed and locks
// released in it. The original goes on unharmed.
func (m *Mem) CrashClone(o CrashOptions) *Mem {
	m.mu.RLock()
	defer m.mu.RUnlock()
	c := &Mem{opts: m.opts}
	k := crash{rand: o.Rand, copies: map[*memNode]*memNode{}}
	c.root = k.node(m.root)
	for _, n := range k.copies {
		c.used += n.data.size
	}
	return c
}

// KillClone returns a new file system in the state that a kill of the process now
// would leave: everything that was written is there, and what was not synced is still
// lost by a power cut. Files are closed and locks released in it.
func (m *Mem) KillClone() *Mem {
	m.mu.RLock()
	defer m.mu.RUnlock()
	c := &Mem{opts: m.opts}
	copies := map[*memNode]*memNode{}
	c.root = m.root.copy(copies)
	for _, n := range copies {
		if n.dir == nil && n.links > 0 {
			c.used += n.data.size
		}
	}
	return c
}

// copy returns a copy of everything reachable from n.
func (n *memNode) copy(copies map[*memNode]*memNode) *memNode {
	if n == nil || copies[n] != nil {
		return copies[n]
	}
	c := &memNode{links: n.links}
	copies[n] = c
	if n.dir == nil {
		c.data = n.data.copy()
		return c
	}
	c.dir = newMemDir().dir
	for name, child := range n.dir.entries {
		c.dir.entries[name] = child.copy(copies)
	}
	for name, child := range n.dir.durable {
		c.dir.durable[name] = child.copy(copies)
	}
	for _, change := range n.dir.pending {
		var mine memChange
		for _, e := range change {
			mine = append(mine, memEntry{e.name, e.node.copy(copies)})
		}
		c.dir.pending = append(c.dir.pending, mine)
	}
	return c
}

// crash copies the surviving state; copies keeps two names of one file one file.
type crash struct {
	rand   *rand.Rand
	copies map[*memNode]*memNode
}

// survives tosses the coin for one unsynced thing.
func (k *crash) survives() bool { return k.rand != nil && k.rand.IntN(2) == 0 }

func (k *crash) node(n *memNode) *memNode {
	if c, ok := k.copies[n]; ok {
		return c
	}
	c := &memNode{}
	k.copies[n] = c
	if n.dir == nil {
		c.data = n.data.crash(k)
		return c
	}
	c.dir = newMemDir().dir
	entries := k.entries(n.dir)
	for _, name := range sortedKeys(entries) {
		child := k.node(entries[name])
		child.links++
		c.dir.entries[name], c.dir.durable[name] = child, child
	}
	return c
}

// entries returns the durable entries and the surviving changes of a directory.
func (k *crash) entries(d *memDir) map[string]*memNode {
	if k.rand == nil {
		return d.durable
	}
	out := make(map[string]*memNode, len(d.durable))
	for name, n := range d.durable {
		out[name] = n
	}
	for _, change := range d.pending {
		if k.survives() {
			change.apply(out)
		}
	}
	return out
}

func (c memChange) apply(entries map[string]*memNode) {
	for _, e := range c {
		if e.node == nil {
			delete(entries, e.name)
		} else {
			entries[e.name] = e.node
		}
	}
}

func sortedKeys(m map[string]*memNode) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// change applies a change and remembers it until the next SyncDir.
func (d *memDir) change(c ...memEntry) {
	memChange(c).apply(d.entries)
	d.pending = append(d.pending, c)
}

// find returns the node of a path.
func (m *Mem) find(op, name string) (*memNode, error) {
	n := m.root
	for _, elem := range strings.Split(path.Clean("/" + name)[1:], "/") {
		if elem == "" {
			continue
		}
		if n.dir == nil {
			return nil, memError(op, name, syscall.ENOTDIR)
		}
		if n = n.dir.entries[elem]; n == nil {
			return nil, memError(op, name, fs.ErrNotExist)
		}
	}
	return n, nil
}

// findParent returns the directory of a path and the last element.
func (m *Mem) findParent(op, name string) (*memDir, string, error) {
	dir, base := path.Split(path.Clean("/" + name))
	if base == "" {
		return nil, "", memError(op, name, fs.ErrInvalid)
	}
	n, err := m.find(op, dir)
	switch {
	case err != nil:
		return nil, "", memError(op, name, errors.Unwrap(err))
	case n.dir == nil:
		return nil, "", memError(op, name, syscall.ENOTDIR)
	}
	return n.dir, base, nil
}

func memError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// Create implements FS.
func (m *Mem) Create(name string, _ Kind) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.createLocked("create", name)
	if err != nil {
		return nil, err
	}
	return m.handleLocked(name, n, true), nil
}

func (m *Mem) createLocked(op, name string) (*memNode, error) {
	d, base, err := m.findParent(op, name)
	if err != nil {
		return nil, err
	}
	if d.entries[base] != nil {
		return nil, memError(op, name, fs.ErrExist)
	}
	n := &memNode{links: 1}
	d.change(memEntry{base, n})
	return n, nil
}

func (m *Mem) handleLocked(name string, n *memNode, write bool) *memFile {
	m.open++
	n.opens++
	return &memFile{fs: m, node: n, name: name, write: write}
}

// Open implements FS.
func (m *Mem) Open(name string, _ Kind) (File, error) { return m.openFile(name, false) }

// OpenWrite implements FS.
func (m *Mem) OpenWrite(name string, _ Kind) (File, error) { return m.openFile(name, true) }

func (m *Mem) openFile(name string, write bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.dir != nil {
		return nil, memError("open", name, syscall.EISDIR)
	}
	return m.handleLocked(name, n, write), nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.findParent("remove", name)
	if err != nil {
		return err
	}
	n := d.entries[base]
	switch {
	case n == nil:
		return memError("remove", name, fs.ErrNotExist)
	case n.dir != nil && len(n.dir.entries) > 0:
		return memError("remove", name, syscall.ENOTEMPTY)
	case m.opts.WindowsRules && n.opens > 0:
		return memError("remove", name, errInUse)
	}
	d.change(memEntry{base, nil})
	m.unlinkLocked(n)
	return nil
}

// unlinkLocked takes away one entry of n, and its space with the last.
func (m *Mem) unlinkLocked(n *memNode) {
	n.links--
	m.freeLocked(n)
}

// freeLocked returns the space of a file that nothing refers to any more. The data
// stay for a power cut that brings the entry back.
func (m *Mem) freeLocked(n *memNode) {
	if n.dir == nil && n.links == 0 && n.opens == 0 {
		m.used -= n.data.size
	}
}

// Rename implements FS.
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldBase, err := m.findParent("rename", oldName)
	if err != nil {
		return err
	}
	to, newBase, err := m.findParent("rename", newName)
	if err != nil {
		return err
	}
	n, target := from.entries[oldBase], to.entries[newBase]
	switch {
	case n == nil:
		return memError("rename", oldName, fs.ErrNotExist)
	case n == target:
		return nil
	case target != nil && (target.dir != nil || n.dir != nil):
		return memError("rename", newName, fs.ErrExist)
	case m.opts.WindowsRules && (n.opens > 0 || target != nil && target.opens > 0):
		return memError("rename", oldName, errInUse)
	}
	if from == to {
		from.change(memEntry{oldBase, nil}, memEntry{newBase, n})
	} else {
		from.change(memEntry{oldBase, nil})
		to.change(memEntry{newBase, n})
	}
	if target != nil {
		m.unlinkLocked(target)
	}
	return nil
}

// Link implements FS.
func (m *Mem) Link(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("link", oldName)
	if err != nil {
		return err
	}
	d, base, err := m.findParent("link", newName)
	switch {
	case err != nil:
		return err
	case n.dir != nil:
		return memError("link", oldName, fs.ErrPermission)
	case d.entries[base] != nil:
		return memError("link", newName, fs.ErrExist)
	}
	n.links++
	d.change(memEntry{base, n})
	return nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.root.dir
	for _, elem := range strings.Split(path.Clean("/" + dir)[1:], "/") {
		if elem == "" {
			continue
		}
		if d.entries[elem] == nil {
			d.change(memEntry{elem, newMemDir()})
		}
		if d = d.entries[elem].dir; d == nil {
			return memError("mkdir", dir, syscall.ENOTDIR)
		}
	}
	return nil
}

// List implements FS.
func (m *Mem) List(dir string) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find("open", dir)
	switch {
	case err != nil:
		return nil, err
	case n.dir == nil:
		return nil, memError("open", dir, syscall.ENOTDIR)
	}
	return sortedKeys(n.dir.entries), nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find("stat", name)
	if err != nil {
		return nil, err
	}
	return Info{FileName: path.Base(name), FileSize: n.data.size, IsFolder: n.dir != nil}, nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("sync", dir)
	switch {
	case err != nil:
		return err
	case n.dir == nil:
		return memError("sync", dir, syscall.ENOTDIR)
	}
	for _, c := range n.dir.pending {
		c.apply(n.dir.durable)
	}
	n.dir.pending = nil
	return nil
}

// Join implements FS.
func (m *Mem) Join(elem ...string) string { return path.Join(elem...) }

// FreeSpace implements FS.
func (m *Mem) FreeSpace(string) int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.opts.Capacity == 0 {
		return -1
	}
	return max(m.opts.Capacity-m.used, 0)
}

// OpenFiles returns the number of open files and locks, to find leaks.
func (m *Mem) OpenFiles() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.open
}

// Lock implements FS.
func (m *Mem) Lock(name string, shared, create bool) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("lock", name)
	if errors.Is(err, fs.ErrNotExist) && create {
		n, err = m.createLocked("lock", name)
	}
	if err != nil {
		return nil, err
	}
	if n.dir != nil {
		return nil, memError("lock", name, syscall.EISDIR)
	}
	for _, l := range n.locks {
		if !(l.shared && shared) {
			return nil, &LockedError{Path: name, PID: os.Getpid(), Shared: l.shared}
		}
	}
	m.open++
	n.opens++
	l := &memLock{fs: m, node: n, shared: shared}
	n.locks = append(n.locks, l)
	return l, nil
}

type memLock struct {
	fs     *Mem
	node   *memNode
	shared bool
}

// Close releases the lock.
func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	i := slices.Index(l.node.locks, l)
	if i < 0 {
		return fs.ErrClosed
	}
	l.node.locks = slices.Delete(l.node.locks, i, i+1)
	l.fs.closeLocked(l.node)
	return nil
}

func (m *Mem) closeLocked(n *memNode) {
	m.open--
	n.opens--
	m.freeLocked(n)
}

// growLocked accounts for a file that is about to change from size old to size new.
func (m *Mem) growLocked(old, new int64) error {
	if m.opts.Capacity > 0 && new > old && m.used+new-old > m.opts.Capacity {
		return fmt.Errorf("%d of %d bytes used: %w", m.used, m.opts.Capacity, syscall.ENOSPC)
	}
	m.used += new - old
	return nil
}
