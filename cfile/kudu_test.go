package cfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// kuduRows is the number of rows of the tables described in testdata/kudu/README.md.
const kuduRows = 600

// kuduNumber is the x of row i in the README.
func kuduNumber(i int) int64 {
	if i < 200 {
		return int64(i*7919%251 - 125)
	}
	return int64(i / 50)
}

func kuduNull(i int) bool { return i%5 == 3 || i >= 100 && i < 140 }

func kuduWord(i int) string {
	return fmt.Sprintf("name-%c%04d", 'a'+i/16%26, kuduNumber(i)+1000)
}

func kuduDecimal(x int64, precision int) schema.Value {
	text := fmt.Sprintf("%d%0*d", x, precision-4, 0)
	n, reason := schema.ParseDecimal(text, 0)
	if reason != "" {
		panic(reason)
	}
	if precision > 18 {
		return schema.Int128Value(n)
	}
	kind := schema.KindInt64
	if precision <= 9 {
		kind = schema.KindInt32
	}
	return schema.IntValue(kind, int64(n.Lo))
}

// kuduColumn is the kind of column that a name of a file begins with.
type kuduColumn struct {
	typ  schema.Type
	cell func(i int) schema.Value
}

// numbers makes the cell function of a column that holds from + factor * x.
func numbers(typ schema.Type, from, factor int64) kuduColumn {
	return kuduColumn{typ, func(i int) schema.Value { return schema.IntValue(typ.Kind(), from+factor*kuduNumber(i)) }}
}

func texts(typ schema.Type, f func(i int) string) kuduColumn {
	return kuduColumn{typ, func(i int) schema.Value { return schema.StringValue(f(i)) }}
}

func decimals(typ schema.Type, precision int) kuduColumn {
	return kuduColumn{typ, func(i int) schema.Value { return kuduDecimal(kuduNumber(i), precision) }}
}

var kuduColumns = map[string]kuduColumn{
	"int8":      numbers(schema.Int8, 0, 1),
	"int16":     numbers(schema.Int16, 0, 200),
	"int32":     numbers(schema.Int32, 0, 1_000_003),
	"int64":     numbers(schema.Int64, 0, 10_000_000_019),
	"unixtime":  numbers(schema.UnixtimeMicros, 1_700_000_000_000_000, 1_000_000),
	"date":      numbers(schema.Date, 18000, 1),
	"decimal9":  decimals(schema.Decimal32, 9),
	"decimal18": decimals(schema.Decimal64, 18),
	"decimal38": decimals(schema.Decimal128, 38),
	"bool":      {schema.Bool, func(i int) schema.Value { return schema.BoolValue(kuduNumber(i)%3 == 0) }},
	"float":     {schema.Float, func(i int) schema.Value { return schema.Float32Value(float32(kuduNumber(i)) / 4) }},
	"double":    {schema.Double, func(i int) schema.Value { return schema.Float64Value(float64(kuduNumber(i)) / 8) }},
	"string":    texts(schema.String, kuduWord),
	"varchar":   texts(schema.Varchar, kuduWord),
	"binary":    texts(schema.Binary, kuduWord),
	"overflow":  texts(schema.String, func(i int) string { return fmt.Sprintf("overflow-%06d-value", i*37%100000) }),
	"number":    {schema.Int32, func(i int) schema.Value { return schema.IntValue(schema.KindInt32, int64(3*i-300)) }},
	"group":     texts(schema.String, func(i int) string { return fmt.Sprintf("key-%06d", i/4) }),
	"member":    {schema.Int8, func(i int) schema.Value { return schema.IntValue(schema.KindInt8, int64(i%4)) }},
	"composite": texts(schema.Binary, func(i int) string {
		return fmt.Sprintf("key-%06d\x00\x00", i/4) + string([]byte{byte(0x80 + i%4)})
	}),
	"undo": {typ: schema.Binary}, // holds times of the day it was written
}

// kuduFile is a file of testdata/kudu and what its name says: column, encoding,
// compression and, for nullable columns, "null".
type kuduFile struct {
	name  string
	bytes []byte
	col   kuduColumn
	o     WriterOptions
}

func kuduFiles(t *testing.T) (out []kuduFile) {
	paths, err := filepath.Glob("testdata/kudu/*.cfile")
	if err != nil || len(paths) < 50 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(p), ".cfile")
		parts := strings.Split(name, "_")
		f := kuduFile{name: name, bytes: b, col: kuduColumns[parts[0]]}
		enc, ok1 := schema.ParseEncoding(parts[1])
		codec, ok2 := schema.ParseCompression(parts[2])
		if !ok1 || !ok2 || f.col.typ == 0 {
			t.Fatalf("name %s", name)
		}
		f.o = WriterOptions{Type: f.col.typ, Encoding: enc, Compression: codec, Nullable: len(parts) > 3, BlockSize: minBlockSize, NoZones: true}
		out = append(out, f)
	}
	return out
}

// cells returns the cells that the file must hold.
func (f *kuduFile) cells(t *testing.T) *vector.Vector {
	v := vector.New(f.col.typ.Kind(), kuduRows)
	for i := range kuduRows {
		c := schema.Null
		if !f.o.Nullable || !kuduNull(i) {
			c = f.col.cell(i)
		}
		if err := v.Append(c); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func TestGoldenKuduFiles(t *testing.T) {
	for _, f := range kuduFiles(t) {
		t.Run(f.name, func(t *testing.T) {
			r, _ := open(t, f.bytes, ReaderOptions{})
			got := WriterOptions{Type: r.Type(), Encoding: r.Encoding(), Compression: r.Compression(), Nullable: r.Nullable(), BlockSize: minBlockSize, NoZones: true}
			if got != f.o {
				t.Fatalf("footer says %+v, want %+v", got, f.o)
			}
			v := readAll(t, r)
			if f.col.cell == nil {
				checkKuduUndo(t, v)
				return
			}
			same(t, f.name, v, f.cells(t))
			if !r.footer.Value.IsZero() {
				checkKuduSeeks(t, r, v)
			}
		})
	}
}

// checkKuduSeeks finds each value of a file with a value index, and what lies just
// behind the last one.
func checkKuduSeeks(t *testing.T, r *Reader, v *vector.Vector) {
	t.Helper()
	var key []byte
	for i := range v.Len() {
		key = encoding.AppendKeyCell(key[:0], v.Value(i), true)
		if row, exact, err := r.SeekKey(t.Context(), key); row != int64(i) || !exact || err != nil {
			t.Fatalf("value %d found at %d, %t, %v", i, row, exact, err)
		}
	}
	key = append(key, 0)
	if row, exact, err := r.SeekKey(t.Context(), key); row != kuduRows || exact || err != nil {
		t.Errorf("behind the last value: %d, %t, %v", row, exact, err)
	}
}

// checkKuduUndo checks the deltas that delete the inserted rows: the row in a varint
// that sorts, a time and the deletion.
func checkKuduUndo(t *testing.T, v *vector.Vector) {
	t.Helper()
	for i := range v.Len() {
		row := []byte{byte(i)}
		if i > 240 {
			row = []byte{byte(241 + (i-240)/256), byte((i - 240) % 256)}
		}
		if b := v.BytesAt(i); !bytes.HasPrefix(b, row) || len(b) != len(row)+10 || b[len(b)-1] != 2 {
			t.Fatalf("delta %d is % x", i, b)
		}
	}
	if v.Len() != kuduRows {
		t.Fatalf("%d deltas", v.Len())
	}
}

// TestGoldenKuduBytes writes the same cells again. Where pages end is each writer's
// own choice, but in these files the choices agree, and so must all bytes.
func TestGoldenKuduBytes(t *testing.T) {
	same := map[string]bool{"int16_rle_none": true, "bool_rle_none": true, "bool_plain_none_null": true,
		"string_prefix_none": true, "varchar_prefix_none": true}
	for _, f := range kuduFiles(t) {
		if !same[f.name] {
			continue
		}
		delete(same, f.name)
		if got, _ := write(t, f.o, f.cells(t)); !bytes.Equal(got, f.bytes) {
			t.Errorf("%s differs:\n% x\n% x", f.name, got, f.bytes)
		}
	}
	if len(same) > 0 {
		t.Errorf("not found: %v", same)
	}
}
