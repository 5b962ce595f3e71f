package compaction

import (
	"context"
	"slices"
	"sort"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

const (
	// minRun is the number of consecutive rows of one input from which on they are
	// kept, and read, as a run.
	minRun = 256
	// maxSpan bounds the rows read from an input at a time, and maxGap the rows
	// between two wanted ones that are read for nothing.
	maxSpan = 8192
	maxGap  = 64
)

// Merged is the outcome of a merge: where each of its rows comes from. As a
// [rowset.Source] it reads the cells and the history from the inputs, which must stay
// open. It is used by one goroutine at a time.
type Merged struct {
	inputs   []Input
	horizon  mvcc.Timestamp
	rows     int
	segments []segment

	// Of the rows in mixed segments.
	from  []uint16 // input
	which []uint32 // row of the input

	histories []rowset.History // by input; nil for those without one
	older     []ghost          // by output row and death
	placed    []placement      // by input, once a history was read

	gather gatherer
}

var _ rowset.FromFiles = (*Merged)(nil)

// segment is a range of output rows: consecutive rows of one input, or a mixture.
type segment struct {
	start uint32 // first output row
	at    uint32 // first row of the input; of a mixture: index of the first row in from and which
	input uint16
	mixed bool
}

// add appends the rows [from, to) of an input.
func (m *Merged) add(input, from, to int) {
	last := len(m.segments) - 1
	switch {
	case last >= 0 && !m.segments[last].mixed && m.continues(&m.segments[last], input, from):
	case to-from >= minRun:
		m.segments = append(m.segments, segment{start: uint32(m.rows), at: uint32(from), input: uint16(input)})
	default:
		if last < 0 || !m.segments[last].mixed {
			m.segments = append(m.segments, segment{start: uint32(m.rows), at: uint32(len(m.from)), mixed: true})
		}
		for row := from; row < to; row++ {
			m.from = append(m.from, uint16(input))
			m.which = append(m.which, uint32(row))
		}
	}
	m.rows += to - from
}

// continues reports whether a row of an input follows the last segment, a run.
func (m *Merged) continues(s *segment, input, row int) bool {
	return int(s.input) == input && int(s.at)+m.rows-int(s.start) == row
}

// Rows returns the number of rows.
func (m *Merged) Rows() int { return m.rows }

// Fork returns the same rows, without their history, for another goroutine.
func (m *Merged) Fork() rowset.Source {
	f := &Merged{horizon: m.horizon, rows: m.rows, segments: m.segments, from: m.from, which: m.which}
	for _, in := range m.inputs {
		f.inputs = append(f.inputs, in.Fork())
	}
	return f
}

// RowOf returns the input that row i, its present life, comes from and the row's id there.
func (m *Merged) RowOf(i int) (input int, row rowset.RowID) {
	s := &m.segments[m.find(i)]
	k := s.at + uint32(i) - s.start
	if s.mixed {
		return int(m.from[k]), rowset.RowID(m.which[k])
	}
	return int(s.input), rowset.RowID(k)
}

// find returns the segment of row i.
func (m *Merged) find(i int) int {
	return sort.Search(len(m.segments), func(s int) bool { return int(m.segments[s].start) > i }) - 1
}

// Map returns, for each row of an input, the row it has become, -1 when it was not kept
// or has become history of a row of another input.
func (m *Merged) Map(input int) []int32 {
	maps := make([][]int32, len(m.inputs))
	maps[input] = m.unmapped(input)
	m.fill(maps)
	return maps[input]
}

// unmapped returns -1 for each row of an input.
func (m *Merged) unmapped(input int) []int32 {
	return slices.Repeat([]int32{-1}, int(m.inputs[input].Rows()))
}

// fill sets in the maps of inputs, of which some are nil, what rows have become.
func (m *Merged) fill(maps [][]int32) {
	_ = m.each(0, m.rows, func(s *segment, from, to int) error {
		k := int(s.at) - int(s.start)
		for i := from; i < to; i++ {
			input, row := s.input, uint32(k+i)
			if s.mixed {
				input, row = m.from[k+i], m.which[k+i]
			}
			if rows := maps[input]; rows != nil {
				rows[row] = int32(i)
			}
		}
		return nil
	})
}

// each calls fn for the part of each segment that lies in rows [from, to).
func (m *Merged) each(from, to int, fn func(s *segment, from, to int) error) error {
	for i := m.find(from); from < to; i++ {
		end := to
		if i+1 < len(m.segments) {
			end = min(to, int(m.segments[i+1].start))
		}
		if err := fn(&m.segments[i], from, end); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// Column appends the cells of schema column col of rows [from, to) to dst.
func (m *Merged) Column(ctx context.Context, col, from, to int, dst *vector.Vector) error {
	return m.collect(from, to, dst, func(in Input, from, to int) (*vector.Vector, error) {
		return in.Cells(ctx, col, from, to)
	})
}

// Keys appends the encoded keys of rows [from, to) to dst, a vector of bytes.
func (m *Merged) Keys(ctx context.Context, from, to int, dst *vector.Vector) error {
	keys := vector.New(schema.KindBytes, 0)
	return m.collect(from, to, dst, func(in Input, from, to int) (*vector.Vector, error) {
		keys.Reset(schema.KindBytes)
		return keys, in.Keys(ctx, from, to, keys)
	})
}

// InsertTimes appends the insert timestamps of rows [from, to) to dst.
func (m *Merged) InsertTimes(ctx context.Context, from, to int, dst []mvcc.Timestamp) ([]mvcc.Timestamp, error) {
	err := m.each(from, to, func(s *segment, from, to int) (err error) {
		at, end := int(s.at)+from-int(s.start), int(s.at)+to-int(s.start)
		if s.mixed {
			dst, err = m.mixedTimes(ctx, m.from[at:end], m.which[at:end], dst)
		} else {
			dst, err = m.inputs[s.input].InsertTimes(ctx, at, end, dst)
		}
		return err
	})
	return dst, err
}

// mixedTimes is InsertTimes for rows of any input.
func (m *Merged) mixedTimes(ctx context.Context, from []uint16, which []uint32, dst []mvcc.Timestamp) ([]mvcc.Timestamp, error) {
	var times []mvcc.Timestamp
	cells, out := vector.New(schema.KindInt64, 0), vector.New(schema.KindInt64, len(from))
	err := m.gather.mixture(m.inputs, from, which, out, func(in Input, from, to int) (_ *vector.Vector, err error) {
		times, err = in.InsertTimes(ctx, from, to, times[:0])
		cells.Reset(schema.KindInt64)
		for _, t := range times {
			vector.AppendFixed(cells, int64(t))
		}
		return cells, err
	})
	for _, t := range vector.Values[int64](out) {
		dst = append(dst, mvcc.Timestamp(t))
	}
	return dst, err
}

// Measure returns about how many bytes rows [from, to) take in the inputs.
func (m *Merged) Measure(ctx context.Context, from, to int) (sum float64, err error) {
	err = m.each(from, to, func(s *segment, from, to int) error {
		at, end := int(s.at)+from-int(s.start), int(s.at)+to-int(s.start)
		if s.mixed {
			bytes, err := m.measureMixture(ctx, m.from[at:end], m.which[at:end])
			sum += bytes
			return err
		}
		bytes, err := m.inputs[s.input].Measure(ctx, at, end)
		sum += bytes
		return err
	})
	return sum, err
}

// measureMixture is Measure for rows of several inputs: of each, those from the first to
// the last are taken to be alike.
func (m *Merged) measureMixture(ctx context.Context, from []uint16, which []uint32) (sum float64, err error) {
	type span struct{ first, last, rows uint32 }
	spans := make([]span, len(m.inputs))
	for k, i := range from {
		s := &spans[i]
		if s.rows == 0 {
			s.first = which[k]
		}
		s.last = which[k]
		s.rows++
	}
	for i, s := range spans {
		if s.rows == 0 {
			continue
		}
		bytes, err := m.inputs[i].Measure(ctx, int(s.first), int(s.last)+1)
		if err != nil {
			return 0, err
		}
		sum += bytes * float64(s.rows) / float64(s.last-s.first+1)
	}
	return sum, nil
}

// Stored says where the cells of a column from row from on lie: in the input whose run the
// rows are, if it has them in a file.
func (m *Merged) Stored(ctx context.Context, col, from, to int) (file rowset.StoredColumn, at, n int, err error) {
	i := m.find(from)
	s := &m.segments[i]
	if i+1 < len(m.segments) {
		to = min(to, int(m.segments[i+1].start))
	}
	if !s.mixed {
		file, err = m.inputs[s.input].Stored(ctx, col)
	}
	return file, int(s.at) + from - int(s.start), to - from, err
}

// readFunc returns what an input holds for its rows [from, to), valid until the next call.
type readFunc func(in Input, from, to int) (*vector.Vector, error)

// collect appends what the inputs hold for rows [from, to) to dst.
func (m *Merged) collect(from, to int, dst *vector.Vector, read readFunc) error {
	return m.each(from, to, func(s *segment, from, to int) error {
		at, end := int(s.at)+from-int(s.start), int(s.at)+to-int(s.start)
		if s.mixed {
			return m.gather.mixture(m.inputs, m.from[at:end], m.which[at:end], dst, read)
		}
		return appendRun(m.inputs[s.input], at, end, dst, read)
	})
}

// appendRun appends what an input holds for its rows [from, to) to dst.
func appendRun(in Input, from, to int, dst *vector.Vector, read readFunc) error {
	for from < to {
		end := min(from+maxSpan, to)
		v, err := read(in, from, end)
		if err != nil {
			return err
		}
		if err := dst.AppendRange(v, 0, end-from); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// gatherer assembles mixtures: it reads the rows of one input after the other and then
// puts them all in order. It is memory that is used again.
type gatherer struct {
	cells  vector.Vector // of all rows, by input
	rows   []uint32      // by input: its rows, ascending
	ends   []int         // by input: end of its part of rows
	order  []int32       // index in cells of each row
	picked []int32       // rows of a span that are wanted
}

// mixture appends what the inputs hold for rows of any of them to dst. Those of one
// input ascend.
func (g *gatherer) mixture(inputs []Input, from []uint16, which []uint32, dst *vector.Vector, read readFunc) error {
	g.sort(from, which, len(inputs))
	g.cells.Reset(dst.Kind())
	start := 0
	for i, end := range g.ends {
		if err := g.read(inputs[i], g.rows[start:end], read); err != nil {
			return err
		}
		start = end
	}
	return dst.AppendRows(&g.cells, g.order)
}

// sort sorts the rows by input and notes where each one went.
func (g *gatherer) sort(from []uint16, which []uint32, inputs int) {
	g.ends = slices.Grow(g.ends[:0], inputs+1)[:inputs+1]
	clear(g.ends)
	for _, i := range from {
		g.ends[i+1]++
	}
	for i := range inputs {
		g.ends[i+1] += g.ends[i]
	}
	g.ends = g.ends[:inputs] // starts, which move on to the ends
	g.rows = slices.Grow(g.rows[:0], len(which))[:len(which)]
	g.order = slices.Grow(g.order[:0], len(which))[:len(which)]
	for k, i := range from {
		at := g.ends[i]
		g.ends[i]++
		g.rows[at], g.order[k] = which[k], int32(at)
	}
}

// read appends what an input holds for the given rows to cells.
func (g *gatherer) read(in Input, rows []uint32, read readFunc) error {
	for len(rows) > 0 {
		n := together(rows)
		from, to := int(rows[0]), int(rows[n-1])+1
		v, err := read(in, from, to)
		if err != nil {
			return err
		}
		if n == to-from {
			err = g.cells.AppendRange(v, 0, n)
		} else {
			g.picked = g.picked[:0]
			for _, row := range rows[:n] {
				g.picked = append(g.picked, int32(row)-int32(from))
			}
			err = g.cells.AppendRows(v, g.picked)
		}
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// together returns how many of the rows are read together.
func together(rows []uint32) int {
	n := 1
	for n < len(rows) && rows[n]-rows[n-1] <= maxGap && rows[n]-rows[0] < maxSpan {
		n++
	}
	return n
}
