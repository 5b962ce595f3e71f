package predicate

// Op is a comparison.
type Op uint8

// The comparisons.
const (
	OpEq     Op = iota + 1 // =
	OpNe                   // !=
	OpLt                   // <
	OpLe                   // <=
	OpGt                   // >
	OpGe                   // >=
	OpIn                   // IN (list)
	OpLike                 // LIKE pattern: % any run, _ one character, \ escapes
	OpIsNull               // IS NULL
)

// Expr is an untyped filter expression. The zero value is nil, which a scan takes
// for "every row".
type Expr interface {
	// String returns the expression in SQL syntax.
	String() string
	isExpr()
}

// Compare is column Op literal. Literals are Go values: bool, any integer,
// float32, float64, string, []byte, time.Time, a decimal as string, or a
// schema.Value; a string is parsed as the column's type. A nil literal compares as
// unknown, except for OpIsNull, which takes none.
type Compare struct {
	Column string
	Op     Op
	Args   []any // one for the comparisons and LIKE, any number for IN, none for IS NULL
}

// Logic is AND or OR over its parts. An empty AND is true, an empty OR is false.
type Logic struct {
	Or    bool
	Parts []Expr
}

// Negation is NOT.
type Negation struct{ Part Expr }

func (*Compare) isExpr()  {}
func (*Logic) isExpr()    {}
func (*Negation) isExpr() {}

// Eq returns column = v.
func Eq(column string, v any) Expr { return &Compare{column, OpEq, []any{v}} }

// Ne returns column != v.
func Ne(column string, v any) Expr { return &Compare{column, OpNe, []any{v}} }

// Lt returns column < v.
func Lt(column string, v any) Expr { return &Compare{column, OpLt, []any{v}} }

// Le returns column <= v.
func Le(column string, v any) Expr { return &Compare{column, OpLe, []any{v}} }

// Gt returns column > v.
func Gt(column string, v any) Expr { return &Compare{column, OpGt, []any{v}} }

// Ge returns column >= v.
func Ge(column string, v any) Expr { return &Compare{column, OpGe, []any{v}} }

// In returns column IN (vs...).
func In(column string, vs ...any) Expr { return &Compare{column, OpIn, vs} }

// Between returns column >= lo AND column <= hi.
func Between(column string, lo, hi any) Expr { return And(Ge(column, lo), Le(column, hi)) }

// Like returns column LIKE pattern; see [OpLike]. Case counts.
func Like(column, pattern string) Expr { return &Compare{column, OpLike, []any{pattern}} }

// IsNull returns column IS NULL.
func IsNull(column string) Expr { return &Compare{column, OpIsNull, nil} }

// IsNotNull returns column IS NOT NULL.
func IsNotNull(column string) Expr { return Not(IsNull(column)) }

// And returns the conjunction of the parts.
func And(parts ...Expr) Expr { return &Logic{Parts: parts} }

// Or returns the disjunction of the parts.
func Or(parts ...Expr) Expr { return &Logic{Or: true, Parts: parts} }

// Not returns the negation.
func Not(part Expr) Expr { return &Negation{part} }
