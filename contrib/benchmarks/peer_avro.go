package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

func avroPeers() []Info {
	zstd := func() ocf.Codec { return ocf.MustZstdCodec(nil, nil) }
	peer := func(codec string, quick bool, c func() ocf.Codec) Info {
		return Info{Name: "avro-" + codec, Family: "avro", Codec: codec, Quick: quick,
			Settings: "object container file, a block flushed after every batch, " + codec, New: func() Peer { return &avroPeer{codec: c} }}
	}
	return []Info{peer("none", false, nil), peer("snappy", true, ocf.SnappyCodec),
		peer("zlib", false, func() ocf.Codec { return ocf.DeflateCodec(6) }), peer("zstd", false, zstd)}
}

// avroPeer is one Avro file. A scan reads it from one end to the other, on one thread,
// and decodes only the columns it needs.
type avroPeer struct {
	scanOnly
	codec func() ocf.Codec // nil for none
	table *Table
	path  string

	out    *fileWriter
	writer *ocf.Writer
	row    reflect.Value // of the struct type
}

var (
	avroTypes = map[Kind]string{Int: "long", Float: "double", Text: "string"}
	goTypes   = map[Kind]reflect.Type{Int: reflect.TypeFor[int64](), Float: reflect.TypeFor[float64](), Text: reflect.TypeFor[string]()}
)

// avroRecord returns schema and struct of some columns.
func avroRecord(t *Table, columns []int) (*avro.Schema, reflect.Value, error) {
	var fields []string
	var members []reflect.StructField
	for i, c := range columns {
		column := t.Columns[c]
		fields = append(fields, fmt.Sprintf(`{"name": %q, "type": %q}`, column.Name, avroTypes[column.Kind]))
		members = append(members, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: goTypes[column.Kind],
			Tag: reflect.StructTag(fmt.Sprintf(`avro:"%s"`, column.Name))})
	}
	s, err := avro.Parse(`{"type": "record", "name": "row", "fields": [` + strings.Join(fields, ", ") + `]}`)
	return s, reflect.New(reflect.StructOf(members)), err
}

func (p *avroPeer) Open(s *Setup) error {
	p.table, p.path = s.Table, filepath.Join(s.Dir, "rows.avro")
	if !s.Create {
		return p.header()
	}
	schema, row, err := avroRecord(p.table, first(len(p.table.Columns)))
	if err != nil {
		return err
	}
	p.row = row
	if p.out, err = createFile(s.Dir, "rows.avro"); err != nil {
		return err
	}
	var opts []ocf.WriterOpt
	if p.codec != nil {
		opts = append(opts, ocf.WithCodec(p.codec()))
	}
	p.writer, err = ocf.NewWriter(p.out, schema, opts...)
	return err
}

// header reads the header of the file.
func (p *avroPeer) header() error {
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	r, err := ocf.NewReader(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(r.Close(), f.Close())
}

func (p *avroPeer) Load(b *Batch) error {
	row := p.row.Elem()
	for i := range b.Len {
		for c, column := range p.table.Columns {
			switch cell := b.cell(column.Kind, c, i); column.Kind {
			case Int:
				row.Field(c).SetInt(cell.Int)
			case Float:
				row.Field(c).SetFloat(cell.Float)
			default:
				row.Field(c).SetString(cell.Text)
			}
		}
		if err := p.writer.Encode(p.row.Interface()); err != nil {
			return err
		}
	}
	return p.writer.Flush()
}

func (p *avroPeer) Scan(s *Scan, threads int) (Answer, error) {
	if threads > 1 {
		return Answer{}, errCannot
	}
	schema, row, err := avroRecord(p.table, s.needs())
	if err != nil {
		return Answer{}, err
	}
	f, err := os.Open(p.path)
	if err != nil {
		return Answer{}, err
	}
	defer f.Close()
	r, err := ocf.NewReader(f, ocf.WithReaderSchema(schema))
	if err != nil {
		return Answer{}, err
	}
	defer r.Close()
	return p.readAll(r, s, row)
}

func (p *avroPeer) readAll(r *ocf.Reader, s *Scan, row reflect.Value) (Answer, error) {
	needs, target := s.needs(), row.Interface()
	var a Answer
	for {
		err := r.Decode(target)
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return a, err
		}
		if s.Op != All && !s.keeps(p.field(row, 0, needs)) {
			continue
		}
		var sum Cell
		if s.Sum >= 0 {
			sum = p.field(row, len(needs)-1, needs)
		}
		a.add(p.table, s.Sum, sum)
	}
}

// field returns a field of the struct as a cell.
func (p *avroPeer) field(row reflect.Value, i int, columns []int) Cell {
	switch v := row.Elem().Field(i); p.table.Columns[columns[i]].Kind {
	case Int:
		return Cell{Int: v.Int()}
	case Float:
		return Cell{Float: v.Float()}
	default:
		return Cell{Text: v.String()}
	}
}

func (p *avroPeer) Close() error {
	if p.out == nil {
		return nil
	}
	return errors.Join(p.writer.Close(), p.out.close())
}
