package sqltext

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"pgregory.net/rapid"
)

func TestParseWhere(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		e, err := ParseWhere(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			return
		}
		if got := e.String(); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	f("a = 1", "a = 1")
	f("a=1", "a = 1")
	f("5<a", "a > 5")
	f("5 >= a", "a <= 5")
	f("5 <> a", "a != 5")
	f("a == -5", "a = -5")
	f("a = - 5", "a = -5")
	f("a = +5", "a = 5")
	f("a<-9223372036854775808", "a < -9223372036854775808")
	f("a > 9223372036854775808", "a > '9223372036854775808'")
	f("a > 12.30", "a > '12.30'")
	f("a > -.5e3", "a > '-.5e3'")
	f("a = 0x00fF", "a = '0x00fF'")
	f("a = 'it''s'", "a = 'it''s'")
	f(`"Cost ""Total"" $" = ''`, `"Cost ""Total"" $" = ''`)
	f("a = true and b = FALSE", "a = true AND b = false")
	f("a = null", "a = NULL")
	f("a is null or b IS NOT NULL", "a IS NULL OR b IS NOT NULL")
	f("a in (1, 'x', null)", "a IN (1, 'x', NULL)")
	f("a not in (1)", "NOT (a IN (1))")
	f("a between 1 and 2 and b = 3", "a >= 1 AND a <= 2 AND b = 3")
	f("a not between 1 and 2 or b = 3", "NOT (a >= 1 AND a <= 2) OR b = 3")
	f("a like '%x_'", "a LIKE '%x_'")
	f("a NOT LIKE 'x'", "NOT (a LIKE 'x')")
	f("a = 1 or b = 2 and c = 3", "a = 1 OR (b = 2 AND c = 3)")
	f("(a = 1 or b = 2) and c = 3", "(a = 1 OR b = 2) AND c = 3")
	f("not a = 1 and b = 2", "NOT (a = 1) AND b = 2")
	f("not not (a = 1)", "NOT (NOT (a = 1))")
	f("true", "true")
	f("false or a=1", "false OR a = 1")
	f("true = a", "a = true")
	f(`"and" = 1`, `"and" = 1`)
	f("date = '2001-01-01'", "date = '2001-01-01'")
}

func TestErrorsNamePositionAndExpectation(t *testing.T) {
	f := func(parse func(string) error, in, want string) {
		t.Helper()
		err := parse(in)
		var se *SyntaxError
		if !errors.As(err, &se) || !errors.Is(err, schema.ErrInvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
	where := func(in string) error { _, err := ParseWhere(in); return err }
	f(where, "", "at position 1: expected a column name, a literal, not, or (, found the end")
	f(where, "a", "at position 2: expected a comparison, is, in, between or like, found the end")
	f(where, "a = ", "at position 5: expected a literal, found the end")
	f(where, "a = b", "at position 5: expected a literal, found the name b: text is written in single quotes")
	f(where, `a = "b c"`, `found the name "b c"`)
	f(where, "a = 1 b", `at position 7: expected and, or, or the end, found "b"`)
	f(where, "(a = 1", "at position 7: expected ), found the end")
	f(where, "a = 'x", "at position 5: quote ' is not closed")
	f(where, `"a = 1`, `at position 1: quote " is not closed`)
	f(where, "a in ()", `expected a literal, found ")"`)
	f(where, "a in 1", `expected (, found "1"`)
	f(where, "a not = 1", `expected in, between or like, found "="`)
	f(where, "a like 5", "expected a pattern in single quotes")
	f(where, "a is 5", `expected null, found "5"`)
	f(where, "a between 1 or 2", `expected and, found "or"`)
	f(where, "1 < 2", `expected a column name: a literal is compared with a column`)
	f(where, "1 < a < 2", `expected and, or, or the end, found "<"`)
	f(where, "a = 5x", `malformed number "5x"`)
	f(where, "a = 1.2.3", `malformed number "1.2."`)
	f(where, "a ~ 5", `expected a comparison, is, in, between or like, found "~"`)
	f(where, "a = ä", "expected a literal")
	f(where, strings.Repeat("(", 100_000), "nested more than 200 deep")
	f(where, strings.Repeat("not ", 100_000), "nested more than 200 deep")

	agg := func(in string) error { _, err := ParseAggregates(in); return err }
	f(agg, "", "expected count, sum, min, max or avg, found the end")
	f(agg, "median(a)", `expected count, sum, min, max or avg, found "median"`)
	f(agg, "sum(*)", `expected a column name, found "*"`)
	f(agg, "count(*) sum(a)", `expected ,, found "sum"`)
	f(agg, "count(a", "expected ), found the end")

	set := func(in string) error { _, err := ParseSet(in); return err }
	f(set, "a=1,", "expected a column name, found the end")
	f(set, "a=1, a=2", "column a is set twice")
	f(set, "a", "expected =, found the end")

	order := func(in string) error { _, err := ParseOrderBy(in); return err }
	f(order, "a down", `expected ,, found "down"`)
	f(order, "total(a)", "expected count")

	names := func(in string) error { _, err := ParseNames(in); return err }
	f(names, "", "at position 1: expected a name")
	f(names, "a,", "at position 3: expected a name")
	f(names, "a,,b", "at position 3: expected a name")
	f(names, "a, a", "stands in the list twice")
	f(names, `a"b`, "at position 2: a name that holds a quote")
	f(names, `"a" b`, "at position 5: expected a comma")
	f(names, `"a`, "is not closed")
}

func TestParseLists(t *testing.T) {
	aggs, err := ParseAggregates(`COUNT( * ), sum(delay), min("Cost Total $"), count("in")`)
	if want := "[count(*) sum(delay) min(\"Cost Total $\") count(\"in\")]"; err != nil || fmt.Sprint(aggs) != want {
		t.Errorf("%v, %v", aggs, err)
	}
	if aggs[2].Column != "Cost Total $" {
		t.Errorf("%q", aggs[2].Column)
	}
	set, err := ParseSet(`a=1, "b c" = null, d = 'x', e=true, f=-1.50`)
	want := []Assignment{{"a", int64(1)}, {"b c", nil}, {"d", "x"}, {"e", true}, {"f", "-1.50"}}
	if err != nil || !reflect.DeepEqual(set, want) {
		t.Errorf("%v, %v", set, err)
	}
	order, err := ParseOrderBy(`a desc, COUNT(*), "sum x" ASC, count desc, sum ("b c") desc`)
	wantOrder := []Order{{"a", true}, {"count(*)", false}, {"sum x", false}, {"count", true}, {`sum("b c")`, true}}
	if err != nil || !slices.Equal(order, wantOrder) {
		t.Errorf("%v, %v", order, err)
	}
	names, err := ParseNames(` host ,Cost Total $,"a,""b""" , "c"`)
	if err != nil || !slices.Equal(names, []string{"host", "Cost Total $", `a,"b"`, "c"}) {
		t.Errorf("%q, %v", names, err)
	}
}

func TestParseSize(t *testing.T) {
	f := func(in string, want int64) {
		t.Helper()
		if got, err := ParseSize(in); got != want && err == nil || (want < 0) != (err != nil) {
			t.Errorf("%q: %d, %v, want %d", in, got, err, want)
		}
	}
	f("0", 0)
	f("1048576", 1<<20)
	f("64MiB", 64<<20)
	f("64m", 64<<20)
	f("64MB", 64e6)
	f(" 1.5 GiB ", 3<<29)
	f("2g", 2<<30)
	f("1TB", 1e12)
	f("9223372036854775807", math.MaxInt64)
	f("9223372036854775808", -1)
	f("8388608TiB", -1)
	f("", -1)
	f("MiB", -1)
	f("-1", -1)
	f("1.2.3m", -1)
	f("5 parsecs", -1)
}

func TestParseDuration(t *testing.T) {
	f := func(in string, want time.Duration) {
		t.Helper()
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", in, got, err, want)
		}
	}
	f("15m", 15*time.Minute)
	f("0", 0)
	f("7d", 7*24*time.Hour)
	f("1d12h", 36*time.Hour)
	f("-1.5d", -36*time.Hour)
	f("-5m", -5*time.Minute)
	f("106751d", 106751*24*time.Hour)
	for _, in := range []string{"", "5", "d", "1d-5m", "--5m", "1e3d", "NaNd", "Infd", "106752d", "106751d24h", "1d2d", "5 m"} {
		if d, err := ParseDuration(in); err == nil {
			t.Errorf("%q: %v", in, d)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for in, want := range map[string]string{"0": "0", "15m0s": "15m", "1h0m0s": "1h", "90m": "1h30m", "24h": "1d", "36h": "1d12h", "10s": "10s",
		"1h10s": "1h0m10s", "7d1m": "7d1m", "1us": "1µs", "-5m": "-5m", "-1d": "-1d", "100m": "1h40m", "20h10m": "20h10m"} {
		d, err := ParseDuration(in)
		if got := FormatDuration(d); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(-math.MaxInt64, math.MaxInt64).Draw(t, "d"))
		if got, err := ParseDuration(FormatDuration(d)); err != nil || got != d {
			t.Fatalf("%d as %q is %d, %v", d, FormatDuration(d), got, err)
		}
	})
}

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := func(in string, want Time) {
		t.Helper()
		if got, err := ParseTime(in, now); err != nil || got.Commit != want.Commit || !got.At.Equal(want.At) {
			t.Errorf("%q: %v, %v, want %v", in, got, err, want)
		}
	}
	f("7123456789012345678", Time{Commit: 7123456789012345678})
	f("-5m", Time{At: now.Add(-5 * time.Minute)})
	f("-7d", Time{At: now.AddDate(0, 0, -7)})
	f("2001-02-03", Time{At: time.Date(2001, 2, 3, 0, 0, 0, 0, time.UTC)})
	f("2001-02-03 04:05:06.5", Time{At: time.Date(2001, 2, 3, 4, 5, 6, 5e8, time.UTC)})
	f("2001-02-03T04:05:06+01:00", Time{At: time.Date(2001, 2, 3, 3, 5, 6, 0, time.UTC)})
	for _, in := range []string{"", "yesterday", "5m", "0", "-5", "2001-02-30"} {
		if at, err := ParseTime(in, now); err == nil {
			t.Errorf("%q: %v", in, at)
		}
	}
}

// drawExpr draws an expression in the form that the parser makes.
func drawExpr(t *rapid.T, depth int, parent string) predicate.Expr {
	literal := func() any {
		return rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.Int64(), func(n int64) any { return n }),
			rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Map(rapid.String(), func(s string) any { return s })).Draw(t, "literal")
	}
	column := rapid.OneOf(rapid.StringN(1, 8, -1), rapid.SampledFrom([]string{"a", "NOT", "true", "x y"})).Draw(t, "column")
	choices := []string{"compare", "in", "null", "like"}
	if depth > 0 {
		choices = append(choices, "and", "or", "not")
	}
	choices = slices.DeleteFunc(choices, func(s string) bool { return s == parent && s != "not" })
	switch choice := rapid.SampledFrom(choices).Draw(t, "choice"); choice {
	case "in":
		args := []any{literal()}
		for range rapid.IntRange(0, 2).Draw(t, "more") {
			args = append(args, literal())
		}
		return predicate.In(column, args...)
	case "null":
		return predicate.IsNull(column)
	case "like":
		return predicate.Like(column, rapid.String().Draw(t, "pattern"))
	case "and", "or":
		parts := []predicate.Expr{drawExpr(t, depth-1, choice), drawExpr(t, depth-1, choice)}
		return &predicate.Logic{Or: choice == "or", Parts: parts}
	case "not":
		return predicate.Not(drawExpr(t, depth-1, choice))
	}
	op := rapid.SampledFrom([]predicate.Op{predicate.OpEq, predicate.OpNe, predicate.OpLt, predicate.OpLe, predicate.OpGt, predicate.OpGe}).Draw(t, "op")
	return &predicate.Compare{Column: column, Op: op, Args: []any{literal()}}
}

func TestParseWhereReadsWhatStringWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawExpr(t, 3, "")
		back, err := ParseWhere(e.String())
		if err != nil || !reflect.DeepEqual(e, back) {
			t.Fatalf("%s: %v, %v", e, back, err)
		}
	})
}

func TestParseNamesReadsWhatFormatWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringN(1, 8, -1), 1, 4, rapid.ID[string]).Draw(t, "names")
		back, err := ParseNames(FormatNames(names))
		if err != nil || !slices.Equal(names, back) {
			t.Fatalf("%q: %q, %v", names, back, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(`not a = 1 and ("b c" in (1, 'x') or c between -1.5e3 and 0x00) or d is not null`)
	f.Add(`count(*), sum("a b")`)
	f.Add(`a=1, b=null`)
	f.Add(`-1d12h`)
	f.Add(`64 MiB`)
	f.Fuzz(func(t *testing.T, in string) {
		if e, err := ParseWhere(in); err == nil {
			back, err := ParseWhere(e.String())
			if err != nil || back.String() != e.String() {
				t.Fatalf("%q: %s, %v", in, e, err)
			}
		}
		if aggs, err := ParseAggregates(in); err == nil {
			if back, err := ParseAggregates(aggs[0].String()); err != nil || back[0] != aggs[0] {
				t.Fatalf("%q: %v, %v", in, back, err)
			}
		}
		if names, err := ParseNames(in); err == nil {
			if back, err := ParseNames(FormatNames(names)); err != nil || !slices.Equal(names, back) {
				t.Fatalf("%q: %q, %v", in, back, err)
			}
		}
		_, _ = ParseSet(in)
		_, _ = ParseOrderBy(in)
		_, _ = ParseTime(in, time.Time{})
		if n, err := ParseSize(in); err == nil && n < 0 {
			t.Fatalf("%q: %d", in, n)
		}
	})
}
