package minikudu_test

import (
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/schema"
)

// A table is written as Kudu reads it if it is asked for, also after a restart.
func TestKuduCompatibleTables(t *testing.T) {
	for _, kudu := range []bool{false, true} {
		spec := kvSpec()
		spec.KuduCompatible = kudu
		r := newRig(t, minikudu.Options{}, spec)
		r.restart()
		r.insert([]any{1, 1}, []any{2, 2})
		r.flush()
		want := schema.EncodingPaged
		if kudu {
			want = schema.EncodingBitShuffle
		}
		st, err := r.tab.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range st.Columns {
			if c.Encoding != want || len(c.Encodings) != 1 || c.Encodings[0].Pages != c.Pages || (c.Encodings[0].Encoding == want) != kudu {
				t.Errorf("%+v, want %s", c, want)
			}
		}
		if r.tab.KuduCompatible() != kudu {
			t.Errorf("compatible %t, want %t", !kudu, kudu)
		}
		r.is(row(1, 1), row(2, 2))
	}
}
