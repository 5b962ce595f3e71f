package predicate

import "github.com/minikudu/minikudu/schema"

// nodeOp is what a node does with its parts.
type nodeOp uint8

const (
	leafOp nodeOp = iota
	andOp
	orOp
	constOp
)

// node is a part of a Bound: a constant, a leaf, a conjunction or a disjunction of
// at least two parts. It is immutable once bound.
type node struct {
	op    nodeOp
	leaf  *leaf
	parts []*node
}

// The constants; compared by address.
var (
	always = &node{op: constOp}
	never  = &node{op: constOp}
)

func constant(b bool) *node {
	if b {
		return always
	}
	return never
}

func leafNode(l *leaf) *node { return &node{op: leafOp, leaf: l} }

func andNode(leaves []*leaf) *node {
	if len(leaves) == 1 {
		return leafNode(leaves[0])
	}
	n := &node{op: andOp}
	for _, l := range leaves {
		n.parts = append(n.parts, leafNode(l))
	}
	return n
}

// walk calls f for every leaf.
func (n *node) walk(f func(*leaf)) {
	if n.op == leafOp {
		f(n.leaf)
		return
	}
	for _, p := range n.parts {
		p.walk(f)
	}
}

// Bound is an expression typed for one schema, in negation normal form: NOT stands
// only as a flag of a leaf. Build one with [Bind].
type Bound struct {
	schema  *schema.Schema
	root    *node
	columns []int // schema columns read, ascending, each once
}

// Columns returns the schema columns the predicate reads, ascending. The caller
// must not change it.
func (b *Bound) Columns() []int { return b.columns }

// Equalities returns the columns that must equal one value for a row to qualify,
// with that value: when they are all the key columns, the scan is a point read.
func (b *Bound) Equalities() map[int]schema.Value {
	out := map[int]schema.Value{}
	for _, l := range b.root.conjuncts() {
		if p := l.points(); len(p) == 1 {
			out[l.col] = p[0].value(l.kind)
		}
	}
	return out
}

// conjuncts returns the leaves that must hold for the node to hold.
func (n *node) conjuncts() []*leaf {
	if n.op == leafOp {
		return []*leaf{n.leaf}
	}
	var out []*leaf
	if n.op == andOp {
		for _, p := range n.parts {
			if p.op == leafOp {
				out = append(out, p.leaf)
			}
		}
	}
	return out
}
