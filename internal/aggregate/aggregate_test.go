package aggregate

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func testSchema(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.New([]schema.Column{
		{Name: "k", Type: schema.Int64},
		{Name: "i8", Type: schema.Int8, Nullable: true}, {Name: "i16", Type: schema.Int16, Nullable: true},
		{Name: "i32", Type: schema.Int32, Nullable: true}, {Name: "i64", Type: schema.Int64, Nullable: true},
		{Name: "dec", Type: schema.Decimal64, Precision: 18, Scale: 2, Nullable: true},
		{Name: "wide", Type: schema.Decimal128, Precision: 38, Scale: 3, Nullable: true},
		{Name: "ok", Type: schema.Bool, Nullable: true}, {Name: "f", Type: schema.Float, Nullable: true},
		{Name: "d", Type: schema.Double, Nullable: true}, {Name: "s", Type: schema.String, Nullable: true},
		{Name: "day", Type: schema.Date, Nullable: true},
	}, []string{"k"}, schema.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustPlan(t interface{ Fatal(...any) }, s *schema.Schema, groupBy []int, specs ...Spec) *Plan {
	p, err := NewPlan(s, groupBy, specs)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func columnsOf(cols map[int]*vector.Vector) func(int) (*vector.Vector, error) {
	return func(col int) (*vector.Vector, error) {
		if v, ok := cols[col]; ok {
			return v, nil
		}
		return nil, fmt.Errorf("column %d was not expected", col)
	}
}

func addBatch(t interface{ Fatal(...any) }, st *State, n int, sel vector.Bitmap, cols map[int]*vector.Vector) {
	if err := st.Add(n, sel, columnsOf(cols)); err != nil {
		t.Fatal(err)
	}
}

// rowsOf renders a result, sorted, to compare it.
func rowsOf(t interface{ Fatal(...any) }, st *State) []string {
	r, err := st.Result()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range r.Rows {
		var cells []string
		for c, v := range r.Vectors {
			if v.Len() != r.Rows || v.Kind() != r.Columns[c].Kind() {
				t.Fatal("result column of wrong length or kind", r.Columns[c].Name)
			}
			cells = append(cells, show(v.Value(i)))
		}
		out = append(out, strings.Join(cells, "|"))
	}
	slices.Sort(out)
	return out
}

func show(v schema.Value) string {
	switch {
	case v.IsNull():
		return "null"
	case v.Kind() == schema.KindBytes:
		return fmt.Sprintf("%q", v.Str())
	case v.Kind().IsFloat():
		return fmt.Sprint(v.Float())
	case v.Kind() == schema.KindInt128:
		return big128(v.Int128()).String()
	}
	return fmt.Sprint(v.Int())
}

func big128(n schema.Int128) *big.Int {
	b := new(big.Int).Lsh(big.NewInt(n.Hi), 64)
	return b.Add(b, new(big.Int).SetUint64(n.Lo))
}

var (
	ints   = []int64{0, 1, -1, 5, 100, 127, -128, 4000, 5000, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}
	floats = []float64{0, math.Copysign(0, -1), 1, -2.5, 8, math.NaN(), math.Float64frombits(0xfff8000000000001), math.Inf(1), 1024, 0.5}
	texts  = []string{"", "a", "b", "ab", "zz"}
)

func drawCell(t *rapid.T, c *schema.Column) schema.Value {
	if c.Nullable && rapid.IntRange(0, 3).Draw(t, "null") == 0 {
		return schema.Null
	}
	n := rapid.SampledFrom(ints).Draw(t, "int")
	switch c.Kind() {
	case schema.KindBool:
		return schema.BoolValue(n > 0)
	case schema.KindInt8:
		n = int64(int8(n))
	case schema.KindInt16:
		n = int64(int16(n))
	case schema.KindInt32:
		n = int64(int32(n))
	case schema.KindInt128:
		return schema.Int128Value(schema.Int128From(n))
	case schema.KindFloat32:
		return schema.Float32Value(float32(rapid.SampledFrom(floats).Draw(t, "float")))
	case schema.KindFloat64:
		return schema.Float64Value(rapid.SampledFrom(floats).Draw(t, "float"))
	case schema.KindBytes:
		return schema.StringValue(rapid.SampledFrom(texts).Draw(t, "text"))
	}
	return schema.IntValue(c.Kind(), n)
}

// drawBatch returns rows as values and the same as vectors and a selection.
func drawBatch(t *rapid.T, s *schema.Schema) (rows [][]schema.Value, sel vector.Bitmap, cols map[int]*vector.Vector) {
	n := rapid.SampledFrom([]int{0, 1, 3, 64, 65, 140}).Draw(t, "rows")
	cols = map[int]*vector.Vector{}
	rows = make([][]schema.Value, n)
	for c := range s.Len() {
		var pool []schema.Value
		for range rapid.IntRange(1, 5).Draw(t, "distinct") {
			pool = append(pool, drawCell(t, s.Column(c)))
		}
		cols[c] = vector.New(s.Column(c).Kind(), n)
		for r := range n {
			rows[r] = append(rows[r], pool[(r*(c+3)+r/7)%len(pool)])
			cols[c].Append(rows[r][c])
		}
		if cols[c].Kind() == schema.KindBytes && rapid.Bool().Draw(t, "dictionary") {
			cols[c] = toDictionary(cols[c])
		}
	}
	mask := rapid.SampledFrom([]uint64{math.MaxUint64, 0, 1, 0x5555, 0xffffffffff}).Draw(t, "selection")
	if mask == math.MaxUint64 && rapid.Bool().Draw(t, "all") {
		return rows, nil, cols
	}
	sel = vector.NewBitmap(n)
	var kept [][]schema.Value
	for r := range n {
		if mask>>(r%64)&1 != 0 {
			sel.Set(r)
			kept = append(kept, rows[r])
		}
	}
	return kept, sel, cols
}

func toDictionary(v *vector.Vector) *vector.Vector {
	dict, codes := vector.New(schema.KindBytes, 0), make([]uint8, v.Len())
	dict.AppendBytes([]byte("unused"))
	at := map[string]int{}
	for i := range codes {
		if v.IsNull(i) {
			continue
		}
		w := string(v.BytesAt(i))
		if _, ok := at[w]; !ok {
			at[w] = dict.Len()
			dict.AppendBytes([]byte(w))
		}
		codes[i] = uint8(at[w])
	}
	return vector.FromCodes(codes, dict, v.Valid())
}

// naive aggregates rows with maps and big integers.
func naive(s *schema.Schema, groupBy []int, specs []Spec, rows [][]schema.Value) []string {
	groups := map[string][][]schema.Value{}
	if len(groupBy) == 0 {
		groups[""] = rows
	} else {
		for _, r := range rows {
			var k []string
			for _, g := range groupBy {
				k = append(k, show(plusZero(r[g])))
			}
			groups[strings.Join(k, "|")] = append(groups[strings.Join(k, "|")], r)
		}
	}
	var out []string
	for k, rs := range groups {
		var cells []string
		if k != "" || len(groupBy) > 0 {
			cells = append(cells, k)
		}
		for _, f := range specs {
			cells = append(cells, naiveOne(s, f, rs))
		}
		out = append(out, strings.Join(cells, "|"))
	}
	slices.Sort(out)
	return out
}

func plusZero(v schema.Value) schema.Value {
	switch {
	case v.Kind() == schema.KindFloat32 && v.Float() == 0:
		return schema.Float32Value(0)
	case v.Kind() == schema.KindFloat64 && v.Float() == 0:
		return schema.Float64Value(0)
	}
	return v
}

func naiveOne(s *schema.Schema, f Spec, rows [][]schema.Value) string {
	if f.Func == CountRows {
		return fmt.Sprint(len(rows))
	}
	c := s.Column(f.Column)
	count, sum, fsum, best := 0, new(big.Int), 0.0, schema.Null
	for _, r := range rows {
		x := r[f.Column]
		if x.IsNull() {
			continue
		}
		count++
		if c.Kind().IsFloat() {
			fsum += x.Float()
		} else if c.Kind().IsInteger() {
			sum.Add(sum, big128(x.Int128()))
		}
		if x.IsNaN() {
			continue
		}
		if d := x.Compare(best); best.IsNull() || f.Func == Min && d < 0 || f.Func == Max && d > 0 {
			best = x
		}
	}
	switch {
	case f.Func == Count:
		return fmt.Sprint(count)
	case count == 0:
		return "null"
	case f.Func == Min || f.Func == Max:
		return show(plusZero(best))
	case c.Kind().IsFloat() && f.Func == Avg:
		return fmt.Sprint(fsum / float64(count))
	case c.Kind().IsFloat():
		return fmt.Sprint(fsum)
	case f.Func == Avg:
		x, _ := new(big.Float).SetInt(sum).Float64()
		return fmt.Sprint(x / float64(count) / math.Pow10(int(c.Scale)))
	}
	return sum.String()
}

func TestModelAgainstNaive(t *testing.T) { rapid.Check(t, model(testSchema(t))) }

func FuzzModel(f *testing.F) { f.Fuzz(rapid.MakeFuzz(model(testSchema(f)))) }

// model compares aggregates of random batches, gathered by two workers, with naive code.
func model(s *schema.Schema) func(t *rapid.T) {
	return func(t *rapid.T) {
		groupBy := rapid.SliceOfN(rapid.IntRange(1, s.Len()-1), 0, 3).Draw(t, "group by")
		specs := []Spec{{CountRows, 0}}
		for range rapid.IntRange(0, 4).Draw(t, "aggregates") {
			f := Spec{Func(rapid.IntRange(int(Count), int(Avg)).Draw(t, "func")), rapid.IntRange(0, s.Len()-1).Draw(t, "column")}
			if _, err := outputColumn(s, f); err == nil {
				specs = append(specs, f)
			}
		}
		p := mustPlan(t, s, groupBy, specs...)
		states := []*State{p.NewState(), p.NewState()}
		var rows [][]schema.Value
		for i := range rapid.IntRange(0, 4).Draw(t, "batches") {
			kept, sel, cols := drawBatch(t, s)
			n := cols[0].Len()
			rows = append(rows, kept...)
			addBatch(t, states[i%2], n, sel, cols)
		}
		if err := states[0].Merge(states[1]); err != nil {
			t.Fatal(err)
		}
		if want := naive(s, groupBy, specs, rows); overflows(want, s, groupBy, specs) {
			if _, err := states[0].Result(); err == nil {
				t.Fatalf("no error where a sum overflows: %v", want)
			}
		} else if got := rowsOf(t, states[0]); !slices.Equal(got, want) {
			t.Fatalf("group by %v, %v:\n got %v\nwant %v", groupBy, specs, got, want)
		}
	}
}

// overflows reports whether a sum of integers in the wanted answer exceeds int64.
func overflows(rows []string, s *schema.Schema, groupBy []int, specs []Spec) bool {
	for _, r := range rows {
		cells := strings.Split(r, "|")
		for i, f := range specs {
			c := s.Column(f.Column)
			n, ok := new(big.Int).SetString(cells[len(groupBy)+i], 10)
			if f.Func == Sum && c.Kind().IsInteger() && !c.Type.IsDecimal() && ok && !n.IsInt64() {
				return true
			}
		}
	}
	return false
}

func TestC06C62NoRowsAndAllNull(t *testing.T) {
	s := testSchema(t)
	col := s.Find("i64")
	specs := []Spec{{CountRows, 0}, {Count, col}, {Sum, col}, {Min, col}, {Max, col}, {Avg, col},
		{Min, s.Find("s")}, {Max, s.Find("f")}, {Sum, s.Find("d")}, {Min, s.Find("ok")}}
	nulls := map[int]*vector.Vector{}
	for _, c := range []string{"i64", "s", "f", "d", "ok"} {
		v := vector.New(s.Column(s.Find(c)).Kind(), 0)
		for range 5000 {
			v.AppendNull()
		}
		nulls[s.Find(c)] = v
	}
	p := mustPlan(t, s, nil, specs...)
	st := p.NewState()
	want := "0|0|null|null|null|null|null|null|null|null"
	if got := rowsOf(t, st); got[0] != want {
		t.Errorf("no batch: %v", got)
	}
	addBatch(t, st, 5000, vector.NewBitmap(5000), nulls)
	if got := rowsOf(t, st); got[0] != want {
		t.Errorf("nothing selected: %v", got)
	}
	addBatch(t, st, 5000, nil, nulls)
	if got := rowsOf(t, st); got[0] != "5000"+want[1:] {
		t.Errorf("all null: %v", got)
	}
	grouped := mustPlan(t, s, []int{s.Find("s")}, specs...).NewState()
	addBatch(t, grouped, 5000, vector.NewBitmap(5000), nulls)
	if got := rowsOf(t, grouped); len(got) != 0 {
		t.Errorf("groups of nothing: %v", got)
	}
	addBatch(t, grouped, 5000, nil, nulls)
	if got := rowsOf(t, grouped); len(got) != 1 || got[0] != "null|5000"+want[1:] {
		t.Errorf("one null group: %v", got)
	}
}

func TestNaNIsNoExtremeAndOneGroup(t *testing.T) {
	s := testSchema(t)
	d := s.Find("d")
	vals := []float64{math.NaN(), math.Float64frombits(0xfff8000000000001), math.Inf(1), math.Copysign(0, -1), 0}
	v := vector.FromFixed(schema.KindFloat64, vals, nil)
	p := mustPlan(t, s, []int{d}, Spec{CountRows, 0}, Spec{Min, d})
	st := p.NewState()
	addBatch(t, st, len(vals), nil, map[int]*vector.Vector{d: v})
	want := []string{"+Inf|1|+Inf", "0|2|0", "NaN|2|null"}
	if got := rowsOf(t, st); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	r, _ := st.Result()
	for i := range r.Rows {
		for _, v := range []*vector.Vector{r.Vectors[0], r.Vectors[2]} {
			if x := v.Value(i); !x.IsNull() && x.Float() == 0 && math.Signbit(x.Float()) {
				t.Error("-0 in a result")
			}
		}
	}
}

func TestSumOverflowIsExactAndNamesTheColumn(t *testing.T) {
	s := testSchema(t)
	col := s.Find("i64")
	p := mustPlan(t, s, nil, Spec{Sum, col}, Spec{Avg, col})
	st := p.NewState()
	big := vector.FromFixed(schema.KindInt64, []int64{math.MaxInt64, math.MaxInt64, 1}, nil)
	addBatch(t, st, 3, nil, map[int]*vector.Vector{col: big})
	_, err := st.Result()
	var ve *schema.ValueError
	if !errors.As(err, &ve) || ve.Column != "i64" || !errors.Is(err, schema.ErrInvalidArgument) {
		t.Fatalf("error is %v", err)
	}
	back := vector.FromFixed(schema.KindInt64, []int64{math.MinInt64, -5}, nil)
	addBatch(t, st, 2, nil, map[int]*vector.Vector{col: back})
	if got := rowsOf(t, st); got[0] != fmt.Sprintf("%d|%v", int64(math.MaxInt64-5), float64(math.MaxInt64-5)/5) {
		t.Errorf("got %v", got)
	}
}

func TestDecimalSumKeepsScaleAndBounds(t *testing.T) {
	s := testSchema(t)
	col := s.Find("wide")
	p := mustPlan(t, s, nil, Spec{Sum, col}, Spec{Avg, col})
	if out := p.Output()[0]; out.TypeString() != "decimal(38,3)" || out.Name != "sum(wide)" {
		t.Errorf("output is %s %s", out.Name, out.TypeString())
	}
	almost := maxDecimal
	almost.Lo-- // 10**38-1
	v := vector.FromFixed(schema.KindInt128, []schema.Int128{almost, almost, negated(almost)}, nil)
	st := p.NewState()
	addBatch(t, st, 3, nil, map[int]*vector.Vector{col: v})
	if got := rowsOf(t, st); got[0] != strings.Repeat("9", 38)+"|"+fmt.Sprint(1e38/3/1000) {
		t.Errorf("got %v", got)
	}
	addBatch(t, st, 1, nil, map[int]*vector.Vector{col: vector.FromFixed(schema.KindInt128, []schema.Int128{{Lo: 1}}, nil)})
	if _, err := st.Result(); !errors.Is(err, schema.ErrInvalidArgument) {
		t.Errorf("10**38: %v", err)
	}
}

func TestAddZonesAgreesWithAdd(t *testing.T) {
	s := testSchema(t)
	i, f := s.Find("i64"), s.Find("s")
	specs := []Spec{{CountRows, 0}, {Count, i}, {Min, i}, {Max, i}, {Min, f}}
	p := mustPlan(t, s, nil, specs...)
	st := p.NewState()
	iz := vector.Zone{Rows: 10, Nulls: 3, Min: schema.IntValue(schema.KindInt64, -4), Max: schema.IntValue(schema.KindInt64, 9), Exact: true}
	sz := vector.Zone{Rows: 10, Nulls: 10}
	zones := map[int]vector.Zone{i: iz, f: sz}
	zone := func(c int) (vector.Zone, bool) { z, ok := zones[c]; return z, ok }
	if !st.AddZones(10, zone) {
		t.Fatal("exact zones do not suffice")
	}
	if got := rowsOf(t, st); got[0] != "10|7|-4|9|null" {
		t.Errorf("got %v", got)
	}
	for _, bad := range []vector.Zone{
		{Rows: 10, Nulls: 3, Min: iz.Min, Max: iz.Max},               // shortened bounds
		{Rows: 10, Nulls: 3, Exact: true},                            // unknown
		{Rows: 9, Nulls: 3, Min: iz.Min, Max: iz.Max, Exact: true},   // not these rows
		{Rows: 10, Nulls: 3, Min: iz.Min, HasNaN: true, Exact: true}, // no maximum
	} {
		zones[i] = bad
		if st.AddZones(10, zone) {
			t.Errorf("%+v suffices", bad)
		}
	}
	delete(zones, f)
	zones[i] = iz
	if st.AddZones(10, zone) || mustPlan(t, s, nil, Spec{Sum, i}).NewState().AddZones(10, zone) ||
		mustPlan(t, s, []int{i}, Spec{CountRows, 0}).NewState().AddZones(10, zone) {
		t.Error("unknown zone, sum or group-by answered from zones")
	}
	if got := rowsOf(t, st); got[0] != "10|7|-4|9|null" {
		t.Errorf("a refused zone changed the state: %v", got)
	}
}

func TestPlanRefuses(t *testing.T) {
	s := testSchema(t)
	for _, f := range []Spec{{Sum, s.Find("s")}, {Avg, s.Find("day")}, {Sum, s.Find("ok")}, {Min, 99}, {Count, -1}, {Func(77), 0}} {
		if _, err := NewPlan(s, nil, []Spec{f}); !errors.Is(err, schema.ErrInvalidArgument) {
			t.Errorf("%v: %v", f, err)
		}
	}
	if _, err := NewPlan(s, []int{-1}, nil); !errors.Is(err, schema.ErrInvalidArgument) {
		t.Errorf("group by -1: %v", err)
	}
	p := mustPlan(t, s, []int{2, 1}, Spec{CountRows, 0}, Spec{Sum, 4}, Spec{Max, 2})
	if !slices.Equal(p.Columns(), []int{1, 2, 4}) {
		t.Errorf("columns %v", p.Columns())
	}
	if err := p.NewState().Merge(mustPlan(t, s, nil).NewState()); err == nil {
		t.Error("states of two plans merged")
	}
	boom := errors.New("boom")
	if err := p.NewState().Add(1, nil, func(int) (*vector.Vector, error) { return nil, boom }); !errors.Is(err, boom) {
		t.Errorf("column error lost: %v", err)
	}
}

func TestManyGroups(t *testing.T) {
	s := testSchema(t)
	a, b := s.Find("i32"), s.Find("i64")
	const n = 50_000
	x, y := make([]int32, n), make([]int64, n)
	for i := range x {
		x[i], y[i] = int32(i%500*100), int64(i/500)<<40
	}
	cols := map[int]*vector.Vector{a: vector.FromFixed(schema.KindInt32, x, nil), b: vector.FromFixed(schema.KindInt64, y, nil)}
	st := mustPlan(t, s, []int{a, b}, Spec{CountRows, 0}).NewState()
	addBatch(t, st, n, nil, cols)
	addBatch(t, st, n, nil, cols)
	if st.Groups() != n {
		t.Errorf("%d groups, want %d", st.Groups(), n)
	}
	for _, r := range rowsOf(t, st) {
		if !strings.HasSuffix(r, "|2") {
			t.Fatalf("group %s", r)
		}
	}
}

func TestAddDoesNotAllocatePerBatch(t *testing.T) {
	s := testSchema(t)
	i, d := s.Find("i64"), s.Find("d")
	vals, ds := make([]int64, 4096), make([]float64, 4096)
	for j := range vals {
		vals[j], ds[j] = int64(j%100), float64(j)
	}
	cols := map[int]*vector.Vector{i: vector.FromFixed(schema.KindInt64, vals, nil), d: vector.FromFixed(schema.KindFloat64, ds, nil)}
	get := columnsOf(cols)
	for _, groupBy := range [][]int{nil, {i}, {i, d}} {
		st := mustPlan(t, s, groupBy, Spec{CountRows, 0}, Spec{Sum, i}, Spec{Max, d}, Spec{Avg, d}).NewState()
		st.Add(4096, nil, get)
		if n := testing.AllocsPerRun(20, func() { st.Add(4096, nil, get) }); n > 0 {
			t.Errorf("group by %v: %v allocations a batch", groupBy, n)
		}
	}
}

func TestSumRoundsOnce(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, s sum192) {
		x := new(big.Int)
		for _, w := range []uint64{s[2], s[1], s[0]} {
			x.Or(x.Lsh(x, 64), new(big.Int).SetUint64(w))
		}
		if int64(s[2]) < 0 {
			x.Sub(x, new(big.Int).Lsh(big.NewInt(1), 192))
		}
		if want, _ := new(big.Float).SetInt(x).Float64(); s.float() != want {
			t.Fatalf("%x: %v, want %v", s, s.float(), want)
		}
	}
	for _, s := range []sum192{{}, {1}, {math.MaxUint64}, {0, 1}, {1, 1 << 53}, {1<<63 + 1, 1<<53 + 1}, {1024, 1}, {1025, 1}, {3072, 1},
		{1, 1 << 63}, {1, 1024, 1}, {0, 1024, 1}, {0, 0, 1 << 63}, {math.MaxUint64, math.MaxUint64, math.MaxUint64}} {
		check(t, s)
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, 1 << 52, 1 << 63, math.MaxUint64}))
		check(t, sum192{word.Draw(t, "low"), word.Draw(t, "mid"), word.Draw(t, "high")})
	})
}
