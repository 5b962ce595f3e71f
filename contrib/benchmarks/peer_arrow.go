package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

func arrowPeers() []Info {
	peer := func(codec string, c compress.Compression) Info {
		return Info{Name: "arrow-" + codec, Family: "arrow-go", Codec: codec, Parquet: true, Quick: codec == "zstd",
			Settings: "defaults (dictionaries), row groups of 131,072 rows, " + codec, New: func() Peer { return &arrowPeer{codec: c} }}
	}
	return []Info{peer("none", compress.Codecs.Uncompressed), peer("snappy", compress.Codecs.Snappy), peer("lz4", compress.Codecs.Lz4Raw),
		peer("zlib", compress.Codecs.Gzip), peer("zstd", compress.Codecs.Zstd)}
}

// arrowPeer is one Parquet file through the column readers and writers of arrow-go.
type arrowPeer struct {
	scanOnly
	codec compress.Compression
	table *Table

	out    *fileWriter
	writer *file.Writer
	group  file.BufferedRowGroupWriter
	rows   int // of the row group
	limit  int // of rows

	reader *file.Reader
}

func (p *arrowPeer) Open(s *Setup) error {
	p.table, p.limit = s.Table, s.Group
	if !s.Create {
		var err error
		p.reader, err = file.OpenParquetFile(filepath.Join(s.Dir, "rows.parquet"), false)
		return err
	}
	root, err := p.schema()
	if err != nil {
		return err
	}
	if p.out, err = createFile(s.Dir, "rows.parquet"); err != nil {
		return err
	}
	p.writer, err = file.NewParquetWriterWithError(p.out, root, file.WithWriterProps(parquet.NewWriterProperties(parquet.WithCompression(p.codec))))
	return err
}

func (p *arrowPeer) schema() (*schema.GroupNode, error) {
	var fields schema.FieldList
	for _, c := range p.table.Columns {
		switch c.Kind {
		case Int:
			fields = append(fields, schema.NewInt64Node(c.Name, parquet.Repetitions.Required, -1))
		case Float:
			fields = append(fields, schema.NewFloat64Node(c.Name, parquet.Repetitions.Required, -1))
		default:
			n, err := schema.NewPrimitiveNodeLogical(c.Name, parquet.Repetitions.Required, schema.StringLogicalType{}, parquet.Types.ByteArray, 0, -1)
			if err != nil {
				return nil, err
			}
			fields = append(fields, n)
		}
	}
	return schema.NewGroupNode("rows", parquet.Repetitions.Required, fields, -1)
}

func (p *arrowPeer) Load(b *Batch) error {
	if p.group == nil {
		var err error
		if p.group, err = p.writer.AppendBufferedRowGroupChecked(); err != nil {
			return err
		}
	}
	for i := range p.table.Columns {
		w, err := p.group.Column(i)
		if err != nil {
			return err
		}
		if err := writeArrowColumn(w, &b.Columns[i]); err != nil {
			return err
		}
	}
	if p.rows += b.Len; p.rows < p.limit {
		return nil
	}
	return p.endGroup()
}

func writeArrowColumn(w file.ColumnChunkWriter, d *Data) (err error) {
	switch w := w.(type) {
	case *file.Int64ColumnChunkWriter:
		_, err = w.WriteBatch(d.Ints, nil, nil)
	case *file.Float64ColumnChunkWriter:
		_, err = w.WriteBatch(d.Floats, nil, nil)
	case *file.ByteArrayColumnChunkWriter:
		texts := make([]parquet.ByteArray, len(d.Offsets)-1)
		for i := range texts {
			texts[i] = d.Bytes[d.Offsets[i]:d.Offsets[i+1]]
		}
		_, err = w.WriteBatch(texts, nil, nil)
	default:
		err = fmt.Errorf("unexpected column writer %T", w)
	}
	return err
}

func (p *arrowPeer) endGroup() error {
	if p.group == nil {
		return nil
	}
	err := p.group.Close()
	p.group, p.rows = nil, 0
	return err
}

func (p *arrowPeer) Scan(s *Scan, threads int) (Answer, error) {
	return together(shares(p.reader.NumRowGroups(), threads), func(mine []int) (Answer, error) {
		var total Answer
		for _, g := range mine {
			a, err := p.scanGroup(p.reader.RowGroup(g), s)
			if err != nil {
				return total, err
			}
			total = total.plus(a)
		}
		return total, nil
	})
}

func (p *arrowPeer) scanGroup(g *file.RowGroupReader, s *Scan) (Answer, error) {
	rows := int(g.NumRows())
	kept, err := p.filter(g, s)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Count: kept.count(rows)}
	if s.Sum < 0 {
		return a, nil
	}
	r, err := g.Column(s.Sum)
	if err != nil {
		return a, err
	}
	switch r := r.(type) {
	case *file.Int64ColumnChunkReader:
		err = arrowCells(r.ReadBatch, rows, func(row int, cells []int64) { a.Sum += sumKept(kept, row, cells) })
	case *file.Float64ColumnChunkReader:
		err = arrowCells(r.ReadBatch, rows, func(row int, cells []float64) { a.Sum += sumKept(kept, row, cells) })
	default:
		err = fmt.Errorf("unexpected column reader %T", r)
	}
	return a, err
}

// arrowCells reads a column of so many rows and calls fn with cells and the row that
// they begin at.
func arrowCells[T any](read func(int64, []T, []int16, []int16) (int64, int, error), rows int, fn func(row int, cells []T)) error {
	cells := make([]T, 8192)
	for row := 0; row < rows; {
		_, n, err := read(int64(len(cells)), cells, nil, nil)
		if err != nil {
			return err
		}
		if n == 0 {
			return errors.New("column ends early")
		}
		fn(row, cells[:n])
		row += n
	}
	return nil
}

func (p *arrowPeer) filter(g *file.RowGroupReader, s *Scan) (*keptRows, error) {
	rows := int(g.NumRows())
	if s.Op == All {
		return &keptRows{all: true}, nil
	}
	kept := &keptRows{keep: make([]bool, rows)}
	r, err := g.Column(s.Column)
	if err != nil {
		return nil, err
	}
	want := []byte(s.Text)
	switch r := r.(type) {
	case *file.Int64ColumnChunkReader:
		err = arrowCells(r.ReadBatch, rows, func(row int, cells []int64) {
			for i, c := range cells {
				kept.keep[row+i] = c > s.Int
			}
		})
	case *file.ByteArrayColumnChunkReader:
		err = arrowCells(r.ReadBatch, rows, func(row int, cells []parquet.ByteArray) {
			for i, c := range cells {
				if s.Op == Equal {
					kept.keep[row+i] = bytes.Equal(c, want)
				} else {
					kept.keep[row+i] = bytes.Contains(c, want)
				}
			}
		})
	default:
		err = fmt.Errorf("unexpected column reader %T", r)
	}
	return kept, err
}

func (p *arrowPeer) Close() error {
	if p.out != nil {
		return errors.Join(p.endGroup(), p.writer.Close(), p.out.close())
	}
	return p.reader.Close()
}
