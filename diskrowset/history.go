package diskrowset

import (
	"context"
	"iter"

	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vector"
)

// History returns the history of the snapshot's rows after the horizon; nil when there
// is none. REDO up to the snapshot's time is turned into UNDO: the cell that a change
// replaced is the one that the change before it set, and at first that of the base data.
func (n *Snapshot) History() rowset.History {
	h := &past{Snapshot: n}
	for i := len(n.deltas.undo) - 1; i >= 0; i-- {
		if f := n.deltas.undo[i]; f.MaxTime() > n.horizon {
			h.undo = append(h.undo, f)
		}
	}
	for _, s := range n.deltas.stores {
		if s.MinTime() > n.at {
			continue
		}
		h.redo = append(h.redo, s)
		h.any = h.any || s.MaxTime() > n.horizon
	}
	if len(h.undo) == 0 && !h.any {
		return nil
	}
	return h
}

// past is a rowset.History of a disk rowset.
type past struct {
	*Snapshot
	undo mergedFiles    // oldest first
	redo []delta.Reader // that the snapshot sees, oldest first
	any  bool           // some REDO is after the horizon
}

// Versions yields the cells that changes after the horizon replaced.
func (h *past) Versions(ctx context.Context, col int) iter.Seq2[rowset.Version, error] {
	var all []iter.Seq2[rowset.Version, error]
	for _, f := range h.undo {
		if f.Touches(col) {
			all = append(all, f.versions(ctx, col))
		}
	}
	if redo := h.redoOf(ctx, col); len(redo) > 0 {
		all = append(all, h.replaced(ctx, col, mergeRows(redo, versionRow)))
	}
	return within(mergeRows(all, versionRow), func(v rowset.Version) bool { return v.Time > h.horizon })
}

func versionRow(v rowset.Version) rowset.RowID { return v.Row }

func eventRow(e rowset.Event) rowset.RowID { return e.Row }

// redoOf returns the changes of a column in each store of REDO that has some.
func (h *past) redoOf(ctx context.Context, col int) (all []iter.Seq2[rowset.Version, error]) {
	for _, s := range h.redo {
		if s.Touches(col) {
			all = append(all, asChanges(s).Versions(ctx, col))
		}
	}
	return all
}

// asChanges returns a store as a source of changes.
func asChanges(s delta.Reader) changeSource {
	if f, ok := s.(*deltaFile); ok {
		return mergedFiles{f}
	}
	return memChanges{s.(*delta.MemStore)}
}

// replaced turns the cells that changes up to the snapshot's time set into those that
// they replaced.
func (h *past) replaced(ctx context.Context, col int, redo iter.Seq2[rowset.Version, error]) iter.Seq2[rowset.Version, error] {
	return sequence(func(yield func(rowset.Version) error) error {
		base := h.newColumn(col)
		base.patches.stores = nil
		kind := h.set.env.Schema.Column(col).Kind()
		old, next := vector.New(kind, 1), vector.New(kind, 1)
		last := int64(-1)
		for v, err := range redo {
			if err != nil {
				return err
			}
			if v.Time > h.at {
				continue
			}
			next.Reset(kind)
			if err := next.AppendFrom(v.Cells, v.At); err != nil {
				return err
			}
			if int64(v.Row) != last {
				if err := h.baseCell(ctx, base, int(v.Row), old); err != nil {
					return err
				}
			}
			if err := yield(rowset.Version{Event: v.Event, Cells: old}); err != nil {
				return err
			}
			old, next, last = next, old, int64(v.Row)
		}
		return nil
	})
}

// baseCell sets dst to the cell of a row in the base data.
func (h *past) baseCell(ctx context.Context, c *scanColumn, row int, dst *vector.Vector) error {
	dst.Reset(dst.Kind())
	if c.col == nil {
		return dst.Append(c.constant)
	}
	page, at, err := c.at(ctx, row)
	if err != nil {
		return err
	}
	return dst.AppendFrom(page, at)
}

// Deaths yields the ends of earlier lives.
func (h *past) Deaths(ctx context.Context) iter.Seq2[rowset.Event, error] {
	return within(h.undo.Deaths(ctx), h.kept)
}

// Births yields the beginnings of earlier lives.
func (h *past) Births(ctx context.Context) iter.Seq2[rowset.Event, error] {
	return within(h.undo.Births(ctx), h.kept)
}

// Ghosts yields the ends of present lives.
func (h *past) Ghosts(ctx context.Context) iter.Seq2[rowset.Event, error] {
	var all []iter.Seq2[rowset.Event, error]
	for _, s := range h.redo {
		if s.HasLife() {
			all = append(all, asChanges(s).Deaths(ctx))
		}
	}
	return within(mergeRows(all, eventRow), h.kept)
}

func (h *past) kept(e rowset.Event) bool { return e.Time > h.horizon && e.Time <= h.at }

// within yields the elements that a test passes.
func within[T any](all iter.Seq2[T, error], test func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for x, err := range all {
			if (err != nil || test(x)) && !yield(x, err) {
				return
			}
		}
	}
}
