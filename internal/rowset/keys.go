package rowset

import (
	"github.com/minikudu/minikudu/vector"
)

// Keys is a batch of encoded keys in ascending order, to be resolved together.
type Keys struct {
	// Encoded holds the encoded keys, ascending, distinct.
	Encoded *vector.Vector
	// Columns holds the key columns' cells, in key column order; cell Row[i] of each
	// belongs to key i.
	Columns []*vector.Vector
	// Row maps a key to its row in Columns; nil means key i is row i.
	Row []int32

	locations []uint64 // FilterHashes numbers for each key, see Locations
}

// Len returns the number of keys.
func (k *Keys) Len() int { return k.Encoded.Len() }

// At returns encoded key i.
func (k *Keys) At(i int) []byte { return k.Encoded.BytesAt(i) }

// ColumnRow returns the row of Columns that belongs to key i.
func (k *Keys) ColumnRow(i int) int {
	if k.Row == nil {
		return i
	}
	return int(k.Row[i])
}
