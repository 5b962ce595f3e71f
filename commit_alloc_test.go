//go:build !race

package minikudu_test

import (
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/schema"
)

// A commit of one row allocates its result, a write and a key lock; the row's values
// are the caller's.
func TestCommitOfOneRowAllocatesLittle(t *testing.T) {
	db := mustOpen(t, t.TempDir(), &minikudu.Options{Durability: minikudu.NoSync})
	defer mustClose(t, db)
	tab, err := db.CreateTable(ctx, "t", minikudu.TableSpec{Key: []string{"id"}, Columns: []minikudu.Column{
		{Name: "id", Type: schema.Int64}, {Name: "v", Type: schema.Double}}})
	if err != nil {
		t.Fatal(err)
	}
	var wb minikudu.WriteBatch
	var row [2]any
	row[1] = 4.2
	id := int64(1000)
	if n := testing.AllocsPerRun(500, func() {
		wb.Reset()
		row[0] = id
		wb.Insert(tab, row[:]...)
		if _, err := db.Commit(ctx, &wb, nil); err != nil {
			t.Fatal(err)
		}
		id++
	}); n > 5 {
		t.Errorf("%v allocations", n)
	}
}
