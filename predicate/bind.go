package predicate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/minikudu/minikudu/schema"
)

// Bind types the expression for a schema: literals become values of their column's
// type, IN lists are sorted, comparisons that can never or always hold are folded.
// A nil Expr gives a nil Bound. Errors answer errors.Is(err,
// schema.ErrInvalidArgument) and name the column and, for an unknown one, the known.
func Bind(e Expr, s *schema.Schema) (*Bound, error) {
	if e == nil {
		return nil, nil
	}
	b := binder{schema: s}
	root, err := b.bind(e, false, 0)
	if err != nil {
		return nil, err
	}
	out := &Bound{schema: s, root: root}
	root.walk(func(l *leaf) {
		l.prepare()
		out.columns = append(out.columns, l.col)
	})
	slices.Sort(out.columns)
	out.columns = slices.Compact(out.columns)
	return out, nil
}

// maxDepth bounds the nesting of an expression, and with it the recursion over it.
const maxDepth = 1000

type binder struct{ schema *schema.Schema }

// bind types e, or its negation, which it pushes down to the leaves.
func (b *binder) bind(e Expr, not bool, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, &schema.ValueError{Row: -1, Reason: fmt.Sprintf("expression is nested deeper than %d", maxDepth)}
	}
	switch x := e.(type) {
	case nil:
		return constant(!not), nil
	case *Negation:
		return b.bind(x.Part, !not, depth+1)
	case *Logic:
		parts := make([]*node, len(x.Parts))
		for i, p := range x.Parts {
			n, err := b.bind(p, not, depth+1)
			if err != nil {
				return nil, err
			}
			parts[i] = n
		}
		if x.Or != not {
			return b.or(parts), nil
		}
		return b.and(parts), nil
	case *Compare:
		return b.compare(x, not)
	}
	return nil, &schema.ValueError{Row: -1, Reason: fmt.Sprintf("unknown expression %T", e)}
}

func (b *binder) column(i int) column {
	c := b.schema.Column(i)
	return column{at: i, kind: c.Kind(), nullable: c.Nullable}
}

func (b *binder) compare(x *Compare, not bool) (*node, error) {
	at := slices.Index(b.schema.Names(), x.Column)
	if at < 0 {
		return nil, &schema.ValueError{Row: -1, Column: shorten(x.Column),
			Reason: "no such column, the table has " + strings.Join(b.schema.Names(), ", ")}
	}
	c, def := b.column(at), b.schema.Column(at)
	if err := x.checkArgs(); err != nil {
		return nil, err
	}
	switch x.Op {
	case OpIsNull:
		if not {
			return c.notNull(), nil
		}
		return c.null(), nil
	case OpIn:
		return bindIn(c, def, x.Args, not)
	case OpLike:
		return bindLike(c, def, x.Args[0], not)
	}
	lit, err := literalOf(def, x.Args[0])
	switch {
	case err != nil:
		return nil, err
	case lit.null:
		return never, nil
	case lit.nan:
		return c.inSpan(span{}, not != (x.Op == OpNe)), nil
	}
	full := fullSpan(c.kind)
	switch x.Op {
	case OpEq:
		return c.inSpan(lit.equal(), not), nil
	case OpNe:
		return c.inSpan(lit.equal(), !not), nil
	case OpLt:
		return c.inSpan(span{full.lo, lit.below}, not), nil
	case OpLe:
		return c.inSpan(span{full.lo, lit.above}, not), nil
	case OpGt:
		return c.inSpan(span{lit.above, full.hi}, not), nil
	}
	return c.inSpan(span{lit.below, full.hi}, not), nil
}

func (c *Compare) checkArgs() error {
	fail := func(reason string) error {
		return &schema.ValueError{Row: -1, Column: c.Column, Reason: reason}
	}
	switch {
	case !c.Op.valid():
		return fail("unknown " + c.Op.String())
	case c.Op == OpIn:
	case c.Op == OpIsNull && len(c.Args) != 0:
		return fail("IS NULL takes no literal")
	case c.Op != OpIsNull && len(c.Args) != 1:
		return fail(fmt.Sprintf("%s takes one literal, given %d", c.Op, len(c.Args)))
	}
	return nil
}

// bindIn types an IN list. A null in it makes every miss unknown; an empty list is
// false, also for a null cell.
func bindIn(c column, def *schema.Column, args []any, not bool) (*node, error) {
	if len(args) == 0 {
		return constant(not), nil
	}
	var keys []key
	null := false
	for _, a := range args {
		lit, err := literalOf(def, a)
		if err != nil {
			return nil, err
		}
		null = null || lit.null
		if lit.null || lit.nan {
			continue
		}
		for at := lit.below; at.cmp(lit.above) < 0; at = after(at.key, c.kind) {
			keys = append(keys, at.key)
		}
	}
	if null && not {
		return never, nil
	}
	return c.inSet(keys, not), nil
}

func bindLike(c column, def *schema.Column, arg any, not bool) (*node, error) {
	text := ""
	switch a := arg.(type) {
	case nil:
		if c.kind == schema.KindBytes {
			return never, nil
		}
	case string:
		text = a
	case []byte:
		text = string(a)
	case schema.Value:
		if a.IsNull() {
			return never, nil
		}
		text = a.Str()
	default:
		return nil, literalError(def, arg, "LIKE needs a text pattern")
	}
	if c.kind != schema.KindBytes {
		return nil, literalError(def, arg, "LIKE needs a column of text")
	}
	p, err := compileLike(text)
	if err != nil {
		return nil, literalError(def, text, err.Error())
	}
	return c.matches(p, not), nil
}

// and simplifies a conjunction and orders its parts.
func (b *binder) and(parts []*node) *node {
	parts, byColumn := group(parts, andOp)
	for _, leaves := range byColumn {
		n := b.column(leaves[0].col).both(leaves)
		if n.op == andOp {
			parts = append(parts, n.parts...)
		} else {
			parts = append(parts, n)
		}
	}
	return join(andOp, parts)
}

// or simplifies a disjunction and orders its parts.
func (b *binder) or(parts []*node) *node {
	parts, byColumn := group(parts, orOp)
	for _, leaves := range byColumn {
		parts = append(parts, b.column(leaves[0].col).either(leaves)...)
	}
	return join(orOp, parts)
}

// group flattens parts that are themselves of the same operator and takes out the
// leaves, by column.
func group(parts []*node, op nodeOp) (rest []*node, byColumn [][]*leaf) {
	at := map[int]int{}
	var add func(n *node)
	add = func(n *node) {
		switch n.op {
		case op:
			for _, p := range n.parts {
				add(p)
			}
		case leafOp:
			i, ok := at[n.leaf.col]
			if !ok {
				i, byColumn = len(byColumn), append(byColumn, nil)
				at[n.leaf.col] = i
			}
			byColumn[i] = append(byColumn[i], n.leaf)
		default:
			rest = append(rest, n)
		}
	}
	for _, p := range parts {
		add(p)
	}
	return rest, byColumn
}

// join makes a node of parts: constants are folded, the cheapest part comes first.
func join(op nodeOp, parts []*node) *node {
	identity, absorbing := always, never
	if op == orOp {
		identity, absorbing = never, always
	}
	var kept []*node
	for _, p := range parts {
		switch p {
		case absorbing:
			return absorbing
		case identity:
		default:
			kept = append(kept, p)
		}
	}
	switch len(kept) {
	case 0:
		return identity
	case 1:
		return kept[0]
	}
	slices.SortStableFunc(kept, compareCost)
	return &node{op: op, parts: kept}
}

func compareCost(a, b *node) int {
	if a.op != leafOp || b.op != leafOp {
		return cmp.Compare(a.op, b.op) // leaves first
	}
	return cmp.Or(cmp.Compare(a.leaf.rank(), b.leaf.rank()),
		cmp.Compare(a.leaf.width(), b.leaf.width()),
		cmp.Compare(a.leaf.col, b.leaf.col))
}
