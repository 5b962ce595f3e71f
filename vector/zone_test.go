package vector

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"pgregory.net/rapid"
)

// slowZone computes a zone cell by cell.
func slowZone(cells []schema.Value) Zone {
	z := Zone{Rows: int64(len(cells)), Exact: len(cells) > 0}
	for _, x := range cells {
		switch {
		case x.IsNull():
			z.Nulls++
			continue
		case x.IsNaN():
			z.HasNaN = true
			continue
		}
		if z.Min.IsNull() || x.Compare(z.Min) < 0 {
			z.Min = x
		}
		if z.Max.IsNull() || x.Compare(z.Max) > 0 {
			z.Max = x
		}
	}
	return z
}

func sameZone(a, b Zone) bool {
	return a.Rows == b.Rows && a.Nulls == b.Nulls && a.HasNaN == b.HasNaN && a.Exact == b.Exact &&
		a.Min.Compare(b.Min) == 0 && a.Max.Compare(b.Max) == 0
}

func TestZoneAddAndMerge(t *testing.T) {
	forKinds(t, func(t *rapid.T, kind schema.Kind) {
		var all []schema.Value
		var z, merged Zone
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			v, cells := drawVector(t, kind)
			var part Zone
			part.Add(v)
			if want := slowZone(cells); !sameZone(part, want) {
				t.Fatalf("%+v, want %+v", part, want)
			}
			all = append(all, cells...)
			z.Add(v)
			merged.Merge(part)
		}
		if want := slowZone(all); !sameZone(z, want) || !sameZone(merged, want) {
			t.Fatalf("%+v and %+v, want %+v", z, merged, want)
		}
		for _, x := range []schema.Value{z.Min, z.Max} {
			if x.Kind().IsFloat() && x.Float() == 0 && math.Signbit(x.Float()) {
				t.Fatal("a bound of -0")
			}
		}
	})
}

func TestZoneMergeWithUnknownBound(t *testing.T) {
	unknown := Zone{Rows: 1, Min: schema.StringValue("\xff"), Max: schema.StringValue(strings.Repeat("\xff", 40)), Exact: true}
	unknown.Shorten(8)
	nulls := Zone{Rows: 2, Nulls: 2, Exact: true}
	known := Zone{Rows: 1, Min: schema.StringValue("a"), Max: schema.StringValue("b"), Exact: true}
	z := nulls
	z.Merge(unknown)
	z.Merge(nulls)
	z.Merge(known)
	if !z.Max.IsNull() || z.Min.Str() != "a" || z.Exact || z.Rows != 6 || z.Nulls != 4 {
		t.Errorf("%+v", z)
	}
	z = known
	z.Merge(nulls)
	if !z.Exact || z.Max.Str() != "b" {
		t.Errorf("%+v", z)
	}
}

// Shortened bounds still enclose every cell, or are unknown.
func TestC12ShortenedBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]byte{0, 'a', 0xfe, 0xff})
		size := rapid.SampledFrom([]int{1, 8, 16, 32}).Draw(t, "size")
		z := Zone{}
		var cells []schema.Value
		for range rapid.IntRange(1, 4).Draw(t, "cells") {
			b := append([]byte(strings.Repeat("p", rapid.SampledFrom([]int{0, 64}).Draw(t, "prefix"))), rapid.SliceOfN(letters, 0, 40).Draw(t, "tail")...)
			cells = append(cells, schema.BytesValue(b))
		}
		z.Add(build(t, schema.KindBytes, cells))
		before := z
		z.Shorten(size)
		for _, x := range cells {
			if x.Compare(z.Min) < 0 || !z.Max.IsNull() && x.Compare(z.Max) > 0 {
				t.Fatalf("%q outside %q..%q", x.Str(), z.Min.Str(), z.Max.Str())
			}
		}
		if len(z.Min.Str()) > size || len(z.Max.Str()) > size || z.Exact != (z == before) {
			t.Fatalf("%+v", z)
		}
	})
	z := Zone{Rows: 1, Exact: true, Min: schema.StringValue(strings.Repeat("\xff", 8) + "\xaa"), Max: schema.StringValue(strings.Repeat("\xff", 8) + "\xaa")}
	z.Shorten(8)
	if !z.Max.IsNull() || z.Exact || z.Empty() {
		t.Errorf("%+v", z)
	}
}

func benchmarkZone(b *testing.B, v *Vector, bytes int) {
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		var z Zone
		z.Add(v)
	}
}

func BenchmarkZoneInt64(b *testing.B) {
	vals := make([]int64, 32768)
	for i := range vals {
		vals[i] = rand.Int64()
	}
	benchmarkZone(b, FromFixed(schema.KindInt64, vals, nil), len(vals)*8)
}

func BenchmarkZoneInt64Nulls(b *testing.B) {
	v := New(schema.KindInt64, 32768)
	for i := range 32768 {
		if i%10 == 3 {
			v.AppendNull()
		} else {
			AppendFixed(v, rand.Int64())
		}
	}
	benchmarkZone(b, v, 32768*8)
}

func BenchmarkZoneFloat64(b *testing.B) {
	vals := make([]float64, 32768)
	for i := range vals {
		vals[i] = rand.Float64()
	}
	benchmarkZone(b, FromFixed(schema.KindFloat64, vals, nil), len(vals)*8)
}

func BenchmarkZoneBytes(b *testing.B) {
	v := New(schema.KindBytes, 32768)
	for range 32768 {
		if err := v.AppendBytes([]byte(strings.Repeat("k", 8) + string(rune('a'+rand.IntN(26))) + "tail")); err != nil {
			b.Fatal(err)
		}
	}
	benchmarkZone(b, v, len(v.Data()))
}

func BenchmarkZoneDict(b *testing.B) {
	codes := make([]uint16, 32768)
	dict := New(schema.KindBytes, 0)
	for i := range 1000 {
		if err := dict.AppendBytes([]byte{byte(i), byte(i >> 8)}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range codes {
		codes[i] = uint16(rand.IntN(1000))
	}
	benchmarkZone(b, FromCodes(codes, dict, nil), len(codes)*2)
}

// Long runs without nulls, around words and at the end.
func TestZoneOfLongRuns(t *testing.T) {
	for _, kind := range kinds {
		for _, nulls := range [][]int{{}, {0}, {5, 900}, {63, 64}, {1024}, {128, 129, 500}} {
			cells := make([]schema.Value, 1025)
			for i := range cells {
				n := int64(i*37%251 - 100)
				switch kind {
				case schema.KindBool:
					cells[i] = schema.BoolValue(true)
				case schema.KindInt128:
					cells[i] = schema.Int128Value(schema.Int128From(n))
				case schema.KindFloat32:
					cells[i] = schema.Float32Value(float32(n))
				case schema.KindFloat64:
					cells[i] = schema.Float64Value(float64(n))
				case schema.KindBytes:
					cells[i] = schema.StringValue(string(rune('a' + i%26)))
				default:
					cells[i] = schema.IntValue(kind, n%100)
				}
			}
			for _, i := range nulls {
				cells[i] = schema.Null
			}
			forms := []*Vector{build(t, kind, cells)}
			if kind == schema.KindBytes {
				forms = append(forms, buildDict(t, cells, 1), buildDict(t, cells, 4))
			}
			for _, v := range forms {
				var z Zone
				z.Add(v)
				if want := slowZone(cells); !sameZone(z, want) {
					t.Errorf("%s, nulls %v: %+v, want %+v", kind, nulls, z, want)
				}
			}
		}
	}
}
