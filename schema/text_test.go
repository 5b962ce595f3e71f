package schema

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var allTypes = []string{"c int8", "c int16", "c int32", "c int64", "c bool", "c float", "c double", "c string", "c binary",
	"c unixtime_micros", "c date", "c decimal(9,3)", "c decimal(18,0)", "c decimal(38,20)", "c varchar(5)"}

var sample = map[string]string{"int8": "-5", "int16": "300", "int32": "-70000", "int64": "9000000000", "bool": "true",
	"float": "0.1", "double": "0.1", "string": "text", "binary": "0x00ff", "unixtime_micros": "2001-02-03T04:05:06.000007Z",
	"date": "2001-02-03", "decimal(9,3)": "-123456.789", "decimal(18,0)": "7", "decimal(38,20)": "-0.00000000000000000001",
	"varchar(5)": "short"}

// drawValue draws any value that a column can hold.
func drawValue(t *rapid.T, c *Column) Value {
	switch {
	case c.Type.IsDecimal():
		n := big.NewInt(0).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "n"))
		n.Mod(n, big.NewInt(0).Exp(big.NewInt(10), big.NewInt(int64(c.Precision)), nil))
		v := Int128{Lo: big.NewInt(0).And(n, big.NewInt(0).SetUint64(math.MaxUint64)).Uint64(), Hi: n.Rsh(n, 64).Int64()}
		if rapid.Bool().Draw(t, "negative") {
			v = v.Neg()
		}
		if c.Type == Decimal128 {
			return Int128Value(v)
		}
		return IntValue(c.Kind(), int64(v.Lo))
	case c.Type == Date:
		return IntValue(KindInt32, rapid.Int64Range(MinDate, MaxDate).Draw(t, "d"))
	case c.Type == Varchar:
		return StringValue(rapid.StringN(0, int(c.Length), -1).Draw(t, "s"))
	}
	switch c.Kind() {
	case KindBool:
		return BoolValue(rapid.Bool().Draw(t, "b"))
	case KindFloat32:
		return Float32Value(math.Float32frombits(rapid.Uint32().Draw(t, "f")))
	case KindFloat64:
		return Float64Value(math.Float64frombits(rapid.Uint64().Draw(t, "f")))
	case KindBytes:
		return BytesValue(rapid.SliceOf(rapid.Byte()).Draw(t, "s"))
	}
	shift := 64 - 8*c.Kind().Width()
	return IntValue(c.Kind(), rapid.Int64().Draw(t, "i")>>shift)
}

func TestParseReadsWhatFormatWrites(t *testing.T) {
	for _, text := range allTypes {
		c := column(t, text)
		t.Run(c.TypeString(), rapid.MakeCheck(func(t *rapid.T) {
			v := drawValue(t, c)
			out := string(c.Format(nil, v))
			back, err := c.Parse(out)
			if err != nil || back != v && !(back.IsNaN() && v.IsNaN()) {
				t.Fatalf("%q: %v, %v", out, back, err)
			}
			if _, err := c.Convert(v); err != nil {
				t.Fatal(err)
			}
			if !c.Type.IsText() && strings.ContainsAny(out, ", \"'") {
				t.Fatalf("%q needs quotes", out)
			}
		}))
	}
}

func TestFormat(t *testing.T) {
	f := func(col string, v Value, want string) {
		t.Helper()
		if got := string(column(t, "c "+col).Format(nil, v)); got != want {
			t.Errorf("%s: %s, want %s", col, got, want)
		}
	}
	f("double", Float64Value(1e-6), "0.000001")
	f("double", Float64Value(9.99e-7), "9.99e-07")
	f("double", Float64Value(123456789012345678901), "123456789012345680000")
	f("double", Float64Value(1e21), "1e+21")
	f("double", Float64Value(math.Copysign(0, -1)), "-0")
	f("float", Float32Value(1e-6), "0.000001")
	f("float", Float32Value(0.1), "0.1")
	f("double", Float64Value(math.Inf(1)), "Infinity")
	f("double", Float64Value(math.NaN()), "NaN")
	f("unixtime_micros", IntValue(KindInt64, 0), "1970-01-01T00:00:00Z")
	f("unixtime_micros", IntValue(KindInt64, -1), "1969-12-31T23:59:59.999999Z")
	f("unixtime_micros", IntValue(KindInt64, 1_500_000), "1970-01-01T00:00:01.5Z")
	f("unixtime_micros", IntValue(KindInt64, math.MaxInt64), "+294247-01-10T04:00:54.775807Z")
	f("unixtime_micros", IntValue(KindInt64, math.MinInt64), "-290308-12-21T19:59:05.224192Z")
	f("decimal(38,2)", Int128Value(Int128From(-5)), "-0.05")
	f("decimal(38,0)", Int128Value(Int128{Hi: math.MinInt64}), "-170141183460469231731687303715884105728")
	f("int64 null", Null, "")
}

func TestParse(t *testing.T) {
	f := func(col, text, want string) {
		t.Helper()
		c := column(t, "c "+col)
		v, err := c.Parse(text)
		got := string(c.Format(nil, v))
		if err != nil {
			got = "error: " + err.(*ValueError).Reason
		}
		if got != want {
			t.Errorf("%s %q: %s, want %s", col, text, got, want)
		}
	}
	const notTime = "error: not a time such as 2006-01-02T15:04:05Z"
	f("int8", "128", "error: out of range")
	f("int8", "+5", "5")
	f("int8", "0x5", "error: not an integer")
	f("int8", "5.0", "error: not an integer")
	f("int8", "", "error: not an integer")
	f("bool", "TRUE", "true")
	f("bool", "1", "error: neither true nor false")
	f("double", "1e999", "error: out of range")
	f("double", "-inf", "-Infinity")
	f("double", "0x1p4", "error: not a number")
	f("double", "1_000", "error: not a number")
	f("float", "1e39", "error: out of range")
	f("binary", "0x0", "error: not hexadecimal such as 0x00ff")
	f("binary", "00", "error: not hexadecimal such as 0x00ff")
	f("binary", "0x", "0x")
	f("date", "2001-02-29", "error: not a date such as 2006-01-02 of the years 1 to 9999")
	f("date", "2000-02-29", "2000-02-29")
	f("date", "0000-12-31", "error: not a date such as 2006-01-02 of the years 1 to 9999")
	f("date", "2001-02-03T00:00:00Z", "error: not a date such as 2006-01-02 of the years 1 to 9999")
	f("unixtime_micros", "2001-02-03", "2001-02-03T00:00:00Z")
	f("unixtime_micros", "2010-01-01T01:00:00", "2010-01-01T01:00:00Z")
	f("unixtime_micros", "2010-01-01 01:00:00.25", "2010-01-01T01:00:00.25Z")
	f("unixtime_micros", "2010-01-01 01:00:00+05:30", "2009-12-31T19:30:00Z")
	f("unixtime_micros", "2010-01-01 01:00:00-01", "2010-01-01T02:00:00Z")
	f("unixtime_micros", "2010-01-01T01:00:00.1234567899Z", "2010-01-01T01:00:00.123456Z")
	f("unixtime_micros", "1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z")
	f("unixtime_micros", "2010-01-01T24:00:00Z", notTime)
	f("unixtime_micros", "2010-01-01T01:00:00.Z", notTime)
	f("unixtime_micros", "2010-01-01T01:00Z", notTime)
	f("unixtime_micros", "2010-01-01T01:00:00Zx", notTime)
	f("unixtime_micros", "2010-13-01", notTime)
	f("unixtime_micros", "1700000000", notTime)
	f("unixtime_micros", "+999999-01-01", notTime)
	f("varchar(2)", "abc", "error: 3 characters, at most 2")
}

// The calendar agrees with package time on every day that it knows.
func TestCivil(t *testing.T) {
	for day := int64(MinDate - 400); day <= MaxDate+400; day += 37 {
		at := time.Unix(day*secondsPerDay, 0).UTC()
		y, m, d := civil(day)
		if int(y) != at.Year() || time.Month(m) != at.Month() || int(d) != at.Day() || dayOf(y, m, d) != day {
			t.Fatalf("day %d: %d-%d-%d, want %v", day, y, m, d, at)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range sample {
		f.Add(s)
	}
	f.Add("+294247-01-10T04:00:54.775807Z")
	var cols []*Column
	for _, text := range allTypes {
		c, err := ParseColumns(text)
		if err != nil {
			f.Fatal(err)
		}
		cols = append(cols, &c[0])
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range cols {
			v, err := c.Parse(text)
			if err != nil {
				continue
			}
			if back, err := c.Parse(string(c.Format(nil, v))); err != nil || back != v && !v.IsNaN() {
				t.Fatalf("%s %q: %v, %v", c.TypeString(), text, back, err)
			}
		}
	})
}

func BenchmarkParseTimestamp(b *testing.B) {
	for b.Loop() {
		ParseTimestamp("2010-01-01T01:00:00.123456Z")
	}
}
