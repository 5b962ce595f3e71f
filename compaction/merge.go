package compaction

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// Input is a rowset to be merged.
type Input = rowset.MergeInput

// Merge returns the kept rows of the inputs in key order, and with them the history
// after the horizon, which is at or before the inputs' time. It reads keys only where
// inputs overlap, in blocks.
//
// Kept rows of one key become one row. Its cells are those of the newest life: the live
// one, else the one that ended last. The other lives become history of that row. A key
// lives in one rowset at a time, so two live rows of one key, two that died at the same
// time, and a life that begins before the one before has ended are a corruption.
func Merge(ctx context.Context, inputs []Input, horizon mvcc.Timestamp) (*Merged, error) {
	if len(inputs) > math.MaxUint16 {
		return nil, fmt.Errorf("merge of %d rowsets", len(inputs))
	}
	m := &Merged{inputs: inputs, horizon: horizon}
	total := int64(0)
	for _, in := range inputs {
		n := in.Rows()
		if n < 0 || n > math.MaxInt32-total {
			return nil, fmt.Errorf("merge of more than %d rows", math.MaxInt32)
		}
		total += n
		m.histories = append(m.histories, in.History())
	}
	g := merger{ctx: ctx, out: m}
	if err := g.run(); err != nil {
		return nil, fmt.Errorf("merging rowsets: %w", err)
	}
	return m, nil
}

const (
	firstBlock = 256 // rows of a block of keys at first
	maxBlock   = 4096
	blockBytes = 256 << 10 // of keys, about
	restBlock  = 1 << 16   // rows of a block whose keys are not read
)

// merger merges inputs.
type merger struct {
	ctx   context.Context
	out   *Merged
	lives []life // of the key at hand
}

// run merges each group of inputs whose key ranges overlap.
func (g *merger) run() error {
	ranges, err := g.ranges()
	if err != nil {
		return err
	}
	for len(ranges) > 0 {
		n, last := 1, ranges[0].last
		for n < len(ranges) && bytes.Compare(ranges[n].first, last) <= 0 {
			if bytes.Compare(ranges[n].last, last) > 0 {
				last = ranges[n].last
			}
			n++
		}
		if err := g.merge(ranges[:n]); err != nil {
			return err
		}
		ranges = ranges[n:]
	}
	return nil
}

// keyRange is the first and the last key stored in an input.
type keyRange struct {
	input       int
	first, last []byte
}

// ranges returns the key ranges of the inputs that have rows, by first key.
func (g *merger) ranges() ([]keyRange, error) {
	var out []keyRange
	for i, in := range g.out.inputs {
		n := int(in.Rows())
		if n == 0 {
			continue
		}
		ends := vector.New(schema.KindBytes, 2)
		err := in.Keys(g.ctx, 0, 1, ends)
		if err == nil {
			err = in.Keys(g.ctx, n-1, n, ends)
		}
		if err != nil {
			return nil, fmt.Errorf("keys of %s: %w", in, err)
		}
		out = append(out, keyRange{i, ends.BytesAt(0), ends.BytesAt(1)})
	}
	slices.SortFunc(out, func(a, b keyRange) int {
		return cmp.Or(bytes.Compare(a.first, b.first), cmp.Compare(a.input, b.input))
	})
	return out, nil
}

// merge merges inputs whose key ranges overlap.
func (g *merger) merge(ranges []keyRange) error {
	var h heap
	for i := range ranges {
		c := &cursor{merger: g, input: ranges[i].input, in: g.out.inputs[ranges[i].input], size: firstBlock}
		if len(ranges) == 1 {
			return c.rest()
		}
		defer c.close()
		if err := c.settle(); err != nil {
			return err
		}
		if !c.done() {
			h = append(h, c)
		}
	}
	h.init()
	for len(h) > 1 {
		if err := g.step(&h); err != nil {
			return err
		}
	}
	if len(h) == 1 {
		return h[0].rest()
	}
	return nil
}

// step takes the rows of the first cursor that are below those of all others to the
// output, or those of the first key when there are several. The heap holds two cursors
// or more.
func (g *merger) step(h *heap) error {
	first, second := (*h)[0], (*h)[1]
	if len(*h) > 2 && (*h)[2].before(second) {
		second = (*h)[2]
	}
	ok, err := first.advance(second.key(second.row))
	switch {
	case err != nil:
		return err
	case !ok:
		return g.unite(h)
	case first.done():
		h.pop()
	default:
		h.down(0)
	}
	return nil
}

// cursor is a position in an input, on a kept row. Rows before it are in the output or
// not kept.
type cursor struct {
	*merger
	input int
	in    Input
	size  int // rows of the next block

	start, end int // rows of the block
	row        int // next row
	keys       vector.Vector
	live       vector.Bitmap    // rows of the block that are kept
	times      []mvcc.Timestamp // of insertion, of the block, once they were needed
	ghosts     *feed            // the next ghosts, once they were needed
}

// before reports whether the cursor's key is below that of another one.
func (c *cursor) before(o *cursor) bool { return bytes.Compare(c.key(c.row), o.key(o.row)) < 0 }

// done reports whether no row is left.
func (c *cursor) done() bool { return c.row == int(c.in.Rows()) }

// key returns the key of a row in the block.
func (c *cursor) key(row int) []byte { return c.keys.BytesAt(row - c.start) }

// settle moves on to the next kept row and reads the keys of its block.
func (c *cursor) settle() error {
	for !c.done() {
		if c.row == c.end {
			c.keys.Reset(schema.KindBytes)
			if err := c.nextBlock(); err != nil {
				return err
			}
		}
		if i := c.live.Next(c.row - c.start); i >= 0 {
			c.row = c.start + i
			return c.readKeys()
		}
		c.row = c.end
	}
	return nil
}

// nextBlock begins the block of rows after the one before and reads which are kept.
func (c *cursor) nextBlock() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	c.start, c.end = c.end, min(c.end+c.size, int(c.in.Rows()))
	n := c.end - c.start
	c.times = c.times[:0]
	c.live = c.live.Grow(n)
	c.live.SetRange(0, n)
	if err := c.in.Live(c.ctx, c.start, c.end, c.live); err != nil {
		return fmt.Errorf("live rows of %s: %w", c.in, err)
	}
	return nil
}

// readKeys reads the keys of the block, unless it has them.
func (c *cursor) readKeys() error {
	if c.keys.Len() > 0 {
		return nil
	}
	if err := c.in.Keys(c.ctx, c.start, c.end, &c.keys); err != nil {
		return fmt.Errorf("keys of %s: %w", c.in, err)
	}
	switch n := len(c.keys.Data()); {
	case n < blockBytes/2:
		c.size = min(2*c.size, maxBlock)
	case n > 2*blockBytes:
		c.size = max(c.size/2, 1)
	}
	return nil
}

// advance takes the kept rows of the block below a key to the output, and moves on to
// the next kept row. It reports whether there was one.
func (c *cursor) advance(below []byte) (bool, error) {
	from := c.row
	c.row = c.seek(below)
	c.emit(from, c.row)
	if c.row == c.end {
		if err := c.skip(below); err != nil {
			return false, err
		}
	}
	return c.row > from, c.settle()
}

// skip takes the kept rows of the next blocks to the output whose last keys are below the
// given one, without reading their other keys. Blocks grow while that goes well.
func (c *cursor) skip(below []byte) error {
	size := c.size
	defer func() { c.size = size }()
	for c.size = maxBlock; !c.done(); c.size = min(2*c.size, restBlock) {
		last := min(c.end+c.size, int(c.in.Rows())) - 1
		c.keys.Reset(schema.KindBytes)
		if err := c.in.Keys(c.ctx, last, last+1, &c.keys); err != nil {
			return fmt.Errorf("keys of %s: %w", c.in, err)
		}
		if bytes.Compare(c.keys.BytesAt(0), below) >= 0 {
			return nil
		}
		if err := c.nextBlock(); err != nil {
			return err
		}
		c.emit(c.start, c.end)
		c.row = c.end
	}
	return nil
}

// seek returns the first row of the block, from the current one on, whose key is not
// below the given one. It looks at the next rows first and then doubles the distance
// (Bentley and Yao, "An almost optimal algorithm for unbounded searching", 1976).
func (c *cursor) seek(below []byte) int {
	lo, step := c.row, 1 // rows before lo are below
	for lo+step <= c.end && bytes.Compare(c.key(lo+step-1), below) < 0 {
		lo += step
		step *= 2
	}
	return lo + sort.Search(min(step-1, c.end-lo), func(i int) bool { return bytes.Compare(c.key(lo+i), below) >= 0 })
}

// emit appends the kept rows of [from, to), in the block, to the output.
func (c *cursor) emit(from, to int) {
	end := to - c.start
	for i := c.live.Next(from - c.start); i >= 0 && i < end; i = c.live.Next(i) {
		n := nextClear(c.live, i, end)
		c.out.add(c.input, c.start+i, c.start+n)
		i = n
	}
}

// nextClear returns the first clear bit of [i, end), end when there is none.
func nextClear(b vector.Bitmap, i, end int) int {
	for ; i < end; i = i&^63 + 64 {
		if v := ^b[i>>6] >> (uint(i) & 63); v != 0 {
			return min(i+bits.TrailingZeros64(v), end)
		}
	}
	return end
}

// rest appends all rows that are left to the output, without their keys.
func (c *cursor) rest() error {
	for c.size = restBlock; !c.done(); c.row = c.end {
		if c.row == c.end {
			if err := c.nextBlock(); err != nil {
				return err
			}
		}
		c.emit(c.row, c.end)
	}
	return nil
}
