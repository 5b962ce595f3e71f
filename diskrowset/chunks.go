package diskrowset

import (
	"io"
	"sync"
)

const (
	firstChunk = 4 << 10 // of a buffer, as most parts of a small file are small
	chunkBytes = 64 << 10
)

var chunkPools = [2]sync.Pool{
	{New: func() any { return new([firstChunk]byte) }},
	{New: func() any { return new([chunkBytes]byte) }},
}

// chunks is a buffer that grows without copying or clearing anything.
type chunks struct {
	first *[firstChunk]byte
	more  []*[chunkBytes]byte
	size  int
}

// Write appends p.
func (c *chunks) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := copy(c.room(), p)
		c.size += k
		p = p[k:]
	}
	return n, nil
}

// room returns the free part of the last chunk, which is not empty.
func (c *chunks) room() []byte {
	if c.size < firstChunk {
		if c.first == nil {
			c.first = chunkPools[0].Get().(*[firstChunk]byte)
		}
		return c.first[c.size:]
	}
	k, at := (c.size-firstChunk)/chunkBytes, (c.size-firstChunk)%chunkBytes
	if k == len(c.more) {
		c.more = append(c.more, chunkPools[1].Get().(*[chunkBytes]byte))
	}
	return c.more[k][at:]
}

// Len returns the bytes written.
func (c *chunks) Len() int { return c.size }

// moveTo writes everything to w and empties the buffer.
func (c *chunks) moveTo(w io.Writer) error {
	defer c.free()
	left := c.size
	if left == 0 {
		return nil
	}
	k := min(left, firstChunk)
	_, err := w.Write(c.first[:k])
	for i := 0; i < len(c.more) && err == nil; i++ {
		left -= k
		k = min(left, chunkBytes)
		_, err = w.Write(c.more[i][:k])
	}
	return err
}

// free empties the buffer, whose chunks others may use.
func (c *chunks) free() {
	if c.first != nil {
		chunkPools[0].Put(c.first)
	}
	for _, b := range c.more {
		chunkPools[1].Put(b)
	}
	*c = chunks{}
}
