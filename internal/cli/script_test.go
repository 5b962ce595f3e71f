package cli_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/contrib/arrow"
	"github.com/minikudu/minikudu/contrib/parquet"
	"github.com/minikudu/minikudu/internal/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"minikudu": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
			defer stop()
			os.Exit(cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScripts runs the command line as users do. The commands of the scripts, beside
// those of testscript:
//
//	status N minikudu …   runs it and wants exit status N
//	hold DIR              holds the store open for writing until the script ends
//	flip FILE OFFSET      inverts a byte
//	checksum DIR          prints the names and checksums of all files
//	stamp NAME            keeps the timestamp that the last command printed in $NAME
//	logsize DIR MAX       wants no more bytes in the log
//	export parquet|arrow DIR TABLE FILE
func TestScripts(t *testing.T) {
	kudu, err := filepath.Abs("../../cfile/testdata/kudu")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("KUDU", kudu)                  // column files that Kudu wrote
			e.Setenv("GORACE", "atexit_sleep_ms=0") // else every process waits a second under -race
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": status, "hold": hold, "flip": flip, "checksum": checksum, "stamp": stamp, "logsize": logSize, "export": export,
		},
	})
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := err.(interface{ ExitCode() int }); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func hold(ts *testscript.TestScript, _ bool, args []string) {
	db, err := minikudu.Open(ts.MkAbs(args[0]), nil)
	ts.Check(err)
	ts.Defer(func() { _ = db.Close() })
}

func flip(ts *testscript.TestScript, _ bool, args []string) {
	name := args[0]
	if found, err := filepath.Glob(ts.MkAbs(name)); err == nil && len(found) > 0 {
		name = found[0]
	}
	b, err := os.ReadFile(name)
	ts.Check(err)
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	b[at] ^= 0xff
	ts.Check(os.WriteFile(name, b, 0o644))
}

func checksum(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		fmt.Fprintf(ts.Stdout(), "%s %x\n", path, sha256.Sum256(b))
		return err
	}))
}

func stamp(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile(`timestamp"?:? *([0-9]{19})`).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("no timestamp was printed")
	}
	ts.Setenv(args[0], found[1])
}

func logSize(ts *testscript.TestScript, _ bool, args []string) {
	limit, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	names, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "wal", "*"))
	ts.Check(err)
	size := int64(0)
	for _, name := range names {
		info, err := os.Stat(name)
		ts.Check(err)
		size += info.Size()
	}
	if size > limit {
		ts.Fatalf("the log has %d bytes, want at most %d", size, limit)
	}
}

// export writes a table to a Parquet or Arrow file.
func export(ts *testscript.TestScript, _ bool, args []string) {
	db, err := minikudu.Open(ts.MkAbs(args[1]), &minikudu.Options{ReadOnly: true})
	ts.Check(err)
	defer func() { _ = db.Close() }()
	t, err := db.Table(args[2])
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[3]))
	ts.Check(err)
	defer func() { ts.Check(f.Close()) }()
	q := minikudu.Query{Order: minikudu.KeyOrder}
	if args[0] == "parquet" {
		_, err = parquet.Export(context.Background(), t, q, f, parquet.Options{})
	} else {
		_, err = arrow.Export(context.Background(), t, q, f, arrow.Options{})
	}
	ts.Check(err)
}
