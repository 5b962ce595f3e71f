package diskrowset

import (
	"context"
	"errors"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// scanColumn is a column as one scan reads it.
type scanColumn struct {
	cursor
	stats *rowset.ColumnStats // nil: not counted
	zones *cfile.ZoneMap      // loaded when the filter first asks

	// A column without data has the same value in every row.
	constant     schema.Value
	kind         schema.Kind
	constantRows *vector.Vector

	patches patcher        // changes of the cells
	batch   *vector.Vector // cells of the batch being filled, nil until needed
	since   mvcc.Timestamp // changes after this are still to be applied to some of them
	scratch *vector.Vector // cells of a batch that lies in several pages
	hint    int            // page looked up last

	passed vector.Bitmap // pages the scan has passed or begun
	seen   vector.Bitmap // pages with rows that were tested or delivered
	loaded vector.Bitmap // pages that were needed
}

func newScanColumn(s *RowSet, col int, spec *rowset.ScanSpec) *scanColumn {
	c := spec.Schema.Column(col)
	out := &scanColumn{constant: readDefault(c), kind: c.Kind()}
	out.col = s.stored(spec.Schema, col)
	out.stats = &spec.Stats.Columns[col]
	return out
}

// open opens the column's indexes.
func (c *scanColumn) open(ctx context.Context) error {
	if c.col == nil {
		return nil
	}
	if err := c.cursor.open(ctx); err != nil {
		return err
	}
	n := c.data.index.Pages()
	words := vector.Words(n)
	b := make(vector.Bitmap, 3*words)
	c.passed, c.seen, c.loaded = b[:words:words], b[words:2*words:2*words], b[2*words:]
	return nil
}

// pageAround returns the rows of the page that holds a row; a column without pages
// bounds nothing.
func (c *scanColumn) pageAround(row int) (from, to int) {
	if c.col == nil {
		return 0, maxRows
	}
	p := c.pageOf(row)
	starts := c.data.index.Starts
	return int(starts[p]), int(starts[p+1])
}

// pageOf is PageIndex.PageOf with a memory of the last answer.
func (c *scanColumn) pageOf(row int) int {
	starts := c.data.index.Starts
	if int(starts[c.hint]) > row || int(starts[c.hint+1]) <= row {
		c.hint = c.data.index.PageOf(int64(row))
	}
	return c.hint
}

// pass notes that the scan takes rows [from, to); used says that they may be selected.
func (c *scanColumn) pass(from, to int, used bool) {
	if c.col == nil {
		return
	}
	first, last := c.pageOf(from), c.pageOf(to-1)
	c.passed.SetRange(first, last+1)
	if used {
		c.seen.SetRange(first, last+1)
	}
}

// finish adds the pages that were passed to the counters.
func (c *scanColumn) finish() {
	if c.col == nil || c.data == nil {
		return
	}
	c.col.pages.Hit(c.hits)
	if c.stats == nil {
		return
	}
	c.stats.Pages.Add(int64(c.passed.Count()))
	c.passed.AndNot(c.loaded)
	skipped := int64(c.passed.Count())
	c.passed.AndNot(c.seen)
	byZone := int64(c.passed.Count())
	c.stats.ByZone.Add(byZone)
	c.stats.BySelection.Add(skipped - byZone)
}

// zone returns the summary of the page that holds a row.
func (c *scanColumn) zone(ctx context.Context, row int) (vector.Zone, bool, error) {
	if c.col == nil {
		return constantZone(c.constant, maxRows), true, nil
	}
	if c.zones == nil {
		z, err := c.col.zoneMap(ctx)
		if z == nil || err != nil {
			return vector.Zone{}, false, err
		}
		if len(z.Pages) != c.data.index.Pages() {
			return vector.Zone{}, false, c.col.damage(errZonePages)
		}
		c.zones = z
	}
	return c.zones.Pages[c.pageOf(row)], true, nil
}

var errZonePages = errors.New("zone map and positional index differ in the number of pages")

// view returns the cells of rows [from, to), the batch being filled. It shares memory
// with the cached page where one page holds them all.
func (c *scanColumn) view(ctx context.Context, from, to int) (*vector.Vector, error) {
	if c.batch != nil {
		return c.batch, nil
	}
	if c.since = c.patches.at; c.col == nil {
		c.since = 0
	}
	v, err := c.read(ctx, from, to)
	if err == nil && c.since < c.patches.at {
		v, err = c.patches.patch(ctx, c.since, from, to, v) // to apply a change twice does no harm
	}
	if err != nil {
		return nil, err
	}
	c.batch = v
	return v, nil
}

// read returns the cells of rows [from, to) with changes up to since.
func (c *scanColumn) read(ctx context.Context, from, to int) (*vector.Vector, error) {
	if c.col == nil {
		return c.constants(to - from)
	}
	page, at, err := c.need(ctx, from)
	if err != nil {
		return nil, err
	}
	switch {
	case to > c.end:
		return c.join(ctx, from, to)
	case from == c.start && to == c.end:
		return page, nil
	}
	return page.Slice(at, at+to-from), nil
}

// need is cursor.at that notes and counts the page as loaded.
func (c *scanColumn) need(ctx context.Context, row int) (*vector.Vector, int, error) {
	page, at, err := c.at(ctx, row)
	c.since = min(c.since, c.patches.since)
	if err == nil && !c.loaded.Get(c.page) {
		c.loaded.Set(c.page)
		c.count()
	}
	return page, at, err
}

// count adds the page that was loaded to the counters.
func (c *scanColumn) count() {
	switch {
	case c.stats == nil:
	case c.from == fromCache:
		c.stats.Cached.Add(1)
	default:
		c.stats.Decoded.Add(1)
		if c.from == fromFile {
			c.stats.Bytes.Add(int64(c.data.index.Sizes[c.page]))
		}
	}
}

// join copies rows of several pages together.
func (c *scanColumn) join(ctx context.Context, from, to int) (*vector.Vector, error) {
	if c.scratch == nil {
		c.scratch = vector.New(c.cells.Kind(), to-from)
	}
	c.scratch.Reset(c.cells.Kind())
	for from < to {
		page, at, err := c.need(ctx, from)
		if err != nil {
			return nil, err
		}
		end := min(to, c.end)
		if err := c.scratch.AppendRange(page, at, at+end-from); err != nil {
			return nil, err
		}
		from = end
	}
	return c.scratch, nil
}

// constants returns n cells of a column without data.
func (c *scanColumn) constants(n int) (*vector.Vector, error) {
	if c.constantRows == nil || c.constantRows.Len() < n {
		v := vector.New(c.kind, n)
		if err := v.AppendConst(c.constant, n); err != nil {
			return nil, err
		}
		c.constantRows = v
	}
	if c.constantRows.Len() == n {
		return c.constantRows, nil
	}
	return c.constantRows.Slice(0, n), nil
}
