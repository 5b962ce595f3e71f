package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
)

// LZ4 is left out: the library's decoder sometimes returns another page's bytes.
func parquetgoPeers() []Info {
	peer := func(codec string, c compress.Codec) Info {
		return Info{Name: "parquetgo-" + codec, Family: "parquet-go", Codec: codec, Parquet: true, Quick: codec == "zstd",
			Settings: "dictionaries for columns of few values, integers delta-encoded, page index, row groups of 131,072 rows, " + codec,
			New:      func() Peer { return &parquetgoPeer{codec: c} }}
	}
	return []Info{peer("none", &pq.Uncompressed), peer("snappy", &pq.Snappy), peer("zlib", &pq.Gzip), peer("zstd", &pq.Zstd)}
}

// parquetgoPeer is one Parquet file through parquet-go. A key is looked for by the page
// index, in order of arrival.
type parquetgoPeer struct {
	codec  compress.Codec
	table  *Table
	leaves []int // of the columns of the table, in the file: by name

	out     *fileWriter
	writer  *pq.GenericWriter[any]
	columns []*pq.ColumnWriter
	cells   []pq.Value
	rows    int // of the row group
	limit   int // of rows

	in   *os.File
	file *pq.File
}

func (p *parquetgoPeer) schema() *pq.Schema {
	g := pq.Group{}
	for _, c := range p.table.Columns {
		switch {
		case c.Kind == Int:
			g[c.Name] = pq.Encoded(pq.Int(64), &pq.DeltaBinaryPacked)
		case c.Kind == Float:
			g[c.Name] = pq.Leaf(pq.DoubleType)
		case c.Words:
			g[c.Name] = pq.Encoded(pq.String(), &pq.RLEDictionary)
		default:
			g[c.Name] = pq.String()
		}
	}
	return pq.NewSchema("rows", g)
}

func (p *parquetgoPeer) Open(s *Setup) error {
	p.table, p.limit = s.Table, s.Group
	schema := p.schema()
	for _, c := range p.table.Columns {
		leaf, _ := schema.Lookup(c.Name)
		p.leaves = append(p.leaves, leaf.ColumnIndex)
	}
	if s.Create {
		var err error
		if p.out, err = createFile(s.Dir, "rows.parquet"); err != nil {
			return err
		}
		p.writer = pq.NewGenericWriter[any](p.out, schema, pq.Compression(p.codec))
		p.columns = p.writer.ColumnWriters()
		return nil
	}
	return p.read(filepath.Join(s.Dir, "rows.parquet"))
}

func (p *parquetgoPeer) read(path string) error {
	var err error
	if p.in, err = os.Open(path); err != nil {
		return err
	}
	info, err := p.in.Stat()
	if err != nil {
		return err
	}
	p.file, err = pq.OpenFile(p.in, info.Size())
	return err
}

func (p *parquetgoPeer) Load(b *Batch) error {
	for i, c := range p.table.Columns {
		p.cells = appendParquetCells(p.cells[:0], c.Kind, &b.Columns[i], b.Len)
		for k := range p.cells {
			p.cells[k] = p.cells[k].Level(0, 0, p.leaves[i])
		}
		if _, err := p.columns[p.leaves[i]].WriteRowValues(p.cells); err != nil {
			return err
		}
	}
	if p.rows += b.Len; p.rows < p.limit {
		return nil
	}
	p.rows = 0
	return p.writer.Flush()
}

func appendParquetCells(dst []pq.Value, k Kind, d *Data, n int) []pq.Value {
	switch k {
	case Int:
		for _, v := range d.Ints {
			dst = append(dst, pq.Int64Value(v))
		}
	case Float:
		for _, v := range d.Floats {
			dst = append(dst, pq.DoubleValue(v))
		}
	default:
		for i := range n {
			dst = append(dst, pq.ByteArrayValue(d.Bytes[d.Offsets[i]:d.Offsets[i+1]]))
		}
	}
	return dst
}

func (p *parquetgoPeer) Settle() error { return nil }

func (p *parquetgoPeer) Update([]Row, int, []int64) error { return errCannot }

// eachPage calls fn for the pages of a column chunk with the row that each begins at.
func eachPage(chunk pq.ColumnChunk, fn func(row int, page pq.Page)) error {
	pages := chunk.Pages()
	defer pages.Close()
	for row := 0; ; {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fn(row, page)
		row += int(page.NumValues())
		pq.Release(page)
	}
}

func (p *parquetgoPeer) Scan(s *Scan, threads int) (Answer, error) {
	groups := p.file.RowGroups()
	return together(shares(len(groups), threads), func(mine []int) (Answer, error) {
		var total Answer
		for _, g := range mine {
			a, err := p.scanGroup(groups[g], s)
			if err != nil {
				return total, err
			}
			total = total.plus(a)
		}
		return total, nil
	})
}

func (p *parquetgoPeer) scanGroup(g pq.RowGroup, s *Scan) (Answer, error) {
	rows := int(g.NumRows())
	kept, err := p.filter(g, s)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Count: kept.count(rows)}
	if s.Sum < 0 {
		return a, nil
	}
	err = eachPage(g.ColumnChunks()[p.leaves[s.Sum]], func(row int, page pq.Page) {
		values := page.Data()
		if p.table.Columns[s.Sum].Kind == Float {
			a.Sum += sumKept(kept, row, values.Double())
		} else {
			a.Sum += sumKept(kept, row, values.Int64())
		}
	})
	return a, err
}

// filter returns the rows of a row group that a scan's filter keeps.
func (p *parquetgoPeer) filter(g pq.RowGroup, s *Scan) (*keptRows, error) {
	if s.Op == All {
		return &keptRows{all: true}, nil
	}
	kept := &keptRows{keep: make([]bool, g.NumRows())}
	err := eachPage(g.ColumnChunks()[p.leaves[s.Column]], func(row int, page pq.Page) {
		values := page.Data()
		keep := kept.keep[row:]
		switch {
		case s.Op == Above:
			for i, v := range values.Int64() {
				keep[i] = v > s.Int
			}
		case page.Dictionary() != nil:
			words := keepTexts(s, page.Dictionary().Page().Data(), nil)
			for i, code := range values.Int32() {
				keep[i] = words[code]
			}
		default:
			keepTexts(s, values, keep)
		}
	})
	return kept, err
}

// keepTexts evaluates the filter for each text, in keep if that is not nil.
func keepTexts(s *Scan, values encoding.Values, keep []bool) []bool {
	data, offsets := values.ByteArray()
	want := []byte(s.Text)
	n := max(len(offsets)-1, 0)
	if keep == nil {
		keep = make([]bool, n)
	}
	for i := range n {
		text := data[offsets[i]:offsets[i+1]]
		if s.Op == Equal {
			keep[i] = bytes.Equal(text, want)
		} else {
			keep[i] = bytes.Contains(text, want)
		}
	}
	return keep
}

// span is rows of a row group.
type span struct{ from, to int64 }

// bound is the values that a key column may have.
type bound struct {
	leaf     int
	from, to pq.Value // both included
}

func (p *parquetgoPeer) bounds(from, to Row) []bound {
	out := make([]bound, p.table.Key)
	for i := range out {
		out[i].leaf = p.leaves[i]
		if p.table.Columns[i].Kind == Text {
			out[i].from, out[i].to = pq.ByteArrayValue([]byte(from[i].Text)), pq.ByteArrayValue([]byte(to[i].Text))
		} else {
			out[i].from, out[i].to = pq.Int64Value(from[i].Int), pq.Int64Value(to[i].Int)
		}
	}
	return out
}

// find calls fn with the rows of the row groups whose key columns all lie within their
// bounds.
func (p *parquetgoPeer) find(bounds []bound, fn func(g pq.RowGroup, rows []int64) error) error {
	for _, g := range p.file.RowGroups() {
		spans := []span{{0, g.NumRows()}}
		for _, b := range bounds {
			pages, err := pagesWithin(g.ColumnChunks()[b.leaf], b, g.NumRows())
			if err != nil {
				return err
			}
			spans = intersect(spans, pages)
		}
		rows, err := rowsWithin(g, bounds, spans)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			if err := fn(g, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// pagesWithin returns the rows of the pages that may have a value within the bound.
func pagesWithin(chunk pq.ColumnChunk, b bound, rows int64) ([]span, error) {
	index, err := chunk.ColumnIndex()
	if err != nil {
		return nil, err
	}
	offsets, err := chunk.OffsetIndex()
	if err != nil {
		return nil, err
	}
	var out []span
	compare := chunk.Type().Compare
	for i := range index.NumPages() {
		if compare(index.MinValue(i), b.to) > 0 || compare(index.MaxValue(i), b.from) < 0 {
			continue
		}
		end := rows
		if i+1 < offsets.NumPages() {
			end = offsets.FirstRowIndex(i + 1)
		}
		out = append(out, span{offsets.FirstRowIndex(i), end})
	}
	return out, nil
}

// intersect returns the rows that are in both lists, each in order.
func intersect(a, b []span) []span {
	var out []span
	for i, k := 0, 0; i < len(a) && k < len(b); {
		if s := (span{max(a[i].from, b[k].from), min(a[i].to, b[k].to)}); s.from < s.to {
			out = append(out, s)
		}
		if a[i].to < b[k].to {
			i++
		} else {
			k++
		}
	}
	return out
}

// rowsWithin reads the key columns of the spans, each only where those before it allow.
func rowsWithin(g pq.RowGroup, bounds []bound, spans []span) ([]int64, error) {
	var rows []int64
	for i, b := range bounds {
		if i > 0 {
			spans = covering(rows)
		}
		chunk := g.ColumnChunks()[b.leaf]
		compare := chunk.Type().Compare
		var kept []int64
		err := readSpans(chunk, spans, func(row int64, v pq.Value) {
			if compare(v, b.from) >= 0 && compare(v, b.to) <= 0 {
				kept = append(kept, row)
			}
		})
		if err != nil || len(kept) == 0 {
			return nil, err
		}
		rows = kept
	}
	return rows, nil
}

// covering returns the rows as spans.
func covering(rows []int64) []span {
	var out []span
	for _, r := range rows {
		if n := len(out); n > 0 && out[n-1].to == r {
			out[n-1].to = r + 1
		} else {
			out = append(out, span{r, r + 1})
		}
	}
	return out
}

var parquetBuffers = sync.Pool{New: func() any { b := make([]pq.Value, 1024); return &b }}

// readSpans calls fn with the cells of the spans, which are in order.
func readSpans(chunk pq.ColumnChunk, spans []span, fn func(row int64, v pq.Value)) error {
	pages := chunk.Pages()
	defer pages.Close()
	buffer := parquetBuffers.Get().(*[]pq.Value)
	defer parquetBuffers.Put(buffer)
	var page pq.Page
	var first int64 // row of the page
	for _, s := range spans {
		for s.from < s.to {
			if page == nil || s.from >= first+page.NumRows() {
				var err error
				pq.Release(page)
				if page, err = pageAt(pages, s.from); err != nil {
					return err
				}
				first = s.from
			}
			end := min(s.to, first+page.NumRows())
			if err := readCells(page.Slice(s.from-first, end-first), *buffer, s.from, fn); err != nil {
				return err
			}
			s.from = end
		}
	}
	pq.Release(page)
	return nil
}

func pageAt(pages pq.Pages, row int64) (pq.Page, error) {
	if err := pages.SeekToRow(row); err != nil {
		return nil, err
	}
	return pages.ReadPage()
}

func readCells(page pq.Page, buffer []pq.Value, row int64, fn func(row int64, v pq.Value)) error {
	values := page.Values()
	for {
		n, err := values.ReadValues(buffer)
		for _, v := range buffer[:n] {
			fn(row, v)
			row++
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (p *parquetgoPeer) Get(key, row Row) (bool, error) {
	return p.GetColumns(key, first(len(p.table.Columns)), row)
}

func (p *parquetgoPeer) GetColumns(key Row, columns []int, row Row) (bool, error) {
	found := false
	err := p.find(p.bounds(key, key), func(g pq.RowGroup, rows []int64) error {
		found = true
		for i, c := range columns {
			if err := p.readCell(g, c, rows[0], &row[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

func (p *parquetgoPeer) readCell(g pq.RowGroup, column int, row int64, dst *Cell) error {
	return readSpans(g.ColumnChunks()[p.leaves[column]], []span{{row, row + 1}}, func(_ int64, v pq.Value) {
		switch p.table.Columns[column].Kind {
		case Int:
			dst.Int = v.Int64()
		case Float:
			dst.Float = v.Double()
		default:
			dst.Text = string(v.ByteArray())
		}
	})
}

func (p *parquetgoPeer) Range(r *Range) (Answer, error) {
	from, to := r.bounds()
	to[len(to)-1].Int--
	var a Answer
	err := p.find(p.bounds(from, to), func(g pq.RowGroup, rows []int64) error {
		return readSpans(g.ColumnChunks()[p.leaves[r.Sum]], covering(rows), func(_ int64, v pq.Value) {
			a.add(p.table, r.Sum, p.number(r.Sum, v))
		})
	})
	return a, err
}

func (p *parquetgoPeer) number(column int, v pq.Value) Cell {
	if p.table.Columns[column].Kind == Float {
		return Cell{Float: v.Double()}
	}
	return Cell{Int: v.Int64()}
}

func (p *parquetgoPeer) Close() error {
	if p.out != nil {
		return errors.Join(p.writer.Close(), p.out.close())
	}
	return p.in.Close()
}
