package memrowset

import (
	"context"
	"iter"

	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vector"
)

// History returns what changes after the horizon did to rows [from, to); nil when there
// was none.
func (s *Source) History(from, to int) rowset.History {
	d := s.m.deltas
	if d.MaxTime() <= s.horizon || d.MinTime() > s.at {
		return nil
	}
	return &history{s, s.rows[from:to]}
}

// history is a rowset.History of rows in memory.
type history struct {
	*Source
	rows []rowset.RowID
}

// life is one life of a row: the changes [from, to) of the row, of which the last may be
// its end.
type life struct {
	born     rowset.Event
	from, to int
	dead     bool
}

// each calls fn for every row that changed, with its changes and lives, until it returns
// false.
func (h *history) each(fn func(row rowset.RowID, changes []delta.Change, lives []life) bool) {
	var changes []delta.Change
	var lives []life
	for i, r := range h.rows {
		if changes = h.m.deltas.Past(h.at, r, changes[:0]); len(changes) == 0 {
			continue
		}
		row := rowset.RowID(i)
		lives = append(lives[:0], life{born: rowset.Event{Row: row, Time: h.m.time(int(r))}})
		for k := range changes {
			switch c := &changes[k]; c.Kind {
			case rowset.ChangePut:
				lives = append(lives, life{born: rowset.Event{Row: row, Time: c.Time}, from: k})
			case rowset.ChangeDel:
				lives[len(lives)-1].dead = true
			}
			lives[len(lives)-1].to = k + 1
		}
		if !fn(row, changes, lives) {
			return
		}
	}
}

// Versions yields the cells that changes after the horizon replaced.
func (h *history) Versions(_ context.Context, col int) iter.Seq2[rowset.Version, error] {
	return func(yield func(rowset.Version, error) bool) {
		first := vector.New(h.m.schema.Column(col).Kind(), 1) // the cell that was inserted
		h.each(func(row rowset.RowID, changes []delta.Change, lives []life) bool {
			first.Reset(first.Kind())
			if err := h.m.columns[col].gather(first, h.rows[row:row+1]); err != nil {
				yield(rowset.Version{}, err)
				return false
			}
			old := rowset.Version{Cells: first}
			for n, l := range lives {
				for k := l.from; k < l.to; k++ {
					c := &changes[k]
					cells, at := c.Cell(col)
					replaced := cells != nil && c.Kind == rowset.ChangeSet || c.Kind == rowset.ChangeDel && n < len(lives)-1
					if replaced && c.Time > h.horizon {
						old.Event = rowset.Event{Row: row, Time: c.Time}
						if !yield(old, nil) {
							return false
						}
					}
					if cells != nil {
						old.Cells, old.At = cells, at
					}
				}
			}
			return true
		})
	}
}

// Deaths yields the ends of lives before the last.
func (h *history) Deaths(context.Context) iter.Seq2[rowset.Event, error] {
	return h.events(func(changes []delta.Change, lives []life, add func(rowset.Event) bool) bool {
		for _, l := range lives[:len(lives)-1] {
			if !add(rowset.Event{Row: l.born.Row, Time: changes[l.to-1].Time}) {
				return false
			}
		}
		return true
	})
}

// Births yields the beginnings of lives before the last.
func (h *history) Births(context.Context) iter.Seq2[rowset.Event, error] {
	return h.events(func(_ []delta.Change, lives []life, add func(rowset.Event) bool) bool {
		for _, l := range lives[:len(lives)-1] {
			if !add(l.born) {
				return false
			}
		}
		return true
	})
}

// Ghosts yields the ends of last lives.
func (h *history) Ghosts(context.Context) iter.Seq2[rowset.Event, error] {
	return h.events(func(changes []delta.Change, lives []life, add func(rowset.Event) bool) bool {
		l := lives[len(lives)-1]
		return !l.dead || add(rowset.Event{Row: l.born.Row, Time: changes[l.to-1].Time})
	})
}

// events yields the events after the horizon that pick adds for a row.
func (h *history) events(pick func(changes []delta.Change, lives []life, add func(rowset.Event) bool) bool) iter.Seq2[rowset.Event, error] {
	return func(yield func(rowset.Event, error) bool) {
		if !h.m.deltas.HasLife() {
			return
		}
		h.each(func(_ rowset.RowID, changes []delta.Change, lives []life) bool {
			return pick(changes, lives, func(e rowset.Event) bool { return e.Time <= h.horizon || yield(e, nil) })
		})
	}
}
