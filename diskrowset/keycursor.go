package diskrowset

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"unsafe"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// keyCursor is a cursor that reads a few cells of a page: it takes pages as they are
// cached, and leaves others packed.
type keyCursor struct {
	cursor
	packed *encoding.Packed // instead of cells
	probe  *vector.Vector   // a cell of packed
	uses   int              // of packed

	// What is searched in a packed page, by kind.
	number int64
	word   []byte
	wide   schema.Int128
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
	held, from, err := c.col.cells(ctx, c.data, p)
	if err != nil {
		return 0, err
	}
	c.take(p, held, from)
	return row - c.start, nil
}

// take makes page p the present one.
func (c *keyCursor) take(p int, held cache.Page, from origin) {
	c.cells, _ = held.(*vector.Vector)
	c.packed, _ = held.(*encoding.Packed)
	c.uses = 0
	c.moved(p, from)
}

// ahead makes the page that holds row from the present one, if it is cached, and loads the first
// and the last cell there of the rows up to the given one, for a later reader. It reports whether all
// of these are cached.
func (c *keyCursor) ahead(from, to int) bool {
	d := c.col.data.Load()
	if d == nil {
		return false
	}
	p := d.index.PageOf(int64(from))
	held, ok := d.slots[p].Get()
	if !ok {
		return false
	}
	c.data = d
	c.take(p, held, fromCache)
	c.touch(from - c.start)
	c.touch(min(to, c.end) - 1 - c.start)
	if to <= c.end {
		return true
	}
	_, ok = d.slots[p+1].Get()
	return ok
}

// touch loads a cell of the present page, if it is of fixed width or a code.
//
//go:noinline
func (c *keyCursor) touch(at int) byte {
	if c.packed != nil {
		return c.packed.Touch(at)
	}
	return touchCell(c.cells, at)
}

// cell returns a vector with the cell of a row, and where.
func (c *keyCursor) cell(ctx context.Context, row int) (*vector.Vector, int, error) {
	at, err := c.locate(ctx, row)
	if err != nil || c.packed == nil {
		return c.cells, at, err
	}
	return c.probe, 0, c.col.placed(c.read(at))
}

// value returns the cell of a row; a text shares memory with the page.
func (c *keyCursor) value(ctx context.Context, row int) (schema.Value, error) {
	at, err := c.locate(ctx, row)
	if err != nil {
		return schema.Null, err
	}
	switch kind := c.col.typ.Kind(); {
	case kind == schema.KindBytes && c.packed != nil:
		b, err := c.packed.Bytes(at)
		return textValue(b), c.col.placed(err)
	case kind == schema.KindBytes:
		return textValue(c.cells.BytesAt(at)), nil
	case kind != schema.KindInt128 && c.packed != nil:
		x, err := c.packed.Int(at)
		return schema.IntValue(kind, x), c.col.placed(err)
	case c.packed != nil:
		err := c.read(at)
		if err != nil {
			return schema.Null, c.col.placed(err)
		}
		return c.probe.Value(0), nil
	}
	return c.cells.Value(at), nil
}

// textValue returns a value that shares the memory of b.
func textValue(b []byte) schema.Value {
	return schema.StringValue(unsafe.String(unsafe.SliceData(b), len(b)))
}

// read reads a cell of the packed page into probe.
func (c *keyCursor) read(at int) error {
	c.probe.Reset(c.col.typ.Kind())
	return c.packed.AppendTo(c.probe, at)
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
	c.aim(want, k)
	lo, hi, err = c.narrowPacked(from, to)
	return lo, hi, c.col.placed(err)
}

// aim makes cell k of want what is searched.
func (c *keyCursor) aim(want *vector.Vector, k int) {
	switch want.Kind() {
	case schema.KindInt8:
		c.number = int64(vector.Values[int8](want)[k])
	case schema.KindInt16:
		c.number = int64(vector.Values[int16](want)[k])
	case schema.KindInt32:
		c.number = int64(vector.Values[int32](want)[k])
	case schema.KindInt64:
		c.number = vector.Values[int64](want)[k]
	case schema.KindInt128:
		c.wide = vector.Values[schema.Int128](want)[k]
	default:
		c.word = want.BytesAt(k)
	}
}

// narrowPacked is narrow within the present page, which is packed.
func (c *keyCursor) narrowPacked(from, to int) (lo, hi int, err error) {
	first, err := c.compare(from)
	if err != nil || first > 0 {
		return from, from, err
	}
	last, err := c.compare(to - 1)
	switch {
	case err != nil || first == 0 && last == 0: // as leading columns go
		return from, to, err
	case last < 0:
		return to, to, nil
	}
	if lo, err = c.search(from, to, 0); err != nil {
		return lo, lo, err
	}
	if equal, err := c.compare(lo); err != nil || equal != 0 {
		return lo, lo, err
	}
	if lo+1 < to { // the usual end of the last key column
		if next, err := c.compare(lo + 1); err != nil || next > 0 {
			return lo, lo + 1, err
		}
	}
	if last == 0 {
		return lo, to, nil
	}
	hi, err = c.search(lo+1, to, 1)
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

// search returns the first position of [from, to) whose cell compares with what is searched
// as the sign says, 0 or 1, or greater, to when there is none.
func (c *keyCursor) search(from, to, sign int) (int, error) {
	if kind := c.packed.Kind; kind != schema.KindBytes && kind != schema.KindInt128 {
		if sign == 0 {
			return c.packed.SearchInt(from, to, c.number)
		}
		if c.number == math.MaxInt64 {
			return to, nil
		}
		return c.packed.SearchInt(from, to, c.number+1)
	}
	for from < to {
		mid := int(uint(from+to) >> 1)
		x, err := c.compare(mid)
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

// compare compares a cell of the packed page with what is searched.
func (c *keyCursor) compare(at int) (int, error) {
	switch c.packed.Kind {
	case schema.KindBytes:
		b, err := c.packed.Bytes(at)
		return bytes.Compare(b, c.word), err
	case schema.KindInt128:
		err := c.read(at)
		if err != nil {
			return 0, err
		}
		return vector.Values[schema.Int128](c.probe)[0].Cmp(c.wide), nil
	}
	x, err := c.packed.Int(at)
	return cmp.Compare(x, c.number), err
}
