package minikudu_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
)

func TestLayout(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	if l, err := r.tab.Layout(ctx); err != nil || len(l) != 0 {
		t.Fatalf("empty table: %v, %v", l, err)
	}
	for _, from := range []int{0, 100, 0} { // the third overlaps both
		var b minikudu.WriteBatch
		for k := range 100 {
			if from == 0 && r.rowsetFiles() == 2 {
				b.Insert(r.tab, -1-k, k)
				b.Insert(r.tab, 1000+k, k)
				continue
			}
			b.Insert(r.tab, from+k, k)
		}
		r.commit(&b)
		r.flush()
	}
	if _, err := r.db.UpdateWhere(ctx, r.tab, predicate.Lt("key", -90), map[string]any{"val": 5}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.db.DeleteWhere(ctx, r.tab, predicate.Eq("key", 7), nil); err != nil {
		t.Fatal(err)
	}
	l, err := r.tab.Layout(ctx)
	if err != nil || len(l) != 3 {
		t.Fatalf("%d rowsets, %v", len(l), err)
	}
	if !slices.Equal(l[0].MinKey, []string{"-100"}) || !slices.Equal(l[0].MaxKey, []string{"1099"}) || l[0].Rows != 200 || l[0].LiveRows != 200 ||
		l[0].DeltaEntries != 10 || l[0].DeltaBytes == 0 || l[0].Start != 0 || l[0].End != 1 || l[0].Bytes == 0 {
		t.Errorf("wide rowset: %+v", l[0])
	}
	if !slices.Equal(l[1].MinKey, []string{"0"}) || l[1].Rows != 100 || l[1].LiveRows != 99 || l[1].DeltaEntries != 1 {
		t.Errorf("rowset with a deleted row: %+v", l[1])
	}
	if l[2].DeltaEntries != 0 || l[2].LiveRows != 100 || l[1].End > l[2].Start || l[2].Start >= l[2].End {
		t.Errorf("rowset without changes: %+v", l[2])
	}
	st, err := r.tab.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	height := 0.0
	for _, x := range l {
		height += x.End - x.Start
	}
	if math.Abs(height-st.Height) > 0.1 {
		t.Errorf("height %v, Stats says %v", height, st.Height)
	}
}

func TestLayoutShortensKeys(t *testing.T) {
	r := newRig(t, minikudu.Options{}, textSpec())
	r.insert([]any{strings.Repeat("é", 300), nil, nil})
	r.flush()
	l, err := r.tab.Layout(ctx)
	if err != nil || l[0].MinKey[0] != strings.Repeat("é", 20)+"…" {
		t.Errorf("%+v, %v", l, err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := r.tab.Layout(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	mustClose(t, r.db)
	if _, err := r.tab.Layout(ctx); !errors.Is(err, minikudu.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
