package compaction

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// imageBlock is the number of older ghosts whose cells are read together.
const imageBlock = 1024

// ghost is a row of an input that has become history of an output row.
type ghost struct {
	row   uint32 // of the output
	which uint32 // row of the input
	input uint16
	born  mvcc.Timestamp // 0: unknown, or not after the horizon
	died  mvcc.Timestamp
}

// unite appends a row that has the given lives, the newest last.
func (m *Merged) unite(lives []life) {
	newest := &lives[len(lives)-1]
	for _, l := range lives[:len(lives)-1] {
		g := ghost{row: uint32(m.rows), which: uint32(l.row), input: uint16(l.input), died: l.died}
		if l.born > m.horizon {
			g.born = l.born
		}
		m.older = append(m.older, g)
	}
	m.add(newest.input, newest.row, newest.row+1)
}

// placement says where the rows of an input went.
type placement struct {
	rows        []int32 // output row of which each row is the present life or history, -1: none
	first, last int     // output rows
}

// places returns the placement of each input that has history.
func (m *Merged) places() []placement {
	if m.placed != nil {
		return m.placed
	}
	maps := make([][]int32, len(m.inputs))
	for i, h := range m.histories {
		if h != nil {
			maps[i] = m.unmapped(i)
		}
	}
	m.fill(maps)
	for i := range m.older {
		g := &m.older[i]
		maps[g.input][g.which] = int32(g.row)
	}
	m.placed = make([]placement, len(m.inputs))
	for i, rows := range maps {
		m.placed[i] = placement{rows, m.rows, -1}
		for _, row := range rows {
			if row >= 0 {
				m.placed[i].first, m.placed[i].last = min(m.placed[i].first, int(row)), int(row)
			}
		}
	}
	return m.placed
}

// History returns what is kept of the history of rows [from, to), which it numbers from
// 0; nil when no input has any.
func (m *Merged) History(from, to int) rowset.History {
	if !slices.ContainsFunc(m.histories, func(h rowset.History) bool { return h != nil }) {
		return nil
	}
	return &history{m, from, to}
}

// history is the history of rows [from, to): that of all their lives, and the end and
// the beginning of those but the last.
type history struct {
	*Merged
	from, to int
}

// versions is a sequence of versions. Events are versions without cells.
type versions = iter.Seq2[rowset.Version, error]

// Versions yields the cells of a schema column, which is not part of the key, that were
// replaced, and those that older ghosts had.
func (h *history) Versions(ctx context.Context, col int) iter.Seq2[rowset.Version, error] {
	return h.merge(h.images(ctx, col), false, func(in rowset.History) versions { return in.Versions(ctx, col) })
}

// Deaths yields the commits that deleted a row which was inserted again later.
func (h *history) Deaths(ctx context.Context) iter.Seq2[rowset.Event, error] {
	older := h.events(func(g *ghost) mvcc.Timestamp { return g.died })
	return asEvents(h.merge(older, false, func(in rowset.History) versions { return asVersions(in.Deaths(ctx)) }))
}

// Births yields the commits that began lives of rows before the present one.
func (h *history) Births(ctx context.Context) iter.Seq2[rowset.Event, error] {
	older := h.events(func(g *ghost) mvcc.Timestamp { return g.born })
	return asEvents(h.merge(older, false, func(in rowset.History) versions { return asVersions(in.Births(ctx)) }))
}

// Ghosts yields the commits that deleted rows which were not inserted again.
func (h *history) Ghosts(ctx context.Context) iter.Seq2[rowset.Event, error] {
	return asEvents(h.merge(nil, true, func(in rowset.History) versions { return asVersions(in.Ghosts(ctx)) }))
}

// ghosts returns the older ghosts of the rows.
func (h *history) ghosts() []ghost {
	find := func(row int) int {
		return sort.Search(len(h.older), func(i int) bool { return int(h.older[i].row) >= row })
	}
	return h.older[find(h.from):find(h.to)]
}

// event returns an event of the life of an older ghost.
func (h *history) event(g *ghost, at mvcc.Timestamp) rowset.Event {
	return rowset.Event{Row: rowset.RowID(int(g.row) - h.from), Time: at}
}

// events yields the times of the older ghosts that are not 0.
func (h *history) events(at func(*ghost) mvcc.Timestamp) versions {
	return func(yield func(rowset.Version, error) bool) {
		ghosts := h.ghosts()
		for i := range ghosts {
			t := at(&ghosts[i])
			if t > 0 && !yield(rowset.Version{Event: h.event(&ghosts[i], t)}, nil) {
				return
			}
		}
	}
}

// images yields the last cells of the older ghosts, which their deaths replaced.
func (h *history) images(ctx context.Context, col int) versions {
	return func(yield func(rowset.Version, error) bool) {
		var cells vector.Vector
		for block := range slices.Chunk(h.ghosts(), imageBlock) {
			if err := h.readGhosts(ctx, col, block, &cells); err != nil {
				yield(rowset.Version{}, err)
				return
			}
			for i := range block {
				if !yield(rowset.Version{Event: h.event(&block[i], block[i].died), Cells: &cells, At: i}, nil) {
					return
				}
			}
		}
	}
}

// readGhosts sets dst to the cells of ghosts in a schema column.
func (m *Merged) readGhosts(ctx context.Context, col int, ghosts []ghost, dst *vector.Vector) error {
	from, which := make([]uint16, len(ghosts)), make([]uint32, len(ghosts))
	for i := range ghosts {
		from[i], which[i] = ghosts[i].input, ghosts[i].which
	}
	first, err := m.inputs[from[0]].Cells(ctx, col, int(which[0]), int(which[0])+1)
	if err != nil {
		return err
	}
	dst.Reset(first.Kind())
	return m.gather.mixture(m.inputs, from, which, dst, func(in Input, from, to int) (*vector.Vector, error) {
		return in.Cells(ctx, col, from, to)
	})
}

// merge merges one sequence of each input, for all rows or only for present lives, and
// that of the older ghosts unless it is nil.
func (h *history) merge(older versions, present bool, of func(rowset.History) versions) versions {
	return func(yield func(rowset.Version, error) bool) {
		var all []versions
		if older != nil && len(h.ghosts()) > 0 {
			all = append(all, older)
		}
		for i, p := range h.places() {
			if p.last >= h.from && p.first < h.to {
				all = append(all, h.moved(i, present, of(h.histories[i])))
			}
		}
		h.inOrder(all, yield)
	}
}

// moved yields what happened to the rows of an input that are in the output's rows
// [from, to), or only to those that are the present life of their output row.
func (h *history) moved(input int, present bool, seq versions) versions {
	rows := h.places()[input].rows
	return func(yield func(rowset.Version, error) bool) {
		for v, err := range seq {
			if err == nil && int64(v.Row) >= int64(len(rows)) {
				err = vfs.Corruptf("there is no row %d", v.Row)
			}
			if err != nil {
				yield(v, fmt.Errorf("history of %s: %w", h.inputs[input], err))
				return
			}
			row := int(rows[v.Row])
			if row >= h.to {
				return
			}
			if row < h.from || present && !h.comesFrom(row, input, v.Row) {
				continue
			}
			v.Row = rowset.RowID(row - h.from)
			if !yield(v, nil) {
				return
			}
		}
	}
}

// comesFrom reports whether the present life of a row is that of a row of an input.
func (m *Merged) comesFrom(row, input int, which rowset.RowID) bool {
	i, at := m.RowOf(row)
	return i == input && at == which
}

// feed is a sequence whose next element is known.
type feed struct {
	head rowset.Version
	done bool
	next func() (rowset.Version, error, bool)
	stop func() // to be called at the end
}

// openFeed returns a feed with the first element of a sequence, or an error. The feed
// has to be stopped then as well.
func openFeed(seq versions) (*feed, error) {
	f := &feed{}
	f.next, f.stop = iter.Pull2(seq)
	return f, f.advance()
}

// advance moves on to the next element. The one before is not valid any more.
func (f *feed) advance() (err error) {
	var ok bool
	f.head, err, ok = f.next()
	f.done = !ok
	return err
}

// openFeeds opens a feed for each sequence. They have to be stopped, after an error too.
func openFeeds(all []versions) ([]*feed, error) {
	var feeds []*feed
	for _, seq := range all {
		f, err := openFeed(seq)
		feeds = append(feeds, f)
		if err != nil {
			return feeds, err
		}
	}
	return feeds, nil
}

// inOrder yields the elements of sequences in order of row and time.
func (h *history) inOrder(all []versions, yield func(rowset.Version, error) bool) {
	if len(all) == 1 {
		all[0](yield)
		return
	}
	feeds, err := openFeeds(all)
	defer func() {
		for _, f := range feeds {
			f.stop()
		}
	}()
	queue := slices.DeleteFunc(slices.Clone(feeds), func(f *feed) bool { return f.done })
	slices.SortFunc(queue, func(a, b *feed) int { return compareEvents(a.head.Event, b.head.Event) })
	for err == nil && len(queue) > 0 {
		at := queue[0].head.Event
		if !yield(queue[0].head, nil) {
			return
		}
		if err = queue[0].advance(); queue[0].done {
			queue = queue[1:]
		}
		sink(queue)
		if err == nil && len(queue) > 0 && compareEvents(at, queue[0].head.Event) >= 0 {
			err = h.clash(at)
		}
	}
	if err != nil {
		yield(rowset.Version{}, err)
	}
}

// sink moves the first feed to its place among the others, which are in order.
func sink(queue []*feed) {
	for i := 1; i < len(queue) && compareEvents(queue[i-1].head.Event, queue[i].head.Event) > 0; i++ {
		queue[i-1], queue[i] = queue[i], queue[i-1]
	}
}

// compareEvents orders events by row and time.
func compareEvents(a, b rowset.Event) int {
	return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Time, b.Time))
}

// clash is the error that lives of one row changed at the same time.
func (h *history) clash(e rowset.Event) error {
	input, row := h.RowOf(h.from + int(e.Row))
	return vfs.Corruptf("history of %s, row %d, and older rows of its key: two changes at %d", h.inputs[input], row, e.Time)
}

// asVersions returns events as versions without cells.
func asVersions(seq iter.Seq2[rowset.Event, error]) versions {
	return func(yield func(rowset.Version, error) bool) {
		for e, err := range seq {
			if !yield(rowset.Version{Event: e}, err) {
				return
			}
		}
	}
}

// asEvents returns versions without their cells.
func asEvents(seq versions) iter.Seq2[rowset.Event, error] {
	return func(yield func(rowset.Event, error) bool) {
		for v, err := range seq {
			if !yield(v.Event, err) {
				return
			}
		}
	}
}
