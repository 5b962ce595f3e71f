package tablet

import (
	"context"
	"errors"

	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/internal/rowset"
)

// CompactMinor merges the files of changes of a disk rowset into one. With fewer than two,
// or when the rowset has left the tablet, it does nothing. Changes are flushed beside it
// until it publishes. After Close or Drop it is ErrClosed. After any other error that is
// not ErrUncertain nothing has changed.
func (t *Tablet) CompactMinor(ctx context.Context, rs *diskrowset.RowSet) (c Compacted, err error) {
	t.compacting.Lock()
	defer t.compacting.Unlock()
	if t.closed.Load() {
		return c, ErrClosed
	}
	if !t.holds(rs) || len(rs.Meta().Redo) < 2 {
		return c, nil
	}
	w, merged, err := rs.MergeRedo(ctx, t.env.Writer)
	if err != nil {
		return c, err
	}
	old := rs.Meta().Redo[:merged]
	for i := range old {
		c.BytesIn += old[i].Section.Length
	}
	c.Inputs, c.Outputs, c.BytesOut = merged, 1, w.Size
	return c, t.publishMerged(ctx, rs, &w, old)
}

// publishMerged puts the file w in the place of the rowset's first files of changes, old.
func (t *Tablet) publishMerged(ctx context.Context, rs *diskrowset.RowSet, w *diskrowset.WrittenDelta, old []rowset.DeltaFile) error {
	t.flushing.Lock() // a flush of changes would describe the rowset with the old files
	defer t.flushing.Unlock()
	meta := rs.MetaMerged(len(old), w)
	err := t.env.Writer.FS.SyncDir(t.env.Writer.Dir)
	if err == nil {
		err = t.env.SyncLog(ctx, w.Delta.MaxTime)
	}
	if err == nil {
		err = t.edit(ctx, &Publication{Update: meta, Deltas: []*diskrowset.WrittenDelta{w}, Gone: filesOf(old)})
	}
	switch {
	case errors.Is(err, ErrUncertain):
		return err
	case err != nil:
		return errors.Join(err, t.env.Writer.FS.Remove(t.env.Writer.FS.Join(t.env.Writer.Dir, diskrowset.DeltaName(w.File))))
	}
	return rs.MergedDeltas(len(old), w, meta)
}

// filesOf returns the files of changes.
func filesOf(list []rowset.DeltaFile) (files []rowset.FileNum) {
	for i := range list {
		files = append(files, list[i].Section.File)
	}
	return files
}
