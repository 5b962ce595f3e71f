package cfile

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sort"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// drawValue draws a cell of the kind; null is drawn elsewhere.
func drawValue(t *rapid.T, kind schema.Kind, narrow bool) schema.Value {
	switch kind {
	case schema.KindBool:
		return schema.BoolValue(rapid.Bool().Draw(t, "bool"))
	case schema.KindFloat32:
		return schema.Float32Value(math.Float32frombits(rapid.Uint32().Draw(t, "float")))
	case schema.KindFloat64:
		return schema.Float64Value(math.Float64frombits(rapid.Uint64().Draw(t, "double")))
	case schema.KindBytes:
		if narrow {
			return schema.StringValue(fmt.Sprint("word", rapid.IntRange(0, 9).Draw(t, "word")))
		}
		return schema.BytesValue(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"))
	}
	x := rapid.Int64().Draw(t, "int")
	if narrow {
		x = int64(rapid.IntRange(-3, 3).Draw(t, "small"))
	}
	if kind == schema.KindInt128 {
		return schema.Int128Value(schema.Int128{Lo: uint64(x) * 3, Hi: x})
	}
	unused := 64 - 8*kind.Width()
	return schema.IntValue(kind, x<<unused>>unused)
}

// drawCells draws runs of cells, repeated up to 300 times.
func drawCells(t *rapid.T, kind schema.Kind, nullable bool) *vector.Vector {
	v := vector.New(kind, 0)
	narrow := rapid.Bool().Draw(t, "narrow")
	for range rapid.IntRange(0, 60).Draw(t, "runs") {
		x := schema.Null
		if !nullable || rapid.IntRange(0, 3).Draw(t, "null") > 0 {
			x = drawValue(t, kind, narrow)
		}
		if err := v.AppendConst(x, rapid.SampledFrom([]int{1, 1, 1, 2, 7, 8, 9, 300}).Draw(t, "repeat")); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func sorted(v *vector.Vector) *vector.Vector {
	rows := make([]int32, v.Len())
	for i := range rows {
		rows[i] = int32(i)
	}
	sort.Slice(rows, func(a, b int) bool { return v.Value(int(rows[a])).Compare(v.Value(int(rows[b]))) < 0 })
	out := vector.New(v.Kind(), v.Len())
	for k, r := range rows {
		if k == 0 || v.Value(int(r)).Compare(v.Value(int(rows[k-1]))) != 0 {
			_ = out.Append(v.Value(int(r)))
		}
	}
	return out
}

// batches cuts v at random.
func batches(t *rapid.T, v *vector.Vector) (out []*vector.Vector) {
	for at := 0; at < v.Len(); {
		n := min(v.Len()-at, rapid.SampledFrom([]int{1, 63, 64, 100, 1000}).Draw(t, "batch"))
		out = append(out, v.Slice(at, at+n))
		at += n
	}
	return out
}

func TestPropertyRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ := rapid.SampledFrom(types).Draw(rt, "type")
		o := WriterOptions{Type: typ, Nullable: rapid.Bool().Draw(rt, "nullable"),
			Encoding:       rapid.SampledFrom(encodings(typ)).Draw(rt, "encoding"),
			Compression:    rapid.SampledFrom(codecs).Draw(rt, "codec"),
			BlockSize:      rapid.SampledFrom([]int{512, 1024, 262144}).Draw(rt, "block"),
			indexBlockSize: rapid.SampledFrom([]int{0, 64}).Draw(rt, "index")}
		o.ValueIndex = !o.Nullable && typ.KeyCapable() && rapid.Bool().Draw(rt, "value index")
		o.NoPositionalIndex = o.ValueIndex && rapid.Bool().Draw(rt, "no rows index")
		want := drawCells(rt, typ.Kind(), o.Nullable)
		if o.ValueIndex {
			want = sorted(want)
		}
		b, s := write(rt, o, batches(rt, want)...)
		r, _ := open(rt, b, ReaderOptions{})
		same(rt, "cells", readAll(rt, r), want)
		if err := r.VerifyZones(t.Context(), s.Zones); err != nil {
			rt.Fatal(err)
		}
		checkRows(rt, r, want)
		if o.ValueIndex {
			checkKeys(rt, r, want)
		}
	})
}

// checkRows reads ranges at random.
func checkRows(t *rapid.T, r *Reader, want *vector.Vector) {
	idx := loadIndex(t, r)
	for range 3 {
		from := rapid.IntRange(0, want.Len()).Draw(t, "from")
		to := rapid.IntRange(from, want.Len()).Draw(t, "to")
		got := vector.New(want.Kind(), 0)
		if err := r.AppendRange(context.Background(), idx, int64(from), int64(to), got); err != nil {
			t.Fatal(err)
		}
		same(t, "range", got, want.Slice(from, to))
	}
}

// checkKeys seeks at random and compares with a search in the sorted cells.
func checkKeys(t *rapid.T, r *Reader, want *vector.Vector) {
	for range 5 {
		x := drawValue(t, want.Kind(), rapid.Bool().Draw(t, "near"))
		if want.Len() > 0 && rapid.Bool().Draw(t, "stored") {
			x = want.Value(rapid.IntRange(0, want.Len()-1).Draw(t, "row"))
		}
		pos, exact := encoding.Search(want, x)
		row, ok, err := r.SeekKey(context.Background(), encoding.AppendKeyCell(nil, x, true))
		if err != nil || row != int64(pos) || ok != exact {
			t.Fatalf("seek: %d, %t, %v; want %d, %t", row, ok, err, pos, exact)
		}
	}
}

func TestConcurrentReaders(t *testing.T) {
	want := cells(t, schema.KindBytes, 5000, func(i int) (int64, bool) { return int64(i), false })
	b, _ := write(t, WriterOptions{Type: schema.String, BlockSize: 4096, ValueIndex: true}, want)
	r, _ := open(t, b, ReaderOptions{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			idx, err := r.LoadIndex(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			for k := range 40 {
				at := (g*997 + k*131) % 5000
				page := idx.PageOf(int64(at))
				v, err := r.ReadPage(context.Background(), idx, page)
				if err != nil || string(v.BytesAt(at-int(idx.Starts[page]))) != string(want.BytesAt(at)) {
					t.Errorf("row %d: %v", at, err)
				}
				if row, _, err := r.SeekKey(context.Background(), want.BytesAt(at)); err != nil || row != int64(at) {
					t.Errorf("key of row %d: %d, %v", at, row, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestPagesShareNoBuffer reads pages and sees that none changes when others are read.
func TestPagesShareNoBuffer(t *testing.T) {
	for _, typ := range types {
		for _, enc := range encodings(typ) {
			want := cells(t, typ.Kind(), 3000, func(i int) (int64, bool) { return int64(i), false })
			b, _ := write(t, WriterOptions{Type: typ, Encoding: enc, BlockSize: 1024, Compression: schema.CompressionNone}, want)
			r, _ := open(t, b, ReaderOptions{})
			idx := loadIndex(t, r)
			pages := make([]*vector.Vector, idx.Pages())
			for i := range pages {
				v, err := r.ReadPage(t.Context(), idx, i)
				if err != nil {
					t.Fatal(err)
				}
				pages[i] = v
			}
			for i, v := range pages {
				from, to := idx.PageRows(i)
				same(t, fmt.Sprint(typ, enc), v, want.Slice(int(from), int(to)))
			}
		}
	}
}

func TestReadPageAllocs(t *testing.T) {
	v := cells(t, schema.KindInt64, 10000, func(i int) (int64, bool) { return int64(i), false })
	b, _ := write(t, WriterOptions{Type: schema.Int64, Encoding: schema.EncodingPlain, BlockSize: 4096}, v)
	r, _ := open(t, b, ReaderOptions{})
	idx := loadIndex(t, r)
	n := testing.AllocsPerRun(100, func() {
		if _, err := r.ReadPage(context.Background(), idx, 3); err != nil {
			t.Fatal(err)
		}
	})
	// The vector, its memory, and the reader of the test's source.
	if n > 3 {
		t.Errorf("%v allocations a page", n)
	}
}

// TestDictionaryIsNotPinned sees that an idle reader holds no words and finds them again.
func TestDictionaryIsNotPinned(t *testing.T) {
	want := cells(t, schema.KindBytes, 100, func(i int) (int64, bool) { return int64(i % 10), false })
	b, _ := write(t, WriterOptions{Type: schema.String}, want)
	r, _ := open(t, b, ReaderOptions{})
	idx := loadIndex(t, r)
	page, err := r.ReadPage(t.Context(), idx, 0)
	if err != nil || page.Dict() == nil || page.Dict() != r.words.get() {
		t.Fatal("no shared words", err)
	}
	runtime.GC()
	if r.words.get() != page.Dict() {
		t.Error("words of a page in use were dropped")
	}
	runtime.KeepAlive(page)
	page = nil
	runtime.GC()
	if r.words.get() != nil {
		t.Error("an idle reader keeps its words")
	}
	if page, err = r.ReadPage(t.Context(), idx, 0); err != nil {
		t.Fatal(err)
	}
	same(t, "again", page, want)
}
