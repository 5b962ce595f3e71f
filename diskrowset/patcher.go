package diskrowset

import (
	"context"
	"sync/atomic"

	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// patcher brings the cells of one column of a scan to its time: the rows of a batch, or
// whole pages, which are kept.
type patcher struct {
	stores []delta.Reader // that change the column, oldest first
	col    int
	at     mvcc.Timestamp // the newest change that the scan sees is not after it; 0: there is none
	lo, hi int            // rows that the scan may read; none: it keeps no page
	since  mvcc.Timestamp // the cells of the page read last have all changes up to here, of an UNDO file none
	cells  delta.Overlay
}

// newPatcher returns the patcher of a column for a scan of rows [lo, hi) at a time.
func newPatcher(stores []delta.Reader, at mvcc.Timestamp, col, lo, hi int) patcher {
	p := patcher{col: col, lo: lo, hi: hi}
	var last mvcc.Timestamp
	for _, d := range stores {
		t := d.LastSet(col)
		if t == 0 {
			continue
		}
		p.stores = append(p.stores, d)
		last = max(last, t)
		if f, ok := d.(*deltaFile); ok && f.undo {
			p.lo, p.hi = 0, 0
		}
	}
	p.at = min(at, last)
	return p
}

// patch brings the cells of rows [from, to) from one time to that of the scan. They are
// valid until the next call.
func (p *patcher) patch(ctx context.Context, since mvcc.Timestamp, from, to int, v *vector.Vector) (*vector.Vector, error) {
	if err := p.apply(ctx, since, from, to, v); err != nil {
		return nil, err
	}
	return p.cells.Result()
}

// apply makes the overlay what patch returns.
func (p *patcher) apply(ctx context.Context, since mvcc.Timestamp, from, to int, v *vector.Vector) error {
	p.cells.Reset(v)
	for _, d := range p.stores {
		if err := d.Patch(ctx, mvcc.Interval{Lo: since, Hi: p.at}, p.col, from, to, &p.cells); err != nil {
			return err
		}
	}
	return nil
}

// patchedPage is a page of a column with changes applied: what it was at every time from
// one to another.
type patchedPage struct {
	cells *vector.Vector
	from  mvcc.Timestamp
	until atomic.Int64 // grows while no change is of the page's rows
}

func newPatchedPage(cells *vector.Vector, at mvcc.Timestamp) *patchedPage {
	p := &patchedPage{cells: cells, from: at}
	p.until.Store(int64(at))
	return p
}

// Size returns the bytes of memory held.
func (p *patchedPage) Size() int { return p.cells.Size() + 32 }

// extend notes that nothing changed up to a time.
func (p *patchedPage) extend(at mvcc.Timestamp) {
	for old := p.until.Load(); old < int64(at) && !p.until.CompareAndSwap(old, int64(at)); old = p.until.Load() {
	}
}

// patchedPlace is the place of one patchedPage.
type patchedPlace struct {
	slot  [1]cache.Slot[cache.Page]
	asked atomic.Int64  // the newest time at which a scan had to apply changes
	scans atomic.Uint32 // how many found a newer time than the one before
}

// keepEvery is how many scans in a row find new changes until one of them keeps its pages.
// To keep a page costs as much as to apply the changes of some scans.
const keepEvery = 16

// wanted notes that a scan must apply changes to get the page of a time, and reports
// whether it should keep it: a scan before wanted the same and none a newer one, or changes
// came between many scans.
func (l *patchedPlace) wanted(at mvcc.Timestamp) bool {
	if last := l.asked.Load(); int64(at) <= last {
		return int64(at) == last
	}
	l.asked.Store(int64(at))
	return l.scans.Add(1)%keepEvery == 0
}

// page returns page n with changes up to since.
func (p *patcher) page(ctx context.Context, c *column, d *columnData, n int) (*vector.Vector, origin, error) {
	from, to := int(d.index.Starts[n]), int(d.index.Starts[n+1])
	place := &d.patchedPlaces()[n]
	held, _ := place.slot[0].Get()
	kept, _ := held.(*patchedPage)
	if p.since = 0; kept != nil && kept.from <= p.at {
		if p.since = mvcc.Timestamp(kept.until.Load()); p.since >= p.at || !p.keeps(c, place, from, to) {
			return kept.cells, fromCache, nil
		}
		v, err := p.renew(ctx, c, place, from, to, kept)
		return v, fromCache, err
	}
	yes, err := changed(ctx, p.stores, p.col, from, to)
	switch {
	case err != nil:
		return nil, 0, err
	case !yes:
		p.since = p.at
	case kept == nil && p.keeps(c, place, from, to):
		return p.first(ctx, c, d, n)
	}
	return c.page(ctx, d, n)
}

// keeps reports whether this scan should keep a page, much of which it reads.
func (p *patcher) keeps(c *column, place *patchedPlace, from, to int) bool {
	much := 4*(min(to, p.hi)-max(from, p.lo)) >= to-from
	return much && c.typ.Kind() != schema.KindBytes && place.wanted(p.at)
}

// first applies the changes to the stored cells of page n. Those are not cached, for scans
// that follow do not need them.
func (p *patcher) first(ctx context.Context, c *column, d *columnData, n int) (*vector.Vector, origin, error) {
	v, origin, err := c.pageOnce(ctx, d, n)
	if err == nil {
		err = p.apply(ctx, 0, int(d.index.Starts[n]), int(d.index.Starts[n+1]), v)
	}
	if err == nil {
		v, err = p.cells.Take()
	}
	if err != nil {
		return nil, 0, err
	}
	p.since = p.at
	c.pages.Put(&d.patchedPlaces()[n].slot[0], newPatchedPage(v, p.at))
	return v, origin, nil
}

// renew applies the changes that came since a page was kept.
func (p *patcher) renew(ctx context.Context, c *column, place *patchedPlace, from, to int, kept *patchedPage) (*vector.Vector, error) {
	if err := p.apply(ctx, p.since, from, to, kept.cells); err != nil {
		return nil, err
	}
	v, err := p.cells.Take()
	switch {
	case err != nil:
		return nil, err
	case v == kept.cells:
		kept.extend(p.at)
	default:
		c.pages.Replace(&place.slot[0], kept, newPatchedPage(v, p.at))
	}
	p.since = p.at
	return v, nil
}

// patchedPlaces returns the places of patched pages.
func (d *columnData) patchedPlaces() []patchedPlace {
	if s := d.patched.Load(); s != nil {
		return *s
	}
	s := make([]patchedPlace, d.index.Pages())
	d.patched.CompareAndSwap(nil, &s)
	return *d.patched.Load()
}
