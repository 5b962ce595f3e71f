package predicate

import (
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Bound is an expression typed for one schema, in negation normal form: NOT stands
// only as a flag of a leaf. Build one with [Bind].
type Bound struct {
	root    *node
	columns []int // schema columns read, ascending, each once
}

// node is a part of a Bound: a conjunction, a disjunction or a leaf.
type node struct{}

// Verdict is what a zone says of a predicate.
type Verdict uint8

// The verdicts.
const (
	Some Verdict = iota // must be evaluated
	None                // no row of the zone qualifies
	All                 // every row of the zone qualifies
)

// Bind types the expression for a schema: literals become values of their column's
// type, IN lists are sorted, comparisons that can never or always hold are folded.
// A nil Expr gives a nil Bound. Errors answer errors.Is(err,
// schema.ErrInvalidArgument) and name the column and, for an unknown one, the known.
func Bind(e Expr, s *schema.Schema) (*Bound, error) { panic("to be written") }

// Columns returns the schema columns the predicate reads, ascending. The caller
// must not change it.
func (b *Bound) Columns() []int { return b.columns }

// Eval clears from sel the rows for which the predicate is not true. column returns
// the cells of a schema column for all rows (n of them, possibly in dictionary
// form); it is called only for columns whose value is still needed, so that pages
// nobody needs are not decoded, and may fail. Part by part, the cheapest first, it
// stops as soon as no row is left.
func (b *Bound) Eval(n int, sel vector.Bitmap, column func(col int) (*vector.Vector, error)) error {
	panic("to be written")
}

// Prune judges the predicate by the zones of its columns; zone returns false where
// none is known.
func (b *Bound) Prune(zone func(col int) (vector.Zone, bool)) Verdict { panic("to be written") }

// KeyRange returns the encoded key bounds [lower, upper) outside which no row
// qualifies, nil where open; empty is true
// when no key can qualify.
func (b *Bound) KeyRange() (lower, upper []byte, empty bool) { panic("to be written") }
