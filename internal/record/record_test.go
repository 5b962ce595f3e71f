package record

import (
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

func drawVector(r *rapid.T, kind schema.Kind, rows int) *vector.Vector {
	v := vector.New(kind, rows)
	nullable := rapid.Bool().Draw(r, "nullable")
	for range rows {
		if nullable && rapid.Bool().Draw(r, "null") {
			v.AppendNull()
			continue
		}
		var x schema.Value
		switch {
		case kind == schema.KindBool:
			x = schema.BoolValue(rapid.Bool().Draw(r, "b"))
		case kind == schema.KindBytes:
			x = schema.StringValue(rapid.String().Draw(r, "s"))
		case kind == schema.KindInt128:
			x = schema.Int128Value(schema.Int128{Lo: rapid.Uint64().Draw(r, "lo"), Hi: rapid.Int64().Draw(r, "hi")})
		case kind == schema.KindFloat32:
			x = schema.Float32Value(rapid.Float32().Draw(r, "f"))
		case kind == schema.KindFloat64:
			x = schema.Float64Value(rapid.Float64().Draw(r, "f"))
		default:
			shift := 64 - 8*kind.Width()
			x = schema.IntValue(kind, rapid.Int64().Draw(r, "i")<<shift>>shift)
		}
		if err := v.Append(x); err != nil {
			r.Fatal(err)
		}
	}
	return v
}

func drawParts(r *rapid.T) []Part {
	parts := make([]Part, rapid.IntRange(0, 3).Draw(r, "parts"))
	for i := range parts {
		parts[i] = Part{Tablet: rapid.Uint64().Draw(r, "tablet"), SchemaVersion: rapid.Uint32().Draw(r, "version")}
		for range rapid.IntRange(0, 2).Draw(r, "sections") {
			s := Section{Kind: Put, Rows: rapid.IntRange(0, 70).Draw(r, "rows")}
			for c := range rapid.IntRange(1, 4).Draw(r, "columns") {
				kind := schema.Kind(rapid.IntRange(int(schema.KindBool), int(schema.KindBytes)).Draw(r, "kind"))
				s.IDs = append(s.IDs, schema.ColumnID(c*7))
				s.Columns = append(s.Columns, drawVector(r, kind, s.Rows))
			}
			parts[i].Sections = append(parts[i].Sections, s)
		}
	}
	return parts
}

func TestPayloadRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		parts := drawParts(r)
		got, err := Decode(Append(nil, parts))
		if err != nil {
			r.Fatal(err)
		}
		if len(got) != len(parts) {
			r.Fatalf("%d parts, want %d", len(got), len(parts))
		}
		for i := range parts {
			if got[i].Tablet != parts[i].Tablet || got[i].SchemaVersion != parts[i].SchemaVersion || len(got[i].Sections) != len(parts[i].Sections) {
				r.Fatalf("part %d: %+v", i, got[i])
			}
			for j := range parts[i].Sections {
				compareSections(r, &got[i].Sections[j], &parts[i].Sections[j])
			}
		}
	})
}

func compareSections(r *rapid.T, got, want *Section) {
	if got.Kind != want.Kind || got.Rows != want.Rows || !reflect.DeepEqual(got.IDs, want.IDs) {
		r.Fatalf("section %+v, want %+v", got, want)
	}
	for c := range want.Columns {
		for i := range want.Rows {
			g, w := got.Columns[c].Value(i), want.Columns[c].Value(i)
			if g.Compare(w) != 0 {
				r.Fatalf("column %d row %d: %v, want %v", c, i, g, w)
			}
		}
	}
}

func sample() []byte {
	ints, text := vector.New(schema.KindInt32, 3), vector.New(schema.KindBytes, 3)
	for i := range 3 {
		vector.AppendFixed(ints, int32(i))
		_ = text.AppendBytes([]byte("abc"[:i]))
	}
	text.AppendNull()
	ints.AppendNull()
	return Append(nil, []Part{{Tablet: 5, SchemaVersion: 1, Sections: []Section{{Kind: Put, Rows: 4,
		IDs: []schema.ColumnID{0, 1}, Columns: []*vector.Vector{ints, text}}}}})
}

func TestTruncatedPayload(t *testing.T) {
	b := sample()
	for n := range len(b) {
		if _, err := Decode(b[:n]); !errors.Is(err, vfs.ErrCorruption) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	if _, err := Decode(append(b, 0)); !errors.Is(err, vfs.ErrCorruption) {
		t.Fatal("a trailing byte was not noticed")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sample())
	f.Add([]byte{1, 1, 1, 1, 1, 0, 255, 255, 255, 255, 15, 1, 0, 9, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, err := Decode(b)
		if err != nil {
			return
		}
		if _, err := Decode(Append(nil, parts)); err != nil {
			t.Fatalf("what was decoded does not encode: %v", err)
		}
	})
}
