package minikudu

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/compaction"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
)

// TableStats describes how a table is stored.
type TableStats struct {
	Rows         int64   // live rows, memory included
	MemoryRows   int64   // of those, rows not yet flushed
	MemoryBytes  int64   // memory they take
	RowSets      int     // rowset files
	Bytes        int64   // of the rowset files, without the following
	ChangeBytes  int64   // of files of changes that are not merged yet
	HistoryBytes int64   // of files of history
	ExpiredBytes int64   // of those, of files that no read can need any more
	Height       float64 // rowsets that a key must be looked for in, on average; see package compaction
	Columns      []ColumnStats
}

// ColumnStats describes how a column is stored, over all rowsets.
type ColumnStats struct {
	Name        string
	Type        string
	Encoding    schema.Encoding    // of the newest rowset; EncodingAuto when there is none, EncodingPaged when each page has its own
	Compression schema.Compression // likewise, none when each page has its own
	Pages       int64
	Encodings   []PageEncoding // of the pages, by encoding and compression
	Bytes       int64          // encoded
	PlainBytes  int64          // of the cells before encoding
	Ratio       float64        // PlainBytes / Bytes, 0 without data
}

// PageEncoding says how many pages have an encoding and a codec.
type PageEncoding = cfile.PageEncoding

// Stats describes how the table is stored. It reads the footers of all rowsets.
func (t *Table) Stats(ctx context.Context) (*TableStats, error) {
	if err := t.begin(); err != nil {
		return nil, err
	}
	defer t.db.gate.exit()
	out := &TableStats{Rows: t.tablet.Rows(), MemoryBytes: t.tablet.Memory().Bytes, Columns: make([]ColumnStats, t.schema.Len())}
	out.MemoryRows = out.Rows
	for i := range out.Columns {
		c := t.schema.Column(i)
		out.Columns[i] = ColumnStats{Name: c.Name, Type: c.TypeString()}
	}
	var sets []compaction.RowSet
	held, release, err := t.tablet.Hold()
	if err != nil {
		return nil, t.tabletError(err)
	}
	defer release()
	horizon := t.tablet.Horizon()
	t.db.horizon(t.history, func(now Timestamp) { horizon = max(horizon, now) })
	for _, rs := range held {
		m := rs.Meta()
		out.RowSets++
		out.Bytes += m.EncodedBytes()
		out.ChangeBytes += deltaBytes(m.Redo)
		out.HistoryBytes += deltaBytes(m.Undo)
		out.ExpiredBytes += deltaBytes(slices.DeleteFunc(slices.Clone(m.Undo), func(d rowset.DeltaFile) bool { return d.MaxTime > horizon }))
		out.MemoryRows -= m.LiveRows
		infos, err := rs.Columns(ctx)
		if err != nil {
			return nil, fmt.Errorf("table %q: %w", t.name, err)
		}
		set := compaction.RowSet{Min: m.MinKey, Max: m.MaxKey}
		for i, c := range infos {
			if c.Stored {
				s := &out.Columns[i]
				s.Encoding, s.Compression = c.Encoding, c.Compression
				s.Pages += int64(c.Pages)
				s.Encodings = cfile.AddPageEncodings(s.Encodings, c.Encodings...)
				s.Bytes += c.Bytes
				s.PlainBytes += c.PlainBytes
				set.Bytes += c.Bytes
			}
		}
		sets = append(sets, set)
	}
	for i := range out.Columns {
		if s := &out.Columns[i]; s.Bytes > 0 {
			s.Ratio = float64(s.PlainBytes) / float64(s.Bytes)
		}
	}
	out.Height = compaction.Place(sets).AverageHeight
	return out, nil
}

// VerifyReport says what Verify read and found.
type VerifyReport struct {
	Tables, RowSets int
	Rows, Bytes     int64
	Damage          []error // what is damaged, each naming file, section and offset
}

// Verify reads every byte of the rowset files of the given tables, all for none, and
// checks checksums, indexes, order of keys, filters and summaries. The manifest and
// the log were checked when the store was opened. Damage is in the report; an error
// says that something else ended the work early.
func (db *DB) Verify(ctx context.Context, tables ...*Table) (*VerifyReport, error) {
	if err := db.gate.enter(); err != nil {
		return nil, err
	}
	defer db.gate.exit()
	if len(tables) == 0 {
		tables = db.Tables()
	}
	r := &VerifyReport{}
	for _, t := range tables {
		if err := t.verify(ctx, r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// verify adds what it finds in the table to the report.
func (t *Table) verify(ctx context.Context, r *VerifyReport) error {
	r.Tables++
	sets, release, err := t.tablet.Hold()
	if err != nil {
		return t.tabletError(err)
	}
	defer release()
	for _, rs := range sets {
		m := rs.Meta()
		r.RowSets, r.Rows, r.Bytes = r.RowSets+1, r.Rows+m.LiveRows, r.Bytes+m.EncodedBytes()
		err := rs.Verify(ctx)
		switch {
		case errors.Is(err, ErrCorruption):
			r.Damage = append(r.Damage, fmt.Errorf("table %q: %w", t.name, err))
		case err != nil:
			return fmt.Errorf("table %q: %w", t.name, err)
		case t.db.gate.isShut():
			return ErrClosed
		}
	}
	return nil
}
