package minikudu_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
)

// History that takes space is counted, and that it has expired once its time is over.
func TestStatsOfHistory(t *testing.T) {
	clock := newClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	spec := kvSpec()
	spec.History = time.Minute
	r := newRig(t, minikudu.Options{Now: clock.now}, spec)
	check := func(changes, history, expired bool) {
		t.Helper()
		st, err := r.tab.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if st.ChangeBytes > 0 != changes || st.HistoryBytes > 0 != history || st.ExpiredBytes > 0 != expired || st.ExpiredBytes > st.HistoryBytes {
			t.Fatalf("%d bytes of changes, %d of history, %d of it expired", st.ChangeBytes, st.HistoryBytes, st.ExpiredBytes)
		}
		if m := r.db.Metrics(); m.ChangeBytes != st.ChangeBytes || m.HistoryBytes != st.HistoryBytes {
			t.Fatalf("the metrics have %d bytes of changes, %d of history", m.ChangeBytes, m.HistoryBytes)
		}
	}
	compact := func() {
		t.Helper()
		if _, err := r.tab.Compact(ctx); err != nil {
			t.Fatal(err)
		}
	}
	r.insert([]any{1, 1}, []any{3, 3})
	r.flush()
	check(false, false, false)
	var b minikudu.WriteBatch
	b.Upsert(r.tab, 1, 2)
	r.commit(&b)
	r.flush()
	check(true, false, false)
	r.insert([]any{2, 2})
	compact() // merges two rowsets
	check(false, true, false)
	clock.pass(2 * time.Minute)
	r.insert([]any{4, 4})
	check(false, true, true)
	compact()
	check(false, false, false)
}

// An error about a time names it so that people can read it.
func TestErrorsNameTimes(t *testing.T) {
	clock := newClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r := newRig(t, minikudu.Options{Now: clock.now}, kvSpec())
	r.insert([]any{1, 1})
	for at, want := range map[time.Time]struct {
		err  error
		text string
	}{
		clock.now().Add(time.Hour):  {minikudu.ErrInvalidArgument, "(2026-01-02T04:04:05Z), in the future: it is "},
		clock.now().Add(-time.Hour): {minikudu.ErrHistoryExpired, "(2026-01-02T02:04:05Z), history begins at "},
	} {
		_, err := r.tab.GetAsOf(ctx, minikudu.TimestampAt(at), 1)
		if !errors.Is(err, want.err) || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%v: %v, want %v with %q", at, err, want.err, want.text)
		}
	}
}
