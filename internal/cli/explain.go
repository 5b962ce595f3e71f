package cli

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/minikudu/minikudu"
)

// explanation is the result of --explain as JSON.
type explanation struct {
	Table   string `json:"table"`
	RowSets struct {
		Considered    int64 `json:"considered"`
		SkippedByKey  int64 `json:"skipped_by_key_bounds"`
		SkippedByZone int64 `json:"skipped_by_zone_map"`
		SkippedByTime int64 `json:"skipped_by_time"`
		FromMetadata  int64 `json:"answered_from_metadata"`
		BatchesByZone int64 `json:"batches_decided_by_zone_map"`
	} `json:"rowsets"`
	Rows struct {
		Considered int64 `json:"considered"`
		Selected   int64 `json:"selected"`
	} `json:"rows"`
	Columns []explainedColumn `json:"columns"`
}

type explainedColumn struct {
	Column             string `json:"column"`
	Pages              int64  `json:"pages_considered"`
	SkippedByZone      int64  `json:"skipped_by_zone_map"`
	SkippedBySelection int64  `json:"skipped_by_selection"`
	Cached             int64  `json:"cached"`
	Decoded            int64  `json:"decoded"`
	Bytes              int64  `json:"bytes_read"`
}

func explain(t *minikudu.Table, e *minikudu.Explain) explanation {
	x := explanation{Table: t.Name()}
	x.RowSets.Considered, x.RowSets.SkippedByKey, x.RowSets.SkippedByZone = e.RowSets, e.RowSetsByKey, e.RowSetsByZone
	x.RowSets.SkippedByTime, x.RowSets.FromMetadata, x.RowSets.BatchesByZone = e.RowSetsByTime, e.AnsweredFromMeta, e.BatchesFromZone
	x.Rows.Considered, x.Rows.Selected = e.RowsConsidered, e.RowsSelected
	for _, c := range e.Columns {
		x.Columns = append(x.Columns, explainedColumn{c.Name, c.Pages, c.ByZone, c.BySelection, c.Cached, c.Decoded, c.Bytes})
	}
	return x
}

func (s *session) printExplain(t *minikudu.Table, e *minikudu.Explain) error {
	x := explain(t, e)
	if s.json {
		return s.printJSON(x)
	}
	fmt.Fprintf(s.out, "rowsets considered      %d\n", x.RowSets.Considered)
	fmt.Fprintf(s.out, "  skipped by key bounds %d\n", x.RowSets.SkippedByKey)
	fmt.Fprintf(s.out, "  skipped by zone map   %d\n", x.RowSets.SkippedByZone)
	fmt.Fprintf(s.out, "  skipped by time       %d\n", x.RowSets.SkippedByTime)
	fmt.Fprintf(s.out, "  answered by metadata  %d\n", x.RowSets.FromMetadata)
	fmt.Fprintf(s.out, "rows considered         %d\n", x.Rows.Considered)
	fmt.Fprintf(s.out, "rows selected           %d\n", x.Rows.Selected)
	fmt.Fprintf(s.out, "batches decided by zone map %d\n\n", x.RowSets.BatchesByZone)
	l := newListing(`column string, "pages considered" int64, "skipped by zone map" int64, "skipped by selection" int64,
		"cached" int64, "decoded" int64, "bytes read" string`)
	for _, c := range x.Columns {
		l.add(c.Column, c.Pages, c.SkippedByZone, c.SkippedBySelection, c.Cached, c.Decoded, humanize.IBytes(uint64(c.Bytes)))
	}
	return s.print(format{"table"}, l)
}
