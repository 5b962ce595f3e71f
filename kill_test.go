package minikudu_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/vfs"
)

// The environment of the child process.
const (
	killDir   = "MINIKUDU_KILL_DIR"   // the store
	killMode  = "MINIKUDU_KILL_MODE"  // durability
	killFirst = "MINIKUDU_KILL_FIRST" // number of the first batch
)

// TestKillChild is the process that TestC69Kill kills. Two writers commit tagged
// batches and say on standard output when they begin and when they are done.
func TestKillChild(t *testing.T) {
	dir := os.Getenv(killDir)
	if dir == "" {
		t.Skip("runs in a child process only")
	}
	mode, _ := strconv.Atoi(os.Getenv(killMode))
	first, _ := strconv.ParseInt(os.Getenv(killFirst), 10, 64)
	o := tiny(vfs.OS)
	o.Durability = minikudu.Durability(mode)
	db := mustOpen(t, dir, o)
	for _, name := range []string{"a", "b"} {
		if _, err := db.CreateTable(ctx, name, tagSpec()); err != nil && !errors.Is(err, minikudu.ErrAlreadyPresent) {
			t.Fatal(err)
		}
	}
	os.Stdout.WriteString("open\n")
	var next atomic.Int64
	next.Store(first)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			j := newJournal()
			for {
				b := next.Add(1) - 1
				fmt.Fprintf(os.Stdout, "begin %d\n", b)
				if err := j.commit(db, b, tagRows(b)); err != nil {
					fmt.Fprintf(os.Stdout, "error %v\n", err)
					return
				}
				fmt.Fprintf(os.Stdout, "done %d\n", b)
			}
		})
	}
	wg.Wait()
}

// A process is killed at random moments while it opens, replays, commits and flushes.
// Every batch it acknowledged is whole; every other is whole or absent.
func TestC69Kill(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "js" {
		t.Skip("kills processes")
	}
	cycles := 20
	switch {
	case full():
		cycles = 200
	case testing.Short():
		cycles = 4
	}
	for _, mode := range []minikudu.Durability{minikudu.Sync, minikudu.NoSync} {
		t.Run(mode.String(), func(t *testing.T) {
			k := &killer{t: t, mode: mode, rand: testkit.Rand(t)}
			for i := range cycles {
				k.cycle(i)
			}
			t.Logf("%d kills, %d of them with a batch in flight, %d while opening; %d batches acknowledged, %d flushed rowsets seen",
				k.kills, k.inFlight, k.opening, k.batches, k.rowsets)
			if 2*k.inFlight < k.kills {
				t.Errorf("only %d of %d kills hit a batch in flight", k.inFlight, k.kills)
			}
		})
	}
}

// killer runs and kills children over one store after the other.
type killer struct {
	t       *testing.T
	mode    minikudu.Durability
	rand    *rand.Rand
	dir     string
	journal *journal
	next    int64

	kills, inFlight, opening, batches, rowsets int
}

// cycle runs one child, kills it and, most of the time, looks at what it left.
func (k *killer) cycle(i int) {
	if i%10 == 0 {
		k.dir, k.journal, k.next = k.t.TempDir(), newJournal(), 0
		k.journal.tables = map[string]tableState{"a": creating, "b": creating}
	}
	k.run()
	if i%10 == 9 || k.rand.IntN(4) > 0 {
		k.check()
	}
}

// run starts a child and kills it at a random moment.
func (k *killer) run() {
	exe, err := os.Executable()
	fatal(k.t, err)
	cmd := exec.Command(exe, "-test.run=^TestKillChild$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), killDir+"="+k.dir, fmt.Sprintf("%s=%d", killMode, k.mode), fmt.Sprintf("%s=%d", killFirst, k.next))
	out, err := cmd.StdoutPipe()
	fatal(k.t, err)
	cmd.Stderr = os.Stderr
	fatal(k.t, cmd.Start())
	if k.rand.IntN(8) == 0 {
		time.AfterFunc(time.Duration(k.rand.IntN(40))*time.Millisecond, func() { cmd.Process.Kill() })
	}
	opened, running := false, map[int64]bool{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, arg, _ := strings.Cut(lines.Text(), " ")
		b, _ := strconv.ParseInt(arg, 10, 64)
		switch word {
		case "open":
			opened = true
			k.journal.tables = map[string]tableState{"a": present, "b": present}
			time.AfterFunc(time.Duration(k.rand.IntN(20_000))*time.Microsecond, func() { cmd.Process.Kill() })
		case "begin":
			k.journal.begin(b, tagRows(b))
			running[b] = true
			k.next = max(k.next, b+1)
		case "done":
			k.journal.ack(b)
			delete(running, b)
			k.batches++
		default:
			k.t.Errorf("child: %s", lines.Text())
		}
	}
	_ = cmd.Wait() // it was killed
	k.kills++
	if len(running) > 0 {
		k.inFlight++
	}
	if !opened {
		k.opening++
	}
}

// check opens the store and compares; a clean close follows.
func (k *killer) check() {
	k.t.Helper()
	db := mustOpen(k.t, k.dir, tiny(vfs.OS))
	defer mustClose(k.t, db)
	fatal(k.t, k.journal.check(db, durable))
	fatal(k.t, checkVerify(db))
	k.rowsets += db.Metrics().RowSets
}
