package cfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"
)

// indexEntry points to a data block, or to an index block of the level below.
type indexEntry struct {
	key []byte // within the payload
	ptr BlockPtr
}

// indexBlock is a parsed index block.
type indexBlock struct {
	leaf    bool
	entries []indexEntry
}

// parseIndexBlock checks every byte of a payload: the entries begin at 0, each ends
// where the next one begins, and the last at the table of starts. The result shares
// the payload's memory.
func parseIndexBlock(payload []byte) (indexBlock, error) {
	var b indexBlock
	rest, n, err := b.trailer(payload)
	if err != nil {
		return b, err
	}
	// An entry takes at least three bytes and four in the table.
	if uint64(n)*7 > uint64(len(rest)) {
		return b, fmt.Errorf("%d index entries in %d bytes", n, len(rest))
	}
	table := rest[len(rest)-4*n:]
	area := rest[:len(rest)-4*n]
	b.entries = make([]indexEntry, n)
	pos := 0
	for i := range b.entries {
		if start := binary.LittleEndian.Uint32(table[4*i:]); uint64(start) != uint64(pos) {
			return b, fmt.Errorf("index entry %d starts at %d, want %d", i, start, pos)
		}
		size, err := b.entries[i].parse(area[pos:])
		if err != nil {
			return b, fmt.Errorf("index entry %d: %w", i, err)
		}
		pos += size
	}
	if pos != len(area) {
		return b, fmt.Errorf("%d bytes after the last index entry", len(area)-pos)
	}
	return b, nil
}

// trailer reads the trailer and returns the bytes before it and the entry count.
func (b *indexBlock) trailer(payload []byte) (rest []byte, n int, err error) {
	if len(payload) < 4 {
		return nil, 0, fmt.Errorf("index block of %d bytes", len(payload))
	}
	rest = payload[:len(payload)-4]
	size := binary.LittleEndian.Uint32(payload[len(rest):])
	if size < 4 || uint64(size) > uint64(len(rest)) {
		return nil, 0, fmt.Errorf("index trailer of %d bytes in %d", size, len(rest))
	}
	at := len(rest) - int(size)
	count, kind, err := decodeTrailer(rest[at:])
	if err != nil {
		return nil, 0, fmt.Errorf("index trailer: %w", err)
	}
	b.leaf = kind == 0
	return rest[:at], int(count), nil
}

func decodeTrailer(b []byte) (count, kind uint64, err error) {
	m := message{rest: b}
	var hasCount, hasKind bool
	for f := m.next(); f != 0; f = m.next() {
		switch f {
		case 1:
			count, hasCount = m.number(math.MaxInt32), true
		case 2:
			kind, hasKind = m.number(1), true
		default:
			m.skip()
		}
	}
	if m.err == nil && !(hasCount && hasKind) {
		m.err = errors.New("required field missing")
	}
	return count, kind, m.err
}

// parse reads one entry and returns its length.
func (e *indexEntry) parse(b []byte) (int, error) {
	keyLen, n := binary.Uvarint(b)
	if n <= 0 || keyLen > uint64(len(b)-n) {
		return 0, errors.New("key ends past the block")
	}
	pos := n + int(keyLen)
	e.key = b[n:pos:pos]
	off, n := binary.Uvarint(b[pos:])
	if n <= 0 || off == 0 || off > math.MaxInt64 {
		return 0, errors.New("bad block offset")
	}
	pos += n
	size, n := binary.Uvarint(b[pos:])
	if n <= 0 || size == 0 || size > math.MaxUint32 {
		return 0, errors.New("bad block size")
	}
	e.ptr = BlockPtr{Offset: int64(off), Size: uint32(size)}
	return pos + n, nil
}

// search returns the last entry whose key is at or before key, -1 when there is none.
func (b *indexBlock) search(key []byte) int {
	n := sort.Search(len(b.entries), func(i int) bool { return bytes.Compare(b.entries[i].key, key) > 0 })
	return n - 1
}
