package testkit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Types lists every column type.
var Types = []schema.Type{schema.Int8, schema.Int16, schema.Int32, schema.Int64, schema.String, schema.Bool, schema.Float,
	schema.Double, schema.Binary, schema.UnixtimeMicros, schema.Decimal32, schema.Decimal64, schema.Decimal128,
	schema.Varchar, schema.Date}

// Column returns a column of the type, with parameters where it needs some.
func Column(name string, t schema.Type, nullable bool) schema.Column {
	c := schema.Column{Name: name, Type: t, Nullable: nullable}
	switch t {
	case schema.Decimal32:
		c.Precision, c.Scale = 9, 2
	case schema.Decimal64:
		c.Precision, c.Scale = 18, 4
	case schema.Decimal128:
		c.Precision, c.Scale = 38, 10
	case schema.Varchar:
		c.Length = 20
	}
	return c
}

// FullSchema returns a schema with an int64 key "k" and two columns of every type, one
// that may be null.
func FullSchema(t testing.TB) *schema.Schema {
	t.Helper()
	cols := []schema.Column{Column("k", schema.Int64, false)}
	for _, typ := range Types {
		cols = append(cols, Column(fmt.Sprintf("c%d", typ), typ, false), Column(fmt.Sprintf("n%d", typ), typ, true))
	}
	return newSchema(t, cols, 1)
}

// RandomSchema returns a schema of one to three key columns and up to eight others.
func RandomSchema(t testing.TB, r *rand.Rand) *schema.Schema {
	t.Helper()
	var cols []schema.Column
	keys := 1 + r.IntN(3)
	for len(cols) < keys {
		if typ := Types[r.IntN(len(Types))]; typ.KeyCapable() {
			cols = append(cols, Column(fmt.Sprintf("k%d", len(cols)), typ, false))
		}
	}
	for i := range r.IntN(9) {
		cols = append(cols, Column(fmt.Sprintf("v%d", i), Types[r.IntN(len(Types))], r.IntN(2) == 0))
	}
	return newSchema(t, cols, keys)
}

func newSchema(t testing.TB, cols []schema.Column, keys int) *schema.Schema {
	t.Helper()
	var names []string
	for i := range cols {
		cols[i].ID = schema.ColumnID(i)
		if i < keys {
			names = append(names, cols[i].Name)
		}
	}
	s, err := schema.New(cols, names, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// RandomValue returns a value that fits the column: often an extreme or a repeated one,
// sometimes null where that is allowed.
func RandomValue(r *rand.Rand, c *schema.Column) schema.Value {
	if c.Nullable && r.IntN(4) == 0 {
		return schema.Null
	}
	k := c.Kind()
	switch {
	case k == schema.KindBool:
		return schema.BoolValue(r.IntN(2) == 0)
	case k == schema.KindBytes:
		return schema.StringValue(randomText(r, c))
	case k == schema.KindFloat32:
		return schema.Float32Value(float32(randomFloat(r)))
	case k == schema.KindFloat64:
		return schema.Float64Value(randomFloat(r))
	case k == schema.KindInt128:
		return schema.Int128Value(randomDecimal(r))
	}
	lo, hi := intRange(c)
	return schema.IntValue(k, randomInt(r, lo, hi))
}

// intRange returns the smallest and largest value of an integer column.
func intRange(c *schema.Column) (lo, hi int64) {
	switch {
	case c.Type.IsDecimal():
		hi = int64(math.Pow10(int(c.Precision))) - 1
		return -hi, hi
	case c.Type == schema.Date:
		return -719162, 2932896 // 0001-01-01 and 9999-12-31
	}
	hi = int64(1)<<(8*c.Kind().Width()-1) - 1
	return -hi - 1, hi
}

func randomInt(r *rand.Rand, lo, hi int64) int64 {
	switch r.IntN(8) {
	case 0:
		return lo
	case 1:
		return hi
	case 2:
		return 0
	case 3, 4:
		return int64(r.IntN(10)) - 5
	}
	if n := uint64(hi) - uint64(lo) + 1; n != 0 {
		return int64(uint64(lo) + r.Uint64N(n))
	}
	return int64(r.Uint64())
}

func randomFloat(r *rand.Rand) float64 {
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1, 0.1}
	if i := r.IntN(3 * len(special)); i < len(special) {
		return special[i]
	}
	return r.NormFloat64() * 1000
}

// randomDecimal returns a number of at most 38 digits.
func randomDecimal(r *rand.Rand) schema.Int128 {
	switch r.IntN(4) {
	case 0:
		return schema.Int128From(int64(r.IntN(10)) - 5)
	case 1:
		return schema.Int128{Lo: 687399551400673279, Hi: 5421010862427522170} // 10^38 - 1
	case 2:
		return schema.Int128{Lo: 17759344522308878337, Hi: -5421010862427522171} // 1 - 10^38
	}
	return schema.Int128{Lo: r.Uint64(), Hi: r.Int64N(1<<61) - 1<<60}
}

func randomText(r *rand.Rand, c *schema.Column) string {
	if r.IntN(3) == 0 {
		return []string{"", "a", "aa", "ab", "Zürich"}[r.IntN(5)]
	}
	b := make([]byte, r.IntN(20))
	for i := range b {
		b[i] = byte(r.IntN(256))
		if c.Type.IsText() {
			b[i] = "abc\x00xyz "[r.IntN(8)]
		}
	}
	return string(b)
}

// RandomVectors returns a vector of n random cells for every column of s. Keys are not
// distinct and not in order.
func RandomVectors(t testing.TB, r *rand.Rand, s *schema.Schema, n int) []*vector.Vector {
	t.Helper()
	out := make([]*vector.Vector, s.Len())
	for i := range out {
		c := s.Column(i)
		out[i] = vector.New(c.Kind(), n)
		for range n {
			if err := out[i].Append(RandomValue(r, c)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// RequireEqual fails unless got has the cells of want: values bit for bit and nulls.
// Either may be in dictionary form.
func RequireEqual(t testing.TB, what string, got, want *vector.Vector) {
	t.Helper()
	if got.Kind() != want.Kind() || got.Len() != want.Len() {
		t.Fatalf("%s: %d cells of %s, want %d of %s", what, got.Len(), got.Kind(), want.Len(), want.Kind())
	}
	for i := range want.Len() {
		if g, w := got.Value(i), want.Value(i); g != w {
			t.Fatalf("%s, row %d: got %s, want %s", what, i, show(g), show(w))
		}
	}
}

// show returns a value for a message.
func show(v schema.Value) string {
	switch k := v.Kind(); {
	case v.IsNull():
		return "null"
	case k == schema.KindBytes:
		return fmt.Sprintf("%q", v.Str())
	case k.IsFloat():
		return fmt.Sprintf("%v (%x)", v.Float(), math.Float64bits(v.Float()))
	case k == schema.KindInt128:
		return fmt.Sprintf("%d:%d", v.Int128().Hi, v.Int128().Lo)
	}
	return fmt.Sprint(v.Int())
}
