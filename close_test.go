package minikudu_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/vfs"
)

// everyCall calls every method that does something and returns its errors by name.
func everyCall(db *minikudu.DB, tab *minikudu.Table, b int64) map[string]error {
	out := map[string]error{}
	_, out["get"] = tab.Get(ctx, tagKey(b, 0))
	for _, err := range tab.Scan(ctx, minikudu.Query{}) {
		if out["scan"] = err; err != nil {
			break
		}
	}
	_, out["aggregate"] = tab.Aggregate(ctx, minikudu.Query{}, nil, minikudu.Count())
	_, out["stats"] = tab.Stats(ctx)
	_, out["verify"] = db.Verify(ctx)
	out["flush"] = tab.Flush(ctx)
	var wb minikudu.WriteBatch
	addTagged(&wb, tab, b, 20)
	_, out["commit"] = db.Commit(ctx, &wb, nil)
	_, out["table"] = db.Table(tab.Name())
	return out
}

// Close while others read, write and flush: they end with ErrClosed, and so does
// everything afterwards.
func TestC54CloseUnderLoad(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		testkit.CheckLeaks(t)
		mem := vfs.NewMem()
		o := tiny(mem)
		db := mustOpen(t, "store", o)
		j := newJournal()
		fatal(t, j.create(db, "a"))
		tab, err := db.Table("a")
		fatal(t, err)
		var next, calls atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for {
					for what, err := range everyCall(db, tab, next.Add(1)) {
						calls.Add(1)
						if errors.Is(err, minikudu.ErrClosed) {
							return
						}
						if err != nil && !errors.Is(err, minikudu.ErrNotFound) {
							t.Errorf("%s: %v", what, err)
							return
						}
					}
				}
			})
		}
		for calls.Load() < 200 {
			time.Sleep(time.Millisecond)
		}
		begin := time.Now()
		mustClose(t, db)
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("close took %v", d)
		}
		wg.Wait()
		for what, err := range everyCall(db, tab, 1) {
			if !errors.Is(err, minikudu.ErrClosed) {
				t.Errorf("%s after close: %v", what, err)
			}
		}
		if _, err := db.CreateTable(ctx, "x", tagSpec()); !errors.Is(err, minikudu.ErrClosed) {
			t.Errorf("create after close: %v", err)
		}
		if err := db.DropTable(ctx, "a"); !errors.Is(err, minikudu.ErrClosed) {
			t.Errorf("drop after close: %v", err)
		}
		if err := db.Close(); !errors.Is(err, minikudu.ErrClosed) {
			t.Errorf("second close: %v", err)
		}
		db.Metrics() // must not panic
		if n := mem.OpenFiles(); n != 0 {
			t.Errorf("%d files open after close", n)
		}
	}
}

// A scan that is open when the store is closed ends with ErrClosed, and Close waits for
// it no longer than to its next batch.
func TestC54CloseDuringAScan(t *testing.T) {
	testkit.CheckLeaks(t)
	db := mustOpen(t, "store", tiny(vfs.NewMem()))
	j := newJournal()
	fatal(t, j.create(db, "a"))
	fatal(t, j.commit(db, 0, map[string]int{"a": 500}))
	tab, err := db.Table("a")
	fatal(t, err)
	closed := make(chan error, 1)
	var last error
	first := true
	for _, err := range tab.Scan(ctx, minikudu.Query{BatchRows: 10}) {
		if first {
			first = false
			go func() { closed <- db.Close() }()
			for _, err := db.Table("a"); err == nil; _, err = db.Table("a") {
				time.Sleep(time.Millisecond)
			}
		}
		last = err
	}
	if !errors.Is(last, minikudu.ErrClosed) {
		t.Errorf("the scan ended with %v", last)
	}
	fatal(t, <-closed)
}

// Opening and closing leaves no goroutine, no descriptor and no file behind, whether it
// succeeds, is refused or is abandoned.
func TestC57OpenAndCloseManyTimes(t *testing.T) {
	testkit.CheckLeaks(t)
	dir := t.TempDir()
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	fds := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0 // not on this system
		}
		return len(names)
	}
	o := tiny(vfs.OS)
	o.Durability, o.LogBytes = minikudu.NoSync, 1<<20
	db := mustOpen(t, dir, o)
	j := newJournal()
	fatal(t, j.create(db, "a"))
	fatal(t, j.commit(db, 0, map[string]int{"a": 50}))
	flushTable(t, db, "a")
	mustClose(t, db)
	var before int
	for i := range rounds {
		db := mustOpen(t, dir, o)
		if _, err := minikudu.Open(dir, o); !errors.Is(err, minikudu.ErrLocked) {
			t.Fatalf("a second open: %v", err)
		}
		tab, err := db.Table("a")
		fatal(t, err)
		for _, err := range tab.Scan(ctx, minikudu.Query{BatchRows: 1}) { // abandoned
			fatal(t, err)
			break
		}
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		for _, err := range tab.Scan(canceled, minikudu.Query{}) {
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("a cancelled scan: %v", err)
			}
		}
		fatal(t, j.commit(db, int64(i+1), map[string]int{"a": 1}))
		mustClose(t, db)
		if i == 5 {
			before = fds()
		}
	}
	if after := fds(); after > before+2 {
		t.Errorf("%d descriptors open, were %d", after, before)
	}
	if names, _ := os.ReadDir(filepath.Join(dir, "wal")); len(names) > 75 {
		t.Errorf("%d log segments", len(names))
	}
}

// Who may open what beside whom: one writer, or several readers; at once, through any
// name, and naming the holder.
func TestC88Locks(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		link = dir
	}
	rw, ro := tiny(vfs.OS), tiny(vfs.OS)
	ro.ReadOnly = true
	db := mustOpen(t, dir, rw)
	refused := func(what, dir string, o *minikudu.Options) {
		t.Helper()
		begin := time.Now()
		_, err := minikudu.Open(dir, o)
		var l *vfs.LockedError
		if !errors.Is(err, minikudu.ErrLocked) || !errors.As(err, &l) || l.PID != os.Getpid() {
			t.Errorf("%s: %v", what, err)
		}
		if d := time.Since(begin); d > time.Second {
			t.Errorf("%s: refused after %v", what, d)
		}
	}
	refused("writer beside writer", dir, rw)
	refused("reader beside writer", dir, ro)
	refused("writer through a symlink", link, rw)
	mustClose(t, db)

	one, two := mustOpen(t, dir, ro), mustOpen(t, link, ro)
	if _, err := minikudu.Open(dir, rw); !errors.Is(err, minikudu.ErrLocked) {
		t.Errorf("writer beside readers: %v", err)
	}
	if _, err := one.CreateTable(ctx, "x", tagSpec()); !errors.Is(err, minikudu.ErrReadOnly) {
		t.Errorf("create in a read-only store: %v", err)
	}
	mustClose(t, one)
	mustClose(t, two)
	mustClose(t, mustOpen(t, dir, rw))
}

// Another process is named by its id, and its lock ends with it, however it ends.
func TestC88LockOfAnotherProcess(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "js" {
		t.Skip("kills processes")
	}
	dir := t.TempDir()
	exe, err := os.Executable()
	fatal(t, err)
	cmd := exec.Command(exe, "-test.run=^TestKillChild$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), killDir+"="+dir, killMode+"=1", killFirst+"=0")
	out, err := cmd.StdoutPipe()
	fatal(t, err)
	fatal(t, cmd.Start())
	buf := make([]byte, 5) // "open\n"
	if _, err := out.Read(buf); err != nil {
		t.Fatal(err)
	}
	go func() { // keep it from blocking
		b := make([]byte, 4096)
		for {
			if _, err := out.Read(b); err != nil {
				return
			}
		}
	}()
	for _, readOnly := range []bool{false, true} {
		o := tiny(vfs.OS)
		o.ReadOnly = readOnly
		_, err = minikudu.Open(dir, o)
		var l *vfs.LockedError
		if !errors.As(err, &l) || l.PID != cmd.Process.Pid {
			t.Errorf("read-only %v, process %d has it: %v", readOnly, cmd.Process.Pid, err)
		}
	}
	fatal(t, cmd.Process.Kill())
	_ = cmd.Wait()
	mustClose(t, mustOpen(t, dir, tiny(vfs.OS))) // no stale lock
}

// A read-only open makes nothing and says what it found instead of a store.
func TestC89ReadOnlyOpenOfNothing(t *testing.T) {
	o := tiny(vfs.OS)
	o.ReadOnly = true
	base := t.TempDir()
	fatal(t, os.Mkdir(filepath.Join(base, "empty"), 0o755))
	fatal(t, os.Mkdir(filepath.Join(base, "other"), 0o755))
	fatal(t, os.WriteFile(filepath.Join(base, "file"), []byte("x"), 0o644))
	fatal(t, os.WriteFile(filepath.Join(base, "other", "thing"), []byte("x"), 0o644))
	list := func() (names []string) {
		fatal(t, filepath.WalkDir(base, func(path string, _ fs.DirEntry, err error) error {
			names = append(names, path)
			return err
		}))
		return names
	}
	before := strings.Join(list(), "\n")
	for _, name := range []string{"missing", "empty", "other"} {
		if _, err := minikudu.Open(filepath.Join(base, name), o); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := minikudu.Open(filepath.Join(base, "file"), o); err == nil {
		t.Error("a file was opened as a store")
	}
	for _, name := range []string{"other", "file"} {
		if _, err := minikudu.Open(filepath.Join(base, name), tiny(vfs.OS)); err == nil {
			t.Errorf("%s: a store was made there", name)
		}
	}
	if after := strings.Join(list(), "\n"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// A store of many rowsets works with few descriptors, and running out of them is an
// error of the moment, not damage.
func TestC87ManyRowSetsFewDescriptors(t *testing.T) {
	rowsets := int64(1000)
	if testing.Short() {
		rowsets = 100
	}
	mem, j := vfs.NewMem(), newJournal()
	o := tiny(mem)
	o.MaxOpenFiles, o.LogBytes, o.Durability, o.CompactionWorkers = 16, 1<<20, minikudu.NoSync, -1
	db := mustOpen(t, "store", o)
	defer func() { mustClose(t, db) }()
	fatal(t, j.create(db, "a"))
	for b := range rowsets {
		fatal(t, j.commit(db, b, map[string]int{"a": 2}))
		flushTable(t, db, "a")
	}
	if n := int64(db.Metrics().RowSets); n < rowsets/2 {
		t.Fatalf("%d rowsets", n)
	}
	fatal(t, j.check(db, durable))
	fatal(t, checkVerify(db))
	if m := db.Metrics(); m.OpenFiles > 16 || mem.OpenFiles() > 16+8 {
		t.Errorf("%d rowset files open, %d files in all", m.OpenFiles, mem.OpenFiles())
	}
	mustClose(t, db)
	db = mustOpen(t, "store", o)
	if n := mem.OpenFiles(); n > 8 {
		t.Errorf("an open has %d files open", n)
	}
	fatal(t, j.check(db, durable))
}

// The same in a process that may have 64 descriptors.
func TestC87DescriptorLimit(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "js" {
		t.Skip("needs ulimit")
	}
	const variable = "MINIKUDU_LIMIT_DIR"
	dir := os.Getenv(variable)
	if dir == "" {
		exe, err := os.Executable()
		fatal(t, err)
		cmd := exec.Command("sh", "-c", `ulimit -n 64 && exec "$0" "$@"`, exe, "-test.run=^TestC87DescriptorLimit$", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), variable+"="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	o := tiny(vfs.OS)
	o.Durability, o.LogBytes, o.CompactionWorkers = minikudu.NoSync, 1<<20, -1 // nothing closes files meanwhile
	db := mustOpen(t, dir, o)
	j := newJournal()
	fatal(t, j.create(db, "a"))
	for b := range int64(150) {
		fatal(t, j.commit(db, b, map[string]int{"a": 2}))
		flushTable(t, db, "a")
	}
	fatal(t, j.check(db, durable))
	fatal(t, checkVerify(db))

	var hogs []*os.File
	hog := func() { // from now on there is no descriptor left, but what the store closes
		for {
			f, err := os.Open(dir)
			if err != nil {
				return
			}
			hogs = append(hogs, f)
		}
	}
	hog()
	err := j.check(db, durable)
	if errors.Is(err, minikudu.ErrCorruption) || err != nil && !errors.Is(err, syscall.EMFILE) {
		t.Errorf("reads without descriptors: %v", err)
	}
	if err := j.commit(db, 1000, map[string]int{"a": 1}); err != nil && !errors.Is(err, syscall.EMFILE) {
		t.Errorf("a commit without descriptors: %v", err)
	}
	tab, err := db.Table("a")
	fatal(t, err)
	hog()
	if err := tab.Flush(ctx); err == nil || errors.Is(err, minikudu.ErrCorruption) || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("a flush without descriptors: %v", err)
	}
	for _, f := range hogs {
		f.Close()
	}
	fatal(t, j.check(db, durable))
	fatal(t, checkGoesOn(db, 2000))
	mustClose(t, db)
}
