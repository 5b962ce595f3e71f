package main

import (
	"fmt"
	"math"
	"strings"
)

// Op is the comparison of a filter.
type Op uint8

// The comparisons: every row, integer above, text equal, text that contains.
const (
	All Op = iota
	Above
	Equal
	Contains
)

// Scan is a query over all rows: how many qualify, and the sum of a column over them.
type Scan struct {
	Name   string // as a table of results shows it
	Column int    // of the filter
	Op     Op
	Int    int64  // of Above
	Text   string // of Equal and Contains
	Sum    int    // column, -1 for none
}

// keeps reports whether a cell of the filter's column qualifies.
func (s *Scan) keeps(c Cell) bool {
	switch s.Op {
	case Above:
		return c.Int > s.Int
	case Equal:
		return c.Text == s.Text
	case Contains:
		return strings.Contains(c.Text, s.Text)
	default:
		return true
	}
}

// sql returns the query for the engines that speak SQL, over the rows that a further
// condition selects ("" for none). LIKE is case-sensitive there, or made so.
func (s *Scan) sql(t *Table, further string) string {
	var where []string
	name := t.Columns[s.Column].Name
	switch s.Op {
	case Above:
		where = append(where, fmt.Sprintf("%s > %d", name, s.Int))
	case Equal:
		where = append(where, fmt.Sprintf("%s = '%s'", name, s.Text))
	case Contains:
		where = append(where, fmt.Sprintf("%s LIKE '%%%s%%'", name, s.Text))
	}
	if further != "" {
		where = append(where, further)
	}
	if len(where) == 0 {
		return sqlAggregate(t, s.Sum)
	}
	return sqlAggregate(t, s.Sum) + " WHERE " + strings.Join(where, " AND ")
}

func sqlAggregate(t *Table, sum int) string {
	if sum < 0 {
		return "SELECT count(*), 0.0 FROM " + t.Name
	}
	return fmt.Sprintf("SELECT count(*), CAST(coalesce(sum(%s), 0) AS DOUBLE) FROM %s", t.Columns[sum].Name, t.Name)
}

// needs returns the columns that the scan reads.
func (s *Scan) needs() []int {
	var out []int
	if s.Op != All {
		out = append(out, s.Column)
	}
	if s.Sum >= 0 && (s.Op == All || s.Sum != s.Column) {
		out = append(out, s.Sum)
	}
	return out
}

// Range is a read of the rows whose key begins with Prefix and whose last key column
// lies in [From, To), with the sum of a column.
type Range struct {
	Prefix   Row
	From, To int64
	Sum      int
}

// bounds returns the keys of the range's ends.
func (r *Range) bounds() (from, to Row) {
	from = append(append(from, r.Prefix...), Cell{Int: r.From})
	return from, append(append(to, r.Prefix...), Cell{Int: r.To})
}

// Answer is the result of a scan or range.
type Answer struct {
	Count int64   `json:"count"`
	Sum   float64 `json:"sum"`
}

func (a *Answer) add(t *Table, column int, c Cell) {
	a.Count++
	if column < 0 {
		return
	}
	if t.Columns[column].Kind == Float {
		a.Sum += c.Float
	} else {
		a.Sum += float64(c.Int)
	}
}

func (a Answer) plus(b Answer) Answer {
	return Answer{a.Count + b.Count, a.Sum + b.Sum}
}

// equals allows for the order in which doubles were added.
func (a Answer) equals(b Answer) bool {
	return a.Count == b.Count && math.Abs(a.Sum-b.Sum) <= 1e-9*math.Max(1, math.Abs(b.Sum))
}
