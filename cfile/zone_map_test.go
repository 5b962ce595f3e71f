package cfile

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

func TestZoneMapRoundTrip(t *testing.T) {
	for _, typ := range types {
		for name, null := range map[string]func(i int) bool{"some": func(i int) bool { return i%7 == 0 },
			"all": func(int) bool { return true }, "none": func(int) bool { return false }} {
			v := cells(t, typ.Kind(), 3000, func(i int) (int64, bool) { return int64(i - 1500), null(i) })
			b, s := write(t, WriterOptions{Type: typ, Nullable: true, BlockSize: 1024}, v)
			enc := s.Zones.AppendTo([]byte("before"))[6:]
			got, err := DecodeZoneMap(enc, typ.Kind())
			if err != nil || !reflect.DeepEqual(got, s.Zones) {
				t.Fatalf("%s %s: %v\ngot  %+v\nwant %+v", typ, name, err, got, s.Zones)
			}
			r, _ := open(t, b, ReaderOptions{})
			if err := r.VerifyZones(t.Context(), got); err != nil {
				t.Fatal(err)
			}
			file, ok, err := r.FileZone()
			if !ok || err != nil || !reflect.DeepEqual(file, s.Zones.File) {
				t.Fatalf("%s: file zone %+v, %t, %v", typ, file, ok, err)
			}
			var all vector.Zone
			all.Add(v)
			all.Shorten(maxBound)
			if !reflect.DeepEqual(file, all) {
				t.Fatalf("%s %s: file zone %+v, want %+v", typ, name, file, all)
			}
		}
	}
}

func TestZoneMapFloats(t *testing.T) {
	nan := math.NaN()
	for _, typ := range []schema.Type{schema.Float, schema.Double} {
		for name, v := range map[string]*vector.Vector{
			"NaN only": vec(t, typ.Kind(), nan, nan), "NaN": vec(t, typ.Kind(), nan, 1.5, nil, -2.5),
			"zeroes": vec(t, typ.Kind(), math.Copysign(0, -1), 0.0), "infinite": vec(t, typ.Kind(), math.Inf(1), math.Inf(-1)),
		} {
			b, s := write(t, WriterOptions{Type: typ, Nullable: true}, v)
			got, err := DecodeZoneMap(s.Zones.AppendTo(nil), typ.Kind())
			if err != nil || got.File != s.Zones.File || got.File.HasNaN != strings.HasPrefix(name, "NaN") {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			r, _ := open(t, b, ReaderOptions{})
			if err := r.VerifyZones(t.Context(), got); err != nil {
				t.Error(name, err)
			}
		}
	}
}

func TestC12LongBounds(t *testing.T) {
	ff := strings.Repeat("\xff", 40)
	shared := strings.Repeat("s", 64)
	for name, v := range map[string]*vector.Vector{
		"shared prefix": vec(t, schema.KindBytes, shared+"a", shared+"b", shared), "all ff": vec(t, schema.KindBytes, ff+"\xaa", "x"),
		"8 ff": vec(t, schema.KindBytes, strings.Repeat("\xff", 8)+"\xaa"), "ff within": vec(t, schema.KindBytes, "a"+ff, "b"), "empty": vec(t, schema.KindBytes, ""),
	} {
		b, s := write(t, WriterOptions{Type: schema.Binary}, v)
		z := s.Zones.File
		if len(z.Min.Str()) > maxBound || len(z.Max.Str()) > maxBound {
			t.Errorf("%s: bounds of %d and %d bytes", name, len(z.Min.Str()), len(z.Max.Str()))
		}
		for i := range v.Len() {
			if x := string(v.BytesAt(i)); z.Min.Str() > x || !z.Max.IsNull() && z.Max.Str() < x {
				t.Errorf("%s: cell %d lies outside %+v", name, i, z)
			}
		}
		if z.Max.IsNull() != (name == "all ff") {
			t.Errorf("%s: upper bound %+v", name, z.Max)
		}
		r, _ := open(t, b, ReaderOptions{})
		got, err := DecodeZoneMap(s.Zones.AppendTo(nil), schema.KindBytes)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.VerifyZones(t.Context(), got); err != nil {
			t.Error(name, err)
		}
	}
}

func TestVerifyFindsWrongZones(t *testing.T) {
	v := cells(t, schema.KindInt32, 1000, func(i int) (int64, bool) { return int64(i), i%2 == 0 })
	b, s := write(t, WriterOptions{Type: schema.Int32, Nullable: true, BlockSize: 512}, v)
	r, _ := open(t, b, ReaderOptions{})
	for name, change := range map[string]func(z *ZoneMap){
		"min":       func(z *ZoneMap) { z.Pages[1].Min = schema.IntValue(schema.KindInt32, 500) },
		"max":       func(z *ZoneMap) { z.Pages[1].Max = schema.IntValue(schema.KindInt32, 0) },
		"exact":     func(z *ZoneMap) { z.Pages[1].Max = schema.IntValue(schema.KindInt32, 1<<30) },
		"nulls":     func(z *ZoneMap) { z.Pages[1].Nulls++ },
		"rows":      func(z *ZoneMap) { z.Pages[1].Rows++ },
		"NaN":       func(z *ZoneMap) { z.Pages[1].HasNaN = true },
		"file":      func(z *ZoneMap) { z.File.Max = schema.IntValue(schema.KindInt32, 3) },
		"one short": func(z *ZoneMap) { z.Pages = z.Pages[1:] },
	} {
		z := ZoneMap{Kind: s.Zones.Kind, File: s.Zones.File, Pages: append([]vector.Zone(nil), s.Zones.Pages...)}
		change(&z)
		wantCorruption(t, name, r.VerifyZones(t.Context(), &z))
	}
}

func TestItem17ZoneMapFlips(t *testing.T) {
	_, s := write(t, WriterOptions{Type: schema.String}, vec(t, schema.KindBytes, "a", "b"))
	b := s.Zones.AppendTo(nil)
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		if _, err := DecodeZoneMap(b, schema.KindBytes); !errors.Is(err, vfs.ErrCorruption) {
			t.Fatalf("bit %d: %v", bit, err)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	for n := range len(b) {
		if _, err := DecodeZoneMap(b[:n], schema.KindBytes); !errors.Is(err, vfs.ErrCorruption) {
			t.Fatalf("cut to %d: %v", n, err)
		}
	}
	if _, err := DecodeZoneMap(b, schema.KindInt32); !errors.Is(err, vfs.ErrCorruption) {
		t.Errorf("other kind: %v", err)
	}
}

func TestGoldenZoneMap(t *testing.T) {
	_, s := write(t, WriterOptions{Type: schema.Int32, Nullable: true}, vec(t, schema.KindInt32, 5, nil, -2))
	want := unhex(t, "6d6b7a6f 6e656d31 04000000 01000000 03 01 0b feffffff 05000000 03 01 0b feffffff 05000000 32682fb5")
	got := s.Zones.AppendTo(nil)
	if !bytes.Equal(got, want) {
		t.Errorf("got % x", got)
	}
}

func FuzzZoneMap(f *testing.F) {
	for _, typ := range types {
		v := cells(f, typ.Kind(), 100, func(i int) (int64, bool) { return int64(i), i%3 == 0 })
		_, s := write(f, WriterOptions{Type: typ, Nullable: true, BlockSize: 512}, v)
		b := s.Zones.AppendTo(nil)
		f.Add(b[:len(b)-checksumSize], uint8(typ.Kind()))
	}
	f.Fuzz(func(t *testing.T, body []byte, kind uint8) {
		if len(body) < zoneHeader+zoneMinSize {
			return
		}
		z, err := decodeZones(body, schema.Kind(kind))
		if err != nil {
			if !errors.Is(err, vfs.ErrCorruption) {
				t.Fatal(err)
			}
			return
		}
		again, err := DecodeZoneMap(z.AppendTo(nil), schema.Kind(kind))
		if err != nil || !reflect.DeepEqual(z, again) {
			t.Fatalf("%v\n%+v\n%+v", err, z, again)
		}
	})
}
