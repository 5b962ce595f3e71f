package schema

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

type place struct {
	City string `minikudu:"city"`
	Zip  *int32
}

type reading struct {
	place
	*strings.Builder `minikudu:"-"`
	Host             host      `minikudu:"host"`
	At               time.Time `minikudu:"ts"`
	Load             *float64  `minikudu:"Load %"`
	Raw              []byte
	Level            level
	Any              Value
	Skipped          map[string]int `minikudu:"-"`
	hidden           int
}

func TestFieldsOf(t *testing.T) {
	fields, err := FieldsOf(reflect.TypeFor[reading]())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range fields {
		name := f.Name
		if f.Nullable {
			name += "?"
		}
		got = append(got, name)
	}
	if want := "city Zip? host ts Load %? Raw? Level Any?"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	_ = reading{}.hidden
}

func TestFieldsOfErrors(t *testing.T) {
	f := func(typ reflect.Type, want string) {
		t.Helper()
		if _, err := FieldsOf(typ); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", typ, err, want)
		}
	}
	f(reflect.TypeFor[int](), "not a struct")
	f(nil, "not a struct")
	f(reflect.TypeFor[struct{}](), "no exported fields")
	f(reflect.TypeFor[struct{ A []int }](), "[]int is no column type")
	f(reflect.TypeFor[struct{ A **int }](), "is no column type")
	f(reflect.TypeFor[struct {
		A int
		B int `minikudu:"A"`
	}](), `a second field is named "A"`)
}

func TestAssign(t *testing.T) {
	fields, err := FieldsOf(reflect.TypeFor[reading]())
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"city": "string", "Zip": "int64 null", "host": "varchar(9)", "ts": "unixtime_micros",
		"Load %": "double null", "Raw": "binary null", "Level": "int64", "Any": "date null"}
	at := time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)
	load := 0.5
	zip := int32(501)
	in := reading{place: place{City: "x", Zip: &zip}, Host: "h", At: at, Load: &load, Raw: []byte{}, Level: 3, Any: IntValue(KindInt32, 5)}
	var out reading
	dst := reflect.ValueOf(&out).Elem()
	for i := range fields {
		f := &fields[i]
		c := column(t, QuoteName(f.Name)+" "+texts[f.Name])
		v, err := c.Convert(reflect.ValueOf(in).FieldByIndex(f.Index).Interface())
		if err == nil {
			err = f.Assign(dst, c, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(in, out) {
		t.Errorf("%+v, want %+v", out, in)
	}
	for _, c := range []struct {
		field int
		col   string
		v     Value
		want  string
	}{
		{0, "city string null", Null, "null"},
		{1, "Zip int64", IntValue(KindInt64, 1<<40), "out of range"},
		{6, "Level int64", IntValue(KindInt64, -1), "out of range"},
		{3, "ts int64", IntValue(KindInt64, 1), "wrong type"},
		{4, "l string", StringValue("x"), "wrong type"},
		{6, "Level bool", BoolValue(true), "wrong type"},
	} {
		if err := fields[c.field].Assign(dst, column(t, c.col), c.v); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.col, err, c.want)
		}
	}
	if err := fields[1].Assign(dst, column(t, "Zip int32 null"), Null); err != nil || out.Zip != nil {
		t.Errorf("null: %v, %v", out.Zip, err)
	}
}
