package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/internal/cli/sqltext"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// sortKey is a column to sort by.
type sortKey struct {
	column int
	desc   bool
}

// sortKeys finds the columns of an order among those of a result.
func sortKeys(cols []schema.Column, order []sqltext.Order) ([]sortKey, error) {
	var keys []sortKey
	for _, o := range order {
		i := findColumn(cols, o.Column)
		if i < 0 {
			return nil, fmt.Errorf("--order-by: %w", noColumn(o.Column, columnNames(cols)))
		}
		keys = append(keys, sortKey{i, o.Desc})
	}
	return keys, nil
}

func findColumn(cols []schema.Column, name string) int {
	return slices.IndexFunc(cols, func(c schema.Column) bool { return c.Name == name })
}

// sorter gathers rows and sorts them, equal ones in the order in which they came.
// With a limit it keeps no more than a few times as many.
type sorter struct {
	keys    []sortKey
	limit   int64 // -1: none
	budget  int64 // bytes of memory at most, 0: no bound
	columns []*vector.Vector
	rows    int
}

func newSorter(cols []schema.Column, keys []sortKey, limit int64) *sorter {
	s := &sorter{keys: keys, limit: limit}
	for i := range cols {
		s.columns = append(s.columns, vector.New(cols[i].Kind(), 0))
	}
	return s
}

// minKept is the number of rows that are kept before a limit cuts them.
const minKept = 8192

// add adds n rows.
func (s *sorter) add(vectors []*vector.Vector, n int) error {
	for i, v := range vectors {
		if err := s.columns[i].AppendRange(v, 0, n); err != nil {
			return s.tooLarge()
		}
	}
	s.rows += n
	if s.limit >= 0 && int64(s.rows) > max(minKept, 4*s.limit) {
		if err := s.cut(); err != nil {
			return err
		}
	}
	if s.budget > 0 && s.size() > s.budget {
		return s.tooLarge()
	}
	return nil
}

func (s *sorter) tooLarge() error {
	return fmt.Errorf("sorting %d rows takes more memory than --memory allows; use --limit, fewer columns, or --key-order", s.rows)
}

func (s *sorter) size() (n int64) {
	for _, v := range s.columns {
		n += int64(v.Size())
	}
	return n
}

// order returns the numbers of the rows in order, as many as the limit admits.
func (s *sorter) order() []int32 {
	rows := make([]int32, s.rows)
	for i := range rows {
		rows[i] = int32(i)
	}
	slices.SortStableFunc(rows, func(a, b int32) int {
		for _, k := range s.keys {
			if c := compareCells(s.columns[k.column], int(a), int(b), k.desc); c != 0 {
				return c
			}
		}
		return 0
	})
	if s.limit >= 0 && int64(len(rows)) > s.limit {
		rows = rows[:s.limit]
	}
	return rows
}

// cut drops the rows beyond the limit.
func (s *sorter) cut() error {
	rows := s.order()
	for i, v := range s.columns {
		kept := vector.New(v.Kind(), len(rows))
		if err := kept.AppendRows(v, rows); err != nil {
			return err
		}
		s.columns[i] = kept
	}
	s.rows = len(rows)
	return nil
}

// writeTo writes the first shown columns of the rows in order.
func (s *sorter) writeTo(w rowWriter, shown int) error {
	out := make([]*vector.Vector, shown)
	for rows := s.order(); len(rows) > 0; {
		n := min(len(rows), 1024)
		for i := range out {
			out[i] = vector.New(s.columns[i].Kind(), n)
			if err := out[i].AppendRows(s.columns[i], rows[:n]); err != nil {
				return err
			}
		}
		if err := w.Write(out, n); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return w.Flush()
}

// compareCells orders two cells of a column. Nulls come last in either direction.
func compareCells(v *vector.Vector, a, b int, desc bool) int {
	an, bn := v.IsNull(a), v.IsNull(b)
	switch {
	case an && bn:
		return 0
	case an:
		return 1
	case bn:
		return -1
	}
	if desc {
		a, b = b, a
	}
	switch v.Kind() {
	case schema.KindBytes:
		return bytes.Compare(v.BytesAt(a), v.BytesAt(b))
	case schema.KindInt64:
		return cmp.Compare(v.Int64s()[a], v.Int64s()[b])
	}
	return v.Value(a).Compare(v.Value(b))
}
