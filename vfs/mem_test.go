package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

func TestMem(t *testing.T) {
	m := NewMem()
	testFS(t, m, "/")
	if n := m.OpenFiles(); n != 0 {
		t.Fatalf("%d files open", n)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, m FS, name string, off int64, s string) File {
	t.Helper()
	f, err := m.OpenWrite(name, KindOther)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = m.Create(name, KindOther)
	}
	must(t, err)
	_, err = f.WriteAt([]byte(s), off)
	must(t, err)
	return f
}

// contents returns a file's bytes, or "-" when there is none.
func contents(t testing.TB, m FS, name string) string {
	t.Helper()
	f, err := m.Open(name, KindOther)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	must(t, err)
	defer f.Close()
	n, _ := f.Size()
	b := make([]byte, n)
	f.ReadAt(b, 0)
	return string(b)
}

func TestCrashLosesUnsyncedBytes(t *testing.T) {
	m := NewMem()
	f := write(t, m, "a", 0, "first")
	must(t, m.SyncDir("/"))
	if got := contents(t, m.CrashClone(CrashOptions{}), "a"); got != "" {
		t.Fatalf("unsynced bytes survived: %q", got)
	}
	must(t, f.Sync())
	write(t, m, "a", 0, "FIRST and more")
	c := m.CrashClone(CrashOptions{})
	if got := contents(t, c, "a"); got != "first" {
		t.Fatalf("%q", got)
	}
	if got := contents(t, m, "a"); got != "FIRST and more" {
		t.Fatalf("the original changed: %q", got)
	}
	must(t, f.Truncate(2))
	if got := contents(t, m.CrashClone(CrashOptions{}), "a"); got != "first" {
		t.Fatalf("unsynced truncation: %q", got)
	}
	must(t, f.Sync())
	must(t, f.Truncate(4))
	must(t, f.Sync())
	if got := contents(t, m.CrashClone(CrashOptions{}), "a"); got != "FI\x00\x00" {
		t.Fatalf("%q", got)
	}
}

func TestCrashLosesUnsyncedEntries(t *testing.T) {
	m := NewMem()
	for _, s := range []string{"kept", "removed", "renamed", "linked"} {
		must(t, write(t, m, s, 0, s).Sync())
	}
	must(t, m.MkdirAll("dir/sub"))
	must(t, m.SyncDir("/"))
	must(t, write(t, m, "new", 0, "new").Sync())
	must(t, m.Remove("removed"))
	must(t, m.Rename("renamed", "other"))
	must(t, m.Link("linked", "link"))
	list := func(m *Mem) string {
		names, err := m.List("/")
		must(t, err)
		return fmt.Sprint(names)
	}
	c := m.CrashClone(CrashOptions{})
	if got := list(c); got != "[dir kept linked removed renamed]" {
		t.Fatal(got)
	}
	if names, _ := c.List("dir"); len(names) != 0 {
		t.Fatal("the entry of dir/sub survived")
	}
	if contents(t, c, "removed") != "removed" {
		t.Fatal("a removal that was not synced took the bytes")
	}
	must(t, m.SyncDir("/"))
	c = m.CrashClone(CrashOptions{})
	if got := list(c); got != "[dir kept link linked new other]" {
		t.Fatal(got)
	}
	must(t, write(t, c, "link", 0, "LINKED").Sync())
	if contents(t, c, "linked") != "LINKED" {
		t.Fatal("two names of one file became two files")
	}
}

func TestCrashReleasesLocks(t *testing.T) {
	m := NewMem()
	l, err := m.Lock("LOCK", false, true)
	must(t, err)
	defer l.Close()
	must(t, m.SyncDir("/"))
	l, err = m.CrashClone(CrashOptions{}).Lock("LOCK", false, false)
	must(t, err)
	must(t, l.Close())
}

// TestCrashSurvivorsAreOldOrNew writes random extents and requires every block
// after a crash to hold what it held at the last sync or what was written since.
func TestCrashSurvivorsAreOldOrNew(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		m := NewMem()
		f, err := m.Create("a", KindOther)
		if err != nil {
			t.Fatal(err)
		}
		m.SyncDir("/")
		var synced, now []byte
		for i := range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				f.Sync()
				synced = bytes.Clone(now)
			case 1:
				n := rapid.IntRange(0, 20_000).Draw(t, "size")
				f.Truncate(int64(n))
				now = append(now[:min(n, len(now)):min(n, len(now))], make([]byte, max(0, n-len(now)))...)
			default:
				off, n := rapid.IntRange(0, 15_000).Draw(t, "off"), rapid.IntRange(1, 9_000).Draw(t, "n")
				p := bytes.Repeat([]byte{byte(i + 1)}, n)
				f.WriteAt(p, int64(off))
				now = append(now, make([]byte, max(0, off+n-len(now)))...)
				copy(now[off:], p)
			}
			if contents(outer, m, "a") != string(now) {
				t.Fatal("contents differ from the model")
			}
		}
		if contents(outer, m.CrashClone(CrashOptions{}), "a") != string(synced) {
			t.Fatal("not the synced contents")
		}
		seed := rapid.Uint64().Draw(t, "seed")
		c := m.CrashClone(CrashOptions{Rand: rand.New(rand.NewPCG(seed, 0))})
		got := contents(outer, c, "a")
		if got != contents(outer, m.CrashClone(CrashOptions{Rand: rand.New(rand.NewPCG(seed, 0))}), "a") {
			t.Fatal("one seed, two results")
		}
		if len(got) != len(synced) && len(got) != len(now) {
			t.Fatalf("size %d, synced %d, now %d", len(got), len(synced), len(now))
		}
		for at := 0; at < len(got); at += memBlock {
			end := min(at+memBlock, len(got))
			if s := got[at:end]; s != padded(synced, at, end) && s != padded(now, at, end) {
				t.Fatalf("block at %d is neither old nor new", at)
			}
		}
	})
}

func padded(b []byte, from, to int) string {
	out := make([]byte, to-from)
	if from < len(b) {
		copy(out, b[from:])
	}
	return string(out)
}

func TestCrashRandomEntries(t *testing.T) {
	m := NewMem()
	for _, s := range []string{"a", "b"} {
		write(t, m, s, 0, s)
	}
	seen := map[string]bool{}
	for seed := range uint64(64) {
		names, err := m.CrashClone(CrashOptions{Rand: rand.New(rand.NewPCG(seed, 1))}).List("/")
		must(t, err)
		seen[fmt.Sprint(names)] = true
	}
	if len(seen) != 4 {
		t.Fatal(seen)
	}
}

func TestWindowsRules(t *testing.T) {
	m := NewMemOptions(MemOptions{WindowsRules: true})
	f := write(t, m, "a", 0, "x")
	write(t, m, "b", 0, "y").Close()
	for what, err := range map[string]error{"remove": m.Remove("a"), "rename": m.Rename("a", "c"), "replace": m.Rename("b", "a")} {
		if err == nil {
			t.Errorf("%s of an open file", what)
		}
	}
	must(t, f.Close())
	must(t, m.Rename("b", "a"))
	must(t, m.Remove("a"))
}

func TestCapacity(t *testing.T) {
	m := NewMemOptions(MemOptions{Capacity: 100})
	f := write(t, m, "a", 0, string(make([]byte, 60)))
	g, err := m.Create("b", KindOther)
	must(t, err)
	if _, err := g.WriteAt(make([]byte, 41), 0); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := g.Preallocate(0, 41); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	_, err = f.WriteAt(make([]byte, 60), 0) // in place needs no space
	must(t, err)
	must(t, m.Remove("a"))
	if m.FreeSpace("/") != 40 {
		t.Fatal("an open file gave its space back")
	}
	must(t, f.Close())
	if m.FreeSpace("/") != 100 {
		t.Fatal(m.FreeSpace("/"))
	}
	must(t, g.Preallocate(0, 100))
	m.SetCapacity(0)
	must(t, g.Preallocate(0, 1000))
}

func TestMemConcurrently(t *testing.T) {
	m := NewMem()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			name := fmt.Sprint("f", i)
			for range 50 {
				f := write(t, m, name, 0, "text")
				f.Sync()
				m.SyncDir("/")
				f.ReadAt(make([]byte, 2), 1)
				f.Close()
				m.CrashClone(CrashOptions{Rand: rand.New(rand.NewPCG(1, 2))}).List("/")
				m.Remove(name)
			}
		})
	}
	wg.Wait()
	if names, _ := m.List("/"); !slices.Equal(names, []string{}) || m.OpenFiles() != 0 {
		t.Fatal(names)
	}
}

func BenchmarkMemWrite(b *testing.B) {
	m := NewMem()
	f := write(b, m, "a", 0, "x")
	p := make([]byte, 64<<10)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		f.WriteAt(p, 0)
		f.Sync()
	}
}

func TestKillKeepsWhatWasWritten(t *testing.T) {
	m := NewMem()
	must(t, m.MkdirAll("d"))
	must(t, m.SyncDir("/"))
	f := write(t, m, "d/a", 0, "synced")
	must(t, f.Sync())
	must(t, m.SyncDir("d"))
	write(t, m, "d/a", 0, "later!")
	write(t, m, "d/b", 0, "new")
	lock, err := m.Lock("d/LOCK", false, true)
	must(t, err)
	defer lock.Close()

	k := m.KillClone()
	write(t, m, "d/a", 0, "after the kill")
	for name, want := range map[string]string{"d/a": "later!", "d/b": "new"} {
		if got := contents(t, k, name); got != want {
			t.Errorf("%s: %q after a kill, want %q", name, got, want)
		}
	}
	cut := k.CrashClone(CrashOptions{})
	for name, want := range map[string]string{"d/a": "synced", "d/b": "-"} {
		if got := contents(t, cut, name); got != want {
			t.Errorf("%s: %q after a kill and a power cut, want %q", name, got, want)
		}
	}
	if l, err := k.Lock("d/LOCK", false, false); err != nil {
		t.Errorf("the lock outlived its holder: %v", err)
	} else {
		l.Close()
	}
	if k.OpenFiles() != 0 {
		t.Errorf("%d open files after a kill", k.OpenFiles())
	}
}
