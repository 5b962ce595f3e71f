package minikudu

import (
	"context"
	"fmt"
	"strings"

	"github.com/minikudu/minikudu/compaction"
	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
)

// RowSetInfo describes a rowset on disk and its place among those of its table.
type RowSetInfo struct {
	ID             uint64
	MinKey, MaxKey []string // first and last key, one text for each key column, long ones shortened
	Rows           int64    // stored
	LiveRows       int64    // of those, not deleted, changes in memory included
	Bytes          int64    // of the file and of files of changes
	RedoFiles      int      // files of changes
	RedoBytes      int64
	DeltaEntries   int64 // changes in memory, not flushed
	DeltaBytes     int64 // memory they take
	// Start and End are the shares of the table's data below the first key and up to
	// the last. End - Start is what the rowset adds to the height of the table, see
	// [TableStats].
	Start, End float64
}

// Layout describes the rowsets of the table in order of their first key, from
// metadata alone.
func (t *Table) Layout(ctx context.Context) ([]RowSetInfo, error) {
	if err := t.begin(); err != nil {
		return nil, err
	}
	defer t.db.gate.exit()
	var out []RowSetInfo
	sets, places := t.tablet.Layout()
	for _, rs := range sets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m := rs.Meta()
		info := RowSetInfo{ID: uint64(m.ID), Rows: m.Rows, LiveRows: rs.Live(), Bytes: m.EncodedBytes(), RedoFiles: len(m.Redo),
			DeltaEntries: rs.DeltaEntries(), DeltaBytes: rs.MemoryBytes()}
		info.RedoBytes = deltaBytes(m.Redo)
		info.Bytes += info.RedoBytes
		var err error
		if info.MinKey, err = t.keyTexts(m.MinKey); err == nil {
			info.MaxKey, err = t.keyTexts(m.MaxKey)
		}
		if err != nil {
			return nil, t.tabletError(fmt.Errorf("%w: bounds of rowset %d: %w", ErrCorruption, m.ID, err))
		}
		out = append(out, info)
	}
	for i, r := range compaction.Place(places).Ranges {
		out[i].Start, out[i].End = r.Start, r.End
	}
	return out, nil
}

// deltaBytes returns the bytes of files of changes or of history.
func deltaBytes(files []rowset.DeltaFile) (n int64) {
	for i := range files {
		n += files[i].Section.Length
	}
	return n
}

// keyTexts returns the cells of an encoded key as text.
func (t *Table) keyTexts(key []byte) ([]string, error) {
	cells, err := encoding.DecodeKey(t.schema, key)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(cells))
	for i, x := range cells {
		out[i] = shortText(t.schema.Column(i), x)
	}
	return out, nil
}

// maxShownText is the number of bytes of a cell that are shown.
const maxShownText = 40

func shortText(c *schema.Column, x schema.Value) string {
	s := string(c.Format(nil, x))
	if len(s) > maxShownText {
		s = strings.ToValidUTF8(s[:maxShownText], "") + "…"
	}
	return s
}
