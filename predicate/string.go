package predicate

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minikudu/minikudu/schema"
)

var opText = [...]string{OpEq: "=", OpNe: "!=", OpLt: "<", OpLe: "<=", OpGt: ">", OpGe: ">=",
	OpIn: "IN", OpLike: "LIKE", OpIsNull: "IS NULL"}

// String returns the operator in SQL syntax.
func (o Op) String() string {
	if o.valid() {
		return opText[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

func (o Op) valid() bool { return o >= OpEq && o <= OpIsNull }

// String returns the comparison in SQL syntax.
func (c *Compare) String() string {
	name := quoteName(c.Column)
	switch {
	case c.Op == OpIsNull:
		return name + " IS NULL"
	case c.Op == OpIn:
		args := make([]string, len(c.Args))
		for i, a := range c.Args {
			args[i] = quoteLiteral(a)
		}
		return name + " IN (" + strings.Join(args, ", ") + ")"
	case len(c.Args) != 1:
		return fmt.Sprintf("%s %s ?", name, c.Op)
	}
	return name + " " + c.Op.String() + " " + quoteLiteral(c.Args[0])
}

// String returns the conjunction or disjunction in SQL syntax; one without parts is
// written as the constant it is.
func (l *Logic) String() string {
	if len(l.Parts) == 0 {
		return strconv.FormatBool(!l.Or)
	}
	word := " AND "
	if l.Or {
		word = " OR "
	}
	parts := make([]string, len(l.Parts))
	for i, p := range l.Parts {
		parts[i] = exprText(p)
		if inner, ok := p.(*Logic); ok && inner.Or != l.Or && len(inner.Parts) > 1 && len(l.Parts) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	return strings.Join(parts, word)
}

// String returns the negation in SQL syntax.
func (n *Negation) String() string {
	if c, ok := n.Part.(*Compare); ok && c.Op == OpIsNull {
		return quoteName(c.Column) + " IS NOT NULL"
	}
	return "NOT (" + exprText(n.Part) + ")"
}

func exprText(e Expr) string {
	if e == nil {
		return "true"
	}
	return e.String()
}

// reserved are the words that must be quoted to stand for a column.
var reserved = map[string]bool{"and": true, "or": true, "not": true, "in": true, "is": true, "null": true,
	"like": true, "between": true, "true": true, "false": true}

func quoteName(s string) string {
	plain := s != "" && !reserved[strings.ToLower(s)]
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		plain = plain && (letter || i > 0 && r >= '0' && r <= '9')
	}
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func quoteLiteral(v any) string {
	switch x := v.(type) {
	case nil:
		return "NULL"
	case string:
		return quoteText(x)
	case []byte:
		return "'0x" + hex.EncodeToString(x) + "'"
	case time.Time:
		return quoteText(x.UTC().Format(time.RFC3339Nano))
	case float32:
		return quoteFloat(float64(x), 32)
	case float64:
		return quoteFloat(x, 64)
	case schema.Value:
		return quoteValue(x)
	}
	return fmt.Sprint(v)
}

func quoteFloat(f float64, bits int) string {
	s := strconv.FormatFloat(f, 'g', -1, bits)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return quoteText(s)
	}
	return s
}

func quoteValue(v schema.Value) string {
	switch k := v.Kind(); {
	case v.IsNull():
		return "NULL"
	case k == schema.KindBool:
		return strconv.FormatBool(v.Bool())
	case k == schema.KindFloat32:
		return quoteFloat(v.Float(), 32)
	case k == schema.KindFloat64:
		return quoteFloat(v.Float(), 64)
	case k == schema.KindInt128:
		return bigFrom128(v.Int128()).String()
	case k.IsInteger():
		return strconv.FormatInt(v.Int(), 10)
	case utf8.ValidString(v.Str()):
		return quoteText(v.Str())
	}
	return "'0x" + hex.EncodeToString([]byte(v.Str())) + "'"
}
