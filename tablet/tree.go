package tablet

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/minikudu/minikudu/internal/rowset"
)

// Tree is an immutable interval tree over the key ranges of disk rowsets: which of
// them may hold a key. The rowsets are sorted by smallest key and the tree is
// implicit in that array: the root of [l, r) is its middle, and beside each rowset
// stands the greatest key of its subtree (the augmented tree of Cormen, Leiserson,
// Rivest, Stein, "Introduction to Algorithms", ch. 14.3, laid out as a sorted
// array). The first 8 bytes of every key are kept as an integer, so that most
// comparisons touch no key.
type Tree struct {
	nodes []treeNode
}

type treeNode struct {
	min, max, top          []byte // top: greatest max of the subtree
	minHead, maxHead, tops uint64 // their first 8 bytes, big-endian
	rs                     rowset.RowSet
}

// head returns the first 8 bytes of a key as a big-endian integer, zero-padded, so
// that head(a) < head(b) implies a < b.
func head(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// less reports a < b, given their heads.
func less(a []byte, ah uint64, b []byte, bh uint64) bool {
	if ah != bh {
		return ah < bh
	}
	return bytes.Compare(a, b) < 0
}

// NewTree returns the tree of the given rowsets, all of which have bounds.
func NewTree(sets []rowset.RowSet) *Tree {
	t := &Tree{nodes: make([]treeNode, len(sets))}
	for i, rs := range sets {
		lo, hi, _ := rs.Bounds()
		t.nodes[i] = treeNode{min: lo, max: hi, minHead: head(lo), maxHead: head(hi), rs: rs}
	}
	slices.SortStableFunc(t.nodes, func(a, b treeNode) int { return bytes.Compare(a.min, b.min) })
	t.augment(0, len(t.nodes))
	return t
}

// augment sets top over [l, r) and returns the greatest key there.
func (t *Tree) augment(l, r int) []byte {
	if l >= r {
		return nil
	}
	m := (l + r) / 2
	n := &t.nodes[m]
	n.top = n.max
	for _, k := range [][]byte{t.augment(l, m), t.augment(m+1, r)} {
		if bytes.Compare(k, n.top) > 0 {
			n.top = k
		}
	}
	n.tops = head(n.top)
	return n.top
}

// Len returns the number of rowsets.
func (t *Tree) Len() int { return len(t.nodes) }

// RowSet returns rowset i in order of smallest key.
func (t *Tree) RowSet(i int) rowset.RowSet { return t.nodes[i].rs }

// Stab calls visit for every rowset whose range holds the key, until it returns false.
func (t *Tree) Stab(key []byte, visit func(rowset.RowSet) bool) {
	t.stab(0, len(t.nodes), key, head(key), visit)
}

func (t *Tree) stab(l, r int, key []byte, h uint64, visit func(rowset.RowSet) bool) bool {
	for l < r {
		m := (l + r) / 2
		n := &t.nodes[m]
		if less(n.top, n.tops, key, h) {
			return true // the whole subtree ends before the key
		}
		if !t.stab(l, m, key, h, visit) {
			return false
		}
		if less(key, h, n.min, n.minHead) {
			return true // this one and all to the right begin after the key
		}
		if !less(n.max, n.maxHead, key, h) && !visit(n.rs) {
			return false
		}
		l = m + 1
	}
	return true
}

// Overlapping appends to dst the rowsets that may hold a key in [lower, upper), nil
// being open, in order of smallest key.
func (t *Tree) Overlapping(dst []rowset.RowSet, lower, upper []byte) []rowset.RowSet {
	for i := range t.nodes {
		n := &t.nodes[i]
		if upper != nil && bytes.Compare(n.min, upper) >= 0 {
			break
		}
		if lower == nil || bytes.Compare(n.max, lower) >= 0 {
			dst = append(dst, n.rs)
		}
	}
	return dst
}

// Group calls visit once for every rowset whose range holds some of the keys, which
// are keys [from, to) of the batch: ascending keys within one range are neighbours.
func (t *Tree) Group(keys *rowset.Keys, visit func(rs rowset.RowSet, from, to int) error) error {
	return t.group(0, len(t.nodes), keys, 0, keys.Len(), visit)
}

func (t *Tree) group(l, r int, keys *rowset.Keys, a, b int, visit func(rowset.RowSet, int, int) error) error {
	for l < r && a < b {
		m := (l + r) / 2
		n := &t.nodes[m]
		b = search(keys, a, b, n.top, true)
		if a == b {
			return nil // every key is past the subtree
		}
		if err := t.group(l, m, keys, a, b, visit); err != nil {
			return err
		}
		a = search(keys, a, b, n.min, false) // keys below min can only be in the left subtree
		if end := search(keys, a, b, n.max, true); a < end {
			if err := visit(n.rs, a, end); err != nil {
				return err
			}
		}
		l = m + 1
	}
	return nil
}

// search returns the first index in [a, b) whose key is not below k, or, with
// after, is above k.
func search(keys *rowset.Keys, a, b int, k []byte, after bool) int {
	for a < b {
		m := (a + b) / 2
		c := bytes.Compare(keys.At(m), k)
		if c < 0 || after && c == 0 {
			a = m + 1
		} else {
			b = m
		}
	}
	return a
}
