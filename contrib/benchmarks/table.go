package main

import (
	"cmp"
	"strings"
	"unsafe"
)

// Kind is the type of a column's cells.
type Kind uint8

// The kinds: int64, float64, string.
const (
	Int Kind = iota
	Float
	Text
)

// Column describes a column.
type Column struct {
	Name  string
	Kind  Kind
	Words bool // few distinct values: a hint for formats that need to be told
}

// Table describes a table. Its first Key columns are the primary key; the last of them
// is an Int that is even in every row, so that the key with one more is absent.
type Table struct {
	Name    string
	Columns []Column
	Key     int
}

// column returns the index of the named column, which exists.
func (t *Table) column(name string) int {
	for i, c := range t.Columns {
		if c.Name == name {
			return i
		}
	}
	panic("no column " + name)
}

func (t *Table) columns(names ...string) []int {
	out := make([]int, 0, len(names))
	for _, n := range names {
		out = append(out, t.column(n))
	}
	return out
}

// Cell is one value, in the field of its column's kind.
type Cell struct {
	Int   int64
	Float float64
	Text  string
}

// Row is cells in the order of the columns asked for. A key is a Row of the key columns.
type Row []Cell

// compareKeys compares keys of one table.
func compareKeys(t *Table, a, b Row) int {
	for i := range t.Key {
		c := cmp.Compare(a[i].Int, b[i].Int)
		if t.Columns[i].Kind == Text {
			c = strings.Compare(a[i].Text, b[i].Text)
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// Data is the cells of one column of a batch, in the field of its kind. Text i is the
// bytes from Offsets[i] to Offsets[i+1]. The memory is not to be changed.
type Data struct {
	Ints    []int64
	Floats  []float64
	Offsets []int32
	Bytes   []byte
}

func (d *Data) text(i int) string {
	from, to := d.Offsets[i], d.Offsets[i+1]
	if from == to {
		return ""
	}
	return unsafe.String(&d.Bytes[from], to-from)
}

// Batch is rows that are written together.
type Batch struct {
	Len     int
	Columns []Data
}

// cell returns one cell; text shares the batch's memory.
func (b *Batch) cell(k Kind, col, row int) Cell {
	d := &b.Columns[col]
	switch k {
	case Int:
		return Cell{Int: d.Ints[row]}
	case Float:
		return Cell{Float: d.Floats[row]}
	default:
		return Cell{Text: d.text(row)}
	}
}

// append adds a row.
func (b *Batch) append(t *Table, row Row) {
	if b.Columns == nil {
		b.Columns = make([]Data, len(t.Columns))
	}
	for i, c := range t.Columns {
		d := &b.Columns[i]
		switch c.Kind {
		case Int:
			d.Ints = append(d.Ints, row[i].Int)
		case Float:
			d.Floats = append(d.Floats, row[i].Float)
		default:
			if len(d.Offsets) == 0 {
				d.Offsets = append(d.Offsets, 0)
			}
			d.Bytes = append(d.Bytes, row[i].Text...)
			d.Offsets = append(d.Offsets, int32(len(d.Bytes)))
		}
	}
	b.Len++
}

func (b *Batch) reset() {
	for i := range b.Columns {
		d := &b.Columns[i]
		d.Ints, d.Floats, d.Offsets, d.Bytes = d.Ints[:0], d.Floats[:0], d.Offsets[:0], d.Bytes[:0]
	}
	b.Len = 0
}
