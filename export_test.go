package minikudu

import (
	"context"

	"github.com/minikudu/minikudu/compaction"
)

// CompactMinor merges the files of changes of every rowset of the table.
func (t *Table) CompactMinor(ctx context.Context) error {
	return t.whileOthersRest(ctx, func() error {
		for _, rs := range t.tablet.RowSets() {
			if err := t.db.mergeDeltas(ctx, &step{kind: compaction.CompactMinor, table: t, rowset: rs, reason: "asked"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Workers returns how many goroutines would encode a file now.
func (db *DB) Workers() int { return db.workers() }
