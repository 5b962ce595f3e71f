package predicate

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// truth is a value of three-valued logic.
type truth int

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// naive evaluates an expression for one row by the book.
func naive(e Expr, s *schema.Schema, row []schema.Value) truth {
	switch x := e.(type) {
	case *Negation:
		return yes - naive(x.Part, s, row)
	case *Logic:
		out := yes
		if x.Or {
			out = no
		}
		for _, p := range x.Parts {
			if t := naive(p, s, row); x.Or {
				out = max(out, t)
			} else {
				out = min(out, t)
			}
		}
		return out
	}
	c := e.(*Compare)
	at := s.Find(c.Column)
	return naiveCompare(c, s.Column(at), row[at])
}

func naiveCompare(c *Compare, col *schema.Column, cell schema.Value) truth {
	switch {
	case c.Op == OpIsNull:
		return truthOf(cell.IsNull())
	case c.Op == OpIn:
		out := no
		for _, a := range c.Args {
			out = max(out, naiveCompare(&Compare{c.Column, OpEq, []any{a}}, col, cell))
		}
		return out
	case cell.IsNull() || c.Args[0] == nil:
		return unknown
	case c.Op == OpLike:
		return truthOf(naiveLike([]rune(cell.Str()), []rune(c.Args[0].(string))))
	}
	d, ordered := naiveOrder(col, cell, c.Args[0])
	if !ordered {
		return truthOf(c.Op == OpNe)
	}
	switch c.Op {
	case OpEq:
		return truthOf(d == 0)
	case OpNe:
		return truthOf(d != 0)
	case OpLt:
		return truthOf(d < 0)
	case OpLe:
		return truthOf(d <= 0)
	case OpGt:
		return truthOf(d > 0)
	}
	return truthOf(d >= 0)
}

// naiveOrder compares a cell with a literal; ordered is false for NaN.
func naiveOrder(col *schema.Column, cell schema.Value, lit any) (d int, ordered bool) {
	switch x := lit.(type) {
	case string:
		return bytes.Compare([]byte(cell.Str()), []byte(x)), true
	case []byte:
		return bytes.Compare([]byte(cell.Str()), x), true
	case bool:
		return b2i(cell.Bool()) - b2i(x), true
	}
	f, isFloat := lit.(float64)
	if isFloat && col.Type == schema.Float && !math.IsInf(float64(float32(f)), 0) {
		f = float64(float32(f))
	}
	if isFloat && f != f || cell.IsNaN() {
		return 0, false
	}
	if a, b := infinity(cell), litInfinity(lit); a != 0 || b != 0 {
		return a - b, true
	}
	return cellRat(col, cell).Cmp(litRat(f, lit)), true
}

func infinity(v schema.Value) int {
	switch {
	case !v.Kind().IsFloat():
		return 0
	case math.IsInf(v.Float(), 1):
		return 1
	case math.IsInf(v.Float(), -1):
		return -1
	}
	return 0
}

func litInfinity(lit any) int {
	if f, ok := lit.(float64); ok {
		return infinity(schema.Float64Value(f))
	}
	return 0
}

func cellRat(col *schema.Column, v schema.Value) *big.Rat {
	if v.Kind().IsFloat() {
		return new(big.Rat).SetFloat64(v.Float())
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(col.Scale)), nil)
	return new(big.Rat).SetFrac(bigFrom128(v.Int128()), scale)
}

func litRat(f float64, lit any) *big.Rat {
	switch x := lit.(type) {
	case float64:
		return new(big.Rat).SetFloat64(f)
	case uint64:
		return new(big.Rat).SetUint64(x)
	case int64:
		return new(big.Rat).SetInt64(x)
	}
	return new(big.Rat).SetInt64(int64(lit.(int)))
}

func naiveLike(s, p []rune) bool {
	switch {
	case len(p) == 0:
		return len(s) == 0
	case p[0] == '%':
		return naiveLike(s, p[1:]) || len(s) > 0 && naiveLike(s[1:], p)
	case p[0] == '\\':
		p = p[1:]
	case p[0] == '_' && len(s) > 0:
		return naiveLike(s[1:], p[1:])
	case p[0] == '_':
		return false
	}
	return len(s) > 0 && s[0] == p[0] && naiveLike(s[1:], p[1:])
}

func modelSchema(t testing.TB) *schema.Schema {
	t.Helper()
	null := func(c schema.Column) schema.Column { c.Nullable = true; return c }
	s, err := schema.New([]schema.Column{
		{Name: "ka", Type: schema.Int8}, {Name: "kb", Type: schema.String}, {Name: "kc", Type: schema.Int16},
		null(schema.Column{Name: "i8", Type: schema.Int8}),
		{Name: "i32", Type: schema.Int32},
		null(schema.Column{Name: "i64", Type: schema.Int64}),
		null(schema.Column{Name: "dec", Type: schema.Decimal32, Precision: 9, Scale: 2}),
		null(schema.Column{Name: "wide", Type: schema.Decimal128, Precision: 38}),
		null(schema.Column{Name: "ok", Type: schema.Bool}),
		null(schema.Column{Name: "f", Type: schema.Float}),
		null(schema.Column{Name: "d", Type: schema.Double}),
		{Name: "e", Type: schema.Double},
		null(schema.Column{Name: "s", Type: schema.String}),
		null(schema.Column{Name: "v", Type: schema.Varchar, Length: 20}),
	}, []string{"ka", "kb", "kc"}, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	modelInts   = []int64{math.MinInt64, math.MinInt32, -128, -127, -2, -1, 0, 1, 2, 3, 10, 126, 127, math.MaxInt32, math.MaxInt64}
	modelFloats = []float64{math.NaN(), math.Float64frombits(0xfff8000000000001), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, 1, -1,
		1.5, -2.5, 10, 10.5, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, math.MaxFloat64, -math.MaxFloat64, 5e-324, 0.25}
	modelTexts    = []string{"", "a", "ab", "abc", "abd", "b", "ba", "a\x00", "ä", "äb", "a%", "\x00", "\xff", "\xff\xff", "日本"}
	modelPatterns = []string{"%", "a%", "%b", "%a%", "_", "a_", "_b%", "%_b", "a%c", "ab", `a\%`, "_%_", "%ä%", "%a%b%", "", "a_%", "%b_", "__"}
)

func drawCell(t *rapid.T, c *schema.Column) schema.Value {
	if c.Nullable && rapid.IntRange(0, 3).Draw(t, "null") == 0 {
		return schema.Null
	}
	n := rapid.SampledFrom(modelInts).Draw(t, "int")
	f := rapid.SampledFrom(modelFloats).Draw(t, "float")
	switch c.Kind() {
	case schema.KindBool:
		return schema.BoolValue(n > 0)
	case schema.KindFloat32:
		return schema.Float32Value(float32(f))
	case schema.KindFloat64:
		return schema.Float64Value(f)
	case schema.KindBytes:
		return schema.StringValue(rapid.SampledFrom(modelTexts).Draw(t, "text"))
	case schema.KindInt128:
		return schema.Int128Value(schema.Int128{Lo: uint64(n), Hi: rapid.SampledFrom([]int64{-1, 0, 1, n >> 63}).Draw(t, "hi")})
	case schema.KindInt8:
		n = int64(int8(n))
	case schema.KindInt16:
		n = int64(int16(n))
	case schema.KindInt32:
		n = int64(int32(n))
	}
	return schema.IntValue(c.Kind(), n)
}

func drawLiteral(t *rapid.T, c *schema.Column) any {
	kind := rapid.IntRange(0, 9).Draw(t, "literal")
	switch {
	case kind == 0:
		return nil
	case c.Kind() == schema.KindBytes && kind == 1:
		return []byte(rapid.SampledFrom(modelTexts).Draw(t, "bytes"))
	case c.Kind() == schema.KindBytes:
		return rapid.SampledFrom(modelTexts).Draw(t, "text")
	case c.Kind() == schema.KindBool:
		return kind > 5
	case kind == 1:
		return uint64(math.MaxUint64)
	case kind < 5:
		return rapid.SampledFrom(modelFloats).Draw(t, "float")
	case kind < 7:
		return rapid.IntRange(-4, 4).Draw(t, "small")
	}
	return rapid.SampledFrom(modelInts).Draw(t, "int")
}

func drawExpr(t *rapid.T, s *schema.Schema, depth int) Expr {
	if depth > 0 {
		parts := func() (out []Expr) {
			for range rapid.IntRange(0, 3).Draw(t, "parts") {
				out = append(out, drawExpr(t, s, depth-1))
			}
			return out
		}
		switch rapid.IntRange(0, 5).Draw(t, "node") {
		case 0, 1:
			return And(parts()...)
		case 2, 3:
			return Or(parts()...)
		case 4:
			return Not(drawExpr(t, s, depth-1))
		}
	}
	// Few columns, so that tests of one column meet.
	c := s.Column(rapid.IntRange(0, s.Len()-1).Draw(t, "column"))
	op := Op(rapid.IntRange(int(OpEq), int(OpIsNull)).Draw(t, "op"))
	switch {
	case op == OpLike && c.Kind() == schema.KindBytes:
		return Like(c.Name, rapid.SampledFrom(modelPatterns).Draw(t, "pattern"))
	case op == OpIsNull:
		return IsNull(c.Name)
	case op == OpIn || op == OpLike:
		var list []any
		for range rapid.SampledFrom([]int{0, 1, 2, 4, 12}).Draw(t, "list") {
			list = append(list, drawLiteral(t, c))
		}
		return In(c.Name, list...)
	}
	return &Compare{c.Name, op, []any{drawLiteral(t, c)}}
}

// narrowed returns a schema of some of the columns, so that leaves meet on them.
func narrowed(t *rapid.T, s *schema.Schema) *schema.Schema {
	cols := s.Columns()[:s.NumKey()]
	for range rapid.IntRange(1, 3).Draw(t, "columns") {
		c := *s.Column(rapid.IntRange(s.NumKey(), s.Len()-1).Draw(t, "pick"))
		if !slices.ContainsFunc(cols, func(d schema.Column) bool { return d.Name == c.Name }) {
			cols = append(cols, c)
		}
	}
	out, err := schema.New(cols, s.KeyNames(), schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type table struct {
	rows [][]schema.Value
	cols []*vector.Vector
}

func drawTable(t *rapid.T, s *schema.Schema) table {
	n := rapid.SampledFrom([]int{0, 1, 2, 5, 63, 64, 65, 130}).Draw(t, "rows")
	tab := table{rows: make([][]schema.Value, n)}
	for i := range s.Len() {
		c := s.Column(i)
		var pool []schema.Value // few draws: long tables repeat them
		for range rapid.IntRange(1, 8).Draw(t, "distinct") {
			pool = append(pool, drawCell(t, c))
		}
		v := vector.New(c.Kind(), n)
		for r := range n {
			x := pool[(r*7+i)%len(pool)]
			tab.rows[r] = append(tab.rows[r], x)
			if err := v.Append(x); err != nil {
				t.Fatal(err)
			}
		}
		if c.Kind() == schema.KindBytes {
			v = recode(t, v)
		}
		tab.cols = append(tab.cols, v)
	}
	return tab
}

// recode may put a vector of bytes into dictionary form.
func recode(t *rapid.T, v *vector.Vector) *vector.Vector {
	width := rapid.SampledFrom([]int{0, 1, 2, 4}).Draw(t, "code bytes")
	if width == 0 {
		return v
	}
	dict, at := vector.New(schema.KindBytes, 0), map[string]uint32{}
	for i := range rapid.SampledFrom([]int{1, 100}).Draw(t, "unused words") {
		dict.AppendBytes(fmt.Appendf(nil, "unused %d", i))
	}
	codes := make([]uint32, v.Len())
	for i := range codes {
		if v.IsNull(i) {
			continue
		}
		w := string(v.BytesAt(i))
		if _, ok := at[w]; !ok {
			at[w] = uint32(dict.Len())
			dict.AppendBytes([]byte(w))
		}
		codes[i] = at[w]
	}
	switch width {
	case 1:
		return vector.FromCodes(narrow[uint8](codes), dict, v.Valid())
	case 2:
		return vector.FromCodes(narrow[uint16](codes), dict, v.Valid())
	}
	return vector.FromCodes(codes, dict, v.Valid())
}

func narrow[T uint8 | uint16](codes []uint32) []T {
	out := make([]T, len(codes))
	for i, c := range codes {
		out[i] = T(c)
	}
	return out
}

func TestItem82EvalAgreesWithThreeValuedLogic(t *testing.T) {
	rapid.Check(t, evalModel(modelSchema(t)))
}

func FuzzEval(f *testing.F) { f.Fuzz(rapid.MakeFuzz(evalModel(modelSchema(f)))) }

// evalModel compares Eval over random rows with the naive interpreter.
func evalModel(full *schema.Schema) func(t *rapid.T) {
	return func(t *rapid.T) {
		s := narrowed(t, full)
		e := drawExpr(t, s, 3)
		tab := drawTable(t, s)
		b, err := Bind(e, s)
		if err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		n := len(tab.rows)
		sel, asked := vector.NewBitmap(n), rapid.Uint64().Draw(t, "selected")
		for i := range n {
			sel.Put(i, asked>>(i%61)&1 != 0)
		}
		before := slices.Clone(sel)
		err = b.Eval(n, sel, func(col int) (*vector.Vector, error) {
			if !slices.Contains(b.Columns(), col) {
				t.Fatalf("%s reads column %d, Columns are %v", e, col, b.Columns())
			}
			return tab.cols[col], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range tab.rows {
			if want := before.Get(i) && naive(e, s, row) == yes; sel.Get(i) != want {
				t.Fatalf("%s for row %d %v (%v): %v, want %v", e, i, b.Columns(), row, sel.Get(i), want)
			}
		}
		if c := sel.Count(); c != sel.CountRange(0, n) {
			t.Fatalf("%s set bits past the end", e)
		}
	}
}

// zoneOf summarises cells as a writer does, and then forgets some of it.
func zoneOf(t *rapid.T, v *vector.Vector) vector.Zone {
	z := vector.Zone{Rows: int64(v.Len()), Nulls: int64(v.NullCount()), Exact: true}
	for i := range v.Len() {
		x := v.Value(i)
		switch {
		case x.IsNull():
			continue
		case x.IsNaN():
			z.HasNaN = true
			continue
		case x.Kind().IsFloat() && x.Float() == 0:
			x = (key{}).value(x.Kind())
		}
		if z.Min.IsNull() || x.Compare(z.Min) < 0 {
			z.Min = x
		}
		if z.Max.IsNull() || x.Compare(z.Max) > 0 {
			z.Max = x
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "zone") {
	case 0:
		z.Min, z.Exact = schema.Null, false
	case 1:
		z.Max, z.Exact = schema.Null, false
	case 2:
		if v.Kind() == schema.KindBytes && !z.Min.IsNull() {
			lo, hi := z.Min.Str(), prefixSpan(z.Max.Str()[:min(len(z.Max.Str()), 1)]).hi
			z.Min, z.Exact = schema.StringValue(lo[:min(len(lo), 1)]), false
			if z.Max = schema.Null; !hi.end {
				z.Max = schema.StringValue(hi.s)
			}
		}
	case 3:
		if v.Kind().IsFloat() { // damaged or foreign bounds
			z.Min, z.Max = schema.Float64Value(math.NaN()), schema.Float64Value(math.NaN())
		}
	}
	return z
}

func TestC01C02C06C12PruneNeverContradictsEval(t *testing.T) {
	full := modelSchema(t)
	rapid.Check(t, func(t *rapid.T) {
		s := narrowed(t, full)
		e := drawExpr(t, s, 2)
		tab := drawTable(t, s)
		b, err := Bind(e, s)
		if err != nil {
			t.Fatal(err)
		}
		known := rapid.Uint32().Draw(t, "known")
		zones := make([]vector.Zone, s.Len())
		for i := range zones {
			zones[i] = zoneOf(t, tab.cols[i])
		}
		verdict := b.Prune(func(col int) (vector.Zone, bool) { return zones[col], known>>col&1 != 0 })
		for _, row := range tab.rows {
			hit := naive(e, s, row) == yes
			if hit && verdict == None || !hit && verdict == All {
				t.Fatalf("%s: verdict %d, row %v qualifies: %v; zones %+v", e, verdict, row, hit, zones)
			}
		}
	})
}

func encodeKey(s *schema.Schema, row []schema.Value) []byte {
	var out []byte
	for i := range s.NumKey() {
		out = encoding.AppendKeyCell(out, row[i], i == s.NumKey()-1)
	}
	return out
}

func TestItem83KeyRangeHoldsEveryQualifyingRow(t *testing.T) {
	key := []schema.Column{{Name: "a", Type: schema.Int8}, {Name: "b", Type: schema.Int8}, {Name: "c", Type: schema.Int8}}
	ints, err := schema.New(key, []string{"a", "b", "c"}, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	key[1].Type, key[2].Type = schema.String, schema.String
	texts, err := schema.New(key, []string{"a", "b", "c"}, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom([]*schema.Schema{ints, texts}).Draw(t, "schema")
		e := drawExpr(t, s, 3)
		b, err := Bind(e, s)
		if err != nil {
			t.Fatal(err)
		}
		lower, upper, empty := b.KeyRange()
		equal := b.Equalities()
		for range 20 {
			row := []schema.Value{drawCell(t, s.Column(0)), drawCell(t, s.Column(1)), drawCell(t, s.Column(2))}
			if naive(e, s, row) != yes {
				continue
			}
			k := encodeKey(s, row)
			if empty || bytes.Compare(k, lower) < 0 || upper != nil && bytes.Compare(k, upper) >= 0 {
				t.Fatalf("%s: row %v outside [%x, %x) empty %v", e, row, lower, upper, empty)
			}
			for col, v := range equal {
				if row[col].Compare(v) != 0 {
					t.Fatalf("%s: column %d of row %v is not %v", e, col, row, v)
				}
			}
		}
	})
}
