package vfs

import (
	"context"
	"io"
	"io/fs"
	"maps"
	"slices"
)

// memBlock is the unit in which contents are shared between clones and lost.
const memBlock = 4096

// memData is the contents of a file as blocks; a nil block reads as zeroes.
//
// A block that is not in dirty is never changed in place, because clones share it:
// the first write after a sync makes a copy and keeps the old block in dirty.
type memData struct {
	size, syncedSize int64
	blocks           map[int64]*[memBlock]byte
	dirty            map[int64]*[memBlock]byte // synced contents of blocks changed since
}

// crash returns the contents after a power cut.
func (d *memData) crash(k *crash) memData {
	c := memData{size: d.syncedSize, blocks: maps.Clone(d.blocks)}
	if d.size != d.syncedSize && k.survives() {
		c.size = d.size
	}
	for _, i := range slices.Sorted(maps.Keys(d.dirty)) { // in order, so that a seed gives one result
		if b := d.dirty[i]; !k.survives() {
			c.blocks[i] = b
		} else if now := d.blocks[i]; now != nil {
			copied := *now
			c.blocks[i] = &copied
		}
	}
	c.syncedSize = c.size
	c.clip()
	return c
}

// copy returns the contents with what is and what is not synced.
func (d *memData) copy() memData {
	c := memData{size: d.size, syncedSize: d.syncedSize, blocks: maps.Clone(d.blocks), dirty: maps.Clone(d.dirty)}
	for i := range d.dirty {
		if b := d.blocks[i]; b != nil {
			copied := *b
			c.blocks[i] = &copied
		}
	}
	return c
}

// clip zeroes what lies behind the size, so that a file grown later reads zeroes there.
func (d *memData) clip() {
	last := d.size / memBlock
	for i := range d.blocks {
		if i > last {
			delete(d.blocks, i)
		}
	}
	if b := d.blocks[last]; b != nil {
		copied := *b
		clear(copied[d.size%memBlock:])
		d.blocks[last] = &copied
	}
}

// writable returns block i for a change.
func (d *memData) writable(i int64) *[memBlock]byte {
	b := d.blocks[i]
	if _, ok := d.dirty[i]; ok && b != nil {
		return b
	}
	fresh := new([memBlock]byte)
	if b != nil {
		*fresh = *b
	}
	d.remember(i)
	if d.blocks == nil {
		d.blocks = map[int64]*[memBlock]byte{}
	}
	d.blocks[i] = fresh
	return fresh
}

// remember keeps the synced contents of block i.
func (d *memData) remember(i int64) {
	if _, ok := d.dirty[i]; ok {
		return
	}
	if d.dirty == nil {
		d.dirty = map[int64]*[memBlock]byte{}
	}
	d.dirty[i] = d.blocks[i]
}

func (d *memData) write(p []byte, off int64) {
	d.size = max(d.size, off+int64(len(p)))
	for len(p) > 0 {
		n := copy(d.writable(off / memBlock)[off%memBlock:], p)
		p, off = p[n:], off+int64(n)
	}
}

func (d *memData) read(p []byte, off int64) (n int) {
	for n < len(p) && off < d.size {
		want := p[n:min(int64(len(p)), int64(n)+d.size-off)]
		var got int
		if b := d.blocks[off/memBlock]; b != nil {
			got = copy(want, b[off%memBlock:])
		} else {
			got = min(len(want), int(memBlock-off%memBlock))
			clear(want[:got])
		}
		n, off = n+got, off+int64(got)
	}
	return n
}

func (d *memData) truncate(size int64) {
	if size < d.size {
		if size%memBlock != 0 {
			clear(d.writable(size / memBlock)[size%memBlock:])
		}
		for i := range d.blocks {
			if i*memBlock >= size {
				d.remember(i)
				delete(d.blocks, i)
			}
		}
	}
	d.size = size
}

func (d *memData) sync() { d.syncedSize, d.dirty = d.size, nil }

// memFile is an open file of a Mem.
type memFile struct {
	fs     *Mem
	node   *memNode
	name   string
	write  bool
	closed bool // guarded by fs.mu
}

// ReadAt implements File.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	switch {
	case f.closed:
		return 0, memError("read", f.name, fs.ErrClosed)
	case off < 0:
		return 0, memError("read", f.name, fs.ErrInvalid)
	}
	n := f.node.data.read(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// ReadAtContext implements File.
func (f *memFile) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return f.ReadAt(p, off)
}

// lockForWrite takes the file system's lock, unless the file cannot be written.
func (f *memFile) lockForWrite(op string) error {
	if !f.write {
		return memError(op, f.name, fs.ErrPermission)
	}
	f.fs.mu.Lock()
	if f.closed {
		f.fs.mu.Unlock()
		return memError(op, f.name, fs.ErrClosed)
	}
	return nil
}

// WriteAt implements File. On a full disk it writes nothing.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, memError("write", f.name, fs.ErrInvalid)
	}
	if err := f.lockForWrite("write"); err != nil {
		return 0, err
	}
	defer f.fs.mu.Unlock()
	d := &f.node.data
	if err := f.fs.growLocked(d.size, max(d.size, off+int64(len(p)))); err != nil {
		return 0, memError("write", f.name, err)
	}
	d.write(p, off)
	return len(p), nil
}

// Sync implements File.
func (f *memFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return memError("sync", f.name, fs.ErrClosed)
	}
	f.node.data.sync()
	return nil
}

// Preallocate implements File.
func (f *memFile) Preallocate(off, n int64) error {
	if n <= 0 {
		return nil
	}
	return f.resize("preallocate", func(size int64) int64 { return max(size, off+n) })
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	return f.resize("truncate", func(int64) int64 { return size })
}

func (f *memFile) resize(op string, to func(size int64) int64) error {
	if err := f.lockForWrite(op); err != nil {
		return err
	}
	defer f.fs.mu.Unlock()
	d := &f.node.data
	size := to(d.size)
	if size < 0 {
		return memError(op, f.name, fs.ErrInvalid)
	}
	if err := f.fs.growLocked(d.size, size); err != nil {
		return memError(op, f.name, err)
	}
	d.truncate(size)
	return nil
}

// Size implements File.
func (f *memFile) Size() (int64, error) {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	if f.closed {
		return 0, memError("stat", f.name, fs.ErrClosed)
	}
	return f.node.data.size, nil
}

// Name implements File.
func (f *memFile) Name() string { return f.name }

// Close implements File.
func (f *memFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return memError("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	f.fs.closeLocked(f.node)
	return nil
}
