package cfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// maxDepth bounds the levels of an index.
const maxDepth = 64

// Names of the parts of a file in messages.
const (
	partHeader     = "header"
	partFooter     = "footer"
	partZones      = "zone map"
	partData       = "data block"
	partDictionary = "dictionary"
	partPositional = "positional index"
	partValue      = "value index"
)

// indexNode describes a visited index block. level is 0 for leaves.
type indexNode struct {
	ptr     BlockPtr
	plain   int
	stored  bool
	entries int
	level   int
}

// treeWalk visits an index from left to right and checks it as a whole: blocks of a
// level and data blocks lie in the file in the order of their keys, a child before
// its parent, all leaves at one depth. No block can thus be visited twice at a depth.
type treeWalk struct {
	r          *Reader
	what       string
	positional bool
	leaf       func(indexEntry) error // each leaf entry; the key is valid during the call
	node       func(indexNode) error  // each block after its children; may be nil

	leafDepth int                 // -1 until the first leaf
	ends      [maxDepth + 1]int64 // end of the last block seen at each depth
	dataEnd   int64               // end of the last data block
	lastKey   []byte
	leaves    int64 // leaf entries so far
}

func (r *Reader) walkPositional(ctx context.Context, leaf func(indexEntry) error, node func(indexNode) error) error {
	t := &treeWalk{r: r, what: partPositional, positional: true, leaf: leaf, node: node, leafDepth: -1}
	return t.root(ctx, r.footer.Positional)
}

func (r *Reader) walkValue(ctx context.Context, leaf func(indexEntry) error, node func(indexNode) error) error {
	t := &treeWalk{r: r, what: partValue, leaf: leaf, node: node, leafDepth: -1}
	return t.root(ctx, r.footer.Value)
}

func (t *treeWalk) root(ctx context.Context, p BlockPtr) error {
	if err := t.visit(ctx, p, nil, 0); err != nil {
		return err
	}
	if (t.leaves == 0) != (t.r.footer.Rows == 0) {
		return t.damaged(p, fmt.Errorf("%d pages for %d rows", t.leaves, t.r.footer.Rows))
	}
	return nil
}

func (t *treeWalk) damaged(p BlockPtr, err error) error {
	return t.r.damaged(t.what, p.Offset, int64(p.Size), err)
}

// visit walks the block at p, whose extent has been checked and whose first key must
// be the given one; nil stands for the root's.
func (t *treeWalk) visit(ctx context.Context, p BlockPtr, first []byte, depth int) error {
	if depth > maxDepth || p.Offset < t.ends[depth] {
		return t.damaged(p, fmt.Errorf("block at depth %d begins before %d", depth, t.ends[min(depth, maxDepth)]))
	}
	t.ends[depth] = p.end()
	s := getScratch()
	defer s.put()
	b, plain, err := t.r.readIndexBlock(ctx, s, p, first, t.what)
	if err != nil {
		return err
	}
	if b.leaf && t.leafDepth < 0 {
		t.leafDepth = depth
	}
	if b.leaf != (depth == t.leafDepth) || len(b.entries) == 0 && depth > 0 {
		return t.damaged(p, fmt.Errorf("leaf %t at depth %d with %d entries, leaves are at %d", b.leaf, depth, len(b.entries), t.leafDepth))
	}
	stored := s.stored
	for i := range b.entries {
		if err := t.entry(ctx, p, b.entries[i], b.leaf, depth); err != nil {
			return err
		}
	}
	if t.node == nil {
		return nil
	}
	return t.node(indexNode{ptr: p, plain: plain, stored: stored, entries: len(b.entries), level: t.leafDepth - depth})
}

func (t *treeWalk) entry(ctx context.Context, parent BlockPtr, e indexEntry, leaf bool, depth int) error {
	if err := t.r.checkExtent(e.ptr, parent.Offset); err != nil {
		return t.damaged(parent, err)
	}
	if !leaf {
		return t.visit(ctx, e.ptr, e.key, depth+1)
	}
	if err := t.checkLeaf(e); err != nil {
		return t.damaged(parent, err)
	}
	return t.leaf(e)
}

// checkLeaf checks a leaf entry against the one before it.
func (t *treeWalk) checkLeaf(e indexEntry) error {
	if e.ptr.Offset < t.dataEnd {
		return fmt.Errorf("page at %d begins before %d", e.ptr.Offset, t.dataEnd)
	}
	t.dataEnd = e.ptr.end()
	order := bytes.Compare(e.key, t.lastKey)
	switch {
	case !t.positional && order < 0:
		return errors.New("keys out of order")
	case t.positional && len(e.key) != 4:
		return fmt.Errorf("key of %d bytes, want 4", len(e.key))
	case t.positional && t.leaves == 0 && binary.BigEndian.Uint32(e.key) != 0:
		return fmt.Errorf("first page begins at row %d", binary.BigEndian.Uint32(e.key))
	case t.positional && t.leaves > 0 && order <= 0:
		return errors.New("rows out of order")
	case t.positional && int64(binary.BigEndian.Uint32(e.key)) >= t.r.footer.Rows:
		return fmt.Errorf("page begins at row %d of %d", binary.BigEndian.Uint32(e.key), t.r.footer.Rows)
	}
	t.lastKey = append(t.lastKey[:0], e.key...)
	t.leaves++
	return nil
}

// readIndexBlock reads and parses the index block at p. first is the key its parent
// gives it, nil for a root. The result lives in the scratch.
func (r *Reader) readIndexBlock(ctx context.Context, s *scratch, p BlockPtr, first []byte, what string) (indexBlock, int, error) {
	payload, err := r.readBlock(ctx, s, p, what)
	if err != nil {
		return indexBlock{}, 0, err
	}
	b, err := parseIndexBlock(payload)
	switch {
	case err != nil:
	case !b.leaf && len(b.entries) == 0:
		err = errors.New("inner block without entries")
	case first != nil && (len(b.entries) == 0 || !bytes.Equal(first, b.entries[0].key)):
		err = errors.New("first key differs from the parent's")
	}
	return b, len(payload), r.damaged(what, p.Offset, int64(p.Size), err)
}
