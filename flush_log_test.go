package minikudu_test

import (
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/vfs"
)

// TestFlushTrimsAfterReplay checks that a flush frees the log also when the replay at
// open has flushed everything already.
func TestFlushTrimsAfterReplay(t *testing.T) {
	mem := vfs.NewMem()
	db := mustOpen(t, "db", &minikudu.Options{FS: mem})
	tab, err := db.CreateTable(ctx, "cpu", cpuSpec())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		var b minikudu.WriteBatch
		for k := range 5000 {
			b.Insert(tab, "host", i*5000+k, 1.5, k)
		}
		if _, err := db.Commit(ctx, &b, nil); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, db)
	db = mustOpen(t, "db", &minikudu.Options{FS: mem, FlushBytes: 64 << 10})
	if tab, err = db.Table("cpu"); err != nil {
		t.Fatal(err)
	}
	if err := tab.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	mustClose(t, db)
	names, err := mem.List("db/wal")
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, n := range names {
		info, err := mem.Stat("db/wal/" + n)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 1<<20 {
		t.Errorf("the log has %d bytes in %v after a flush of everything", size, names)
	}
}
