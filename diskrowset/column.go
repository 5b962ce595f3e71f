package diskrowset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// column is a stored column file: of a table column, the insert times or the key
// index. Nothing is read until it is needed, and a failure is not remembered.
type column struct {
	file    *file
	pages   *Pages
	name    string // for messages
	typ     schema.Type
	rows    int64
	section rowset.Section
	zoneSec rowset.Section // Length 0: none
	keyed   bool           // has the value index of a single-column key

	data  atomic.Pointer[columnData]
	zones atomic.Pointer[cfile.ZoneMap]
	mu    sync.Mutex // held while data or zones are read
}

// columnData is an open column: flat arrays that are kept, and the places of its
// pages in the cache.
type columnData struct {
	reader *cfile.Reader
	index  *cfile.PageIndex
	slots  []cache.Slot[cache.Page]
	keys   *runs // one run per page, with a value index

	patched atomic.Pointer[[]patchedPlace] // of pages with changes applied; nil before the first
}

// open returns the column's footer and indexes.
func (c *column) open(ctx context.Context) (*columnData, error) {
	if d := c.data.Load(); d != nil {
		return d, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.data.Load(); d != nil {
		return d, nil
	}
	d, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	c.data.Store(d)
	return d, nil
}

func (c *column) read(ctx context.Context) (*columnData, error) {
	if err := c.file.check(ctx); err != nil {
		return nil, err
	}
	r, err := cfile.Open(ctx, c.file, c.section.Offset, c.section.Length,
		cfile.ReaderOptions{Path: c.file.path, Column: c.name})
	if err != nil {
		return nil, err
	}
	if r.Type() != c.typ || r.Rows() != c.rows {
		return nil, c.damage(fmt.Errorf("%d rows of %s, want %d of %s", r.Rows(), r.Type(), c.rows, c.typ))
	}
	d := &columnData{reader: r}
	if d.index, err = r.LoadIndex(ctx); err != nil {
		return nil, err
	}
	d.slots = make([]cache.Slot[cache.Page], d.index.Pages())
	if c.keyed {
		d.keys, err = c.readKeys(ctx, d)
	}
	return d, err
}

func (c *column) readKeys(ctx context.Context, d *columnData) (*runs, error) {
	x, err := d.reader.LoadKeyIndex(ctx, d.index)
	if err != nil {
		return nil, err
	}
	if x.Keys.Len() != d.index.Pages() || x.Keys.Len() == 0 || !ascending(x.Keys) {
		return nil, c.damage(fmt.Errorf("value index of %d keys for %d pages", x.Keys.Len(), d.index.Pages()))
	}
	return newRuns(x.Keys), nil
}

// zoneMap returns the column's zone map, nil when it has none.
func (c *column) zoneMap(ctx context.Context) (*cfile.ZoneMap, error) {
	if z := c.zones.Load(); z != nil || c.zoneSec.Length == 0 {
		return z, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if z := c.zones.Load(); z != nil {
		return z, nil
	}
	b, err := c.file.readSection(ctx, c.zoneSec)
	if err != nil {
		return nil, err
	}
	z, err := cfile.DecodeZoneMap(b, c.typ.Kind())
	if err == nil && z.File.Rows != c.rows {
		err = fmt.Errorf("zone map of %d rows, want %d", z.File.Rows, c.rows)
	}
	if err != nil {
		return nil, place(err, c.file.path, "zone map of column "+c.name, c.zoneSec.Offset)
	}
	c.zones.Store(z)
	return z, nil
}

// origin says what a decoded page took.
type origin uint8

const (
	fromFile   origin = iota // was read and decoded
	fromPacked               // was cached as it is stored, and decoded
	fromCache                // was cached decoded
)

// page returns decoded page p. One that is cached packed makes way for it.
func (c *column) page(ctx context.Context, d *columnData, p int) (*vector.Vector, origin, error) {
	v, packed, from, err := c.decoded(ctx, d, p)
	if err != nil || from == fromCache {
		return v, from, err
	}
	var kept cache.Page
	if packed != nil {
		kept = c.pages.Replace(&d.slots[p], packed, v)
	} else {
		kept = c.pages.Put(&d.slots[p], v)
	}
	if other, ok := kept.(*vector.Vector); ok {
		v = other
	}
	return v, from, nil
}

// pageOnce is page for a reader that will not come back: it leaves the cache as it is.
func (c *column) pageOnce(ctx context.Context, d *columnData, p int) (*vector.Vector, origin, error) {
	v, _, from, err := c.decoded(ctx, d, p)
	return v, from, err
}

// decoded returns page p, decoded, and what the cache had of it if it was packed.
func (c *column) decoded(ctx context.Context, d *columnData, p int) (v *vector.Vector, packed *encoding.Packed, from origin, err error) {
	held, _ := d.slots[p].Get()
	switch x := held.(type) {
	case *vector.Vector:
		return x, nil, fromCache, nil
	case *encoding.Packed:
		if v, err = x.Vector(); err != nil {
			return nil, nil, fromPacked, c.damage(err)
		}
		return v, x, fromPacked, nil
	}
	v, err = c.readPage(ctx, d, p)
	return v, nil, fromFile, err
}

// cells returns page p for a reader of a few cells, in the form in which it is cached, or
// else packed where its encoding allows that.
func (c *column) cells(ctx context.Context, d *columnData, p int) (cache.Page, origin, error) {
	if held, ok := d.slots[p].Get(); ok {
		return held, fromCache, nil
	}
	v, packed, err := d.reader.ReadCells(ctx, d.index, p)
	switch {
	case err != nil:
		return nil, fromFile, err
	case packed != nil:
		return c.pages.Put(&d.slots[p], packed), fromFile, nil
	}
	return c.pages.Put(&d.slots[p], v), fromFile, nil
}

func (c *column) readPage(ctx context.Context, d *columnData, p int) (*vector.Vector, error) {
	v, err := d.reader.ReadPage(ctx, d.index, p)
	if err != nil {
		return nil, err
	}
	if want := int(d.index.Starts[p+1] - d.index.Starts[p]); v.Len() != want {
		return nil, c.damage(fmt.Errorf("page %d of %d rows, want %d", p, v.Len(), want))
	}
	return v, nil
}

// forget gives the column's cached pages up.
func (c *column) forget() {
	if d := c.data.Load(); d != nil {
		c.pages.Forget(d.slots)
		if s := d.patched.Load(); s != nil {
			for i := range *s {
				c.pages.Forget((*s)[i].slot[:])
			}
		}
	}
}

// placed says of damage that a cell was found to have where that is.
func (c *column) placed(err error) error {
	if errors.Is(err, vfs.ErrCorruption) {
		return c.damage(err)
	}
	return err
}

func (c *column) damage(err error) error {
	return damage(c.file.path, "column "+c.name, c.section.Offset, c.section.Length, err)
}

// cursor reads cells of one column by row and remembers the page it used last. The
// zero cursor with its column set is ready.
type cursor struct {
	col        *column
	once       bool     // reads every page once and leaves the cache as it is
	patches    *patcher // of changed cells; nil: pages are as they are stored
	data       *columnData
	page       int
	start, end int            // rows of page; start == end before the first seek
	cells      *vector.Vector // of page
	from       origin         // of page
	hits       int64          // pages that were cached
}

// open opens the column.
func (c *cursor) open(ctx context.Context) (err error) {
	if c.data == nil {
		c.data, err = c.col.open(ctx)
	}
	return err
}

// at returns the page that holds a row and the row's position in it.
func (c *cursor) at(ctx context.Context, row int) (*vector.Vector, int, error) {
	if uint(row-c.start) >= uint(c.end-c.start) {
		if err := c.seek(ctx, row); err != nil {
			return nil, 0, err
		}
	}
	return c.cells, row - c.start, nil
}

func (c *cursor) seek(ctx context.Context, row int) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	p := c.data.index.PageOf(int64(row))
	v, from, err := c.readPage(ctx, p)
	if err != nil {
		return err
	}
	c.cells = v
	c.moved(p, from)
	return nil
}

// readPage returns page p.
func (c *cursor) readPage(ctx context.Context, p int) (*vector.Vector, origin, error) {
	switch {
	case c.once:
		return c.col.pageOnce(ctx, c.data, p)
	case c.patches != nil:
		return c.patches.page(ctx, c.col, c.data, p)
	}
	return c.col.page(ctx, c.data, p)
}

// moved notes that page p is the present one, and where it came from.
func (c *cursor) moved(p int, from origin) {
	starts := c.data.index.Starts
	c.page, c.start, c.end = p, int(starts[p]), int(starts[p+1])
	if c.from = from; from == fromCache {
		c.hits++
	}
}
