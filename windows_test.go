package minikudu_test

import (
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/vfs"
)

// A file system that refuses to remove or rename an open file runs the whole script,
// with every crash point's store opened on it as well.
func TestWindowsRules(t *testing.T) {
	mem, j := vfs.NewMemOptions(vfs.MemOptions{WindowsRules: true}), newJournal()
	if err := play(mem, j, tiny(nil)); err != nil {
		t.Fatal(err)
	}
	if n := mem.OpenFiles(); n != 0 {
		t.Errorf("%d files open", n)
	}
	m := moment{fs: mem, journal: j}
	fatal(t, m.recover(durable))
	checkNoStrayFiles(t, mem)
}

// Files of a dropped table are removed although readers had them open.
func TestWindowsRulesDropAfterReads(t *testing.T) {
	mem, j := vfs.NewMemOptions(vfs.MemOptions{WindowsRules: true}), newJournal()
	db := mustOpen(t, "store", tiny(mem))
	fatal(t, j.create(db, "a"))
	fatal(t, j.create(db, "c"))
	fatal(t, j.commit(db, 0, map[string]int{"a": 100, "c": 100}))
	flushTable(t, db, "a")
	flushTable(t, db, "c")
	fatal(t, j.check(db, durable)) // the file cache has the files open
	tab, err := db.Table("c")
	fatal(t, err)
	for b, err := range tab.Scan(ctx, minikudu.Query{BatchRows: 10}) { // dropped under a scan
		fatal(t, err)
		if j.tables["c"] == present {
			fatal(t, j.drop(db, "c"))
		}
		if b.Len() == 0 {
			t.Error("empty batch")
		}
	}
	fatal(t, j.check(db, durable))
	mustClose(t, db)
	checkNoStrayFiles(t, mem)
}

// checkNoStrayFiles requires that the data directory of a closed store holds what its
// tables need and nothing else.
func checkNoStrayFiles(t *testing.T, f vfs.FS) {
	t.Helper()
	names, err := f.List("store/data")
	fatal(t, err)
	o := tiny(f)
	o.ReadOnly = true
	db := mustOpen(t, "store", o)
	defer mustClose(t, db)
	if want := db.Metrics().RowSets; len(names) != want {
		t.Errorf("%d rowset files for %d rowsets: %v", len(names), want, names)
	}
}
