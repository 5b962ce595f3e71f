package aggregate

import (
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Func is an aggregate function.
type Func uint8

// The functions.
const (
	CountRows Func = iota + 1 // count(*)
	Count                     // count(column): cells that are not null
	Sum
	Min
	Max
	Avg
)

var funcNames = [...]string{CountRows: "count", Count: "count", Sum: "sum", Min: "min", Max: "max", Avg: "avg"}

// Spec is one aggregate.
type Spec struct {
	Func   Func
	Column int // schema column; not looked at for CountRows
}

// Plan is a checked list of aggregates and group-by columns.
type Plan struct {
	schema  *schema.Schema
	groupBy []int
	specs   []Spec
	columns []int
	output  []schema.Column
}

// NewPlan checks the aggregates against the schema. Errors answer errors.Is(err,
// schema.ErrInvalidArgument) and name the column.
func NewPlan(s *schema.Schema, groupBy []int, specs []Spec) (*Plan, error) {
	p := &Plan{schema: s, groupBy: slices.Clone(groupBy), specs: slices.Clone(specs)}
	for _, g := range groupBy {
		if g < 0 || g >= s.Len() {
			return nil, invalid("", fmt.Sprintf("no column %d to group by", g))
		}
		c := *s.Column(g)
		p.output = append(p.output, schema.Column{Name: c.Name, Type: c.Type, Precision: c.Precision, Scale: c.Scale,
			Length: c.Length, Nullable: c.Nullable})
		p.columns = append(p.columns, g)
	}
	for _, f := range specs {
		out, err := outputColumn(s, f)
		if err != nil {
			return nil, err
		}
		p.output = append(p.output, out)
		if f.Func != CountRows {
			p.columns = append(p.columns, f.Column)
		}
	}
	slices.Sort(p.columns)
	p.columns = slices.Compact(p.columns)
	return p, nil
}

func invalid(column, reason string) error {
	return &schema.ValueError{Row: -1, Column: column, Reason: reason}
}

// outputColumn returns name and type of the aggregate's result.
func outputColumn(s *schema.Schema, f Spec) (schema.Column, error) {
	switch {
	case f.Func < CountRows || f.Func > Avg:
		return schema.Column{}, invalid("", fmt.Sprintf("unknown aggregate %d", f.Func))
	case f.Func == CountRows:
		return schema.Column{Name: "count(*)", Type: schema.Int64}, nil
	case f.Column < 0 || f.Column >= s.Len():
		return schema.Column{}, invalid("", fmt.Sprintf("no column %d to aggregate", f.Column))
	}
	c := s.Column(f.Column)
	out := schema.Column{Name: funcNames[f.Func] + "(" + c.Name + ")", Type: schema.Int64, Nullable: f.Func != Count}
	switch {
	case f.Func == Count:
	case f.Func == Min || f.Func == Max:
		out.Type, out.Precision, out.Scale, out.Length = c.Type, c.Precision, c.Scale, c.Length
	case !summable(c):
		return schema.Column{}, invalid(c.Name, fmt.Sprintf("%s of %s is not defined", funcNames[f.Func], c.TypeString()))
	case f.Func == Avg || c.Kind().IsFloat():
		out.Type = schema.Double
	case c.Type.IsDecimal():
		out.Type, out.Precision, out.Scale = schema.Decimal128, 38, c.Scale
	}
	return out, nil
}

func summable(c *schema.Column) bool {
	return c.Type != schema.Date && c.Type != schema.UnixtimeMicros && (c.Kind().IsInteger() || c.Kind().IsFloat())
}

// Columns returns the schema columns the plan reads, ascending. The caller must not
// change it.
func (p *Plan) Columns() []int { return p.columns }

// Output describes the columns of a result: the group-by columns, then the
// aggregates, named by their text: count(*), sum(delay). The caller must not change it.
func (p *Plan) Output() []schema.Column { return p.output }

// Result is the answer: one vector for each of Columns.
type Result struct {
	Columns []schema.Column
	Vectors []*vector.Vector
	Rows    int
}
