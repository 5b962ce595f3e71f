package diskrowset

import (
	"context"
	"errors"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// keyCursor is a cursor that reads a few cells of a page: it takes pages as they are
// cached, and where memory is short it leaves them packed.
type keyCursor struct {
	cursor
	packed *encoding.Packed // instead of cells
	probe  *vector.Vector   // a cell of packed
	uses   int              // of packed
}

// maxUses is how many keys are searched in a packed page, which takes about as long as to
// decode it, before it is decoded for those that follow.
const maxUses = 64

// locate makes the page that holds a row the present one and returns the row's position
// in it.
func (c *keyCursor) locate(ctx context.Context, row int) (int, error) {
	if uint(row-c.start) < uint(c.end-c.start) {
		return row - c.start, nil
	}
	if err := c.open(ctx); err != nil {
		return 0, err
	}
	p := c.data.index.PageOf(int64(row))
	held, from, err := c.col.few(ctx, c.data, p)
	if err != nil {
		return 0, err
	}
	c.cells, _ = held.(*vector.Vector)
	c.packed, _ = held.(*encoding.Packed)
	c.uses = 0
	c.moved(p, from)
	return row - c.start, nil
}

// cell returns a vector with the cell of a row, and where.
func (c *keyCursor) cell(ctx context.Context, row int) (*vector.Vector, int, error) {
	at, err := c.locate(ctx, row)
	if err != nil || c.packed == nil {
		return c.cells, at, err
	}
	return c.probe, 0, c.read(at)
}

// read reads a cell of the packed page into probe.
func (c *keyCursor) read(at int) error {
	c.probe.Reset(c.col.typ.Kind())
	err := c.packed.AppendTo(c.probe, at)
	if errors.Is(err, vfs.ErrCorruption) {
		err = c.col.damage(err)
	}
	return err
}

// narrow returns the rows of [from, to), ascending in this column, whose cell equals
// cell k of want. The rows may lie in several pages.
func (c *keyCursor) narrow(ctx context.Context, from, to int, want *vector.Vector, k int) (int, int, error) {
	first := -1
	for from < to {
		at, err := c.locate(ctx, from)
		if err != nil {
			return 0, 0, err
		}
		end := at + min(to, c.end) - from
		lo, hi, err := c.narrowPage(at, end, want, k)
		if err != nil {
			return 0, 0, err
		}
		if lo < hi && first < 0 {
			first = c.start + lo
		}
		if hi < end { // a larger cell follows
			if first < 0 {
				first = c.start + lo
			}
			return first, c.start + hi, nil
		}
		from = min(to, c.end)
	}
	if first < 0 {
		first = to
	}
	return first, to, nil
}

// narrowPage is narrow within the present page.
func (c *keyCursor) narrowPage(from, to int, want *vector.Vector, k int) (lo, hi int, err error) {
	if err := c.use(); err != nil {
		return 0, 0, err
	}
	if c.packed == nil {
		lo, hi = narrow(c.cells, from, to, want, k)
		return lo, hi, nil
	}
	first, err := c.compare(from, want, k)
	if err != nil || first > 0 {
		return from, from, err
	}
	last, err := c.compare(to-1, want, k)
	switch {
	case err != nil || first == 0 && last == 0: // as leading columns go
		return from, to, err
	case last < 0:
		return to, to, nil
	}
	if lo, err = c.search(from, to, want, k, 0); err != nil {
		return lo, lo, err
	}
	if equal, err := c.compare(lo, want, k); err != nil || equal != 0 {
		return lo, lo, err
	}
	if lo+1 < to { // the usual end of the last key column
		if next, err := c.compare(lo+1, want, k); err != nil || next > 0 {
			return lo, lo + 1, err
		}
	}
	hi, err = c.search(lo+1, to, want, k, 1)
	return lo, hi, err
}

// use counts a search in the present page and decodes it when there are many. The cache
// keeps what it has.
func (c *keyCursor) use() error {
	if c.packed == nil {
		return nil
	}
	if c.uses++; c.uses <= maxUses {
		return nil
	}
	v, err := c.packed.Vector()
	if err != nil {
		return c.col.damage(err)
	}
	c.cells, c.packed = v, nil
	return nil
}

// search returns the first position of [from, to) whose cell compares with cell k of want
// as the sign says or greater, to when there is none. Far from its end it looks at
// positions that are cheap to read.
func (c *keyCursor) search(from, to int, want *vector.Vector, k, sign int) (int, error) {
	for from < to {
		mid := int(uint(from+to) >> 1)
		if to-from > 2*encoding.PackedStride {
			mid &^= encoding.PackedStride - 1
		}
		x, err := c.compare(mid, want, k)
		switch {
		case err != nil:
			return 0, err
		case x >= sign:
			to = mid
		default:
			from = mid + 1
		}
	}
	return from, nil
}

// compare compares a cell of the packed page with cell k of want.
func (c *keyCursor) compare(at int, want *vector.Vector, k int) (int, error) {
	if err := c.read(at); err != nil {
		return 0, err
	}
	switch lo, hi := narrow(c.probe, 0, 1, want, k); {
	case lo < hi:
		return 0, nil
	case lo == 0:
		return 1, nil
	}
	return -1, nil
}
