package minikudu_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
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
		foreign := longStore(t)
		other := storeFiles(t, foreign)
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

// reopenKilled opens what a kill of the process now would leave and compares.
func reopenKilled(t *testing.T, mem *vfs.Mem, j *journal) *vfs.Mem {
	t.Helper()
	return reopenWith(t, mem.KillClone(), j, durable)
}

func reopenWith(t *testing.T, f *vfs.Mem, j *journal, p promise) *vfs.Mem {
	t.Helper()
	db := mustOpen(t, "store", tiny(f))
	fatal(t, j.check(db, p))
	fatal(t, checkVerify(db))
	mustClose(t, db)
	return f
}

// roomy are options under which nothing is flushed or merged unless asked, and the log has one segment.
func roomy(fs vfs.FS) *minikudu.Options {
	return &minikudu.Options{FS: fs, MemoryBudget: 8 << 20, FlushBytes: 1 << 20, LogBytes: 64 << 20, CompactionWorkers: -1}
}

func flushTable(t *testing.T, db *minikudu.DB, name string) {
	t.Helper()
	tab, err := db.Table(name)
	fatal(t, err)
	fatal(t, tab.Flush(ctx))
}

// A flush and a crash before its files are synced, before its edit is written, before
// the edit is synced, after that, and when the log was trimmed: no row is lost or there
// twice.
func TestR4R5CrashAroundThePublicationOfAFlush(t *testing.T) {
	mem, j := vfs.NewMem(), newJournal()
	f := errorfs.Wrap(mem)
	o := roomy(f)
	o.LogBytes = 16 << 10 // the flush trims
	db := mustOpen(t, "store", o)
	defer mustClose(t, db)
	fatal(t, j.create(db, "a"))
	for b := range int64(5) {
		fatal(t, j.commit(db, b, map[string]int{"a": 60}))
	}
	var clones []*vfs.Mem
	var calls []string
	stop := watch(f, func(c errorfs.Call) {
		clones = append(clones, mem.KillClone(), mem.CrashClone(vfs.CrashOptions{}))
		calls = append(calls, c.String())
	})
	flushTable(t, db, "a")
	stop()
	all := strings.Join(calls, "\n")
	for _, want := range []string{"create store/data", "sync store/data", "write store/MANIFEST", "sync store/MANIFEST", "remove store/wal"} {
		if !strings.Contains(all, want) {
			t.Fatalf("the flush did not %s:\n%s", want, all)
		}
	}
	for _, c := range clones {
		reopenWith(t, c, j, durable)
	}
	reopenKilled(t, mem, j)
}

// A batch over two tables of which one is flushed past it, before and after a power cut
// that takes the unsynced log.
func TestR4BatchOverTwoTablesOneFlushedPastIt(t *testing.T) {
	for _, d := range []minikudu.Durability{minikudu.Sync, minikudu.NoSync} {
		mem, j := vfs.NewMem(), newJournal()
		o := roomy(mem)
		o.Durability = d
		db := mustOpen(t, "store", o)
		fatal(t, j.create(db, "a"))
		fatal(t, j.create(db, "b"))
		for b := range int64(4) {
			fatal(t, j.commit(db, b, map[string]int{"a": 3, "b": 4}))
		}
		flushTable(t, db, "a")
		// The flush has made the log durable through these batches, in every mode.
		reopenWith(t, mem.CrashClone(vfs.CrashOptions{}), j, durable)
		for b := range int64(4) {
			fatal(t, j.commit(db, 10+b, map[string]int{"a": 2, "b": 2}))
		}
		again := reopenKilled(t, mem, j)
		reopenWith(t, again, j, durable) // and once more, after a clean close
		flushTable(t, db, "b")
		reopenWith(t, mem.CrashClone(vfs.CrashOptions{}), j, durable)
		mustClose(t, db)
	}
}

// Records of a table that was dropped since are skipped, those of the others are not.
func TestR10RecordsOfADroppedTable(t *testing.T) {
	mem, j := vfs.NewMem(), newJournal()
	db := mustOpen(t, "store", roomy(mem))
	fatal(t, j.create(db, "a"))
	fatal(t, j.create(db, "c"))
	fatal(t, j.commit(db, 0, map[string]int{"a": 3, "c": 4}))
	fatal(t, j.drop(db, "c"))
	fatal(t, j.commit(db, 1, map[string]int{"a": 2}))
	reopenKilled(t, mem, j)
	// A new table of the name does not get the old one's rows.
	fatal(t, j.create(db, "c"))
	f := mem.KillClone()
	again := mustOpen(t, "store", roomy(f))
	tab, err := again.Table("c")
	fatal(t, err)
	if got, err := tally(tab); err != nil || len(got) > 0 {
		t.Errorf("rows of a dropped table are in its successor: %v, %v", got, err)
	}
	mustClose(t, again)
	mustClose(t, db)
}

// R9: however often the others flush, the log is kept from the oldest row in memory.
func TestR9UnflushedTableAnchorsTheLog(t *testing.T) {
	mem, j := vfs.NewMem(), newJournal()
	o := roomy(mem)
	o.LogBytes = 16 << 10
	var reasons []string
	o.Events = &minikudu.EventListener{FlushBegin: func(i minikudu.FlushInfo) { reasons = append(reasons, i.Table+" "+i.Reason) }}
	db := mustOpen(t, "store", o)
	fatal(t, j.create(db, "a"))
	fatal(t, j.create(db, "b"))
	fatal(t, j.commit(db, 0, map[string]int{"a": 1}))
	for b := range int64(6) {
		fatal(t, j.commit(db, 1+b, map[string]int{"b": 80}))
		flushTable(t, db, "b")
		reopenKilled(t, mem, j)
	}
	mustClose(t, db)
	reopenWith(t, mem, j, durable)
}

// A log that ends before what the rowset files hold has lost records.
func TestR10LogBelowAWatermark(t *testing.T) {
	mem, j := vfs.NewMem(), newJournal()
	db := mustOpen(t, "store", roomy(mem))
	fatal(t, j.create(db, "a"))
	fatal(t, j.create(db, "b"))
	for b := range int64(2) { // the second flush writes nothing about the log to the manifest
		fatal(t, j.commit(db, b, map[string]int{"a": 3, "b": 3}))
		flushTable(t, db, "a")
	}
	f := mem.KillClone()
	mustClose(t, db)
	path := storeFiles(t, f)["log"][0]
	used := len(strings.TrimRight(string(readAll(t, f, path)), "\x00"))
	overwrite(t, f, path, int64(used-50), make([]byte, 50)) // as if batch 1 had been torn
	_, err := minikudu.Open("store", roomy(f))
	var c *vfs.CorruptionError
	if !errors.As(err, &c) || c.Path == "" || c.Section == "" {
		t.Errorf("a log that ends below a watermark: %v", err)
	} else if !strings.Contains(err.Error(), "watermark") {
		t.Errorf("found by something else: %v", err)
	}
}

// Timestamps rise over a restart at which the clock is behind.
func TestR10TimestampsRiseOverARestart(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		mem, j := vfs.NewMem(), newJournal()
		clock := newClock(time.Now())
		o := roomy(mem)
		o.Now = clock.now
		db := mustOpen(t, "store", o)
		fatal(t, j.create(db, "a"))
		tab, err := db.Table("a")
		fatal(t, err)
		commit := func(db *minikudu.DB, b int64) minikudu.Timestamp {
			var wb minikudu.WriteBatch
			tab, err := db.Table("a")
			fatal(t, err)
			addTagged(&wb, tab, b, 1)
			res, err := db.Commit(ctx, &wb, nil)
			fatal(t, err)
			return res.Timestamp
		}
		last := commit(db, 1)
		if flushed {
			fatal(t, tab.Flush(ctx))
		}
		f := mem.KillClone()
		mustClose(t, db)
		clock.pass(-time.Hour)
		o.FS = f
		db = mustOpen(t, "store", o)
		if next := commit(db, 2); next <= last {
			t.Errorf("flushed %v: timestamp %d after %d", flushed, next, last)
		}
		mustClose(t, db)
	}
}

// Generated ids are not used twice, whether the log or only a rowset file holds them.
func TestR5GeneratedIDsAreNotReused(t *testing.T) {
	mem := vfs.NewMem()
	db := mustOpen(t, "store", roomy(mem))
	spec := minikudu.TableSpec{Key: []string{"k"}, NonUnique: true, Columns: []minikudu.Column{{Name: "k", Type: schema.Int64}}}
	_, err := db.CreateTable(ctx, "ids", spec)
	fatal(t, err)
	for i := range 4 {
		tab, err := db.Table("ids")
		fatal(t, err)
		var wb minikudu.WriteBatch
		for range 10 {
			wb.Insert(tab, 1)
		}
		_, err = db.Commit(ctx, &wb, nil)
		fatal(t, err)
		if i%2 == 0 {
			fatal(t, tab.Flush(ctx))
		}
		f := mem.KillClone()
		mustClose(t, db)
		mem = f
		db = mustOpen(t, "store", roomy(mem))
	}
	tab, err := db.Table("ids")
	fatal(t, err)
	seen := map[int64]bool{}
	for b, err := range tab.Scan(ctx, minikudu.Query{Columns: []string{schema.AutoIncrementName}}) {
		fatal(t, err)
		for _, id := range b.Column(0).Int64s() {
			if seen[id] {
				t.Errorf("id %d twice", id)
			}
			seen[id] = true
		}
	}
	if len(seen) != 40 {
		t.Errorf("%d ids, want 40", len(seen))
	}
	mustClose(t, db)
}

// A dropped table no longer holds the log back.
func TestR9DropFreesTheLog(t *testing.T) {
	mem, j := vfs.NewMem(), newJournal()
	o := roomy(mem)
	o.LogBytes = 64 << 10
	db := mustOpen(t, "store", o)
	defer mustClose(t, db)
	fatal(t, j.create(db, "c"))
	for b := range int64(5) {
		fatal(t, j.commit(db, b, map[string]int{"c": 100}))
	}
	before := db.Metrics().LogBytes
	fatal(t, j.drop(db, "c"))
	if after := db.Metrics().LogBytes; after > before/2 {
		t.Errorf("log of %d bytes, was %d", after, before)
	}
	reopenKilled(t, mem, j)
}

// Damage anywhere in a log of several segments, the last record of the last included,
// is found: the log was closed, so all of it was durable.
func TestC65DamageInTheLog(t *testing.T) {
	base := longStore(t)
	want, err := answers(base, true)
	fatal(t, err)
	r := testkit.Rand(t)
	for _, path := range storeFiles(t, base)["log"] {
		f := &flipper{t: t, fs: base, want: want, path: path, bytes: readAll(t, base, path), harmless: map[int]int{}}
		used := len(strings.TrimRight(string(f.bytes), "\x00"))
		f.try(used-1, 0x10)
		f.try(used-40, 0x10)
		f.try(0, 0x10)
		for range 30 {
			f.try(r.IntN(used), byte(1+r.IntN(255)))
		}
		if n := f.report(used); n > 0 {
			t.Errorf("%s: %d bytes are harmless", path, n)
		}
	}
}

// The directory is removed under a running store: errors, no panic, no hang.
func TestC81DirectoryRemoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("directories in use cannot be removed")
	}
	dir := t.TempDir()
	db := mustOpen(t, dir, roomy(vfs.OS))
	j := newJournal()
	fatal(t, j.create(db, "a"))
	fatal(t, j.commit(db, 0, map[string]int{"a": 50}))
	for _, sub := range []string{"data", "wal"} {
		fatal(t, os.RemoveAll(filepath.Join(dir, sub)))
	}
	tab, err := db.Table("a")
	fatal(t, err)
	if err := tab.Flush(ctx); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("flush: %v", err)
	}
	fatal(t, j.check(db, durable))
	begin := time.Now()
	_ = db.Close() // it may say what is missing
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("close took %v", d)
	}
}
