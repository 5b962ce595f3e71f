package vfs

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestMain plays the other process of the lock tests.
func TestMain(m *testing.M) {
	if name := os.Getenv("VFS_TEST_LOCK"); name != "" {
		l, err := OS.Lock(name, os.Getenv("VFS_TEST_SHARED") != "", false)
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString("ok\n")
		io.Copy(io.Discard, os.Stdin)
		l.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lockInChild starts a process that holds the lock until stop, and returns what it says.
func lockInChild(t *testing.T, name string, shared bool) (said string, pid int, stop func()) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "VFS_TEST_LOCK="+name)
	if shared {
		c.Env = append(c.Env, "VFS_TEST_SHARED=1")
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said, _ = bufio.NewReader(out).ReadString('\n')
	return said, c.Process.Pid, func() {
		c.Process.Kill()
		in.Close()
		c.Wait()
	}
}

func touch(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestC88LockBetweenProcesses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	touch(t, name)
	said, pid, stop := lockInChild(t, name, false)
	if said != "ok\n" {
		t.Fatal(said)
	}
	for _, shared := range []bool{true, false} {
		_, err := OS.Lock(name, shared, true)
		var l *LockedError
		if !errors.As(err, &l) || !errors.Is(err, ErrLocked) || l.PID != pid {
			t.Fatalf("shared %v: %v, holder is %d", shared, err, pid)
		}
	}
	stop() // kill -9 leaves no stale lock
	l, err := OS.Lock(name, false, true)
	if err != nil {
		t.Fatal(err)
	}
	if said, _, stop := lockInChild(t, name, true); !strings.Contains(said, "is locked by process") {
		t.Fatal(said)
	} else {
		stop()
	}
	l.Close()

	_, _, stop = lockInChild(t, name, true)
	defer stop()
	r, err := OS.Lock(name, true, false)
	if err != nil {
		t.Fatalf("two readers: %v", err)
	}
	r.Close()
	var e *LockedError
	if _, err := OS.Lock(name, false, true); !errors.As(err, &e) || !e.Shared || e.PID != 0 {
		t.Fatalf("writer beside a reader: %v", err)
	}
}

func TestC88LockThroughSymlink(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	if err := os.Mkdir(real, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	testLockConflicts(t, OS, filepath.Join(real, "LOCK"), filepath.Join(dir, "link", "LOCK"))
}

func TestC89ReadOnlyLockCreatesNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := OS.Lock(filepath.Join(dir, "LOCK"), true, false); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if names, _ := OS.List(dir); len(names) != 0 {
		t.Fatal(names)
	}
	name := filepath.Join(dir, "LOCK")
	touch(t, name)
	os.Chmod(name, 0o400)
	l, err := OS.Lock(name, true, false)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestLockOfDirectory(t *testing.T) {
	if l, err := OS.Lock(t.TempDir(), true, false); err == nil {
		l.Close()
		t.Fatal("locked a directory")
	}
}

func TestWriteZeroes(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString("data")
	for _, c := range []struct{ off, n, size int64 }{{0, 3, 4}, {2, 200_000, 200_002}, {300_000, 5, 300_005}} {
		if err := writeZeroes(f, c.off, c.n); err != nil {
			t.Fatal(err)
		}
		info, _ := f.Stat()
		if info.Size() != c.size {
			t.Fatalf("size %d, want %d", info.Size(), c.size)
		}
	}
	b := make([]byte, 6)
	f.ReadAt(b, 0)
	if string(b) != "data\x00\x00" {
		t.Fatalf("%q", b)
	}
}

func TestC84UnsyncedDirs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	if err := OS.SyncDir("/proc"); err != nil {
		t.Fatalf("a file system that cannot sync directories: %v", err)
	}
	if dirs := UnsyncedDirs(); len(dirs) != 1 || dirs[0] != "/proc" {
		t.Fatal(dirs)
	}
	if err := OS.SyncDir(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}
