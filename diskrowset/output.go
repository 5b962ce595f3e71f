package diskrowset

import (
	"fmt"
	"io"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/vfs"
)

// bufferBytes is the size of the writes to a rowset file.
const bufferBytes = 1 << 20

// output writes a file from front to back through one buffer. Its error sticks.
type output struct {
	f        vfs.File
	throttle func(n int) error // may wait; nil: does not
	buf      []byte
	offset   int64 // of buf in the file
	crc      uint32
	err      error
}

// size returns the number of bytes written so far.
func (o *output) size() int64 { return o.offset + int64(len(o.buf)) }

// Write appends p to the file.
func (o *output) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && o.err == nil {
		k := min(len(p), cap(o.buf)-len(o.buf))
		o.buf = append(o.buf, p[:k]...)
		p = p[k:]
		if len(o.buf) == cap(o.buf) {
			o.flush()
		}
	}
	return n - len(p), o.err
}

func (o *output) flush() {
	if o.err != nil || len(o.buf) == 0 {
		return
	}
	if o.throttle != nil {
		if o.err = o.throttle(len(o.buf)); o.err != nil {
			return
		}
	}
	o.crc = binfmt.UpdateCRC(o.crc, o.buf)
	n, err := o.f.WriteAt(o.buf, o.offset)
	if err == nil && n != len(o.buf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		o.err = fmt.Errorf("writing %s: %w", o.f.Name(), err)
		return
	}
	o.offset += int64(len(o.buf))
	o.buf = o.buf[:0]
}

// sync writes what is buffered and makes the file durable.
func (o *output) sync() error {
	o.flush()
	if o.err == nil {
		if err := o.f.Sync(); err != nil {
			o.err = fmt.Errorf("syncing %s: %w", o.f.Name(), err)
		}
	}
	return o.err
}
