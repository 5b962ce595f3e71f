package schema

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func column(t *testing.T, text string) *Column {
	t.Helper()
	cols, err := ParseColumns(text)
	if err != nil {
		t.Fatal(err)
	}
	return &cols[0]
}

type host string
type level uint16
type when time.Time

func TestConvert(t *testing.T) {
	n := 7
	pn := &n
	ts := time.Date(2001, 2, 3, 4, 5, 6, 789_999_999, time.FixedZone("", 5*3600+1800))
	f := func(col string, given any, want string) {
		t.Helper()
		c := column(t, "c "+col)
		v, err := c.Convert(given)
		if err != nil {
			var ve *ValueError
			if !errors.As(err, &ve) || ve.Column != "c" || ve.Row != -1 || !errors.Is(err, ErrInvalidArgument) {
				t.Errorf("%s: %T %v", col, err, err)
				return
			}
			if !strings.HasPrefix(want, "error: ") || !strings.HasPrefix(ve.Reason, want[len("error: "):]) {
				t.Errorf("%s from %T %v: %v, want %s", col, given, given, err, want)
			}
			return
		}
		if got := string(c.Format(nil, v)); got != want {
			t.Errorf("%s from %T %v: %q, want %q", col, given, given, got, want)
		}
	}
	f("int8", 127, "127")
	f("int8", int64(-128), "-128")
	f("int8", 300, "error: out of range")
	f("int8", int16(-129), "error: out of range")
	f("int16", uint16(65535), "error: out of range")
	f("int32", level(9), "9")
	f("int32", uint8(255), "255")
	f("int64", uint64(math.MaxInt64), "9223372036854775807")
	f("int64", uint64(math.MaxInt64)+1, "error: out of range")
	f("int64", pn, "7")
	f("int64", &pn, "error: wrong type")
	f("int64 null", (*int)(nil), "")
	f("int64 null", nil, "")
	f("int64 null", Null, "")
	f("int64", nil, "error: the column is not null")
	f("int64", (*int)(nil), "error: the column is not null")
	f("int64", "7", "error: wrong type")
	f("int64", 7.0, "error: wrong type")
	f("int64", true, "error: wrong type")
	f("int64", struct{}{}, "error: wrong type")
	f("int64", []int{1}, "error: wrong type")
	f("int64", IntValue(KindInt64, 5), "5")
	f("int64", IntValue(KindInt8, 5), "error: wrong type")
	f("int8", IntValue(KindInt8, 500), "error: out of range")
	f("bool", true, "true")
	f("bool", 1, "error: wrong type")
	f("double", 1.5, "1.5")
	f("double", float32(0.5), "0.5")
	f("double", math.NaN(), "NaN")
	f("double", 3, "3")
	f("double", int64(1)<<53+1, "error: not exactly representable")
	f("double", int64(math.MinInt64), "-9223372036854776000")
	f("double", int64(math.MaxInt64), "error: not exactly representable")
	f("double", uint64(math.MaxUint64), "error: not exactly representable")
	f("double", uint64(1)<<63, "9223372036854776000")
	f("float", 0.1, "0.1")
	f("float", 1e300, "error: out of range")
	f("float", math.Inf(-1), "-Infinity")
	f("float", 1<<24+1, "error: not exactly representable")
	f("float", "1.5", "error: wrong type")
	f("string", "x", "x")
	f("string", host("h"), "h")
	f("string", []byte("bytes"), "bytes")
	f("string", []byte{}, "")
	f("string", []byte(nil), "error: the column is not null")
	f("string", 5, "error: wrong type")
	f("binary", []byte{0, 255}, "0x00ff")
	f("binary", "0x", "0x3078")
	f("varchar(3)", "äöü", "äöü")
	f("varchar(3)", "äöüa", "error: 4 characters, at most 3")
	f("decimal(5,2)", "123.45", "123.45")
	f("decimal(5,2)", "-0.5", "-0.50")
	f("decimal(5,2)", "1.2300", "1.23")
	f("decimal(5,2)", "1.234", "error: more digits")
	f("decimal(5,2)", "1234", "error: out of range")
	f("decimal(5,2)", 999, "999.00")
	f("decimal(5,2)", -1000, "error: out of range")
	f("decimal(5,2)", 1.5, "error: wrong type")
	f("decimal(5,2)", "1e2", "error: not a decimal")
	f("decimal(5,2)", "", "error: not a decimal")
	f("decimal(5,2)", ".", "error: not a decimal")
	f("decimal(5,2)", "-", "error: not a decimal")
	f("decimal(5,2)", ".5", "0.50")
	f("decimal(38)", strings.Repeat("9", 38), strings.Repeat("9", 38))
	f("decimal(38)", strings.Repeat("9", 39), "error: out of range")
	f("decimal(38)", "-1"+strings.Repeat("0", 60), "error: out of range")
	f("decimal(38,38)", "-0."+strings.Repeat("9", 38), "-0."+strings.Repeat("9", 38))
	f("decimal(38)", uint64(math.MaxUint64), "18446744073709551615")
	f("decimal(38,30)", 1_000_000_000, "error: out of range")
	f("unixtime_micros", ts, "2001-02-02T22:35:06.789999Z")
	f("unixtime_micros", when(ts), "2001-02-02T22:35:06.789999Z")
	f("unixtime_micros", &ts, "2001-02-02T22:35:06.789999Z")
	f("unixtime_micros", 1, "1970-01-01T00:00:00.000001Z")
	f("unixtime_micros", "2001-01-01", "error: wrong type")
	f("date", ts, "2001-02-02")
	f("date", -1, "1969-12-31")
	f("date", MaxDate, "9999-12-31")
	f("date", MaxDate+1, "error: out of range")
	f("date", MinDate, "0001-01-01")
	f("date", MinDate-1, "error: out of range")
	f("date", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "error: out of range")
}

func TestConvertLimit(t *testing.T) {
	c := column(t, "b binary")
	if _, err := c.ConvertLimit(make([]byte, 10), 10); err != nil {
		t.Error(err)
	}
	_, err := c.ConvertLimit(make([]byte, 11), 10)
	if err == nil || !strings.Contains(err.Error(), `column "b"`) || !strings.Contains(err.Error(), "11 bytes, at most 10") {
		t.Error(err)
	}
}

func TestC99MessagesNameColumnTypesAndShortValue(t *testing.T) {
	c := column(t, "a int8")
	_, err := c.Convert(300)
	if got, want := err.Error(), `column "a": want int8 not null, given int 300: out of range`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, given := range []any{strings.Repeat("x", 1<<20), []byte(strings.Repeat("x", 1<<20)), host(strings.Repeat("x", 1<<20))} {
		if _, err := c.Convert(given); len(err.Error()) > 120 {
			t.Errorf("%T: message of %d bytes", given, len(err.Error()))
		}
	}
}

// The instants of the case, in several zones; microseconds hold all of them.
func TestC24InstantsRoundTrip(t *testing.T) {
	ny, err := time.LoadLocation("America/New_York")
	if err != nil {
		ny = time.FixedZone("EST", -5*3600)
	}
	instants := []time.Time{
		{},
		time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1677, 9, 21, 0, 12, 43, 145224192, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2262, 4, 12, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 3, 8, 7, 30, 0, 0, time.UTC), // in the gap of New York's summer time
		time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC),
		time.Now(), // with a monotonic part
	}
	ts, date := column(t, "ts unixtime_micros"), column(t, "d date")
	for _, at := range instants {
		for _, zone := range []*time.Location{time.UTC, time.FixedZone("", 5*3600+1800), ny} {
			at := at.In(zone)
			v, err := ts.Convert(at)
			if err != nil {
				t.Fatalf("%v: %v", at, err)
			}
			floor := at.Add(-time.Duration(at.Nanosecond() % 1000))
			if got := ts.Go(v).(time.Time); !got.Equal(floor) {
				t.Errorf("%v came back as %v", at, got)
			}
			back, err := ts.Parse(string(ts.Format(nil, v)))
			if err != nil || back != v {
				t.Errorf("%v: text %s: %v", at, ts.Format(nil, v), err)
			}
			v, err = date.Convert(at)
			y, m, d := at.UTC().Date()
			if err != nil || !date.Go(v).(time.Time).Equal(time.Date(y, m, d, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("%v: date %v, %v", at, date.Go(v), err)
			}
		}
	}
}

func TestC24OutOfRangeNamesColumn(t *testing.T) {
	ts := column(t, "ts unixtime_micros")
	last, first := time.UnixMicro(math.MaxInt64), time.UnixMicro(math.MinInt64)
	for _, at := range []time.Time{last, first} {
		if v, err := ts.Convert(at); err != nil || !ts.Go(v).(time.Time).Equal(at) {
			t.Errorf("%v: %v", at, err)
		}
	}
	for _, at := range []time.Time{last.Add(time.Microsecond), first.Add(-time.Nanosecond),
		time.Date(1<<30, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1<<31, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if _, err := ts.Convert(at); err == nil || !strings.Contains(err.Error(), `column "ts"`) {
			t.Errorf("%v: %v", at, err)
		}
	}
}

func TestGoConvertsBack(t *testing.T) {
	for _, text := range allTypes {
		c := column(t, text)
		v, err := c.Parse(sample[c.TypeString()])
		if err != nil {
			t.Fatal(err)
		}
		if back, err := c.Convert(c.Go(v)); err != nil || back != v {
			t.Errorf("%s: %v from %T, %v", text, back, c.Go(v), err)
		}
	}
	c := column(t, "i int32 null")
	if c.Go(Null) != nil || c.Go(IntValue(KindInt32, 4)) != int64(4) {
		t.Error("int32")
	}
}

func TestConvertDoesNotAllocate(t *testing.T) {
	cols, err := ParseColumns("a int64, b double, c string, d unixtime_micros, e decimal(10,2)")
	if err != nil {
		t.Fatal(err)
	}
	row := []any{int64(1 << 40), 2.5, "text", time.Now(), "12.34"}
	n := testing.AllocsPerRun(100, func() {
		for i := range cols {
			if _, err := cols[i].Convert(row[i]); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func BenchmarkConvert(b *testing.B) {
	cols, err := ParseColumns("a int64, b double, c string, d unixtime_micros, e decimal(10,2)")
	if err != nil {
		b.Fatal(err)
	}
	row := []any{int64(1 << 40), 2.5, "text", time.Now(), "12.34"}
	b.ReportAllocs()
	for b.Loop() {
		for i := range cols {
			if _, err := cols[i].Convert(row[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func TestC08OnlyNilBytesAreNull(t *testing.T) {
	c := column(t, "b binary null")
	for _, b := range [][]byte{nil, {}, []byte("test"), make([]byte, 3<<20)} {
		v, err := c.Convert(b)
		if err != nil || v.IsNull() != (b == nil) || v.Str() != string(b) {
			t.Errorf("%d bytes, nil %v: %v, %v", len(b), b == nil, v.IsNull(), err)
		}
	}
}
