package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"sync"
)

// How the key-value peers store a row. Keys sort like the key columns: integers with the
// sign flipped, big-endian; texts, which hold no zero byte, ended by one. Values are the
// other columns one after another: integers as varints, doubles as 8 bytes, texts behind
// their length.

var errRow = errors.New("row cannot be decoded")

func appendKeyCell(dst []byte, k Kind, c Cell) []byte {
	if k == Text {
		return append(append(dst, c.Text...), 0)
	}
	return binary.BigEndian.AppendUint64(dst, uint64(c.Int)^1<<63)
}

// appendKey appends the key, or the beginning of one.
func appendKey(dst []byte, t *Table, key Row) []byte {
	for i, c := range key {
		dst = appendKeyCell(dst, t.Columns[i].Kind, c)
	}
	return dst
}

// appendBatchKey appends the key of a row of the batch.
func appendBatchKey(dst []byte, t *Table, b *Batch, row int) []byte {
	for i := range t.Key {
		dst = appendKeyCell(dst, t.Columns[i].Kind, b.cell(t.Columns[i].Kind, i, row))
	}
	return dst
}

func appendValueCell(dst []byte, k Kind, c Cell) []byte {
	switch k {
	case Int:
		return binary.AppendVarint(dst, c.Int)
	case Float:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(c.Float))
	default:
		dst = binary.AppendUvarint(dst, uint64(len(c.Text)))
		return append(dst, c.Text...)
	}
}

// appendBatchValue appends the columns behind the key of a row of the batch.
func appendBatchValue(dst []byte, t *Table, b *Batch, row int) []byte {
	for i := t.Key; i < len(t.Columns); i++ {
		k := t.Columns[i].Kind
		dst = appendValueCell(dst, k, b.cell(k, i, row))
	}
	return dst
}

// keyCellAt decodes one column of the key, passing over those before it.
func keyCellAt(t *Table, key []byte, col int) (cellView, error) {
	for i := 0; ; i++ {
		c, n := decodeKeyCell(t.Columns[i].Kind, key)
		if n <= 0 {
			return cellView{}, errRow
		}
		if i == col {
			return c, nil
		}
		key = key[n:]
	}
}

// decodeKeyCell decodes the cell at the beginning of a key and returns the bytes it
// takes, 0 when there is none.
func decodeKeyCell(k Kind, key []byte) (cellView, int) {
	if k == Text {
		n := bytes.IndexByte(key, 0)
		return cellView{Text: key[:max(n, 0)]}, n + 1
	}
	if len(key) < 8 {
		return cellView{}, 0
	}
	return cellView{Int: int64(binary.BigEndian.Uint64(key) ^ 1<<63)}, 8
}

// valueCells calls fn for each column of the value up to the last one wanted.
// Text cells share the value's memory.
func valueCells(t *Table, value []byte, last int, fn func(col int, c cellView)) error {
	for i := t.Key; i <= last; i++ {
		c, n := decodeCell(t.Columns[i].Kind, value)
		if n <= 0 {
			return errRow
		}
		fn(i, c)
		value = value[n:]
	}
	return nil
}

// cellView is a cell whose text shares memory.
type cellView struct {
	Int   int64
	Float float64
	Text  []byte
}

func (c cellView) cell() Cell { return Cell{c.Int, c.Float, string(c.Text)} }

// decodeCell decodes the cell at the beginning of src and returns the bytes it takes, 0
// when there is none.
func decodeCell(k Kind, src []byte) (cellView, int) {
	switch k {
	case Int:
		v, n := binary.Varint(src)
		return cellView{Int: v}, n
	case Float:
		if len(src) < 8 {
			return cellView{}, 0
		}
		return cellView{Float: math.Float64frombits(binary.LittleEndian.Uint64(src))}, 8
	default:
		size, n := binary.Uvarint(src)
		if n <= 0 || size > uint64(len(src)-n) {
			return cellView{}, 0
		}
		return cellView{Text: src[n : n+int(size)]}, n + int(size)
	}
}

// cellAt decodes one column behind the key, passing over those before it.
func cellAt(t *Table, value []byte, col int) (cellView, error) {
	for i := t.Key; ; i++ {
		c, n := decodeCell(t.Columns[i].Kind, value)
		if n <= 0 {
			return cellView{}, errRow
		}
		if i == col {
			return c, nil
		}
		value = value[n:]
	}
}

// pick fills row with the columns asked for. The row's texts are copies.
func pick(t *Table, key Row, value []byte, columns []int, row Row) error {
	for i, col := range columns {
		if col < t.Key {
			row[i] = key[col]
			continue
		}
		c, err := cellAt(t, value, col)
		if err != nil {
			return err
		}
		row[i] = c.cell()
	}
	return nil
}

// pickAll fills row with all columns.
func pickAll(t *Table, key Row, value []byte, row Row) error {
	copy(row, key)
	return valueCells(t, value, len(t.Columns)-1, func(col int, c cellView) { row[col] = c.cell() })
}

// replaceInt returns the value with one integer column set, appended to dst.
func replaceInt(dst []byte, t *Table, value []byte, col int, v int64) ([]byte, error) {
	rest := value
	for i := t.Key; i < col; i++ {
		_, n := decodeCell(t.Columns[i].Kind, rest)
		if n <= 0 {
			return nil, errRow
		}
		rest = rest[n:]
	}
	_, n := binary.Varint(rest)
	if n <= 0 {
		return nil, errRow
	}
	dst = append(dst, value[:len(value)-len(rest)]...)
	dst = binary.AppendVarint(dst, v)
	return append(dst, rest[n:]...), nil
}

// rowScan evaluates a scan over encoded rows.
type rowScan struct {
	table  *Table
	scan   *Scan
	answer Answer
}

// add looks at one row.
func (r *rowScan) add(key, value []byte) error {
	if r.scan.Op != All {
		c, err := r.cell(key, value, r.scan.Column)
		if err != nil || !keepsView(r.scan, c) {
			return err
		}
	}
	var sum cellView
	if r.scan.Sum >= 0 {
		var err error
		if sum, err = r.cell(key, value, r.scan.Sum); err != nil {
			return err
		}
	}
	r.answer.add(r.table, r.scan.Sum, Cell{Int: sum.Int, Float: sum.Float})
	return nil
}

func (r *rowScan) cell(key, value []byte, col int) (cellView, error) {
	if col < r.table.Key {
		return keyCellAt(r.table, key, col)
	}
	return cellAt(r.table, value, col)
}

// keepsView is scan.keeps for a cell that shares memory.
func keepsView(s *Scan, c cellView) bool {
	switch s.Op {
	case Above:
		return c.Int > s.Int
	case Equal:
		return string(c.Text) == s.Text
	default:
		return bytes.Contains(c.Text, []byte(s.Text))
	}
}

// parts cuts the table at the splits in n ranges of encoded keys; nil is an open end.
func parts(t *Table, splits []Row, n int) [][2][]byte {
	out := make([][2][]byte, n)
	for i := 1; i < n && len(splits) > 0; i++ {
		at := appendKey(nil, t, splits[i*len(splits)/n])
		out[i-1][1], out[i][0] = at, at
	}
	if len(splits) == 0 {
		return out[:1]
	}
	return out
}

// together runs fn for each part at the same time and adds up the answers.
func together[T any](parts []T, fn func(part T) (Answer, error)) (Answer, error) {
	answers, errs := make([]Answer, len(parts)), make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { answers[i], errs[i] = fn(p) })
	}
	wg.Wait()
	var total Answer
	for _, a := range answers {
		total = total.plus(a)
	}
	return total, errors.Join(errs...)
}
