package cfile

import (
	"encoding/binary"
)

// defaultIndexBlock is the size at which an index block is written.
const defaultIndexBlock = 32768

// indexBuilder collects the entries of one index block.
type indexBuilder struct {
	entries []byte
	starts  []uint32
	first   []byte // key of the first entry
}

func (b *indexBuilder) count() int { return len(b.starts) }

func (b *indexBuilder) size() int { return len(b.entries) + 4*len(b.starts) + 16 }

func (b *indexBuilder) add(key []byte, p BlockPtr) {
	if len(b.starts) == 0 {
		b.first = append(b.first[:0], key...)
	}
	b.starts = append(b.starts, uint32(len(b.entries)))
	b.entries = binary.AppendUvarint(b.entries, uint64(len(key)))
	b.entries = append(b.entries, key...)
	b.entries = binary.AppendUvarint(b.entries, uint64(p.Offset))
	b.entries = binary.AppendUvarint(b.entries, uint64(p.Size))
}

// appendTo appends the block's payload.
func (b *indexBuilder) appendTo(dst []byte, leaf bool) []byte {
	dst = append(dst, b.entries...)
	for _, at := range b.starts {
		dst = binary.LittleEndian.AppendUint32(dst, at)
	}
	trailer := len(dst)
	dst = appendNumber(dst, 1, uint64(len(b.starts)))
	kind := uint64(0)
	if !leaf {
		kind = 1
	}
	dst = appendNumber(dst, 2, kind)
	return binary.LittleEndian.AppendUint32(dst, uint32(len(dst)-trailer))
}

func (b *indexBuilder) reset() { b.entries, b.starts = b.entries[:0], b.starts[:0] }

// treeWriter builds an index tree from the leaves up. write stores a block's payload.
type treeWriter struct {
	levels []*indexBuilder // 0: the leaf
	target int
	write  func(payload []byte) (BlockPtr, error)
	buf    []byte
}

func newTreeWriter(target int, write func([]byte) (BlockPtr, error)) *treeWriter {
	if target == 0 {
		target = defaultIndexBlock
	}
	return &treeWriter{levels: []*indexBuilder{{}}, target: target, write: write}
}

// add appends an entry for a data block.
func (t *treeWriter) add(key []byte, p BlockPtr) error { return t.addAt(0, key, p) }

func (t *treeWriter) addAt(level int, key []byte, p BlockPtr) error {
	if level == len(t.levels) {
		t.levels = append(t.levels, &indexBuilder{})
	}
	b := t.levels[level]
	b.add(key, p)
	if b.count() < 2 || b.size() <= t.target {
		return nil
	}
	return t.promote(level)
}

// promote writes the open block of a level and enters it in the level above.
func (t *treeWriter) promote(level int) error {
	p, err := t.flush(level)
	if err != nil {
		return err
	}
	b := t.levels[level]
	err = t.addAt(level+1, b.first, p)
	b.reset()
	return err
}

func (t *treeWriter) flush(level int) (BlockPtr, error) {
	t.buf = t.levels[level].appendTo(t.buf[:0], level == 0)
	return t.write(t.buf)
}

// finish writes what is pending and returns the root.
func (t *treeWriter) finish() (BlockPtr, error) {
	for level := 0; level < len(t.levels)-1; level++ {
		if t.levels[level].count() == 0 {
			continue
		}
		if err := t.promote(level); err != nil {
			return BlockPtr{}, err
		}
	}
	return t.flush(len(t.levels) - 1)
}

// pending returns the bytes of the blocks that are not written yet.
func (t *treeWriter) pending() int {
	n := 0
	for _, b := range t.levels {
		n += b.size()
	}
	return n
}

// separator returns the shortest prefix of key that sorts after prev, the last key
// before it: one byte past their common prefix, or all of key.
func separator(prev, key []byte) []byte {
	n := min(len(prev), len(key))
	for i := range n {
		if prev[i] != key[i] {
			return key[:i+1]
		}
	}
	return key[:min(n+1, len(key))]
}
