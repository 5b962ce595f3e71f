package csvio

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"pgregory.net/rapid"
)

// scan returns all records, a null as <nil>, a quoted field in brackets.
func scan(r io.Reader) (string, error) {
	s := NewScanner(r)
	var out []string
	for {
		fields, err := s.Next()
		if errors.Is(err, io.EOF) {
			return strings.Join(out, " "), nil
		}
		if err != nil {
			return strings.Join(out, " "), err
		}
		var record []string
		for _, f := range fields {
			switch {
			case f.IsNull():
				record = append(record, "nil")
			case f.Quoted:
				record = append(record, "["+string(f.Text)+"]")
			default:
				record = append(record, string(f.Text))
			}
		}
		out = append(out, fmt.Sprintf("%d:%s", s.Line(), strings.Join(record, "|")))
	}
}

func TestScanner(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(in), "bytes": iotest.OneByteReader(strings.NewReader(in)),
			"data and EOF": iotest.DataErrReader(strings.NewReader(in))} {
			got, err := scan(r)
			if err != nil {
				got = strings.TrimSpace(got + " " + err.Error())
			}
			if got != want {
				t.Errorf("%q, %s: %q, want %q", in, name, got, want)
			}
		}
	}
	f("", "")
	f("a", "1:a")
	f("ab\n", "1:ab")
	f("\xef\xbb\xbfa,b\r\n1,2\r\n", "1:a|b 2:1|2")
	f("\xef\xbb\xbf", "")
	f("\xef", "1:\xef")
	f("a,,\"\"\n", "1:a|nil|[]")
	f("\n\na\n", "1:nil 2:nil 3:a")
	f("\"a,b\",\"c\"\"d\"\"\"\n", "1:[a,b]|[c\"d\"]")
	f("\"a\nb\r\nc\",d\r\ne,f", "1:[a\nb\r\nc]|d 4:e|f")
	f("\"\"\"\"", "1:[\"]")
	f("a\rb,c", "1:a\rb|c")
	f("a,", "1:a|nil")
	f("a\nb\"c\n", "1:a line 2, column 2: a quote inside a field that does not begin with one")
	f("a\nx,\"b\"c\n", "1:a line 2, column 6: text after a closing quote")
	f("\"a\"\"\n\"x\n", "line 2, column 2: text after a closing quote")
	f("a\nb,\"c\nd\n", "1:a line 2, column 3: the quote is not closed")
}

func TestScannerBoundsMemory(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("a\n\"x"), io.LimitReader(zeroes{}, MaxRecord+1<<20))
	_, err := scan(endless)
	var se *SyntaxError
	if !errors.As(err, &se) || se.Line != 2 || !strings.Contains(se.Reason, "is a quote not closed?") {
		t.Error(err)
	}
	if _, err := scan(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("abc")))); !errors.Is(err, iotest.ErrTimeout) {
		t.Error(err)
	}
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { return len(p), nil }

func TestInfer(t *testing.T) {
	f := func(values, want string) {
		t.Helper()
		cols, rows, err := Infer(strings.NewReader("c,x\n" + strings.ReplaceAll(values, " ", ",\n") + ",\n"))
		if err != nil || len(cols) != 2 || rows != int64(strings.Count(values, " ")+1) {
			t.Errorf("%s: %v, %d, %v", values, cols, rows, err)
			return
		}
		if got := cols[0].TypeString(); got != want || !cols[0].Nullable || cols[1].Type != schema.String {
			t.Errorf("%s: %s, want %s", values, got, want)
		}
	}
	f("1  -2 0 9223372036854775807", "int64")
	f(`"1" "2"`, "int64")
	f("00501 10001", "string")
	f("10001 00501", "string")
	f("0.5 -007.5", "string")
	f("1 9223372036854775808", "string")
	f("1 2.5", "double")
	f("1e3 .5 5. -0.25", "double")
	f("9007199254740993 2.5", "string")
	f("9007199254740992 2.5", "double")
	f("1.5 NaN -Infinity", "double")
	f("NaN NaN", "string")
	f("1e999 1.5", "string")
	f("-0 5", "double")
	f("0x10 5", "string")
	f("1_000 5", "string")
	f("+5 5", "string")
	f("1 NA", "string")
	f("1 None", "string")
	f(`1 ""`, "string")
	f("- 5", "string")
	f(". 5", "string")
	f("true FALSE True", "bool")
	f("true 1", "string")
	f("2001-02-03 2000-02-29", "date")
	f("2001-02-03 2001-02-29", "string")
	f("2001-02-03 2001-02-03T04:05:06Z", "unixtime_micros")
	f("2010-01-01T01:00:00 2010-01-01T02:00:00+01:00", "unixtime_micros")
	f("2001-02-03 5", "string")
}

const sample = `host,ts,load,up,day,zip,note
a,2010-01-01T01:00:00,0.5,true,2010-01-01,00501,"it, was"
b,2010-01-01T02:00:00.25,,false,,10001,""
"c ""x""",2010-01-01T03:00:00,7,true,2010-01-03,NA,
`

func readAll(t interface{ Fatal(...any) }, text string, cols []schema.Column, max int) (vectors []*vector.Vector, n int, rejected []Rejected) {
	r, err := NewReader(strings.NewReader(text))
	if err == nil {
		err = r.Bind(cols)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range cols {
		vectors = append(vectors, vector.New(cols[i].Kind(), 0))
	}
	for {
		b, err := r.Next(max)
		if errors.Is(err, io.EOF) {
			return vectors, n, rejected
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range b.Columns {
			if v.Len() != len(b.Rows) {
				t.Fatal("I2: ", v.Len(), len(b.Rows))
			}
			if err := vectors[i].AppendRange(v, 0, v.Len()); err != nil {
				t.Fatal(err)
			}
		}
		n += len(b.Rows)
		rejected = append(rejected, b.Rejected...)
	}
}

func TestReadAndWrite(t *testing.T) {
	cols, rows, err := Infer(strings.NewReader(sample))
	if err != nil || rows != 3 {
		t.Fatal(rows, err)
	}
	var types []string
	for i := range cols {
		types = append(types, cols[i].TypeString())
	}
	if got, want := strings.Join(types, " "), "string unixtime_micros double bool date string string"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	vectors, n, rejected := readAll(t, sample, cols, 2)
	if n != 3 || rejected != nil {
		t.Fatal(n, rejected)
	}
	var out bytes.Buffer
	w := NewWriter(&out, cols)
	if err := errors.Join(w.Write(vectors, n), w.Flush()); err != nil {
		t.Fatal(err)
	}
	want := `host,ts,load,up,day,zip,note
a,2010-01-01T01:00:00Z,0.5,true,2010-01-01,00501,"it, was"
b,2010-01-01T02:00:00.25Z,,false,,10001,""
"c ""x""",2010-01-01T03:00:00Z,7,true,2010-01-03,NA,
`
	if out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
	out.Reset()
	j := NewJSONWriter(&out, cols)
	if err := errors.Join(j.Write(vectors, n), j.Flush()); err != nil {
		t.Fatal(err)
	}
	want = `{"host":"a","ts":"2010-01-01T01:00:00Z","load":0.5,"up":true,"day":"2010-01-01","zip":"00501","note":"it, was"}
{"host":"b","ts":"2010-01-01T02:00:00.25Z","load":null,"up":false,"day":null,"zip":"10001","note":""}
{"host":"c \"x\"","ts":"2010-01-01T03:00:00Z","load":7,"up":true,"day":"2010-01-03","zip":"NA","note":null}
`
	if out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
}

func TestReaderTakesBackRejectedRows(t *testing.T) {
	cols, err := schema.ParseColumns("b int8 null, a string, v varchar(2) null")
	if err != nil {
		t.Fatal(err)
	}
	vectors, n, rejected := readAll(t, "a,b,v,other\nx,1,,\ny,300,,\n,2,,\nz,q,,\n\n1,2\n1,2,3,4,5\nw,3,abc,\nlast,-4,äö,\n", cols, 3)
	var got []string
	for _, r := range rejected {
		got = append(got, fmt.Sprintf("%d/%d: %v", r.Row, r.Line, r.Err))
	}
	want := []string{
		`2/3: column "b": want int8, given string "300": out of range`,
		`3/4: column "a": want string not null, given null: the column is not null`,
		`4/5: column "b": want int8, given string "q": not an integer`,
		`5/7: 2 fields, the header has 4`,
		`6/8: 5 fields, the header has 4`,
		`7/9: column "v": want varchar(2), given string "abc": 3 characters, at most 2`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if n != 2 || vectors[1].StringAt(1) != "last" || vectors[0].Value(1).Int() != -4 || !vectors[2].IsNull(0) || vectors[2].StringAt(1) != "äö" {
		t.Errorf("%d rows", n)
	}
}

func TestHeader(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		r, err := NewReader(strings.NewReader(in))
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Join(r.Header(), "|")
		}
		if got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	f("a,,\"b \"\"c\"\"\"\n", `a|column2|b "c"`)
	f("", "line 1: no header row: the file is empty")
	f("a,a\n", `line 1: two columns are named "a"`)
	r, err := NewReader(strings.NewReader("a,b\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Bind([]schema.Column{{Name: "c", Type: schema.Int8}}); err == nil || !strings.Contains(err.Error(), `no column "c"; it has a, b`) {
		t.Error(err)
	}
}

// A blank line is a null where there is one column, and nothing where there are more.
func TestBlankLines(t *testing.T) {
	one, err := schema.ParseColumns("a string null")
	if err != nil {
		t.Fatal(err)
	}
	vectors, n, _ := readAll(t, "a\n\nx\n\"\"\n", one, 10)
	if n != 3 || !vectors[0].IsNull(0) || vectors[0].IsNull(2) {
		t.Errorf("%d rows", n)
	}
	_, n, rejected := readAll(t, "a,b\n\n1,2\n\n", one, 10)
	if n != 1 || rejected != nil {
		t.Errorf("%d rows, %v", n, rejected)
	}
}

func TestJSONSpecialValues(t *testing.T) {
	cols, err := schema.ParseColumns(`"a""b" double, f float, d decimal(38,2), b binary, s string, i int64`)
	if err != nil {
		t.Fatal(err)
	}
	rows := [][]any{
		{math.NaN(), math.Inf(1), "-0.05", []byte{0, 255}, "\x00\xff\"\\\n\tä\u2028", int64(math.MaxInt64)},
		{1e21, math.Inf(-1), strings.Repeat("9", 36) + ".99", []byte{}, "", int64(math.MinInt64)},
		{-1e-7, 0.1, 7, []byte("x"), "<&>", 0},
	}
	var vectors []*vector.Vector
	for i := range cols {
		v := vector.New(cols[i].Kind(), 0)
		for _, row := range rows {
			x, err := cols[i].Convert(row[i])
			if err == nil {
				err = v.Append(x)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		vectors = append(vectors, v)
	}
	var out bytes.Buffer
	w := NewJSONWriter(&out, cols)
	if err := errors.Join(w.Write(vectors, len(rows)), w.Flush()); err != nil {
		t.Fatal(err)
	}
	want := `{"a\"b":"NaN","f":"Infinity","d":-0.05,"b":"0x00ff","s":"\u0000` + "\ufffd" + `\"\\\n\tä` + "\u2028" + `","i":9223372036854775807}
{"a\"b":1e+21,"f":"-Infinity","d":999999999999999999999999999999999999.99,"b":"0x","s":"","i":-9223372036854775808}
{"a\"b":-1e-07,"f":0.1,"d":7.00,"b":"0x78","s":"<&>","i":0}
`
	if out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("invalid: %s", line)
		}
	}
}

// What a Writer writes, a Reader reads back: nulls, empty strings and all.
func TestReaderReadsWhatWriterWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"a string null", "a string null, b int64 null", "a double null, \"x,\"\"y\" binary null, c varchar(3) null"}).Draw(t, "columns")
		cols, err := schema.ParseColumns(text)
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(0, 5).Draw(t, "rows")
		var vectors []*vector.Vector
		for i := range cols {
			v := vector.New(cols[i].Kind(), 0)
			for range n {
				if err := v.Append(drawCell(t, &cols[i])); err != nil {
					t.Fatal(err)
				}
			}
			vectors = append(vectors, v)
		}
		var out bytes.Buffer
		w := NewWriter(&out, cols)
		if err := errors.Join(w.Write(vectors, n), w.Flush()); err != nil {
			t.Fatal(err)
		}
		back, m, rejected := readAll(t, out.String(), cols, 2)
		if m != n || rejected != nil {
			t.Fatalf("%q: %d rows, %v", out.String(), m, rejected)
		}
		for i := range vectors {
			if !vector.Equal(vectors[i], back[i]) {
				t.Fatalf("%q: column %d differs", out.String(), i)
			}
		}
		if _, err := csv.NewReader(&out).ReadAll(); err != nil {
			t.Fatalf("package csv: %v", err)
		}
	})
}

func drawCell(t *rapid.T, c *schema.Column) schema.Value {
	if rapid.IntRange(0, 3).Draw(t, "null") == 0 {
		return schema.Null
	}
	switch c.Kind() {
	case schema.KindInt64:
		return schema.IntValue(schema.KindInt64, rapid.Int64().Draw(t, "n"))
	case schema.KindFloat64:
		return schema.Float64Value(rapid.Float64().Draw(t, "f"))
	}
	return schema.StringValue(rapid.StringOfN(rapid.RuneFrom([]rune("a,\"\r\n \ufeff0")), 0, 3, -1).Draw(t, "s"))
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("\xef\xbb\xbfa,b\r\n\"x\r\ny\",1\r\n"))
	f.Add([]byte("a\n\"b\"\"c"))
	f.Fuzz(func(t *testing.T, in []byte) {
		cols, rows, err := Infer(bytes.NewReader(in))
		if err != nil {
			return
		}
		r, err := NewReader(iotest.OneByteReader(bytes.NewReader(in)))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Bind(cols); err != nil {
			t.Fatal(err)
		}
		var n, bad int64
		for {
			b, err := r.Next(3)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%q: %v", in, err)
			}
			n += int64(len(b.Rows))
			for _, x := range b.Rejected {
				var ve *schema.ValueError
				if errors.As(x.Err, &ve) && ve.Want != "" { // of a cell, not of the row's shape
					t.Fatalf("%q: inferred types refuse a row: %v", in, x.Err)
				}
				bad++
			}
		}
		if n+bad != rows {
			t.Fatalf("%q: %d + %d rows, want %d", in, n, bad, rows)
		}
	})
}

func benchmarkText() string {
	var b strings.Builder
	b.WriteString("id,host,ts,load,count\n")
	for i := range 20000 {
		fmt.Fprintf(&b, "%d,host-%d,2010-01-%02dT01:00:00,%d.%d,%d\n", i, i%100, i%28+1, i%50, i%10, i*7)
	}
	return b.String()
}

func BenchmarkInfer(b *testing.B) {
	text := benchmarkText()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Infer(strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	text := benchmarkText()
	cols, _, err := Infer(strings.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := NewReader(strings.NewReader(text))
		if err == nil {
			err = r.Bind(cols)
		}
		for err == nil {
			_, err = r.Next(10000)
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	text := benchmarkText()
	cols, _, err := Infer(strings.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	vectors, n, _ := readAll(b, text, cols, 1<<20)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		w := NewWriter(io.Discard, cols)
		if err := errors.Join(w.Write(vectors, n), w.Flush()); err != nil {
			b.Fatal(err)
		}
	}
}
