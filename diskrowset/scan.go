package diskrowset

import (
	"bytes"
	"context"
	"slices"

	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/vector"
)

const (
	// minBatchRows is the size below which a batch is joined with the rows behind the
	// page end that would cut it, at the price of a copy.
	minBatchRows = 1024
	// maxBatchRows bounds a batch where pages hold more rows.
	maxBatchRows = 1 << 16
	// maxJoinedPages bounds the pages of a column in one batch: where so many hold few
	// rows, the cells are large and a batch of them is large enough.
	maxJoinedPages = 8
)

// Scan starts a scan. Rows outside the key bounds are found by the key index; then
// bounds and zone maps may show that no row here can qualify. The caller counts the
// rowsets it considers; those skipped here are counted here.
func (s *RowSet) Scan(ctx context.Context, spec *rowset.ScanSpec) (rowset.Iterator, error) {
	if !s.Acquire() {
		return nil, ErrClosed
	}
	it, err := s.scan(ctx, spec)
	if err != nil || it == nil {
		s.Release()
		return nothing{}, err
	}
	return it, nil
}

// nothing is the iterator of a rowset that is skipped.
type nothing struct{}

func (nothing) Next(context.Context) (*rowset.Batch, error) { return nil, nil }
func (nothing) Close()                                      {}

// scan returns an iterator, nil when no row can qualify.
func (s *RowSet) scan(ctx context.Context, spec *rowset.ScanSpec) (*iterator, error) {
	if s.outsideTime(spec) {
		spec.Stats.RowSetsByTime.Add(1)
		return nil, nil
	}
	lo, hi, err := s.rowRange(ctx, spec)
	if err != nil {
		return nil, err
	}
	if lo >= hi {
		spec.Stats.RowSetsByKey.Add(1)
		return nil, nil
	}
	it := newIterator(s, spec, lo, hi)
	verdict, err := it.judgeAll(ctx)
	if err != nil {
		return nil, err
	}
	if verdict == predicate.None {
		spec.Stats.RowSetsByZone.Add(1)
		return nil, nil
	}
	spec.Stats.RowsConsidered.Add(int64(hi - lo))
	return it, it.open(ctx)
}

// outsideTime reports whether no row is visible, or of a scan for changes, whether there
// are none.
func (s *RowSet) outsideTime(spec *rowset.ScanSpec) bool {
	d := s.deltas.Load()
	if in := spec.Time; in.Lo > 0 {
		return len(d.within(in)) == 0 && (s.meta.MinInsert > in.Hi || s.meta.MaxInsert <= in.Lo)
	}
	if s.meta.MinInsert <= spec.Time.Hi {
		return false
	}
	return !slices.ContainsFunc(d.visible(spec.Time.Hi), delta.Reader.HasLife)
}

// rowRange returns the rows within the key bounds of the scan and of its filter.
func (s *RowSet) rowRange(ctx context.Context, spec *rowset.ScanSpec) (lo, hi int, err error) {
	lower, upper := spec.Lower, spec.Upper
	if spec.Filter != nil && !spec.NoPrune {
		l, u, empty := spec.Filter.KeyRange()
		if empty {
			return 0, 0, nil
		}
		if l != nil && bytes.Compare(l, lower) > 0 {
			lower = l
		}
		if u != nil && (upper == nil || bytes.Compare(u, upper) < 0) {
			upper = u
		}
	}
	hi = s.rows
	if lower != nil {
		if lo, err = s.seek(ctx, lower); err != nil {
			return 0, 0, err
		}
	}
	if upper != nil {
		hi, err = s.seek(ctx, upper)
	}
	return lo, hi, err
}

// iterator delivers the rows [lo, hi) that are left, from the front or, in reverse
// order, from the back.
type iterator struct {
	set     *RowSet
	spec    *rowset.ScanSpec
	reverse bool
	closed  bool
	err     error // of the last Next
	lo, hi  int   // rows not yet passed

	columns  []*scanColumn // all that are read
	bySchema []*scanColumn // those of them that belong to a schema column, by its index
	filter   []*scanColumn // read by the filter
	output   []*scanColumn // ScanSpec.Columns
	keys     []*scanColumn // key columns, with WithKeys
	times    *scanColumn   // insert times, when rows must be tested one by one
	prune    pruner
	cell     zoneCell       // judged last
	deltas   []delta.Reader // changes that the snapshot sees, oldest first
	life     bool           // some of them delete or revive rows
	diff     *diff          // of a scan for changes, else nil

	// The batch being filled.
	ctx      context.Context
	from, to int
	sel      vector.Bitmap
	batch    rowset.Batch
	eval     func(col int) (*vector.Vector, error)
	views    []*vector.Vector // cells of the key columns
	encoded  *vector.Vector   // keys
	rows     []int32          // selected rows, in reverse order
	flipped  []*vector.Vector // columns and keys in reverse order
}

// zoneCell is a run of rows that lie in one page of every column of the filter, and
// what the zones of those pages say.
type zoneCell struct {
	from, to int
	verdict  predicate.Verdict
}

func newIterator(s *RowSet, spec *rowset.ScanSpec, lo, hi int) *iterator {
	it := &iterator{set: s, spec: spec, lo: lo, hi: hi, reverse: spec.Order == rowset.KeyReverse}
	it.deltas = s.deltas.Load().visible(spec.Time.Hi)
	for _, d := range it.deltas {
		it.life = it.life || d.HasLife()
	}
	it.bySchema = make([]*scanColumn, spec.Schema.Len())
	it.prune = pruner{set: s, it: it}
	if spec.Filter != nil {
		for _, col := range spec.Filter.Columns() {
			it.filter = append(it.filter, it.column(col))
		}
	}
	for _, col := range spec.Columns {
		it.output = append(it.output, it.column(col))
	}
	for i := 0; spec.WithKeys && i < len(s.keys); i++ {
		it.keys = append(it.keys, it.column(i))
	}
	if spec.Time.Lo > 0 {
		it.diff = newDiff(it)
	}
	if s.times != nil && (s.meta.MaxInsert > spec.Time.Hi || it.diff != nil) {
		it.times = &scanColumn{cursor: cursor{col: s.times}}
		it.columns = append(it.columns, it.times)
	}
	it.batch.Columns = make([]*vector.Vector, len(it.output))
	it.eval = func(col int) (*vector.Vector, error) { return it.view(it.bySchema[col]) }
	return it
}

// column returns the schema column as this scan reads it.
func (it *iterator) column(col int) *scanColumn {
	c := it.bySchema[col]
	if c == nil {
		c = newScanColumn(it.set, col, it.spec)
		if c.patches = newPatcher(it.deltas, it.spec.Time.Hi, col, it.lo, it.hi); len(c.patches.stores) > 0 {
			c.cursor.patches = &c.patches
		}
		it.bySchema[col] = c
		it.columns = append(it.columns, c)
	}
	return c
}

// view returns the cells of the batch's rows; of rows that a diff shows as deleted, those
// they had last.
func (it *iterator) view(c *scanColumn) (*vector.Vector, error) {
	fresh := c.batch == nil
	v, err := c.view(it.ctx, it.from, it.to)
	if err != nil || it.diff == nil || !fresh {
		return v, err
	}
	c.batch, err = it.diff.revive(c, v)
	return c.batch, err
}

// open opens the columns that will be read.
func (it *iterator) open(ctx context.Context) error {
	for _, c := range it.columns {
		if err := c.open(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the scan.
func (it *iterator) Close() {
	if it.closed {
		return
	}
	it.closed = true
	for _, c := range it.columns {
		c.finish()
	}
	it.set.Release()
}

// Next returns the next batch that holds a selected row. After an error every later
// call returns it, for the rows it was about are lost to the scan.
func (it *iterator) Next(ctx context.Context) (*rowset.Batch, error) {
	if it.err != nil {
		return nil, it.err
	}
	b, err := it.next(ctx)
	it.err = err
	return b, err
}

func (it *iterator) next(ctx context.Context) (*rowset.Batch, error) {
	it.ctx = ctx
	for it.lo < it.hi && !it.closed {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		verdict, err := it.step()
		if err != nil {
			return nil, err
		}
		for _, c := range it.columns {
			c.pass(it.from, it.to, verdict != predicate.None)
		}
		if verdict == predicate.None {
			continue
		}
		b, err := it.fill(verdict)
		if b != nil || err != nil {
			return b, err
		}
	}
	return nil, nil
}

// step takes the next rows [from, to) off what is left and says whether they must be
// tested. They lie in one page of each column read unless they would be too few.
func (it *iterator) step() (predicate.Verdict, error) {
	at, end := it.lo, it.hi
	if it.reverse {
		at, end = end, at
	}
	if err := it.judge(at); err != nil {
		return 0, err
	}
	verdict, to := it.cell.verdict, it.pageEnd(at, end, nil)
	if verdict != predicate.None {
		var err error
		if verdict, to, err = it.cut(at, end); err != nil {
			return 0, err
		}
	}
	if it.reverse {
		it.from, it.to, it.hi = to, at, to
	} else {
		it.from, it.to, it.lo = at, to, to
	}
	return verdict, nil
}

// cut returns where a batch that begins at the frontier ends, and the verdict for it.
func (it *iterator) cut(at, end int) (predicate.Verdict, int, error) {
	verdict := it.cell.verdict
	to := it.pageEnd(at, end, it.columns)
	for to != end && distance(at, to) < minBatchRows && it.joinable(at, to) {
		if to == it.cell.end(it.reverse) {
			if err := it.judge(to); err != nil {
				return 0, 0, err
			}
			if it.cell.verdict == predicate.None {
				break
			}
			if it.cell.verdict != verdict {
				verdict = predicate.Some
			}
		}
		to = it.pageEnd(to, end, it.columns)
	}
	limit := maxBatchRows
	if it.spec.MaxRows > 0 {
		limit = min(limit, it.spec.MaxRows)
	}
	if distance(at, to) > limit {
		to = at + limit
		if it.reverse {
			to = at - limit
		}
	}
	return verdict, to, nil
}

// joinable reports whether the rows between two frontiers may be joined with more.
func (it *iterator) joinable(a, b int) bool {
	from, to := min(a, b), max(a, b)
	for _, c := range it.columns {
		if c.col != nil && c.pageOf(to-1)-c.pageOf(from) >= maxJoinedPages-1 {
			return false
		}
	}
	return true
}

func distance(a, b int) int { return max(a-b, b-a) }

// pageEnd returns the nearest end beyond the frontier: of the zone cell, of a page of
// the given columns, or of the scan.
func (it *iterator) pageEnd(at, end int, columns []*scanColumn) int {
	if it.reverse {
		to := max(end, it.cell.from)
		for _, c := range columns {
			from, _ := c.pageAround(at - 1)
			to = max(to, from)
		}
		return to
	}
	to := min(end, it.cell.to)
	for _, c := range columns {
		_, next := c.pageAround(at)
		to = min(to, next)
	}
	return to
}

// end returns the end of the cell that the scan reaches last.
func (z *zoneCell) end(reverse bool) int {
	if reverse {
		return z.from
	}
	return z.to
}
