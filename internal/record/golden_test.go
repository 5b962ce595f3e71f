package record

import (
	"encoding/hex"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// golden is the example of docs/format/record.md: three rows put into tablet 7, with
// columns host string (id 0), ts int64 (1), usage double null (2), ok bool (3).
const golden = "01" + // parts
	"07 01 01" + // tablet, schema version, sections
	"01 00 03 04" + // PUT, no flags, rows, columns
	"00 09 00 02 02 00 6131 6232" + // host: "a1", "b2", ""
	"01 05 00 0100000000000000 0200000000000000 ffffffffffffffff" + // ts: 1, 2, -1
	"02 08 01 05 0000000000000840 0000000000000000 000000000000f0bf" + // usage: 3, null, -1
	"03 01 00 03" // ok: true, true, false

func goldenParts(t *testing.T) []Part {
	host, usage := vector.New(schema.KindBytes, 3), vector.New(schema.KindFloat64, 3)
	for _, s := range []string{"a1", "b2", ""} {
		if err := host.AppendBytes([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []schema.Value{schema.Float64Value(3), schema.Null, schema.Float64Value(-1)} {
		if err := usage.Append(v); err != nil {
			t.Fatal(err)
		}
	}
	columns := []*vector.Vector{host, vector.FromFixed(schema.KindInt64, []int64{1, 2, -1}, nil), usage,
		vector.FromBits(vector.Bitmap{0b011}, 3, nil)}
	return []Part{{Tablet: 7, SchemaVersion: 1, Sections: []Section{{Kind: Put, Rows: 3,
		IDs: []schema.ColumnID{0, 1, 2, 3}, Columns: columns}}}}
}

func TestGolden(t *testing.T) {
	got := hex.EncodeToString(Append(nil, goldenParts(t)))
	want := ""
	for _, c := range golden {
		if c != ' ' {
			want += string(c)
		}
	}
	if got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	raw, err := hex.DecodeString(want)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := Decode(raw)
	if err != nil || len(parts) != 1 || len(parts[0].Sections) != 1 {
		t.Fatalf("%+v, %v", parts, err)
	}
	decoded := parts[0].Sections[0]
	for i, v := range goldenParts(t)[0].Sections[0].Columns {
		if !vector.Equal(decoded.Columns[i], v) {
			t.Fatalf("column %d differs", i)
		}
	}
}
