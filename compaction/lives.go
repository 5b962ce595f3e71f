package compaction

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vfs"
)

// life is the last life of a row that a cursor stands on.
type life struct {
	*cursor
	born mvcc.Timestamp // 0: not known
	died mvcc.Timestamp // mvcc.Max: not yet
}

// String says where the row is stored, for errors.
func (l *life) String() string { return fmt.Sprintf("%s, row %d", l.in, l.row) }

// unite takes the rows of the first key, on which several cursors stand, to the output
// as one row.
func (g *merger) unite(h *heap) error {
	key := (*h)[0].key((*h)[0].row)
	g.lives = g.lives[:0]
	for len(*h) > 0 && bytes.Equal((*h)[0].key((*h)[0].row), key) {
		l, err := h.pop().life()
		if err != nil {
			return err
		}
		g.lives = append(g.lives, l)
	}
	slices.SortFunc(g.lives, func(a, b life) int {
		return cmp.Or(cmp.Compare(a.died, b.died), cmp.Compare(a.input, b.input))
	})
	if err := checkLives(key, g.lives); err != nil {
		return err
	}
	g.out.unite(g.lives)
	for _, l := range g.lives {
		l.row++
		if err := l.settle(); err != nil {
			return err
		}
		if !l.done() {
			h.push(l.cursor)
		}
	}
	return nil
}

// checkLives fails unless each life of a key ends before the next one begins.
func checkLives(key []byte, lives []life) error {
	key = key[:min(len(key), 20)]
	for i := range lives {
		next := &lives[i]
		if next.born > next.died {
			return vfs.Corruptf("key %x, inserted at %d, was deleted before at %d in %v", key, next.born, next.died, next)
		}
		if i == 0 {
			continue
		}
		last := &lives[i-1]
		switch {
		case last.died == mvcc.Max:
			return vfs.Corruptf("key %x is live in %v, and in %v", key, last, next)
		case last.died == next.died:
			return vfs.Corruptf("key %x was deleted at %d in %v, and in %v", key, last.died, last, next)
		case next.born > 0 && next.born < last.died:
			return vfs.Corruptf("key %x was deleted at %d in %v, and inserted before, at %d, in %v",
				key, last.died, last, next.born, next)
		}
	}
	return nil
}

// life returns the last life of the current row.
func (c *cursor) life() (life, error) {
	l := life{cursor: c, died: mvcc.Max}
	if len(c.times) == 0 {
		var err error
		if c.times, err = c.in.InsertTimes(c.ctx, c.start, c.end, c.times); err != nil {
			return l, fmt.Errorf("insert times of %s: %w", c.in, err)
		}
	}
	l.born = c.times[c.row-c.start]
	g, err := c.nextGhost()
	if err == nil && g != nil && g.Row == rowset.RowID(c.row) {
		l.died = g.Time
	}
	return l, err
}

// nextGhost returns the first ghost from the current row on, nil when there is none.
func (c *cursor) nextGhost() (g *rowset.Version, err error) {
	history := c.out.histories[c.input]
	if history == nil {
		return nil, nil
	}
	if c.ghosts == nil {
		if c.ghosts, err = openFeed(asVersions(history.Ghosts(c.ctx))); err != nil {
			return nil, fmt.Errorf("history of %s: %w", c.in, err)
		}
	}
	for !c.ghosts.done && c.ghosts.head.Row < rowset.RowID(c.row) {
		if err := c.ghosts.advance(); err != nil {
			return nil, fmt.Errorf("history of %s: %w", c.in, err)
		}
	}
	if c.ghosts.done {
		return nil, nil
	}
	return &c.ghosts.head, nil
}

// close ends reading ghosts.
func (c *cursor) close() {
	if c.ghosts != nil {
		c.ghosts.stop()
	}
}
