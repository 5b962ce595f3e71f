package minikudu_test

import (
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/vfs"
)

// A backup may leave the lock file out; reading it must not need to make one.
func TestReadOnlyOpenWithoutLockFile(t *testing.T) {
	mem := vfs.NewMem()
	db := mustOpen(t, "db", &minikudu.Options{FS: mem})
	tab, err := db.CreateTable(ctx, "cpu", cpuSpec())
	if err != nil {
		t.Fatal(err)
	}
	fill(t, db, tab)
	mustClose(t, db)
	if err := mem.Remove("db/LOCK"); err != nil {
		t.Fatal(err)
	}
	db = mustOpen(t, "db", &minikudu.Options{FS: mem, ReadOnly: true})
	defer mustClose(t, db)
	if tab, err = db.Table("cpu"); err != nil {
		t.Fatal(err)
	}
	check(t, tab)
	if _, err := mem.Stat("db/LOCK"); err == nil {
		t.Fatal("a read-only open made a lock file")
	}
}
