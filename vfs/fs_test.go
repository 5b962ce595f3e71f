package vfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"
)

// testFS checks the contract of FS in an empty directory.
func testFS(t *testing.T, f FS, dir string) {
	for name, test := range map[string]func(*testing.T, FS, string){
		"files": testFiles, "names": testNames, "locks": func(t *testing.T, f FS, dir string) {
			testLockConflicts(t, f, f.Join(dir, "LOCK"), f.Join(dir, "LOCK"))
		},
	} {
		sub := f.Join(dir, name)
		if err := f.MkdirAll(sub); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { test(t, f, sub) })
	}
}

func testFiles(t *testing.T, f FS, dir string) {
	name := f.Join(dir, "a")
	w, err := f.Create(name, KindOther)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := f.Create(name, KindOther); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("second create: %v", err)
	}
	if _, err := w.WriteAt([]byte("hello"), 10_000); err != nil {
		t.Fatal(err)
	}
	if err := w.Preallocate(9_000, 5_000); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Size(); n != 14_000 || err != nil {
		t.Fatalf("size %d, %v", n, err)
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	r, err := f.Open(name, KindOther)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b := make([]byte, 7)
	if _, err := r.ReadAtContext(context.Background(), b, 9_999); err != nil || string(b) != "\x00hello\x00" {
		t.Fatalf("%q %v", b, err)
	}
	if n, err := r.ReadAt(b, 13_998); n != 2 || err != io.EOF {
		t.Fatalf("read over the end: %d %v", n, err)
	}
	if _, err := r.WriteAt(b, 0); err == nil {
		t.Fatal("wrote a file opened for reading")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.ReadAtContext(ctx, b, 0); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := w.Truncate(10_002); err != nil {
		t.Fatal(err)
	}
	if err := w.Truncate(10_005); err != nil {
		t.Fatal(err)
	}
	if r.ReadAt(b[:5], 10_000); string(b[:5]) != "he\x00\x00\x00" {
		t.Fatalf("truncated bytes came back: %q", b)
	}
	if r.Name() != name {
		t.Fatal(r.Name())
	}
}

func testNames(t *testing.T, f FS, dir string) {
	join := func(s string) string { return f.Join(dir, s) }
	w, err := f.Create(join("b"), KindOther)
	if err != nil {
		t.Fatal(err)
	}
	w.WriteAt([]byte("x"), 0)
	w.Close()
	if err := f.Link(join("b"), join("a")); err != nil {
		t.Fatal(err)
	}
	if err := f.Link(join("b"), join("a")); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	if err := f.MkdirAll(join("d/e")); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove(join("d")); err == nil {
		t.Fatal("removed a directory that is not empty")
	}
	if err := f.Rename(join("b"), join("c")); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove(join("a")); err != nil {
		t.Fatal(err)
	}
	if names, err := f.List(dir); err != nil || !slices.Equal(names, []string{"c", "d"}) {
		t.Fatal(names, err)
	}
	if i, err := f.Stat(join("c")); err != nil || i.Size() != 1 || i.IsDir() || i.Name() != "c" {
		t.Fatal(i, err)
	}
	if i, err := f.Stat(join("d")); err != nil || !i.IsDir() {
		t.Fatal(i, err)
	}
	if err := f.SyncDir(dir); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"open": second(f.Open(join("none"), KindOther)), "write": second(f.OpenWrite(join("none"), KindOther)),
		"remove": f.Remove(join("none")), "rename": f.Rename(join("none"), join("x")), "list": second(f.List(join("none"))),
		"stat": second(f.Stat(join("none"))), "create": second(f.Create(join("none/a"), KindOther)), "link": f.Link(join("none"), join("x")),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of a missing name: %v", what, err)
		}
	}
	if err := f.MkdirAll(join("c/d")); err == nil {
		t.Error("directory below a file")
	}
	if f.FreeSpace(dir) == 0 {
		t.Error("no free space")
	}
}

func second[T any](_ T, err error) error { return err }

// testLockConflicts takes the lock through two names of one file.
func testLockConflicts(t *testing.T, f FS, a, b string) {
	w, err := f.Lock(a, false, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, shared := range []bool{false, true} {
		if _, err := f.Lock(b, shared, true); !errors.Is(err, ErrLocked) {
			t.Fatalf("beside a writer, shared %v: %v", shared, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Fatalf("second close: %v", err)
	}
	r1, err := f.Lock(a, true, false)
	if err != nil {
		t.Fatal(err)
	}
	r2, err := f.Lock(b, true, false)
	if err != nil {
		t.Fatal(err)
	}
	r1.Close()
	if _, err := f.Lock(b, false, false); !errors.Is(err, ErrLocked) {
		t.Fatalf("beside a reader: %v", err)
	}
	r2.Close()
	if w, err = f.Lock(b, false, false); err != nil {
		t.Fatal(err)
	}
	w.Close()
}

func TestOS(t *testing.T) { testFS(t, OS, t.TempDir()) }
