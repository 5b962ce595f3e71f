package parquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"pgregory.net/rapid"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// store writes bytes to a new file.
func store(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.parquet")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readAll reads a whole file, in batches of step rows.
func readAll(path string, step int) ([]schema.Column, []*vector.Vector, int64, error) {
	r, err := Open(path)
	if err != nil {
		return nil, nil, 0, err
	}
	defer r.Close()
	var out []*vector.Vector
	for i := range r.Columns() {
		out = append(out, vector.New(r.Columns()[i].Kind(), 0))
	}
	rows := int64(0)
	for {
		b, err := r.Next(context.Background(), step)
		if err != nil {
			return nil, nil, 0, err
		}
		if b == nil {
			break
		}
		if b.Len() == 0 || b.Len() > step {
			return nil, nil, 0, fmt.Errorf("a batch of %d rows", b.Len())
		}
		for i := range out {
			if err := out[i].AppendRange(b.Column(i), 0, b.Len()); err != nil {
				return nil, nil, 0, err
			}
		}
		rows += int64(b.Len())
	}
	if rows != r.Rows() {
		return nil, nil, 0, fmt.Errorf("%d rows of %d", rows, r.Rows())
	}
	return r.Columns(), out, rows, nil
}

// write returns a file of the vectors, written in batches of step rows.
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
	if n != int64(rows) || len(got) != len(columns) {
		t.Fatalf("%d rows of %d, %d columns of %d", n, rows, len(got), len(columns))
	}
	for i := range columns {
		if asRead(columns[i]) != got[i].String() {
			t.Fatalf("column %s read as %s", columns[i].String(), got[i].String())
		}
		testkit.RequireEqual(t, columns[i].Name, cells[i], vectors[i])
	}
}

func TestRoundTripEveryType(t *testing.T) {
	testkit.CheckLeaks(t)
	s := testkit.FullSchema(t)
	vectors := testkit.RandomVectors(t, testkit.Rand(t), s, 3000)
	codecs := []schema.Compression{schema.CompressionDefault, schema.CompressionNone, schema.CompressionSnappy,
		schema.CompressionZlib, schema.CompressionZstd}
	for _, c := range codecs {
		t.Run(c.String(), func(t *testing.T) {
			roundTrip(t, s.Columns(), vectors, 3000, 700, 999, Options{Compression: c, RowGroupRows: 1100})
		})
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
			Options{RowGroupRows: rapid.IntRange(0, 200).Draw(rt, "group")})
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

func TestBigStrings(t *testing.T) {
	v := vector.New(schema.KindBytes, 0)
	for i := range 40 {
		if err := v.AppendBytes(bytes.Repeat([]byte{byte(i)}, 200_000+i)); err != nil {
			t.Fatal(err)
		}
	}
	roundTrip(t, []schema.Column{{Name: "a", Type: schema.Binary}}, []*vector.Vector{v}, 40, 7, 9, Options{})
}

// TestC61NoColumns: rows without columns cannot be kept, so they are refused.
func TestC61NoColumns(t *testing.T) {
	if _, err := NewWriter(&bytes.Buffer{}, nil, Options{}); !errors.Is(err, minikudu.ErrInvalidArgument) {
		t.Fatal(err)
	}
}

// TestDictionaryForm: repeated strings arrive as codes, and a chunk that changes to
// plain form in the middle of a batch is read all the same.
func TestDictionaryForm(t *testing.T) {
	v := vector.New(schema.KindBytes, 0)
	for i := range 6000 {
		text := fmt.Sprint("word", i%10)
		if i >= 3000 {
			text = fmt.Sprint(strings.Repeat("x", 2000), i)
		}
		if err := v.AppendBytes([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	columns := []schema.Column{{Name: "a", Type: schema.String}}
	path := store(t, write(t, columns, []*vector.Vector{v}, 6000, 500, Options{}))
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := r.Next(context.Background(), 100)
	if err != nil || b.Column(0).Dict() == nil {
		t.Fatal(b, err)
	}
	kept := b.Detach()
	if _, err := r.Next(context.Background(), 100); err != nil {
		t.Fatal(err)
	}
	if kept.Column(0).StringAt(99) != "word9" {
		t.Fatal("a detached batch changed")
	}
	for _, step := range []int{100, 2999, 6000} {
		_, cells, _, err := readAll(path, step)
		if err != nil {
			t.Fatal(err)
		}
		testkit.RequireEqual(t, "a", cells[0], v)
	}
}

type libraryRow struct {
	U8    uint8            `parquet:"u8"`
	U16   uint16           `parquet:"u16"`
	U32   uint32           `parquet:"u32,dict"`
	U64   uint64           `parquet:"u64"`
	I8    int8             `parquet:"i8"`
	I16   int16            `parquet:"i16,optional"`
	I32   int32            `parquet:"i32,delta"`
	I64   int64            `parquet:"i64,delta,optional"`
	F     float32          `parquet:"f,split"`
	D     float64          `parquet:"d,dict,optional"`
	B     bool             `parquet:"b"`
	S     string           `parquet:"s,delta"`
	E     string           `parquet:"e,enum,dict,optional"`
	J     string           `parquet:"j,json,plain"`
	Raw   []byte           `parquet:"raw,plain"`
	Fixed [5]byte          `parquet:"fixed,dict"`
	ID    [16]byte         `parquet:"id,uuid"`
	Milli int64            `parquet:"milli,timestamp(millisecond)"`
	Micro int64            `parquet:"micro,timestamp(microsecond)"`
	Nano  int64            `parquet:"nano,timestamp(nanosecond),dict"`
	Day   int32            `parquet:"day,date"`
	Dec9  int32            `parquet:"dec9,decimal(2:9)"`
	Dec18 int64            `parquet:"dec18,decimal(3:18),dict"`
	Old   deprecated.Int96 `parquet:"old"`
}

func libraryRows() []libraryRow {
	var rows []libraryRow
	for i := range 1000 {
		n := int64(i)
		row := libraryRow{U8: uint8(i), U16: uint16(i * 77), U32: math.MaxUint32 - uint32(i), U64: uint64(i), I8: int8(i),
			I16: int16(i % 3), I32: int32(-i), I64: n % 2, F: float32(i) / 4, D: float64(i%5) / 4, B: i%3 == 0,
			S: fmt.Sprint("s", i), E: fmt.Sprint(i % 2), J: "{}", Raw: []byte{byte(i)}, Milli: -n, Micro: -n, Nano: -n,
			Day: int32(i), Dec9: int32(-i), Dec18: n * 1e12, Old: deprecated.Int96{uint32(i) * 1000, 0, 2440588 - 1}}
		row.Fixed[4], row.ID[15] = byte(i), byte(i)
		if i%2 == 0 {
			row.E = ""
		}
		rows = append(rows, row)
	}
	return rows
}

// TestLibraryFiles reads what the library's own writer makes of Go structs, in both
// page versions and all its codecs.
func TestLibraryFiles(t *testing.T) {
	testkit.CheckLeaks(t)
	rows := libraryRows()
	for _, version := range []int{1, 2} {
		for _, codec := range []pq.WriterOption{pq.Compression(&pq.Snappy), pq.Compression(&pq.Zstd), pq.Compression(&pq.Gzip),
			pq.Compression(&pq.Brotli), pq.Compression(&pq.Uncompressed)} {
			var buf bytes.Buffer
			err := pq.Write(&buf, rows, codec, pq.DataPageVersion(version), pq.PageBufferSize(700), pq.MaxRowsPerRowGroup(300))
			if err != nil {
				t.Fatal(err)
			}
			checkLibraryFile(t, store(t, buf.Bytes()), rows)
		}
	}
}

const libraryColumns = "u8 int16, u16 int32, u32 int64, u64 int64, i8 int8, i16 int16 null, i32 int32, i64 int64 null, " +
	"f float, d double null, b bool, s string, e string null, j string, raw binary, fixed binary, id binary, " +
	"milli unixtime_micros, micro unixtime_micros, nano unixtime_micros, day date, dec9 decimal(9,2), dec18 decimal(18,3), " +
	"old unixtime_micros"

func checkLibraryFile(t *testing.T, path string, rows []libraryRow) {
	t.Helper()
	columns, cells, n, err := readAll(path, 64)
	if err != nil || n != int64(len(rows)) {
		t.Fatal(n, err)
	}
	var types []string
	for i := range columns {
		types = append(types, columns[i].String())
	}
	if got := strings.Join(types, ", "); got != libraryColumns {
		t.Fatalf("columns\n%s, want\n%s", got, libraryColumns)
	}
	batch := vector.NewBatch(columns, cells, len(rows))
	day := int64(24 * 60 * 60 * 1_000_000)
	for i, r := range rows {
		want := []any{int64(r.U8), int64(r.U16), int64(r.U32), int64(r.U64), int64(r.I8), orNull(int64(r.I16)), int64(r.I32),
			orNull(r.I64), r.F, orNull(r.D), r.B, r.S, orNull(r.E), r.J, string(r.Raw), string(r.Fixed[:]), string(r.ID[:]),
			r.Milli * 1000, r.Micro, int64(math.Floor(float64(r.Nano) / 1000)), int64(r.Day), int64(r.Dec9), r.Dec18,
			int64(i) - day}
		for c := range want {
			v := batch.Column(c)
			if got := native(v, i); got != want[c] {
				t.Fatalf("row %d, %s: %v, want %v", i, columns[c].Name, got, want[c])
			}
		}
	}
}

func orNull[T comparable](x T) any {
	if x == *new(T) {
		return nil
	}
	return x
}

func native(v *vector.Vector, i int) any {
	switch x := v.Value(i); {
	case x.IsNull():
		return nil
	case v.Kind() == schema.KindBytes:
		return x.Str()
	case v.Kind() == schema.KindBool:
		return x.Bool()
	case v.Kind() == schema.KindFloat32:
		return x.Float32()
	case v.Kind() == schema.KindFloat64:
		return x.Float()
	default:
		return x.Int()
	}
}

func TestUnsignedOutOfRange(t *testing.T) {
	var buf bytes.Buffer
	if err := pq.Write(&buf, []struct{ U uint64 }{{1}, {1 << 63}}); err != nil {
		t.Fatal(err)
	}
	_, _, _, err := readAll(store(t, buf.Bytes()), 10)
	var fe *FileError
	if !errors.As(err, &fe) || fe.Column != "U" || fe.RowGroup != 0 {
		t.Fatal(err)
	}
}

func TestUnsupportedColumns(t *testing.T) {
	f := func(column string, write func(*bytes.Buffer) error) {
		t.Helper()
		var buf bytes.Buffer
		if err := write(&buf); err != nil {
			t.Fatal(err)
		}
		_, err := Open(store(t, buf.Bytes()))
		var ue *UnsupportedError
		if !errors.As(err, &ue) || ue.Column != column || !errors.Is(err, minikudu.ErrNotSupported) {
			t.Fatal(err)
		}
	}
	f("L", func(b *bytes.Buffer) error { return pq.Write(b, []struct{ L []int64 }{{[]int64{1}}}) })
	f("G", func(b *bytes.Buffer) error { return pq.Write(b, []struct{ G struct{ X int64 } }{{}}) })
	f("X", func(b *bytes.Buffer) error { return pq.Write(b, []struct{ X int64 }{{1}}, pq.Compression(&pq.Lz4Raw)) })
	f("M", func(b *bytes.Buffer) error { return pq.Write(b, []struct{ M map[string]int64 }{{}}) })
}

func TestDecimalsOfBytes(t *testing.T) {
	f := func(b []byte, want string) {
		t.Helper()
		n, ok := int128Of(b)
		if got := n.String(); !ok && want != "" || ok && got != want {
			t.Fatalf("%x: %s, want %q", b, got, want)
		}
	}
	f(nil, "0")
	f([]byte{0xff}, "-1")
	f([]byte{0x7f, 0xff}, "32767")
	f([]byte{0x80, 0}, "-32768")
	f(append(make([]byte, 9), bytes.Repeat([]byte{0x7f}, 15)...), "662007668488958101406994104531779455")
	f(bytes.Repeat([]byte{0xff}, 40), "-1")
	f(append([]byte{1}, make([]byte, 16)...), "")
	f(append([]byte{0}, bytes.Repeat([]byte{0xff}, 16)...), "")
	f(append([]byte{0xff}, make([]byte, 16)...), "")
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
	path := filepath.Join(t.TempDir(), "a.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Export(ctx, a, minikudu.Query{Order: minikudu.KeyOrder}, f, Options{})
	if err != nil || n != 2000 {
		t.Fatal(n, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	columns, cells, _, err := readAll(path, 300)
	if err != nil {
		t.Fatal(err)
	}
	b := newTable(t, db, "b", columns)
	insert(t, db, b, s.Names(), cells)
	at := 0
	for batch, err := range b.Scan(ctx, minikudu.Query{Order: minikudu.KeyOrder}) {
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

func TestExportUnknownColumn(t *testing.T) {
	db, err := minikudu.OpenInMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	table := newTable(t, db, "a", []schema.Column{{Name: "k", Type: schema.Int64}})
	for _, q := range []minikudu.Query{{Columns: []string{"x"}}, {Columns: []string{}}} {
		if _, err := Export(context.Background(), table, q, &bytes.Buffer{}, Options{}); !errors.Is(err, minikudu.ErrInvalidArgument) {
			t.Fatal(err)
		}
	}
}

func TestWriterRefusesLZ4(t *testing.T) {
	_, err := NewWriter(&bytes.Buffer{}, []schema.Column{{Name: "a", Type: schema.Int64}}, Options{Compression: schema.CompressionLZ4})
	if !errors.Is(err, minikudu.ErrNotSupported) {
		t.Fatal(err)
	}
}

func TestWriterRefuses(t *testing.T) {
	f := func(v *vector.Vector) {
		t.Helper()
		columns := []schema.Column{{Name: "a", Type: schema.Int64}}
		w, err := NewWriter(&bytes.Buffer{}, columns, Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Write(vector.NewBatch(columns, []*vector.Vector{v}, v.Len()))
		if !errors.Is(err, minikudu.ErrInvalidArgument) || w.Close() != err {
			t.Fatal(err)
		}
	}
	f(vector.FromFixed(schema.KindInt32, []int32{1}, nil))
	v := vector.New(schema.KindInt64, 1)
	v.AppendNull()
	f(v)
}

func smallFile(t testing.TB) []byte {
	s := testkit.FullSchema(t)
	return write(t, s.Columns(), testkit.RandomVectors(t, testkit.Seeded(1), s, 20), 20, 20, Options{RowGroupRows: 10})
}

func TestTruncatedFiles(t *testing.T) {
	testkit.CheckLeaks(t)
	file := smallFile(t)
	dir := t.TempDir()
	for n := 0; n < len(file); n += 1 + n/50 {
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, file[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := readAll(path, 7); !errors.Is(err, minikudu.ErrCorruption) || !strings.Contains(err.Error(), path) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// TestDamagedFiles changes bytes all over a file: it is read, wrongly at worst, or
// refused.
func TestDamagedFiles(t *testing.T) {
	testkit.CheckLeaks(t)
	file := tinyFile(t, Options{RowGroupRows: 3})
	path := filepath.Join(t.TempDir(), "f")
	for i := 0; i < len(file); i += 3 {
		bad := bytes.Clone(file)
		bad[i] ^= 0x41
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, _, _ = readAll(path, 7)
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
	f.Add(tinyFile(f, Options{Compression: schema.CompressionNone}))
	f.Add(tinyFile(f, Options{RowGroupRows: 3}))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, _, _ = readAll(path, 7)
	})
}

func TestNextAfterCancel(t *testing.T) {
	r, err := Open(store(t, smallFile(t)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Next(ctx, 5); err != context.Canceled {
		t.Fatal(err)
	}
	if b, err := r.Next(context.Background(), 5); err != nil || b.Len() != 5 {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(context.Background(), 5); !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
}
