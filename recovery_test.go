package minikudu_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/vfs"
)

// damaged opens the store for writing and requires that the damage is named, and that
// the open has left every file as it was.
func damaged(t *testing.T, what string, f *vfs.Mem, want string) {
	t.Helper()
	before := snapshotFiles(t, f)
	_, err := answers(f, false)
	if err == nil {
		t.Errorf("%s: opened without an error", what)
		return
	}
	if err := checkDamage(err, want); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	after := snapshotFiles(t, f)
	for path := range before {
		if _, there := after[path]; !there {
			t.Errorf("%s: the failed open removed %s", what, path)
		}
	}
}

// snapshotFiles returns the contents of all files of a store.
func snapshotFiles(t testing.TB, f vfs.FS) map[string]string {
	out := map[string]string{}
	for _, paths := range storeFiles(t, f) {
		for _, path := range paths {
			out[path] = string(readAll(t, f, path))
		}
	}
	return out
}

// restore writes the given contents over whatever is at path.
func restore(t testing.TB, f vfs.FS, path, contents string) {
	t.Helper()
	if err := f.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	file, err := f.Create(path, vfs.KindOther)
	fatal(t, err)
	_, err = file.WriteAt([]byte(contents), 0)
	fatal(t, errors.Join(err, file.Sync(), file.Close()))
}

// longStore is a closed store with two rowset files of table a, and a log of several
// segments that hold later rows.
func longStore(t testing.TB) *vfs.Mem {
	t.Helper()
	mem, j := vfs.NewMem(), newJournal()
	o := tiny(mem)
	o.FlushBytes, o.LogBytes = 1<<20, 16<<10
	db := mustOpen(t, "store", o)
	fatal(t, j.create(db, "a"))
	tab, err := db.Table("a")
	fatal(t, err)
	for b := range int64(8) {
		fatal(t, j.commit(db, b, map[string]int{"a": 90}))
		if b < 2 {
			fatal(t, tab.Flush(ctx))
		}
	}
	mustClose(t, db)
	return mem
}

// Removing any file of a store is found when it is opened, and nothing else is lost
// by the attempt.
func TestC74MissingFiles(t *testing.T) {
	base := longStore(t)
	files := storeFiles(t, base)
	if len(files["rowset"]) != 2 || len(files["log"]) < 3 {
		t.Fatalf("not what this test needs: %v", files)
	}
	for _, paths := range files {
		for _, path := range paths {
			if strings.Contains(path, "MANIFEST") {
				continue
			}
			f := base.KillClone()
			fatal(t, f.Remove(path))
			damaged(t, "without "+path, f, path)
		}
	}
	t.Run("manifest", func(t *testing.T) {
		f := base.KillClone()
		fatal(t, f.Remove(files["manifest"][0]))
		before := snapshotFiles(t, f)
		if _, err := answers(f, false); err == nil {
			t.Error("opened without its manifest")
		}
		db, err := minikudu.Open("store", tiny(f))
		if err == nil {
			db.Close()
			t.Error("a new store was made over the data of one that lost its manifest")
		}
		if after := snapshotFiles(t, f); len(after) != len(before) {
			t.Errorf("files %d, were %d", len(after), len(before))
		}
	})
	t.Run("lock", func(t *testing.T) {
		f := base.KillClone()
		want, err := answers(f, true)
		fatal(t, err)
		fatal(t, f.Remove("store/LOCK"))
		if got, err := answers(f, false); err != nil || got != want {
			t.Errorf("without its lock file: %v", err)
		}
	})
}

// Files of the right kind in the wrong place, or from another time, are found.
func TestC74SwappedAndOlderFiles(t *testing.T) {
	base := longStore(t)
	files := storeFiles(t, base)
	t.Run("two rowset files swapped", func(t *testing.T) {
		f := base.KillClone()
		one, two := files["rowset"][0], files["rowset"][1]
		first, second := readAll(t, f, one), readAll(t, f, two)
		restore(t, f, one, string(second))
		restore(t, f, two, string(first))
		_, err := answers(f, false)
		var c *vfs.CorruptionError
		if !errors.As(err, &c) || c.Path != one && c.Path != two {
			t.Errorf("swapped files: %v", err)
		}
	})
	t.Run("two log segments swapped", func(t *testing.T) {
		f := base.KillClone()
		one, two := files["log"][0], files["log"][1]
		first, second := readAll(t, f, one), readAll(t, f, two)
		restore(t, f, one, string(second))
		restore(t, f, two, string(first))
		if _, err := answers(f, false); !errors.Is(err, minikudu.ErrCorruption) {
			t.Errorf("swapped segments: %v", err)
		}
	})
	t.Run("a file of another store", func(t *testing.T) {
		other := storeFiles(t, longStore(t))
		foreign := longStore(t)
		for kind, paths := range files {
			f := base.KillClone()
			restore(t, f, paths[0], string(readAll(t, foreign, other[kind][0])))
			if _, err := answers(f, false); !errors.Is(err, minikudu.ErrCorruption) {
				t.Errorf("%s of another store: %v", kind, err)
			}
		}
	})
}

// An older manifest than the rest of the store: nothing that a newer one named may be
// removed because the older does not name it.
func TestC70OlderManifestRemovesNothing(t *testing.T) {
	mem, j := vfs.NewMem(), newJournal()
	o := tiny(mem)
	o.FlushBytes, o.LogBytes = 1<<20, 16<<10
	db := mustOpen(t, "store", o)
	fatal(t, j.create(db, "a"))
	fatal(t, j.commit(db, 0, map[string]int{"a": 60}))
	mustClose(t, db)
	manifest := storeFiles(t, mem)["manifest"][0]
	older := string(readAll(t, mem, manifest))

	db = mustOpen(t, "store", o)
	tab, err := db.Table("a")
	fatal(t, err)
	for b := range int64(4) {
		fatal(t, j.commit(db, b+1, map[string]int{"a": 100}))
		fatal(t, tab.Flush(ctx)) // trims the log
	}
	mustClose(t, db)
	restore(t, mem, manifest, older)
	before := snapshotFiles(t, mem)
	if _, err := answers(mem, false); !errors.Is(err, minikudu.ErrCorruption) {
		t.Fatalf("an older manifest: %v", err)
	}
	for path := range before {
		if _, there := snapshotFiles(t, mem)[path]; !there {
			t.Errorf("the failed open removed %s", path)
		}
	}
}

// Every kind of file cut to nothing, one byte, half, and all but one byte.
func TestC79TruncatedFiles(t *testing.T) {
	base := longStore(t)
	for kind, paths := range storeFiles(t, base) {
		for _, path := range paths {
			size := int64(len(readAll(t, base, path)))
			used := int64(len(strings.TrimRight(string(readAll(t, base, path)), "\x00")))
			for _, to := range []int64{0, 1, used / 2, used - 1} {
				f := base.KillClone()
				file, err := f.OpenWrite(path, vfs.KindOther)
				fatal(t, err)
				fatal(t, errors.Join(file.Truncate(to), file.Sync(), file.Close()))
				damaged(t, fmt.Sprintf("%s %s cut from %d to %d bytes", kind, path, size, to), f, path)
			}
		}
	}
}

// A manifest that is empty, doubled, garbage or zeroes.
func TestC72BadManifest(t *testing.T) {
	base := longStore(t)
	path := storeFiles(t, base)["manifest"][0]
	good := string(readAll(t, base, path))
	used := strings.TrimRight(good, "\x00")
	for name, contents := range map[string]string{
		"empty":   "",
		"half":    good[:len(used)/2],
		"garbage": strings.Repeat("garbage ", 1000),
		"zero":    strings.Repeat("\x00", len(good)),
		"doubled": used + used + strings.Repeat("\x00", 4096),
	} {
		f := base.KillClone()
		restore(t, f, path, contents)
		damaged(t, name, f, path)
	}
}

// Zeroes behind the log are its end; anything else behind them is reported.
func TestC66ZeroesBehindTheLog(t *testing.T) {
	j := newJournal()
	base := killed(t, j)
	logs := storeFiles(t, base)["log"]
	last := logs[len(logs)-1]
	for _, n := range []int{1, 4 << 10, 1 << 20} {
		f := base.KillClone()
		file, err := f.OpenWrite(last, vfs.KindLog)
		fatal(t, err)
		size, err := file.Size()
		fatal(t, err)
		fatal(t, errors.Join(file.Truncate(size+int64(n)), file.Close()))
		db := mustOpen(t, "store", tiny(f))
		fatal(t, j.check(db, durable))
		mustClose(t, db)
	}
	t.Run("segment of zeroes", func(t *testing.T) {
		f := base.KillClone()
		restore(t, f, "store/wal/00000900.log", strings.Repeat("\x00", 5000))
		restore(t, f, "store/wal/00000901.log", "")
		db := mustOpen(t, "store", tiny(f))
		defer mustClose(t, db)
		fatal(t, j.check(db, durable))
	})
}

// What an unfinished flush left is removed at open; what is not the store's own stays.
func TestC82OrphansGoForeignFilesStay(t *testing.T) {
	mem := smallStore(t)
	foreign := []string{"store/notes.txt", "store/data/notes.txt", "store/data/1.rowset", "store/wal/x.log", "store/wal/1.log"}
	for _, path := range append([]string{"store/data/0000000777.rowset"}, foreign...) {
		restore(t, mem, path, "something")
	}
	fatal(t, mem.MkdirAll("store/lost+found"))
	o := tiny(mem)
	o.ReadOnly = true
	mustClose(t, mustOpen(t, "store", o))
	if _, err := mem.Stat("store/data/0000000777.rowset"); err != nil {
		t.Errorf("a read-only open removed something: %v", err)
	}
	db := mustOpen(t, "store", tiny(mem))
	defer mustClose(t, db)
	if _, err := mem.Stat("store/data/0000000777.rowset"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a flush left is still there: %v", err)
	}
	for _, path := range append(foreign, "store/lost+found") {
		if _, err := mem.Stat(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	fatal(t, checkGoesOn(db, 50))
	if _, err := mem.Stat("store/data/0000000778.rowset"); err != nil {
		t.Errorf("the number of the removed file is used again: %v", err)
	}
}

// A copy of a store may lack directories that were empty.
func TestEmptyDirectoriesMayBeMissing(t *testing.T) {
	mem, j := vfs.NewMem(), newJournal()
	db := mustOpen(t, "store", tiny(mem))
	fatal(t, j.create(db, "a"))
	mustClose(t, db)
	fatal(t, mem.Remove("store/data"))
	fatal(t, mem.Remove("store/wal"))
	o := tiny(mem)
	o.ReadOnly = true
	mustClose(t, mustOpen(t, "store", o))
	db = mustOpen(t, "store", tiny(mem))
	defer mustClose(t, db)
	fatal(t, checkGoesOn(db, 1))
}

// The directories above a new store are durable too.
func TestC71NewDirectoriesAreDurable(t *testing.T) {
	mem, j := vfs.NewMem(), newJournal()
	db := mustOpen(t, "one/two/store", tiny(mem))
	fatal(t, j.create(db, "a"))
	fatal(t, j.commit(db, 0, map[string]int{"a": 3}))
	after := mem.CrashClone(vfs.CrashOptions{})
	mustClose(t, db)
	db = mustOpen(t, "one/two/store", tiny(after))
	defer mustClose(t, db)
	fatal(t, j.check(db, durable))
}
