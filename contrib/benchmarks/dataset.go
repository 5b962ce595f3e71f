package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A data set is a file of batches as they lie in memory: for each the number of rows,
// then the columns; integers and doubles as 8 bytes, texts as 32-bit offsets and their
// bytes. Every part is padded to 8 bytes. It is mapped, so that the rows exist before
// a clock starts and are no part of the Go heap under test. Little-endian machines only.

// datasetWriter writes batches to a file.
type datasetWriter struct {
	table *Table
	rows  int // of a batch
	file  *os.File
	out   *bufio.Writer
	batch Batch
}

func newDatasetWriter(path string, t *Table, batchRows int) (*datasetWriter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &datasetWriter{table: t, rows: batchRows, file: f, out: bufio.NewWriterSize(f, 1<<20)}, nil
}

func (w *datasetWriter) add(row Row) error {
	w.batch.append(w.table, row)
	if w.batch.Len < w.rows {
		return nil
	}
	return w.flush()
}

func (w *datasetWriter) flush() error {
	if w.batch.Len == 0 {
		return nil
	}
	w.words(uint64(w.batch.Len))
	for i, c := range w.table.Columns {
		d := &w.batch.Columns[i]
		switch c.Kind {
		case Int:
			_ = binary.Write(w.out, binary.LittleEndian, d.Ints)
		case Float:
			_ = binary.Write(w.out, binary.LittleEndian, d.Floats)
		default:
			w.words(uint64(len(d.Bytes)))
			_ = binary.Write(w.out, binary.LittleEndian, d.Offsets)
			w.pad(4 * len(d.Offsets))
			_, _ = w.out.Write(d.Bytes)
			w.pad(len(d.Bytes))
		}
	}
	w.batch.reset()
	_, err := w.out.Write(nil) // the first error sticks
	return err
}

func (w *datasetWriter) words(x uint64) {
	_ = binary.Write(w.out, binary.LittleEndian, x)
}

func (w *datasetWriter) pad(n int) {
	var zero [8]byte
	_, _ = w.out.Write(zero[:padding(n)])
}

func padding(n int) int { return -n & 7 }

func (w *datasetWriter) close() error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.out.Flush(); err != nil {
		return err
	}
	return w.file.Close()
}

// Dataset is a mapped data set.
type Dataset struct {
	Table   *Table
	Batches []Batch
	Rows    int
	size    int // rows of every batch but the last
	mapped  []byte
}

func openDataset(path string, t *Table) (*Dataset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	d := &Dataset{Table: t}
	d.mapped, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	for rest := d.mapped; len(rest) > 0; {
		var b Batch
		b, rest = readBatch(t, rest)
		d.Batches = append(d.Batches, b)
		d.Rows += b.Len
	}
	d.size = d.Batches[0].Len
	return d, nil
}

// readBatch returns the batch at the beginning of src, which this program wrote.
func readBatch(t *Table, src []byte) (Batch, []byte) {
	take := func(n int) []byte {
		part := src[:n:n]
		src = src[n+padding(n):]
		return part
	}
	number := func() int { return int(binary.LittleEndian.Uint64(take(8))) }
	b := Batch{Len: number(), Columns: make([]Data, len(t.Columns))}
	for i, c := range t.Columns {
		d := &b.Columns[i]
		switch c.Kind {
		case Int:
			d.Ints = view[int64](take(8 * b.Len))
		case Float:
			d.Floats = view[float64](take(8 * b.Len))
		default:
			n := number()
			d.Offsets = view[int32](take(4 * (b.Len + 1)))
			d.Bytes = take(n)
		}
	}
	return b, src
}

func view[T int32 | int64 | float64](raw []byte) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/int(unsafe.Sizeof(x)))
}

func (d *Dataset) close() error { return unix.Munmap(d.mapped) }

// cell returns a cell of a row, counted over all batches.
func (d *Dataset) cell(row, col int) Cell {
	return d.Batches[row/d.size].cell(d.Table.Columns[col].Kind, col, row%d.size)
}

// row appends cells of the row to dst.
func (d *Dataset) row(dst Row, row int, columns []int) Row {
	for _, c := range columns {
		dst = append(dst, d.cell(row, c))
	}
	return dst
}

// key returns the key of the row.
func (d *Dataset) key(row int) Row { return d.row(nil, row, first(d.Table.Key)) }

// first returns the numbers below n.
func first(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// answer computes a scan in a plain loop: what every peer must say. changed holds new
// values of column update by row, nil for none.
func (d *Dataset) answer(s *Scan, update int, changed map[int]int64) Answer {
	var a Answer
	cell := func(row, col int) Cell {
		if col == update {
			if v, ok := changed[row]; ok {
				return Cell{Int: v}
			}
		}
		return d.cell(row, col)
	}
	for row := range d.Rows {
		if !s.keeps(cell(row, s.Column)) {
			continue
		}
		var c Cell
		if s.Sum >= 0 {
			c = cell(row, s.Sum)
		}
		a.add(d.Table, s.Sum, c)
	}
	return a
}

// rangeAnswer computes a range in a plain loop.
func (d *Dataset) rangeAnswer(r *Range) Answer {
	var a Answer
	for row := range d.Rows {
		if d.within(r, row) {
			a.add(d.Table, r.Sum, d.cell(row, r.Sum))
		}
	}
	return a
}

func (d *Dataset) within(r *Range, row int) bool {
	for i, want := range r.Prefix {
		if d.cell(row, i) != want {
			return false
		}
	}
	last := d.cell(row, d.Table.Key-1).Int
	return last >= r.From && last < r.To
}
