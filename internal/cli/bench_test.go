package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/minikudu/minikudu/internal/cli/bench"
)

func TestBenchProgress(t *testing.T) {
	p := bench.Progress{Op: "insert", Seconds: 2.01, Operations: 300_000, OpsPerSec: 150_000.5, Rows: 4_300_000}
	for _, c := range []struct {
		json bool
		want string
	}{
		{false, "insert: 2 s, 300,000 operations, 150,000/s, 4,300,000 rows\n"},
		{true, `{"progress":{"op":"insert","seconds":2.01,"operations":300000,"operations_per_s":150000.5,"rows":4300000}}` + "\n"},
	} {
		var stderr bytes.Buffer
		s := &session{app: &App{Stderr: &stderr}, json: c.json}
		s.printBenchProgress(p)
		if got := stderr.String(); got != c.want {
			t.Errorf("got %swant %s", got, c.want)
		}
	}
}

// What was made goes also when it is interrupted.
func TestBenchInterrupted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	ctx, cancel := context.WithCancel(context.Background())
	var stdout bytes.Buffer
	args := []string{"--db", dir, "--json", "bench", "--op", "all", "--rows", "100"}
	// The first result interrupts it.
	code := (&App{Stdout: writerFunc(func(p []byte) (int, error) { cancel(); return stdout.Write(p) }), Stderr: &stdout}).Run(ctx, args)
	if code != exitFailed || !bytes.Contains(stdout.Bytes(), []byte(`"op":"insert"`)) || !bytes.Contains(stdout.Bytes(), []byte("it was interrupted")) {
		t.Errorf("status %d: %s", code, stdout.Bytes())
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store is left: %v", err)
	}
}

// The process may hold the inputs beside the memory budget, also after the store was
// opened again.
func TestBenchTunesForInputs(t *testing.T) {
	var told []int64
	var out bytes.Buffer
	app := &App{Stdout: &out, Stderr: &out, Tune: func(n int64) { told = append(told, n) }}
	if code := app.Run(context.Background(), []string{"--db", filepath.Join(t.TempDir(), "db"), "--memory", "16MiB", "bench", "--op", "open", "--rows", "10"}); code != exitDone {
		t.Fatalf("status %d: %s", code, out.String())
	}
	for _, n := range told {
		if n != 20<<20 {
			t.Errorf("told %d", told)
		}
	}
	if len(told) == 0 {
		t.Error("told nothing")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
