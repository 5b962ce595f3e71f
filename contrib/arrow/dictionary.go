package arrow

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// dictionaryConverter returns the converter of dictionary arrays: strings stay in
// dictionary form, values of other types are looked up.
func dictionaryConverter(c *schema.Column, t *arrow.DictionaryType) converter {
	words := converterOf(c, t.ValueType)
	codes := codeReaders[t.IndexType.ID()]
	if words == nil || codes == nil {
		return nil
	}
	return func(a arrow.Array, valid vector.Bitmap) (*vector.Vector, error) {
		dict := a.(*array.Dictionary).Dictionary()
		holes, err := validityOf(dict)
		if err != nil {
			return nil, err
		}
		w, err := words(dict, holes)
		if err != nil {
			return nil, fmt.Errorf("dictionary: %w", err)
		}
		return codes(a.Data(), valid, w)
	}
}

// A codeReader returns the cells of a dictionary array whose words are w.
type codeReader func(d arrow.ArrayData, valid vector.Bitmap, w *vector.Vector) (*vector.Vector, error)

var codeReaders = map[arrow.Type]codeReader{
	arrow.INT8: readCodes[uint8], arrow.UINT8: readCodes[uint8],
	arrow.INT16: readCodes[uint16], arrow.UINT16: readCodes[uint16],
	arrow.INT32: readCodes[uint32], arrow.UINT32: readCodes[uint32],
	arrow.INT64: readWideCodes, arrow.UINT64: readWideCodes,
}

// readCodes reads codes of the widths that a vector has; a negative code is one beyond
// the dictionary.
func readCodes[T uint8 | uint16 | uint32](d arrow.ArrayData, valid vector.Bitmap, w *vector.Vector) (*vector.Vector, error) {
	codes, err := cells[T](d, 1, d.Offset(), d.Len())
	if err != nil {
		return nil, err
	}
	return withCodes(zeroNulls(codes, valid), valid, w)
}

func readWideCodes(d arrow.ArrayData, valid vector.Bitmap, w *vector.Vector) (*vector.Vector, error) {
	wide, err := cells[uint64](d, 1, d.Offset(), d.Len())
	if err != nil {
		return nil, err
	}
	codes := make([]uint32, len(wide))
	for i, code := range wide {
		codes[i] = uint32(min(code, math.MaxUint32))
	}
	return withCodes(zeroNulls(codes, valid), valid, w)
}

func withCodes[T uint8 | uint16 | uint32](codes []T, valid vector.Bitmap, w *vector.Vector) (*vector.Vector, error) {
	top := T(0)
	for _, code := range codes {
		top = max(top, code)
	}
	inside := len(codes) == 0 || uint64(top) < uint64(w.Len())
	switch {
	case inside && w.Kind() == schema.KindBytes && w.Dict() == nil && w.NullCount() == 0 && w.Len() > 0:
		return vector.FromCodes(codes, w, valid), nil
	case !inside && (top > 0 || valid == nil || valid.Any()):
		return nil, fmt.Errorf("code %d in a dictionary of %d words", top, w.Len())
	}
	return lookUp(codes, valid, w)
}

func lookUp[T uint8 | uint16 | uint32](codes []T, valid vector.Bitmap, w *vector.Vector) (*vector.Vector, error) {
	v := vector.New(w.Kind(), len(codes))
	for i, code := range codes {
		if valid != nil && !valid.Get(i) {
			v.AppendNull()
		} else if err := v.AppendRange(w, int(code), int(code)+1); err != nil {
			return nil, err
		}
	}
	return v, nil
}
