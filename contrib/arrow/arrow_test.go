package arrow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func store(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.arrow")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readAll reads a whole file, in batches of step rows.
func readAll(path string, step int) ([]schema.Column, []*vector.Vector, int, error) {
	r, err := OpenFile(path)
	if err != nil {
		return nil, nil, 0, err
	}
	defer r.Close()
	var out []*vector.Vector
	for i := range r.Columns() {
		out = append(out, vector.New(r.Columns()[i].Kind(), 0))
	}
	rows := 0
	for {
		b, err := r.Next(context.Background(), step)
		if err != nil {
			return nil, nil, 0, err
		}
		if b == nil {
			return r.Columns(), out, rows, nil
		}
		if b.Len() == 0 || b.Len() > step {
			return nil, nil, 0, fmt.Errorf("a batch of %d rows", b.Len())
		}
		for i := range out {
			if err := out[i].AppendRange(b.Column(i), 0, b.Len()); err != nil {
				return nil, nil, 0, err
			}
		}
		rows += b.Len()
	}
}

func write(t testing.TB, columns []schema.Column, vectors []*vector.Vector, rows, step int, o Options) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := NewWriter(&buf, columns, o)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < rows; from += step {
		to := min(from+step, rows)
		var part []*vector.Vector
		for _, v := range vectors {
			part = append(part, v.Slice(from, to))
		}
		if err := w.Write(vector.NewBatch(columns, part, to-from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// asRead returns the column that a written one is read as.
func asRead(c schema.Column) string {
	if c.Type == schema.Varchar {
		c.Type, c.Length = schema.String, 0
	}
	return c.String()
}

func roundTrip(t testing.TB, columns []schema.Column, vectors []*vector.Vector, rows, writeStep, readStep int, o Options) {
	t.Helper()
	got, cells, n, err := readAll(store(t, write(t, columns, vectors, rows, writeStep, o)), readStep)
	if err != nil {
		t.Fatal(err)
	}
	if n != rows || len(got) != len(columns) {
		t.Fatalf("%d rows of %d, %d columns of %d", n, rows, len(got), len(columns))
	}
	for i := range columns {
		if asRead(columns[i]) != got[i].String() {
			t.Fatalf("column %s read as %s", columns[i].String(), got[i].String())
		}
		testkit.RequireEqual(t, columns[i].Name, cells[i], vectors[i])
	}
}

func allOptions() []Options {
	var out []Options
	for _, c := range []schema.Compression{schema.CompressionDefault, schema.CompressionLZ4, schema.CompressionZstd} {
		out = append(out, Options{Compression: c}, Options{Compression: c, Stream: true})
	}
	return out
}

func TestRoundTripEveryType(t *testing.T) {
	testkit.CheckLeaks(t)
	s := testkit.FullSchema(t)
	vectors := testkit.RandomVectors(t, testkit.Rand(t), s, 3000)
	for _, o := range allOptions() {
		roundTrip(t, s.Columns(), vectors, 3000, 700, 333, o)
	}
}

func TestRoundTripRandom(t *testing.T) {
	testkit.CheckLeaks(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := testkit.Seeded(rapid.Uint64().Draw(rt, "seed"))
		s := testkit.RandomSchema(t, r)
		rows := rapid.IntRange(0, 300).Draw(rt, "rows")
		step := rapid.IntRange(1, 300)
		roundTrip(t, s.Columns(), testkit.RandomVectors(t, r, s, rows), rows, step.Draw(rt, "write"), step.Draw(rt, "read"),
			Options{Stream: rapid.Bool().Draw(rt, "stream")})
	})
}

func TestAllNullAndEmpty(t *testing.T) {
	for _, typ := range testkit.Types {
		c := testkit.Column("a", typ, true)
		v := vector.New(c.Kind(), 0)
		for range 70 {
			v.AppendNull()
		}
		roundTrip(t, []schema.Column{c}, []*vector.Vector{v}, 70, 70, 30, Options{})
		roundTrip(t, []schema.Column{c}, []*vector.Vector{vector.New(c.Kind(), 0)}, 0, 1, 30, Options{})
	}
}

// TestC61NoColumns: rows are counted where there are no columns.
func TestC61NoColumns(t *testing.T) {
	for _, o := range allOptions() {
		_, _, n, err := readAll(store(t, write(t, nil, nil, 100, 40, o)), 7)
		if err != nil || n != 100 {
			t.Fatal(n, err)
		}
	}
	rec, err := Record(vector.NewBatch(nil, nil, 5))
	if err != nil || rec.NumRows() != 5 {
		t.Fatal(err)
	}
}

func TestBigStrings(t *testing.T) {
	v := vector.New(schema.KindBytes, 0)
	for i := range 40 {
		if err := v.AppendBytes(bytes.Repeat([]byte{byte(i)}, 200_000+i)); err != nil {
			t.Fatal(err)
		}
	}
	roundTrip(t, []schema.Column{{Name: "a", Type: schema.Binary}}, []*vector.Vector{v}, 40, 7, 9, Options{})
}

// TestSharesMemory: a batch, its record, and the batch of that record have one memory.
func TestSharesMemory(t *testing.T) {
	ints := vector.FromFixed(schema.KindInt64, []int64{1, 2, 3}, nil)
	words := vector.FromBytes([]int32{0, 1, 3}, []byte("abb"), nil)
	valid := vector.Bitmap{5}
	codes := vector.FromCodes([]uint16{1, 0, 1}, words, valid)
	columns := []schema.Column{{Name: "i", Type: schema.Int64}, {Name: "d", Type: schema.String, Nullable: true}}
	rec, err := Record(vector.NewBatch(columns, []*vector.Vector{ints, codes}, 3))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	if got := fmt.Sprint(rec.Schema().Field(1).Type); got != "dictionary<values=utf8, indices=uint16, ordered=false>" {
		t.Fatal(got)
	}
	b, err := FromRecord(rec)
	if err != nil {
		t.Fatal(err)
	}
	if unsafe.SliceData(b.Column(0).Int64s()) != unsafe.SliceData(ints.Int64s()) ||
		unsafe.SliceData(vector.Codes[uint16](b.Column(1))) != unsafe.SliceData(vector.Codes[uint16](codes)) ||
		unsafe.SliceData(b.Column(1).Dict().Data()) != unsafe.SliceData(words.Data()) {
		t.Fatal("copied")
	}
	testkit.RequireEqual(t, "d", b.Column(1), codes)
}

// TestRecordOfSlices: offsets that do not begin at zero.
func TestRecordOfSlices(t *testing.T) {
	s := testkit.FullSchema(t)
	vectors := testkit.RandomVectors(t, testkit.Rand(t), s, 200)
	for i, v := range vectors {
		vectors[i] = v.Slice(17, 170)
	}
	rec, err := Record(vector.NewBatch(s.Columns(), vectors, 153))
	if err != nil {
		t.Fatal(err)
	}
	part := rec.NewSlice(5, 100)
	b, err := FromRecord(part)
	if err != nil || b.Len() != 95 {
		t.Fatal(err)
	}
	for i, v := range vectors {
		testkit.RequireEqual(t, s.Column(i).Name, b.Column(i), v.Slice(5, 100))
	}
}

func TestRecordRefuses(t *testing.T) {
	v := vector.New(schema.KindInt64, 1)
	v.AppendNull()
	columns := []schema.Column{{Name: "a", Type: schema.Int64}}
	for _, v := range []*vector.Vector{v, vector.FromFixed(schema.KindInt32, []int32{1}, nil)} {
		if _, err := Record(vector.NewBatch(columns, []*vector.Vector{v}, 1)); !errors.Is(err, minikudu.ErrInvalidArgument) {
			t.Fatal(err)
		}
	}
}

// column returns the only column of a record of one field, whose cells are given as
// JSON; the same of two slices of it must agree.
func column(t *testing.T, typ arrow.DataType, json string) (schema.Column, *vector.Vector, error) {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(json))
	if err != nil {
		t.Fatal(typ, err)
	}
	return columnOfArray(t, a)
}

func columnOfArray(t *testing.T, a arrow.Array) (schema.Column, *vector.Vector, error) {
	t.Helper()
	s := arrow.NewSchema([]arrow.Field{{Name: "x", Type: a.DataType(), Nullable: true}}, nil)
	rec := array.NewRecordBatch(s, []arrow.Array{a}, int64(a.Len()))
	b, err := FromRecord(rec)
	if err != nil {
		return schema.Column{}, nil, err
	}
	if a.Len() > 1 {
		tail, err := FromRecord(rec.NewSlice(1, int64(a.Len())))
		if err != nil {
			t.Fatal(err)
		}
		testkit.RequireEqual(t, "slice", tail.Column(0), b.Column(0).Slice(1, a.Len()))
	}
	return b.Schema()[0], b.Column(0), nil
}

// TestTypes reads arrays of every type that is not a column's own.
func TestTypes(t *testing.T) {
	f := func(typ arrow.DataType, json, definition, want string) {
		t.Helper()
		c, v, err := column(t, typ, json)
		if err != nil {
			t.Fatal(typ, err)
		}
		var got []string
		for i := range v.Len() {
			if x := v.Value(i); x.IsNull() {
				got = append(got, "null")
			} else {
				got = append(got, string(c.Format(nil, x)))
			}
		}
		if g := strings.Join(got, " "); c.String() != "x "+definition+" null" || g != want {
			t.Fatalf("%s: %s %s, want %s %s", typ, c.String(), g, definition, want)
		}
	}
	f(arrow.Null, `[null,null]`, "string", "null null")
	f(arrow.PrimitiveTypes.Uint8, `[255,null]`, "int16", "255 null")
	f(arrow.PrimitiveTypes.Uint16, `[65535,null]`, "int32", "65535 null")
	f(arrow.PrimitiveTypes.Uint32, `[4294967295]`, "int64", "4294967295")
	f(arrow.PrimitiveTypes.Uint64, `[9223372036854775807]`, "int64", "9223372036854775807")
	f(arrow.FixedWidthTypes.Boolean, `[true,null,false,true]`, "bool", "true null false true")
	f(arrow.FixedWidthTypes.Timestamp_s, `[-1]`, "unixtime_micros", "1969-12-31T23:59:59Z")
	f(arrow.FixedWidthTypes.Timestamp_ms, `[-1]`, "unixtime_micros", "1969-12-31T23:59:59.999Z")
	f(arrow.FixedWidthTypes.Timestamp_ns, `[-999]`, "unixtime_micros", "1969-12-31T23:59:59.999999Z")
	f(arrow.FixedWidthTypes.Date32, `["1969-12-31",null]`, "date", "1969-12-31 null")
	f(arrow.FixedWidthTypes.Date64, `["1969-12-31",null]`, "date", "1969-12-31 null")
	f(arrow.FixedWidthTypes.Time32s, `["00:01:00"]`, "int32", "60")
	f(arrow.FixedWidthTypes.Time64us, `["00:00:01"]`, "int64", "1000000")
	f(arrow.BinaryTypes.LargeString, `["a",null,"","bcd"]`, "string", "a null  bcd")
	f(arrow.BinaryTypes.StringView, `["a",null,"longer than twelve bytes"]`, "string", "a null longer than twelve bytes")
	f(arrow.BinaryTypes.LargeBinary, `["YQ==",null]`, "binary", "0x61 null")
	f(&arrow.FixedSizeBinaryType{ByteWidth: 2}, `["YWI=",null]`, "binary", "0x6162 null")
	f(&arrow.Decimal128Type{Precision: 5, Scale: 2}, `["-1.25",null]`, "decimal(5,2)", "-1.25 null")
	f(&arrow.Decimal128Type{Precision: 12, Scale: 2}, `["-1.25",null]`, "decimal(12,2)", "-1.25 null")
	f(&arrow.Decimal64Type{Precision: 5, Scale: 2}, `["-1.25",null]`, "decimal(5,2)", "-1.25 null")
	f(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
		`["a","b",null,"a"]`, "string", "a b null a")
	f(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint64, ValueType: arrow.BinaryTypes.String},
		`["a",null]`, "string", "a null")
	f(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.PrimitiveTypes.Int64},
		`[7,8,null,7]`, "int64", "7 8 null 7")
	f(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, `[null,null]`, "string", "null null")
}

func TestFloat16(t *testing.T) {
	b := array.NewFloat16Builder(memory.DefaultAllocator)
	b.Append(float16.New(-1.5))
	b.AppendNull()
	c, v, err := columnOfArray(t, b.NewArray())
	if err != nil || c.Type != schema.Float || v.Float32s()[0] != -1.5 || !v.IsNull(1) {
		t.Fatal(c, v, err)
	}
}

// TestUndefinedNulls: Arrow leaves the cells of nulls undefined.
func TestUndefinedNulls(t *testing.T) {
	valid := memory.NewBufferBytes([]byte{0b101})
	f := func(typ arrow.DataType, buffers ...[]byte) *vector.Vector {
		t.Helper()
		all := []*memory.Buffer{valid}
		for _, b := range buffers {
			all = append(all, memory.NewBufferBytes(b))
		}
		_, v, err := columnOfArray(t, array.MakeFromData(array.NewData(typ, 3, all, nil, 1, 0)))
		if err != nil || v.NullCount() != 1 {
			t.Fatal(err)
		}
		return v
	}
	if v := f(arrow.PrimitiveTypes.Int8, []byte{1, 77, 3}); v.Int8s()[1] != 0 {
		t.Fatal("null is not zero")
	}
	offsets := arrow.Int32Traits.CastToBytes([]int32{0, 1, 3, 4})
	if v := f(arrow.BinaryTypes.String, offsets, []byte("abcd")); len(v.BytesAt(1)) != 0 || v.StringAt(2) != "d" {
		t.Fatal("null is not empty")
	}
	if v := f(arrow.FixedWidthTypes.Boolean, []byte{7}); v.BoolAt(1) || !v.BoolAt(2) {
		t.Fatal("null is not false")
	}
}

func TestRefusedValues(t *testing.T) {
	f := func(typ arrow.DataType, json string) {
		t.Helper()
		if _, _, err := column(t, typ, json); !errors.Is(err, minikudu.ErrInvalidArgument) {
			t.Fatal(err)
		}
	}
	f(arrow.PrimitiveTypes.Uint64, `[9223372036854775808]`)
	f(arrow.FixedWidthTypes.Timestamp_s, `[9223372036854775807]`)
}

func TestUnsupported(t *testing.T) {
	for _, typ := range []arrow.DataType{arrow.ListOf(arrow.PrimitiveTypes.Int8), arrow.StructOf(),
		&arrow.Decimal256Type{Precision: 40}, &arrow.Decimal128Type{Precision: 5, Scale: -1}, arrow.FixedWidthTypes.MonthInterval,
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.ListOf(arrow.PrimitiveTypes.Int8)}} {
		_, err := Columns(arrow.NewSchema([]arrow.Field{{Name: "x", Type: typ}}, nil))
		var ue *UnsupportedError
		if !errors.As(err, &ue) || ue.Column != "x" || !errors.Is(err, minikudu.ErrNotSupported) {
			t.Fatal(typ, err)
		}
	}
}

// TestLibraryFile reads dictionary batches of the library's own writer.
func TestLibraryFile(t *testing.T) {
	typ := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}
	s := arrow.NewSchema([]arrow.Field{{Name: "d", Type: typ, Nullable: true}}, nil)
	var file, stream bytes.Buffer
	fw, err := ipc.NewFileWriter(&file, ipc.WithSchema(s), ipc.WithZstd())
	if err != nil {
		t.Fatal(err)
	}
	sw := ipc.NewWriter(&stream, ipc.WithSchema(s))
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(`["a","b",null,"a"]`))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		rec := array.NewRecordBatch(s, []arrow.Array{a}, 4)
		if err := errors.Join(fw.Write(rec), sw.Write(rec)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(fw.Close(), sw.Close()); err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{file.Bytes(), stream.Bytes()} {
		_, cells, n, err := readAll(store(t, b), 3)
		if err != nil || n != 12 || cells[0].StringAt(5) != "b" || !cells[0].IsNull(10) {
			t.Fatal(n, err)
		}
	}
	r, err := NewReader(&stream)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := r.Next(context.Background(), 10); err != nil || b.Len() != 4 || b.Column(0).Dict() == nil {
		t.Fatal(err)
	}
}

func TestExportImportTable(t *testing.T) {
	testkit.CheckLeaks(t)
	ctx := context.Background()
	db, err := minikudu.OpenInMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := testkit.FullSchema(t)
	vectors := testkit.RandomVectors(t, testkit.Rand(t), s, 2000)
	keys := vectors[0].Int64s()
	for i := range keys {
		keys[i] = int64(i)
	}
	a := newTable(t, db, "a", s.Columns())
	insert(t, db, a, s.Names(), vectors)
	var buf bytes.Buffer
	if n, err := Export(ctx, a, minikudu.Query{Order: minikudu.KeyOrder}, &buf, Options{}); err != nil || n != 2000 {
		t.Fatal(n, err)
	}
	columns, cells, _, err := readAll(store(t, buf.Bytes()), 300)
	if err != nil {
		t.Fatal(err)
	}
	b := newTable(t, db, "b", columns)
	insert(t, db, b, s.Names(), cells)
	at := 0
	for rec, err := range Scan(ctx, b, minikudu.Query{Order: minikudu.KeyOrder}) {
		if err != nil {
			t.Fatal(err)
		}
		batch, err := FromRecord(rec)
		if err != nil {
			t.Fatal(err)
		}
		for i := range vectors {
			testkit.RequireEqual(t, s.Column(i).Name, batch.Column(i), vectors[i].Slice(at, at+batch.Len()))
		}
		at += batch.Len()
	}
	if at != 2000 {
		t.Fatal(at)
	}
	countNoColumns(t, b)
}

// countNoColumns: a scan of no columns still counts rows, as records.
func countNoColumns(t *testing.T, table *minikudu.Table) {
	t.Helper()
	n := int64(0)
	for rec, err := range Scan(context.Background(), table, minikudu.Query{Columns: []string{}}) {
		if err != nil {
			t.Fatal(err)
		}
		n += rec.NumRows()
	}
	if n != 2000 {
		t.Fatal(n)
	}
	for _, err := range Scan(context.Background(), table, minikudu.Query{Columns: []string{"none"}}) {
		if err == nil {
			t.Fatal("an unknown column was read")
		}
	}
}

func newTable(t *testing.T, db *minikudu.DB, name string, columns []schema.Column) *minikudu.Table {
	t.Helper()
	table, err := db.CreateTable(context.Background(), name, minikudu.TableSpec{Columns: columns, Key: []string{"k"}})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func insert(t *testing.T, db *minikudu.DB, table *minikudu.Table, names []string, vectors []*vector.Vector) {
	t.Helper()
	var b minikudu.WriteBatch
	if err := b.InsertColumns(table, names, vectors); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Commit(context.Background(), &b, nil); err != nil {
		t.Fatal(err)
	}
}

func smallFile(t testing.TB, o Options) []byte {
	s := testkit.FullSchema(t)
	return write(t, s.Columns(), testkit.RandomVectors(t, testkit.Seeded(1), s, 20), 20, 10, o)
}

func TestTruncatedFiles(t *testing.T) {
	testkit.CheckLeaks(t)
	file := smallFile(t, Options{})
	path := filepath.Join(t.TempDir(), "f")
	for n := 0; n < len(file); n += 1 + n/50 {
		if err := os.WriteFile(path, file[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := readAll(path, 7); !errors.Is(err, minikudu.ErrCorruption) || !strings.Contains(err.Error(), path) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if _, err := OpenFile(path + "none"); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// TestDamagedFiles changes bytes all over a file: it is read, wrongly at worst, or
// refused.
func TestDamagedFiles(t *testing.T) {
	testkit.CheckLeaks(t)
	path := filepath.Join(t.TempDir(), "f")
	for _, o := range []Options{{}, {Stream: true}} {
		file := tinyFile(t, o)
		for i := 0; i < len(file); i += 3 {
			bad := bytes.Clone(file)
			bad[i] ^= 0x41
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, _, _ = readAll(path, 7)
		}
	}
}

// tinyFile is a file for mutations, small so that they find something to change.
func tinyFile(t testing.TB, o Options) []byte {
	columns := []schema.Column{testkit.Column("a", schema.Int64, true), testkit.Column("b", schema.String, false),
		testkit.Column("c", schema.Decimal128, true), testkit.Column("d", schema.Bool, false)}
	s, err := schema.New(columns, []string{"b"}, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, s.Columns(), testkit.RandomVectors(t, testkit.Seeded(1), s, 5), 5, 5, o)
}

func FuzzReader(f *testing.F) {
	f.Add(tinyFile(f, Options{}))
	f.Add(tinyFile(f, Options{Stream: true, Compression: schema.CompressionZstd}))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, _, _ = readAll(path, 7)
	})
}
