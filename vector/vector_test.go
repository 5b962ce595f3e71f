package vector

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"pgregory.net/rapid"
)

var kinds = []schema.Kind{schema.KindBool, schema.KindInt8, schema.KindInt16, schema.KindInt32, schema.KindInt64,
	schema.KindInt128, schema.KindFloat32, schema.KindFloat64, schema.KindBytes}

// drawCell draws a value of the kind, often one that others equal.
func drawCell(t *rapid.T, kind schema.Kind) schema.Value {
	switch kind {
	case schema.KindBool:
		return schema.BoolValue(rapid.Bool().Draw(t, "bool"))
	case schema.KindInt128:
		return schema.Int128Value(schema.Int128{Lo: rapid.Uint64().Draw(t, "lo"), Hi: rapid.Int64Range(-2, 2).Draw(t, "hi")})
	case schema.KindFloat32:
		return schema.Float32Value(rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 1.5, -7,
			float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}).Draw(t, "float"))
	case schema.KindFloat64:
		return schema.Float64Value(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1.5, -7,
			math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(t, "float"))
	case schema.KindBytes:
		return schema.StringValue(rapid.SampledFrom([]string{"", "a", "b", "abc", "a\x00", "\xff\xff", "longer than the others"}).Draw(t, "bytes"))
	}
	return schema.IntValue(kind, rapid.Int64().Draw(t, "int")>>(64-8*kind.Width()))
}

func drawCells(t *rapid.T, kind schema.Kind) []schema.Value {
	n := rapid.SampledFrom([]int{0, 1, 2, 63, 64, 65, 130}).Draw(t, "length")
	nulls := rapid.SampledFrom([]int{0, 1, 50, 100}).Draw(t, "nulls")
	cells := make([]schema.Value, n)
	for i := range cells {
		if rapid.IntRange(1, 100).Draw(t, "null") > nulls {
			cells[i] = drawCell(t, kind)
		}
	}
	return cells
}

type errorer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func build(t errorer, kind schema.Kind, cells []schema.Value) *Vector {
	t.Helper()
	v := New(kind, 0)
	for _, x := range cells {
		if err := v.Append(x); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return v
}

// buildDict is build in dictionary form, with codes of the given width and one word
// that no cell uses.
func buildDict(t errorer, cells []schema.Value, width int) *Vector {
	t.Helper()
	words, codes := []schema.Value{schema.StringValue("\xff\xffunused")}, make([]uint32, len(cells))
	var valid Bitmap
	for i, x := range cells {
		if x.IsNull() {
			if valid == nil {
				valid = NewBitmap(len(cells))
				valid.SetRange(0, len(cells))
			}
			valid.Clear(i)
			continue
		}
		at := slices.Index(words, x)
		if at < 0 {
			at, words = len(words), append(words, x)
		}
		codes[i] = uint32(at)
	}
	dict := build(t, schema.KindBytes, words)
	switch width {
	case 1:
		return FromCodes(narrow[uint8](codes), dict, valid)
	case 2:
		return FromCodes(narrow[uint16](codes), dict, valid)
	}
	return FromCodes(codes, dict, valid)
}

func narrow[T uint8 | uint16](codes []uint32) []T {
	out := make([]T, len(codes))
	for i, c := range codes {
		out[i] = T(c)
	}
	return out
}

// drawVector draws a vector and the cells that it holds, in either form.
func drawVector(t *rapid.T, kind schema.Kind) (*Vector, []schema.Value) {
	cells := drawCells(t, kind)
	if width := rapid.SampledFrom([]int{0, 1, 2, 4}).Draw(t, "dict"); width > 0 && kind == schema.KindBytes {
		return buildDict(t, cells, width), cells
	}
	return build(t, kind, cells), cells
}

// check compares a vector with its cells and checks the invariants.
func check(t errorer, v *Vector, want []schema.Value) {
	t.Helper()
	if v.Len() != len(want) {
		t.Fatalf("length %d, want %d", v.Len(), len(want))
	}
	nulls := 0
	for i, x := range want {
		if got := v.Value(i); got != x {
			t.Fatalf("cell %d is %v, want %v", i, got, x)
		}
		if x.IsNull() {
			nulls++
		}
	}
	if v.NullCount() != nulls {
		t.Fatalf("%d nulls, want %d", v.NullCount(), nulls)
	}
	bitmaps := []Bitmap{v.valid}
	if v.kind == schema.KindBool {
		bitmaps = append(bitmaps, v.words)
	}
	for _, b := range bitmaps {
		if b == nil {
			continue
		}
		if len(b) != Words(v.length) || b.Next(v.length) >= 0 {
			t.Fatalf("I1 or I4: %d words for %d cells, bit %d", len(b), v.length, b.Next(v.length))
		}
	}
	if v.kind == schema.KindBytes && v.dict == nil && (len(v.offsets) != v.length+1 || !slices.IsSorted(v.offsets)) {
		t.Fatalf("I3: %d offsets for %d cells", len(v.offsets), v.length)
	}
}

func forKinds(t *testing.T, f func(t *rapid.T, kind schema.Kind)) {
	for _, kind := range kinds {
		t.Run(kind.String(), rapid.MakeCheck(func(t *rapid.T) { f(t, kind) }))
	}
}

func TestAppendSliceGather(t *testing.T) {
	forKinds(t, func(t *rapid.T, kind schema.Kind) {
		v, cells := drawVector(t, kind)
		check(t, v, cells)
		from := rapid.IntRange(0, len(cells)).Draw(t, "from")
		to := rapid.IntRange(from, len(cells)).Draw(t, "to")
		s := v.Slice(from, to)
		check(t, s, cells[from:to])
		check(t, s.Clone(), cells[from:to])

		out, outCells := build(t, kind, drawCells(t, kind)), []schema.Value(nil)
		for i := range out.Len() {
			outCells = append(outCells, out.Value(i))
		}
		for range 3 {
			if err := out.AppendRange(s, 0, s.Len()); err != nil {
				t.Fatal(err)
			}
			outCells = append(outCells, cells[from:to]...)
			var rows []int32
			if len(cells) > 0 {
				rows = rapid.SliceOfN(rapid.Int32Range(0, int32(len(cells)-1)), 0, 70).Draw(t, "rows")
			}
			if err := out.AppendRows(v, rows); err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				if err := out.AppendFrom(v, int(r)); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				for _, r := range rows {
					outCells = append(outCells, cells[r])
				}
			}
			check(t, out, outCells)
		}
		n := rapid.IntRange(0, out.Len()).Draw(t, "n")
		out.Truncate(n)
		check(t, out, outCells[:n])
		for _, x := range cells {
			if err := out.Append(x); err != nil {
				t.Fatal(err)
			}
		}
		check(t, out, append(outCells[:n:n], cells...))
		check(t, v, cells)
	})
}

func TestResetForAnyKind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := New(schema.KindBytes, 0)
		for range 5 {
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			v.Reset(kind)
			cells := drawCells(t, kind)
			for _, x := range cells {
				if err := v.Append(x); err != nil {
					t.Fatal(err)
				}
			}
			check(t, v, cells)
		}
	})
}

func TestEqualAndFlatten(t *testing.T) {
	forKinds(t, func(t *rapid.T, kind schema.Kind) {
		v, cells := drawVector(t, kind)
		plain, err := v.Flatten()
		if err != nil {
			t.Fatal(err)
		}
		if plain.Dict() != nil || !Equal(v, plain) || !Equal(plain, v.Clone()) {
			t.Fatalf("a copy differs")
		}
		if len(cells) == 0 {
			return
		}
		i := rapid.IntRange(0, len(cells)-1).Draw(t, "i")
		x := drawCell(t, kind)
		if rapid.Bool().Draw(t, "null") {
			x = schema.Null
		}
		other := slices.Clone(cells)
		other[i] = x
		if Equal(v, build(t, kind, other)) != (x == cells[i]) {
			t.Fatalf("%v for %v at %d", x, cells[i], i)
		}
		if Equal(v, build(t, kind, append(other, x))) {
			t.Fatalf("lengths differ")
		}
	})
}

// Zero, false and "" stay values at every position of every size.
func TestC04ZeroIsNotNull(t *testing.T) {
	zero := map[schema.Kind]schema.Value{schema.KindBool: schema.BoolValue(false), schema.KindInt128: schema.Int128Value(schema.Int128{}),
		schema.KindFloat32: schema.Float32Value(0), schema.KindFloat64: schema.Float64Value(0), schema.KindBytes: schema.StringValue("")}
	for _, kind := range kinds {
		x, ok := zero[kind]
		if !ok {
			x = schema.IntValue(kind, 0)
		}
		for _, size := range []int{1, 63, 64, 65, 1025} {
			t.Run(fmt.Sprintf("%s/%d", kind, size), func(t *testing.T) {
				cells := make([]schema.Value, size)
				for _, at := range []int{0, 30, 62, 63, 64, size - 1} {
					if at < size {
						cells[at] = x
					}
				}
				v := build(t, kind, cells)
				check(t, v, cells)
				w := New(kind, 0)
				if err := w.AppendRange(v, 0, size); err != nil {
					t.Fatal(err)
				}
				check(t, w, cells)
				if kind == schema.KindBytes {
					check(t, buildDict(t, cells, 2), cells)
				}
			})
		}
	}
}

func TestTooLargeChangesNothing(t *testing.T) {
	big := &Vector{kind: schema.KindBytes, length: 2, data: make([]byte, 3), offsets: []int32{0, 2, 3}}
	defer func(n int) { maxData = n }(maxData)
	maxData = 100
	full := FromBytes([]int32{0, 98}, make([]byte, 98), nil)
	if err := full.AppendRange(big, 0, 2); err != ErrTooLarge || full.Len() != 1 || len(full.offsets) != 2 {
		t.Errorf("range: %v, %d", err, full.Len())
	}
	if err := full.AppendRows(big, []int32{0, 1}); err != ErrTooLarge || full.Len() != 1 || len(full.offsets) != 2 || len(full.data) != 98 {
		t.Errorf("rows: %v, %d, %d", err, full.Len(), len(full.data))
	}
	if err := full.AppendConst(schema.StringValue("ab"), 2); err != ErrTooLarge || full.Len() != 1 {
		t.Errorf("const: %v, %d", err, full.Len())
	}
}

func TestBatch(t *testing.T) {
	cols, err := schema.ParseColumns("i int32, s string null, d decimal(5,2)")
	if err != nil {
		t.Fatal(err)
	}
	words := build(t, schema.KindBytes, []schema.Value{schema.StringValue("x"), schema.StringValue("y")})
	valid := NewBitmap(3)
	valid.SetRange(0, 2)
	codes := []uint8{1, 0, 0}
	ints := []int32{1, 2, 3}
	b := NewBatch(cols, []*Vector{FromFixed(schema.KindInt32, ints, nil), FromCodes(codes, words, valid),
		FromFixed(schema.KindInt32, []int32{150, -5, 0}, nil)}, 3)
	kept := b.Detach()
	ints[0], codes[0] = 99, 0
	want := [][]any{{int64(1), "y", "1.50"}, {int64(2), "x", "-0.05"}, {int64(3), nil, "0.00"}}
	for i := range want {
		if got := kept.Row(i); !slices.Equal(got, want[i]) {
			t.Errorf("row %d is %v, want %v", i, got, want[i])
		}
	}
	if b.Row(0)[0] != int64(99) || b.Len() != 3 || b.NumColumns() != 3 || b.Find("d") != 2 || b.ColumnByName("x") != nil {
		t.Errorf("%v", b.Row(0))
	}
	s := kept.ColumnByName("s")
	if kept.Column(0).Int32s()[2] != 3 || s.StringAt(0) != "y" || s.StringAt(2) != "" {
		t.Error("accessors")
	}
	mustPanic(t, func() { kept.Column(0).Int64s() })
	mustPanic(t, func() { b.Reset(nil, 0) })
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	src := FromFixed(schema.KindInt64, make([]int64, 1000), nil)
	var out Vector
	rows := []int32{5, 1, 999}
	run := func() {
		out.Reset(schema.KindInt64)
		if out.AppendRange(src, 0, 1000) != nil || out.AppendRows(src, rows) != nil {
			t.Fatal("append")
		}
	}
	run()
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppendRows(b *testing.B) {
	src := FromFixed(schema.KindInt64, make([]int64, 32768), nil)
	var rows []int32
	for i := int32(0); i < 32768; i += 2 {
		rows = append(rows, i)
	}
	var out Vector
	b.SetBytes(int64(len(rows)) * 8)
	b.ReportAllocs()
	for b.Loop() {
		out.Reset(schema.KindInt64)
		if err := out.AppendRows(src, rows); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTypedAccessors(t *testing.T) {
	bits := FromBits(Bitmap{2}, 2, nil)
	if bits.BoolAt(0) || !bits.BoolAt(1) {
		t.Error("bool")
	}
	ok := FromFixed(schema.KindInt8, []int8{1}, nil).Int8s()[0] == 1 &&
		FromFixed(schema.KindInt16, []int16{1}, nil).Int16s()[0] == 1 &&
		FromFixed(schema.KindInt64, []int64{1}, nil).Int64s()[0] == 1 &&
		FromFixed(schema.KindInt128, []schema.Int128{{Lo: 1}}, nil).Int128s()[0].Lo == 1 &&
		FromFixed(schema.KindFloat32, []float32{1}, nil).Float32s()[0] == 1 &&
		FromFixed(schema.KindFloat64, []float64{1}, nil).Float64s()[0] == 1
	if !ok {
		t.Error("numbers")
	}
	mustPanic(t, func() { FromFixed(schema.KindFloat64, []float64{1}, nil).Int64s() })
	mustPanic(t, func() { FromFixed(schema.KindInt64, []int32{1}, nil) })
	mustPanic(t, func() { Values[int32](FromFixed(schema.KindInt64, []int64{1}, nil)) })
}

func TestC06NullsOfADictionaryWithoutWords(t *testing.T) {
	v := FromCodes(make([]uint8, 3), New(schema.KindBytes, 0), NewBitmap(3))
	for i := range 3 {
		if len(v.BytesAt(i)) != 0 || v.StringAt(i) != "" || !v.Value(i).IsNull() {
			t.Errorf("null %d is %q", i, v.BytesAt(i))
		}
	}
	plain := New(schema.KindBytes, 0)
	if err := plain.AppendRange(v, 0, 3); err != nil || plain.NullCount() != 3 || !Equal(plain, v) {
		t.Errorf("copied: %d nulls, %v", plain.NullCount(), err)
	}
}
