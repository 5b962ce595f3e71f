package memrowset

import (
	"bytes"
	"encoding/binary"
	"math"
	"sync"

	"github.com/google/btree"

	"github.com/minikudu/minikudu/internal/rowset"
)

const (
	treeRows   = 1 << 16 // rows of a tree before it is sealed
	treeDegree = 64
	lockSlice  = 64   // inserts under one hold of a tree's lock
	walkSlice  = 1024 // rows an ordered reader copies under one hold
	probeRow   = rowset.RowID(math.MaxUint32)
)

// item is a row in key order: 16 bytes of its key as two big-endian numbers, and its
// number. It holds no pointer, so the garbage collector does not look into the nodes
// of a tree.
type item struct {
	hi, lo uint64
	row    rowset.RowID
}

// prefix makes items: it leaves out the bytes that most keys begin with, so that the
// 16 bytes tell more of them apart. A key that begins otherwise gets the smallest or the
// largest prefix. Items of one prefix order as their keys do, where they differ.
type prefix struct{ common []byte }

// newPrefix returns the prefix for keys between two.
func newPrefix(first, last []byte) prefix {
	n := 0
	for n < len(first) && n < len(last) && first[n] == last[n] {
		n++
	}
	return prefix{bytes.Clone(first[:n])}
}

func (p *prefix) item(key []byte, row rowset.RowID) item {
	if n := len(p.common); n > 0 {
		if len(key) < n || string(key[:n]) != string(p.common) {
			return p.outside(key, row)
		}
		key = key[n:]
	}
	if len(key) >= 16 {
		return item{binary.BigEndian.Uint64(key), binary.BigEndian.Uint64(key[8:]), row}
	}
	var b [16]byte
	copy(b[:], key)
	return item{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:]), row}
}

// outside makes the item of a key that does not begin with the common bytes.
func (p *prefix) outside(key []byte, row rowset.RowID) item {
	if bytes.Compare(key, p.common) < 0 {
		return item{0, 0, row}
	}
	return item{math.MaxUint64, math.MaxUint64, row}
}

// tree gives key order to about treeRows rows at most. A B-tree allows no
// reader beside a writer, so both hold mu, briefly. Once the tree is sealed nothing
// changes it, and readers that began before go on with it.
type tree struct {
	// Set at newTree, then read-only.
	keys   *bytesStore
	prefix prefix

	mu    sync.Mutex
	items *btree.BTreeG[item]
	probe []byte // the key of an item of probeRow
}

func newTree(keys *bytesStore, p prefix) *tree {
	t := &tree{keys: keys, prefix: p}
	t.items = btree.NewG(treeDegree, t.lessLocked)
	return t
}

// lessLocked is the order of the tree.
func (t *tree) lessLocked(a, b item) bool {
	if a.hi != b.hi {
		return a.hi < b.hi
	}
	if a.lo != b.lo {
		return a.lo < b.lo
	}
	return a.row != b.row && bytes.Compare(t.keyLocked(a.row), t.keyLocked(b.row)) < 0
}

func (t *tree) keyLocked(row rowset.RowID) []byte {
	if row == probeRow {
		return t.probe
	}
	return t.keys.at(row)
}

// len returns the number of rows; only the appender may ask.
func (t *tree) len() int { return t.items.Len() }

// insert adds rows [at, at+n), whose keys are stored and not in the tree.
func (t *tree) insert(at, n int) {
	for end := at + n; at < end; at += lockSlice {
		t.insertSlice(at, min(end, at+lockSlice))
	}
}

func (t *tree) insertSlice(from, to int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for row := rowset.RowID(from); row < rowset.RowID(to); row++ {
		t.items.ReplaceOrInsert(t.prefix.item(t.keys.at(row), row))
	}
}

// bounds are the keys an ordered read is restricted to, nil where it is not.
type bounds struct{ lower, upper []byte }

// walk appends the next items in key order to dst, walkSlice at most: those after
// last, or from the start of the range when last is nil.
func (t *tree) walk(dst []item, last *item, b bounds, reverse bool) []item {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := walkSlice
	take := func(it item) bool {
		if last != nil && it.row == last.row {
			return true
		}
		key := func() []byte { return t.keys.at(it.row) }
		switch {
		case b.upper != nil && bytes.Compare(key(), b.upper) >= 0:
			return reverse // before the range in reverse, past it forwards
		case b.lower != nil && bytes.Compare(key(), b.lower) < 0:
			return !reverse
		}
		dst = append(dst, it)
		room--
		return room > 0
	}
	start, bounded := t.startLocked(last, b, reverse)
	switch {
	case bounded && reverse:
		t.items.DescendLessOrEqual(start, take)
	case bounded:
		t.items.AscendGreaterOrEqual(start, take)
	case reverse:
		t.items.Descend(take)
	default:
		t.items.Ascend(take)
	}
	t.probe = nil
	return dst
}

// startLocked returns the item at which a walk begins, false to begin at the end.
func (t *tree) startLocked(last *item, b bounds, reverse bool) (item, bool) {
	t.probe = b.lower
	if reverse {
		t.probe = b.upper
	}
	switch {
	case last != nil:
		return *last, true
	case t.probe == nil:
		return item{}, false
	}
	return t.prefix.item(t.probe, probeRow), true
}
