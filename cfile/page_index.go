package cfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// PageIndex lists the pages of a file in row order. It must not be changed.
type PageIndex struct {
	Starts  []uint32 // first row of each page, and the number of rows at the end
	Offsets []int64  // of each page, relative to the start of the file
	Sizes   []uint32 // bytes of each page on disk
}

// Pages returns the number of pages.
func (x *PageIndex) Pages() int { return len(x.Offsets) }

// Rows returns the number of rows.
func (x *PageIndex) Rows() int64 { return int64(x.Starts[len(x.Offsets)]) }

// Size returns the bytes of memory the index holds.
func (x *PageIndex) Size() int { return 4*cap(x.Starts) + 8*cap(x.Offsets) + 4*cap(x.Sizes) }

// PageOf returns the page that holds the row, which must be in [0, Rows).
func (x *PageIndex) PageOf(row int64) int {
	if p, ok := x.guess(row); ok {
		return p
	}
	lo, hi := 0, len(x.Offsets)
	for hi-lo > 1 {
		mid := int(uint(lo+hi) >> 1)
		if int64(x.Starts[mid]) <= row {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// guess is PageOf where the pages before have as many rows as the first, as most have.
func (x *PageIndex) guess(row int64) (int, bool) {
	if len(x.Starts) < 2 || x.Starts[1] == 0 {
		return 0, false
	}
	p := int(uint32(row) / x.Starts[1])
	return p, p+1 < len(x.Starts) && int64(x.Starts[p]) <= row && row < int64(x.Starts[p+1])
}

// PageRows returns the rows [from, to) of a page.
func (x *PageIndex) PageRows(page int) (from, to int64) {
	return int64(x.Starts[page]), int64(x.Starts[page+1])
}

func (x *PageIndex) ptr(page int) BlockPtr {
	return BlockPtr{Offset: x.Offsets[page], Size: x.Sizes[page]}
}

func (x *PageIndex) add(start uint32, p BlockPtr) {
	x.Starts = append(x.Starts, start)
	x.Offsets = append(x.Offsets, p.Offset)
	x.Sizes = append(x.Sizes, p.Size)
}

// LoadIndex reads the whole positional index and checks it. For a file that has none
// it reads the value index and the header of every page.
func (r *Reader) LoadIndex(ctx context.Context) (*PageIndex, error) {
	return r.loadIndex(ctx, nil)
}

func (r *Reader) loadIndex(ctx context.Context, node func(indexNode) error) (*PageIndex, error) {
	if r.footer.Positional.IsZero() {
		return r.indexFromPages(ctx)
	}
	x := &PageIndex{}
	err := r.walkPositional(ctx, func(e indexEntry) error {
		x.add(binary.BigEndian.Uint32(e.key), e.ptr)
		return nil
	}, node)
	if err != nil {
		return nil, err
	}
	x.Starts = append(x.Starts, uint32(r.footer.Rows))
	return x, nil
}

// KeyIndex holds the value index as a flat array. Key i sorts after the last value of
// page i-1 and at or before the first of page i. It must not be changed.
type KeyIndex struct {
	Keys *vector.Vector // one per page
}

// Page returns the page in which a search for an encoded key begins: the first value
// at or after the key is in this page, or else the first of the next one.
func (x *KeyIndex) Page(key []byte) int {
	n := sort.Search(x.Keys.Len(), func(i int) bool { return bytes.Compare(x.Keys.BytesAt(i), key) > 0 })
	return max(n-1, 0)
}

// LoadKeyIndex reads the whole value index and checks it against idx.
func (r *Reader) LoadKeyIndex(ctx context.Context, idx *PageIndex) (*KeyIndex, error) {
	if r.footer.Value.IsZero() {
		return nil, r.noValueIndex()
	}
	return r.loadKeyIndex(ctx, idx, nil)
}

func (r *Reader) loadKeyIndex(ctx context.Context, idx *PageIndex, node func(indexNode) error) (*KeyIndex, error) {
	x := &KeyIndex{Keys: vector.New(schema.KindBytes, idx.Pages())}
	err := r.walkValue(ctx, func(e indexEntry) error {
		page := x.Keys.Len()
		if page >= idx.Pages() || idx.ptr(page) != e.ptr {
			return r.damaged(partValue, e.ptr.Offset, int64(e.ptr.Size), fmt.Errorf("entry %d is not page %d", page, page))
		}
		return x.Keys.AppendBytes(e.key)
	}, node)
	if err == nil && x.Keys.Len() != idx.Pages() {
		err = r.damaged(partValue, r.footer.Value.Offset, int64(r.footer.Value.Size),
			fmt.Errorf("%d entries for %d pages", x.Keys.Len(), idx.Pages()))
	}
	return x, err
}

func (r *Reader) noValueIndex() error {
	return fmt.Errorf("%s: column %s has no value index: %w", r.opts.Path, r.opts.Column, schema.ErrInvalidArgument)
}
