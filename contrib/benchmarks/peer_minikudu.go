package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func minikuduPeers() []Info {
	peer := func(name, codec string, c schema.Compression, settings string) Info {
		return Info{Name: name, Family: "minikudu", Codec: codec, Settings: settings, Keyed: true, Quick: codec == ownChoice,
			New: func() Peer { return &minikuduPeer{codec: c} }}
	}
	all := []Info{peer("minikudu", ownChoice, schema.CompressionDefault, "default options, commits synced, columns by vector")}
	for _, c := range []schema.Compression{schema.CompressionNone, schema.CompressionSnappy, schema.CompressionLZ4,
		schema.CompressionZlib, schema.CompressionZstd} {
		all = append(all, peer("minikudu-"+c.String(), c.String(), c, "all columns "+c.String()))
	}
	return all
}

// minikuduPeer is the engine of this repository through its public API.
type minikuduPeer struct {
	codec schema.Compression
	table *Table
	names []string
	db    *minikudu.DB
	tab   *minikudu.Table
	batch minikudu.WriteBatch
}

var ctx = context.Background()

var minikuduTypes = map[Kind]schema.Type{Int: schema.Int64, Float: schema.Double, Text: schema.String}

func (p *minikuduPeer) Open(s *Setup) error {
	p.table = s.Table
	spec := minikudu.TableSpec{}
	for i, c := range s.Table.Columns {
		p.names = append(p.names, c.Name)
		spec.Columns = append(spec.Columns, minikudu.Column{Name: c.Name, Type: minikuduTypes[c.Kind], Compression: p.codec})
		if i < s.Table.Key {
			spec.Key = append(spec.Key, c.Name)
		}
	}
	var err error
	if p.db, err = minikudu.Open(s.Dir, &minikudu.Options{MemoryBudget: s.Cache}); err != nil {
		return err
	}
	if s.Create {
		p.tab, err = p.db.CreateTable(ctx, s.Table.Name, spec)
	} else {
		p.tab, err = p.db.Table(s.Table.Name)
	}
	return err
}

// vectorOf returns the cells as a vector that shares their memory; AddColumns copies it.
func vectorOf(k Kind, d *Data) *vector.Vector {
	switch k {
	case Int:
		return vector.FromFixed(schema.KindInt64, d.Ints, nil)
	case Float:
		return vector.FromFixed(schema.KindFloat64, d.Floats, nil)
	default:
		return vector.FromBytes(d.Offsets, d.Bytes, nil)
	}
}

func (p *minikuduPeer) Load(b *Batch) error {
	columns := make([]*vector.Vector, len(b.Columns))
	for i := range b.Columns {
		columns[i] = vectorOf(p.table.Columns[i].Kind, &b.Columns[i])
	}
	return p.commit(minikudu.OpInsert, p.names, columns)
}

func (p *minikuduPeer) commit(op minikudu.Op, names []string, columns []*vector.Vector) error {
	p.batch.Reset()
	if err := p.batch.AddColumns(p.tab, op, names, columns); err != nil {
		return err
	}
	_, err := p.db.Commit(ctx, &p.batch, nil)
	return err
}

func (p *minikuduPeer) Settle() error {
	_, err := p.tab.Compact(ctx)
	return err
}

func (p *minikuduPeer) keyValues(key Row) []any {
	values := make([]any, len(key))
	for i, c := range key {
		if p.table.Columns[i].Kind == Text {
			values[i] = c.Text
		} else {
			values[i] = c.Int
		}
	}
	return values
}

func (p *minikuduPeer) Get(key, row Row) (bool, error) {
	found, err := p.tab.Get(ctx, p.keyValues(key)...)
	if err != nil {
		return false, ignoreMissing(err)
	}
	for i, c := range p.table.Columns {
		switch v := found.Cell(i); c.Kind {
		case Int:
			row[i].Int = v.Int()
		case Float:
			row[i].Float = v.Float()
		default:
			row[i].Text = v.Str()
		}
	}
	return true, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, minikudu.ErrNotFound) {
		return nil
	}
	return err
}

func (p *minikuduPeer) GetColumns(key Row, columns []int, row Row) (bool, error) {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = p.names[c]
	}
	values, err := p.tab.GetColumns(ctx, names, p.keyValues(key)...)
	if err != nil {
		return false, ignoreMissing(err)
	}
	for i, v := range values {
		if err := assign(&row[i], v); err != nil {
			return false, err
		}
	}
	return true, nil
}

// assign stores a Go value in a cell.
func assign(c *Cell, v any) error {
	switch v := v.(type) {
	case int64:
		c.Int = v
	case float64:
		c.Float = v
	case string:
		c.Text = v
	default:
		return fmt.Errorf("cell of unexpected type %T", v)
	}
	return nil
}

func (p *minikuduPeer) where(s *Scan) minikudu.Expr {
	name := p.names[s.Column]
	switch s.Op {
	case Above:
		return predicate.Gt(name, s.Int)
	case Equal:
		return predicate.Eq(name, s.Text)
	case Contains:
		return predicate.Like(name, "%"+s.Text+"%")
	default:
		return nil
	}
}

// Scan runs on as many processors as the harness leaves to the process.
func (p *minikuduPeer) Scan(s *Scan, _ int) (Answer, error) {
	return p.aggregate(p.where(s), s.Sum)
}

func (p *minikuduPeer) aggregate(where minikudu.Expr, sum int) (Answer, error) {
	if sum < 0 {
		n, err := p.tab.Count(ctx, where)
		return Answer{Count: n}, err
	}
	batch, err := p.tab.Aggregate(ctx, minikudu.Query{Where: where}, nil, minikudu.Count(), minikudu.Sum(p.names[sum]))
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Count: batch.Column(0).Int64s()[0]}
	if p.table.Columns[sum].Kind == Float {
		a.Sum = batch.Column(1).Float64s()[0]
	} else {
		a.Sum = float64(batch.Column(1).Int64s()[0])
	}
	return a, nil
}

func (p *minikuduPeer) Range(r *Range) (Answer, error) {
	var where []minikudu.Expr
	for i, v := range p.keyValues(r.Prefix) {
		where = append(where, predicate.Eq(p.names[i], v))
	}
	last := p.names[p.table.Key-1]
	where = append(where, predicate.Ge(last, r.From), predicate.Lt(last, r.To))
	return p.aggregate(predicate.And(where...), r.Sum)
}

func (p *minikuduPeer) Update(keys []Row, column int, values []int64) error {
	var names []string
	var columns []*vector.Vector
	for i, c := range p.table.Columns[:p.table.Key] {
		v := vector.New(schema.KindInt64, len(keys))
		if c.Kind == Text {
			v = vector.New(schema.KindBytes, len(keys))
		}
		for _, key := range keys {
			if c.Kind == Int {
				vector.AppendFixed(v, key[i].Int)
			} else if err := v.AppendBytes([]byte(key[i].Text)); err != nil {
				return err
			}
		}
		names, columns = append(names, c.Name), append(columns, v)
	}
	names = append(names, p.names[column])
	columns = append(columns, vector.FromFixed(schema.KindInt64, values, nil))
	return p.commit(minikudu.OpUpdate, names, columns)
}

func (p *minikuduPeer) rowSets() (int, error) {
	stats, err := p.tab.Stats(ctx)
	if err != nil {
		return 0, err
	}
	return stats.RowSets, nil
}

func (p *minikuduPeer) Close() error { return p.db.Close() }
