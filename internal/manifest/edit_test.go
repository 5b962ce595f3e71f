package manifest

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
	"pgregory.net/rapid"
)

// fill sets every exported field below v to something that is not zero, so that a
// field which the encoding forgets shows.
func fill(r *rand.Rand, v reflect.Value) {
	if v.Type() == reflect.TypeFor[schema.Value]() {
		v.Set(reflect.ValueOf(randomValue(r)))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Slice:
		n := 1 + r.IntN(3)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + r.IntN(3) {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key)
			fill(r, elem)
			v.SetMapIndex(key, elem)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprintf("s%x", r.Uint32()))
	case reflect.Int, reflect.Int32:
		v.SetInt(1 + r.Int64N(1<<(1+r.IntN(30))))
	case reflect.Int64:
		v.SetInt(1 + r.Int64N(1<<(1+r.IntN(60))))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1 + r.Uint64()>>(65-v.Type().Bits()+r.IntN(4)))
	default:
		panic(v.Type())
	}
}

func randomValue(r *rand.Rand) schema.Value {
	switch k := schema.Kind(1 + r.IntN(int(schema.KindBytes))); k {
	case schema.KindBool:
		return schema.BoolValue(true)
	case schema.KindInt128:
		return schema.Int128Value(schema.Int128{Lo: r.Uint64(), Hi: int64(r.Uint64())})
	case schema.KindFloat32:
		return schema.Float32Value(r.Float32())
	case schema.KindFloat64:
		return schema.Float64Value(r.Float64())
	case schema.KindBytes:
		return schema.StringValue(fmt.Sprint(r.Uint32()))
	default:
		return schema.IntValue(k, int64(r.IntN(100))-50)
	}
}

func TestEditRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRand(rapid.Uint64().Draw(t, "seed"))
		e := &Edit{}
		fill(r, reflect.ValueOf(e).Elem())
		got := &Edit{}
		if err := got.Decode(e.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, e) {
			t.Fatalf("\n got %+v\nwant %+v", got, e)
		}
	})
}

// TestZeroRoundTrip keeps nil, empty and zero apart where they differ.
func TestZeroRoundTrip(t *testing.T) {
	e := &Edit{
		Log: &LogState{}, AddTablets: []*Tablet{{Lower: []byte{}}}, AddFiles: []File{{HasChecksum: true}},
		AddRowSets:    []TabletRowSet{{0, &rowset.Meta{MinKey: []byte{}, Sections: []rowset.Section{{Column: -1}, {Column: 0}}}}},
		RemoveTables:  []TableID{0},
		RemovePins:    []string{""},
		UpdateTablets: []TabletUpdate{{}},
	}
	got := &Edit{}
	must(t, got.Decode(e.AppendTo(nil)))
	if !reflect.DeepEqual(got, e) {
		t.Fatalf("\n got %+v\nwant %+v", got, e)
	}
}

// TestGolden holds the example of docs/format/manifest.md.
func TestGolden(t *testing.T) {
	f := vfs.NewMem()
	m, err := Create(f, "/", binfmt.UUID{0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80, 0x90, 0xa0, 0xb0, 0xc0, 0xd0, 0xe0, 0xf0, 1})
	must(t, err)
	must(t, m.Apply(ctx, &Edit{Pins: []Pin{{"backup", 4096}}}))
	must(t, m.Close())
	want := "6d696e696b75647501000100000000000000000010203040506070809" +
		"0a0b0c0d0e0f001010000000000000000000000000000000000000000000000e6639e8d" + // header
		"0e0000000100000059b38b94ac074b460301010501010701010901010b000000" + // part
		"010000000200000014977cb01cbce02c01000000000000000000000000000000" + // end
		"0000000004000000000000003b53aaaa" + // mark
		"0e0000000300000085f0ab9eb78bb639210c01066261636b7570030280200000" + // edit
		"0000000004000000000000007e72b624" + // mark
		"00000000"
	if got := hex.EncodeToString([]byte(read(t, f, Name(1)))[:len(want)/2]); got != want {
		t.Fatalf("\n got %s\nwant %s", got, want)
	}
}

func TestSnapshotMakesTheState(t *testing.T) {
	for i, want := range states(t, longEdits()) {
		got := newState(want.Store, want.Format)
		for _, e := range want.snapshot() {
			decoded := &Edit{}
			must(t, decoded.Decode(e.AppendTo(nil)))
			must(t, got.apply(decoded))
		}
		if !sameState(got, want) {
			t.Fatalf("state %d", i)
		}
	}
}

func TestSchemaOfVersion(t *testing.T) {
	table := testTable(1)
	s, err := table.Current().Schema(table.Limits)
	must(t, err)
	if s.NumKey() != 1 || s.Len() != 2 || s.Column(1).Default.Str() != "x" || table.Version(1) == nil || table.Version(9) != nil {
		t.Fatal(s)
	}
	if (&Table{}).Current() != nil {
		t.Fatal("a table without versions has a current one")
	}
}

func FuzzEdit(f *testing.F) {
	for _, e := range longEdits()[:8] {
		f.Add(e.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := &Edit{}
		if e.Decode(b) != nil {
			return
		}
		again := &Edit{}
		if err := again.Decode(e.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		newState(testStore, 1).apply(e)
	})
}

func FuzzFile(f *testing.F) {
	contents, _ := sample(f)
	f.Add([]byte(contents)[:600])
	f.Add([]byte(contents)[:160])
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &parser{b: b, path: "m", seed: seed(1)}
		p.parse(1)
	})
}

// bigManifest has n rowsets of 20 sections each.
func bigManifest(b *testing.B, n int) (*vfs.Mem, *Manifest) {
	f, m := newManifest(b)
	must(b, m.Apply(ctx, testEdits()[0]))
	e := &Edit{}
	for i := range n {
		file := rowset.FileNum(i + 1)
		meta := &rowset.Meta{ID: rowset.ID(i + 1), Rows: 1 << 20, MinKey: make([]byte, 24), MaxKey: make([]byte, 24)}
		for c := range 20 {
			meta.Sections = append(meta.Sections, rowset.Section{File: file, Offset: int64(c) << 20, Length: 1 << 20, Kind: 1, Column: schema.ColumnID(c)})
		}
		e.AddFiles = append(e.AddFiles, File{Num: file, Size: 20 << 20})
		e.AddRowSets = append(e.AddRowSets, TabletRowSet{1, meta})
	}
	must(b, m.Apply(ctx, e))
	return f, m
}

func BenchmarkApply(b *testing.B) {
	_, m := bigManifest(b, 5000)
	defer m.Close()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := rowset.FileNum(10_000 + i)
		must(b, m.Apply(ctx, &Edit{AddFiles: []File{{Num: n, Size: 100}},
			AddRowSets: []TabletRowSet{{1, &rowset.Meta{ID: rowset.ID(n), Sections: []rowset.Section{{File: n, Length: 100}}}}}}))
	}
}

// BenchmarkApplySynced includes the sync of a real disk.
func BenchmarkApplySynced(b *testing.B) {
	m, err := Create(vfs.OS, b.TempDir(), testStore)
	must(b, err)
	defer m.Close()
	for b.Loop() {
		must(b, m.Apply(ctx, &Edit{Pins: []Pin{{"p", 7}}}))
	}
}

func BenchmarkOpen(b *testing.B) {
	f, m := bigManifest(b, 5000)
	b.SetBytes(m.Stats().Bytes)
	must(b, m.Close())
	b.ReportAllocs()
	for b.Loop() {
		_, err := Open(f, "/", true)
		must(b, err)
	}
}
