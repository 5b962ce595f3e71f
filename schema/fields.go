package schema

import (
	"fmt"
	"reflect"
	"time"
)

// Field ties a field of a Go struct to a column by name.
type Field struct {
	Name     string       // column name
	Index    []int        // for reflect.Value.FieldByIndex
	Type     reflect.Type // of the field
	Nullable bool         // whether the field can hold null: a pointer, []byte or Value
}

// FieldsOf returns the columns that a struct type stands for: one for each exported
// field whose type [Column.Convert] accepts. The column is named by the tag
// `minikudu:"name"`, or as the field where there is none; "-" leaves a field out.
// Embedded structs are flattened. Two fields of one name, an empty struct, and a
// field of another type are errors.
func FieldsOf(t reflect.Type) ([]Field, error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %v is not a struct", ErrInvalidArgument, t)
	}
	var fields []Field
	seen := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		name, ok := columnName(t, f)
		if !ok {
			continue
		}
		switch {
		case !convertible(f.Type):
			return nil, fmt.Errorf("%w: field %s of %v: %v is no column type", ErrInvalidArgument, f.Name, t, f.Type)
		case seen[name]:
			return nil, fmt.Errorf("%w: field %s of %v: a second field is named %q", ErrInvalidArgument, f.Name, t, name)
		}
		seen[name] = true
		fields = append(fields, Field{Name: name, Index: f.Index, Type: f.Type, Nullable: nullable(f.Type)})
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("%w: %v has no exported fields", ErrInvalidArgument, t)
	}
	return fields, nil
}

// columnName returns the column that a field stands for; ok is false for a field
// that is none: unexported, left out, an embedded struct, or inside a field that is
// not one.
func columnName(t reflect.Type, f reflect.StructField) (name string, ok bool) {
	tag, tagged := f.Tag.Lookup("minikudu")
	if !f.IsExported() || tag == "-" || f.Anonymous && !tagged && !convertible(f.Type) {
		return "", false
	}
	for n := 1; n < len(f.Index); n++ {
		outer := t.FieldByIndex(f.Index[:n])
		if outer.Tag.Get("minikudu") == "-" || outer.Type.Kind() != reflect.Struct || convertible(outer.Type) {
			return "", false
		}
	}
	if tag == "" {
		tag = f.Name
	}
	return tag, true
}

var valueType = reflect.TypeFor[Value]()

func nullable(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t == valueType || t.Kind() == reflect.Slice
}

func convertible(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case t == timeType || t == valueType:
		return true
	case k == reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8
	case k == reflect.Uintptr:
		return false
	default:
		return k >= reflect.Bool && k <= reflect.Float64 || k == reflect.String
	}
}

// Assign stores a value of column c in the field of the struct dst. It fails with a
// [ValueError] where the field cannot hold it: null in a field that is not Nullable,
// a number out of the field's range, another type.
func (f *Field) Assign(dst reflect.Value, c *Column, v Value) error {
	if reason := assign(dst.FieldByIndex(f.Index), c, v); reason != "" {
		return &ValueError{Row: -1, Column: c.Name, Want: "field of type " + f.Type.String(), Given: c.TypeString(), Reason: reason}
	}
	return nil
}

func assign(dst reflect.Value, c *Column, v Value) (reason string) {
	switch {
	case dst.Type() == valueType:
		dst.Set(reflect.ValueOf(v))
		return ""
	case v.IsNull():
		if !nullable(dst.Type()) {
			return "null"
		}
		dst.SetZero()
		return ""
	case dst.Kind() == reflect.Pointer:
		p := reflect.New(dst.Type().Elem())
		if reason := assign(p.Elem(), c, v); reason != "" {
			return reason
		}
		dst.Set(p)
		return ""
	}
	switch x := c.Go(v).(type) {
	case bool:
		if dst.Kind() == reflect.Bool {
			dst.SetBool(x)
			return ""
		}
	case int64:
		return assignInt(dst, x)
	case float32:
		return assignFloat(dst, float64(x))
	case float64:
		return assignFloat(dst, x)
	case string:
		return assignString(dst, x)
	case []byte:
		return assignString(dst, string(x))
	case time.Time:
		if dst.Type() == timeType {
			dst.Set(reflect.ValueOf(x))
			return ""
		}
		return assignInt(dst, v.Int())
	}
	return wrongType
}

func assignInt(dst reflect.Value, n int64) string {
	switch {
	case dst.CanInt():
		if dst.OverflowInt(n) {
			return outOfRange
		}
		dst.SetInt(n)
	case dst.CanUint():
		if n < 0 || dst.OverflowUint(uint64(n)) {
			return outOfRange
		}
		dst.SetUint(uint64(n))
	default:
		return wrongType
	}
	return ""
}

func assignFloat(dst reflect.Value, f float64) string {
	switch {
	case !dst.CanFloat():
		return wrongType
	case dst.OverflowFloat(f):
		return outOfRange
	}
	dst.SetFloat(f)
	return ""
}

func assignString(dst reflect.Value, s string) string {
	switch {
	case dst.Kind() == reflect.String:
		dst.SetString(s)
	case dst.Kind() == reflect.Slice:
		dst.SetBytes([]byte(s))
	default:
		return wrongType
	}
	return ""
}
