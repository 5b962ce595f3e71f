package predicate

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func mustBind(t testing.TB, e Expr, s *schema.Schema) *Bound {
	t.Helper()
	b, err := Bind(e, s)
	if err != nil {
		t.Fatalf("%s: %v", e, err)
	}
	return b
}

// selectRows evaluates e over one column and returns the rows that qualify.
func selectRows(t testing.TB, e Expr, s *schema.Schema, v *vector.Vector) []int32 {
	t.Helper()
	b := mustBind(t, e, s)
	sel := vector.NewBitmap(v.Len())
	sel.SetRange(0, v.Len())
	if err := b.Eval(v.Len(), sel, func(int) (*vector.Vector, error) { return v, nil }); err != nil {
		t.Fatal(err)
	}
	return sel.AppendIndexes(nil)
}

func oneColumn(t testing.TB, c schema.Column) *schema.Schema {
	t.Helper()
	c.Name = "x"
	s, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, c}, []string{"k"}, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestString(t *testing.T) {
	day := time.Date(2024, 5, 1, 12, 0, 0, 500, time.FixedZone("", 3600))
	for want, e := range map[string]Expr{
		"a = 1":                                 Eq("a", 1),
		"a != 'it''s'":                          Ne("a", "it's"),
		`"two words" < 1.5`:                     Lt("two words", 1.5),
		`"or" <= true AND "q""q" > NULL`:        And(Le("or", true), Gt(`q"q`, nil)),
		"a IN (1, 'b', NULL)":                   In("a", 1, "b", nil),
		"a IN ()":                               In("a"),
		"a >= 1 AND a <= 2":                     Between("a", 1, 2),
		"a LIKE 'x%'":                           Like("a", "x%"),
		"a IS NULL OR b IS NOT NULL":            Or(IsNull("a"), IsNotNull("b")),
		"(a = 1 OR b = 2) AND NOT (c = 3)":      And(Or(Eq("a", 1), Eq("b", 2)), Not(Eq("c", 3))),
		"a = 1 AND b = 2 AND c = 3":             And(Eq("a", 1), And(Eq("b", 2), Eq("c", 3))),
		"true":                                  And(),
		"false":                                 Or(),
		"a = 'NaN' OR a = '+Inf' OR a = 1e+300": Or(Eq("a", math.NaN()), Eq("a", math.Inf(1)), Eq("a", 1e300)),
		"a = '2024-05-01T11:00:00.0000005Z'":    Eq("a", day),
		"a = '0x00ff'":                          Eq("a", []byte{0, 255}),
		"a = -7 OR a = 'x' OR a = 2.5":          Or(Eq("a", schema.IntValue(schema.KindInt8, -7)), Eq("a", schema.StringValue("x")), Eq("a", schema.Float64Value(2.5))),
	} {
		if got := e.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestC63UnknownColumnNamesTheKnown(t *testing.T) {
	s := oneColumn(t, schema.Column{Type: schema.Int8})
	for _, e := range []Expr{Eq("X", 1), Not(Like("nope", "a")), And(Eq("x", 1), IsNull("gone"))} {
		_, err := Bind(e, s)
		if !errors.Is(err, schema.ErrInvalidArgument) || !strings.Contains(fmt.Sprint(err), "k, x") {
			t.Errorf("%s: %v", e, err)
		}
	}
}

func TestBindRefuses(t *testing.T) {
	s := modelSchema(t)
	deep := Eq("i8", 1)
	for range maxDepth + 1 {
		deep = Not(deep)
	}
	for _, e := range []Expr{
		Eq("i8", "ten"), Eq("i8", "0x10"), Eq("i8", true), Eq("s", 1), Eq("ok", 1), Eq("d", time.Now()), Eq("i8", []byte("1")),
		Like("i8", "1%"), Like("s", `a\`), Eq("i8", schema.StringValue("1")), Eq("i8", struct{}{}), Eq("ok", "maybe"),
		&Compare{"i8", OpEq, nil}, &Compare{"i8", 99, []any{1}}, &Compare{"i8", OpIsNull, []any{1}}, &Compare{"s", OpLike, []any{1}},
		In("i8", 1, "x"), deep,
	} {
		if b, err := Bind(e, s); !errors.Is(err, schema.ErrInvalidArgument) || b != nil {
			t.Errorf("%v: %v", e, err)
		} else if strings.Contains(err.Error(), strings.Repeat("a", 41)) {
			t.Errorf("error repeats the literal: %v", err)
		}
	}
	if b, err := Bind(nil, s); b != nil || err != nil {
		t.Errorf("nil binds to %v, %v", b, err)
	}
	if _, err := Bind(Eq("i8", strings.Repeat("a", 1000)), s); len(err.Error()) > 200 {
		t.Errorf("error of %d bytes", len(err.Error()))
	}
}

// shape describes a bound expression in few words.
func shape(n *node) string {
	switch {
	case n == always:
		return "true"
	case n == never:
		return "false"
	case n.op == leafOp:
		return leafShape(n.leaf)
	}
	var parts []string
	for _, p := range n.parts {
		parts = append(parts, shape(p))
	}
	return "(" + strings.Join(parts, map[nodeOp]string{andOp: " and ", orOp: " or "}[n.op]) + ")"
}

func leafShape(l *leaf) string {
	not := ""
	if l.not {
		not = "not "
	}
	show := func(k key) string {
		if l.kind == schema.KindBytes {
			return fmt.Sprintf("%q", k.s)
		}
		return bigFrom128(k.n).String()
	}
	switch l.test {
	case isNull:
		return "null"
	case notNull:
		return "not null"
	case isLike:
		return not + "like"
	case inSet:
		var keys []string
		for _, k := range l.set {
			keys = append(keys, show(k))
		}
		return not + "{" + strings.Join(keys, " ") + "}"
	}
	if k, ok := l.span.point(l.kind); ok {
		return not + "=" + show(k)
	}
	lo, hi := show(l.span.lo.key), ")"
	if !l.span.hi.end {
		hi = " " + show(l.span.hi.key) + ")"
	}
	return not + "[" + lo + hi
}

func TestItem82Normalisation(t *testing.T) {
	s := modelSchema(t)
	x := func(op Op, v ...any) Expr { return &Compare{"i8", op, v} }
	str := func(op Op, v ...any) Expr { return &Compare{"s", op, v} }
	must := func(op Op, v ...any) Expr { return &Compare{"i32", op, v} } // not nullable
	for _, c := range []struct {
		want string
		e    Expr
	}{
		// Ranges.
		{"false", And(x(OpGe, 5), x(OpLt, 5))},
		{"=5", And(x(OpGe, 5), x(OpLt, 6))},
		{`="ab"`, And(str(OpGe, "ab"), str(OpLt, "ab\x00"))},
		{`="ab"`, And(str(OpGe, "ab"), str(OpLe, "ab"))},
		{"not null", x(OpGe, -128)},
		{"not null", str(OpGe, "")},
		{"=127", x(OpGe, 127)},
		{"=127", x(OpGt, 126)},
		{"false", x(OpLt, -128)},
		{"false", str(OpLt, "")},
		{"not null", x(OpLe, 127)},
		{"true", must(OpLe, int64(math.MaxInt32))},
		{"false", x(OpGt, 127)},
		{"[-128 6)", x(OpLe, 5)},
		{"[3)", x(OpGe, 3)},
		// Literals that are no cell.
		{"false", x(OpGt, 1000)}, {"not null", x(OpLt, 1000)}, {"not null", x(OpNe, 1000)}, {"false", x(OpEq, 1000)},
		{"not null", Not(x(OpGt, 1000))}, {"not null", x(OpGt, -1000)}, {"not null", x(OpLe, uint64(1)<<63)},
		{"[-128 11)", x(OpLt, 10.5)}, {"[-128 11)", x(OpLe, 10.5)}, {"[11)", x(OpGt, 10.5)}, {"[11)", x(OpGe, "10.5")},
		{"false", x(OpEq, 10.5)}, {"[-128 -10)", x(OpLt, -10.5)}, {"=10", x(OpEq, "1e1")}, {"not null", x(OpLt, "1e999999999")},
		{"[1)", x(OpGt, "1e-999999999")}, {"[0)", x(OpGt, "-1e-999")}, {"false", x(OpEq, nil)}, {"false", Not(x(OpEq, nil))},
		{"not null", x(OpLt, math.Inf(1))}, {"false", x(OpLt, math.NaN())}, {"not null", Not(x(OpLt, math.NaN()))},
		{"not null", x(OpNe, "NaN")}, {"=1050", Eq("dec", 10.5)}, {"=10", Eq("dec", float32(0.1))}, {"false", Eq("dec", "0.001")},
		{"[-2147483648 101)", Lt("dec", "1.005")}, {"=105", Eq("dec", schema.IntValue(schema.KindInt32, 105))},
		// Lists.
		{"false", x(OpIn)}, {"true", Not(x(OpIn))}, {"=1", x(OpIn, 1, 1, "1", 1000, nil)}, {"not null", &Compare{"ok", OpIn, []any{true, false}}},
		{"{1 5}", x(OpIn, 5, 1, 5)}, {"[1 4)", x(OpIn, 3, 1, 2)}, {"false", Not(x(OpIn, 5, nil))}, {"not {1 5}", Not(x(OpIn, 5, 1))},
		// Nulls.
		{"false", IsNull("i32")}, {"true", IsNotNull("i32")}, {"null", IsNull("i8")}, {"not null", IsNotNull("i8")},
		// Merging.
		{"false", And(IsNull("i8"), x(OpEq, 1))}, {"null", And(IsNull("i8"), IsNull("i8"))}, {"=1", And(IsNotNull("i8"), x(OpEq, 1))},
		{"false", And(x(OpEq, 1), x(OpEq, 2))}, {"=1", And(x(OpEq, 1), x(OpLt, 2))}, {"false", And(x(OpEq, 1), x(OpGt, 1))},
		{"=5", And(x(OpIn, 1, 5), x(OpGt, 1))}, {"[3 8)", And(x(OpGe, 3), x(OpLe, 9), x(OpLt, 8))},
		{"{5 9}", And(x(OpIn, 1, 5, 9), x(OpIn, 5, 9, 11))}, {"=9", And(x(OpIn, 1, 5, 9), Not(x(OpIn, 1, 5)))},
		{"[4 8)", And(x(OpGe, 3), x(OpLt, 8), x(OpNe, 3))}, {"([0 8) and not =3)", And(x(OpGe, 0), x(OpLt, 8), x(OpNe, 3), x(OpNe, 100))},
		{"false", And(x(OpGe, 3), x(OpLt, 5), x(OpNe, 3), x(OpNe, 4))}, {"{1 3}", Or(x(OpEq, 3), x(OpEq, 1))},
		{"{1 3 9}", Or(x(OpEq, 3), x(OpEq, 1), x(OpIn, 9, 1))}, {"true", Or(And(), x(OpEq, 3))}, {"=3", And(And(), x(OpEq, 3))},
		// Patterns.
		{`="a%b"`, Like("s", `a\%b`)}, {`["ab" "ac")`, Like("s", "ab%")}, {"not null", Like("s", "%%")}, {"like", Like("s", "_b%")},
		{`="ab"`, And(str(OpIn, "ab", "ba"), Like("s", "%b"))}, {"not like", Not(Like("s", "a_"))}, {`=""`, Like("s", "")},
	} {
		if got := shape(mustBind(t, c.e, s).root); got != c.want {
			t.Errorf("%s: %s, want %s", c.e, got, c.want)
		}
	}
}

func TestEvaluationOrder(t *testing.T) {
	s := modelSchema(t)
	e := And(Or(Eq("i8", 1), Eq("s", "x")), Ne("f", 1), IsNotNull("d"), Like("v", "%a%"), Gt("i64", 5), In("i32", 1, 7), Eq("wide", 1), Eq("ka", 1), IsNull("ok"))
	var order []string
	for _, p := range mustBind(t, e, s).root.parts {
		if p.op == leafOp {
			order = append(order, s.Column(p.leaf.col).Name)
		} else {
			order = append(order, "or")
		}
	}
	if want := "ok ka wide i32 i64 v f d or"; strings.Join(order, " ") != want {
		t.Errorf("order %v, want %s", order, want)
	}
}

func TestEvalAsksOnlyForNeededColumns(t *testing.T) {
	s := modelSchema(t)
	b := mustBind(t, And(Eq("i32", 1), Eq("i64", 1)), s)
	v := vector.FromFixed(schema.KindInt32, make([]int32, 100), nil)
	sel := vector.NewBitmap(100)
	sel.SetRange(0, 100)
	asked := []string{}
	err := b.Eval(100, sel, func(c int) (*vector.Vector, error) {
		asked = append(asked, s.Column(c).Name)
		return v, nil
	})
	if err != nil || !slices.Equal(asked, []string{"i32"}) || sel.Any() {
		t.Errorf("asked for %v, err %v", asked, err)
	}
	boom := errors.New("boom")
	sel.SetRange(0, 100)
	for _, e := range []Expr{Eq("i32", 1), And(Eq("i32", 1), Eq("e", 1)), Or(Eq("i32", 1), Eq("e", 1))} {
		if err := mustBind(t, e, s).Eval(100, sel, func(int) (*vector.Vector, error) { return nil, boom }); !errors.Is(err, boom) {
			t.Errorf("%s: %v", e, err)
		}
	}
}

// floatPages are the pages of the NaN cases.
func floatPages() [][]float64 {
	nan := math.NaN()
	first, last := []float64{nan}, []float64{}
	for i := 1; i <= 100; i++ {
		first, last = append(first, float64(i)), append(last, float64(i))
	}
	return [][]float64{{3, nan, 3}, {math.Inf(1), math.Inf(-1), nan}, {nan, nan}, first, append(last, nan), {math.Copysign(0, -1)}, {0, 1}}
}

func zoneOfFloats(vals []float64) vector.Zone {
	z := vector.Zone{Rows: int64(len(vals)), Exact: true}
	for _, f := range vals {
		v := schema.Float64Value(f + 0)
		if f != f {
			z.HasNaN = true
			continue
		}
		if z.Min.IsNull() || v.Compare(z.Min) < 0 {
			z.Min = v
		}
		if z.Max.IsNull() || v.Compare(z.Max) > 0 {
			z.Max = v
		}
	}
	return z
}

func TestC01NaNAnswersEqualWithPruning(t *testing.T) {
	s := oneColumn(t, schema.Column{Type: schema.Double})
	for _, c := range []struct {
		e    Expr
		want int // rows over all pages
	}{
		{Ne("x", 3.0), 1 + 3 + 2 + 100 + 100 + 1 + 2}, {Gt("x", 10), 1 + 90 + 90}, {Not(Lt("x", 10)), 1 + 2 + 2 + 92 + 92},
		{Eq("x", math.NaN()), 0}, {In("x", math.NaN()), 0}, {Not(In("x", math.NaN())), 3 + 3 + 2 + 101 + 101 + 1 + 2},
		{Ge("x", math.Inf(1)), 1}, {Le("x", math.Inf(-1)), 1}, {Lt("x", 50), 2 + 1 + 49 + 49 + 1 + 2}, {Eq("x", 0.0), 2},
		{Eq("x", math.Copysign(0, -1)), 2}, {Lt("x", 0.0), 1}, {In("x", 0, 3), 2 + 1 + 1 + 1 + 1},
	} {
		all, kept := 0, 0
		b := mustBind(t, c.e, s)
		for _, page := range floatPages() {
			n := len(selectRows(t, c.e, s, vector.FromFixed(schema.KindFloat64, page, nil)))
			all += n
			switch b.Prune(func(int) (vector.Zone, bool) { return zoneOfFloats(page), true }) {
			case Some:
				kept += n
			case All:
				kept += len(page)
			}
		}
		if all != kept || all != c.want {
			t.Errorf("%s: %d rows, %d with pruning, want %d", c.e, all, kept, c.want)
		}
	}
}

func TestC02NaNBoundsAreUnknown(t *testing.T) {
	s := oneColumn(t, schema.Column{Type: schema.Double})
	b := mustBind(t, Lt("x", 50), s)
	nan := schema.Float64Value(math.NaN())
	for _, z := range []vector.Zone{
		{Rows: 101, Min: nan, Max: schema.Float64Value(100), HasNaN: true}, {Rows: 101, Min: nan, Max: nan}, {Rows: 101, HasNaN: true},
		{Rows: 101, Min: schema.IntValue(schema.KindInt64, 60), Max: schema.IntValue(schema.KindInt64, 70)}, // another kind
	} {
		if v := b.Prune(func(int) (vector.Zone, bool) { return z, true }); v != Some {
			t.Errorf("%+v: %d", z, v)
		}
	}
}

func TestC06C07PruneNulls(t *testing.T) {
	s := oneColumn(t, schema.Column{Type: schema.Int64, Nullable: true})
	one := schema.IntValue(schema.KindInt64, 1)
	allNull := vector.Zone{Rows: 100, Nulls: 100}
	noNull := vector.Zone{Rows: 100, Min: one, Max: one, Exact: true}
	mixed := vector.Zone{Rows: 100, Nulls: 50, Min: one, Max: one, Exact: true}
	for _, c := range []struct {
		e                      Expr
		allNull, noNull, mixed Verdict
	}{
		{IsNull("x"), All, None, Some}, {IsNotNull("x"), None, All, Some}, {Eq("x", 1), None, All, Some}, {Not(Eq("x", 1)), None, None, None},
		{Ne("x", 1), None, None, None}, {Gt("x", 1), None, None, None}, {In("x", 1, 9), None, All, Some}, {Not(In("x", 1, 9)), None, None, None},
		{Or(IsNull("x"), Eq("x", 1)), All, All, Some}, {Or(IsNull("x"), Gt("x", 5)), All, None, Some}, {And(), All, All, All}, {Or(), None, None, None},
	} {
		b := mustBind(t, c.e, s)
		for i, z := range []vector.Zone{allNull, noNull, mixed} {
			want := []Verdict{c.allNull, c.noNull, c.mixed}[i]
			if got := b.Prune(func(int) (vector.Zone, bool) { return z, true }); got != want {
				t.Errorf("%s, zone %d: %d, want %d", c.e, i, got, want)
			}
		}
		if v := b.Prune(func(int) (vector.Zone, bool) { return vector.Zone{}, false }); len(b.Columns()) > 0 && v != Some {
			t.Errorf("%s without a zone: %d", c.e, v)
		}
	}
}

func TestC12ShortenedBounds(t *testing.T) {
	s := oneColumn(t, schema.Column{Type: schema.String})
	text := strings.Repeat("p", 64)
	ff := strings.Repeat("\xff", 8)
	for _, length := range []int{1, 8, 16} {
		for _, cell := range []string{text + "a", text + "z", ff + "\xaa"} {
			z := vector.Zone{Rows: 1, Min: schema.StringValue(cell[:min(length, len(cell))])}
			if hi := prefixSpan(z.Min.Str()).hi; !hi.end {
				z.Max = schema.StringValue(hi.s)
			}
			for _, e := range []Expr{Eq("x", cell), Ge("x", cell), Le("x", cell), Gt("x", cell[:len(cell)-1]), In("x", "", cell), Like("x", "%"+cell[len(cell)-1:])} {
				if v := mustBind(t, e, s).Prune(func(int) (vector.Zone, bool) { return z, true }); v == None {
					t.Errorf("%s pruned by %d bytes", e, length)
				}
			}
		}
	}
	z := vector.Zone{Rows: 9, Min: schema.StringValue("pp"), Max: schema.StringValue("q")}
	for e, want := range map[Expr]Verdict{Eq("x", "q\x00"): None, Eq("x", "p"): None, Eq("x", "pq"): Some, Like("x", "p%"): Some, Le("x", "q"): All,
		Like("x", "z%a%"): None, Not(Like("x", "z%a%")): All} {
		if v := mustBind(t, e, s).Prune(func(int) (vector.Zone, bool) { return z, true }); v != want {
			t.Errorf("%s: %d, want %d", e, v, want)
		}
	}
}

func TestC24TimeLiterals(t *testing.T) {
	zone := time.FixedZone("", 5*3600+1800)
	for _, at := range []time.Time{{}, time.Date(1677, 9, 21, 0, 0, 0, 0, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Unix(0, 0), time.Date(2262, 4, 12, 0, 0, 0, 1, zone), time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)} {
		micros := oneColumn(t, schema.Column{Type: schema.UnixtimeMicros})
		us := vector.FromFixed(schema.KindInt64, []int64{at.UnixMicro() - 1, at.UnixMicro(), at.UnixMicro() + 1}, nil)
		days := oneColumn(t, schema.Column{Type: schema.Date})
		day, err := days.Column(1).Convert(at)
		if err != nil {
			t.Fatal(err)
		}
		d := int32(day.Int())
		ds := vector.FromFixed(schema.KindInt32, []int32{d - 1, d, d + 1}, nil)
		for _, c := range []struct {
			s *schema.Schema
			v *vector.Vector
		}{{micros, us}, {days, ds}} {
			for e, want := range map[Expr][]int32{Eq("x", at): {1}, Lt("x", at): {0}, Ge("x", at): {1, 2}, Not(Le("x", at)): {2}} {
				if got := selectRows(t, e, c.s, c.v); !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", e, got, want)
				}
			}
		}
	}
	far := time.Date(400000, 1, 1, 0, 0, 0, 0, time.UTC)
	s := oneColumn(t, schema.Column{Type: schema.UnixtimeMicros, Nullable: true})
	if got := shape(mustBind(t, Lt("x", far), s).root); got != "not null" {
		t.Errorf("x < year 400000 is %s", got)
	}
	if got := selectRows(t, Eq("x", "1970-01-01T00:00:00.000001Z"), s, vector.FromFixed(schema.KindInt64, []int64{0, 1}, nil)); !slices.Equal(got, []int32{1}) {
		t.Errorf("time as text: %v", got)
	}
}

func TestFloatColumnRoundsLiterals(t *testing.T) {
	s := oneColumn(t, schema.Column{Type: schema.Float})
	v := vector.FromFixed(schema.KindFloat32, []float32{0.1, math.MaxFloat32, float32(math.Inf(1)), 16777216, 16777218}, nil)
	for e, want := range map[Expr][]int32{
		Eq("x", 0.1): {0}, Eq("x", "0.1"): {0}, Lt("x", 1e300): {0, 1, 3, 4}, Gt("x", 1e300): {2}, Eq("x", 1e300): nil, Gt("x", "1e999"): {2},
		Lt("x", 16777217): {0, 3}, Ge("x", 16777217): {1, 2, 4}, Eq("x", 16777217): nil, Eq("x", int64(16777216)): {3},
	} {
		if got := selectRows(t, e, s, v); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", e, got, want)
		}
	}
}

type named int16

func TestNamedAndPointerLiterals(t *testing.T) {
	s := oneColumn(t, schema.Column{Type: schema.Int16})
	v := vector.FromFixed(schema.KindInt16, []int16{4, 5}, nil)
	five, none := 5, (*int)(nil)
	for _, e := range []Expr{Eq("x", named(5)), Eq("x", &five), Eq("x", uint8(5)), Eq("x", "5"), Eq("x", float32(5)), In("x", five, none)} {
		if got := selectRows(t, e, s, v); !slices.Equal(got, []int32{1}) {
			t.Errorf("%s: %v", e, got)
		}
	}
}

func TestLargeLists(t *testing.T) {
	for _, typ := range []schema.Column{{Type: schema.Int8}, {Type: schema.Int32}, {Type: schema.Int64}, {Type: schema.Float}, {Type: schema.Double},
		{Type: schema.Decimal128, Precision: 38}, {Type: schema.String}} {
		s := oneColumn(t, typ)
		col, v := s.Column(1), vector.New(typ.Type.Kind(), 0)
		var list []any
		var want []int32
		for i := range 200 {
			n := i - 100
			if typ.Type == schema.Int64 || typ.Type == schema.Int32 {
				n *= 1_000_003
			}
			x := schema.IntValue(v.Kind(), int64(n))
			switch {
			case v.Kind().IsFloat():
				var err error
				if x, err = col.Convert(float64(n)); err != nil {
					t.Fatal(err)
				}
			case v.Kind() == schema.KindBytes:
				x = schema.StringValue(fmt.Sprint(n))
			case v.Kind() == schema.KindInt128:
				x = schema.Int128Value(schema.Int128From(int64(n)))
			}
			v.Append(x)
			if i%3 == 0 {
				list, want = append(list, x), append(want, int32(i))
			}
		}
		if got := selectRows(t, In("x", list...), s, v); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", typ.Type, got, want)
		}
		if got := selectRows(t, Not(In("x", list...)), s, v); len(got) != 200-len(want) {
			t.Errorf("%s: %d rows not in the list", typ.Type, len(got))
		}
	}
}

func TestItem80DictionaryAgreesWithPlain(t *testing.T) {
	s := oneColumn(t, schema.Column{Type: schema.String, Nullable: true})
	for _, rows := range []int{0, 100, 5000, 100_000} {
		for _, words := range []int{50, 1000, 50_000} {
			for _, nulls := range []int{0, 40} {
				plain, dict := vector.New(schema.KindBytes, rows), vector.New(schema.KindBytes, 0)
				codes := make([]uint16, rows)
				valid := vector.NewBitmap(rows)
				for i := range words {
					dict.AppendBytes(fmt.Appendf(nil, "%05d", i))
				}
				for i := range rows {
					if w := i % words; w >= nulls {
						plain.AppendBytes(dict.BytesAt(w))
						codes[i] = uint16(w)
						valid.Set(i)
					} else {
						plain.AppendNull()
					}
				}
				coded := vector.FromCodes(codes, dict, valid)
				for _, r := range [][2]int{{30, 50}, {0, 5}, {words, words + 5}, {40, 41}} {
					e := And(Ge("x", fmt.Sprintf("%05d", r[0])), Lt("x", fmt.Sprintf("%05d", r[1])))
					a, b := selectRows(t, e, s, plain), selectRows(t, e, s, coded)
					want := 0
					for i := range rows {
						if w := i % words; w >= nulls && w >= r[0] && w < r[1] {
							want++
						}
					}
					if len(a) != want || !slices.Equal(a, b) {
						t.Errorf("%d rows of %d words, %d null, %s: plain %d, coded %d, want %d", rows, words, nulls, e, len(a), len(b), want)
					}
				}
			}
		}
	}
}

func TestItem83KeyBounds(t *testing.T) {
	cols := []schema.Column{{Name: "a", Type: schema.Int8}, {Name: "b", Type: schema.Int8}, {Name: "c", Type: schema.Int8}}
	s, err := schema.New(cols, []string{"a", "b", "c"}, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	key := func(vals ...int64) []byte {
		var out []byte
		for i := range 3 {
			x := int64(math.MinInt8)
			if i < len(vals) {
				x = vals[i]
			}
			out = encoding.AppendKeyCell(out, schema.IntValue(schema.KindInt8, x), i == 2)
		}
		return out
	}
	padded := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		return append(slices.Clone(b), make([]byte, 3-len(b))...)
	}
	for _, c := range []struct {
		e            Expr
		lower, upper []byte
	}{
		{Eq("a", 64), key(64), key(65)},
		{Le("a", 126), nil, key(127)},
		{And(Ge("a", 3), Ge("b", 4), Ge("c", 5)), key(3, 4, 5), nil},
		{And(Le("a", 3), Le("b", 4), Le("c", 5)), nil, key(3, 4, 6)},
		{And(Eq("a", 3), Ge("b", 4), Ge("c", 5)), key(3, 4, 5), key(4)},
		{And(Eq("a", 3), Between("b", 4, 14), Between("c", 5, 15)), key(3, 4, 5), key(3, 14, 16)},
		{And(Eq("a", 127), Between("b", 3, 127)), key(127, 3), nil},
		{And(Eq("a", 1), Between("b", 3, 127)), key(1, 3), key(2)},
		{And(In("a", 0, 10), In("b", 50, 100)), key(0, 50), key(10, 101)},
		{Or(And(Eq("a", 3), Eq("b", 4)), Eq("a", 7), Lt("a", -1000)), key(3, 4), key(8)},
		{And(Gt("a", 3), Or(Eq("a", 5), And(Eq("a", 7), Lt("b", 3)))), key(5), key(7, 3)},
		{And(), nil, nil}, {Gt("b", 3), nil, nil}, {Not(Eq("a", 3)), nil, nil},
	} {
		lower, upper, empty := mustBind(t, c.e, s).KeyRange()
		if empty || !bytes.Equal(padded(lower), c.lower) || !bytes.Equal(padded(upper), c.upper) {
			t.Errorf("%s: [%x, %x) empty %v, want [%x, %x)", c.e, lower, upper, empty, c.lower, c.upper)
		}
	}
	for _, e := range []Expr{Or(), And(Gt("a", 3), Lt("a", 3)), And(Lt("a", 3), Or(Eq("a", 5), Eq("a", 7))), Eq("a", 1000)} {
		if _, _, empty := mustBind(t, e, s).KeyRange(); !empty {
			t.Errorf("%s: not empty", e)
		}
	}
}

func TestItem79CompositeKeyRange(t *testing.T) {
	s, err := schema.New([]schema.Column{{Name: "y", Type: schema.Int16}, {Name: "m", Type: schema.Int8}, {Name: "d", Type: schema.Int8},
		{Name: "host", Type: schema.String}}, []string{"y", "m", "d", "host"}, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	date := func(more ...Expr) Expr { return And(append(more, Eq("y", 2001), Eq("m", 9))...) }
	for _, c := range []struct {
		e       Expr
		want    int
		scanned int // rows within the key range
	}{
		{date(Eq("d", 7), Eq("host", "foo")), 1, 1}, {date(Eq("d", 7), Le("host", "foo")), 2, 2}, {date(Eq("d", 7)), 3, 3}, {date(), 84, 84},
		{Eq("y", 2001), 1008, 1008}, {date(Ge("d", 1), Lt("d", 16)), 45, 45}, {date(Ge("d", 1)), 84, 84},
		{And(Eq("y", 2001), Ge("m", 9), Lt("m", 12)), 252, 252}, {And(Eq("y", 2001), Lt("m", 9)), 672, 672},
		{And(Ge("y", 2001), Lt("y", 2004)), 3024, 3024}, {Ge("y", 2001), 10080, 10080}, {Lt("y", 2004), 4032, 4032},
	} {
		lower, upper, _ := mustBind(t, c.e, s).KeyRange()
		got, scanned := 0, 0
		for i := range 11 * 12 * 28 * 3 {
			row := []schema.Value{schema.IntValue(schema.KindInt16, int64(2000+i/(12*28*3))), schema.IntValue(schema.KindInt8, int64(1+i/(28*3)%12)),
				schema.IntValue(schema.KindInt8, int64(1+i/3%28)), schema.StringValue([]string{"foo", "foobar", "baz"}[i%3])}
			k := encoding.AppendKeyValues(nil, row, 4)
			in := bytes.Compare(k, lower) >= 0 && (upper == nil || bytes.Compare(k, upper) < 0)
			scanned += b2i(in)
			if naive(c.e, s, row) == yes {
				got += b2i(in)
			}
		}
		if got != c.want || scanned != c.scanned {
			t.Errorf("%s: %d of %d rows scanned, want %d of %d", c.e, got, scanned, c.want, c.scanned)
		}
	}
}

func TestEqualitiesOfAPointRead(t *testing.T) {
	s := modelSchema(t)
	eq := mustBind(t, And(Eq("ka", 3), Eq("kb", "x"), In("kc", 4), Gt("i64", 7), Or(Eq("s", "a"), Eq("v", "b"))), s).Equalities()
	if len(eq) != 3 || eq[0].Int() != 3 || eq[1].Str() != "x" || eq[2].Int() != 4 {
		t.Errorf("equalities %v", eq)
	}
}

func TestEvalIsConcurrent(t *testing.T) {
	s := modelSchema(t)
	e := And(Or(Lt("i32", 3), And(Gt("e", 1), Not(In("e", 2.0, 5.0)))), Like("kb", "%a%"))
	b := mustBind(t, e, s)
	const n = 1000
	ints, floats, texts := make([]int32, n), make([]float64, n), make([]uint8, n)
	for i := range n {
		ints[i], floats[i], texts[i] = int32(i%7), float64(i%5), uint8(i%3)
	}
	dict := vector.FromBytes([]int32{0, 1, 2, 3}, []byte("abc"), nil)
	cols := map[string]*vector.Vector{"i32": vector.FromFixed(schema.KindInt32, ints, nil), "e": vector.FromFixed(schema.KindFloat64, floats, nil),
		"kb": vector.FromCodes(texts, dict, nil)}
	column := func(c int) (*vector.Vector, error) { return cols[s.Column(c).Name], nil }
	want := 0
	for i := range n {
		if f := floats[i]; i%3 == 0 && (ints[i] < 3 || f > 1 && f != 2) {
			want++
		}
	}
	run := func(sel vector.Bitmap) int {
		sel.SetRange(0, n)
		if err := b.Eval(n, sel, column); err != nil {
			t.Error(err)
		}
		return sel.Count()
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			sel := vector.NewBitmap(n)
			for range 50 {
				if got := run(sel); got != want {
					t.Errorf("%d rows, want %d", got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzLike(f *testing.F) {
	for i, p := range modelPatterns {
		f.Add(p, modelTexts[i%len(modelTexts)])
	}
	f.Add("%ab_%b%", "aabcaabxb")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 12 || len(text) > 30 {
			return
		}
		pattern, text = strings.ToValidUTF8(pattern, "?"), strings.ToValidUTF8(text, "?")
		p, err := compileLike(pattern)
		if err != nil {
			return
		}
		got := p.match([]byte(text))
		if want := naiveLike([]rune(text), []rune(pattern)); got != want {
			t.Errorf("%q LIKE %q: %v", text, pattern, got)
		}
		if prefix, all := p.prefix(); got && !strings.HasPrefix(text, prefix) || all && got != strings.HasPrefix(text, prefix) {
			t.Errorf("%q LIKE %q: prefix %q, all %v", text, pattern, prefix, all)
		}
	})
}

func FuzzTextLiteral(f *testing.F) {
	for _, s := range []string{"1", "-0", "1e5", "1e-400", "1e400", ".5", "+7.", "NaN", "inf", "--1", "1e", "e1", "+-", strings.Repeat("9", 300)} {
		f.Add(s)
	}
	s := modelSchema(f)
	f.Fuzz(func(t *testing.T, text string) {
		for i := range s.Len() {
			lit, err := literalOf(s.Column(i), text)
			if err == nil && !lit.null && !lit.nan && lit.below.cmp(lit.above) > 0 {
				t.Errorf("%q: cuts out of order in %s", text, s.Column(i).Name)
			}
		}
	})
}
