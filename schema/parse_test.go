package schema

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseColumns(t *testing.T) {
	cols, err := ParseColumns(` host string, ts UNIXTIME_MICROS,"Cost ""Total"" $" decimal(10,2) null default '1.50',
		n int64 not null default -5 encoding rle compression zstd page 4096, s varchar(20) null default 'it''s' immutable`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range cols {
		got = append(got, cols[i].String())
	}
	want := []string{"host string", "ts unixtime_micros", `"Cost ""Total"" $" decimal(10,2) null default 1.50`,
		"n int64 default -5 encoding rle compression zstd page 4096", "s varchar(20) null default 'it''s' immutable"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if cols[3].ReadDefault != cols[3].Default || cols[3].Default.Int() != -5 || !cols[4].Immutable {
		t.Errorf("%+v", cols[3])
	}
}

func TestParseColumnsErrors(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := ParseColumns(text)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	f("", "expected a column name, found the end at position 1")
	f("a int32,", "expected a column name, found the end at position 9")
	f("a", "expected a type, found the end")
	f("a int3", `column "a": unknown type "int3" at position 3`)
	f("a int32 nul", `found "nul" at position 9`)
	f("a int32 null not null", "null is given twice at position 14")
	f("a b c int32", `unknown type "b"`)
	f("a$ int32", "needs double quotes")
	f(`"a int32`, `quote " is not closed at position 1`)
	f("a string default 'x", "quote ' is not closed")
	f("a string default x", "in single quotes")
	f("a int8 default 300", `default "300": out of range`)
	f("a int8 default", "expected a default value, found the end")
	f("a decimal", `expected "(", found the end`)
	f("a decimal(39)", "expected a precision from 1 to 38")
	f("a decimal(5,6)", "expected a scale from 0 to 5")
	f("a varchar(0)", "expected a length from 1 to 65535")
	f("a int32 encoding zip", `unknown encoding "zip"`)
	f("a int32 compression rar", `unknown compression "rar"`)
	f("a int32 page x", "expected a number of bytes")
	f("a int32 'x'", `expected ",", found "x"`)
}

func TestColumnStringParsesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := column2(t, rapid.SampledFrom(allTypes).Draw(t, "type"))
		c.Name = rapid.StringN(1, 20, -1).Draw(t, "name")
		c.Nullable = rapid.Bool().Draw(t, "null")
		c.Immutable = rapid.Bool().Draw(t, "immutable")
		c.Encoding = rapid.SampledFrom([]Encoding{EncodingAuto, EncodingPlain, EncodingDict}).Draw(t, "encoding")
		c.Compression = rapid.SampledFrom([]Compression{CompressionDefault, CompressionZstd}).Draw(t, "compression")
		c.BlockSize = rapid.IntRange(0, 1<<20).Draw(t, "page")
		if rapid.Bool().Draw(t, "default") {
			if v := drawValue(t, &c); !v.IsNaN() {
				c.Default, c.ReadDefault = v, v
			}
		}
		back, err := ParseColumns(c.String() + ", z int8")
		if err != nil || len(back) != 2 || back[0] != c {
			t.Fatalf("%s: %+v, %v", c.String(), back, err)
		}
	})
}

func column2(t *rapid.T, text string) Column {
	cols, err := ParseColumns(text)
	if err != nil {
		t.Fatal(err)
	}
	return cols[0]
}

func FuzzParseColumns(f *testing.F) {
	f.Add(`host string, "Cost $" decimal(10,2) null default '1.50' encoding plain page 4096`)
	f.Fuzz(func(t *testing.T, text string) {
		cols, err := ParseColumns(text)
		if err != nil {
			return
		}
		for i := range cols {
			if cols[i].Default.IsNaN() {
				continue
			}
			if back, err := ParseColumns(cols[i].String()); err != nil || back[0] != cols[i] {
				t.Fatalf("%q: %v", cols[i].String(), err)
			}
		}
	})
}
