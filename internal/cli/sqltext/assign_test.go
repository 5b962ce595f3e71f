package sqltext

import (
	"errors"
	"strings"
	"testing"
)

func TestParseAssignment(t *testing.T) {
	for in, want := range map[string]Assignment{
		`a=1`:               {"a", "1"},
		`Cost Total $=12.5`: {"Cost Total $", "12.5"},
		` a =x`:             {"a", "x"},
		`"a=b"=c=d`:         {"a=b", "c=d"},
		`"a""b"=`:           {`a"b`, ""},
		`a=null`:            {"a", nil},
		`a=NULL`:            {"a", nil},
		`a='null'`:          {"a", "null"},
		`a='it''s'`:         {"a", "it's"},
		`a= x `:             {"a", " x "},
		`a=`:                {"a", ""},
		`a=''`:              {"a", ""},
		`a=say "x"`:         {"a", `say "x"`},
	} {
		if got, err := ParseAssignment(in); err != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		`a`:       "at position 2: expected column=value",
		``:        "at position 1: expected column=value",
		`=1`:      "position 1: expected a name",
		`"a=1`:    "quote",
		`"a"b=1`:  "position 4: expected column=value",
		`a"b=1`:   "position 2: a name that holds a quote",
		`a='x`:    "not closed",
		`a='x' y`: "position 6: expected the end",
	} {
		_, err := ParseAssignment(in)
		if se := (*SyntaxError)(nil); !errors.As(err, &se) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}
