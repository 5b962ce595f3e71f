package vector

import (
	"encoding/binary"

	"github.com/minikudu/minikudu/schema"
)

// Set overwrites cell row of a vector that is not of KindBytes and whose memory is its own
// with cell i of src, a vector of the same kind.
func (v *Vector) Set(row int, src *Vector, i int) {
	v.setValid(row, src, i)
	switch w := v.kind.Width(); w {
	case 0:
		v.words.Put(row, src.words.Get(i))
	case 8:
		binary.NativeEndian.PutUint64(v.data[8*row:], binary.NativeEndian.Uint64(src.data[8*i:]))
	default:
		copy(v.data[w*row:w*row+w], src.data[w*i:w*i+w])
	}
}

// setValid copies whether a cell is null.
func (v *Vector) setValid(row int, src *Vector, i int) {
	null := src.IsNull(i)
	if v.valid == nil {
		if !null {
			return
		}
		v.needValid()
	}
	v.valid.Put(row, !null)
}

// Scatter is Set of cell rows[k]-first with cell at+k of src, for every k in turn.
func (v *Vector) Scatter(rows []int32, first int32, src *Vector, at int) {
	if v.kind == schema.KindBool || v.valid != nil || src.valid != nil {
		for k, row := range rows {
			v.Set(int(row-first), src, at+k)
		}
		return
	}
	switch v.kind.Width() {
	case 1:
		scatter(Values[uint8](v), rows, first, Values[uint8](src)[at:])
	case 2:
		scatter(Values[uint16](v), rows, first, Values[uint16](src)[at:])
	case 4:
		scatter(Values[uint32](v), rows, first, Values[uint32](src)[at:])
	case 8:
		scatter(Values[uint64](v), rows, first, Values[uint64](src)[at:])
	default:
		scatter(Values[schema.Int128](v), rows, first, Values[schema.Int128](src)[at:])
	}
}

func scatter[T Fixed](dst []T, rows []int32, first int32, src []T) {
	src = src[:len(rows)]
	for k, row := range rows {
		dst[row-first] = src[k]
	}
}
