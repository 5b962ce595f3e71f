package diskrowset

import (
	"context"

	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// pruner judges the filter of a scan by zones.
type pruner struct {
	set *RowSet
	it  *iterator
	ctx context.Context
	row int   // a row of the pages to judge by
	err error // of reading a zone map
}

// judgeAll judges the whole rowset: by the bounds of key columns, which need no
// reading, and by the zone maps of whole files.
func (it *iterator) judgeAll(ctx context.Context) (predicate.Verdict, error) {
	it.cell = zoneCell{0, it.set.rows, predicate.Some}
	if it.spec.Filter == nil || it.spec.NoPrune || it.diff != nil {
		return predicate.Some, nil
	}
	p := &it.prune
	p.ctx, p.err = ctx, nil
	verdict := it.spec.Filter.Prune(p.fileZone)
	if verdict == predicate.Some {
		it.cell = zoneCell{} // judge page by page
	}
	it.cell.verdict = verdict
	return verdict, p.err
}

// judge sets cell to the rows around the frontier that lie in one page of every column
// of the filter.
func (it *iterator) judge(at int) error {
	if it.reverse {
		at--
	}
	if at >= it.cell.from && at < it.cell.to {
		return nil
	}
	cell := zoneCell{0, it.set.rows, predicate.Some}
	for _, c := range it.filter {
		from, to := c.pageAround(at)
		cell.from, cell.to = max(cell.from, from), min(cell.to, to)
	}
	p := &it.prune
	p.ctx, p.row, p.err = it.ctx, at, nil
	cell.verdict = it.spec.Filter.Prune(p.pageZone)
	it.cell = cell
	return p.err
}

// fileZone returns the summary of a whole column.
func (p *pruner) fileZone(col int) (vector.Zone, bool) {
	if p.changed(col, 0, p.set.rows) {
		return vector.Zone{}, false
	}
	if z, ok := p.set.keyZone(p.it.spec.Schema, col); ok {
		return z, true
	}
	z, ok, err := p.set.zone(p.ctx, p.it.spec.Schema, col)
	p.err = err
	return z, ok
}

// changed reports whether zones must not answer for rows [from, to) of a column: they
// may have changed, or that is not known for an error.
func (p *pruner) changed(col, from, to int) bool {
	if p.err != nil {
		return true
	}
	yes, err := changed(p.ctx, p.it.deltas, col, from, to)
	p.err = err
	return yes || err != nil
}

// pageZone returns the summary of the column's page at row.
func (p *pruner) pageZone(col int) (vector.Zone, bool) {
	c := p.it.bySchema[col]
	if c == nil {
		return vector.Zone{}, false
	}
	if from, to := c.pageAround(p.row); p.changed(col, from, min(to, p.set.rows)) {
		return vector.Zone{}, false
	}
	z, ok, err := c.zone(p.ctx, p.row)
	p.err = err
	return z, ok
}

// keyZone returns what the description of the rowset says of a key column.
func (s *RowSet) keyZone(sch *schema.Schema, col int) (vector.Zone, bool) {
	if col >= sch.NumKey() {
		return vector.Zone{}, false
	}
	for i := range s.bounds {
		if b := &s.bounds[i]; b.col == col {
			return vector.Zone{Rows: s.meta.Rows, Min: b.min, Max: b.max, Exact: b.kind != schema.KindBytes}, true
		}
	}
	return vector.Zone{}, false
}
