package minikudu

import (
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
)

// Explain counts what a scan considered, skipped and decoded.
type Explain struct {
	RowSets          int64 // rowsets considered, memory ones included
	RowSetsByKey     int64 // of those, skipped because their key range lies outside the bounds
	RowSetsByZone    int64 // skipped because bounds of a column exclude the filter
	RowSetsByTime    int64 // skipped because they hold no visible commit
	RowsConsidered   int64 // rows within the key bounds
	RowsSelected     int64 // rows that qualified
	BatchesFromZone  int64 // batches whose filter zone maps answered
	AnsweredFromMeta int64 // rowsets whose aggregates metadata answered
	Columns          []ExplainColumn
}

// ExplainColumn counts the pages of one column.
type ExplainColumn struct {
	Name        string
	Pages       int64 // pages within the key bounds
	ByZone      int64 // skipped: their zone map excludes the filter
	BySelection int64 // skipped: no row of theirs was still selected
	Cached      int64 // used, found decoded in the page cache
	Decoded     int64 // used and decoded, and read before that unless the cache had them as they are stored
	Bytes       int64 // bytes read from files
}

func (e *Explain) fill(s *schema.Schema, st *rowset.Stats) {
	*e = Explain{RowSets: st.RowSets.Load(), RowSetsByKey: st.RowSetsByKey.Load(), RowSetsByZone: st.RowSetsByZone.Load(),
		RowSetsByTime: st.RowSetsByTime.Load(), RowsConsidered: st.RowsConsidered.Load(), RowsSelected: st.RowsSelected.Load(),
		BatchesFromZone: st.BatchesFromZone.Load(), AnsweredFromMeta: st.AnsweredFromMeta.Load()}
	for i := range st.Columns {
		c := &st.Columns[i]
		e.Columns = append(e.Columns, ExplainColumn{Name: s.Column(i).Name, Pages: c.Pages.Load(), ByZone: c.ByZone.Load(),
			BySelection: c.BySelection.Load(), Cached: c.Cached.Load(), Decoded: c.Decoded.Load(), Bytes: c.Bytes.Load()})
	}
}
