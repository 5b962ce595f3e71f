package aggregate

import (
	"math"
	"math/bits"

	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// groups numbers the groups of a state. Each group-by column numbers its distinct
// values; with several columns the numbers are folded from left to right, a pair of
// numbers becoming one, so that only pairs of integers are hashed per row.
type groups struct {
	columns []*distinct
	at      []int       // schema column of each
	pairs   []pairTable // of columns 0..i and i+1
	right   []uint32    // scratch: numbers of the column being folded in
}

func newGroups(p *Plan) *groups {
	g := &groups{at: p.groupBy, pairs: make([]pairTable, len(p.groupBy)-1)}
	for _, c := range p.groupBy {
		g.columns = append(g.columns, newDistinct(p.schema.Column(c).Kind()))
	}
	return g
}

func (g *groups) len() int {
	if n := len(g.pairs); n > 0 {
		return len(g.pairs[n-1].keys)
	}
	return g.columns[0].values.Len()
}

// assign sets ids[row] for every selected row.
func (g *groups) assign(sel vector.Bitmap, column func(int) (*vector.Vector, error), ids []uint32) error {
	for i, d := range g.columns {
		v, err := column(g.at[i])
		if err != nil {
			return err
		}
		if i == 0 {
			err = d.assign(v, sel, ids)
		} else {
			g.right = extended(g.right, len(ids))
			if err = d.assign(v, sel, g.right); err == nil {
				g.pairs[i-1].fold(ids, g.right, sel)
			}
		}
		if err != nil {
			return err
		}
	}
	if g.len() > maxGroups {
		return errTooManyGroups
	}
	return nil
}

// merge takes over the groups of h and returns their numbers here.
func (g *groups) merge(h *groups) ([]uint32, error) {
	var ids []uint32
	for i, d := range g.columns {
		from := h.columns[i].values
		all := vector.NewBitmap(from.Len())
		all.SetRange(0, from.Len())
		numbers := make([]uint32, from.Len())
		if err := d.assign(from, all, numbers); err != nil {
			return nil, err
		}
		if i == 0 {
			ids = numbers
			continue
		}
		folded := make([]uint32, len(h.pairs[i-1].keys))
		for j, k := range h.pairs[i-1].keys {
			folded[j] = g.pairs[i-1].number(pair(ids[k>>32], numbers[uint32(k)]))
		}
		ids = folded
	}
	if g.len() > maxGroups {
		return nil, errTooManyGroups
	}
	return ids, nil
}

// values returns the group-by columns, a row for each group.
func (g *groups) values() ([]*vector.Vector, error) {
	rows := make([]int32, g.len())
	for i := range rows {
		rows[i] = int32(i)
	}
	out := make([]*vector.Vector, len(g.columns))
	for i := len(g.columns) - 1; i >= 0; i-- {
		of := rows
		if i > 0 {
			of = make([]int32, len(rows))
			for j, r := range rows {
				k := g.pairs[i-1].keys[r]
				of[j], rows[j] = int32(uint32(k)), int32(k>>32)
			}
		}
		out[i] = vector.New(g.columns[i].values.Kind(), len(of))
		if err := out[i].AppendRows(g.columns[i].values, of); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func pair(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }

// pairTable numbers keys in order of appearance.
type pairTable struct {
	keys  []uint64
	slots []uint32 // number+1, 0 when empty; a power of two, at most half full
	shift uint
}

// fold replaces each selected row's number by that of the pair with right.
func (t *pairTable) fold(ids, right []uint32, sel vector.Bitmap) {
	last, lastID := uint64(math.MaxUint64), uint32(0)
	for i, w := range sel {
		for ; w != 0; w &= w - 1 {
			row := i<<6 + bits.TrailingZeros64(w)
			if k := pair(ids[row], right[row]); k != last {
				last, lastID = k, t.number(k)
			}
			ids[row] = lastID
		}
	}
}

// number returns the number of a key, a new one if it is new.
func (t *pairTable) number(k uint64) uint32 {
	if 2*len(t.keys) >= len(t.slots) {
		t.enlarge()
	}
	i := t.home(k)
	for ; t.slots[i] != 0; i = (i + 1) & (len(t.slots) - 1) {
		if id := t.slots[i] - 1; t.keys[id] == k {
			return id
		}
	}
	t.keys = append(t.keys, k)
	t.slots[i] = uint32(len(t.keys))
	return uint32(len(t.keys) - 1)
}

// home mixes the key before Fibonacci hashing, for the upper half of a pair would
// else move in large steps only.
func (t *pairTable) home(k uint64) int {
	k ^= k >> 32
	return int(k * 0x9e3779b97f4a7c15 >> t.shift)
}

func (t *pairTable) enlarge() {
	logSize := max(bits.Len(uint(len(t.slots))), 6)
	t.slots = make([]uint32, 1<<logSize)
	t.shift = uint(64 - logSize)
	for id, k := range t.keys {
		i := t.home(k)
		for t.slots[i] != 0 {
			i = (i + 1) & (len(t.slots) - 1)
		}
		t.slots[i] = uint32(id) + 1
	}
}

// distinct numbers the distinct cells of a column, in order of appearance.
type distinct struct {
	values *vector.Vector // by number; null may be one of them
	null   uint32         // number of null + 1, 0 when it has none
	fixed  pairTable      // fixed width up to 64 bits: by bits; its number is an index into byKey
	byKey  []uint32       // number of each key of fixed
	small  []uint32       // number + 1 of the integers from smallMin on, 0 when it has none
	wide   map[schema.Int128]uint32
	texts  map[string]uint32
	codes  []uint32      // scratch: number + 1 of each dictionary code
	live   vector.Bitmap // scratch
}

// Integers in [smallMin, smallMin+smallCount) are found without hashing.
const (
	smallMin   = -128
	smallCount = 4096
)

func newDistinct(kind schema.Kind) *distinct {
	d := &distinct{values: vector.New(kind, 0)}
	switch kind {
	case schema.KindBytes:
		d.texts = map[string]uint32{}
	case schema.KindInt128:
		d.wide = map[schema.Int128]uint32{}
	default:
		d.small = make([]uint32, smallCount)
	}
	return d
}

// assign sets ids[row] for every selected row of v.
func (d *distinct) assign(v *vector.Vector, sel vector.Bitmap, ids []uint32) error {
	if valid := v.Valid(); valid != nil {
		d.assignNulls(sel, valid, ids)
		d.live = append(d.live[:0], sel...)
		d.live.And(valid)
		sel = d.live
	}
	switch v.Kind() {
	case schema.KindBytes:
		if v.Dict() != nil {
			return d.assignCodes(v, sel, ids)
		}
		return d.assignTexts(v, sel, ids)
	case schema.KindInt128:
		d.assignWide(vector.Values[schema.Int128](v), sel, ids)
	case schema.KindBool:
		eachRow(sel, func(row int) { ids[row] = d.boolean(v.Bits().Get(row)) })
	case schema.KindInt8:
		assignInts(d, vector.Values[int8](v), sel, ids)
	case schema.KindInt16:
		assignInts(d, vector.Values[int16](v), sel, ids)
	case schema.KindInt32:
		assignInts(d, vector.Values[int32](v), sel, ids)
	case schema.KindInt64:
		assignInts(d, vector.Values[int64](v), sel, ids)
	case schema.KindFloat32:
		assignFloats(d, vector.Values[float32](v), sel, ids)
	case schema.KindFloat64:
		assignFloats(d, vector.Values[float64](v), sel, ids)
	}
	return nil
}

func (d *distinct) assignNulls(sel, valid vector.Bitmap, ids []uint32) {
	for i, w := range sel {
		for w &^= valid[i]; w != 0; w &= w - 1 {
			if d.null == 0 {
				d.values.AppendNull()
				d.null = uint32(d.values.Len())
			}
			ids[i<<6+bits.TrailingZeros64(w)] = d.null - 1
		}
	}
}

// assignInts looks a value up only where it differs from that of the row before.
func assignInts[T kernel.Signed | int64](d *distinct, vals []T, sel vector.Bitmap, ids []uint32) {
	var last T
	lastID, known := uint32(0), false
	for i, w := range sel {
		for ; w != 0; w &= w - 1 {
			row := i<<6 + bits.TrailingZeros64(w)
			if x := vals[row]; x != last || !known {
				last, known, lastID = x, true, integer(d, x)
			}
			ids[row] = lastID
		}
	}
}

// integer returns the number of an integer.
func integer[T kernel.Signed | int64](d *distinct, x T) uint32 {
	at := uint64(int64(x) - smallMin)
	if at >= smallCount {
		id, isNew := d.numberOf(uint64(x))
		if isNew {
			vector.AppendFixed(d.values, x)
		}
		return id
	}
	if d.small[at] == 0 {
		vector.AppendFixed(d.values, x)
		d.small[at] = uint32(d.values.Len())
	}
	return d.small[at] - 1
}

// numberOf returns the number of a cell by its bits; if it is new the caller must
// append the cell to values.
func (d *distinct) numberOf(bits uint64) (id uint32, isNew bool) {
	i := d.fixed.number(bits)
	if int(i) < len(d.byKey) {
		return d.byKey[i], false
	}
	d.byKey = append(d.byKey, uint32(d.values.Len()))
	return d.byKey[i], true
}

func assignFloats[T float32 | float64](d *distinct, vals []T, sel vector.Bitmap, ids []uint32) {
	for i, w := range sel {
		for ; w != 0; w &= w - 1 {
			row := i<<6 + bits.TrailingZeros64(w)
			x := vals[row] + 0 // -0 becomes +0
			if x != x {
				x = T(math.NaN())
			}
			id, isNew := d.numberOf(math.Float64bits(float64(x)))
			if isNew {
				vector.AppendFixed(d.values, x)
			}
			ids[row] = id
		}
	}
}

func (d *distinct) boolean(b bool) uint32 {
	at := 0
	if b {
		at = 1
	}
	if d.small[at] == 0 {
		d.values.AppendBool(b)
		d.small[at] = uint32(d.values.Len())
	}
	return d.small[at] - 1
}

func (d *distinct) assignWide(vals []schema.Int128, sel vector.Bitmap, ids []uint32) {
	eachRow(sel, func(row int) {
		id, ok := d.wide[vals[row]]
		if !ok {
			id = uint32(d.values.Len())
			d.wide[vals[row]] = id
			vector.AppendFixed(d.values, vals[row])
		}
		ids[row] = id
	})
}

func (d *distinct) assignTexts(v *vector.Vector, sel vector.Bitmap, ids []uint32) (err error) {
	eachRow(sel, func(row int) {
		id, e := d.text(v.BytesAt(row))
		if ids[row] = id; e != nil {
			err = e
		}
	})
	return err
}

// text returns the number of a text.
func (d *distinct) text(b []byte) (uint32, error) {
	if id, ok := d.texts[string(b)]; ok {
		return id, nil
	}
	id := uint32(d.values.Len())
	if err := d.values.AppendBytes(b); err != nil {
		return 0, err
	}
	d.texts[string(b)] = id
	return id, nil
}

// assignCodes looks each word of the dictionary up once, when its code first appears.
func (d *distinct) assignCodes(v *vector.Vector, sel vector.Bitmap, ids []uint32) error {
	words := v.Dict().Len()
	if cap(d.codes) < words {
		d.codes = make([]uint32, words)
	}
	d.codes = d.codes[:words]
	clear(d.codes)
	switch v.CodeWidth() {
	case 1:
		return assignCoded(d, v, vector.Codes[uint8](v), sel, ids)
	case 2:
		return assignCoded(d, v, vector.Codes[uint16](v), sel, ids)
	}
	return assignCoded(d, v, vector.Codes[uint32](v), sel, ids)
}

func assignCoded[T uint8 | uint16 | uint32](d *distinct, v *vector.Vector, codes []T, sel vector.Bitmap, ids []uint32) error {
	numbers := d.codes
	for i, w := range sel {
		for ; w != 0; w &= w - 1 {
			row := i<<6 + bits.TrailingZeros64(w)
			c := codes[row]
			if numbers[c] == 0 {
				id, err := d.text(v.Dict().BytesAt(int(c)))
				if err != nil {
					return err
				}
				numbers[c] = id + 1
			}
			ids[row] = numbers[c] - 1
		}
	}
	return nil
}
