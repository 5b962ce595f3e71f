package memrowset

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// column is the cells of one schema column: values, and one byte per row that tells
// nulls once there is one. Bytes, not bits, so that a new row shares no memory with
// published ones.
type column struct {
	values store
	mem    *atomic.Int64
	nulls  atomic.Pointer[fixedStore[uint8]] // 1 for null; nil: no published row is null
}

func newColumn(kind schema.Kind, mem *atomic.Int64) *column {
	return &column{values: newStore(kind, mem), mem: mem}
}

// append writes the picked cells of src to rows at, at+1 and so on.
func (c *column) append(src *vector.Vector, p pick, at int) error {
	if err := c.values.append(src, p, at); err != nil {
		return err
	}
	nulls := c.nulls.Load()
	if nulls == nil && (src.Valid() == nil || src.NullCount() == 0) {
		return nil
	}
	if nulls == nil {
		nulls = &fixedStore[uint8]{kind: schema.KindInt8, mem: c.mem}
	}
	chunks := nulls.reserve(at + p.n)
	for i := range p.n {
		if src.IsNull(p.row(i)) {
			chunks[(at+i)>>chunkShift][(at+i)&chunkMask] = 1
		}
	}
	c.nulls.Store(nulls)
	return nil
}

// gather appends the cells of the given rows to dst.
func (c *column) gather(dst *vector.Vector, rows []rowset.RowID) error {
	if len(rows) == 0 {
		return nil
	}
	before := dst.Len()
	if err := c.values.gather(dst, rows); err != nil {
		return err
	}
	nulls := c.nulls.Load()
	if nulls == nil && dst.Valid() == nil {
		return nil
	}
	valid := dst.ExtendValid(len(rows))
	if nulls == nil {
		return nil
	}
	chunks := nulls.load()
	for k, r := range rows {
		if chunks[r>>chunkShift][r&chunkMask] != 0 {
			valid.Clear(before + k)
		}
	}
	return nil
}

// view makes d.vec the cells of rows [from, to) of one chunk.
func (c *column) view(d *slot, from, to int) {
	var valid vector.Bitmap
	if nulls := c.nulls.Load(); nulls != nil {
		d.valid = pack(d.valid, nulls.slice(from, to))
		valid = d.valid
		for i := range valid {
			valid[i] = ^valid[i]
		}
		valid.ClearRange(to-from, len(valid)*64)
	}
	c.values.view(d, from, to, valid)
}

// pack returns a bitmap of the bytes, each 0 or 1, in the memory of dst where it
// suffices.
func pack(dst vector.Bitmap, bytes []uint8) vector.Bitmap {
	dst = dst.Grow(len(bytes))
	n := len(bytes) &^ 7
	for i := 0; i < n; i += 8 {
		// The products put byte k into bit 56+k, and no two of them meet.
		b := binary.LittleEndian.Uint64(bytes[i:]) * 0x0102040810204080 >> 56
		dst[i>>6] |= b << (uint(i) & 63)
	}
	for i := n; i < len(bytes); i++ {
		dst[i>>6] |= uint64(bytes[i]) << (uint(i) & 63)
	}
	return dst
}

func width[T vector.Fixed]() int { var x T; return int(unsafe.Sizeof(x)) }
