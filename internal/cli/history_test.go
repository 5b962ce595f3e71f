package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
)

// A time means its whole microsecond, a timestamp itself, and nothing means now.
func TestParseMoment(t *testing.T) {
	at := time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)
	last := minikudu.TimestampAt(at.Add(time.Microsecond)) - 1
	for in, want := range map[string]minikudu.Timestamp{"2001-02-03 04:05:06.000007": last, "2001-02-03T05:05:06.000007+01:00": last,
		"7356850502161793024": 7356850502161793024, "1969-12-31": 1, "1970-01-01": 1<<12 - 1} {
		if got, err := parseMoment(in); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", in, got, err, want)
		}
	}
	before := minikudu.TimestampAt(time.Now().Add(-time.Hour))
	if got, err := parseMoment("-1h"); err != nil || got < before || got > before+minikudu.TimestampAt(time.Unix(60, 0)) {
		t.Errorf("an hour ago: %d, %v, want %d", got, err, before)
	}
	for _, in := range []string{"", "0", "now", "2100-01-01", "2500-01-01", "+5m"} {
		if got, err := parseMoment(in); err == nil {
			t.Errorf("%q: %d", in, got)
		}
	}
}

func TestWatchedWorked(t *testing.T) {
	before := watched{Seconds: 1, Rows: 1, Flushes: 1, Merges: 1, History: 1, RowSetSize: 1}
	for _, change := range []func(w *watched){func(w *watched) { w.Rows++ }, func(w *watched) { w.Flushes++ }, func(w *watched) { w.Merges++ },
		func(w *watched) { w.History = 0 }, func(w *watched) { w.RowSetSize = 0 }} {
		w := before
		w.Seconds++
		if w.worked(&before) {
			t.Error("passing time is work")
		}
		if change(&w); !w.worked(&before) {
			t.Errorf("%+v after %+v is no work", w, before)
		}
	}
}

// An interrupt is how watch ends, not a failure.
func TestWatchInterrupted(t *testing.T) {
	dir := t.TempDir()
	var stderr bytes.Buffer
	run := func(ctx context.Context, out *interrupter, args ...string) int {
		return Run(ctx, append([]string{"--db", dir}, args...), strings.NewReader(""), out, &stderr)
	}
	if code := run(context.Background(), &interrupter{}, "create", "t", "--columns", "id int64", "--key", "id"); code != exitDone {
		t.Fatal(stderr.String())
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &interrupter{after: cancel}
	if code := run(ctx, out, "watch", "--interval", "1h"); code != exitDone || stderr.Len() > 0 {
		t.Fatalf("status %d, %q", code, stderr.String())
	}
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "watch: 0 s, 0 rows, ") {
		t.Fatalf("it printed %q", text)
	}
}

// interrupter is an output that calls after once something was written.
type interrupter struct {
	bytes.Buffer
	after func()
}

func (w *interrupter) Write(p []byte) (int, error) {
	if w.after != nil {
		defer w.after()
	}
	return w.Buffer.Write(p)
}
